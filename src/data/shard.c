/*
 * ls_shard: every so many-th element. Those of others are pulled, and let go of as they are. Words: as
 * counted.h says.
 */
#include <string.h>

#include "data/counted.h"

enum { MOST_AT_ONCE = 256 };

typedef struct shard_options {
    int64_t shards, index;
} shard_options;

typedef struct shard_state {
    ls__counted counted;
    ls__chunk chunk;
} shard_state;

static void close(ls__it *it)
{
    shard_state *s = it->state;
    ls__chunk_free(&s->chunk);
    ls__it_close(s->counted.input);
}

/* Elements from here up to the next of ours. */
static int64_t others_before(const shard_options *o, int64_t at)
{
    int64_t turn = at % o->shards;
    return turn <= o->index ? o->index - turn : o->shards - turn + o->index;
}

/* How many to pull for up to `most` of ours: the last of them is one. */
static int to_pull(const shard_options *o, int64_t others, int most)
{
    if (others >= MOST_AT_ONCE)
        return MOST_AT_ONCE;
    int64_t further = (MOST_AT_ONCE - 1 - others) / o->shards;
    return (int)(others + 1 + (further < most - 1 ? further : most - 1) * o->shards);
}

/* Elements first, first + shards, ... of the chunk. */
static ls_status give(const ls__it *it, int first, ls__chunk *out)
{
    shard_state *s = it->state;
    const shard_options *o = it->dataset->options;
    const int step = o->shards < MOST_AT_ONCE ? (int)o->shards : MOST_AT_ONCE;
    ls_status st = ls__chunk_room(out, s->chunk.n, s->chunk.leaves, it->words);
    if (st)
        return st;
    out->structure = s->chunk.structure;
    for (int i = first; i < s->chunk.n; i += step, out->n++) {
        for (int k = 0; k < s->chunk.leaves; k++)
            ls__datum_give(ls__chunk_datum(out, out->n, k), ls__chunk_datum(&s->chunk, i, k));
        int64_t *after = ls__chunk_after(out, out->n);
        after[0] = s->counted.at + i + 1;
        memcpy(after + 1, ls__chunk_after(&s->chunk, i), (size_t)(it->words - 1) * sizeof *after);
    }
    return LS_OK;
}

/* The input has ended. With fewer elements than shards some have one, which is hardly what was meant: they
 * are told, once; those without, and all if there was no element at all, just end. */
static ls_status end(ls__it *it)
{
    shard_state *s = it->state;
    const shard_options *o = it->dataset->options;
    const int64_t elements = s->counted.at;
    if (elements <= o->index || elements >= o->shards)
        return LS_END;
    s->counted.at = o->shards; /* behind it there is nothing to tell */
    it->none_lost = true;
    return ls__hint(ls__fail(LS_INVALID, "ls_shard: %lld element%s for %lld shards, not enough",
                             (long long)elements, elements == 1 ? "" : "s", (long long)o->shards),
                    "take %lld shards at most, or shard what has more elements",
                    (long long)elements);
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    shard_state *s = it->state;
    const shard_options *o = it->dataset->options;
    for (;;) {
        int64_t others = others_before(o, s->counted.at);
        ls__chunk_clear(&s->chunk);
        ls_status st = ls__counted_pull(it, to_pull(o, others, most), &s->chunk);
        if (st)
            return st == LS_END ? end(it) : st;
        if (s->chunk.n > others)
            st = give(it, (int)others, out);
        s->counted.at += s->chunk.n;
        if (st || out->n > 0)
            return st;
    }
}

static const ls__stage shard_stage = { .name = "shard",
                                       .state_bytes = sizeof(shard_state),
                                       .open = ls__counted_open,
                                       .close = close,
                                       .pull = pull,
                                       LS__COUNTS_ELEMENTS };

/* ---- making --------------------------------------------------------------------------------- */

ls_dataset *ls_shard(ls_dataset *d, int64_t shards, int64_t index)
{
    if (ls__check_dataset("ls_shard", d) || ls__check_number("ls_shard", "shards", shards, 1))
        return NULL;
    if (index < 0 || index >= shards) {
        ls__hint(ls__fail(LS_INVALID, "ls_shard: index %lld of %lld shards", (long long)index,
                          (long long)shards),
                 "shards are numbered from 0 to %lld", (long long)shards - 1);
        return NULL;
    }
    ls__dataset_draft draft = { .stage = &shard_stage, .n_inputs = 1, .inputs = &d };
    shard_options *o = ls__dataset_options(&draft, sizeof *o, NULL);
    if (!o)
        return NULL;
    *o = (shard_options){ shards, index };
    const int64_t c = d->cardinality;
    draft.cardinality = c < 0 ? c : c > index ? (c - index - 1) / shards + 1 : 0;
    draft.type = ls__type_ref(d->type);
    return ls__dataset_new(&draft, "shard %lld %lld", (long long)shards, (long long)index);
}
