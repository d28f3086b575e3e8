/*
 * The softmax losses with their gradient: (logits, labels, dloss) -> (loss, dx),
 * in one pass over the rows and without the probabilities. Put into graphs by
 * trace/pass_fuse_loss.c. Invariant: bits and errors are those of the two rows
 * each replaces.
 */
#include "dispatch/call.h"
#include "kernels/softmax.h"
#include "ops/shape.h"

/* The call as the loss alone would see it: its rule and its name in errors. */
static ls_call loss_call(const ls_call *c, const char *name)
{
    ls_call loss = *c;
    loss.op = ls_op_find(name);
    loss.n_inputs = 2;
    return loss;
}

/* dx is like the probabilities, which the loss's own rule says. */
static ls_status both_shape(ls_call *c, const char *name)
{
    ls_status st = ls__want_dtype(c, 0, LS__BIT(LS_F32) | LS__BIT(LS_F64));
    if (st)
        return st;
    ls_call loss = loss_call(c, name);
    st = loss.op->shape(&loss);
    if (!st && !ls__spec_equal(c->in[2], &c->out[0]))
        st = ls_call_fail(c, LS_SHAPE, "the loss's gradient does not fit the rows");
    return st;
}

/* ---- sparse_softmax_xent_both ---------------------------------------------------- */

static ls_status sparse_shape(ls_call *c)
{
    return both_shape(c, "sparse_softmax_xent");
}

static ls_status sparse_kernel(ls_call *c)
{
    int64_t rows = ls__row_count(c->in[0]), n = ls__row_size(c->in[0]);
    ls__labels labels = { c->in_data[1], c->in[1]->dtype == LS_I64 };
    int64_t bad = ls__labels_check(labels, rows, n);
    if (bad >= 0) {
        ls_call loss = loss_call(c, "sparse_softmax_xent");
        return ls_call_fail(&loss, LS_INVALID, "label %lld at row %lld, classes are 0 to %lld",
                            (long long)ls__label(labels, bad), (long long)bad, (long long)n - 1);
    }
    const void *x = c->in_data[0], *dloss = c->in_data[2];
    if (c->in[0]->dtype == LS_F64)
        ls__ref_sparse_xent_both_f64(x, labels, dloss, c->out_data[0], c->out_data[1], rows, n);
    else
        LS__PICK(ls__softmax_table)
            ->sparse_xent_both(x, labels, dloss, c->out_data[0], c->out_data[1], rows, n);
    return LS_OK;
}

static const ls_op sparse_both = {
    .size = sizeof(ls_op),
    .name = "sparse_softmax_xent_both",
    .inputs = 3,
    .outputs = 2,
    .flags = LS__OP_FUSED,
    .shape = sparse_shape,
    .kernel = sparse_kernel,
};

/* ---- softmax_xent_both ------------------------------------------------------------ */

static ls_status dense_shape(ls_call *c)
{
    return both_shape(c, "softmax_xent");
}

static size_t dense_scratch(ls_call *c)
{
    return (size_t)ls__row_size(c->in[0]) * sizeof(float);
}

static ls_status dense_kernel(ls_call *c)
{
    int64_t rows = ls__row_count(c->in[0]), n = ls__row_size(c->in[0]);
    const void *x = c->in_data[0], *t = c->in_data[1], *dloss = c->in_data[2];
    if (c->in[0]->dtype == LS_F64)
        ls__ref_xent_both_f64(x, t, dloss, c->out_data[0], c->out_data[1], rows, n, c->scratch);
    else
        LS__PICK(ls__softmax_table)
            ->xent_both(x, t, dloss, c->out_data[0], c->out_data[1], rows, n, c->scratch);
    return LS_OK;
}

static const ls_op dense_both = {
    .size = sizeof(ls_op),
    .name = "softmax_xent_both",
    .inputs = 3,
    .outputs = 2,
    .flags = LS__OP_FUSED | LS_OP_TOTAL,
    .shape = dense_shape,
    .scratch = dense_scratch,
    .kernel = dense_kernel,
};

const ls_op *const ls__rows_fused_loss[] = { &sparse_both, &dense_both, NULL };
