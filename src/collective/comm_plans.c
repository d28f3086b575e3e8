/*
 * The schedules of a communicator, compiled when they are first needed: the rank that adds one to
 * the list compiles it, the others wait. None is taken out before the end.
 */
#include <stdlib.h>

#include "base/status.h"
#include "collective/comm.h"

struct ls__comm_plan {
    ls__comm_call call;
    int root, subdivisions;
    ls__event ready; /* posted when the rest is there */
    ls__local *local;
    ls__error_record error; /* why it is not */
    ls__comm_plan *next;
};

static ls__comm_plan *find_plan(ls__comm_plan *p, ls__comm_call call, int root, int subdivisions)
{
    while (p && (p->call != call || p->root != root || p->subdivisions != subdivisions))
        p = p->next;
    return p;
}

static ls__schedule_spec spec_of(const ls_comm *comm, const ls__comm_plan *p)
{
    static const ls__algorithm algorithms[] = {
        [LS_ALGORITHM_AUTO] = LS__ALGORITHM_DIRECT,
        [LS_ALGORITHM_DIRECT] = LS__ALGORITHM_DIRECT,
        [LS_ALGORITHM_RING] = LS__ALGORITHM_RING,
        [LS_ALGORITHM_HALVING] = LS__ALGORITHM_HALVING,
        [LS_ALGORITHM_HIERARCHICAL] = LS__ALGORITHM_HIERARCHICAL,
        [LS_ALGORITHM_TO_ONE] = LS__ALGORITHM_TO_ONE,
    };
    ls__schedule_spec spec = { .ranks = comm->options.ranks,
                               .root = p->root,
                               .subdivisions = p->subdivisions,
                               .ranks_per_host = comm->options.ranks_per_host };
    if (p->call == LS__COMM_BROADCAST)
        spec.algorithm = LS__ALGORITHM_BROADCAST;
    else if (p->call == LS__COMM_REDUCE)
        spec.algorithm = LS__ALGORITHM_TO_ONE;
    else
        spec.algorithm = algorithms[comm->algorithm];
    spec.stop_at_root = p->call == LS__COMM_REDUCE;
    return spec;
}

static void compile(const ls_comm *comm, ls__comm_plan *p)
{
    ls__schedule_spec spec = spec_of(comm, p);
    ls__schedule *s = NULL;
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_status st = ls__schedule_make(&spec, &s);
    if (!st)
        st = ls__local_compile(s, LS__LOCAL_OWN, &p->local);
    ls__schedule_free(s);
    if (st)
        ls__error_take(&p->error);
    ls__error_scope_close(&scope, LS_OK, "ls_comm");
    ls__event_post(&p->ready);
}

ls_status ls__comm_plan_of(ls_comm *comm, ls__comm_call call, int root, int subdivisions,
                           const ls__local **out)
{
    /* Pairs with the exchange below. */
    ls__comm_plan *head = atomic_load_explicit(&comm->plans, memory_order_acquire);
    ls__comm_plan *p = find_plan(head, call, root, subdivisions), *own = NULL;
    while (!p) {
        if (!own)
            own = calloc(1, sizeof *own);
        if (!own)
            return ls__fail_memory("a communicator's schedule", sizeof *own);
        *own = (ls__comm_plan){
            .call = call, .root = root, .subdivisions = subdivisions, .next = head
        };
        if (atomic_compare_exchange_strong_explicit(&comm->plans, &head, own, memory_order_acq_rel,
                                                    memory_order_acquire)) {
            compile(comm, own);
            p = own;
            own = NULL;
        } else {
            p = find_plan(head, call, root, subdivisions);
        }
    }
    free(own);
    ls__event_wait(&p->ready, 1, comm->spin);
    if (!p->local) {
        ls__error_put(&p->error);
        return p->error.status;
    }
    *out = p->local;
    return LS_OK;
}

void ls__comm_plans_free(ls_comm *comm)
{
    ls__comm_plan *p = atomic_load_explicit(&comm->plans, memory_order_acquire);
    for (ls__comm_plan *next; p; p = next) {
        next = p->next;
        ls__local_free(p->local);
        free(p);
    }
}
