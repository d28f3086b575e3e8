/*
 * Reading files. Invariant: a read gives all it was asked for or an error with path and offset; a file
 * is never trusted about its own length.
 */
#include "os/file.h"

#include <stdlib.h>

#include "os/packed.h"

struct ls__reader {
    ls__packed file;
};

ls_status ls__reader_open(const char *path, ls__reader **out)
{
    ls__reader *r = calloc(1, sizeof *r);
    if (!r)
        return ls__fail_memory("file", sizeof *r);
    ls_status st = ls__packed_open(&r->file, path, LS__BY_MAGIC);
    if (st) {
        free(r);
        return st;
    }
    *out = r;
    return LS_OK;
}

void ls__reader_close(ls__reader *r)
{
    if (r)
        ls__packed_close(&r->file);
    free(r);
}

ls_status ls__reader_read(ls__reader *r, void *to, size_t bytes)
{
    size_t got = ls__packed_read(&r->file, to, bytes);
    if (got == bytes)
        return LS_OK;
    if (r->file.failed)
        return ls__packed_failure(&r->file);
    return ls__hint(ls__fail(LS_CORRUPT, "'%s': ends at byte %llu, wants %llu more", r->file.path,
                             (unsigned long long)r->file.offset, (unsigned long long)(bytes - got)),
                    "the file is cut short: fetch it again");
}

bool ls__reader_likely_has(const ls__reader *r, size_t bytes)
{
    enum { LIKELY = LS__PACKED_MOST / 8 };
    const uint64_t most = ls__packed_can_follow(&r->file);
    return most != UINT64_MAX && bytes <= (r->file.compression == LS__PLAIN ? most : most / LIKELY);
}

ls_status ls__reader_at_end(ls__reader *r)
{
    char one;
    size_t got = ls__packed_read(&r->file, &one, 1);
    if (r->file.failed)
        return ls__packed_failure(&r->file);
    if (got > 0)
        return ls__fail(LS_CORRUPT, "'%s': more data than its header says, from byte %llu",
                        r->file.path, (unsigned long long)(r->file.offset - got));
    return LS_OK;
}
