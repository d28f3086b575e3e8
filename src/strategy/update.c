/*
 * Updating: a function that may write the components of a variable, called once per cell. With
 * memory that all replicas share that is one call, whose result is every replica's.
 */
#include <lockstep/extended.h>
#include <stdio.h>

#include "base/status.h"
#include "strategy/combine.h"
#include "strategy/context.h"
#include "strategy/strategy.h"
#include "strategy/variable.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

static ls_status check_owner(const char *who, const ls_strategy *s, const ls_variable *v)
{
    ls_status st = ls__check_variable(who, v);
    if (st)
        return st;
    if (v->container)
        return ls__hint(ls__fail(LS_INVALID, "%s: '%s' is a component of variable '%s'", who,
                                 v->name, v->container->name),
                        "give the variable: ls_value_container(component)");
    if (ls_variable_strategy(v) == s)
        return LS_OK;
    return ls__hint(ls__fail(LS_INVALID, "%s: variable '%s' was not made in the scope of %s", who,
                             v->name, ls__strategy_text(s)),
                    "make it there: LS_SCOPE(s) v = ls_variable_new(...)");
}

/* ---- arguments ----------------------------------------------------------------------------- */

/* A leaf that is another tensor on each replica has no place in a call made once for all: says
 * where it is. `path` grows on the way down. */
static ls_status refuse_spread(const char *who, const ls_value *v, char *path, size_t room,
                               size_t at)
{
    if (ls_kind_of(v) == LS_LEAF) {
        if (ls_spread_of(v) != LS_SPREAD_PER_REPLICA)
            return LS_OK;
        return ls__hint(ls__fail(LS_INVALID,
                                 "%s: '%s' is per-replica, wants mirrored or plain "
                                 "values",
                                 who, path),
                        "combine it first: ls_reduce_to(s, LS_SUM, value, ls_at_variable(v))");
    }
    ls_status st = LS_OK;
    for (int i = 0; i < ls_length(v) && !st; i++) {
        int written = ls_kind_of(v) == LS_DICT ? snprintf(path + at, room - at, ".%s", ls_key(v, i))
                                               : snprintf(path + at, room - at, "[%d]", i);
        size_t next = at + (size_t)written < room ? at + (size_t)written : room - 1;
        st = refuse_spread(who, ls_child(v, i), path, room, next);
    }
    path[at < room ? at : room - 1] = '\0';
    return st;
}

static ls_status check_arguments(const char *who, const ls_strategy *s, const ls_value *arguments)
{
    char path[256] = "arguments";
    if (!ls_kind_of(arguments)) {
        if (ls_error_pending())
            return ls_error_pending();
        return ls__hint(ls__fail(LS_INVALID, "%s: the arguments are %s", who,
                                 arguments ? "of a frame that has closed" : "NULL"),
                        "ls_list(0, NULL) stands for none");
    }
    ls_status st = refuse_spread(who, arguments, path, sizeof path, 9);
    return st ? st : ls__check_components(s, who, arguments);
}

/* ---- calling ------------------------------------------------------------------------------- */

/* One of ls_update's functions, or the step of ls_update_non_slot. */
typedef struct call {
    const char *who;
    ls_strategy *s;
    ls_variable *v; /* NULL: non-slot */
    ls_update_fn update;
    ls_step step;
    void *user;
    ls_value *arguments;
} call;

/* The component a replica has, on this thread's device: replicas of one process share memory.
 * Unlike ls_select's it keeps its identity, since no replica goes on with it. */
static ls_value *component_here(const ls_value *leaf, void *user)
{
    if (ls__leaf_object(leaf))
        return ls_variable_leaf(ls__leaf_object(leaf));
    ls_tensor *here = ls__here(ls__leaf_component(leaf, *(const int *)user));
    return here ? ls_leaf(here) : NULL;
}

static ls_value *call_inside(const call *c, int component)
{
    ls_value *mine = ls__value_map(c->arguments, component_here, &component);
    if (!mine)
        return NULL;
    ls_value *result = c->v ? c->update(ls_variable_component(c->v, component), mine, c->user)
                            : c->step(mine, c->user);
    if (ls_error_pending())
        return NULL;
    if (!result)
        ls__hint(ls__fail(LS_INVALID, "the function returned NULL"),
                 "return ls_list(0, NULL) when there is nothing to return");
    return result ? ls_value_hand_up(result) : NULL;
}

/* The function for one component, in its mode and on its device. */
static ls_value *call_for(const call *c, int component, ls__device *device)
{
    const ls__mode *around = ls__mode_now();
    ls__mode mode = { .strategy = c->s,
                      .run = around ? around->run : NULL,
                      .why = LS__BY_UPDATE,
                      .updating = c->v,
                      .component = component };
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls__device *before = ls__device_use(device);
    ls__mode_push(&mode);
    ls_value *result = NULL;
    LS_FRAME
        result = call_inside(c, component);
    ls__mode_pop(&mode);
    ls__device_use(before);
    ls_status st = ls_error_pending();
    if (c->v)
        st = ls__error_scope_close(&scope, st, "%s of variable '%s'", c->who, c->v->name);
    else
        st = ls__error_scope_close(&scope, st, "%s", c->who);
    return st ? NULL : result;
}

/* ---- results ---------------------------------------------------------------------------------- */

/* Leaves of V results side by side become one mirrored leaf, each on its replica's device. */
static ls_value *mirror_leaf(int count, const ls_value *const *leaves, void *user)
{
    const ls_strategy *s = user;
    ls_variable *object = ls__leaf_object(leaves[0]);
    if (object)
        return ls_variable_leaf(count > 1 ? ls_value_container(object) : object);
    ls_tensor **tensors = ls__frame_alloc(sizeof *tensors * (size_t)count);
    for (int i = 0; tensors && i < count; i++) {
        ls_tensor *t = ls__leaf_component(leaves[i], i);
        tensors[i] = t ? ls__same_value(t) : NULL;
        if (!tensors[i])
            return NULL;
        tensors[i]->device = ls__device_of_replica(s, i);
    }
    return tensors ? ls__leaf_spread(LS_SPREAD_MIRRORED, count, tensors) : NULL;
}

/* A value of V components, or a list of V. */
static ls_value *grouped(const call *c, ls_value *const *results, bool group)
{
    int n = c->s->replicas;
    if (group && n == 1)
        return results[0];
    if (group)
        return ls__values_zip(n, results, "the results of the function", mirror_leaf, c->s);
    return ls_list(n, results);
}

/* Calls the function `calls` times, 1 or V. */
static ls_value *update(const call *c, int calls, ls__device *device, bool group)
{
    int n = c->s->replicas;
    ls_value **results = ls__frame_alloc(sizeof *results * (size_t)n);
    if (!results || check_arguments(c->who, c->s, c->arguments))
        return NULL;
    for (int i = 0; i < n; i++) {
        ls__device *at = ls__device_of_replica(c->s, i);
        if (i < calls)
            results[i] = call_for(c, i, device ? device : at);
        else { /* what the one call gave, on this replica's device */
            ls__device *before = ls__device_use(at);
            results[i] = ls__value_map(results[0], component_here, &i);
            ls__device_use(before);
        }
        if (!results[i])
            return NULL;
    }
    return grouped(c, results, group);
}

ls_value *ls_update(ls_strategy *s, ls_variable *v, ls_update_fn fn, void *user,
                    ls_value *arguments, bool group)
{
    ls__mode mode;
    if (ls__enter_cross("ls_update", s, &mode))
        return NULL;
    ls_value *result = NULL;
    call c = {
        .who = "ls_update", .s = s, .v = v, .update = fn, .user = user, .arguments = arguments
    };
    if (!fn)
        ls__fail(LS_INVALID, "ls_update: the function is NULL");
    else if (!check_owner("ls_update", s, v))
        result = update(&c, v->n_cells, NULL, group);
    ls__mode_pop(&mode);
    return result;
}

/* ---- without a variable --------------------------------------------------------------------- */

static ls_status find_device(const ls_strategy *s, const char *name, ls__device **out)
{
    if (!name)
        return ls__fail(LS_INVALID, "ls_update_non_slot: a device is NULL");
    ls_status st = ls__device_find(name, out);
    if (st)
        return st;
    int count;
    const char *const *names = ls_non_slot_devices(s, &count);
    for (int i = 0; i < count; i++) {
        ls__device *known;
        if (!ls__device_find(names[i], &known) && known == *out)
            return LS_OK;
    }
    return ls__hint(ls__fail(LS_INVALID, "ls_update_non_slot: '%s' is no device of %s", name,
                             ls__strategy_text(s)),
                    "give devices of ls_non_slot_devices");
}

/* All devices there are share this process's memory: one call, on the first. */
static ls_value *update_non_slot(const call *c, int count, const char *const *devices, bool group)
{
    ls__device *first = NULL, *device;
    if (count < 1 || !devices) {
        ls__hint(ls__fail(LS_INVALID, "ls_update_non_slot: %d devices in %s", count,
                          devices ? "a list" : "NULL"),
                 "give one device or more of ls_non_slot_devices");
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        if (find_device(c->s, devices[i], &device))
            return NULL;
        first = first ? first : device;
    }
    return update(c, 1, first, group);
}

ls_value *ls_update_non_slot(ls_strategy *s, int count, const char *const *devices, ls_step fn,
                             void *user, ls_value *arguments, bool group)
{
    ls__mode mode;
    if (ls__enter_cross("ls_update_non_slot", s, &mode))
        return NULL;
    ls_value *result = NULL;
    call c = {
        .who = "ls_update_non_slot", .s = s, .step = fn, .user = user, .arguments = arguments
    };
    if (!fn)
        ls__fail(LS_INVALID, "ls_update_non_slot: the function is NULL");
    else
        result = update_non_slot(&c, count, devices, group);
    ls__mode_pop(&mode);
    return result;
}

/* ---- variables ---------------------------------------------------------------------------------- */

ls_tensor *ls_read_var(ls_strategy *s, ls_variable *v)
{
    ls__mode mode;
    if (ls__enter_cross("ls_read_var", s, &mode))
        return NULL;
    ls_tensor *t = check_owner("ls_read_var", s, v) ? NULL : ls_read(v);
    ls__mode_pop(&mode);
    return t;
}

bool ls_variable_created_in_scope(const ls_strategy *s, const ls_variable *v)
{
    return s && v && ls_variable_strategy(v) == s;
}

/* A thread is in one strategy at a time, so what is open belongs to one. Where variables are
 * follows from their strategy alone; what remains is to hold the caller to the rules. */
static _Thread_local struct {
    uint64_t strategy; /* its serial */
    int open;
} colocation;

static ls_status check_scope(const char *who, ls_strategy *s)
{
    ls_status st = ls__check_strategy(who, s);
    if (st)
        return st;
    const ls__mode *mode = ls__mode_now();
    if (!mode || mode->strategy != s || mode->replica)
        return ls__hint(
            ls__fail(LS_STATE, "%s: not inside the scope of %s", who, ls__strategy_text(s)),
            "call it in LS_SCOPE(s) { ... }");
    if (colocation.strategy != s->serial)
        colocation.open = 0; /* the scope they were opened in was left */
    colocation.strategy = s->serial;
    return LS_OK;
}

ls_status ls_colocate_begin(ls_strategy *s, ls_variable *v)
{
    ls_status st = check_scope("ls_colocate_begin", s);
    if (!st)
        st = check_owner("ls_colocate_begin", s, v);
    if (!st)
        colocation.open++;
    return st;
}

ls_status ls_colocate_end(ls_strategy *s)
{
    ls_status st = check_scope("ls_colocate_end", s);
    if (st)
        return st;
    if (colocation.open == 0)
        return ls__hint(ls__fail(LS_STATE, "ls_colocate_end: none was begun"),
                        "it ends what ls_colocate_begin began");
    colocation.open--;
    return LS_OK;
}
