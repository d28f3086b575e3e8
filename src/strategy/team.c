/*
 * Sharing work among the devices' threads. Invariant: work is shared only while a meeting is
 * held: then every host waits for an order, and the runner is rank 0.
 */
#include "strategy/team.h"

#include <stdlib.h>

#include "base/status.h"
#include "collective/placement.h"
#include "strategy/cross_device.h"
#include "strategy/defect.h"
#include "strategy/host.h"

struct ls__shared_work {
    ls_strategy *s;
    ls__share_fn *fn;
    void *arg;
    _Atomic int pending; /* ranks still at it */
};

static void do_share(struct ls__shared_work *work, int rank)
{
    ls_strategy *s = work->s; /* the work may be over at once */
    work->fn(work->arg, rank);
    if (atomic_fetch_sub_explicit(&work->pending, 1, memory_order_acq_rel) == 1)
        ls__event_post(&s->done);
}

void ls__team_serve(struct ls__shared_work *work, int replica)
{
    do_share(work, ls__block_of(work->s->replicas, work->s->n_devices, replica));
}

static void share(ls__team *team, ls__share_fn *fn, void *arg)
{
    ls_strategy *s = team->owner;
    struct ls__shared_work work = { .s = s, .fn = fn, .arg = arg };
    atomic_store_explicit(&work.pending, s->n_devices, memory_order_relaxed);
    s->rounds++;
    for (int d = 1; d < s->n_devices; d++)
        ls__host_tell(s, ls__block_begin(s->replicas, s->n_devices, d), LS__ORDER_SHARE, &work);
    do_share(&work, 0);
    ls__event_wait(&s->done, s->rounds, s->spin);
}

/* ---- making ------------------------------------------------------------------------------- */

static ls_status compile(ls_strategy *s, ls__local **once, ls__local **folded)
{
    ls__schedule *schedule = NULL;
    const ls__schedule_spec spec = { .algorithm = s->cross->algorithm,
                                     .ranks = s->n_devices,
                                     .replicas = s->replicas };
    ls_status st = ls__schedule_make(&spec, &schedule);
#ifdef LS__DEFECTS
    if (!st && ls__alter_schedule)
        ls__alter_schedule(schedule);
#endif
    if (!st)
        st = ls__local_compile(schedule, LS__LOCAL_ONCE, once);
    if (!st)
        st = ls__local_compile(schedule, LS__LOCAL_FOLDED, folded);
    ls__schedule_free(schedule);
    return st;
}

static ls_status make(ls_strategy *s)
{
    if (s->team.once)
        return LS_OK;
    ls__local *once = NULL, *folded = NULL;
    ls_status st = compile(s, &once, &folded);
    if (st) {
        ls__local_free(once);
        return st;
    }
    s->team = (ls__team){ .ranks = s->n_devices,
                          .replicas = s->replicas,
                          .once = once,
                          .folded = folded,
                          .packing = s->packing,
                          .share = share,
                          .owner = s };
    return LS_OK;
}

ls_status ls__team_make(ls_strategy *s)
{
    /* Threads that reduce at once: the others wait for the first, once in a placement. */
    int turn = 0;
    while (atomic_flag_test_and_set_explicit(&s->team_lock, memory_order_acquire))
        ls__back_off(turn++);
    ls_status st = make(s);
    atomic_flag_clear_explicit(&s->team_lock, memory_order_release);
    return st;
}

static void share_with_nobody(ls__team *team, ls__share_fn *fn, void *arg)
{
    for (int rank = 0; rank < team->ranks; rank++)
        fn(arg, rank);
}

ls_status ls__team_of_one(ls_strategy *s, ls__team *out)
{
    ls_status st = ls__team_make(s);
    if (st)
        return st;
    *out = s->team;
    out->share = share_with_nobody;
    return LS_OK;
}

void ls__team_drop(ls_strategy *s)
{
    ls__local_free((ls__local *)s->team.once);
    ls__local_free((ls__local *)s->team.folded);
    s->team = (ls__team){ .ranks = 0 };
}
