/*
 * Grouping: V values, one of each replica, become one. A leaf that is the same thing on all
 * replicas stays itself; others are side by side.
 */
#include <lockstep/variable.h>

#include "base/status.h"
#include "strategy/defect.h"
#include "strategy/run.h"
#include "strategy/strategy.h"
#include "strategy/variable.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

/* The variable that all leaves are, or whose components they are in order; else NULL. */
static ls_variable *one_variable(int count, const ls_value *const *leaves)
{
    ls_variable *first = ls__leaf_object(leaves[0]);
    bool same = first != NULL, components = first && first->container;
    for (int r = 0; r < count; r++) {
        const ls_variable *v = ls__leaf_object(leaves[r]);
        same &= v == first;
        components = components && v && v->container == first->container && v->replica == r;
    }
    return same ? first : components ? first->container : NULL;
}

static const char *leaf_text(const ls_value *leaf)
{
    const ls_variable *v = ls__leaf_object(leaf);
    return v ? v->name : ls_describe(ls__leaf_component(leaf, 0));
}

/* Names the first two that do not go together. */
static ls_value *refuse_variables(const char *what, int count, const ls_value *const *leaves)
{
    int r = 1;
    while (r < count - 1 && ls__leaf_object(leaves[r]) == ls__leaf_object(leaves[0]))
        r++;
    ls__hint(ls__fail(LS_INVALID, "%s: replica 0 has %s'%s', replica %d %s'%s'", what,
                      ls__leaf_object(leaves[0]) ? "variable " : "", leaf_text(leaves[0]), r,
                      ls__leaf_object(leaves[r]) ? "variable " : "", leaf_text(leaves[r])),
             "all replicas give the same variable, or each its own component of one");
    return NULL;
}

static ls_value *regroup_leaf(int count, const ls_value *const *leaves, void *user)
{
    const char *what = user;
    bool same = true;
    ls_tensor **tensors = ls__frame_alloc(sizeof *tensors * (size_t)count);
    if (!tensors)
        return NULL;
    for (int r = 0; r < count; r++) {
        if (ls__leaf_object(leaves[r])) {
            ls_variable *v = one_variable(count, leaves);
            if (v)
                return ls_variable_leaf(v);
            return refuse_variables(what, count, leaves);
        }
        if (ls_spread_of(leaves[r]) != LS_SPREAD_PLAIN) {
            ls__hint(ls__fail(LS_INVALID, "%s: replica %d has a value of %d components in it", what,
                              r, ls_components(leaves[r])),
                     "a replica gives tensors of its own; ls_select takes one out of a distributed "
                     "value");
            return NULL;
        }
        tensors[r] = ls__leaf_component(leaves[r], 0);
        same &= tensors[r]->id == tensors[0]->id;
    }
    if (same)
        return ls_leaf(tensors[0]);
    if (LS__DEFECT(LS__SWAPPED_RESULTS)) {
        ls_tensor *first = tensors[0];
        tensors[0] = tensors[1];
        tensors[1] = first;
    }
    return ls__leaf_spread(LS_SPREAD_PER_REPLICA, count, tensors);
}

/* Of one replica: its tensors as they are, and the variable for its only component. */
static ls_value *single_leaf(const ls_value *leaf, void *user)
{
    (void)user;
    ls_variable *v = ls__leaf_object(leaf);
    return v ? ls_variable_leaf(v->container ? v->container : v) : ls__value_import(leaf);
}

ls_value *ls__regroup(ls_strategy *s, ls_value *const *values, const char *what)
{
    if (s->replicas == 1)
        return ls__value_map(values[0], single_leaf, NULL);
    return ls__values_zip(s->replicas, values, what, regroup_leaf, (void *)what);
}
