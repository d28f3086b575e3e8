/*
 * Reading files. Invariant: a read gives all it was asked for or an error with
 * path and offset; a file is never trusted about its own length.
 */
#include "os/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef LS_HAVE_ZLIB
#include <zlib.h>
#endif

struct ls__reader {
    char *path;
    FILE *plain;
#ifdef LS_HAVE_ZLIB
    gzFile gzip;
#endif
    uint64_t offset; /* in the unpacked stream */
};

static ls_status open_failed(const char *path, int error)
{
    ls_status status = error == ENOENT ? LS_NOT_FOUND : LS_IO;
    return ls__fail(status, "cannot open '%s': %s", path, strerror(error));
}

static ls_status open_packed(ls__reader *r)
{
#ifdef LS_HAVE_ZLIB
    fclose(r->plain);
    r->plain = NULL;
    r->gzip = gzopen(r->path, "rbe");
    if (!r->gzip)
        return open_failed(r->path, errno);
    gzbuffer(r->gzip, 256 << 10);
    return LS_OK;
#else
    return ls__hint(ls__fail(LS_UNSUPPORTED, "'%s' is gzip and this build has no zlib", r->path),
                    "unpack the file with gunzip, or build with zlib1g-dev installed");
#endif
}

ls_status ls__reader_open(const char *path, ls__reader **out)
{
    if (!path)
        return ls__fail(LS_INVALID, "the path of a file is NULL");
    ls__reader *r = calloc(1, sizeof *r);
    if (!r)
        return ls__fail_memory("file", sizeof *r);
    ls_status st = LS_OK;
    r->path = strdup(path);
    if (!r->path) {
        st = ls__fail_memory("file", strlen(path));
        goto undo;
    }
    r->plain = fopen(path, "rbe");
    if (!r->plain) {
        st = open_failed(path, errno);
        goto undo;
    }
    unsigned char magic[2] = { 0, 0 };
    size_t got = fread(magic, 1, 2, r->plain);
    if (ferror(r->plain)) { /* a directory opens but does not read */
        st = ls__fail(LS_IO, "cannot read '%s': %s", path, strerror(errno));
        goto undo;
    }
    rewind(r->plain);
    if (got == 2 && magic[0] == 0x1f && magic[1] == 0x8b)
        st = open_packed(r);
    if (st)
        goto undo;
    *out = r;
    return LS_OK;
undo:
    ls__reader_close(r);
    return st;
}

void ls__reader_close(ls__reader *r)
{
    if (!r)
        return;
    if (r->plain)
        fclose(r->plain);
#ifdef LS_HAVE_ZLIB
    if (r->gzip)
        gzclose(r->gzip);
#endif
    free(r->path);
    free(r);
}

/* Up to `bytes`, fewer only at the end of the file or on an error (*error). */
static size_t read_some(ls__reader *r, void *to, size_t bytes, const char **error)
{
    *error = NULL;
#ifdef LS_HAVE_ZLIB
    if (r->gzip) {
        size_t done = 0;
        while (done < bytes) {
            size_t run = bytes - done < (1u << 30) ? bytes - done : (1u << 30);
            int got = gzread(r->gzip, (char *)to + done, (unsigned)run);
            if (got <= 0)
                break;
            done += (size_t)got;
        }
        int code = Z_OK;
        const char *text = gzerror(r->gzip, &code);
        if (code != Z_OK && code != Z_STREAM_END)
            *error = text;
        return done;
    }
#endif
    size_t done = fread(to, 1, bytes, r->plain);
    if (done < bytes && ferror(r->plain))
        *error = strerror(errno);
    return done;
}

ls_status ls__reader_read(ls__reader *r, void *to, size_t bytes)
{
    const char *error;
    size_t got = read_some(r, to, bytes, &error);
    r->offset += got;
    if (error)
        return ls__fail(LS_CORRUPT, "'%s': damaged at byte %llu: %s", r->path,
                        (unsigned long long)r->offset, error);
    if (got < bytes)
        return ls__hint(ls__fail(LS_CORRUPT, "'%s': ends at byte %llu, wants %llu more", r->path,
                                 (unsigned long long)r->offset,
                                 (unsigned long long)(bytes - got)),
                        "the file is cut short: fetch it again");
    return LS_OK;
}

ls_status ls__reader_at_end(ls__reader *r)
{
    char one;
    const char *error;
    size_t got = read_some(r, &one, 1, &error);
    if (error)
        return ls__fail(LS_CORRUPT, "'%s': damaged at byte %llu: %s", r->path,
                        (unsigned long long)r->offset, error);
    if (got > 0)
        return ls__fail(LS_CORRUPT, "'%s': more data than its header says, from byte %llu",
                        r->path, (unsigned long long)r->offset);
    return LS_OK;
}
