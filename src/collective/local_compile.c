/*
 * Compiles what local_read.c found into sums. In three steps, none of which knows an algorithm:
 *
 * 1. Which values must lie somewhere: what one rank adds and another reads, or it itself in a later
 *    round, and what ranks end with. All others are part of the one expression that uses them; folds
 *    always are, for they are made of what ranks give and nobody overwrites.
 * 2. Who reads what when. A place may be written by a sum when what lies there is not read any
 *    more: by nobody in a later round, and in the same round by nobody but the same rank at that sum
 *    or before it.
 * 3. Places, in the order of rounds. A rank's partial sum goes over its own array if it may, else
 *    to scratch. A complete sum goes at once to all who end with it and whose arrays may be
 *    written; the others copy it as soon as theirs may be, in a round of their own if need be.
 *
 * Rounds in which nothing is left to do are dropped: so direct has one.
 */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/status.h"
#include "collective/local_plan.h"

bool ls__ints_add(ls__ints *list, int value)
{
    int *more = ls__grow(list->at, list->n, &list->room, sizeof *more, "compiling a schedule");
    if (!more)
        return false;
    list->at = more;
    list->at[list->n++] = value;
    return true;
}

bool ls__sum_add(ls__local *l, const ls__sum *sum)
{
    ls__sum *more = ls__grow(l->sums, l->n_sums, &l->room, sizeof *more, "compiling a schedule");
    if (!more)
        return false;
    l->sums = more;
    l->sums[l->n_sums++] = *sum;
    return true;
}

/* ---- 1. what must lie somewhere -------------------------------------------------------- */

/* Part of the expression that uses it. */
static bool is_inner(const ls__compiling *w, int v)
{
    const ls__value *value = &w->in->values[v];
    if (ls__is_given(w, v) || w->ending[v])
        return false;
    if (value->chunk == LS__EVERY_CHUNK)
        return true;
    const ls__value *user = &w->in->values[w->user[v]];
    return w->uses[v] == 1 && user->round == value->round && user->rank == value->rank;
}

/* Of several ranks that make the same complete sum, one does where it exists once. */
static void mark_ends(ls__compiling *w)
{
    for (int c = 0; c < w->l->chunks; c++) {
        int first = -1;
        for (int rank = 0; rank < w->l->ranks; rank++) {
            int v = w->in->ends[ls__cell(w, rank, (uint32_t)c)];
            if (v >= 0 && w->l->ends == LS__LOCAL_OWN)
                w->ending[v] = true;
            if (v >= 0 && (first < 0 || v < first))
                first = v;
        }
        w->ending[first] = true;
    }
}

static void count_uses(ls__compiling *w)
{
    for (int v = w->in->n_values - 1; v >= 0; v--) {
        const ls__value *value = &w->in->values[v];
        if (ls__is_given(w, v) || (!w->ending[v] && w->uses[v] == 0))
            continue;
        w->uses[value->left]++;
        w->uses[value->right]++;
        w->user[value->left] = w->user[value->right] = v;
    }
}

/* ---- expressions as programs ------------------------------------------------------------- */

/* Read from where it lies; `top` is the one that is being made. */
static bool is_source(const ls__compiling *w, int v, int top)
{
    return ls__is_given(w, v) || (v != top && !is_inner(w, v));
}

/* How many sources it is a tree of in the shape of kernels/replicas.h: the left part is the
 * largest power of two below. 0: it is not. */
static int tree_of(const ls__compiling *w, int v, int top)
{
    if (is_source(w, v, top))
        return 1;
    int left = tree_of(w, w->in->values[v].left, top);
    int right = left ? tree_of(w, w->in->values[v].right, top) : 0;
    return right && (left & (left - 1)) == 0 && right <= left ? left + right : 0;
}

/* How many values its program keeps at once, the side that needs more being first. */
static int stack_of(const ls__compiling *w, int v, int top)
{
    if (tree_of(w, v, top))
        return 1;
    int left = stack_of(w, w->in->values[v].left, top);
    int right = stack_of(w, w->in->values[v].right, top);
    return left == right ? left + 1 : left > right ? left : right;
}

/* Sources as values; they become places when they have one. */
static bool write_sources(ls__compiling *w, int v, int top)
{
    if (is_source(w, v, top))
        return ls__ints_add(&w->l->sources, v);
    return write_sources(w, w->in->values[v].left, top) &&
           write_sources(w, w->in->values[v].right, top);
}

static bool write_program(ls__compiling *w, int v, int top)
{
    int tree = tree_of(w, v, top);
    if (tree)
        return ls__ints_add(&w->l->ops, tree) && write_sources(w, v, top);
    int left = w->in->values[v].left, right = w->in->values[v].right;
    bool turned = stack_of(w, right, top) > stack_of(w, left, top);
    return write_program(w, turned ? right : left, top) &&
           write_program(w, turned ? left : right, top) &&
           ls__ints_add(&w->l->ops, turned ? LS__ADD_TURNED : LS__ADD);
}

/* The sum that makes value v, or hands on what was given, in one chunk. */
static ls_status add_sum(ls__compiling *w, int v, uint32_t chunk)
{
    const ls__value *value = &w->in->values[v];
    ls__local *l = w->l;
    if (stack_of(w, v, v) >= LS__MOST_STACK)
        return ls__fail(LS_CORRUPT, "compiling a schedule: a sum of more than %d values",
                        LS__MOST_REPLICAS);
    ls__sum sum = { .rank = value->rank,
                    .round = value->round < 0 ? 0 : value->round,
                    .chunk = chunk,
                    .op = l->ops.n,
                    .source = l->sources.n,
                    .complete = w->ending[v] };
    if (!write_program(w, v, v))
        return LS_NO_MEMORY;
    sum.n_ops = l->ops.n - sum.op;
    sum.n_sources = l->sources.n - sum.source;
    ls__note_sources(w, &sum);
    w->sum[v] = l->n_sums;
    return ls__sum_add(l, &sum) ? LS_OK : LS_NO_MEMORY;
}

static ls_status add_sums(ls__compiling *w)
{
    ls_status st = LS_OK;
    for (int v = 0; v < w->in->n_values && !st; v++) {
        const ls__value *value = &w->in->values[v];
        if (value->chunk != LS__EVERY_CHUNK) {
            if (w->ending[v] || (w->uses[v] && !is_inner(w, v)))
                st = add_sum(w, v, value->chunk);
        } else if (w->ending[v] && w->l->ends != LS__LOCAL_OWN) {
            for (int c = 0; c < w->l->chunks && !st; c++)
                st = add_sum(w, v, (uint32_t)c);
        }
    }
    return st;
}

/* ---- the whole ------------------------------------------------------------------------------------ */

/* Sums by round and rank, rounds without any left out; they stay in order within. */
static ls_status sort_sums(ls__local *l)
{
    int last = -1;
    for (int i = 0; i < l->n_sums; i++)
        last = l->sums[i].round > last ? l->sums[i].round : last;
    int *number = calloc((size_t)last + 2, sizeof *number);
    for (int i = 0; number && i < l->n_sums; i++)
        number[l->sums[i].round] = 1;
    for (int round = 0; number && round <= last; round++)
        number[round] = number[round] ? l->rounds++ : -1;
    size_t n = (size_t)l->rounds * (size_t)l->ranks;
    l->first_sum = calloc(n + 2, sizeof *l->first_sum);
    ls__sum *sorted = malloc(((size_t)l->n_sums + 1) * sizeof *sorted);
    if (!number || !l->first_sum || !sorted) {
        free(number);
        free(sorted);
        return ls__fail_memory("compiling a schedule", (n + 2) * sizeof *l->first_sum);
    }
    for (int i = 0; i < l->n_sums; i++) {
        l->sums[i].round = number[l->sums[i].round];
        l->first_sum[l->sums[i].round * l->ranks + l->sums[i].rank + 2]++;
    }
    for (size_t i = 2; i < n + 2; i++)
        l->first_sum[i] += l->first_sum[i - 1];
    for (int i = 0; i < l->n_sums; i++) /* moves each first one behind, where it belongs */
        sorted[l->first_sum[l->sums[i].round * l->ranks + l->sums[i].rank + 1]++] = l->sums[i];
    free(number);
    free(l->sums);
    l->sums = sorted;
    return LS_OK;
}

static ls_status prepare(ls__compiling *w)
{
    size_t n = (size_t)w->in->n_values, cells = (size_t)w->l->ranks * (size_t)w->l->chunks;
    bool own = w->l->ends == LS__LOCAL_OWN;
    w->uses = calloc(n, sizeof *w->uses);
    w->user = calloc(n, sizeof *w->user);
    w->place = malloc(n * sizeof *w->place);
    w->ending = calloc(n, sizeof *w->ending);
    w->sum = malloc(n * sizeof *w->sum);
    w->reads = malloc(n * sizeof *w->reads);
    w->given_reads = own ? malloc(cells * sizeof *w->given_reads) : NULL;
    w->here = own ? malloc(cells * sizeof *w->here) : NULL;
    if (!w->uses || !w->user || !w->place || !w->ending || !w->sum || !w->reads ||
        (own && (!w->given_reads || !w->here)))
        return ls__fail_memory("compiling a schedule", n * sizeof *w->reads);
    for (size_t v = 0; v < n; v++) {
        w->place[v] = w->sum[v] = -1;
        w->reads[v] = (ls__reads){ -1, LS__SEVERAL, 0 };
    }
    for (size_t i = 0; own && i < cells; i++) {
        w->given_reads[i] = (ls__reads){ -1, LS__SEVERAL, 0 };
        w->here[i] = -1;
    }
    return LS_OK;
}

static ls_status make_sums(ls__compiling *w)
{
    ls_status st = prepare(w);
    if (st)
        return st;
    mark_ends(w);
    count_uses(w);
    ls__keep_given(w);
    st = add_sums(w);
    if (!st)
        st = ls__place_all(w);
    return st ? st : sort_sums(w->l);
}

static void clear_work(ls__compiling *w)
{
    free(w->uses);
    free(w->user);
    free(w->place);
    free(w->ending);
    free(w->sum);
    free(w->reads);
    free(w->given_reads);
    free(w->here);
    free(w->slots.at);
}

ls_status ls__local_compile(const ls__schedule *s, ls__local_ends ends, ls__local **out)
{
    ls__reading reading;
    ls__local *l = NULL;
    ls_status st = ls__reading_make(s, ends, &reading);
    if (st)
        goto clear_reading;
    l = calloc(1, sizeof *l);
    if (!l) {
        st = ls__fail_memory("compiling a schedule", sizeof *l);
        goto clear_reading;
    }
    l->ends = ends;
    l->ranks = s->spec.ranks;
    l->replicas = s->spec.replicas;
    l->chunks = s->chunks;
    ls__compiling w = { .in = &reading, .l = l };
    st = make_sums(&w);
    clear_work(&w);
    if (st)
        goto free_local;
    l->operands = reading.operands;
    l->n_operands = reading.n_operands;
    l->folds = reading.folds;
    l->first_fold = reading.first_fold;
    reading.operands = NULL;
    reading.folds = NULL;
    reading.first_fold = NULL;
    *out = l;
    l = NULL;
free_local:
    ls__local_free(l);
clear_reading:
    ls__reading_clear(&reading);
    return st;
}

void ls__local_free(ls__local *l)
{
    if (!l)
        return;
    free(l->sums);
    free(l->first_sum);
    free(l->ops.at);
    free(l->sources.at);
    free(l->targets.at);
    free(l->operands);
    free(l->folds);
    free(l->first_fold);
    free(l);
}
