/*
 * Iterators as programs see them: the last stage of a dataset, pulled one element at a time. Invariant:
 * `last` is the position after the last element that was given, or behind a failure since, which is all
 * that is ever saved.
 */
#include <lockstep/input.h>
#include <stdlib.h>
#include <string.h>

#include "data/crc32c.h"
#include "data/distribute.h"
#include "data/iterator.h"
#include "strategy/phases.h"
#include "strategy/strategy.h"
#include "tensor/tensor.h"

struct ls_iterator {
    ls_dataset *dataset;
    ls__going going;
    ls__it *it;      /* NULL: could not be opened anew */
    ls__chunk chunk; /* of one element */
    int64_t *last;
    uint64_t iteration;
    bool waits;          /* for ls_initialize */
    ls__phases *waiting; /* whose replicas wait for its elements, or NULL */
};

/* ---- opening ----------------------------------------------------------------------------- */

static ls_status open(ls_iterator *i, uint64_t iteration)
{
    ls__it_close(i->it);
    i->it = NULL;
    free(i->last);
    i->last = NULL;
    ls__chunk_free(&i->chunk);
    i->iteration = iteration;
    i->waits = false;
    ls__opening how = { .going = &i->going, .iteration = iteration };
    ls_status st = ls__it_open(i->dataset, &how, &i->it);
    if (st)
        return st;
    i->last = calloc((size_t)i->it->words + 1, sizeof *i->last);
    if (!i->last)
        return ls__fail_memory("an iterator", sizeof *i->last);
    ls__it_words(i->it, i->last);
    return LS_OK;
}

static uint64_t next_iteration(ls_dataset *d)
{
    return (uint64_t)atomic_fetch_add_explicit(&d->iterations, 1, memory_order_relaxed);
}

/* Who goes on in this one is past it: the next begins another. */
static void had_iteration(ls_dataset *d, uint64_t iteration)
{
    int64_t next = atomic_load_explicit(&d->iterations, memory_order_relaxed);
    while (iteration < INT64_MAX && next <= (int64_t)iteration &&
           !atomic_compare_exchange_weak_explicit(&d->iterations, &next, (int64_t)iteration + 1,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

ls_iterator *ls__iterator_new(ls_dataset *d)
{
    ls_iterator *i = calloc(1, sizeof *i);
    if (!i) {
        ls__fail_memory("an iterator", sizeof *i);
        return NULL;
    }
    i->dataset = ls__dataset_ref(d);
    if (d->stage == &ls__distribute_stage)
        i->waiting = ((const ls__distribution *)d->options)->strategy->phases;
    i->waits = true;
    return i;
}

ls_iterator *ls_iterate(ls_dataset *d)
{
    if (!d) {
        if (!ls_error_pending())
            ls__fail(LS_INVALID, "ls_iterate: the dataset is NULL");
        return NULL;
    }
    ls_iterator *i = ls__iterator_new(d);
    if (i && open(i, next_iteration(d))) {
        ls_iterator_free(i);
        return NULL;
    }
    return i;
}

void ls_iterator_free(ls_iterator *it)
{
    if (!it)
        return;
    ls__it_close(it->it);
    ls__chunk_free(&it->chunk);
    free(it->last);
    ls__dataset_unref(it->dataset);
    free(it);
}

static ls_status check(const char *who, const ls_iterator *it)
{
    if (!it)
        return ls_error_pending() ? ls_error_pending()
                                  : ls__fail(LS_INVALID, "%s: the iterator is NULL", who);
    if (it->waits)
        return ls__hint(ls__fail(LS_STATE, "%s: the iterator has not begun", who),
                        "call ls_initialize first");
    if (!it->it)
        return ls__hint(ls__fail(LS_STATE, "%s: the iterator could not be opened anew", who),
                        "see the error of ls_rewind or ls_seek");
    return LS_OK;
}

static ls_status begin(const char *who, ls_iterator *it)
{
    return it ? open(it, next_iteration(it->dataset)) : check(who, it);
}

ls_status ls_rewind(ls_iterator *it)
{
    return begin("ls_rewind", it);
}

ls_status ls_initialize(ls_iterator *it)
{
    return begin("ls_initialize", it);
}

/* ---- going through ------------------------------------------------------------------------- */

static ls_status next(ls_iterator *it, ls_value **out)
{
    ls__chunk_clear(&it->chunk);
    ls_status st = ls__it_pull(it->it, 1, &it->chunk);
    if (st == LS_END)
        return st;
    if (st)
        ls__it_words(it->it, it->last);
    else
        memcpy(it->last, ls__chunk_after(&it->chunk, 0), (size_t)it->it->words * sizeof *it->last);
    ls__it_release(it->it, it->last);
    if (st)
        return st;
    const ls__stage *stage = it->it->stage;
    ls_value *element =
        stage->value ? stage->value(it->it, &it->chunk, 0) : ls__element_value(&it->chunk, 0);
    if (!element)
        return ls_error_pending();
    *out = element;
    return LS_OK;
}

ls_status ls_next(ls_iterator *it, ls_value **out)
{
    ls_status st = check("ls_next", it);
    if (!st && !out)
        st = ls__fail(LS_INVALID, "ls_next: out is NULL");
    if (st)
        return st;
    ls__input_wait wait = ls__input_wait_begin(it->waiting);
    st = next(it, out);
    ls__input_wait_end(it->waiting, wait);
    return st;
}

ls_status ls_next_of(void *iterator, ls_value **out)
{
    return ls_next(iterator, out);
}

int64_t ls_iterator_skipped(const ls_iterator *it)
{
    return it ? atomic_load_explicit(&((ls_iterator *)(uintptr_t)it)->going.skipped,
                                     memory_order_relaxed)
              : 0;
}

size_t ls_iterator_bytes(const ls_iterator *it)
{
    int64_t bytes = it ? atomic_load_explicit(&((ls_iterator *)(uintptr_t)it)->going.bytes,
                                              memory_order_relaxed)
                       : 0;
    return bytes > 0 ? (size_t)bytes : 0;
}

/* ---- positions: magic, fingerprint, iteration, what the stages say, checksum ------------------ */

static const char magic[4] = { 'L', 'S', 'P', '1' };

static void put_u64(unsigned char *to, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        to[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get_u64(const unsigned char *from)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)from[i] << (8 * i);
    return value;
}

enum { HEAD = 4 + 8 + 8, TAIL = 4 };

ls_tensor *ls_position(ls_iterator *it)
{
    if (check("ls_position", it))
        return NULL;
    ls__bytes_out stages = { 0 };
    ls_status st = ls__it_save(it->it, it->last, &stages);
    if (!st && stages.failed)
        st = ls__fail_memory("a position", stages.room);
    ls_tensor *t = NULL;
    if (!st) {
        ls__spec spec = { .dtype = LS_U8,
                          .rank = 1,
                          .dims = { (int64_t)(HEAD + stages.used + TAIL) } };
        t = ls__tensor_new("ls_position", &spec);
    }
    if (t) {
        unsigned char *at = ls__data(t);
        memcpy(at, magic, 4);
        put_u64(at + 4, it->dataset->fingerprint);
        put_u64(at + 12, it->iteration);
        if (stages.used)
            memcpy(at + HEAD, stages.at, stages.used);
        uint32_t sum = ls__crc32c(0, at, HEAD + stages.used);
        for (int i = 0; i < TAIL; i++)
            at[HEAD + stages.used + (size_t)i] = (unsigned char)(sum >> (8 * i));
    }
    ls__bytes_out_free(&stages);
    return t;
}

static ls_status check_position(const ls_iterator *it, const unsigned char *at, size_t bytes)
{
    uint32_t sum = 0;
    for (int i = 0; i < TAIL && bytes >= HEAD + TAIL; i++)
        sum |= (uint32_t)at[bytes - TAIL + (size_t)i] << (8 * i);
    if (bytes < HEAD + TAIL || memcmp(at, magic, 4) != 0 || sum != ls__crc32c(0, at, bytes - TAIL))
        return ls__position_corrupt();
    if (get_u64(at + 4) == it->dataset->fingerprint)
        return LS_OK;
    return ls__hint(
        ls__fail(LS_INVALID, "ls_seek: the position is of another dataset"),
        "sources, stages and their numbers must be those of the dataset that was saved");
}

ls_status ls_seek(ls_iterator *it, const ls_tensor *position)
{
    ls_status st = it ? LS_OK : check("ls_seek", it);
    if (!st)
        st = ls__check_tensor("ls_seek", "position", position);
    if (!st && (position->spec.dtype != LS_U8 || position->spec.rank != 1))
        st = ls__fail(LS_SHAPE, "ls_seek: a position is u8[n], not %s", ls_describe(position));
    if (st)
        return st;
    const unsigned char *at = ls__data(position);
    size_t bytes = (size_t)position->spec.dims[0];
    st = check_position(it, at, bytes);
    if (st)
        return st; /* it stays where it is */
    st = open(it, get_u64(at + 12));
    ls__bytes_in from = { at + HEAD, at + bytes - TAIL };
    if (!st)
        st = ls__it_load(it->it, &from);
    if (!st && from.at != from.end)
        st = ls__position_corrupt();
    if (st) { /* half-way is nowhere */
        ls__it_close(it->it);
        it->it = NULL;
        return st;
    }
    had_iteration(it->dataset, it->iteration);
    ls__it_words(it->it, it->last);
    return LS_OK;
}

/* ---- LS_FOR_EACH ------------------------------------------------------------------------------ */

void ls_each_open(ls_each *each, ls_dataset *d)
{
    *each = (ls_each){ .iterator = ls_iterate(d), .going = true };
}

static void close_turn(ls_each *each)
{
    if (each->depth > 0)
        ls_frame_close(each->depth);
    each->depth = 0;
}

bool ls_each_next(ls_each *each)
{
    close_turn(each);
    if (!each->iterator || !each->going)
        return false;
    each->depth = ls_frame_open();
    each->going = false;
    return each->depth > 0 && ls_next(each->iterator, &each->element) == LS_OK;
}

void ls_each_close(ls_each *each)
{
    close_turn(each);
    ls_iterator_free(each->iterator);
    each->iterator = NULL;
}
