/*
 * Hosts. Invariant: an order is written before it is posted and read after it was waited
 * for, so the event's ordering is all the synchronisation they need.
 */
#include "strategy/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "collective/placement.h"
#include "os/plain_thread.h"
#include "os/topology.h"
#include "strategy/replay.h"
#include "strategy/run_state.h"
#include "strategy/team.h"

ls__host *ls__host_of(ls_strategy *s, int replica)
{
    return &s->hosts[replica];
}

/* Whether it is the one that replays its device's replicas: others share its core. */
static bool drives_device(const ls__host *host)
{
    const ls_strategy *s = host->strategy;
    const int device = ls__block_of(s->replicas, s->n_devices, host->replica);
    return ls__block_begin(s->replicas, s->n_devices, device) == host->replica;
}

ls__order ls__host_serve(ls__host *host)
{
    ls_strategy *s = host->strategy;
    if (drives_device(host))
        ls__help_wait(&s->help, &host->go, ++host->seen, s->spin);
    else
        ls__event_wait(&host->go, ++host->seen, s->spin);
    ls__order order = host->order; /* work may bring the next one */
    if (order == LS__ORDER_RUN)
        ls__run_replica(host->what, host->replica);
    else if (order == LS__ORDER_REPLAY)
        ls__replay_share(host->what, host->replica);
    else if (order == LS__ORDER_SHARE)
        ls__team_serve(host->what, host->replica);
    return order;
}

void ls__host_tell(ls_strategy *s, int replica, ls__order order, void *what)
{
    ls__host *host = ls__host_of(s, replica);
    host->order = order;
    host->what = what;
    ls__event_post(&host->go);
}

static void host_main(void *arg)
{
    ls__host *host = arg;
    while (ls__host_serve(host) != LS__ORDER_QUIT)
        ;
}

static ls_status start(ls_strategy *s, int replica)
{
    ls__host *host = ls__host_of(s, replica);
    if (host->thread && ls__thread_is_here(host->thread))
        return LS_OK;
    if (host->thread)
        return ls__hint(ls__fail(LS_STATE, "this process was forked: the threads of its strategies "
                                           "are in the parent"),
                        "exec after fork, or make strategies after it");
    char name[32];
    snprintf(name, sizeof name, "ls-replica-%d", replica);
    *host = (ls__host){ .strategy = s, .replica = replica };
    int core = ls__core_number(ls__device_of_replica(s, replica)->index);
    return ls__thread_start(name, core, host_main, host, &host->thread);
}

ls_status ls__hosts_start(ls_strategy *s, int first, int end)
{
    if (end <= 1)
        return LS_OK; /* also: the default strategy is any thread's */
    const size_t bytes = (size_t)s->replicas * sizeof *s->hosts;
    if (!s->hosts) {
        s->hosts = aligned_alloc(alignof(ls__host), bytes);
        if (!s->hosts)
            return ls__fail_memory("the threads of a strategy", bytes);
        memset(s->hosts, 0, bytes);
    }
    if (s->help.count == 0 && !ls__help_open(&s->help, s->replicas))
        return ls__fail_memory("the threads of a strategy",
                               (size_t)s->replicas * sizeof *s->help.members);
    ls_status st = LS_OK;
    for (int r = first > 0 ? first : 1; r < end && !st; r++)
        st = start(s, r);
    return st;
}

void ls__hosts_stop(ls_strategy *s)
{
    for (int r = 1; s->hosts && r < s->replicas; r++) {
        ls__host *host = ls__host_of(s, r);
        if (host->thread && ls__thread_is_here(host->thread))
            ls__host_tell(s, r, LS__ORDER_QUIT, NULL);
        ls__thread_join(host->thread);
    }
    free(s->hosts);
    s->hosts = NULL;
    ls__help_close(&s->help);
}
