/*
 * sum_replicas: the sum or mean of one tensor per replica. Invariant: the order of the sum is
 * the tree's (kernels/replicas.h), so its bits depend on the values and their number alone.
 */
#include "ops/replicas.h"

#include <lockstep/ops.h>
#include <stdio.h>

#include "dispatch/call.h"
#include "kernels/replicas.h"

typedef struct replicas_attrs {
    int64_t op; /* LS_SUM or LS_MEAN */
} replicas_attrs;

static const ls_attr replicas_attr_list[] = { LS_ATTR_INT(replicas_attrs, op), LS_ATTR_END };

/* ---- are they alike? --------------------------------------------------------------- */

static bool alike(const ls__spec *a, const ls__spec *b, int but_axis)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (i != but_axis && a->dims[i] != b->dims[i])
            return false;
    return true;
}

/* "replica 0 has f32[4], replicas 1 to 3 f32[2]", as far as there is room. */
static void tell_specs(int count, const ls__spec *const *specs, char *out, size_t room)
{
    size_t at = 0;
    for (int i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && ls__spec_equal(specs[i], specs[end]);)
            end++;
        char one[160], last[24] = "";
        if (end > i + 1)
            snprintf(last, sizeof last, " to %d", end - 1);
        int length = snprintf(one, sizeof one, "%sreplica%s %d%s%s %s", i ? ", " : "",
                              last[0] ? "s" : "", i, last,
                              i         ? ""
                              : last[0] ? " have"
                                        : " has",
                              ls__spec_text(specs[i]));
        if (at + (size_t)length + 6 > room) {
            snprintf(out + at, room - at, ", ...");
            return;
        }
        at += (size_t)snprintf(out + at, room - at, "%s", one);
    }
}

ls_status ls__replicas_alike(const char *who, int count, const ls__spec *const *specs, int but_axis)
{
    for (int i = 1; i < count; i++) {
        if (alike(specs[0], specs[i], but_axis))
            continue;
        char text[360];
        tell_specs(count, specs, text, sizeof text);
        ls__fail(LS_SHAPE, "%s: %s", who, text);
        if (but_axis >= 0)
            return ls__hint(LS_SHAPE, "replicas may differ in their size along axis %d only",
                            but_axis);
        return ls__hint(LS_SHAPE, "give every replica the same shape and dtype; ls_reduce with an "
                                  "axis takes replicas that differ along it");
    }
    return LS_OK;
}

/* ---- the row ------------------------------------------------------------------------- */

static ls_status sum_replicas_shape(ls_call *c)
{
    int64_t op = ((const replicas_attrs *)c->attrs)->op;
    ls_status st = ls__want_dtype(c, 0, LS__NUMBERS);
    if (!st)
        st = ls__replicas_alike(c->op->name, c->n_inputs, c->in, -1);
    if (st)
        return st;
    if (op != LS_SUM && op != LS_MEAN)
        return ls_call_fail(c, LS_INVALID, "op %lld is neither SUM (%d) nor MEAN (%d)",
                            (long long)op, LS_SUM, LS_MEAN);
    bool whole = ls_dtype_is_integer(c->in[0]->dtype);
    return ls__output_as(c, 0, op == LS_MEAN && whole ? LS_F64 : c->in[0]->dtype, 0);
}

static ls_status sum_replicas_kernel(ls_call *c)
{
    const ls__replicas_kernels *kernels = LS__PICK(ls__replicas_table);
    bool mean = ((const replicas_attrs *)c->attrs)->op == LS_MEAN;
    (mean ? kernels->mean : kernels->sum)[c->in[0]->dtype](c->n_inputs, c->in_data, c->out_data[0],
                                                           ls__spec_count(c->in[0]));
    return LS_OK;
}

static ls_status sum_replicas_gradient(ls_grad *g)
{
    ls_tensor *dx = ls_grad_output(g, 0);
    int n = ls_grad_inputs(g);
    if (((const replicas_attrs *)ls_grad_attrs(g))->op == LS_MEAN)
        dx = ls_div(dx, ls__scalar_like(dx, n));
    ls_status st = LS_OK;
    for (int i = 0; i < n && !st; i++)
        if (ls_grad_wanted(g, i))
            st = ls_grad_give(g, i, dx);
    return st;
}

static const ls_op sum_replicas = {
    .size = sizeof(ls_op),
    .name = "sum_replicas",
    .inputs = LS_ANY_NUMBER,
    .outputs = 1,
    .flags = LS_OP_ELEMENTWISE | LS_OP_BF16_AS_F32 | LS_OP_TOTAL,
    .attr_size = sizeof(replicas_attrs),
    .attrs = replicas_attr_list,
    .shape = sum_replicas_shape,
    .kernel = sum_replicas_kernel,
    .gradient = sum_replicas_gradient,
};

ls_tensor *ls__sum_replicas(ls_reduce_op op, int count, ls_tensor *const *xs)
{
    const replicas_attrs attrs = { .op = op };
    ls_tensor *y = NULL;
    return ls__call(&sum_replicas, &attrs, count, xs, 0, NULL, &y) ? NULL : y;
}

const ls_op *const ls__rows_replicas[] = { &sum_replicas, NULL };
