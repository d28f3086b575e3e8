/*
 * What an optimizer knows of each variable: its slots, made when they are first needed, and
 * whether its weights decay. Invariant: slots are of the variable's dtype and shape and exist once,
 * however many replicas there are. A variable that was freed leaves its slots until the optimizer
 * goes; no other variable gets them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "ops/variable.h"
#include "strategy/context.h"
#include "strategy/variable.h"
#include "train/optimizer.h"

ls__slot_set *ls__slots_found(const ls_optimizer *o, const ls__cell *cell)
{
    ls__slot_set *set = o->sets;
    while (set && set->variable != ls__cell_serial(cell))
        set = set->next;
    return set;
}

ls_status ls__slots_of(ls_optimizer *o, const char *name, ls__cell *cell, ls__slot_set **out)
{
    *out = ls__slots_found(o, cell);
    if (*out)
        return LS_OK;
    ls__slot_set *set = calloc(1, sizeof *set);
    if (!set)
        return ls__fail_memory(o->name, sizeof *set);
    set->variable = ls__cell_serial(cell);
    set->cells[0] = cell;
    for (int i = 1; i < o->kind->cells; i++) {
        char slot[128]; /* in programs: "w/m" */
        snprintf(slot, sizeof slot, "%s/%s", name, o->kind->slots[i - 1]);
        ls_status st = ls__cell_new(slot, ls__cell_spec(cell), &set->cells[i]);
        if (st) {
            while (--i > 0)
                ls__cell_unref(set->cells[i]);
            free(set);
            return st;
        }
    }
    set->next = o->sets;
    o->sets = set;
    *out = set;
    return LS_OK;
}

void ls__slots_free(ls_optimizer *o)
{
    while (o->sets) {
        ls__slot_set *next = o->sets->next;
        for (int i = 1; i < o->kind->cells; i++)
            ls__cell_unref(o->sets->cells[i]);
        free(o->sets);
        o->sets = next;
    }
}

/* ---- looking at them ------------------------------------------------------------------- */

int ls_slot_count(const ls_optimizer *o)
{
    return o ? o->kind->cells - 1 : 0;
}

static ls_status check_slot(const char *who, const ls_optimizer *o, int slot)
{
    ls_status st = ls__check_optimizer(who, o);
    if (!st && (slot < 0 || slot >= ls_slot_count(o)))
        st = ls__hint(ls__fail(LS_INVALID, "%s: slot %d of %s, which has %d", who, slot, o->name,
                               ls_slot_count(o)),
                      "slots count from 0; plain SGD has none");
    return st;
}

const char *ls_slot_name(const ls_optimizer *o, int slot)
{
    return check_slot("ls_slot_name", o, slot) ? NULL : o->kind->slots[slot];
}

ls_tensor *ls_slot_read(ls_optimizer *o, const ls_variable *variable, int slot)
{
    const char *who = "ls_slot_read";
    ls__cell *cell = NULL;
    ls__slot_set *set = NULL;
    if (check_slot(who, o, slot) || ls__check_variable(who, variable) ||
        ls__check_alone(who, "look at slots between steps, or in a merge function") ||
        ls__shared_cell(who, variable, &cell) || ls__slots_of(o, variable->name, cell, &set))
        return NULL;
    return ls__cell_read_op(set->cells[1 + slot]);
}

/* ---- weights that do not decay ------------------------------------------------------------ */

bool ls__decays(const ls_optimizer *o, const ls_variable *v, const ls__cell *cell)
{
    for (int i = 0; i < o->n_excluded; i++)
        if (o->excluded[i] == ls__cell_serial(cell))
            return false;
    for (int i = 0; i < o->n_excluded_names; i++)
        if (strstr(v->name, o->excluded_names[i]))
            return false;
    return true;
}

static ls_status check_names(const char *who, int count, const char *const *names)
{
    if (count < 0 || (count > 0 && !names))
        return ls__fail(LS_INVALID, "%s: %d names in %s", who, count, names ? "a list" : "NULL");
    for (int i = 0; i < count; i++)
        if (!names[i] || !names[i][0])
            return ls__hint(
                ls__fail(LS_INVALID, "%s: name %d is %s", who, i, names[i] ? "empty" : "NULL"),
                "a name is a part of the names of variables: \"bias\"");
    return LS_OK;
}

/* Room for all that come, so that nothing fails half-way. */
static ls_status make_room(const char *who, ls_optimizer *o, int count, int n_names)
{
    size_t bytes = sizeof *o->excluded * (size_t)(o->n_excluded + count + 1);
    uint64_t *excluded = realloc(o->excluded, bytes);
    if (!excluded)
        return ls__fail_memory(who, bytes);
    o->excluded = excluded;
    bytes = sizeof *o->excluded_names * (size_t)(o->n_excluded_names + n_names + 1);
    char **names = realloc(o->excluded_names, bytes);
    if (!names)
        return ls__fail_memory(who, bytes);
    o->excluded_names = names;
    return LS_OK;
}

static ls_status add_names(const char *who, ls_optimizer *o, int count, const char *const *names)
{
    for (int i = 0; i < count; i++) {
        char *copy = strdup(names[i]);
        if (!copy) {
            while (i-- > 0)
                free(o->excluded_names[o->n_excluded_names + i]);
            return ls__fail_memory(who, strlen(names[i]) + 1);
        }
        o->excluded_names[o->n_excluded_names + i] = copy;
    }
    o->n_excluded_names += count;
    return LS_OK;
}

ls_status ls_exclude_from_weight_decay(ls_optimizer *o, int count, ls_variable *const *variables,
                                       int n_names, const char *const *names)
{
    const char *who = "ls_exclude_from_weight_decay";
    ls_status st = ls__check_lists(who, o, count, variables, variables);
    if (!st)
        st = check_names(who, n_names, names);
    if (!st)
        st = ls__check_alone(who, "call it where the optimizer is made");
    if (!st && (o->traced || ls__has_updated(o)))
        st = ls__hint(ls__fail(LS_STATE, "%s: the optimizer has updated variables", who),
                      "call it before the first update");
    if (!st)
        st = make_room(who, o, count, n_names);
    int n = o ? o->n_excluded : 0;
    for (int i = 0; i < count && !st; i++) {
        ls__cell *cell = NULL;
        st = ls__check_variable(who, variables[i]);
        if (!st)
            st = ls__shared_cell(who, variables[i], &cell);
        if (!st)
            o->excluded[n++] = ls__cell_serial(cell);
    }
    if (!st)
        st = add_names(who, o, n_names, names);
    if (!st)
        o->n_excluded = n;
    return st;
}
