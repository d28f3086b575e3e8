/*
 * Per-replica values: put together from V values, and taken apart again. A leaf that is a
 * variable stays one: its components are what replicas have of it.
 */
#include <lockstep/extended.h>
#include <lockstep/variable.h>

#include "base/status.h"
#include "strategy/combine.h"
#include "strategy/context.h"
#include "strategy/strategy.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

/* ---- putting together ---------------------------------------------------------------------- */

static ls_status check_part(int replica, const ls_value *leaf, const ls_value *first)
{
    if (ls__leaf_object(leaf) != ls__leaf_object(first))
        return ls__hint(ls__fail(LS_INVALID,
                                 "ls_per_replica: replica %d has a variable where "
                                 "another has something else",
                                 replica),
                        "pass a variable to the run as it is: every replica sees its component");
    if (ls_spread_of(leaf) == LS_SPREAD_PLAIN)
        return LS_OK;
    return ls__hint(ls__fail(LS_INVALID, "ls_per_replica: replica %d has a value of %d components",
                             replica, ls_components(leaf)),
                    "a replica has plain values; ls_select takes one out of a distributed value");
}

static ls_value *side_by_side(int count, const ls_value *const *leaves, void *user)
{
    const ls_strategy *s = user;
    ls_tensor **parts = ls__frame_alloc(sizeof *parts * (size_t)count);
    for (int i = 0; i < count; i++)
        if (!parts || check_part(i, leaves[i], leaves[0]))
            return NULL;
    if (ls__leaf_object(leaves[0]))
        return (ls_value *)leaves[0];
    for (int i = 0; i < count; i++) {
        parts[i] = ls__on_device(ls__leaf_component(leaves[i], 0), ls__device_of_replica(s, i));
        if (!parts[i])
            return NULL;
    }
    return ls__leaf_spread(LS_SPREAD_PER_REPLICA, count, parts);
}

static ls_value *put_together(ls_strategy *s, ls_value *const *values)
{
    if (!values) {
        ls__fail(LS_INVALID, "ls_per_replica: values is NULL, wants %d of them", s->replicas);
        return NULL;
    }
    for (int i = 0; i < s->replicas; i++)
        if (!values[i] && !ls_error_pending()) {
            ls__fail(LS_INVALID, "ls_per_replica: the value of replica %d is NULL", i);
            return NULL;
        }
    return ls__values_zip(s->replicas, values, "ls_per_replica", side_by_side, s);
}

ls_value *ls_per_replica(ls_strategy *s, ls_value *const *values)
{
    ls__mode mode;
    if (ls__enter_cross("ls_per_replica", s, &mode))
        return NULL;
    ls_value *out = put_together(s, values);
    ls__mode_pop(&mode);
    return out;
}

/* One call of the program's function: a failure names its replica. */
static ls_value *ask(ls_strategy *s, ls_value_fn fn, void *user, int replica)
{
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_value *value = fn(replica, s->replicas, user);
    ls_status st = LS_OK;
    if (!value && !ls_error_pending())
        st = ls__fail(LS_INVALID, "the function returned NULL");
    return ls__error_scope_close(&scope, st, "ls_distribute_values, replica %d", replica) ? NULL
                                                                                          : value;
}

ls_value *ls_distribute_values(ls_strategy *s, ls_value_fn fn, void *user)
{
    ls__mode mode;
    if (ls__enter_cross("ls_distribute_values", s, &mode))
        return NULL;
    ls_value *out = NULL;
    ls_value **values = ls__frame_alloc(sizeof *values * (size_t)s->replicas);
    if (!fn) {
        ls__fail(LS_INVALID, "ls_distribute_values: the function is NULL");
        values = NULL;
    }
    int asked = 0;
    while (values && asked < s->replicas && (values[asked] = ask(s, fn, user, asked)))
        asked++;
    if (values && asked == s->replicas)
        out = put_together(s, values);
    ls__mode_pop(&mode);
    return out;
}

/* ---- taking apart --------------------------------------------------------------------------- */

typedef struct view {
    const ls_strategy *s;
    int replica;
} view;

static bool is_distributed(const ls_strategy *s, const ls_value *v)
{
    if (ls_kind_of(v) == LS_LEAF) {
        ls_variable *var = ls__leaf_object(v) ? ls_leaf_variable(v) : NULL;
        return var ? ls_variable_created_in_scope(s, var) && ls_value_container(var) == var
                   : ls_spread_of(v) != LS_SPREAD_PLAIN;
    }
    for (int i = 0; i < ls_length(v); i++)
        if (is_distributed(s, ls_child(v, i)))
            return true;
    return false;
}

static ls_value *seen_by(const ls_value *leaf, void *user)
{
    const view *w = user;
    if (!ls__leaf_object(leaf))
        return ls_select(leaf, w->replica);
    return is_distributed(w->s, leaf)
               ? ls_variable_leaf(ls_variable_component(ls_leaf_variable(leaf), w->replica))
               : (ls_value *)leaf;
}

static ls_value *local_results(ls_strategy *s, ls_value *value)
{
    if (ls__check_value("ls_local_results", value) ||
        ls__check_components(s, "ls_local_results", value))
        return NULL;
    if (!is_distributed(s, value))
        return ls_list(1, &value);
    ls_value **items = ls__frame_alloc(sizeof *items * (size_t)s->replicas);
    for (int i = 0; items && i < s->replicas; i++) {
        items[i] = ls__value_map(value, seen_by, &(view){ s, i });
        if (!items[i])
            return NULL;
    }
    return items ? ls_list(s->replicas, items) : NULL;
}

ls_value *ls_local_results(ls_strategy *s, ls_value *value)
{
    ls__mode mode;
    if (ls__enter_cross("ls_local_results", s, &mode))
        return NULL;
    ls_value *out = local_results(s, value);
    ls__mode_pop(&mode);
    return out;
}
