/*
 * Where what is summed lies (steps 2 and 3 of local_compile.c). Invariant: a place is written by a sum
 * only when what lies there is not read any more: by nobody in a later round, and in the same round by
 * nobody but the same rank, at that sum or before it.
 *
 * So a round needs no order among ranks; and whatever the schedule, the worst that happens is a copy in
 * a round of its own.
 */
#include <limits.h>

#include "collective/local_plan.h"

enum { FOR_EVER = INT_MAX };

/* ---- who reads what when ------------------------------------------------------------------ */

static ls__reads *reads_of(ls__compiling *w, int v, uint32_t chunk)
{
    if (!ls__is_given(w, v))
        return &w->reads[v];
    return w->given_reads ? &w->given_reads[ls__cell(w, w->in->values[v].rank, chunk)] : NULL;
}

static void note_read(ls__reads *r, const ls__sum *sum, int index)
{
    if (!r || sum->round < r->round)
        return;
    if (sum->round > r->round)
        *r = (ls__reads){ sum->round, sum->rank, index };
    else if (r->rank != sum->rank)
        r->rank = LS__SEVERAL;
    r->sum = index;
}

void ls__note_sources(ls__compiling *w, const ls__sum *sum)
{
    for (int i = 0; i < sum->n_sources; i++)
        note_read(reads_of(w, w->l->sources.at[sum->source + i], sum->chunk), sum, w->l->n_sums);
}

void ls__keep_given(ls__compiling *w)
{
    for (int v = 0; v < w->in->n_values && w->here; v++)
        for (int c = 0; ls__is_given(w, v) && w->ending[v] && c < w->l->chunks; c++)
            *reads_of(w, v, (uint32_t)c) = (ls__reads){ FOR_EVER, LS__SEVERAL, 0 };
}

/* Whether sum `index` may write where this lies. */
static bool is_done(const ls__reads *r, const ls__sum *sum, int index)
{
    return r->round < sum->round ||
           (r->round == sum->round && r->rank == sum->rank && r->sum <= index);
}

/* ---- places -------------------------------------------------------------------------------- */

static ls__reads *reads_here(ls__compiling *w, int rank, uint32_t chunk)
{
    int v = w->here[ls__cell(w, rank, chunk)];
    return v < 0 ? &w->given_reads[ls__cell(w, rank, chunk)] : &w->reads[v];
}

/* A slot that is free in this chunk, or a new one; -1: no memory. */
static int find_slot(ls__compiling *w, int v, const ls__sum *sum, int index)
{
    int chunks = w->l->chunks, k = 0;
    for (; k < w->l->n_slots; k++) {
        int *in = &w->slots.at[k * chunks + (int)sum->chunk];
        if (*in < 0 || is_done(&w->reads[*in], sum, index)) {
            *in = v;
            return k;
        }
    }
    for (int c = 0; c < chunks; c++)
        if (!ls__ints_add(&w->slots, c == (int)sum->chunk ? v : -1))
            return -1;
    w->l->n_slots++;
    return k;
}

/* To the arrays of all who end with it and do not need what they have; the first is where it lies. */
static bool spread(ls__compiling *w, int v, ls__sum *sum, int index)
{
    for (int i = 0; i < w->l->ranks; i++) {
        int rank = (sum->rank + i) % w->l->ranks;
        if (w->in->ends[ls__cell(w, rank, sum->chunk)] != v ||
            !is_done(reads_here(w, rank, sum->chunk), sum, index))
            continue;
        w->here[ls__cell(w, rank, sum->chunk)] = v;
        if (w->place[v] < 0)
            w->place[v] = rank;
        if (!ls__ints_add(&w->l->targets, rank))
            return false;
    }
    return true;
}

static ls_status place(ls__compiling *w, int v, ls__sum *sum, int index)
{
    ls__local *l = w->l;
    bool own = l->ends == LS__LOCAL_OWN;
    sum->target = l->targets.n;
    if (w->ending[v] && !own) {
        if (!ls__ints_add(&l->targets, LS__PLACE_RESULT))
            return LS_NO_MEMORY;
    } else if (w->ending[v]) {
        w->reads[v] = (ls__reads){ FOR_EVER, LS__SEVERAL, 0 };
        if (!spread(w, v, sum, index))
            return LS_NO_MEMORY;
    } else if (own && is_done(reads_here(w, sum->rank, sum->chunk), sum, index)) {
        w->here[ls__cell(w, sum->rank, sum->chunk)] = v;
        w->place[v] = sum->rank;
        if (!ls__ints_add(&l->targets, sum->rank))
            return LS_NO_MEMORY;
    }
    if (l->targets.n == sum->target) { /* nowhere yet */
        int slot = find_slot(w, v, sum, index);
        if (slot < 0 || !ls__ints_add(&l->targets, w->in->n_operands + slot))
            return LS_NO_MEMORY;
        w->place[v] = w->in->n_operands + slot;
    }
    sum->n_targets = l->targets.n - sum->target;
    return LS_OK;
}

static ls_status place_sums(ls__compiling *w)
{
    ls_status st = LS_OK;
    for (int v = 0; v < w->in->n_values && !st; v++)
        if (ls__is_given(w, v))
            w->place[v] = w->in->values[v].operand;
        else if (w->sum[v] >= 0 && w->in->values[v].chunk != LS__EVERY_CHUNK)
            st = place(w, v, &w->l->sums[w->sum[v]], w->sum[v]);
    for (int i = 0; i < w->l->n_sums && !st; i++)
        if (w->l->sums[i].n_targets == 0) { /* of what was given or folded */
            w->l->sums[i].target = w->l->targets.n;
            w->l->sums[i].n_targets = 1;
            if (!ls__ints_add(&w->l->targets, LS__PLACE_RESULT))
                st = LS_NO_MEMORY;
        }
    for (int i = 0; i < w->l->sources.n && !st; i++)
        w->l->sources.at[i] = w->place[w->l->sources.at[i]];
    return st;
}

/* Those who could not be written at once copy when what they have is not read any more. */
static ls_status copy_late(ls__compiling *w, int rank, uint32_t chunk)
{
    int v = w->in->ends[ls__cell(w, rank, chunk)];
    if (v < 0 || w->here[ls__cell(w, rank, chunk)] == v)
        return LS_OK;
    const ls__value *value = &w->in->values[v];
    if (ls__is_given(w, v) && value->rank == rank)
        return LS_OK; /* has had it all the time */
    ls__local *l = w->l;
    int last = reads_here(w, rank, chunk)->round;
    ls__sum copy = { .rank = rank,
                     .round = (last > value->round ? last : value->round) + 1,
                     .chunk = chunk,
                     .op = l->ops.n,
                     .n_ops = 1,
                     .source = l->sources.n,
                     .n_sources = 1,
                     .target = l->targets.n,
                     .n_targets = 1 };
    if (!ls__ints_add(&l->ops, 1) || !ls__ints_add(&l->sources, w->place[v]) ||
        !ls__ints_add(&l->targets, rank))
        return LS_NO_MEMORY;
    return ls__sum_add(l, &copy) ? LS_OK : LS_NO_MEMORY;
}

static ls_status copy_all_late(ls__compiling *w)
{
    ls_status st = LS_OK;
    for (int rank = 0; rank < w->l->ranks && w->here; rank++)
        for (int c = 0; c < w->l->chunks && !st; c++)
            st = copy_late(w, rank, (uint32_t)c);
    return st;
}

ls_status ls__place_all(ls__compiling *w)
{
    ls_status st = place_sums(w);
    return st ? st : copy_all_late(w);
}
