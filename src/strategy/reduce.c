/*
 * After the run: one tensor of what the replicas have. Each function is made of operators, so
 * gradients flow through and a traced step can call it.
 */
#include <lockstep/ops.h>
#include <lockstep/tape.h>
#include <stdio.h>
#include <strings.h>

#include "base/status.h"
#include "ops/replicas.h"
#include "strategy/combine.h"
#include "strategy/context.h"
#include "strategy/strategy.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

/* ---- names of ops ------------------------------------------------------------------------ */

ls_status ls_reduce_op_named(const char *name, ls_reduce_op *out)
{
    if (!name || !out)
        return ls__fail(LS_INVALID, "ls_reduce_op_named: %s is NULL", name ? "out" : "the name");
#define NAMED(op, value, text)                                                                     \
    if (strcasecmp(name, text) == 0) {                                                             \
        *out = op;                                                                                 \
        return LS_OK;                                                                              \
    }
    LS_REDUCE_OP_LIST(NAMED)
#undef NAMED
    return ls__hint(ls__fail(LS_INVALID, "ls_reduce_op_named: no op '%s'", name),
                    "the ops are SUM, MEAN and ONLY_FIRST, in any case");
}

const char *ls_reduce_op_name(ls_reduce_op op)
{
    switch (op) {
#define NAME(name, value, text)                                                                    \
    case name:                                                                                     \
        return text;
        LS_REDUCE_OP_LIST(NAME)
#undef NAME
    }
    return "?";
}

/* ---- what both functions take --------------------------------------------------------------- */

/* Hints end with what else the function offers. */
static ls_status check_leaf(const char *who, const ls_value *value, const char *more)
{
    ls_status st = ls__check_value(who, value);
    if (st || ls_kind_of(value) == LS_LEAF)
        return st;
    return ls__hint(ls__fail(LS_INVALID, "%s: the value is a %s of %d, wants a leaf", who,
                             ls__value_kind_name(ls_kind_of(value)), ls_length(value)),
                    "call it for each of its leaves (ls_child, ls_get)%s", more);
}

/* The axis, counted from the front, of tensors that may differ in their size along it. */
static ls_status check_axis(const char *who, const ls__parts *p, int axis, const char *more,
                            int *out)
{
    int rank = ls_rank(p->at[0]), at = ls__axis(axis, rank);
    if (at < 0) {
        ls__fail(LS_INVALID, "%s: axis %d of a rank-%d value (%s)", who, axis, rank,
                 ls_describe(p->at[0]));
        if (rank == 0)
            return ls__hint(LS_INVALID, "a single number has no axis; %s", more);
        return ls__hint(LS_INVALID, "axes run from %d to %d", -rank, rank - 1);
    }
    const ls__spec **specs = ls__frame_alloc(sizeof *specs * (size_t)p->count);
    if (!specs)
        return LS_NO_MEMORY;
    for (int i = 0; i < p->count; i++)
        specs[i] = &p->at[i]->spec;
    *out = at;
    return ls__replicas_alike(who, p->count, specs, at);
}

/* ---- reduce --------------------------------------------------------------------------------- */

/* Each replica's sum over the axis, summed over replicas. MEAN divides by how many elements
 * there are along the axis in all, which is no mean of means when sizes differ. */
static ls_tensor *along_axis(const ls_strategy *s, ls_reduce_op op, const ls__parts *p, int axis)
{
    int at;
    int64_t total = 0;
    if (check_axis("ls_reduce", p, axis, "LS_NO_AXIS reduces over replicas alone", &at))
        return NULL;
    if (op == LS_SUM && p->spread != LS_SPREAD_PER_REPLICA && s->replicas > 1) {
        ls__refuse_sum(s, "ls_reduce", p);
        return NULL;
    }
    ls_tensor **sums = ls__frame_alloc(sizeof *sums * (size_t)p->count);
    for (int i = 0; sums && i < p->count; i++) {
        total += p->at[i]->spec.dims[at];
        sums[i] = ls_sum(p->at[i], 1, (int64_t[]){ at }, false);
        if (!sums[i])
            return NULL;
    }
    ls_tensor *sum = sums ? ls__sum_replicas(LS_SUM, p->count, sums) : NULL;
    if (!sum || op == LS_SUM)
        return sum;
    if (ls_dtype_is_integer(ls_dtype_of(sum)))
        sum = ls_cast(sum, LS_F64);
    return ls_div(sum, ls__scalar_like(sum, (double)total));
}

static ls_tensor *reduce(const ls_strategy *s, ls_reduce_op op, const ls_value *value, int axis)
{
    ls__parts parts;
    if (ls__check_reduce_op("ls_reduce", op, true) ||
        check_leaf("ls_reduce", value, "; ls_reduce_to maps over a nest"))
        return NULL;
    if (op == LS_ONLY_FIRST && axis != LS_NO_AXIS) {
        ls__hint(ls__fail(LS_INVALID, "ls_reduce: ONLY_FIRST with axis %d", axis),
                 "with an axis the op is LS_SUM or LS_MEAN; ONLY_FIRST wants LS_NO_AXIS");
        return NULL;
    }
    if (ls__parts_of(s, "ls_reduce", value, ls__device_current(), &parts))
        return NULL;
    return axis == LS_NO_AXIS ? ls__combine(s, "ls_reduce", op, &parts)
                              : along_axis(s, op, &parts, axis);
}

ls_tensor *ls_reduce(ls_strategy *s, ls_reduce_op op, ls_value *value, int axis)
{
    ls__mode mode;
    if (ls__enter_cross("ls_reduce", s, &mode))
        return NULL;
    ls_tensor *t = reduce(s, op, value, axis);
    ls__mode_pop(&mode);
    return t;
}

/* ---- gather --------------------------------------------------------------------------------- */

static ls_tensor *gather(const ls_strategy *s, const ls_value *value, int axis)
{
    static const char who[] = "ls_gather_replicas";
    ls__parts parts;
    int at;
    if (check_leaf(who, value, ""))
        return NULL;
    if (axis == LS_NO_AXIS) {
        ls__hint(ls__fail(LS_INVALID, "%s: LS_NO_AXIS", who),
                 "name the axis along which replicas are laid behind one another");
        return NULL;
    }
    if (ls__parts_of(s, who, value, ls__device_current(), &parts))
        return NULL;
    for (int i = 0; i < parts.count; i++)
        if (ls_is_sparse(parts.at[i])) {
            ls__hint(ls__fail(LS_UNSUPPORTED, "%s: replica %d has a sparse tensor", who, i),
                     "ls_reduce joins sparse tensors; ls_densify makes dense ones");
            return NULL;
        }
    if (check_axis(who, &parts, axis, "ls_reshape(x, LS_DIMS(1)) makes one of it", &at))
        return NULL;
    if (parts.spread == LS_SPREAD_PLAIN)
        return ls__same_value(parts.at[0]);
    ls_tensor **all = ls__frame_alloc(sizeof *all * (size_t)s->replicas);
    for (int i = 0; all && i < s->replicas; i++)
        all[i] = parts.at[parts.count > 1 ? i : 0];
    return all ? ls_concat(s->replicas, all, at) : NULL;
}

ls_tensor *ls_gather_replicas(ls_strategy *s, ls_value *value, int axis)
{
    ls__mode mode;
    if (ls__enter_cross("ls_gather_replicas", s, &mode))
        return NULL;
    ls_tensor *t = gather(s, value, axis);
    ls__mode_pop(&mode);
    return t;
}
