/*
 * Appending. Invariant: the file's first `length` bytes are whole; what lies behind them was cut off
 * in the middle by an error, and is removed before anything else is written.
 */
#include "os/appender.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/directory.h"

struct ls__appender {
    char *path;
    int file;
    uint64_t length;
    bool torn; /* there may be more in it */
};

static ls_status refused(const ls__appender *a, int why)
{
    ls_status st = ls__fail(LS_IO, "cannot write '%s' at byte %llu: %s", a->path,
                            (unsigned long long)a->length, strerror(why));
    if (why == ENOSPC || why == EDQUOT || why == EFBIG)
        ls__hint(st, "make room on the disk, or write elsewhere; what is in the file is whole");
    return st;
}

ls_status ls__appender_open(const char *path, ls__appender **out)
{
    *out = NULL;
    ls__appender *a = calloc(1, sizeof *a);
    if (a)
        a->path = strdup(path);
    if (!a || !a->path) {
        free(a);
        return ls__fail_memory(path, sizeof *a + strlen(path));
    }
    do
        a->file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    while (a->file < 0 && errno == EINTR);
    if (a->file < 0) {
        int why = errno;
        free(a->path);
        free(a);
        return why == EEXIST ? LS_OK : ls__fail(LS_IO, "cannot open '%s': %s", path, strerror(why));
    }
    ls__sync_directory_of(path);
    *out = a;
    return LS_OK;
}

/* Removes what was cut off. */
static ls_status mend(ls__appender *a)
{
    if (a->torn && ftruncate(a->file, (off_t)a->length))
        return refused(a, errno);
    a->torn = false;
    return LS_OK;
}

ls_status ls__appender_put(ls__appender *a, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    ls_status st = mend(a);
    for (size_t left = bytes; left > 0 && !st;) {
        ssize_t put = write(a->file, at, left);
        if (put > 0) {
            at += put;
            left -= (size_t)put;
            a->torn = true;
        } else if (put == 0 || errno != EINTR) {
            st = refused(a, put == 0 ? ENOSPC : errno);
        }
    }
    if (st) {
        mend(a); /* if this fails too, the next put tries again; the first error is kept */
        return st;
    }
    a->torn = false;
    a->length += bytes;
    return LS_OK;
}

ls_status ls__appender_sync(ls__appender *a)
{
    return fsync(a->file) ? refused(a, errno) : LS_OK;
}

void ls__appender_close(ls__appender *a)
{
    if (!a)
        return;
    close(a->file);
    free(a->path);
    free(a);
}

void ls__appender_discard(ls__appender *a)
{
    if (a)
        unlink(a->path);
    ls__appender_close(a);
}
