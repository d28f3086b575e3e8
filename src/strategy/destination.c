/*
 * Values brought to where they are needed. Invariant: a mirrored result is one memory with a
 * handle for each replica, since CPU devices share theirs; a plain one is on one device.
 */
#include <lockstep/extended.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "strategy/combine.h"
#include "strategy/context.h"
#include "strategy/strategy.h"
#include "strategy/variable.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

/* A closed frame fills its memory with rubbish, so what is no longer there has no such mark. */
#define LIVE 0x44455354u

struct ls_destination {
    uint32_t live;      /* LIVE until its frame closes */
    int components;     /* of the distributed value or variable; 0: one device */
    ls__device *device; /* then this one */
};

static ls_destination *destination(int components, ls__device *device)
{
    ls_destination *d = ls__frame_alloc(sizeof *d);
    if (d)
        *d = (ls_destination){ LIVE, components, device };
    return d;
}

/* ---- naming a destination -------------------------------------------------------------------- */

ls_destination *ls_at_variable(ls_variable *v)
{
    if (ls__check_variable("ls_at_variable", v))
        return NULL;
    if (v->strategy)
        return destination(v->strategy->replicas, NULL);
    return destination(0, ls__cell_device(ls__variable_cell(v, 0)));
}

ls_destination *ls_at_value(ls_value *value)
{
    if (ls__check_value("ls_at_value", value))
        return NULL;
    if (ls_kind_of(value) != LS_LEAF) {
        ls__hint(ls__fail(LS_INVALID, "ls_at_value: the value is a %s of %d, wants a leaf",
                          ls__value_kind_name(ls_kind_of(value)), ls_length(value)),
                 "a result goes to the devices of one value, variable or device");
        return NULL;
    }
    if (ls__leaf_object(value))
        return ls_at_variable(ls_leaf_variable(value));
    if (ls_spread_of(value) != LS_SPREAD_PLAIN)
        return destination(ls_components(value), NULL);
    return destination(0, ls__leaf_component(value, 0)->device);
}

ls_destination *ls_at_device(const char *device)
{
    ls__device *found = NULL;
    if (!device || !device[strspn(device, " \t")]) {
        ls__hint(ls__fail(LS_INVALID, "ls_at_device: the device is %s", device ? "empty" : "NULL"),
                 "name one, like \"/cpu:0\"");
        return NULL;
    }
    if (strchr(device, ',')) {
        ls__hint(ls__fail(LS_INVALID, "ls_at_device: '%s' is a list, wants one device", device),
                 "for all devices of a strategy give a mirrored value or a variable of it");
        return NULL;
    }
    return ls__device_find(device, &found) ? NULL : destination(0, found);
}

static ls_status check_destination(const ls_strategy *s, const char *who, const ls_destination *d)
{
    if (!d && ls_error_pending())
        return ls_error_pending();
    if (!d)
        return ls__hint(ls__fail(LS_INVALID, "%s: the destination is NULL", who),
                        "make one with ls_at_value, ls_at_variable or ls_at_device");
    if (d->live != LIVE)
        return ls__hint(ls__fail(LS_INVALID, "%s: the destination's frame has closed", who),
                        "make it in the frame that uses it");
    if (d->components == 0 || d->components == s->replicas)
        return LS_OK;
    return ls__hint(ls__fail(LS_INVALID, "%s: a destination of %d replicas, the strategy has %d",
                             who, d->components, s->replicas),
                    "give a value or variable of this strategy");
}

/* ---- bringing it there ----------------------------------------------------------------------- */

static ls_value *bring(const ls_strategy *s, ls_tensor *t, const ls_destination *d)
{
    return d->components ? ls__mirrored_leaf(s, t) : ls_leaf(ls__on_device(t, d->device));
}

/* The leaves of several values, each with the destination of its value. */
typedef struct job {
    const ls_strategy *s;
    const char *who;
    ls_reduce_op op;
    int count; /* values */
    ls_value *const *values;
    ls_destination *const *to;
    bool numbered; /* errors tell which value */
} job;

static ls_status check(const job *j, int i)
{
    ls_status st = ls__check_reduce_op(j->who, j->op, true);
    if (!st)
        st = ls__check_value(j->who, j->values[i]);
    return st ? st : check_destination(j->s, j->who, j->to[i]);
}

static ls_status take(const job *j, int i, const ls_value *leaf, ls__combining *c)
{
    const ls_destination *to = j->to[i];
    ls__device *device = to->components ? ls__device_of_replica(j->s, 0) : to->device;
    *c = (ls__combining){ .out = NULL };
    snprintf(c->who, sizeof c->who, "%s", j->who);
    if (j->numbered)
        snprintf(c->where, sizeof c->where, "value %d", i);
    return ls__parts_of(j->s, j->who, leaf, device, &c->parts);
}

/* Leaves so far; room grows by doubling, since what was given up stays until the frame closes. */
typedef struct leaf_list {
    ls__combining *at;
    int count, room;
} leaf_list;

static ls_status make_room(leaf_list *l, int more)
{
    if (l->room - l->count >= more)
        return LS_OK;
    int room = 2 * l->count + more;
    ls__combining *longer = ls__frame_alloc(sizeof *longer * (size_t)room);
    if (!longer)
        return LS_NO_MEMORY;
    for (int k = 0; k < l->count; k++)
        longer[k] = l->at[k];
    l->at = longer;
    l->room = room;
    return LS_OK;
}

/* Checks value i and appends its leaves to the list. */
static ls_status take_value(const job *j, int i, leaf_list *l)
{
    ls_status st = check(j, i);
    if (st)
        return st;
    int more = ls_leaf_count(j->values[i]);
    const ls_value **leaves = ls__frame_alloc(sizeof *leaves * (size_t)(more + 1));
    if (!leaves || make_room(l, more))
        return LS_NO_MEMORY;
    ls__leaves(j->values[i], leaves);
    for (int k = 0; k < more && !st; k++)
        st = take(j, i, leaves[k], &l->at[l->count++]);
    return st;
}

static ls_status take_numbered(const job *j, int i, leaf_list *l)
{
    if (!j->numbered)
        return take_value(j, i, l);
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    return ls__error_scope_close(&scope, take_value(j, i, l), "value %d", i);
}

typedef struct giving {
    const ls_strategy *s;
    const ls__combining *next;
    const ls_destination *to;
} giving;

static ls_value *give_leaf(const ls_value *leaf, void *user)
{
    giving *g = user;
    (void)leaf;
    return bring(g->s, (g->next++)->out, g->to);
}

/* `out` gets as many values. */
static ls_status reduce_all(const job *j, ls_value **out)
{
    leaf_list l = { .at = NULL };
    for (int i = 0; i < j->count; i++) {
        ls_status st = take_numbered(j, i, &l);
        if (st)
            return st;
    }
    ls_status st = ls__combine_all(j->s, j->op, l.count, l.at);
    giving g = { j->s, l.at, NULL };
    for (int i = 0; i < j->count && !st; i++) {
        g.to = j->to[i];
        out[i] = ls__value_map(j->values[i], give_leaf, &g);
        st = out[i] ? LS_OK : ls_error_pending();
    }
    return st;
}

ls_value *ls_reduce_to(ls_strategy *s, ls_reduce_op op, ls_value *value,
                       ls_destination *destination)
{
    ls__mode mode;
    if (ls__enter_cross("ls_reduce_to", s, &mode))
        return NULL;
    ls_value *out = NULL;
    const job j = { s, "ls_reduce_to", op, 1, &value, &destination, false };
    ls_status st = reduce_all(&j, &out);
    ls__mode_pop(&mode);
    return st ? NULL : out;
}

static ls_value *reduce_each(ls_strategy *s, ls_reduce_op op, int count, ls_value *const *values,
                             ls_destination *const *to)
{
    static const char who[] = "ls_batch_reduce_to";
    if (count < 0 || (count > 0 && (!values || !to))) {
        ls__hint(ls__fail(LS_INVALID, "%s: %d values in %s, destinations in %s", who, count,
                          values ? "a list" : "NULL", to ? "a list" : "NULL"),
                 "each value has its destination");
        return NULL;
    }
    ls_value **out = ls__frame_alloc(sizeof *out * (size_t)(count + 1));
    const job j = { s, who, op, count, values, to, true };
    return out && !reduce_all(&j, out) ? ls_list(count, out) : NULL;
}

ls_value *ls_batch_reduce_to(ls_strategy *s, ls_reduce_op op, int count, ls_value *const *values,
                             ls_destination *const *destinations)
{
    ls__mode mode;
    if (ls__enter_cross("ls_batch_reduce_to", s, &mode))
        return NULL;
    ls_value *out = reduce_each(s, op, count, values, destinations);
    ls__mode_pop(&mode);
    return out;
}

ls_value *ls_mirror_to(ls_strategy *s, ls_tensor *tensor, ls_destination *destination)
{
    static const char who[] = "ls_mirror_to";
    ls__mode mode;
    if (ls__enter_cross(who, s, &mode))
        return NULL;
    ls_value *out = NULL;
    if (!ls__check_tensor(who, "the tensor", tensor) && !check_destination(s, who, destination))
        out = bring(s, tensor, destination);
    ls__mode_pop(&mode);
    return out;
}

ls_status ls_group(ls_strategy *s, ls_value *value)
{
    ls__mode mode;
    ls_status st = ls__enter_cross("ls_group", s, &mode);
    if (st)
        return st;
    st = ls__check_value("ls_group", value);
    if (!st)
        st = ls__check_components(s, "ls_group", value);
    ls__mode_pop(&mode);
    return st;
}
