/*
 * The gradients of 2 replicas, reduced and given to Adam, three ways, each by the same two pinned threads
 * with the library's kernels:
 *
 *     fused    one pass: a block is summed and consumed while it is in the first cache (rule E);
 *              weights and slots exist once
 *     shared   the sum is written as one gradient; then each thread updates half of the shared weights
 *     own      all-reduce, so that each has its own sum; then each updates its own weights and slots
 *
 * Before each timed step both threads write their gradient anew, as a backward pass does. The ways are
 * measured by turns; the medians count. In the end all weights must have the same bits.
 */
#include <lockstep/collective.h>
#include <math.h>
#include <string.h>

#include "kernels/update.h"
#include "ops/replicas.h"
#include "pair.h"
#include "reduce.h"

enum { PARAMETERS = 10000000, FEWEST_STEPS = 9, MOST_STEPS = 101 };

/* Weights and slots. */
typedef struct state {
    float *w, *m, *v;
} state;

typedef struct bench {
    pair *pair;
    ls_comm *comm;
    float *gradients[2]; /* of the replicas */
    float *sum;
    state fused, shared, own[2];
} bench;

static const ls__update adam = { .rate = 0.001,
                                 .scale = 1,
                                 .clip = INFINITY,
                                 .one_minus_beta1 = 0.1,
                                 .one_minus_beta2 = 0.001,
                                 .epsilon = 1e-7 };

static void update(const state *s, int64_t begin, int64_t count, const float *gradient)
{
    void *const at[] = { s->w + begin, s->m + begin, s->v + begin };
    LS__PICK(ls__update_table)->update[LS__UPDATE_ADAM][false](at, gradient, &adam, count);
}

/* ---- the three ways ------------------------------------------------------------------------ */

static void consume(void *user, int array, int64_t begin, int64_t count, const void *sum)
{
    (void)array;
    const bench *b = user;
    update(&b->fused, begin, count, sum);
}

static void reduce_to(bench *b, float *sum, ls__consume *to)
{
    const int64_t count = PARAMETERS;
    const ls__replica_sums job = { .replicas = 2,
                                   .dtype = LS_F32,
                                   .arrays = 1,
                                   .counts = &count,
                                   .parts =
                                       (const void *const[]){ b->gradients[0], b->gradients[1] },
                                   .sums = sum ? (void *const[]){ sum } : NULL,
                                   .consume = to,
                                   .user = b };
    must_do(ls__replica_sums_run(&job));
}

static void step_fused(bench *b)
{
    reduce_to(b, NULL, consume);
}

static void update_half(void *arg, int rank)
{
    const bench *b = arg;
    int64_t half = PARAMETERS / 2 / 16 * 16, begin = rank * half;
    update(&b->shared, begin, rank ? PARAMETERS - half : half, b->sum + begin);
}

static void step_shared(bench *b)
{
    reduce_to(b, b->sum, NULL);
    pair_share(b->pair, update_half, b);
}

static void all_reduce_and_update(void *arg, int rank)
{
    const bench *b = arg;
    must_do(ls_comm_all_reduce(b->comm, rank, LS_SUM, LS_F32, b->gradients[rank], PARAMETERS));
    update(&b->own[rank], 0, PARAMETERS, b->gradients[rank]);
}

static void step_own(bench *b)
{
    pair_share(b->pair, all_reduce_and_update, b);
}

/* ---- timing -------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*step)(bench *b);
} ways[] = { { "fused", step_fused }, { "shared", step_shared }, { "own", step_own } };
enum { FUSED, SHARED, OWN, WAYS };

static void write_gradient(void *arg, int rank)
{
    bench *b = arg;
    for (int64_t i = 0; i < PARAMETERS; i++)
        b->gradients[rank][i] =
            (float)((i * 2654435761u >> 7) & 1023) * 0x1p-10f - 0.5f + (float)rank;
}

static double time_step(bench *b, int way)
{
    pair_share(b->pair, write_gradient, b);
    double start = now();
    ways[way].step(b);
    return now() - start;
}

static void new_state(state *s)
{
    *s = (state){ floats(PARAMETERS, 0.5f), floats(PARAMETERS, 0), floats(PARAMETERS, 0) };
}

static void free_state(state *s)
{
    free(s->w);
    free(s->m);
    free(s->v);
}

/* What a rank alone uses is touched by its thread first. */
static void open_rank(void *arg, int rank)
{
    bench *b = arg;
    b->gradients[rank] = floats(PARAMETERS, 0);
    new_state(&b->own[rank]);
    if (rank == 0) {
        b->sum = floats(PARAMETERS, 0);
        new_state(&b->fused);
        new_state(&b->shared);
    }
}

static void check_weights(const bench *b)
{
    const state *others[] = { &b->shared, &b->own[0], &b->own[1] };
    for (int i = 0; i < 3; i++)
        if (memcmp(others[i]->w, b->fused.w, PARAMETERS * sizeof(float)) != 0) {
            fprintf(stderr, "reduce: the ways to run Adam give different weights\n");
            exit(1);
        }
}

static void report(double took[WAYS][MOST_STEPS], int steps)
{
    double us[WAYS];
    for (int way = 0; way < WAYS; way++)
        us[way] = 1e6 * median(took[way], steps);
    for (int way = 0; way < WAYS; way++)
        printf(
            "{\"system\":\"lockstep\",\"bench\":\"reduce_adam\",\"way\":\"%s\",\"parameters\":%d,"
            "\"replicas\":2,\"devices\":2,\"us\":%.1f,\"fused_takes\":%.3f}\n",
            ways[way].name, PARAMETERS, us[way], us[FUSED] / us[way]);
    fflush(stdout);
}

static void run(pair *p, void *user)
{
    const reduce_options *o = user;
    bench b = { .pair = p, .comm = must_have(ls_comm_local(LS_COMM(.ranks = 2))) };
    static double took[WAYS][MOST_STEPS];
    pair_share(p, open_rank, &b);
    for (int way = 0; way < WAYS; way++)
        time_step(&b, way);
    double began = now();
    int steps = 0;
    while (steps < FEWEST_STEPS ||
           (steps < MOST_STEPS && now() - began < WAYS * REDUCE_ROUNDS * o->seconds)) {
        for (int way = 0; way < WAYS; way++)
            took[way][steps] = time_step(&b, way);
        steps++;
    }
    check_weights(&b);
    report(took, steps);
    ls_comm_free(b.comm);
    for (int rank = 0; rank < 2; rank++) {
        free(b.gradients[rank]);
        free_state(&b.own[rank]);
    }
    free(b.sum);
    free_state(&b.fused);
    free_state(&b.shared);
}

void reduce_adam(const reduce_options *o)
{
    pair_run(run, (void *)o);
}
