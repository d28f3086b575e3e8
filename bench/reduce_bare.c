/*
 * All-reduce of 2 ranks beside the least that must be done for it: two pinned threads, each reads its
 * half of both arrays, adds, writes it to both; then they meet. Both start together, each call is timed on
 * rank 0, and the two are measured by turns, in rounds; the medians count. Same threads, same memory.
 *
 * Values double with every call, so they start anew before they overflow, between calls.
 */
#include <lockstep/collective.h>
#include <string.h>

#include "kernels/isa_select.h"
#include "pair.h"
#include "reduce.h"

enum { MOST_CALLS = 2000, WARM_UP = 3 };

/* ---- the bare sum ----------------------------------------------------------------------- */

/* 16 floats, in as many registers as the instruction set wants. */
typedef float floats16 __attribute__((vector_size(64), aligned(64), may_alias));

#define BARE_SUM(name, target)                                                                     \
    target static void name(float *a, float *b, int64_t count)                                     \
    {                                                                                              \
        floats16 *x = (floats16 *)a, *y = (floats16 *)b;                                           \
        for (int64_t i = 0; i < count / 16; i++)                                                   \
            x[i] = y[i] = x[i] + y[i];                                                             \
    }

BARE_SUM(bare_sum_base, )
#if defined(__x86_64__)
BARE_SUM(bare_sum_avx2, __attribute__((target("avx2"))))
BARE_SUM(bare_sum_avx512, __attribute__((target("avx512f"))))
#else
#define bare_sum_avx2 bare_sum_base
#define bare_sum_avx512 bare_sum_base
#endif

static void bare_sum(float *a, float *b, int64_t count)
{
    static void (*const sums[])(float *, float *, int64_t) = { [LS__ISA_BASE] = bare_sum_base,
                                                               [LS__ISA_AVX2] = bare_sum_avx2,
                                                               [LS__ISA_AVX512] = bare_sum_avx512 };
    sums[ls__isa()](a, b, count);
}

/* ---- timing -------------------------------------------------------------------------------- */

typedef struct bout {
    pair *pair;
    ls_comm *comm; /* NULL: the bare sum */
    float *data[2];
    int64_t count; /* a multiple of 32 */
    int calls;
    double *took; /* rank 0's, of each call */
} bout;

static void call_once(const bout *b, int rank)
{
    if (b->comm) {
        must_do(ls_comm_all_reduce(b->comm, rank, LS_SUM, LS_F32, b->data[rank], b->count));
        return;
    }
    int64_t half = b->count / 2, begin = rank * half;
    bare_sum(b->data[0] + begin, b->data[1] + begin, half);
    pair_meet(b->pair, rank);
}

static void call_many(void *arg, int rank)
{
    const bout *b = arg;
    for (int i = -WARM_UP; i < b->calls; i++) {
        pair_meet(b->pair, rank);
        double start = now();
        call_once(b, rank);
        double end = now();
        if (rank == 0 && i >= 0)
            b->took[i] = end - start;
        if (b->data[rank][0] > 1e30f)
            for (int64_t k = 0; k < b->count; k++)
                b->data[rank][k] = 1;
    }
}

/* The median of one round, in seconds. */
static double round_of(bout *b)
{
    pair_share(b->pair, call_many, b);
    return median(b->took, b->calls);
}

static void fill_own(void *arg, int rank)
{
    bout *b = arg;
    b->data[rank] = floats(b->count, 1); /* touched by its rank first */
}

static void measure_size(pair *p, ls_comm *comm, int64_t bytes, double seconds)
{
    static double took[MOST_CALLS];
    bout bare = { .pair = p, .count = bytes / 4, .took = took };
    pair_share(p, fill_own, &bare);
    bare.calls = 5;
    double each = round_of(&bare);
    bare.calls = (int)(seconds / each);
    bare.calls = bare.calls < 5 ? 5 : bare.calls > MOST_CALLS ? MOST_CALLS : bare.calls;
    bout library = bare;
    library.comm = comm;
    round_of(&library);
    double bare_us[REDUCE_ROUNDS], library_us[REDUCE_ROUNDS];
    for (int round = 0; round < REDUCE_ROUNDS; round++) {
        bare_us[round] = 1e6 * round_of(&bare);
        library_us[round] = 1e6 * round_of(&library);
    }
    double b = median(bare_us, REDUCE_ROUNDS), l = median(library_us, REDUCE_ROUNDS);
    printf("{\"system\":\"lockstep\",\"bench\":\"bare_sum\",\"bytes\":%lld,\"bare_us\":%.3f,"
           "\"allreduce_us\":%.3f,\"ratio\":%.3f,\"more_us\":%.3f}\n",
           (long long)bytes, b, l, l / b, l - b);
    fflush(stdout);
    free(bare.data[0]);
    free(bare.data[1]);
}

static void all_sizes(pair *p, void *user)
{
    const reduce_options *o = user;
    ls_comm *comm = must_have(ls_comm_local(LS_COMM(.ranks = 2)));
    for (int64_t bytes = 4096; bytes <= o->largest; bytes *= 4)
        measure_size(p, comm, bytes, o->seconds);
    ls_comm_free(comm);
}

void reduce_bare(const reduce_options *o)
{
    pair_run(all_sizes, (void *)o);
}
