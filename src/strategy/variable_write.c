/*
 * Reading and writing variables: what each does depends on where the thread is.
 *
 *                      in a replica                 in ls_update        cross-replica
 *   ON_WRITE  write    a meeting: combined, once    the cell, directly  the cell
 *             read     the cell                     the cell            the cell
 *   own cells write    the replica's cell           the named cell      every cell
 *             read     the replica's cell           the named cell      combined (ON_READ)
 *
 * "Own cells" are ON_READ variables and those of .local_writes. Invariant: a write that fails,
 * whatever it would have written, has written nothing; and all of it is operators on cells, so that
 * a step can be traced.
 */
#include <lockstep/ops.h>
#include <lockstep/tape.h>
#include <stdio.h>

#include "base/status.h"
#include "dispatch/sink.h"
#include "ops/replicas.h"
#include "ops/variable.h"
#include "strategy/context.h"
#include "strategy/run.h"
#include "strategy/strategy.h"
#include "strategy/variable.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

/* The replica of this variable's strategy that this thread is, or NULL. */
static ls_replica *replica_here(const ls_variable *v)
{
    ls_replica *replica = ls__hosted();
    return replica && replica->strategy == v->strategy ? replica : NULL;
}

/* The update that this thread is in, or NULL. */
static const ls__mode *update_here(const ls_variable *v)
{
    const ls__mode *mode = ls__mode_now();
    return mode && mode->why == LS__BY_UPDATE && mode->strategy == v->strategy ? mode : NULL;
}

static ls_status check_own(const char *who, const ls_variable *component, const ls_replica *replica)
{
    if (!replica || replica->id == component->replica)
        return LS_OK;
    return ls__hint(ls__fail(LS_STATE, "%s: '%s' is the copy of replica %d, and this is replica %d",
                             who, component->name, component->replica, replica->id),
                    "a replica has its own copy: use variable '%s'", component->container->name);
}

/* ---- reading -------------------------------------------------------------------------- */

static ls_tensor *combined(ls_variable *v)
{
    ls_reduce_op op = ls__reduce_op_of(v->aggregation);
    if (!op) {
        ls__hint(ls__fail(LS_INVALID,
                          "ls_read: variable '%s' is LS_SYNC_ON_READ and has no "
                          "aggregation: its copies cannot be read as one",
                          v->name),
                 "make it with .aggregation, or read ls_variable_component of it");
        return NULL;
    }
    ls_tensor **copies = ls__frame_alloc(sizeof *copies * (size_t)v->n_cells);
    for (int i = 0; copies && i < v->n_cells; i++) {
        copies[i] = ls__here(ls__cell_read_op(v->cells[i]));
        if (!copies[i] || op == LS_ONLY_FIRST)
            return copies[i];
    }
    /* Not ls_reduce: a variable may outlive its strategy and be read. */
    return copies ? ls__sum_replicas(op, v->n_cells, copies) : NULL;
}

/* The cell that is read here; NULL in *out: all of them, combined. */
static ls_status cell_to_read(ls_variable *v, ls__cell **out)
{
    const ls__mode *update = update_here(v);
    ls_replica *replica = replica_here(v);
    ls_status st = LS_OK;
    if (v->container && ls__has_own_cells(v))
        st = check_own("ls_read", v, replica);
    if (st)
        return st;
    bool combine = ls__has_own_cells(v) && !v->local_writes && !v->container && !replica && !update;
    *out = combine ? NULL
                   : ls__variable_cell(v, replica  ? replica->id
                                          : update ? update->component
                                                   : 0);
    return LS_OK;
}

ls_tensor *ls_read(ls_variable *v)
{
    ls__cell *cell;
    if (ls__check_variable_here("ls_read", v) || cell_to_read(v, &cell))
        return NULL;
    ls_tensor *t = cell ? ls__cell_read_op(cell) : combined(v);
    const ls_replica *replica = ls__hosted();
    if (t && (v->strategy || replica))
        t->device = ls__device_current();
    /* What two replicas read is not one value, although it is the same memory: each may go on to
     * differ, and gradients of one are not the other's. */
    if (t && replica)
        t->id = ls__id_on_replica(t->id, replica->id);
    return t;
}

/* ---- where a write goes ------------------------------------------------------------------- */

static ls_status refuse_in_update(const char *who, const ls_variable *v, const ls__mode *update)
{
    const ls_variable *updating = update->updating;
    return ls__hint(ls__fail(LS_STATE,
                             "%s: '%s' cannot be written in ls_update of variable '%s', "
                             "component %d",
                             who, v->name, updating ? updating->name : "", update->component),
                    "the function writes the component it is given; other variables of replicas' "
                    "copies go with variables of such copies");
}

/* An update runs once per cell of the variable that is updated: it writes the cell it runs for.
 * One that runs once for all replicas writes other variables' cells for all of them, too. */
static ls_status target_in_update(const char *who, ls_variable *v, const ls__mode *update,
                                  ls__target *out)
{
    const ls_variable *updating = update->updating, *whole = v->container ? v->container : v;
    bool once = !updating || updating->n_cells == 1;
    if (v->container && v->replica != update->component)
        return refuse_in_update(who, v, update);
    if (!once && whole->n_cells == 1)
        return refuse_in_update(who, v, update);
    out->first = whole->n_cells > 1 && !once ? update->component : 0;
    out->count = once ? whole->n_cells : 1;
    return LS_OK;
}

static ls_status target_of_component(const char *who, ls_variable *c, const ls_replica *replica,
                                     ls__target *out)
{
    if (!ls__has_own_cells(c))
        return ls__hint(ls__fail(LS_STATE,
                                 "%s: '%s' is a component of variable '%s', which all "
                                 "replicas share",
                                 who, c->name, c->container->name),
                        "write the variable, or the component that ls_update gives its function");
    *out = (ls__target){ .v = c->container, .first = c->replica, .count = 1 };
    return check_own(who, c, replica);
}

static ls_status target_in_replica(const char *who, ls_variable *v, ls_replica *replica,
                                   ls__target *out)
{
    if (ls__has_own_cells(v)) {
        *out = (ls__target){ .v = v, .first = replica->id, .count = 1 };
        return LS_OK;
    }
    if (v->aggregation == LS_AGGREGATE_NONE)
        return ls__hint(ls__fail(LS_INVALID,
                                 "%s: variable '%s' has no aggregation: what the "
                                 "replicas write cannot be combined",
                                 who, v->name),
                        "make it with .aggregation (LS_AGGREGATE_MEAN, say), or with .local_writes "
                        "if each replica shall write its own copy");
    if (replica->strategy->replicas > 1) /* one replica alone meets nobody */
        *out = (ls__target){ .v = v, .replica = replica };
    return LS_OK;
}

ls_status ls__write_target(const char *who, ls_variable *v, ls__target *out)
{
    ls_status st = ls__check_variable_here(who, v);
    if (st)
        return st;
    *out = (ls__target){ .v = v->container ? v->container : v, .count = v->n_cells, .all = true };
    if (!v->strategy) {
        const ls_replica *hosted = ls__hosted();
        if (!hosted || hosted->strategy->replicas == 1)
            return LS_OK;
        return ls__hint(ls__fail(LS_STATE,
                                 "%s: replica %d of %d writes variable '%s', which belongs "
                                 "to no strategy",
                                 who, hosted->id, hosted->strategy->replicas, v->name),
                        "make it in the strategy's scope: LS_SCOPE(s) v = ls_variable_new(...)");
    }
    if (v->strategy->freed)
        return ls__hint(
            ls__fail(LS_STATE, "%s: the strategy of variable '%s' was freed", who, v->name),
            "such a variable can be read and freed only");
    const ls__mode *update = update_here(v);
    ls_replica *replica = replica_here(v);
    if (update) {
        out->all = false;
        return target_in_update(who, v, update, out);
    }
    if (v->container)
        return target_of_component(who, v, replica, out);
    return replica ? target_in_replica(who, v, replica, out) : LS_OK;
}

ls_status ls__meet_to_write(const char *who, const ls__target *target, ls_merge_fn fn, void *user,
                            ls_value *arguments)
{
    char what[160];
    snprintf(what, sizeof what, "%s of variable '%s'", who, target->v->name);
    if (ls__meet_about(target->replica, what, target->v, fn, user, arguments))
        return LS_OK;
    return ls_error_pending() ? ls_error_pending() : LS_CANCELLED;
}

/* ---- writing ------------------------------------------------------------------------------- */

typedef struct write_kind {
    const char *who;
    ls_status (*write)(ls__cell *cell, ls_tensor *value);
} write_kind;

static const write_kind assign = { "ls_assign", ls__cell_assign },
                        assign_value = { "ls_assign_value", ls__cell_assign },
                        assign_add = { "ls_assign_add", ls__cell_assign_add },
                        assign_sub = { "ls_assign_sub", ls__cell_assign_sub };

/* In i64, since V may be more than a u8 holds. */
static ls_tensor *integer_share(int replica, int replicas, ls_tensor *value)
{
    ls_tensor *whole = ls_cast(value, LS_I64);
    ls_tensor *share = ls_div(whole, ls__scalar_like(whole, replicas));
    if (replica == 0)
        share = ls_sub(whole, ls_mul(share, ls__scalar_like(whole, replicas - 1)));
    return ls_cast(share, ls_dtype_of(value));
}

ls_tensor *ls__component_share(const ls_variable *v, int replica, ls_tensor *value)
{
    int n = v->n_components;
    if (!ls__has_own_cells(v) || v->aggregation != LS_AGGREGATE_SUM || n == 1)
        return value;
    if (value && ls_dtype_is_integer(ls_dtype_of(value)))
        return integer_share(replica, n, value);
    return ls_div(value, ls__scalar_like(value, n));
}

/* In cross-replica context a sum has no place to add to: V copies would each add. */
static ls_status check_sum(const write_kind *kind, const ls__target *target)
{
    const ls_variable *v = target->v;
    if (!target->all || kind->write == ls__cell_assign || !ls__has_own_cells(v) ||
        v->aggregation != LS_AGGREGATE_SUM)
        return LS_OK;
    return ls__hint(ls__fail(LS_INVALID, "LS_SYNC_ON_READ with aggregation SUM does not take it in "
                                         "cross-replica context: which copy should it go to?"),
                    "do it in a replica, or ls_assign the whole sum");
}

/* Writes `value`, a leaf that is plain or mirrored, to the cells of the target. */
static ls_status write_cells(const write_kind *kind, const ls__target *target,
                             const ls_value *value)
{
    ls_status st = check_sum(kind, target);
    ls_tensor **shares = ls__frame_alloc(sizeof *shares * (size_t)target->count);
    if (!shares)
        st = LS_NO_MEMORY;
    for (int i = 0; i < target->count && !st; i++) {
        shares[i] = ls__leaf_component(value, target->first + i);
        if (target->all)
            shares[i] = ls__component_share(target->v, target->first + i, shares[i]);
        st = shares[i] ? ls__cell_unshare(target->v->cells[target->first + i]) : ls_error_pending();
    }
    for (int i = 0; i < target->count && !st; i++) /* of one shape: all fail, or none */
        st = kind->write(target->v->cells[target->first + i], shares[i]);
    return st;
}

typedef struct meeting {
    const write_kind *kind;
    ls_variable *v;
} meeting;

/* The function of the meeting: what the replicas gave becomes one tensor, which is written once. */
static ls_value *write_once(ls_strategy *s, ls_value *value, void *user)
{
    const meeting *m = user;
    ls_tensor *x = ls_reduce(s, ls__reduce_op_of(m->v->aggregation), value, LS_NO_AXIS);
    if (!x || m->kind->write(m->v->cells[0], x))
        return NULL;
    return ls_list(0, NULL);
}

/* Refused here and not in the meeting, so that the error names the replica. */
static ls_status check_fits(const ls_variable *v, const ls_tensor *x)
{
    const ls__spec *spec = ls__cell_spec(v->cells[0]);
    if (ls__spec_equal(spec, &x->spec))
        return LS_OK;
    return ls__fail(LS_SHAPE, "a variable of %s cannot take %s", ls__spec_text(spec),
                    ls_describe(x));
}

/* The tensor of a leaf, or the leaf itself when it is mirrored. */
static ls_status check_leaf(const ls_value *leaf)
{
    if (ls_kind_of(leaf) != LS_LEAF || ls__leaf_object(leaf))
        return ls__fail(LS_INVALID, "the value is %s, wants a leaf with a tensor",
                        ls_kind_of(leaf) == LS_LEAF ? "a variable" : "a list or dict");
    if (ls_spread_of(leaf) != LS_SPREAD_PER_REPLICA)
        return LS_OK;
    return ls__hint(ls__fail(LS_INVALID, "expected the value to be mirrored, and it is another one "
                                         "on each replica"),
                    "combine it with ls_reduce or ls_reduce_to first");
}

static ls_status write_here(const write_kind *kind, const ls__target *target, const ls_value *leaf)
{
    const ls_variable *v = target->v;
    ls_status st = check_leaf(leaf);
    if (!st && ls_components(leaf) > 1 && ls_components(leaf) != v->n_components)
        st = ls__fail(LS_INVALID, "the value has %d components, the variable %d",
                      ls_components(leaf), v->n_components);
    for (int i = 0; i < ls_components(leaf) && !st; i++)
        st = check_fits(v, ls__leaf_component(leaf, i));
    return st ? st : write_cells(kind, target, leaf);
}

/* In a replica: what it gives, dense; NULL with the error, so that it arrives as failed. */
static ls_value *to_meet(const ls__target *target, ls_value *leaf)
{
    if (!leaf || check_leaf(leaf))
        return NULL;
    ls_tensor *x = ls_leaf_tensor(leaf);
    if (!x || check_fits(target->v, x))
        return NULL;
    return ls_is_sparse(x) ? ls_leaf(ls_densify(x)) : leaf;
}

/* Errors name the function and the variable. `value` NULL with an error pending is passed on, not
 * replaced. */
static ls_status write(const write_kind *kind, ls_variable *v, ls_value *leaf)
{
    ls__target target;
    ls_status st = ls__write_target(kind->who, v, &target);
    if (st)
        return st;
    if (!leaf && !ls_error_pending())
        ls__fail(LS_INVALID, "%s: variable '%s': the value is NULL", kind->who, v->name);
    if (!leaf && !target.replica)
        return ls_error_pending();
    ls__error_scope scope;
    ls_value *arguments = leaf;
    if (leaf) {
        ls__error_scope_open(&scope);
        if (target.replica)
            arguments = to_meet(&target, leaf);
        else
            st = write_here(kind, &target, leaf);
        st = ls__error_scope_close(&scope, st, "%s: variable '%s'", kind->who, v->name);
    }
    if (!target.replica)
        return st;
    meeting m = { kind, target.v };
    return ls__meet_to_write(kind->who, &target, write_once, &m, arguments);
}

static ls_status write_tensor(const write_kind *kind, ls_variable *v, ls_tensor *value)
{
    ls_status st = LS_OK;
    LS_FRAME
        st = write(kind, v, value ? ls_leaf(value) : NULL);
    return st;
}

ls_status ls_assign(ls_variable *v, ls_tensor *value)
{
    return write_tensor(&assign, v, value);
}

ls_status ls_assign_add(ls_variable *v, ls_tensor *value)
{
    return write_tensor(&assign_add, v, value);
}

ls_status ls_assign_sub(ls_variable *v, ls_tensor *value)
{
    return write_tensor(&assign_sub, v, value);
}

ls_status ls_assign_value(ls_variable *v, ls_value *value)
{
    ls_status st = LS_OK;
    LS_FRAME
        st = write(&assign_value, v, value);
    return st;
}
