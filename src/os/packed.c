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

#ifdef LS_HAVE_ZLIB
#include <zlib.h>
#endif

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

#ifdef LS_HAVE_ZLIB

enum { PACKED_AT_ONCE = 64 << 10 };

/* Deflate's best case: 258 bytes by two bits. */
enum { MOST_PER_BYTE = 1032 };

struct ls__unpacking {
    z_stream z;
    bool whole; /* the stream's end was seen, and its checksum was right */
    unsigned char in[PACKED_AT_ONCE];
};

ls_status ls__compression_check(const char *what, ls__compression compression)
{
    (void)what;
    (void)compression;
    return LS_OK;
}

static ls_status begin(ls__packed *p)
{
    p->z = calloc(1, sizeof *p->z);
    int window = 15 + (p->compression == LS__GZIP ? 16 : 0);
    if (!p->z || inflateInit2(&p->z->z, window) != Z_OK) {
        free(p->z);
        p->z = NULL;
        return ls__fail_memory(p->path, sizeof *p->z);
    }
    return LS_OK;
}

static void end(ls__packed *p)
{
    if (p->z)
        inflateEnd(&p->z->z);
    free(p->z);
    p->z = NULL;
}

static void begin_again(ls__packed *p)
{
    inflateReset(&p->z->z);
    p->z->z.avail_in = 0;
    p->z->whole = false;
}

static void more_packed(ls__packed *p)
{
    struct ls__unpacking *u = p->z;
    if (u->z.avail_in > 0)
        return;
    size_t got = read_file(p, u->in, sizeof u->in);
    u->z.next_in = u->in;
    u->z.avail_in = (unsigned)got;
}

/* Behind the end of a stream: the file's, or another gzip member. */
static void next_member(ls__packed *p)
{
    struct ls__unpacking *u = p->z;
    if (u->z.avail_in == 0) {
        p->ended = true;
    } else if (p->compression == LS__ZLIB) {
        fail(p, LS_CORRUPT, "there are bytes behind the end of the packed ones");
    } else {
        inflateReset(&u->z);
        u->whole = false;
    }
}

static void unpack(ls__packed *p)
{
    struct ls__unpacking *u = p->z;
    int code = inflate(&u->z, Z_NO_FLUSH);
    u->whole = code == Z_STREAM_END;
    if (code == Z_OK || code == Z_STREAM_END)
        return;
    if (code == Z_BUF_ERROR) /* there is room, so it lacks bytes, and there are none */
        fail(p, LS_CORRUPT, "the packed bytes are cut short");
    else
        fail(p, code == Z_MEM_ERROR ? LS_NO_MEMORY : LS_CORRUPT,
             u->z.msg ? u->z.msg : zError(code));
}

static size_t read_packed(ls__packed *p, void *to, size_t bytes)
{
    z_stream *z = &p->z->z;
    size_t done = 0;
    while (done < bytes && !p->ended && !p->failed) {
        more_packed(p);
        if (!p->failed && p->z->whole)
            next_member(p);
        if (p->ended || p->failed)
            break;
        size_t left = bytes - done;
        z->next_out = (unsigned char *)to + done;
        z->avail_out = left < (1u << 30) ? (unsigned)left : 1u << 30;
        unsigned room = z->avail_out;
        unpack(p);
        done += room - z->avail_out;
    }
    return done;
}

#else

enum { MOST_PER_BYTE = 1 };

ls_status ls__compression_check(const char *what, ls__compression compression)
{
    if (compression != LS__GZIP && compression != LS__ZLIB)
        return LS_OK;
    return ls__hint(ls__fail(LS_UNSUPPORTED, "%s: is %s, and this build has no zlib", what,
                             compression == LS__GZIP ? "gzip" : "zlib"),
                    "unpack the file, or build with zlib1g-dev installed");
}

static ls_status begin(ls__packed *p)
{
    return ls__compression_check(p->path, p->compression);
}

static void end(ls__packed *p)
{
    (void)p;
}

static void begin_again(ls__packed *p)
{
    (void)p;
}

static size_t read_packed(ls__packed *p, void *to, size_t bytes)
{
    return read_plain(p, to, bytes);
}

#endif

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
    if (p->compression != LS__PLAIN && __builtin_mul_overflow(size, MOST_PER_BYTE, &most))
        return UINT64_MAX;
    most = p->compression == LS__PLAIN ? size : most;
    return most > p->offset ? most - p->offset : 0;
}
