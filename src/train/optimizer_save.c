/*
 * An optimizer to and from a dict of tensors. Invariants: what is saved depends neither on the placement
 * nor on which slots happen to have been made (zeros are left out); a restore that fails has
 * written nothing, and one that does not writes cells, so that recorded steps follow.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "ops/rate.h"
#include "strategy/context.h"
#include "strategy/strategy.h"
#include "strategy/variable.h"
#include "tensor/tensor.h"
#include "train/entries.h"
#include "train/optimizer.h"

/* ---- settings ------------------------------------------------------------------------------------ */

/* In files: neither their order nor what they mean changes. */
enum { SETTINGS = 12 };
static const char *const setting_names[SETTINGS] = {
    "the kind",         "weight_decay", "clip_value",  "clip_norm",
    "clip_global_norm", "lazy",         "accumulates", "momentum",
    "nesterov",         "beta1",        "beta2",       "epsilon"
};
_Static_assert(LS__UPDATE_SGD == 0 && LS__UPDATE_MOMENTUM == 1 && LS__UPDATE_ADAM == 2,
               "kinds have these numbers in files");

static void settings_of(const ls_optimizer *o, double *out)
{
    const double all[SETTINGS] = { o->kind->id,
                                   o->attrs.weight_decay,
                                   o->attrs.clip_value,
                                   o->clip_global ? 0 : o->clip_norm,
                                   o->clip_global ? o->clip_norm : 0,
                                   o->lazy,
                                   o->accumulates,
                                   o->attrs.momentum,
                                   o->attrs.nesterov != 0,
                                   o->attrs.beta1,
                                   o->attrs.beta2,
                                   o->attrs.epsilon };
    memcpy(out, all, sizeof all);
}

static const char *kind_name(double id)
{
    static const char *const names[] = { "SGD without momentum", "SGD with momentum", "Adam" };
    return id >= 0 && id <= 2 ? names[(int)id] : "one that is not known here";
}

static ls_status check_settings(const char *who, const ls_optimizer *o, const double *saved)
{
    double mine[SETTINGS];
    settings_of(o, mine);
    if (saved[0] != mine[0])
        return ls__hint(ls__fail(LS_INVALID, "%s: the optimizer is %s, what was saved is %s", who,
                                 kind_name(mine[0]), kind_name(saved[0])),
                        "make the optimizer as it was when it was saved");
    for (int i = 1; i < SETTINGS; i++)
        if (saved[i] != mine[i])
            return ls__hint(ls__fail(LS_INVALID, "%s: %s is %.17g, it was saved with %.17g", who,
                                     setting_names[i], mine[i], saved[i]),
                            "make the optimizer as it was when it was saved");
    return LS_OK;
}

/* ---- asked of both ------------------------------------------------------------------------------- */

static ls_status check_place(const char *who, const ls_optimizer *o, int count,
                             ls_variable *const *variables)
{
    ls_status st = ls__check_lists(who, o, count, variables, variables);
    if (!st)
        st = ls__check_alone(who, "save and restore between steps");
    if (!st)
        st = ls__check_known(who);
    for (int i = 0; i < count && !st; i++)
        st = ls__check_variable(who, variables[i]);
    return st;
}

/* The cell that is trained; NULL: it cannot be. */
static ls__cell *trained_cell(const ls_variable *v)
{
    return ls__has_own_cells(v) ? NULL : v->cells[0];
}

static int replicas_of(const ls_variable *v)
{
    return v->strategy ? v->strategy->replicas : 1;
}

/* ---- saving -------------------------------------------------------------------------------------- */

static bool is_zero(const ls__cell *cell)
{
    const size_t bytes = ls__spec_bytes(ls__cell_spec(cell));
    const char *at = ls__cell_data(cell);
    return bytes == 0 || (at[0] == 0 && memcmp(at, at + 1, bytes - 1) == 0);
}

/* "WHAT/WHICH/NAME". */
static ls_status add_cell(ls__entries *e, const char *what, const char *which, const char *name,
                          ls__cell *cell)
{
    if (is_zero(cell))
        return LS_OK;
    return ls__entries_add(e, ls_leaf(ls__cell_read(cell)), "%s/%s/%s", what, which, name);
}

static ls_status add_variable(ls__entries *e, ls_optimizer *o, const ls_variable *v)
{
    ls_status st = LS_OK;
    const ls__cell *cell = trained_cell(v);
    const ls__slot_set *set = cell ? ls__slots_found(o, cell) : NULL;
    for (int i = 1; set && i < o->kind->cells && !st; i++)
        st = add_cell(e, "slots", o->kind->slots[i - 1], v->name, set->cells[i]);
    for (int r = 0; cell && r < replicas_of(v) && !st; r++) {
        char replica[16];
        const ls__part_sum *sum = ls__part_sum_found(o, cell, r);
        snprintf(replica, sizeof replica, "%d", r);
        if (sum)
            st = add_cell(e, "sums", replica, v->name, sum->cell);
    }
    return st;
}

ls_value *ls_optimizer_save(ls_optimizer *o, int count, ls_variable *const *variables)
{
    if (check_place("ls_optimizer_save", o, count, variables))
        return NULL;
    double settings[SETTINGS];
    settings_of(o, settings);
    ls__entries e = { 0 };
    if (ls__entries_add(&e, ls_leaf(ls__cell_read(o->iterations)), "iterations") ||
        ls__entries_add(&e, ls_leaf(ls__cell_read(o->rate)), "rate") ||
        ls__entries_add(&e, ls_leaf(ls_from(LS_F64, LS_DIMS(SETTINGS), settings)), "settings"))
        return NULL;
    for (int i = 0; i < count; i++)
        if (add_variable(&e, o, variables[i]))
            return NULL;
    return ls__entries_dict(&e);
}

/* ---- restoring: what will be written, found and checked before anything is ------------------------- */

typedef struct plan {
    const char *who;
    ls_optimizer *o;
    int count;
    ls_variable *const *variables;
    ls__cell_writes *writes;
} plan;

static ls_status unfit(const plan *p, const char *key, const ls_tensor *t, const char *want)
{
    return ls__hint(
        ls__fail(LS_SHAPE, "%s: '%s' was saved as %s, wants %s", p->who, key, ls_describe(t), want),
        "restore into the model that was saved");
}

/* Something that every saved optimizer has. */
static ls_tensor *number(const plan *p, const ls_value *saved, const char *key,
                         const ls__spec *want)
{
    const ls_value *entry = ls_get(saved, key);
    ls_tensor *t = entry ? ls_leaf_tensor(entry) : NULL;
    if (!t || ls__check_tensor(p->who, key, t))
        return NULL;
    if (!ls__spec_equal(&t->spec, want)) {
        unfit(p, key, t, ls__spec_text(want));
        return NULL;
    }
    return t;
}

static ls_status plan_numbers(plan *p, const ls_value *saved)
{
    static const ls__spec settings = { .dtype = LS_F64, .rank = 1, .dims = { SETTINGS } };
    const ls_tensor *compared = number(p, saved, "settings", &settings);
    ls_tensor *done = number(p, saved, "iterations", ls__cell_spec(p->o->iterations));
    ls_tensor *rate = number(p, saved, "rate", ls__cell_spec(p->o->rate));
    if (!compared || !done || !rate)
        return ls_error_pending();
    ls_status st = check_settings(p->who, p->o, ls__data(compared));
    if (!st && (*(const int64_t *)ls__data(done) < 0 || !ls__are_schedule_numbers(ls__data(rate))))
        st = ls__fail(LS_CORRUPT, "%s: the saved %s", p->who,
                      *(const int64_t *)ls__data(done) < 0 ? "iterations are below 0"
                                                           : "rate is none");
    ls__cell_writes_add(p->writes, p->o->iterations, done);
    ls__cell_writes_add(p->writes, p->o->rate, rate);
    return st;
}

static const ls_variable *named(const plan *p, const char *name)
{
    for (int i = 0; i < p->count; i++)
        if (strcmp(p->variables[i]->name, name) == 0)
            return p->variables[i];
    return NULL;
}

/* "slots/m/w" or "sums/1/w": the variable it is of, and the place of its cell in `out`. */
static ls_status find_cell(const plan *p, const char *key, ls__cell **variable, ls__cell **out)
{
    const bool slot = strncmp(key, "slots/", 6) == 0, sum = strncmp(key, "sums/", 5) == 0;
    const char *which = key + (slot ? 6 : 5), *end = slot || sum ? strchr(which, '/') : NULL;
    if (!end)
        return ls__hint(ls__fail(LS_INVALID, "%s: '%s' is nothing of an optimizer", p->who, key),
                        "give what ls_optimizer_save gave");
    const ls_variable *v = named(p, end + 1);
    *variable = v ? trained_cell(v) : NULL;
    if (!*variable)
        return ls__hint(ls__fail(LS_NOT_FOUND, "%s: '%s' is saved, and no variable '%s' is given%s",
                                 p->who, key, end + 1, v ? " that can be trained" : ""),
                        "give all variables that the saved optimizer trained, under their names");
    for (int i = 1; slot && i < p->o->kind->cells; i++)
        if (strlen(p->o->kind->slots[i - 1]) == (size_t)(end - which) &&
            strncmp(p->o->kind->slots[i - 1], which, (size_t)(end - which)) == 0) {
            ls__slot_set *set = NULL;
            ls_status st = ls__slots_of(p->o, v->name, *variable, &set);
            *out = st ? NULL : set->cells[i];
            return st;
        }
    char *after = NULL;
    const long replica = sum && which[0] >= '0' && which[0] <= '9' ? strtol(which, &after, 10) : -1;
    if (replica < 0 || after != end || replica >= replicas_of(v) || !p->o->accumulates)
        return ls__fail(LS_INVALID, "%s: '%s' is saved, which an %s on %d replicas has not", p->who,
                        key, p->o->name, replicas_of(v));
    ls__part_sum *found = NULL;
    ls_status st = ls__part_sum_of(p->o, v->name, *variable, (int)replica, &found);
    *out = st ? NULL : found->cell;
    return st;
}

static ls_status plan_entry(plan *p, const char *key, const ls_value *entry)
{
    ls__cell *variable = NULL, *cell = NULL;
    ls_status st = find_cell(p, key, &variable, &cell);
    ls_tensor *t = st ? NULL : ls_leaf_tensor(entry);
    if (!st)
        st = t ? ls__check_tensor(p->who, key, t) : ls_error_pending();
    if (!st && (!ls__is_dense(t) || !ls__spec_equal(&t->spec, ls__cell_spec(cell))))
        st = unfit(p, key, t, ls__spec_text(ls__cell_spec(cell)));
    if (!st)
        ls__cell_writes_add(p->writes, cell, t);
    return st;
}

static ls_status plan_entries(plan *p, const ls_value *saved)
{
    ls_status st = LS_OK;
    for (int i = 0; i < ls_length(saved) && !st; i++) {
        const char *key = ls_key(saved, i);
        if (strcmp(key, "iterations") != 0 && strcmp(key, "rate") != 0 &&
            strcmp(key, "settings") != 0)
            st = plan_entry(p, key, ls_child(saved, i));
    }
    return st;
}

/* What is there and was not saved is zeros. */
static void plan_zero(plan *p, ls__cell *cell)
{
    for (int i = 0; i < p->writes->count; i++)
        if (p->writes->cells[i] == cell)
            return;
    ls__cell_writes_add(p->writes, cell, NULL);
}

static void plan_zeros(plan *p)
{
    for (int i = 0; i < p->count; i++) {
        const ls_variable *v = p->variables[i];
        const ls__cell *cell = trained_cell(v);
        const ls__slot_set *set = cell ? ls__slots_found(p->o, cell) : NULL;
        for (int k = 1; set && k < p->o->kind->cells; k++)
            plan_zero(p, set->cells[k]);
        for (int r = 0; cell && r < replicas_of(v); r++) {
            const ls__part_sum *sum = ls__part_sum_found(p->o, cell, r);
            if (sum)
                plan_zero(p, sum->cell);
        }
    }
}

static ls_status make_plan(plan *p, const ls_value *saved)
{
    size_t most = 2 + (size_t)ls_length(saved);
    for (int i = 0; i < p->count; i++)
        most += LS__MOST_SLOTS + (size_t)replicas_of(p->variables[i]);
    ls_status st = ls__cell_writes_room(p->writes, most);
    if (!st)
        st = plan_numbers(p, saved);
    if (!st)
        st = plan_entries(p, saved);
    if (!st)
        plan_zeros(p);
    return st ? st : ls__cell_writes_unshare(p->writes);
}

ls_status ls__optimizer_plan(const char *who, ls_optimizer *o, int count,
                             ls_variable *const *variables, const ls_value *saved,
                             ls__cell_writes *out)
{
    ls_status st = check_place(who, o, count, variables);
    if (!st && ls_kind_of(saved) != LS_DICT)
        st = ls_error_pending() ? ls_error_pending()
                                : ls__hint(ls__fail(LS_INVALID, "%s: `saved` is %s", who,
                                                    saved ? "no dict" : "NULL"),
                                           "it is what ls_optimizer_save gave");
    plan p = { .who = who, .o = o, .count = count, .variables = variables, .writes = out };
    if (!st)
        st = make_plan(&p, saved);
    /* What it was bound to by an update that failed counts no more, once iterations are restored. */
    if (!st && !ls__has_updated(o) && !o->traced)
        o->bound = false;
    return st;
}

ls_status ls_optimizer_restore(ls_optimizer *o, int count, ls_variable *const *variables,
                               ls_value *saved)
{
    ls_status st = LS_OK;
    LS_FRAME {
        ls__cell_writes writes;
        st = ls__optimizer_plan("ls_optimizer_restore", o, count, variables, saved, &writes);
        if (!st)
            ls__cell_writes_do(&writes);
    }
    return st;
}
