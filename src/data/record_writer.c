/*
 * Writing TFRecord files: the frame of framing_tfrecord.c around what is given.
 */
#include <lockstep/records.h>

#include <stdlib.h>

#include "base/status.h"
#include "data/compression.h"
#include "data/framing.h"
#include "os/writer.h"

struct ls_record_writer {
    ls__writer *file;
};

ls_record_writer *ls_record_writer_open(const char *path, ls_compression compression)
{
    const char *who = "ls_record_writer_open";
    ls__compression kind;
    if (!path || !path[0])
        ls__fail(LS_INVALID, "%s: the path is %s", who, path ? "empty" : "NULL");
    if (!path || !path[0] || ls__compression_of(who, compression, &kind))
        return NULL;
    ls_record_writer *w = calloc(1, sizeof *w);
    if (!w) {
        ls__fail_memory(who, sizeof *w);
        return NULL;
    }
    if (ls__writer_open(path, kind, &w->file)) {
        free(w);
        return NULL;
    }
    return w;
}

static ls_status check(const char *who, const ls_record_writer *w)
{
    if (w)
        return LS_OK;
    return ls_error_pending() ? ls_error_pending()
                              : ls__fail(LS_INVALID, "%s: the writer is NULL", who);
}

ls_status ls_record_write(ls_record_writer *w, const void *data, size_t bytes)
{
    unsigned char head[LS__TFRECORD_HEAD], tail[LS__TFRECORD_TAIL];
    ls_status st = check("ls_record_write", w);
    if (!st && !data && bytes > 0)
        st = ls__fail(LS_INVALID, "ls_record_write: the data is NULL, and %zu bytes of it", bytes);
    if (st)
        return st;
    ls__tfrecord_frame(data, bytes, head, tail);
    st = ls__writer_put(w->file, head, sizeof head);
    if (!st && bytes > 0)
        st = ls__writer_put(w->file, data, bytes);
    return st ? st : ls__writer_put(w->file, tail, sizeof tail);
}

ls_status ls_record_writer_close(ls_record_writer *w)
{
    if (!w)
        return ls_error_pending();
    ls_status st = ls__writer_close(w->file);
    free(w);
    return st;
}

void ls_record_writer_discard(ls_record_writer *w)
{
    if (w)
        ls__writer_discard(w->file);
    free(w);
}
