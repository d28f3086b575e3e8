/*
 * Combining replicas. Invariant: whatever adds over replicas does it with sum_replicas
 * (ops/replicas.h), so in the order of the tree; MEAN is that sum divided by V.
 */
#include "strategy/combine.h"

#include <lockstep/ops.h>
#include <lockstep/tape.h>
#include <lockstep/variable.h>
#include <stdio.h>

#include "base/status.h"
#include "dispatch/sink.h"
#include "ops/replicas.h"
#include "strategy/defect.h"
#include "strategy/strategy.h"
#include "strategy/team.h"
#include "strategy/variable.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

ls_tensor *ls__on_device(ls_tensor *t, const ls__device *device)
{
    return !t || t->device == device ? t : ls_copy_to(t, device->name);
}

/* ---- checks ------------------------------------------------------------------------------- */

ls_status ls__check_reduce_op(const char *who, ls_reduce_op op, bool first)
{
    const char *hint =
        first ? "the op is LS_SUM, LS_MEAN or LS_ONLY_FIRST" : "the op is LS_SUM or LS_MEAN";
    if (op == LS_SUM || op == LS_MEAN || (op == LS_ONLY_FIRST && first))
        return LS_OK;
    if (op == LS_ONLY_FIRST)
        return ls__hint(ls__fail(LS_INVALID, "%s: ONLY_FIRST adds nothing up", who), "%s", hint);
#define AGGREGATION(name, value, text)                                                             \
    if ((int)op == (value))                                                                        \
        return ls__hint(ls__fail(LS_INVALID, "%s: op %d is the aggregation " #name, who, (int)op), \
                        "%s", hint);
    LS_AGGREGATION_LIST(AGGREGATION)
#undef AGGREGATION
    return ls__hint(ls__fail(LS_INVALID, "%s: op %d is no ls_reduce_op", who, (int)op), "%s", hint);
}

ls_status ls__check_fits(const ls_strategy *s, const char *what, const ls_value *leaf)
{
    int n = ls_components(leaf);
    if (ls_spread_of(leaf) == LS_SPREAD_PLAIN || n == s->replicas)
        return LS_OK;
    return ls__hint(
        ls__fail(LS_INVALID,
                 "%s: a value of %d component%s, the strategy has %d "
                 "replica%s",
                 what, n, n == 1 ? "" : "s", s->replicas, s->replicas == 1 ? "" : "s"),
        "a distributed value goes to strategies of as many replicas as it has components");
}

ls_status ls__check_components(const ls_strategy *s, const char *who, const ls_value *value)
{
    if (ls_kind_of(value) == LS_LEAF)
        return ls__check_fits(s, who, value);
    ls_status st = LS_OK;
    for (int i = 0; i < ls_length(value) && !st; i++)
        st = ls__check_components(s, who, ls_child(value, i));
    return st;
}

ls_status ls__refuse_sum(const ls_strategy *s, const char *who, const ls__parts *parts)
{
    return ls__hint(ls__fail(LS_INVALID,
                             "%s: the SUM over %d replicas of a %s value (%s), which "
                             "is the same for all of them",
                             who, s->replicas,
                             parts->spread == LS_SPREAD_MIRRORED ? "mirrored" : "plain",
                             ls_describe(parts->at[0])),
                    "LS_MEAN gives the value itself; what each replica has of its own comes from "
                    "ls_run or ls_per_replica");
}

/* ---- the tensors of a leaf ------------------------------------------------------------------ */

static ls_tensor *part(const ls_value *leaf, ls_variable *v, bool own_cells, int i)
{
    if (!v)
        return ls__leaf_component(leaf, i);
    return ls_read(own_cells ? ls_variable_component(v, i) : v);
}

ls_status ls__parts_of(const ls_strategy *s, const char *who, const ls_value *leaf,
                       ls__device *device, ls__parts *out)
{
    ls_variable *v = ls__leaf_object(leaf) ? ls_leaf_variable(leaf) : NULL;
    if (ls__leaf_object(leaf) && !v)
        return ls_error_pending();
    ls_status st = ls__check_fits(s, who, leaf);
    if (st)
        return st;
    int components = v ? ls_variable_components(v) : 1;
    bool own_cells = v && components == s->replicas && v->n_cells == components && components > 1;
    out->spread = ls_spread_of(leaf);
    if (v)
        out->spread = own_cells        ? LS_SPREAD_PER_REPLICA
                      : components > 1 ? LS_SPREAD_MIRRORED
                                       : LS_SPREAD_PLAIN;
    out->count = out->spread == LS_SPREAD_PER_REPLICA ? s->replicas : 1;
    out->at = ls__frame_alloc(sizeof *out->at * (size_t)out->count);
    if (!out->at)
        return LS_NO_MEMORY;
    for (int i = 0; i < out->count; i++) {
        out->at[i] = ls__on_device(part(leaf, v, own_cells, i), device);
        if (!out->at[i])
            return ls_error_pending();
    }
    return LS_OK;
}

/* ---- combining ------------------------------------------------------------------------------- */

static ls_tensor *divided(ls_tensor *t, int n)
{
    if (t && ls_dtype_is_integer(ls_dtype_of(t)))
        t = ls_cast(t, LS_F64);
    return ls_div(t, ls__scalar_like(t, n));
}

/* By the strategy's cross-device operation, in a meeting or not. */
static ls_status sum_all(const ls_strategy *s, ls_reduce_op op, int tensors, ls_tensor **xs,
                         ls_tensor **out)
{
    if (ls__team_get() || s->replicas == 1 || ls__sink_get())
        return ls__sum_replicas_all(op, s->replicas, tensors, xs, out);
    ls__team alone;
    ls_status st = ls__team_of_one((ls_strategy *)s, &alone);
    if (st)
        return st;
    ls__team_use(&alone);
    st = ls__sum_replicas_all(op, s->replicas, tensors, xs, out);
    ls__team_use(NULL);
    return st;
}

static ls_status add_up(const ls_strategy *s, ls_reduce_op op, int tensors, ls_tensor **xs,
                        ls_tensor **out)
{
    int v = s->replicas;
    bool by_devices = LS__DEFECT(LS__MEAN_BY_DEVICES) && op == LS_MEAN;
    for (int t = 0; LS__DEFECT(LS__WRONG_ORDER) && t < tensors; t++)
        for (int i = t * v, k = t * v + v - 1; i < k; i++, k--) {
            ls_tensor *last = xs[k];
            xs[k] = xs[i];
            xs[i] = last;
        }
    ls_status st = sum_all(s, by_devices ? LS_SUM : op, tensors, xs, out);
    for (int t = 0; by_devices && !st && t < tensors; t++)
        out[t] = divided(out[t], s->n_devices);
    return st;
}

/* Rows are named by i32 or i64: by i64 where replicas differ. */
static ls_tensor *joined_rows(const ls__parts *p, ls_tensor **list)
{
    bool differ = false;
    for (int i = 0; i < p->count; i++) {
        list[i] = ls_sparse_rows(p->at[i]);
        if (!list[i])
            return NULL;
        differ = differ || ls_dtype_of(list[i]) != ls_dtype_of(list[0]);
    }
    for (int i = 0; differ && i < p->count; i++)
        list[i] = ls_cast(list[i], LS_I64);
    return ls_concat(p->count, list, 0);
}

static ls_tensor *join_sparse(ls_reduce_op op, const ls__parts *p)
{
    ls_tensor **list = ls__frame_alloc(sizeof *list * (size_t)p->count);
    if (!list)
        return NULL;
    ls_tensor *rows = joined_rows(p, list);
    for (int i = 0; i < p->count; i++)
        list[i] = ls_sparse_values(p->at[i]);
    ls_tensor *values = ls_concat(p->count, list, 0);
    if (op == LS_MEAN)
        values = divided(values, p->count);
    return ls_sparse(rows, values, p->at[0]->spec.dims[0]);
}

static ls_status check_number(const char *who, const ls_tensor *t)
{
    if (ls_dtype_is_float(t->spec.dtype) || ls_dtype_is_integer(t->spec.dtype))
        return LS_OK;
    return ls__hint(ls__fail(LS_SHAPE, "%s: the replicas have %s, which cannot be added up", who,
                             ls_describe(t)),
                    "ls_cast makes numbers of bools; LS_ONLY_FIRST takes replica 0's");
}

/* The sum of no values: what a program begins to count from. */
static bool is_number_0(const ls_tensor *t)
{
    ls_dtype d = t->spec.dtype;
    return t->spec.rank == 0 && !t->storage->symbol &&
           (ls_dtype_is_float(d) || ls_dtype_is_integer(d)) && ls_to_double(t) == 0;
}

/* Checks one of them, and does it unless it is a sum of dense tensors: *later. */
static ls_status combine_one(const ls_strategy *s, ls_reduce_op op, ls__combining *c, bool *later)
{
    const ls__parts *parts = &c->parts;
    ls_tensor *first = parts->at[0];
    *later = false;
    if (op == LS_ONLY_FIRST) {
        c->out = ls__same_value(first);
    } else if (parts->spread != LS_SPREAD_PER_REPLICA) {
        bool itself = op == LS_MEAN || s->replicas == 1 || is_number_0(first);
        c->out = itself || !ls__refuse_sum(s, c->who, parts) ? ls__same_value(first) : NULL;
    } else {
        const ls__spec **specs = ls__frame_alloc(sizeof *specs * (size_t)parts->count);
        if (!specs)
            return LS_NO_MEMORY;
        int sparse = 0;
        for (int i = 0; i < parts->count; i++) {
            specs[i] = &parts->at[i]->spec;
            sparse += ls_is_sparse(parts->at[i]);
        }
        ls_status st = ls__replicas_alike(c->who, parts->count, specs, -1);
        if (!st)
            st = check_number(c->who, first);
        if (st)
            return st;
        *later = sparse != parts->count;
        c->out = *later ? NULL : join_sparse(op, parts);
    }
    return c->out || *later ? LS_OK : ls_error_pending();
}

static ls_status combine_now(const ls_strategy *s, ls_reduce_op op, ls__combining *c, bool *later)
{
    if (!c->where[0])
        return combine_one(s, op, c, later);
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    return ls__error_scope_close(&scope, combine_one(s, op, c, later), "%s", c->where);
}

/* Those that wait and have the dtype of the first of them, in one row. */
static ls_status combine_alike(const ls_strategy *s, ls_reduce_op op, int count,
                               ls__combining *list, bool *waits, int first)
{
    int v = s->replicas, n = 0;
    ls_dtype dtype = ls_dtype_of(list[first].parts.at[0]);
    ls_tensor **xs = ls__frame_alloc(sizeof *xs * (size_t)v * (size_t)(count - first));
    ls_tensor **out = ls__frame_alloc(sizeof *out * (size_t)(count - first));
    int *from = ls__frame_alloc(sizeof *from * (size_t)(count - first));
    if (!xs || !out || !from)
        return LS_NO_MEMORY;
    for (int i = first; i < count; i++) {
        if (!waits[i] || ls_dtype_of(list[i].parts.at[0]) != dtype)
            continue;
        for (int r = 0; r < v; r++)
            xs[n * v + r] = list[i].parts.at[r];
        from[n++] = i;
        waits[i] = false;
    }
    ls_status st = add_up(s, op, n, xs, out);
    for (int i = 0; i < n && !st; i++)
        list[from[i]].out = out[i];
    return st;
}

ls_status ls__combine_all(const ls_strategy *s, ls_reduce_op op, int count, ls__combining *list)
{
    bool *waits = ls__frame_alloc(sizeof *waits * (size_t)(count + 1));
    ls_status st = waits ? LS_OK : LS_NO_MEMORY;
    for (int i = 0; i < count && !st; i++)
        st = combine_now(s, op, &list[i], &waits[i]);
    for (int i = 0; i < count && !st; i++)
        if (waits[i])
            st = combine_alike(s, op, count, list, waits, i);
    return st;
}

ls_tensor *ls__combine(const ls_strategy *s, const char *who, ls_reduce_op op,
                       const ls__parts *parts)
{
    ls__combining one = { .parts = *parts };
    snprintf(one.who, sizeof one.who, "%s", who);
    return ls__combine_all(s, op, 1, &one) ? NULL : one.out;
}

/* ---- mirroring ------------------------------------------------------------------------------- */

ls_value *ls__mirrored_leaf(const ls_strategy *s, ls_tensor *t)
{
    ls_tensor **copies = t ? ls__frame_alloc(sizeof *copies * (size_t)s->replicas) : NULL;
    if (!copies)
        return NULL;
    for (int i = 0; i < s->replicas; i++) {
        copies[i] = ls__on_device(t, ls__device_of_replica(s, i));
        if (!copies[i])
            return NULL;
    }
    return ls__leaf_spread(LS_SPREAD_MIRRORED, s->replicas, copies);
}
