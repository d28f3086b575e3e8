/*
 * Writing rows of variables. Invariant: in a replica the rows of all replicas are one call, in
 * replica order, so that rows which repeat take effect in an order that is the program's.
 */
#include <lockstep/ops.h>
#include <lockstep/tape.h>

#include "base/status.h"
#include "ops/scatter.h"
#include "strategy/strategy.h"
#include "strategy/variable.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

static const char *const names[] = { [LS__SCATTER_ADD] = "ls_scatter_add",
                                     [LS__SCATTER_SUB] = "ls_scatter_sub",
                                     [LS__SCATTER_UPDATE] = "ls_scatter_update",
                                     [LS__SCATTER_MIN] = "ls_scatter_min",
                                     [LS__SCATTER_MAX] = "ls_scatter_max" };

/* What has no meaning whatever the context: the sum of two updates, say. */
static ls_status check_kind(ls__scatter how, const ls_variable *v)
{
    if (v->synchronization == LS_SYNC_ON_READ)
        return ls__hint(
            ls__fail(LS_UNSUPPORTED, "%s: variable '%s' is LS_SYNC_ON_READ", names[how], v->name),
            "rows are written of LS_SYNC_ON_WRITE variables");
    bool adds = how == LS__SCATTER_ADD || how == LS__SCATTER_SUB;
    if (adds || (v->aggregation != LS_AGGREGATE_SUM && v->aggregation != LS_AGGREGATE_MEAN))
        return LS_OK;
    return ls__hint(ls__fail(LS_UNSUPPORTED, "%s: variable '%s' has aggregation %s", names[how],
                             v->name, v->aggregation == LS_AGGREGATE_SUM ? "SUM" : "MEAN"),
                    "with it there are ls_scatter_add and ls_scatter_sub; the others want "
                    "LS_AGGREGATE_ONLY_FIRST, or none and .local_writes");
}

/* ---- all replicas' rows ---------------------------------------------------------------- */

typedef struct meeting {
    ls__scatter how;
    ls_variable *v;
} meeting;

/* What the replicas give behind one another, or what the first gives. */
static ls_tensor *joined(const ls_value *leaf, int replicas)
{
    ls_tensor **parts = ls__frame_alloc(sizeof *parts * (size_t)replicas);
    for (int i = 0; parts && i < replicas; i++) {
        parts[i] = ls__here(ls__leaf_component(leaf, i));
        if (!parts[i])
            return NULL;
    }
    return parts && replicas > 1 ? ls_concat(replicas, parts, 0) : parts ? parts[0] : NULL;
}

static ls_value *scatter_once(ls_strategy *s, ls_value *arguments, void *user)
{
    const meeting *m = user;
    int taken = m->v->aggregation == LS_AGGREGATE_ONLY_FIRST ? 1 : s->replicas;
    ls_tensor *rows = joined(ls_child(arguments, 0), taken);
    ls_tensor *values = joined(ls_child(arguments, 1), taken);
    if (rows && values && m->v->aggregation == LS_AGGREGATE_MEAN)
        values = ls_div(values, ls__scalar_like(values, s->replicas));
    if (!rows || !values || ls__cell_scatter(m->how, m->v->cells[0], rows, values))
        return NULL;
    return ls_list(0, NULL);
}

/* ---- here ---------------------------------------------------------------------------------- */

static ls_status scatter_here(ls__scatter how, const ls__target *target, ls_tensor *rows,
                              ls_tensor *values)
{
    ls_status st = LS_OK;
    for (int i = 0; i < target->count && !st; i++)
        st = ls__cell_unshare(target->v->cells[target->first + i]);
    for (int i = 0; i < target->count && !st; i++) /* the first fails, or none does */
        st = ls__cell_scatter(how, target->v->cells[target->first + i], rows, values);
    return st;
}

static ls_status scatter(ls__scatter how, ls_variable *v, ls_tensor *rows, ls_tensor *values)
{
    ls__target target;
    ls_status st = ls__write_target(names[how], v, &target);
    if (!st)
        st = check_kind(how, target.v);
    if (st)
        return st;
    st = ls__check_tensor(names[how], "rows", rows);
    if (!st)
        st = ls__check_tensor(names[how], "values", values);
    if (target.replica) {
        meeting m = { how, target.v };
        ls_tensor *given[] = { rows, st ? NULL : ls_densify(values) };
        return ls__meet_to_write(names[how], &target, scatter_once, &m,
                                 given[1] ? ls_tensors(2, given) : NULL);
    }
    if (st)
        return st;
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    st = scatter_here(how, &target, rows, values);
    return ls__error_scope_close(&scope, st, "%s: variable '%s'", names[how], v->name);
}

#define PUBLIC(name, how)                                                                          \
    ls_status name(ls_variable *v, ls_tensor *rows, ls_tensor *values)                             \
    {                                                                                              \
        ls_status st = LS_OK;                                                                      \
        LS_FRAME                                                                                   \
            st = scatter(how, v, rows, values);                                                    \
        return st;                                                                                 \
    }

PUBLIC(ls_scatter_add, LS__SCATTER_ADD)
PUBLIC(ls_scatter_sub, LS__SCATTER_SUB)
PUBLIC(ls_scatter_update, LS__SCATTER_UPDATE)
PUBLIC(ls_scatter_min, LS__SCATTER_MIN)
PUBLIC(ls_scatter_max, LS__SCATTER_MAX)
