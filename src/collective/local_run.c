/*
 * Runs compiled sums: each is one pass over its chunk, in blocks whose partial sums stay in the
 * first cache. Where a chunk begins depends on the counts of the arrays alone, and every element is
 * computed by itself, so neither borders nor ranks show in the bits.
 */
#include <string.h>

#include "base/fpu.h"
#include "collective/local_plan.h"
#include "kernels/replicas.h"

/* Of 8 KiB, the sum of two operands, the consumer's block and what it reads beside them stay in a
 * first cache of 32 KiB; blocks of programs with a stack are halved. */
enum { BORDER = 64, BLOCK_BYTES = 8192, STACK_BLOCK_BYTES = 4096 };

/* ---- what it is ------------------------------------------------------------------------- */

int ls__local_rounds(const ls__local *l)
{
    return l->rounds;
}

int ls__local_ranks(const ls__local *l)
{
    return l->ranks;
}

int ls__local_replicas(const ls__local *l)
{
    return l->replicas;
}

int ls__local_operands(const ls__local *l, const ls__tree_node **nodes)
{
    *nodes = l->operands;
    return l->n_operands;
}

int ls__local_folds(const ls__local *l, int rank, const ls__fold **folds)
{
    *folds = l->folds + l->first_fold[rank];
    return l->first_fold[rank + 1] - l->first_fold[rank];
}

/* ---- borders ------------------------------------------------------------------------------ */

/* Borders of 64 bytes that an array takes. */
static int64_t units_of(int64_t count, int64_t width)
{
    return (count * width + BORDER - 1) / BORDER;
}

static int64_t all_units(const ls__local_job *job)
{
    const int64_t width = (int64_t)ls_dtype_size(job->dtype);
    int64_t units = 0;
    for (int a = 0; a < job->n_arrays; a++)
        units += units_of(job->arrays[a].count, width);
    return units;
}

size_t ls__local_scratch(const ls__local *l, const ls__local_job *job)
{
    return l->n_slots ? (size_t)l->n_slots * (size_t)all_units(job) * BORDER : 0;
}

bool ls__local_wants_scratch(const ls__local *l)
{
    return l->n_slots > 0;
}

/* Where a chunk begins: the first units % chunks have one more. */
static int64_t chunk_begin(int64_t units, int64_t chunks, int64_t chunk)
{
    int64_t longer = units % chunks;
    return units / chunks * chunk + (chunk < longer ? chunk : longer);
}

/* ---- one sum over a part of one array --------------------------------------------------------- */

/* Elements [begin, begin + count) of an array, in bytes: sources and targets lie there. */
typedef struct part {
    const ls__local_job *job;
    const ls__replicas_kernels *kernels;
    const ls__sum *sum;
    const int *ops;
    int64_t width;
    int array;
    int64_t begin, count;
    int64_t all; /* units of all arrays, a slot's length */
    int64_t at;  /* bytes before it when arrays lie behind one another */
    int n_operands;
    const void *source[LS__MOST_REPLICAS]; /* at element `begin` */
    void *target[LS__MOST_RANKS];          /* the same; NULL: to the consumer only */
    int divisor;                           /* of this sum: 0 where it is not complete */
    ls__consume *consume;                  /* the same */
} part;

static void *place(const part *p, int place)
{
    const ls__array *array = &p->job->arrays[p->array];
    int64_t skip = p->begin * p->width;
    if (place == LS__PLACE_RESULT)
        return array->results && array->results[0] ? (char *)array->results[0] + skip : NULL;
    if (place < p->n_operands)
        return (char *)(uintptr_t)array->operands[place] + skip;
    return (char *)p->job->scratch + (int64_t)(place - p->n_operands) * p->all * BORDER + p->at;
}

/* Runs the program over elements [at, at + n) of the part, and leaves the result in `out`, which may be
 * one of the sources. */
static void run_program(const part *p, int64_t at, int64_t n, void *out)
{
    ls__replicas_fn *add = p->kernels->sum[p->job->dtype];
    const void *in[LS__MOST_REPLICAS];
    for (int i = 0; i < p->sum->n_sources; i++)
        in[i] = (const char *)p->source[i] + at * p->width;
    if (p->sum->n_ops == 1) {
        add(p->ops[0], in, out, n);
        return;
    }
    _Alignas(BORDER) char stack[LS__MOST_STACK][STACK_BLOCK_BYTES];
    int top = 0, next = 0;
    for (int i = 0; i < p->sum->n_ops; i++) {
        int op = p->ops[i];
        if (op > 0) {
            add(op, in + next, stack[top++], n);
            next += op;
            continue;
        }
        const void *below = stack[top - 2], *above = stack[top - 1];
        const void *two[2] = { op == LS__ADD ? below : above, op == LS__ADD ? above : below };
        add(2, two, i + 1 < p->sum->n_ops ? stack[top - 2] : out, n);
        top--;
    }
}

static void copy(void *to, const void *from, size_t bytes)
{
    if (to != from)
        memcpy(to, from, bytes);
}

/* Block by block: the sum, its quotient, its copies and its consumer while it is in the cache. */
static void run_blocks(const part *p)
{
    _Alignas(BORDER) char own[BLOCK_BYTES];
    int64_t block = (p->sum->n_ops == 1 ? BLOCK_BYTES : STACK_BLOCK_BYTES) / p->width;
    bool as_it_is = p->sum->n_ops == 1 && p->ops[0] == 1 && p->divisor <= 1;
    for (int64_t at = 0; at < p->count; at += block) {
        int64_t n = p->count - at < block ? p->count - at : block;
        size_t bytes = (size_t)(n * p->width);
        char *to = p->target[0] ? (char *)p->target[0] + at * p->width : own;
        const void *sum = to;
        if (as_it_is && !p->target[0])
            sum = (const char *)p->source[0] + at * p->width;
        else
            run_program(p, at, n, to);
        if (p->divisor > 1)
            p->kernels->divide[p->job->dtype](to, p->divisor, n);
        for (int i = 1; i < p->sum->n_targets; i++)
            copy((char *)p->target[i] + at * p->width, to, bytes);
        if (p->consume)
            p->consume(p->job->user, p->array, p->begin + at, n, sum);
    }
}

static void run_part(part *p)
{
    const ls__sum *sum = p->sum;
    const bool one_op = sum->n_ops == 1;
    if (one_op && p->ops[0] == 1 && p->divisor <= 1 && !p->consume) {
        for (int i = 0; i < sum->n_targets && p->target[i]; i++)
            copy(p->target[i], p->source[0], (size_t)(p->count * p->width));
    } else if (one_op && p->ops[0] == 2 && sum->n_targets == 2 && !p->consume) {
        p->kernels->pair[p->job->dtype](p->source[0], p->source[1], p->target[0], p->target[1],
                                        p->divisor, p->count);
    } else {
        run_blocks(p);
    }
}

/* ---- one sum over its chunk ---------------------------------------------------------------------- */

static void run_array(part *p, const ls__local *l, int64_t from, int64_t to)
{
    const int64_t each = BORDER / p->width, count = p->job->arrays[p->array].count;
    p->begin = from * each;
    p->count = (to * each < count ? to * each : count) - p->begin;
    for (int i = 0; i < p->sum->n_sources; i++)
        p->source[i] = place(p, l->sources.at[p->sum->source + i]);
    for (int i = 0; i < p->sum->n_targets; i++)
        p->target[i] = place(p, l->targets.at[p->sum->target + i]);
    run_part(p);
}

static void run_sum(part *p, const ls__local *l)
{
    int64_t begin = chunk_begin(p->all, l->chunks, p->sum->chunk);
    int64_t end = chunk_begin(p->all, l->chunks, (int64_t)p->sum->chunk + 1), first = 0;
    for (p->array = 0; p->array < p->job->n_arrays && first < end; p->array++) {
        int64_t units = units_of(p->job->arrays[p->array].count, p->width);
        int64_t from = (begin > first ? begin : first) - first;
        int64_t to = (end < first + units ? end : first + units) - first;
        p->at = (first + from) * BORDER;
        if (from < to)
            run_array(p, l, from, to);
        first += units;
    }
}

void ls__local_run(const ls__local *l, int round, int rank, const ls__local_job *job)
{
    part p;
    p.job = job;
    p.kernels = LS__PICK(ls__replicas_table);
    p.width = (int64_t)ls_dtype_size(job->dtype);
    p.n_operands = l->n_operands;
    p.all = all_units(job);
    const int *first = &l->first_sum[round * l->ranks + rank];
    uint64_t fpu = ls__fpu_enter(); /* ranks may be threads that no kernel was called on: ls_comm */
    for (int i = first[0]; i < first[1]; i++) {
        p.sum = &l->sums[i];
        p.ops = l->ops.at + p.sum->op;
        p.divisor = p.sum->complete ? job->divisor : 0;
        p.consume = p.sum->complete && l->ends != LS__LOCAL_OWN ? job->consume : NULL;
        run_sum(&p, l);
    }
    ls__fpu_leave(fpu);
}
