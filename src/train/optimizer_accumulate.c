/*
 * Gradient accumulation: each replica adds up its gradients of several parts of a batch, in the
 * order of its steps, in cells of its own; an update takes the sums (rule K: per replica in
 * step order, reduced once). Invariants: a sum has one writer, its replica; nobody waits
 * for anybody here; an optimizer that accumulates has a sum for every update, so that a traced
 * one takes what is accumulated later.
 */
#include <lockstep/ops.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "dispatch/sink.h"
#include "ops/accumulate.h"
#include "ops/variable.h"
#include "strategy/context.h"
#include "strategy/strategy.h"
#include "strategy/variable.h"
#include "tensor/tensor.h"
#include "train/optimizer.h"

/* ---- the sums ----------------------------------------------------------------------------- */

static int my_id(void)
{
    const ls_replica *replica = ls__hosted();
    return replica ? replica->id : 0;
}

/* Pairs with the release in add(). */
ls__part_sum *ls__part_sum_found(ls_optimizer *o, const ls__cell *cell, int replica)
{
    ls__part_sum *sum = atomic_load_explicit(&o->sums, memory_order_acquire);
    while (sum && (sum->variable != ls__cell_serial(cell) || sum->replica != replica))
        sum = sum->next;
    return sum;
}

/* Takes over the cell. */
static ls_status add(ls_optimizer *o, const ls__cell *variable, int replica, ls__cell *cell)
{
    ls__part_sum *sum = malloc(sizeof *sum);
    if (!sum) {
        ls__cell_unref(cell);
        return ls__fail_memory("ls_accumulate", sizeof *sum);
    }
    *sum = (ls__part_sum){ ls__cell_serial(variable), replica, cell, NULL };
    sum->next = atomic_load_explicit(&o->sums, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&o->sums, &sum->next, sum, memory_order_release,
                                                  memory_order_relaxed))
        continue;
    return LS_OK;
}

void ls__parts_free(ls_optimizer *o)
{
    ls__part_sum *sum = atomic_load_explicit(&o->sums, memory_order_acquire), *next;
    for (; sum; sum = next) {
        next = sum->next;
        ls__cell_unref(sum->cell);
        free(sum);
    }
}

/* Whether this thread is one of those who have sums of the variable. */
static ls_status check_own(const char *who, const ls_variable *v)
{
    const ls_replica *replica = ls__hosted();
    bool shared = v->strategy && v->strategy->replicas > 1;
    if (!ls_in_cross_replica_context() &&
        (!shared || (replica && replica->strategy == v->strategy)))
        return LS_OK;
    return ls__hint(ls__fail(LS_STATE,
                             "%s: replicas accumulate gradients of variable '%s', and this is "
                             "none of them",
                             who, v->name),
                    "call it in the replicas, in the function that ls_run runs: each has its own "
                    "sum");
}

ls_status ls__part_sum_of(ls_optimizer *o, const char *variable, ls__cell *cell, int replica,
                          ls__part_sum **out)
{
    *out = ls__part_sum_found(o, cell, replica);
    if (*out)
        return LS_OK;
    char name[128];
    snprintf(name, sizeof name, "%s/sum", variable);
    ls__cell *sum = NULL;
    ls_status st = ls__cell_new(name, ls__cell_spec(cell), &sum);
    if (!st)
        st = add(o, cell, replica, sum);
    *out = st ? NULL : ls__part_sum_found(o, cell, replica);
    return st;
}

/* This replica's. */
static ls_status sum_of(ls_optimizer *o, const ls_variable *v, ls__cell *variable,
                        ls__part_sum **out)
{
    return ls__part_sum_of(o, v->name, variable, my_id(), out);
}

/* ---- taking ------------------------------------------------------------------------------- */

ls_status ls__take_parts(const char *who, ls_optimizer *o, const ls_variable *v, ls__cell *cell,
                         ls__given *given)
{
    if (!o->accumulates)
        return LS_OK;
    ls__part_sum *sum;
    ls_status st = check_own(who, v);
    if (!st)
        st = sum_of(o, v, cell, &sum);
    if (st)
        return st;
    given->gradient = ls__take_sum(sum->cell, given->gradient);
    return given->gradient ? LS_OK : ls_error_pending();
}

/* ---- accumulating --------------------------------------------------------------------------- */

static ls_status check_asked(const char *who, const ls_optimizer *o)
{
    if (o->accumulates)
        return LS_OK;
    return ls__hint(ls__fail(LS_STATE, "%s: the optimizer keeps no sums", who),
                    "make it with .accumulates = true");
}

static ls_status accumulate(const char *who, ls_optimizer *o, int count,
                            ls_tensor *const *gradients, ls_variable *const *variables)
{
    ls__part_sum **sums = ls__frame_alloc(sizeof *sums * (size_t)(count + 1));
    ls_tensor **dense = ls__frame_alloc(sizeof *dense * (size_t)(count + 1));
    if (!sums || !dense)
        return LS_NO_MEMORY;
    ls_status st = LS_OK;
    for (int i = 0; i < count && !st; i++) {
        ls__cell *cell = NULL;
        st = ls__check_pair(who, o, variables[i], gradients[i], &cell);
        if (!st)
            st = check_own(who, variables[i]);
        for (int k = 0; k < i && !st; k++)
            if (sums[k]->variable == ls__cell_serial(cell))
                st = ls__fail(LS_INVALID, "%s: variable '%s' is listed twice", who,
                              variables[i]->name);
        if (!st)
            st = sum_of(o, variables[i], cell, &sums[i]);
        if (!st)
            st = ls__cell_unshare(sums[i]->cell);
        if (!st && !(dense[i] = ls_densify(gradients[i])))
            st = ls_error_pending();
    }
    for (int i = 0; i < count && !st; i++)
        st = ls__cell_assign_add(sums[i]->cell, dense[i]);
    return st;
}

ls_status ls__accumulate_here(const char *who, ls_optimizer *o, int count,
                              ls_tensor *const *gradients, ls_variable *const *variables)
{
    ls_status st = check_asked(who, o);
    ls_phase before = ls__sink_phase(LS_PHASE_APPLY);
    if (!st)
        st = accumulate(who, o, count, gradients, variables);
    ls__sink_phase(before);
    return st;
}

ls_status ls_accumulate_gradients(ls_optimizer *o, int count, ls_tensor *const *gradients,
                                  ls_variable *const *variables)
{
    ls_status st = ls__check_lists("ls_accumulate_gradients", o, count, gradients, variables);
    if (!st) {
        LS_FRAME
            st = ls__accumulate_here("ls_accumulate_gradients", o, count, gradients, variables);
    }
    return st;
}
