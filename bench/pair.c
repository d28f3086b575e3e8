/*
 * Two pinned threads. The other one sleeps (after a moment of spinning) until it is given a
 * function, as a strategy's device threads do. Invariant: `fn` and `arg` are written before the post
 * of `work` and read after its wait; the call returns after `done`.
 */
#include "pair.h"

#include <lockstep.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "os/event.h"
#include "os/plain_thread.h"
#include "os/topology.h"

struct pair {
    ls__team team;
    ls__local *once, *folded;
    ls__share_fn *fn; /* NULL: the end */
    void *arg;
    uint32_t shared; /* functions given so far */
    _Alignas(64) ls__event work;
    _Alignas(64) ls__event done;
    struct {
        _Alignas(64) _Atomic uint32_t met; /* meetings this rank has come to */
    } flags[2];
};

static void check(ls_status st)
{
    if (st) {
        fprintf(stderr, "reduce: %s\n", ls_error_report());
        exit(1);
    }
}

static void other_main(void *arg)
{
    pair *p = arg;
    for (uint32_t turn = 1;; turn++) {
        ls__event_wait(&p->work, turn, LS__SPIN_SHORT);
        if (!p->fn)
            return;
        p->fn(p->arg, 1);
        ls__event_post(&p->done);
    }
}

void pair_share(pair *p, ls__share_fn *fn, void *arg)
{
    p->fn = fn;
    p->arg = arg;
    ls__event_post(&p->work);
    fn(arg, 0);
    ls__event_wait(&p->done, ++p->shared, LS__SPIN_SHORT);
}

void pair_meet(pair *p, int rank)
{
    uint32_t turn = atomic_load_explicit(&p->flags[rank].met, memory_order_relaxed) + 1;
    /* Release: pairs with the other's acquire below. */
    atomic_store_explicit(&p->flags[rank].met, turn, memory_order_release);
    while ((int32_t)(atomic_load_explicit(&p->flags[1 - rank].met, memory_order_acquire) - turn) <
           0)
#if defined(__x86_64__)
        __builtin_ia32_pause();
#else
        ;
#endif
}

static void team_share(ls__team *team, ls__share_fn *fn, void *arg)
{
    pair_share(team->owner, fn, arg);
}

static void open_team(pair *p)
{
    ls__schedule *s = NULL;
    const ls__schedule_spec spec = { .algorithm = LS__ALGORITHM_DIRECT, .ranks = 2, .replicas = 2 };
    check(ls__schedule_make(&spec, &s));
    check(ls__local_compile(s, LS__LOCAL_ONCE, &p->once));
    check(ls__local_compile(s, LS__LOCAL_FOLDED, &p->folded));
    ls__schedule_free(s);
    p->team = (ls__team){ .ranks = 2,
                          .replicas = 2,
                          .once = p->once,
                          .folded = p->folded,
                          .share = team_share,
                          .owner = p };
}

typedef struct job {
    void (*fn)(pair *p, void *user);
    void *user;
} job;

static void first_main(void *arg)
{
    job *j = arg;
    pair *p = aligned_alloc(_Alignof(pair), sizeof *p);
    if (!p)
        check(LS_NO_MEMORY);
    *p = (pair){ 0 };
    open_team(p);
    ls__team_use(&p->team);
    ls__thread *other;
    check(ls__thread_start("reduce-1", ls__core_number(1), other_main, p, &other));
    j->fn(p, j->user);
    p->fn = NULL;
    ls__event_post(&p->work);
    ls__thread_join(other);
    ls__team_use(NULL);
    ls__local_free(p->once);
    ls__local_free(p->folded);
    free(p);
}

void pair_run(void (*fn)(pair *p, void *user), void *user)
{
    job j = { fn, user };
    ls__thread *first;
    check(ls__thread_start("reduce-0", ls__core_number(0), first_main, &j, &first));
    ls__thread_join(first);
}
