/*
 * Reading and unpacking. Invariant: `offset` counts the bytes given; once `ended` or `failed` is
 * set nothing more comes, until a seek.
 */
#include "os/packed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/inflate.h"

static void fail(ls__packed *p, ls_status status, const char *why)
{
    p->failed = status;
    snprintf(p->why, sizeof p->why, "%s", why);
}

/* Bytes of the file as they are: fewer than asked for, 0, at its end or when it failed. */
static size_t read_file(ls__packed *p, void *to, size_t bytes)
{
    const size_t most = (size_t)1 << 30; /* a system call takes no more than about two of them */
    for (;;) {
        ssize_t got = read(p->file, to, bytes < most ? bytes : most);
        if (got >= 0)
            return (size_t)got;
        if (errno != EINTR) {
            fail(p, LS_IO, strerror(errno));
            return 0;
        }
    }
}

static size_t read_plain(ls__packed *p, void *to, size_t bytes)
{
    size_t done = 0;
    while (done < bytes && !p->ended && !p->failed) {
        size_t got = read_file(p, (char *)to + done, bytes - done);
        p->ended = got == 0 && !p->failed;
        done += got;
    }
    return done;
}

/* ---- gzip and zlib ------------------------------------------------------------------------- */

enum { PACKED_AT_ONCE = 64 << 10 };

struct ls__unpacking {
    ls__inflate *inflate;
    bool whole; /* the stream's end was seen, and its checksum was right */
    unsigned char in[PACKED_AT_ONCE];
};

ls_status ls__compression_check(const char *what, ls__compression compression)
{
    if ((compression != LS__GZIP && compression != LS__ZLIB) || ls__inflate_there())
        return LS_OK;
    return ls__hint(ls__fail(LS_UNSUPPORTED, "%s: is %s, and this build has no zlib", what,
                             compression == LS__GZIP ? "gzip" : "zlib"),
                    "unpack the file, or build with zlib1g-dev installed");
}

static void end(ls__packed *p)
{
    if (p->z)
        ls__inflate_free(p->z->inflate);
    free(p->z);
    p->z = NULL;
}

static ls_status begin(ls__packed *p)
{
    ls_status st = ls__compression_check(p->path, p->compression);
    if (st)
        return st;
    p->z = calloc(1, sizeof *p->z);
    if (p->z)
        p->z->inflate = ls__inflate_new(p->compression == LS__GZIP);
    if (p->z && p->z->inflate)
        return LS_OK;
    end(p);
    return ls__fail_memory(p->path, sizeof *p->z);
}

static void begin_again(ls__packed *p)
{
    ls__inflate_again(p->z->inflate);
    p->z->inflate->in_left = 0;
    p->z->whole = false;
}

static void more_packed(ls__packed *p)
{
    ls__inflate *z = p->z->inflate;
    if (z->in_left > 0)
        return;
    z->in_left = read_file(p, p->z->in, sizeof p->z->in);
    z->in = p->z->in;
}

/* Behind the end of a stream: the file's, or another gzip member. */
static void next_member(ls__packed *p)
{
    struct ls__unpacking *u = p->z;
    if (u->inflate->in_left == 0) {
        p->ended = true;
    } else if (p->compression == LS__ZLIB) {
        fail(p, LS_CORRUPT, "there are bytes behind the end of the packed ones");
    } else {
        ls__inflate_again(u->inflate);
        u->whole = false;
    }
}

static void unpack(ls__packed *p)
{
    const ls__inflate_result result = ls__inflate_run(p->z->inflate);
    p->z->whole = result == LS__INFLATE_END;
    if (result == LS__INFLATE_CUT)
        fail(p, LS_CORRUPT, "the packed bytes are cut short");
    else if (result == LS__INFLATE_NO_MEMORY)
        fail(p, LS_NO_MEMORY, "no memory to unpack");
    else if (result == LS__INFLATE_BAD)
        fail(p, LS_CORRUPT, p->z->inflate->why);
}

static size_t read_packed(ls__packed *p, void *to, size_t bytes)
{
    size_t done = 0;
    while (done < bytes && !p->ended && !p->failed) {
        more_packed(p);
        if (!p->failed && p->z->whole)
            next_member(p);
        if (p->ended || p->failed)
            break;
        ls__inflate *z = p->z->inflate;
        z->out = (unsigned char *)to + done;
        z->out_left = bytes - done;
        unpack(p);
        done = bytes - z->out_left;
    }
    return done;
}

/* ---- files --------------------------------------------------------------------------------- */

static ls_status open_file(ls__packed *p)
{
    struct stat about;
    do
        p->file = open(p->path, O_RDONLY | O_CLOEXEC);
    while (p->file < 0 && errno == EINTR);
    if (p->file < 0) {
        ls_status status = errno == ENOENT || errno == ENOTDIR ? LS_NOT_FOUND : LS_IO;
        return ls__fail(status, "cannot open '%s': %s", p->path, strerror(errno));
    }
    p->open = true;
    if (fstat(p->file, &about) == 0 && S_ISDIR(about.st_mode))
        return ls__fail(LS_IO, "cannot read '%s': %s", p->path, strerror(EISDIR));
    (void)posix_fadvise(p->file, 0, 0, POSIX_FADV_SEQUENTIAL); /* advice only */
    return LS_OK;
}

static ls__compression look_at_magic(const ls__packed *p)
{
    unsigned char magic[2] = { 0, 0 };
    return pread(p->file, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b ? LS__GZIP
                                                                                    : LS__PLAIN;
}

ls_status ls__packed_open(ls__packed *p, const char *path, ls__compression compression)
{
    if (!path)
        return ls__fail(LS_INVALID, "the path of a file is NULL");
    *p = (ls__packed){ .path = strdup(path), .compression = compression };
    ls_status st = p->path ? open_file(p) : ls__fail_memory("a file", strlen(path));
    if (!st && compression == LS__BY_MAGIC)
        p->compression = look_at_magic(p);
    if (!st && p->compression != LS__PLAIN)
        st = begin(p);
    if (st)
        ls__packed_close(p);
    return st;
}

void ls__packed_close(ls__packed *p)
{
    if (p->open)
        close(p->file);
    end(p);
    free(p->path);
    *p = (ls__packed){ 0 };
}

size_t ls__packed_read(ls__packed *p, void *to, size_t bytes)
{
    size_t got = p->compression == LS__PLAIN ? read_plain(p, to, bytes) : read_packed(p, to, bytes);
    p->offset += got;
    return got;
}

ls_status ls__packed_failure(const ls__packed *p)
{
    if (p->failed == LS_CORRUPT) {
        ls__fail(LS_CORRUPT, "'%s': damaged at byte %llu: %s", p->path,
                 (unsigned long long)p->offset, p->why);
        return p->offset == 0 ? ls__hint(LS_CORRUPT, "is it a whole %s file?",
                                         p->compression == LS__GZIP ? "gzip" : "zlib")
                              : ls__hint(LS_CORRUPT, "what is before can be used; fetch the file "
                                                     "again, or write it again, for the rest");
    }
    return ls__fail(p->failed, "cannot read '%s' at byte %llu: %s", p->path,
                    (unsigned long long)p->offset, p->why);
}

ls_status ls__packed_seek(ls__packed *p, uint64_t offset)
{
    const bool plain = p->compression == LS__PLAIN;
    if (!plain && offset >= p->offset)
        return LS_OK;
    uint64_t to = plain ? offset : 0;
    errno = EINVAL;
    if (to > INT64_MAX || lseek(p->file, (off_t)to, SEEK_SET) < 0) {
        if (errno == ESPIPE && offset >= p->offset) /* a pipe is read along */
            return LS_OK;
        return ls__fail(LS_IO, "cannot go back or on in '%s': %s", p->path, strerror(errno));
    }
    p->offset = to;
    p->ended = false;
    p->failed = LS_OK;
    if (!plain)
        begin_again(p);
    return LS_OK;
}

uint64_t ls__packed_can_follow(const ls__packed *p)
{
    struct stat about;
    if (p->ended)
        return 0;
    if (p->failed || fstat(p->file, &about) || !S_ISREG(about.st_mode))
        return UINT64_MAX;
    uint64_t size = (uint64_t)about.st_size, most;
    if (p->compression != LS__PLAIN && __builtin_mul_overflow(size, LS__PACKED_MOST, &most))
        return UINT64_MAX;
    most = p->compression == LS__PLAIN ? size : most;
    return most > p->offset ? most - p->offset : 0;
}
