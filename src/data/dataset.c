/*
 * Datasets as nodes of a tree. Invariant: a node never changes but for its counts; whoever has a node
 * has all below it.
 */
#include "data/dataset.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/iterator.h"
#include "tensor/tensor.h"

#define LIVE 0x4C534454u
#define DEAD 0xDEADD474u

struct ls__dataset_block {
    _Atomic int64_t refs;
    void (*release)(void *options);
    _Alignas(max_align_t) unsigned char options[];
};

/* ---- options --------------------------------------------------------------------------------- */

void *ls__dataset_options(ls__dataset_draft *draft, size_t bytes, void (*release)(void *options))
{
    ls__dataset_block *block = calloc(1, sizeof *block + bytes);
    if (!block) {
        ls__fail_memory("a dataset", bytes);
        return NULL;
    }
    atomic_init(&block->refs, 1);
    block->release = release;
    draft->block = block;
    return block->options;
}

static void unref_block(ls__dataset_block *block)
{
    if (!block || atomic_fetch_sub_explicit(&block->refs, 1, memory_order_acq_rel) > 1)
        return;
    if (block->release)
        block->release(block->options);
    free(block);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

ls_dataset *ls__dataset_ref(ls_dataset *d)
{
    atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
    return d;
}

void ls__dataset_unref(ls_dataset *d)
{
    /* Acquire and release: whoever frees it has seen all that others did with it. */
    if (!d || atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (int i = 0; i < d->n_inputs; i++)
        ls__dataset_unref(d->inputs[i]);
    unref_block(d->block);
    ls__type_unref(d->type);
    free(d->inputs);
    free(d->text);
    d->live = DEAD;
    free(d);
}

static void frame_closed(void *d)
{
    ls__dataset_unref(d);
}

/* FNV-1a: any process finds the same. */
static uint64_t hash(uint64_t h, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
    return h;
}

static uint64_t fingerprint(const ls_dataset *d)
{
    const char *type = ls__type_text(d->type);
    uint64_t h = hash(0xcbf29ce484222325u, d->text, strlen(d->text) + 1);
    h = hash(h, type, strlen(type) + 1);
    for (int i = 0; i < d->n_inputs; i++)
        h = hash(h, &d->inputs[i]->fingerprint, sizeof h);
    return h;
}

/* Takes over the text, and nothing of the draft when it fails. */
static ls_dataset *make(const ls__dataset_draft *draft, char *text)
{
    size_t inputs = sizeof(ls_dataset *) * ((size_t)draft->n_inputs + 1);
    ls_dataset *d = text ? calloc(1, sizeof *d) : NULL;
    if (d)
        d->inputs = malloc(inputs);
    if (!d || !d->inputs) {
        ls__fail_memory("a dataset", sizeof *d);
        free(text);
        free(d);
        return NULL;
    }
    d->live = LIVE;
    atomic_init(&d->refs, 1);
    d->stage = draft->stage;
    d->block = draft->block;
    d->options = draft->block ? draft->block->options : NULL;
    d->n_inputs = draft->n_inputs;
    for (int i = 0; i < d->n_inputs; i++)
        d->inputs[i] = ls__dataset_ref(draft->inputs[i]);
    d->type = draft->type;
    d->cardinality = draft->cardinality;
    d->text = text;
    d->fingerprint = fingerprint(d);
    return d;
}

static ls_dataset *give_to_frame(ls_dataset *d)
{
    if (d && ls__frame_on_close(frame_closed, d)) {
        ls__dataset_unref(d);
        return NULL;
    }
    return d;
}

ls_dataset *ls__dataset_new(ls__dataset_draft *draft, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    ls_dataset *d = draft->type ? make(draft, text) : (free(text), NULL);
    if (!d) {
        ls__type_unref(draft->type);
        unref_block(draft->block);
        return NULL;
    }
    return give_to_frame(d);
}

ls_dataset *ls__dataset_on(const ls_dataset *d, ls_dataset *const *inputs)
{
    ls__dataset_draft draft = { .stage = d->stage,
                                .n_inputs = d->n_inputs,
                                .inputs = inputs,
                                .type = ls__type_ref(d->type),
                                .cardinality = d->cardinality,
                                .block = d->block };
    if (draft.block)
        atomic_fetch_add_explicit(&draft.block->refs, 1, memory_order_relaxed);
    return ls__dataset_new(&draft, "%s", d->text);
}

ls_dataset *ls_dataset_keep(ls_dataset *d)
{
    if (!d || d->live != LIVE) {
        if (!ls_error_pending())
            ls__fail(LS_INVALID, "ls_dataset_keep: the dataset is %s", d ? "gone" : "NULL");
        return NULL;
    }
    return ls__dataset_ref(d);
}

void ls_dataset_drop(ls_dataset *kept)
{
    ls__dataset_unref(kept);
}

/* ---- asking ------------------------------------------------------------------------------------ */

ls_status ls__check_dataset(const char *who, const ls_dataset *d)
{
    if (!d)
        return ls_error_pending() ? ls_error_pending()
                                  : ls__fail(LS_INVALID, "%s: the dataset is NULL", who);
    if (d->live != LIVE)
        return ls__hint(ls__fail(LS_INVALID, "%s: the dataset is gone", who),
                        "a dataset goes with its frame; ls_dataset_keep holds on to it");
    if (d->stage->flags & LS__STAGE_DISTRIBUTED)
        return ls__hint(ls__fail(LS_INVALID,
                                 "%s: the dataset is distributed, and takes no further "
                                 "stages",
                                 who),
                        "apply all stages before ls_distribute");
    return LS_OK;
}

ls_status ls__check_number(const char *who, const char *what, int64_t n, int64_t least)
{
    if (n >= least)
        return LS_OK;
    return ls__fail(LS_INVALID, "%s: %s is %lld, wants %lld or more", who, what, (long long)n,
                    (long long)least);
}

int64_t ls__cardinality_times(int64_t n, int64_t times)
{
    int64_t product;
    if (n < 0 || times < 0)
        return n == 0 || times == 0                     ? 0
               : n == LS_UNKNOWN || times == LS_UNKNOWN ? LS_UNKNOWN
                                                        : LS_INFINITE;
    return __builtin_mul_overflow(n, times, &product) ? LS_INFINITE : product;
}

int64_t ls_cardinality(const ls_dataset *d)
{
    return d ? d->cardinality : LS_UNKNOWN;
}

const char *ls_dataset_text(const ls_dataset *d)
{
    return d ? ls__type_text(d->type) : "?";
}
