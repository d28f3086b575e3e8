/*
 * What a variable is: its cells, its components, and what can be asked of both. Making is in
 * variable_make.c, reading and writing in variable_write.c.
 */
#include "strategy/variable.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "strategy/context.h"
#include "strategy/strategy.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

ls_status ls__check_variable(const char *who, const ls_variable *v)
{
    if (v)
        return LS_OK;
    if (ls_error_pending())
        return ls_error_pending();
    return ls__hint(ls__fail(LS_INVALID, "%s: the variable is NULL", who),
                    "ls_variable_new may have failed and its error been read");
}

ls_status ls__check_variable_here(const char *who, const ls_variable *v)
{
    ls_status st = ls__check_variable(who, v);
    const ls__mode *mode = ls__mode_now();
    if (st || !v->strategy || !mode || mode->strategy == v->strategy)
        return st;
    char what[160];
    snprintf(what, sizeof what, "variable '%s'", v->name);
    return ls__check_mixing(who, what, v->strategy);
}

bool ls__has_own_cells(const ls_variable *v)
{
    return v->strategy && (v->synchronization == LS_SYNC_ON_READ || v->local_writes);
}

ls__cell *ls__variable_cell(const ls_variable *v, int replica)
{
    return v->cells[v->n_cells > 1 ? replica : 0];
}

ls_status ls__shared_cell(const char *who, const ls_variable *v, ls__cell **out)
{
    if (ls__has_own_cells(v))
        return ls__hint(ls__fail(LS_UNSUPPORTED,
                                 "%s: every replica has its own copy of variable "
                                 "'%s' (%s)",
                                 who, v->name,
                                 v->local_writes ? ".local_writes" : "LS_SYNC_ON_READ"),
                        "variables to be trained are LS_SYNC_ON_WRITE, without .local_writes");
    *out = v->cells[0];
    return LS_OK;
}

ls_tensor *ls__here(const ls_tensor *t)
{
    ls_tensor *here = t ? ls__same_value(t) : NULL;
    if (here)
        here->device = ls__device_current();
    return here;
}

ls_reduce_op ls__reduce_op_of(ls_aggregation aggregation)
{
    switch (aggregation) {
    case LS_AGGREGATE_SUM:
        return LS_SUM;
    case LS_AGGREGATE_MEAN:
        return LS_MEAN;
    case LS_AGGREGATE_ONLY_FIRST:
        return LS_ONLY_FIRST;
    default:
        return (ls_reduce_op)0;
    }
}

const char *ls__copy_name(const char *name, int replica)
{
    size_t bytes = strlen(name) + sizeof "/replica_2147483647";
    char *text = ls__frame_alloc(bytes);
    if (text)
        snprintf(text, bytes, "%s/replica_%d", name, replica);
    return text;
}

/* ---- asking ------------------------------------------------------------------------------- */

const char *ls_variable_name(const ls_variable *v)
{
    return v ? v->name : NULL;
}

bool ls_variable_trainable(const ls_variable *v)
{
    return v && (v->container ? v->container : v)->trainable;
}

void ls_variable_set_trainable(ls_variable *v, bool trainable)
{
    if (v && !ls__check_alone("ls_variable_set_trainable",
                              "set it between steps, or in a merge function"))
        (v->container ? v->container : v)->trainable = trainable;
}

ls_synchronization ls_variable_synchronization(const ls_variable *v)
{
    return v ? v->synchronization : (ls_synchronization)0;
}

ls_aggregation ls_variable_aggregation(const ls_variable *v)
{
    return v ? v->aggregation : LS_AGGREGATE_NONE;
}

ls_strategy *ls_variable_strategy(const ls_variable *v)
{
    if (!v)
        return NULL;
    return v->strategy ? v->strategy : ls_default_strategy();
}

int ls_variable_components(const ls_variable *v)
{
    return v ? v->n_components : 0;
}

ls_variable *ls_variable_component(ls_variable *v, int replica)
{
    if (ls__check_variable("ls_variable_component", v))
        return NULL;
    if (replica < 0 || replica >= v->n_components) {
        ls__hint(ls__fail(LS_INVALID, "ls_variable_component: component %d of variable '%s'",
                          replica, v->name),
                 v->n_components > 1 ? "components run from 0 to %d" : "it has component %d alone",
                 v->n_components - 1);
        return NULL;
    }
    return v->components ? &v->components[replica] : v;
}

ls_variable *ls_value_container(ls_variable *component)
{
    return component && component->container ? component->container : component;
}

ls_value *ls_variable_leaf(ls_variable *v)
{
    return ls__check_variable("ls_variable_leaf", v) ? NULL
                                                     : ls__object_leaf(v, "variable", v->serial);
}

ls_variable *ls_leaf_variable(const ls_value *leaf)
{
    ls_variable *v = leaf && ls_kind_of(leaf) == LS_LEAF ? ls__leaf_object(leaf) : NULL;
    if (!v && !ls_error_pending())
        ls__hint(ls__fail(LS_INVALID, "ls_leaf_variable: %s",
                          leaf ? "the value is no variable" : "the leaf is NULL"),
                 "ls_variable_leaf makes such leaves");
    return v;
}
