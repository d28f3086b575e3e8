/*
 * Variables to and from a dict of tensors. Invariants: what is saved does not depend on the
 * placement, and a restored run goes on with the bits it had (copies of replicas are saved as
 * copies); a restore that fails has written nothing.
 */
#include <string.h>

#include "base/status.h"
#include "dispatch/sink.h"
#include "ops/variable.h"
#include "strategy/context.h"
#include "strategy/variable.h"
#include "tensor/tensor.h"

static ls_status check_place(const char *who, int count, ls_variable *const *variables)
{
    const ls__mode *mode = ls__mode_now();
    if (mode && (mode->replica || mode->why == LS__BY_UPDATE))
        return ls__hint(ls__fail(LS_STATE, "%s: called %s", who,
                                 mode->replica ? "by a replica of a run" : "in ls_update"),
                        "save and restore between runs");
    if (ls__sink_get())
        return ls__hint(ls__fail(LS_STATE, "%s: called while a step is traced", who),
                        "save and restore outside of the traced function");
    if (count < 0 || (count > 0 && !variables))
        return ls__fail(LS_INVALID, "%s: %d variables in %s", who, count,
                        variables ? "a list" : "NULL");
    for (int i = 0; i < count; i++) {
        ls_status st = ls__check_variable_here(who, variables[i]);
        if (!st && variables[i]->container)
            st = ls__hint(ls__fail(LS_INVALID, "%s: '%s' is a component of variable '%s'", who,
                                   variables[i]->name, variables[i]->container->name),
                          "give the variable: ls_value_container(component)");
        if (st)
            return st;
    }
    return LS_OK;
}

/* ---- saving ---------------------------------------------------------------------------- */

typedef struct entries {
    int count;
    const char **keys;
    ls_value **items;
} entries;

static ls_status add(entries *e, const char *key, ls_tensor *t)
{
    ls_value *leaf = t ? ls_leaf(t) : NULL;
    if (!key || !leaf)
        return ls_error_pending() ? ls_error_pending() : LS_NO_MEMORY;
    for (int i = 0; i < e->count; i++)
        if (strcmp(e->keys[i], key) == 0)
            return ls__hint(ls__fail(LS_INVALID,
                                     "ls_variables_save: two variables under the name "
                                     "'%s'",
                                     key),
                            "each variable is saved once, under a name of its own");
    e->keys[e->count] = key;
    e->items[e->count++] = leaf;
    return LS_OK;
}

static ls_status add_variable(entries *e, ls_variable *v)
{
    ls_status st = LS_OK;
    if (!ls__has_own_cells(v) || v->aggregation != LS_AGGREGATE_NONE)
        st = add(e, v->name, ls_read(v));
    for (int i = 0; ls__has_own_cells(v) && i < v->n_cells && !st; i++)
        st = add(e, ls__copy_name(v->name, i), ls__cell_read_op(v->cells[i]));
    return st;
}

ls_value *ls_variables_save(int count, ls_variable *const *variables)
{
    if (check_place("ls_variables_save", count, variables))
        return NULL;
    size_t most = 1;
    for (int i = 0; i < count; i++)
        most += (size_t)variables[i]->n_cells + 1;
    entries e = { 0, ls__frame_alloc(most * sizeof *e.keys),
                  ls__frame_alloc(most * sizeof *e.items) };
    if (!e.keys || !e.items)
        return NULL;
    for (int i = 0; i < count; i++)
        if (add_variable(&e, variables[i]))
            return NULL;
    return ls_dict(e.count, e.keys, e.items);
}

/* ---- restoring --------------------------------------------------------------------------- */

/* What will be written is found and checked before anything is. */
typedef ls__cell_writes plan;

ls_status ls__cell_writes_room(ls__cell_writes *w, size_t most)
{
    *w = (ls__cell_writes){ 0, ls__frame_alloc((most + 1) * sizeof *w->cells),
                            ls__frame_alloc((most + 1) * sizeof *w->values) };
    return w->cells && w->values ? LS_OK : LS_NO_MEMORY;
}

void ls__cell_writes_add(ls__cell_writes *w, ls__cell *cell, ls_tensor *value)
{
    w->cells[w->count] = cell;
    w->values[w->count++] = value;
}

ls_status ls__cell_writes_unshare(const ls__cell_writes *w)
{
    ls_status st = LS_OK;
    for (int i = 0; i < w->count && !st; i++)
        st = ls__cell_unshare(w->cells[i]);
    return st;
}

void ls__cell_writes_do(const ls__cell_writes *w)
{
    for (int i = 0; i < w->count; i++) {
        const size_t bytes = ls__spec_bytes(ls__cell_spec(w->cells[i]));
        void *at = ls__cell_write(w->cells[i]);
        if (at && w->values[i])
            memcpy(at, ls__data(w->values[i]), bytes);
        else if (at)
            memset(at, 0, bytes);
    }
}

/* The entry, or NULL (no error). */
static ls_value *find(const ls_value *saved, const char *key)
{
    for (int i = 0; key && i < ls_length(saved); i++)
        if (strcmp(ls_key(saved, i), key) == 0)
            return ls_child(saved, i);
    return NULL;
}

/* `entry` for cell i of the variable: as it is, or the share of it that is the cell's. */
static ls_status take(plan *p, const ls_variable *v, int i, const char *key, const ls_value *entry,
                      bool share)
{
    const ls__spec *spec = ls__cell_spec(v->cells[i]);
    if (ls_kind_of(entry) != LS_LEAF)
        return ls__fail(LS_SHAPE, "ls_variables_restore: '%s' is no tensor but a nest", key);
    ls_tensor *t = ls_leaf_tensor(entry);
    if (!t)
        return ls_error_pending();
    if (!ls__is_dense(t))
        return ls__fail(LS_SHAPE, "ls_variables_restore: '%s' is no dense tensor of numbers", key);
    if (!ls__spec_equal(spec, &t->spec))
        return ls__hint(ls__fail(LS_SHAPE,
                                 "ls_variables_restore: variable '%s' is %s, and '%s' was "
                                 "saved as %s",
                                 v->name, ls__spec_text(spec), key, ls_describe(t)),
                        "restore into the model that was saved");
    ls_tensor *mine = share ? ls__component_share(v, i, t) : t;
    if (!mine)
        return ls_error_pending();
    ls__cell_writes_add(p, v->cells[i], mine);
    return LS_OK;
}

/* Whether there are copies of exactly as many replicas as there are now. */
static bool has_copies(const ls_value *saved, const ls_variable *v)
{
    for (int i = 0; i < v->n_cells; i++)
        if (!find(saved, ls__copy_name(v->name, i)))
            return false;
    return !find(saved, ls__copy_name(v->name, v->n_cells));
}

static ls_status plan_variable(plan *p, const ls_value *saved, const ls_variable *v)
{
    ls_status st = LS_OK;
    bool copies = ls__has_own_cells(v) && has_copies(saved, v);
    if (ls_error_pending())
        return ls_error_pending(); /* of names, for which there was no memory */
    ls_value *whole = find(saved, v->name);
    if (!copies && !whole && ls__has_own_cells(v) && find(saved, ls__copy_name(v->name, 0)))
        return ls__hint(ls__fail(LS_NOT_FOUND,
                                 "ls_variables_restore: no '%s', and the copies of it "
                                 "are not of %d replicas",
                                 v->name, v->n_cells),
                        "without an aggregation it is restored on as many replicas as it was saved "
                        "on");
    if (!copies && !whole)
        return ls__hint(ls__fail(LS_NOT_FOUND, "ls_variables_restore: no '%s'", v->name),
                        "names must be those the variables were saved under");
    for (int i = 0; i < v->n_cells && !st; i++) {
        const char *key = copies ? ls__copy_name(v->name, i) : v->name;
        st = take(p, v, i, key, copies ? find(saved, key) : whole, !copies);
    }
    return st;
}

static ls_status make_plan(int count, ls_variable *const *variables, const ls_value *saved, plan *p)
{
    size_t most = 0;
    for (int i = 0; i < count; i++)
        most += (size_t)variables[i]->n_cells;
    ls_status st = ls__cell_writes_room(p, most);
    for (int i = 0; i < count && !st; i++) {
        ls__target target; /* may it be written here? */
        st = ls__write_target("ls_variables_restore", variables[i], &target);
        if (!st)
            st = plan_variable(p, saved, variables[i]);
    }
    return st ? st : ls__cell_writes_unshare(p);
}

ls_status ls__variables_plan(int count, ls_variable *const *variables, const ls_value *saved,
                             ls__cell_writes *out)
{
    ls_status st = check_place("ls_variables_restore", count, variables);
    if (!st && ls_kind_of(saved) != LS_DICT)
        st = ls_error_pending()
                 ? ls_error_pending()
                 : ls__hint(ls__fail(LS_INVALID, "ls_variables_restore: `saved` is %s",
                                     saved ? "no dict" : "NULL"),
                            "it is what ls_variables_save gave");
    return st ? st : make_plan(count, variables, saved, out);
}

ls_status ls_variables_restore(int count, ls_variable *const *variables, ls_value *saved)
{
    ls_status st = LS_OK;
    LS_FRAME {
        plan p;
        st = ls__variables_plan(count, variables, saved, &p);
        if (!st)
            ls__cell_writes_do(&p);
    }
    return st;
}
