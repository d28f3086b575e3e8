/*
 * Replicas meet to update: each brings its gradients and the variables they are of, so that
 * all are seen to mean the same ones, and one of them applies the update for all. Invariant: a
 * replica that fails before comes to the meeting all the same, so that nobody waits for it.
 */
#include <stdio.h>

#include "base/status.h"
#include "dispatch/sink.h"
#include "strategy/context.h"
#include "strategy/run.h"
#include "strategy/strategy.h"
#include "strategy/variable.h"
#include "tensor/journal.h"
#include "tensor/tensor.h"
#include "tensor/value.h"
#include "train/optimizer.h"

/* ---- alone ------------------------------------------------------------------------------- */

static ls_status give_alone(const char *who, ls_optimizer *o, int count,
                            ls_tensor *const *gradients, ls_variable *const *variables,
                            ls_tensor **dense, ls_tensor **touched)
{
    ls_status st = LS_OK;
    for (int i = 0; i < count && !st; i++) {
        ls__cell *cell = NULL;
        ls__given given = { .gradient = NULL };
        st = ls__check_pair(who, o, variables[i], gradients[i], &cell);
        if (!st)
            st = ls__given_of(o, gradients[i], &given);
        if (!st)
            st = ls__take_parts(who, o, variables[i], cell, &given);
        dense[i] = given.gradient;
        touched[i] = given.touched;
    }
    return st;
}

/* Parts that were taken wait again when the update fails; so they are noted, here where no
 * run may do it. */
static ls_status apply_alone(const char *who, ls_optimizer *o, int count,
                             ls_tensor *const *gradients, ls_variable *const *variables)
{
    size_t bytes = sizeof(ls_tensor *) * (size_t)(count + 1);
    ls_tensor **dense = ls__frame_alloc(bytes), **touched = ls__frame_alloc(bytes);
    if (!dense || !touched)
        return LS_NO_MEMORY;
    ls__journal taken, *before = ls__journal_used();
    ls__journal_open(&taken, before);
    ls__journal_use(&taken);
    ls_status st = give_alone(who, o, count, gradients, variables, dense, touched);
    ls__journal_use(before);
    if (!st)
        st = ls__apply(who, o, 1, count, dense, o->lazy ? touched : NULL, variables);
    if (st)
        ls__journal_undo(&taken);
    else
        ls__journal_commit(&taken);
    return st;
}

/* ---- together ------------------------------------------------------------------------------ */

static ls_status check_owned(const char *who, const ls_replica *replica, const ls_variable *v)
{
    if (v->strategy)
        return LS_OK;
    return ls__hint(ls__fail(LS_STATE,
                             "%s: replica %d of %d updates variable '%s', which belongs to no "
                             "strategy",
                             who, replica->id, replica->strategy->replicas, v->name),
                    "make it in the strategy's scope: LS_SCOPE(s) v = ls_variable_new(...)");
}

/* What a replica brings: gradients, the variables and, of a lazy optimizer, touched rows. */
static ls_value *to_meet(const char *who, ls_optimizer *o, const ls_replica *replica, int count,
                         ls_tensor *const *gradients, ls_variable *const *variables)
{
    const int lists = o->lazy ? 3 : 2;
    ls_value **parts = ls__frame_alloc(sizeof *parts * (size_t)(lists * count + 1));
    for (int i = 0; parts && i < count; i++) {
        ls__cell *cell = NULL;
        ls__given given = { .gradient = NULL };
        if (ls__check_pair(who, o, variables[i], gradients[i], &cell) ||
            check_owned(who, replica, variables[i]) || ls__given_of(o, gradients[i], &given) ||
            ls__take_parts(who, o, variables[i], cell, &given))
            return NULL;
        parts[i] = ls_leaf(given.gradient);
        parts[count + i] = ls_variable_leaf(ls_value_container(variables[i]));
        if (o->lazy)
            parts[2 * count + i] = ls_leaf(given.touched);
        if (!parts[i] || !parts[count + i] || (o->lazy && !parts[2 * count + i]))
            return NULL;
    }
    return parts ? ls_list(lists * count, parts) : NULL;
}

/* What all replicas gave as leaf `leaf`; a tensor that is one for all of them was given by each. */
static ls_status components(const ls_strategy *s, const ls_value *leaf, ls_tensor **out)
{
    for (int r = 0; r < s->replicas; r++) {
        out[r] = ls__here(ls__leaf_component(leaf, r));
        if (!out[r])
            return ls_error_pending();
    }
    return LS_OK;
}

static ls_value *apply_once(ls_strategy *s, ls_value *arguments, void *user)
{
    ls_optimizer *o = user;
    const int count = ls_length(arguments) / (o->lazy ? 3 : 2), v = s->replicas;
    size_t bytes = sizeof(ls_tensor *) * (size_t)(count * v + 1);
    ls_tensor **gradients = ls__frame_alloc(bytes), **touched = ls__frame_alloc(bytes);
    ls_variable **variables = ls__frame_alloc(sizeof *variables * (size_t)(count + 1));
    if (!gradients || !touched || !variables)
        return NULL;
    for (int i = 0; i < count; i++) {
        variables[i] = ls_leaf_variable(ls_child(arguments, count + i));
        if (!variables[i] || components(s, ls_child(arguments, i), gradients + i * v) ||
            (o->lazy && components(s, ls_child(arguments, 2 * count + i), touched + i * v)))
            return NULL;
    }
    if (ls__apply("ls_apply_gradients", o, v, count, gradients, o->lazy ? touched : NULL,
                  variables))
        return NULL;
    return ls_list(0, NULL);
}

static ls_status apply_here(const char *who, ls_status st, ls_optimizer *o, int count,
                            ls_tensor *const *gradients, ls_variable *const *variables)
{
    ls_replica *replica = ls__hosted();
    if (!replica || replica->strategy->replicas == 1)
        return st ? st : apply_alone("ls_apply_gradients", o, count, gradients, variables);
    char what[64];
    snprintf(what, sizeof what, "%s of optimizer %llu (%s)", who, (unsigned long long)o->number,
             o->name);
    ls_value *arguments =
        st ? NULL : to_meet("ls_apply_gradients", o, replica, count, gradients, variables);
    if (ls__meet(replica, what, apply_once, o, arguments))
        return LS_OK;
    return ls_error_pending() ? ls_error_pending() : LS_CANCELLED;
}

ls_status ls__apply_here(const char *who, ls_status st, ls_optimizer *o, int count,
                         ls_tensor *const *gradients, ls_variable *const *variables)
{
    ls_phase before = ls__sink_phase(LS_PHASE_APPLY);
    st = apply_here(who, st, o, count, gradients, variables);
    ls__sink_phase(before);
    return st;
}

ls_status ls_apply_gradients(ls_optimizer *o, int count, ls_tensor *const *gradients,
                             ls_variable *const *variables)
{
    ls_status st = ls__check_lists("ls_apply_gradients", o, count, gradients, variables);
    if (!st && count == 0)
        st = ls__hint(ls__fail(LS_INVALID, "ls_apply_gradients: 0 variables"),
                      "an update of nothing would count as one; give the variables to update");
    if (!st) {
        LS_FRAME
            st = ls__apply_here("ls_apply_gradients", LS_OK, o, count, gradients, variables);
    }
    return st;
}
