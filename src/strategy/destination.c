/*
 * Values brought to where they are needed. Invariant: a mirrored result is one memory with a
 * handle for each replica, since CPU devices share theirs; a plain one is on one device.
 */
#include <lockstep/extended.h>
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

typedef struct job {
    const ls_strategy *s;
    const char *who;
    ls_reduce_op op;
    const ls_destination *to;
} job;

static ls_value *reduce_leaf(const ls_value *leaf, void *user)
{
    const job *j = user;
    ls__device *device = j->to->components ? ls__device_of_replica(j->s, 0) : j->to->device;
    ls__parts parts;
    if (ls__parts_of(j->s, j->who, leaf, device, &parts))
        return NULL;
    ls_tensor *t = ls__combine(j->s, j->who, j->op, &parts);
    return t ? bring(j->s, t, j->to) : NULL;
}

static ls_value *reduce_to(job *j, const ls_value *value)
{
    if (ls__check_reduce_op(j->who, j->op, true) || ls__check_value(j->who, value) ||
        check_destination(j->s, j->who, j->to))
        return NULL;
    return ls__value_map(value, reduce_leaf, j);
}

ls_value *ls_reduce_to(ls_strategy *s, ls_reduce_op op, ls_value *value,
                       ls_destination *destination)
{
    ls__mode mode;
    if (ls__enter_cross("ls_reduce_to", s, &mode))
        return NULL;
    ls_value *out = reduce_to(&(job){ s, "ls_reduce_to", op, destination }, value);
    ls__mode_pop(&mode);
    return out;
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
    for (int i = 0; out && i < count; i++) {
        ls__error_scope scope;
        ls__error_scope_open(&scope);
        out[i] = reduce_to(&(job){ s, who, op, to[i] }, values[i]);
        if (ls__error_scope_close(&scope, out[i] ? LS_OK : ls_error_pending(), "value %d", i))
            return NULL;
    }
    return out ? ls_list(count, out) : NULL;
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
