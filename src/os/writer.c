/*
 * Writing. Invariant: `path` itself is never touched but by the rename at the end, and the part is
 * ours, by a lock, from open to close; whatever fails on the way, the part is removed.
 */
#include "os/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef LS_HAVE_ZLIB
#include <zlib.h>
#endif

enum { BUFFERED = 256 << 10, PACKED_AT_ONCE = 64 << 10 };

struct ls__writer {
    char *path, *part;
    int file; /* -1: not open */
    ls__compression compression;
    ls_status failed;
    int error;        /* of the system: why */
    uint64_t written; /* bytes of the file, packed */
    size_t used;      /* of the buffer */
#ifdef LS_HAVE_ZLIB
    z_stream z;
    bool packs; /* z is in use */
    unsigned char packed[PACKED_AT_ONCE];
#endif
    unsigned char buffer[BUFFERED];
};

static ls_status say_why(const ls__writer *w)
{
    if (w->failed == LS_NO_MEMORY)
        return ls__fail_memory(w->path, 256 << 10);
    return ls__fail(w->failed, "cannot write '%s' at byte %llu: %s", w->part,
                    (unsigned long long)w->written, strerror(w->error));
}

/* ---- bytes --------------------------------------------------------------------------------- */

static void write_file(ls__writer *w, const unsigned char *data, size_t bytes)
{
    while (bytes > 0 && !w->failed) {
        ssize_t put = write(w->file, data, bytes);
        if (put > 0) {
            data += put;
            bytes -= (size_t)put;
            w->written += (uint64_t)put;
        } else if (put == 0 || errno != EINTR) {
            w->error = put == 0 ? ENOSPC : errno;
            w->failed = LS_IO;
        }
    }
}

#ifdef LS_HAVE_ZLIB

static ls_status begin_packing(ls__writer *w)
{
    int window = 15 + (w->compression == LS__GZIP ? 16 : 0);
    w->packs = deflateInit2(&w->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window, 8,
                            Z_DEFAULT_STRATEGY) == Z_OK;
    return w->packs ? LS_OK : ls__fail_memory(w->path, 256 << 10);
}

static void end_packing(ls__writer *w)
{
    if (w->packs)
        deflateEnd(&w->z);
    w->packs = false;
}

static void pack(ls__writer *w, const unsigned char *data, size_t bytes, bool last)
{
    w->z.next_in = (unsigned char *)(uintptr_t)data; /* which it does not write */
    w->z.avail_in = (unsigned)bytes;
    do {
        w->z.next_out = w->packed;
        w->z.avail_out = sizeof w->packed;
        deflate(&w->z, last ? Z_FINISH : Z_NO_FLUSH); /* cannot fail: it has room */
        write_file(w, w->packed, sizeof w->packed - w->z.avail_out);
    } while (w->z.avail_out == 0 && !w->failed);
}

#else

static ls_status begin_packing(ls__writer *w)
{
    return ls__compression_check(w->path, w->compression);
}

static void end_packing(ls__writer *w)
{
    (void)w;
}

static void pack(ls__writer *w, const unsigned char *data, size_t bytes, bool last)
{
    (void)last;
    write_file(w, data, bytes);
}

#endif

static void flush(ls__writer *w, bool last)
{
    if (w->compression == LS__PLAIN)
        write_file(w, w->buffer, w->used);
    else
        pack(w, w->buffer, w->used, last);
    w->used = 0;
}

ls_status ls__writer_put(ls__writer *w, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    while (bytes > 0 && !w->failed) {
        size_t run = BUFFERED - w->used;
        run = bytes < run ? bytes : run;
        memcpy(w->buffer + w->used, at, run);
        w->used += run;
        at += run;
        bytes -= run;
        if (w->used == BUFFERED)
            flush(w, false);
    }
    return w->failed ? say_why(w) : LS_OK;
}

/* ---- files --------------------------------------------------------------------------------- */

/* Whether the part's name still leads to what we have open: whoever had it before may have given it
 * its final name, or removed it, between our open and our lock. */
static bool is_ours(const ls__writer *w)
{
    struct stat here, there;
    return fstat(w->file, &here) == 0 && stat(w->part, &there) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

/* `busy`: somebody else has it. */
static ls_status open_part(ls__writer *w, bool *busy)
{
    for (;;) {
        /* a link would lead to a file of somebody else's */
        w->file = open(w->part, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (w->file < 0 && errno == EINTR)
            continue;
        if (w->file < 0)
            return ls__fail(errno == ENOENT || errno == ENOTDIR ? LS_NOT_FOUND : LS_IO,
                            "cannot open '%s': %s", w->part, strerror(errno));
        *busy = flock(w->file, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
        if (*busy) {
            close(w->file);
            w->file = -1; /* so that it is not removed */
            return LS_OK;
        }
        if (is_ours(w))
            break;
        close(w->file);
    }
    if (ftruncate(w->file, 0)) /* somebody may have died here before */
        return ls__fail(LS_IO, "cannot write '%s': %s", w->part, strerror(errno));
    return LS_OK;
}

static ls_status check_path(const char *path)
{
    struct stat about;
    if (!path)
        return ls__fail(LS_INVALID, "the path of a file is NULL");
    size_t length = strlen(path);
    if (length == 0 || path[length - 1] == '/')
        return ls__fail(LS_INVALID, "'%s' is no name of a file", path);
    if (stat(path, &about) != 0 || S_ISREG(about.st_mode))
        return LS_OK;
    if (S_ISDIR(about.st_mode))
        return ls__fail(LS_IO, "cannot write '%s': %s", path, strerror(EISDIR));
    /* A device or a pipe would be gone: a file would have its name. */
    return ls__hint(ls__fail(LS_IO, "cannot write '%s': it is there, and no file", path),
                    "write to another name");
}

ls_status ls__writer_try(const char *path, ls__compression compression, ls__writer **out)
{
    bool busy = false;
    *out = NULL;
    ls_status st = check_path(path);
    if (st)
        return st;
    ls__writer *w = malloc(sizeof *w);
    if (!w)
        return ls__fail_memory(path, sizeof *w);
    memset(w, 0, offsetof(ls__writer, buffer));
    w->file = -1;
    w->compression = compression;
    w->path = strdup(path);
    if (!w->path || asprintf(&w->part, "%s.part", path) < 0) {
        w->part = NULL;
        st = ls__fail_memory(path, strlen(path));
    }
    if (!st && compression != LS__PLAIN)
        st = begin_packing(w);
    if (!st)
        st = open_part(w, &busy);
    if (st || busy) {
        ls__writer_discard(w);
        return st;
    }
    *out = w;
    return LS_OK;
}

ls_status ls__writer_open(const char *path, ls__compression compression, ls__writer **out)
{
    ls_status st = ls__writer_try(path, compression, out);
    if (!st && !*out)
        st = ls__fail(LS_IO, "cannot write '%s': somebody else is writing it", path);
    return st;
}

void ls__writer_discard(ls__writer *w)
{
    if (!w)
        return;
    if (w->file >= 0) {
        unlink(w->part); /* before the lock is gone */
        close(w->file);
    }
    end_packing(w);
    free(w->path);
    free(w->part);
    free(w);
}

void ls__sync_directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    int file = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (file >= 0) {
        (void)fsync(file);
        close(file);
    }
    free(dir);
}

ls_status ls__writer_close(ls__writer *w)
{
    flush(w, true);
    if (!w->failed && (fsync(w->file) || rename(w->part, w->path))) {
        w->error = errno;
        w->failed = LS_IO;
    }
    if (w->failed) {
        ls_status st = say_why(w);
        ls__writer_discard(w);
        return st;
    }
    ls__sync_directory_of(w->path);
    close(w->file);
    w->file = -1; /* the name is given: nothing to remove */
    ls__writer_discard(w);
    return LS_OK;
}
