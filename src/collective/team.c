/*
 * Teams: whose threads share a piece of work, and whether it is worth to wake them. Both ways give
 * the same bits: what a rank does in a round does not depend on who does it.
 */
#include "collective/team.h"

#include <stdatomic.h>

#include "base/fpu.h"
#include "base/status.h"

/* Bytes read below which one thread is done before others are awake. Measured on a Xeon with 2 cores,
 * two operands of f32: alone and by two threads that spin, 32 KiB take 0.25 and 0.7 us, 64 KiB 1.1
 * and 0.8 us. */
enum { WORTH_SHARING = 64 << 10 };

static _Thread_local ls__team *current;

ls__team *ls__team_use(ls__team *team)
{
    ls__team *before = current;
    current = team;
    return before;
}

ls__team *ls__team_get(void)
{
    return current;
}

/* ---- sharing ------------------------------------------------------------------------------ */

typedef struct deal {
    ls__share_fn *fn;
    void *arg;
    int ranks, hands;
} deal;

/* Hand h of the team takes ranks h, h + hands, ..., in the state of kernels: only the caller's thread
 * is in a row's. */
static void take_turns(void *arg, int hand)
{
    const deal *d = arg;
    uint64_t fpu = ls__fpu_enter();
    for (int rank = hand; rank < d->ranks; rank += d->hands)
        d->fn(d->arg, rank);
    ls__fpu_leave(fpu);
}

void ls__team_share(ls__team *team, int ranks, ls__share_fn *fn, void *arg)
{
    deal d = { fn, arg, ranks, team && ranks > 1 ? team->ranks : 1 };
    if (d.hands > 1)
        team->share(team, take_turns, &d);
    else
        take_turns(&d, 0);
}

/* ---- reducing ------------------------------------------------------------------------------ */

typedef struct round_of {
    const ls__local *l;
    const ls__local_job *job;
    int round;
} round_of;

static void run_round(void *arg, int rank)
{
    const round_of *r = arg;
    ls__local_run(r->l, r->round, rank, r->job);
}

static bool is_worth_sharing(const ls__local *l, const ls__local_job *job)
{
    const ls__tree_node *nodes;
    int64_t elements = 0, operands = ls__local_operands(l, &nodes);
    for (int a = 0; a < job->n_arrays; a++)
        elements += job->arrays[a].count;
    return elements * operands * (int64_t)ls_dtype_size(job->dtype) >= WORTH_SHARING;
}

void ls__team_reduce(ls__team *team, const ls__local *l, const ls__local_job *job)
{
    if (team && (team->ranks != ls__local_ranks(l) || !is_worth_sharing(l, job)))
        team = NULL;
    round_of r = { l, job, 0 };
    for (; r.round < ls__local_rounds(l); r.round++)
        ls__team_share(team, ls__local_ranks(l), run_round, &r);
}

/* ---- alone ------------------------------------------------------------------------------------ */

const ls__local *ls__local_alone(int replicas)
{
    static _Atomic(ls__local *) alone[LS__MOST_REPLICAS + 1];
    if (replicas < 1 || replicas > LS__MOST_REPLICAS) {
        ls__fail(LS_INVALID, "adding up %d replicas: wants 1 to %d", replicas, LS__MOST_REPLICAS);
        return NULL;
    }
    /* Pairs with the exchange below. */
    ls__local *l = atomic_load_explicit(&alone[replicas], memory_order_acquire);
    if (l)
        return l;
    ls__schedule *s;
    if (ls__schedule_make(&(ls__schedule_spec){ .ranks = 1, .replicas = replicas }, &s))
        return NULL;
    ls_status st = ls__local_compile(s, LS__LOCAL_ONCE, &l);
    ls__schedule_free(s);
    if (st)
        return NULL;
    ls__local *before = NULL; /* whoever comes first is kept */
    if (atomic_compare_exchange_strong_explicit(&alone[replicas], &before, l, memory_order_acq_rel,
                                                memory_order_acquire))
        return l;
    ls__local_free(l);
    return before;
}
