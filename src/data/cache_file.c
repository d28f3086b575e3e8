/*
 * Reading the file of a cache; its format is in cache_file.h. Elements point into a buffer that is read
 * anew in every pull.
 *
 * Invariant: nothing is believed before its crc was found right, and no memory is asked for that the
 * file is not long enough for. A file that is not what it should be is an error that names it: it is
 * never made anew behind the user's back.
 */
#include "data/cache_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/cache.h"
#include "data/crc32c.h"
#include "data/nest.h"

enum { AT_ONCE = 256 << 10 };

typedef struct file_store {
    ls__store store;
    char *path;
    FILE *stream;
    uint64_t size;
    ls__cache_tail tail;
    uint64_t *pages; /* where they are, with the foot behind */
    int64_t group;   /* the one whose page this is; -1: none */
    uint64_t begins[LS__CACHE_GROUP + 1];
    unsigned char *buffer;
    size_t room;
} file_store;

/* ---- errors -------------------------------------------------------------------------------------- */

static ls_status refused(const char *what, const char *path)
{
    return ls__fail(LS_IO, "ls_cache: cannot %s '%s': %s", what, path, strerror(errno));
}

static ls_status not_ours(const char *path, const char *why)
{
    return ls__hint(ls__fail(LS_INVALID, "ls_cache: '%s' %s", path, why),
                    "give ls_cache the name of a file of its own, or remove this one");
}

static ls_status damaged(const char *path, const char *what)
{
    return ls__hint(ls__fail(LS_CORRUPT, "ls_cache: '%s' is damaged: %s", path, what),
                    "remove it: the next iteration makes it anew");
}

static ls_status read_at(file_store *f, uint64_t at, void *to, size_t bytes)
{
    if (fseeko(f->stream, (off_t)at, SEEK_SET))
        return refused("read", f->path);
    if (fread(to, 1, bytes, f->stream) == bytes)
        return LS_OK;
    return ferror(f->stream) ? refused("read", f->path)
                             : damaged(f->path, "it is shorter than it was");
}

/* ---- elements ------------------------------------------------------------------------------------ */

static ls_status page_damaged(const file_store *f, int64_t number)
{
    char what[96];
    snprintf(what, sizeof what, "nothing tells where element %lld is", (long long)number);
    return damaged(f->path, what);
}

static int in_group(const file_store *f, int64_t group)
{
    const int64_t left = f->store.head.n - group * LS__CACHE_GROUP;
    return left < LS__CACHE_GROUP ? (int)left : LS__CACHE_GROUP;
}

static ls_status know_group(file_store *f, int64_t number)
{
    const int64_t group = number / LS__CACHE_GROUP;
    if (f->group == group)
        return LS_OK;
    const int n = in_group(f, group);
    const size_t bytes = ((size_t)n + 1) * sizeof *f->begins;
    const uint64_t at = f->pages[group];
    uint32_t end[2];
    f->group = -1;
    if (at < LS__CACHE_FRONT || at > f->tail.pages_at || f->tail.pages_at - at < bytes + sizeof end)
        return page_damaged(f, number);
    ls_status st = read_at(f, at, f->begins, bytes);
    if (!st)
        st = read_at(f, at + bytes, end, sizeof end);
    if (st)
        return st;
    bool good = end[0] == ls__crc32c(0, f->begins, bytes) && end[1] == (uint32_t)n &&
                f->begins[0] >= LS__CACHE_FRONT && f->begins[n] == at;
    for (int i = 0; i < n && good; i++)
        good = f->begins[i] < f->begins[i + 1];
    if (!good)
        return page_damaged(f, number);
    f->group = group;
    return LS_OK;
}

/* How many records from `first` of the group on are read at once. */
static int run_of(const file_store *f, int first, int most)
{
    const int n = in_group(f, f->group);
    int last = first + 1;
    while (last < n && last - first < most &&
           f->begins[last + 1] - f->begins[first] <= (uint64_t)AT_ONCE)
        last++;
    return last - first;
}

static ls_status room_for(file_store *f, uint64_t bytes)
{
    if (bytes <= f->room)
        return LS_OK;
    size_t room = bytes < AT_ONCE ? AT_ONCE : (size_t)bytes;
    unsigned char *more = realloc(f->buffer, room);
    if (!more)
        return ls__fail_memory("ls_cache", room);
    f->buffer = more;
    f->room = room;
    return LS_OK;
}

/* Record i of the group, of which the buffer begins with record `first`. */
static ls_status take(file_store *f, int first, int i, ls__chunk *out, ls__marks *marks)
{
    const int64_t number = f->group * LS__CACHE_GROUP + i;
    const size_t bytes = (size_t)(f->begins[i + 1] - f->begins[i]);
    const unsigned char *record = f->buffer + (f->begins[i] - f->begins[first]);
    uint32_t crc = 0;
    if (bytes >= LS__RECORD_CRC)
        memcpy(&crc, record, LS__RECORD_CRC);
    if (bytes < 8 || crc != ls__crc32c(0, record + LS__RECORD_CRC, bytes - LS__RECORD_CRC))
        return LS_CORRUPT;
    return ls__record_read(&f->store.head, record, bytes, number, NULL, out, marks);
}

/* A damaged element is told when its turn comes. */
static ls_status read_records(ls__store *s, int64_t number, int most, ls__chunk *out,
                              ls__marks *marks)
{
    file_store *f = (file_store *)s;
    ls_status st = know_group(f, number);
    if (st)
        return st;
    const int first = (int)(number % LS__CACHE_GROUP), n = run_of(f, first, most);
    const uint64_t bytes = f->begins[first + n] - f->begins[first];
    st = room_for(f, bytes);
    if (!st)
        st = read_at(f, f->begins[first], f->buffer, (size_t)bytes);
    if (!st)
        st = ls__chunk_room(out, n, s->head.leaves, 1 + s->head.words);
    if (st)
        return st;
    out->structure = s->head.structure;
    for (int i = first; i < first + n && !st; i++)
        st = take(f, first, i, out, marks);
    if (!st || out->n > 0)
        return LS_OK;
    if (st == LS_CORRUPT) {
        char what[96];
        snprintf(what, sizeof what, "element %lld, at byte %llu", (long long)number,
                 (unsigned long long)f->begins[first]);
        damaged(f->path, what);
    }
    return st;
}

static void close_file(ls__store *s)
{
    file_store *f = (file_store *)s;
    if (f->stream)
        fclose(f->stream);
    ls__cache_head_free(&s->head);
    free(f->path);
    free(f->pages);
    free(f->buffer);
    free(f);
}

/* ---- opening -------------------------------------------------------------------------------------- */

static ls_status check_front(file_store *f)
{
    char magic[8];
    uint32_t about[2];
    if (fseeko(f->stream, 0, SEEK_END))
        return refused("read", f->path);
    const off_t size = ftello(f->stream);
    f->size = size > 0 ? (uint64_t)size : 0;
    if (f->size < LS__CACHE_FRONT)
        return not_ours(f->path, "is no file of ls_cache's");
    ls_status st = read_at(f, 0, magic, sizeof magic);
    if (!st)
        st = read_at(f, 8, about, sizeof about);
    if (st)
        return st;
    if (memcmp(magic, LS__CACHE_MAGIC, sizeof magic) != 0)
        return not_ours(f->path, "is no file of ls_cache's");
    if (about[0] != LS__CACHE_ORDER)
        return not_ours(f->path, "is of a machine with another byte order");
    if (about[1] != LS__CACHE_VERSION)
        return not_ours(f->path, "is of another version of Lockstep");
    return LS_OK;
}

/* The list of pages and the foot, which are the file's from pages_at on. */
static ls_status read_end(file_store *f)
{
    const ls__cache_tail *t = &f->tail;
    const uint64_t end = f->size - LS__CACHE_TAIL;
    if (f->size < LS__CACHE_FRONT + LS__CACHE_TAIL)
        return damaged(f->path, "it is cut short");
    ls_status st = read_at(f, end, &f->tail, sizeof f->tail);
    if (st)
        return st;
    if (memcmp(t->magic, LS__CACHE_MAGIC, sizeof t->magic) != 0 || t->zero)
        return damaged(f->path, "its end is missing");
    const uint64_t groups = t->n / LS__CACHE_GROUP + (t->n % LS__CACHE_GROUP != 0);
    if (t->pages_at < LS__CACHE_FRONT || t->foot_at < t->pages_at || t->foot_at > end ||
        t->n > INT64_MAX || (t->foot_at - t->pages_at) / 8 != groups ||
        (t->foot_at - t->pages_at) % 8 != 0)
        return damaged(f->path, "its end");
    const size_t bytes = (size_t)(end - t->pages_at);
    f->pages = malloc(bytes + 1);
    if (!f->pages)
        return ls__fail_memory("ls_cache", bytes);
    st = read_at(f, t->pages_at, f->pages, bytes);
    if (st)
        return st;
    uint32_t crc = ls__crc32c(0, f->pages, bytes);
    crc = ls__crc32c(crc, t, offsetof(ls__cache_tail, crc));
    return crc == t->crc ? LS_OK : damaged(f->path, "its end");
}

static ls_status get_start(ls__cache_head *h, ls__bytes_in *from)
{
    const void *data;
    size_t bytes;
    if (h->positions == LS__CACHE_WORDS) {
        h->start = calloc((size_t)h->words + 1, sizeof *h->start);
        return h->start ? ls__get_ints(from, h->words, h->start)
                        : ls__fail_memory("ls_cache", sizeof *h->start);
    }
    if (h->positions == LS__CACHE_NONE)
        return LS_OK;
    ls_status st = ls__get_bytes(from, &data, &bytes);
    if (st)
        return st;
    h->start_mark = (ls__mark){ .bytes = bytes, .data = malloc(bytes + 1) };
    if (!h->start_mark.data)
        return ls__fail_memory("ls_cache", bytes);
    memcpy(h->start_mark.data, data, bytes);
    return LS_OK;
}

static ls_status get_foot(ls__cache_head *h, ls__bytes_in *from)
{
    int64_t fingerprint, positions, words, leaves;
    ls_status st = ls__get_int(from, INT64_MIN, INT64_MAX, &fingerprint);
    if (!st)
        st = ls__get_int(from, LS__CACHE_NONE, LS__CACHE_MARKS, &positions);
    if (!st)
        st = ls__get_int(from, 0, 4096, &words);
    if (st)
        return st;
    h->fingerprint = (uint64_t)fingerprint;
    h->positions = (ls__cache_positions)positions;
    h->words = (int)words;
    st = get_start(h, from);
    if (!st)
        st = ls__get_int(from, 0, 1 << 20, &leaves);
    if (st)
        return st;
    h->leaves = (int)leaves;
    if (h->n > 0)
        st = ls__nest_get(from, &h->structure);
    if (!st && (from->at != from->end || (h->n > 0 && ls_leaf_count(h->structure) != h->leaves)))
        st = ls__position_corrupt();
    return st;
}

static ls_status read_foot(file_store *f, uint64_t fingerprint)
{
    ls__cache_head *h = &f->store.head;
    const unsigned char *all = (const unsigned char *)f->pages;
    const uint64_t end = f->size - LS__CACHE_TAIL;
    ls__bytes_in from = { all + (f->tail.foot_at - f->tail.pages_at),
                          all + (end - f->tail.pages_at) };
    h->n = (int64_t)f->tail.n;
    ls__error_scope scope; /* what is wrong with it is said here, in words of this file's */
    ls__error_scope_open(&scope);
    ls_status st = get_foot(h, &from);
    if (st == LS_CORRUPT)
        ls_error();
    ls__error_put(&scope.outer);
    if (st)
        return st == LS_CORRUPT ? damaged(f->path, "its end") : st;
    if (h->fingerprint != fingerprint)
        return ls__hint(
            ls__fail(LS_INVALID, "ls_cache: '%s' has elements of another dataset", f->path),
            "give this dataset a file of its own, or remove the file if it is of an "
            "older version of this one");
    f->store.bytes = (size_t)(f->size - f->tail.pages_at) + sizeof *f + AT_ONCE;
    return LS_OK;
}

ls_status ls__file_find(const char *path, uint64_t fingerprint, ls__store **out)
{
    *out = NULL;
    FILE *stream = fopen(path, "rbe");
    if (!stream)
        return errno == ENOENT ? LS_OK : refused("open", path);
    setvbuf(stream, NULL, _IONBF, 0);
    file_store *f = calloc(1, sizeof *f);
    char *name = strdup(path);
    if (!f || !name) {
        fclose(stream);
        free(f);
        free(name);
        return ls__fail_memory("ls_cache", sizeof *f);
    }
    *f = (file_store){ .store = { .read = read_records, .close = close_file },
                       .path = name,
                       .stream = stream,
                       .group = -1 };
    ls_status st = check_front(f);
    if (!st)
        st = read_end(f);
    if (!st)
        st = read_foot(f, fingerprint);
    if (st)
        close_file(&f->store);
    else
        *out = &f->store;
    return st;
}
