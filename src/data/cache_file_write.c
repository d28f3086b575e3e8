/*
 * Filling the file of a cache; its format is in cache_file.h. It has its name when it is complete, and
 * not before.
 */
#include <stdlib.h>
#include <string.h>

#include "data/cache.h"
#include "data/cache_file.h"
#include "data/crc32c.h"
#include "data/nest.h"
#include "os/writer.h"

typedef struct file_recorder {
    ls__recorder recorder;
    ls__writer *writer;
    uint64_t bytes;        /* of the file so far */
    unsigned char *record; /* the last one */
    size_t room;
    uint64_t begins[LS__CACHE_GROUP + 1]; /* of the records of a group */
    int in_group;
    uint64_t *pages;
    size_t n_pages, room_pages;
} file_recorder;

static ls_status put(file_recorder *r, const void *data, size_t bytes)
{
    r->bytes += bytes;
    return ls__writer_put(r->writer, data, bytes);
}

static ls_status put_page(file_recorder *r)
{
    if (r->n_pages == r->room_pages) {
        size_t room = r->room_pages ? 2 * r->room_pages : 64;
        uint64_t *more = realloc(r->pages, room * sizeof *more);
        if (!more)
            return ls__fail_memory("ls_cache", room * sizeof *more);
        r->pages = more;
        r->room_pages = room;
    }
    r->pages[r->n_pages++] = r->begins[r->in_group] = r->bytes;
    const size_t bytes = ((size_t)r->in_group + 1) * sizeof *r->begins;
    const uint32_t end[2] = { ls__crc32c(0, r->begins, bytes), (uint32_t)r->in_group };
    ls_status st = put(r, r->begins, bytes);
    if (!st)
        st = put(r, end, sizeof end);
    r->in_group = 0;
    return st;
}

static ls_status room_for(file_recorder *r, size_t bytes)
{
    if (bytes <= r->room)
        return LS_OK;
    unsigned char *more = realloc(r->record, 2 * bytes);
    if (!more)
        return ls__fail_memory("ls_cache", 2 * bytes);
    r->record = more;
    r->room = 2 * bytes;
    r->recorder.bytes = r->room;
    return LS_OK;
}

static ls_status add(ls__recorder *base, const ls__chunk *c, int i, const ls__mark *mark)
{
    file_recorder *r = (file_recorder *)base;
    const size_t bytes = ls__record_size(&base->head, c, i, mark);
    ls_status st = ls__cache_structure(&base->head, c);
    if (!st)
        st = room_for(r, bytes);
    if (st)
        return st;
    ls__record_write(&base->head, c, i, mark, r->record);
    const uint32_t crc = ls__crc32c(0, r->record + LS__RECORD_CRC, bytes - LS__RECORD_CRC);
    memcpy(r->record, &crc, LS__RECORD_CRC);
    r->begins[r->in_group++] = r->bytes;
    st = put(r, r->record, bytes);
    if (!st && r->in_group == LS__CACHE_GROUP)
        st = put_page(r);
    base->head.n++;
    return st;
}

static void put_foot(const ls__cache_head *h, ls__bytes_out *to)
{
    ls__put_int(to, (int64_t)h->fingerprint);
    ls__put_int(to, (int64_t)h->positions);
    ls__put_int(to, h->words);
    if (h->positions == LS__CACHE_WORDS)
        ls__put_ints(to, h->words, h->start);
    if (h->positions == LS__CACHE_MARKS)
        ls__put_bytes(to, h->start_mark.data, h->start_mark.bytes);
    ls__put_int(to, h->leaves);
    if (h->n > 0)
        ls__nest_put(to, h->structure);
}

static ls_status put_end(file_recorder *r)
{
    ls__bytes_out foot = { 0 };
    put_foot(&r->recorder.head, &foot);
    ls__cache_tail tail = { .pages_at = r->bytes, .n = (uint64_t)r->recorder.head.n };
    const size_t pages = r->n_pages * sizeof *r->pages;
    tail.foot_at = tail.pages_at + pages;
    memcpy(tail.magic, LS__CACHE_MAGIC, sizeof tail.magic);
    tail.crc = ls__crc32c(0, r->pages, pages);
    tail.crc = ls__crc32c(tail.crc, foot.at, foot.used);
    tail.crc = ls__crc32c(tail.crc, &tail, offsetof(ls__cache_tail, crc));
    ls_status st = foot.failed ? ls__fail_memory("ls_cache", foot.room) : LS_OK;
    if (!st)
        st = put(r, r->pages, pages);
    if (!st)
        st = put(r, foot.at, foot.used);
    if (!st)
        st = put(r, &tail, sizeof tail);
    ls__bytes_out_free(&foot);
    return st;
}

static void discard(ls__recorder *base)
{
    file_recorder *r = (file_recorder *)base;
    ls__writer_discard(r->writer);
    ls__cache_head_free(&base->head);
    free(r->record);
    free(r->pages);
    free(r);
}

static ls_status finish(ls__recorder *base)
{
    file_recorder *r = (file_recorder *)base;
    ls_status st = r->in_group ? put_page(r) : LS_OK;
    if (!st)
        st = put_end(r);
    if (!st) {
        st = ls__writer_close(r->writer);
        r->writer = NULL;
    }
    discard(base);
    return st;
}

ls_status ls__file_record(const char *path, ls__cache_head *head, ls__recorder **out)
{
    static const uint32_t front[2] = { LS__CACHE_ORDER, LS__CACHE_VERSION };
    *out = NULL;
    file_recorder *r = calloc(1, sizeof *r);
    ls_status st =
        r ? ls__writer_try(path, LS__PLAIN, &r->writer) : ls__fail_memory("ls_cache", sizeof *r);
    if (st || !r->writer) {
        free(r);
        ls__cache_head_free(head);
        return st;
    }
    r->recorder = (ls__recorder){ .head = *head, .add = add, .finish = finish, .discard = discard };
    *head = (ls__cache_head){ 0 };
    st = put(r, LS__CACHE_MAGIC, 8);
    if (!st)
        st = put(r, front, sizeof front);
    if (st)
        discard(&r->recorder);
    else
        *out = &r->recorder;
    return st;
}
