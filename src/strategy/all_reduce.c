/*
 * ls_all_reduce: replicas meet, what each of them has is added up once, and all get the sum.
 *
 * No gradient flows through a meeting; the tape of each replica notes the whole as one call
 * instead, whose gradient is the same all-reduce of the gradients: replica i's input is in the
 * result of every replica, so every replica's gradient comes back to it.
 *
 *     y_j = x_0 + x_1          dx_i = dy_0 + dy_1        (SUM; MEAN is both halved)
 */
#include <lockstep/ops.h>
#include <lockstep/tape.h>
#include <lockstep/variable.h>
#include <stdio.h>

#include "base/status.h"
#include "dispatch/tape.h"
#include "strategy/combine.h"
#include "strategy/context.h"
#include "strategy/run.h"
#include "strategy/strategy.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

typedef struct all_reduce_attrs {
    int64_t op;
} all_reduce_attrs;

/* ---- in the meeting --------------------------------------------------------------------------- */

/* The next of the leaves that were combined, on every replica. */
typedef struct giving {
    const ls_strategy *s;
    const ls__combining *next;
} giving;

static ls_value *give_leaf(const ls_value *leaf, void *user)
{
    giving *g = user;
    (void)leaf;
    return ls__mirrored_leaf(g->s, (g->next++)->out);
}

/* A leaf that is one tensor for all is still V of them here: each replica gave it. */
static ls_status take_leaf(const ls_strategy *s, const ls_value *leaf, int number, int of,
                           ls__combining *c)
{
    if (of > 1)
        snprintf(c->who, sizeof c->who, "leaf %d of %d", number, of);
    else
        snprintf(c->who, sizeof c->who, "the value");
    ls_status st = ls__parts_of(s, c->who, leaf, ls__device_of_replica(s, 0), &c->parts);
    if (st || c->parts.spread == LS_SPREAD_PER_REPLICA)
        return st;
    ls_tensor *same = c->parts.at[0];
    c->parts = (ls__parts){ LS_SPREAD_PER_REPLICA, s->replicas,
                            ls__frame_alloc(sizeof same * (size_t)s->replicas) };
    for (int i = 0; c->parts.at && i < s->replicas; i++)
        c->parts.at[i] = same;
    return c->parts.at ? LS_OK : LS_NO_MEMORY;
}

static ls_value *merge(ls_strategy *s, ls_reduce_op op, const ls_value *arguments)
{
    int n = ls_leaf_count(arguments);
    const ls_value **leaves = ls__frame_alloc(sizeof *leaves * (size_t)(n + 1));
    ls__combining *list = ls__frame_alloc(sizeof *list * (size_t)(n + 1));
    if (!leaves || !list)
        return NULL;
    ls__leaves(arguments, leaves);
    for (int i = 0; i < n; i++) {
        list[i] = (ls__combining){ .out = NULL };
        if (take_leaf(s, leaves[i], i, n, &list[i]))
            return NULL;
    }
    giving g = { s, list };
    return ls__combine_all(s, op, n, list) ? NULL : ls__value_map(arguments, give_leaf, &g);
}

static ls_value *merge_sum(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)user;
    return merge(s, LS_SUM, arguments);
}

static ls_value *merge_mean(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)user;
    return merge(s, LS_MEAN, arguments);
}

/* ---- on the tape ------------------------------------------------------------------------------- */

static ls_status all_reduce_gradient(ls_grad *g)
{
    ls_reduce_op op = (ls_reduce_op)((const all_reduce_attrs *)ls_grad_attrs(g))->op;
    int n = ls_grad_inputs(g);
    ls_tensor **dy = ls__frame_alloc(sizeof *dy * (size_t)n);
    if (!dy)
        return LS_NO_MEMORY;
    for (int i = 0; i < n; i++)
        dy[i] = ls_densify(ls_grad_output(g, i)); /* replicas meet alike, dense or not */
    ls_value *dx = ls_all_reduce(ls_get_replica_context(), op, ls_tensors(n, dy));
    ls_status st = dx ? LS_OK : ls_error_pending();
    for (int i = 0; i < n && !st; i++)
        if (ls_grad_wanted(g, i))
            st = ls_grad_give(g, i, ls_item(dx, i));
    return st;
}

/* Only ever noted: a meeting is no call that an executor could make. */
static const ls_op all_reduce_row = {
    .size = sizeof(ls_op),
    .name = "all_reduce",
    .inputs = LS_ANY_NUMBER,
    .outputs = LS_ANY_NUMBER,
    .attr_size = sizeof(all_reduce_attrs),
    .gradient = all_reduce_gradient,
};

/* Floats whose result is dense are differentiable: those are the same on every replica. */
static ls_status note(ls_reduce_op op, const ls_value *given, const ls_value *got)
{
    int count = ls_leaf_count(given), n = 0;
    ls_tensor **all = ls__frame_alloc(sizeof *all * 2 * (size_t)(count + 1));
    if (!all)
        return LS_NO_MEMORY;
    ls_tensor **in = all, **out = all + count;
    ls_status st = ls_flatten(given, in);
    if (!st)
        st = ls_flatten(got, out);
    for (int i = 0; i < count && !st; i++)
        if (ls_dtype_is_float(ls_dtype_of(in[i])) && !ls_is_sparse(out[i])) {
            in[n] = ls_densify(in[i]);
            st = in[n] ? LS_OK : ls_error_pending();
            out[n++] = out[i];
        }
    const all_reduce_attrs attrs = { op };
    return st || n == 0 ? st : ls__tape_note(&all_reduce_row, &attrs, n, in, n, out);
}

/* ---- in the replica ----------------------------------------------------------------------------- */

static ls_value *checked_number(ls_value *leaf)
{
    ls_tensor *t = leaf ? ls__leaf_component(leaf, 0) : NULL;
    if (!t || ls_dtype_is_float(ls_dtype_of(t)) || ls_dtype_is_integer(ls_dtype_of(t)))
        return leaf;
    ls__hint(ls__fail(LS_SHAPE, "ls_all_reduce: %s, which cannot be added up", ls_describe(t)),
             "numbers are added up; ls_cast makes some of bools");
    return NULL;
}

/* A replica's own tensor of a leaf: of a variable, what it holds. */
static ls_value *own(const ls_value *leaf, void *user)
{
    (void)user;
    if (ls__leaf_object(leaf))
        return checked_number(ls_leaf(ls_read(ls_leaf_variable(leaf))));
    if (ls_spread_of(leaf) == LS_SPREAD_PLAIN)
        return checked_number((ls_value *)leaf);
    ls__hint(ls__fail(LS_INVALID, "ls_all_reduce: a leaf of %d components", ls_components(leaf)),
             "a replica gives its own tensors: pass distributed values as arguments of the run");
    return NULL;
}

/* One replica: the sum is what it has, the mean too. */
static ls_value *alone(const ls_value *leaf, void *user)
{
    ls_reduce_op op = *(const ls_reduce_op *)user;
    ls_tensor *t = ls__leaf_component(leaf, 0);
    if (op != LS_MEAN || !ls_dtype_is_integer(ls_dtype_of(t)))
        return (ls_value *)leaf;
    if (!ls_is_sparse(t))
        return ls_leaf(ls_cast(t, LS_F64));
    return ls_leaf(
        ls_sparse(ls_sparse_rows(t), ls_cast(ls_sparse_values(t), LS_F64), ls_shape(t)[0]));
}

ls_value *ls_all_reduce(ls_replica *replica, ls_reduce_op op, ls_value *value)
{
    if (ls__check_replica("ls_all_reduce", replica))
        return NULL;
    ls_value *given = NULL;
    if (!ls__check_reduce_op("ls_all_reduce", op, false) &&
        !ls__check_value("ls_all_reduce", value))
        given = ls__value_map(value, own, NULL);
    if (replica->strategy->replicas == 1)
        return given ? ls__value_map(given, alone, &op) : NULL;
    char what[48];
    snprintf(what, sizeof what, "ls_all_reduce(%s)", ls_reduce_op_name(op));
    ls_value *got = ls__meet(replica, what, op == LS_MEAN ? merge_mean : merge_sum, NULL, given);
    if (got && ls__tape_noting() && note(op, given, got))
        return NULL;
    return got;
}
