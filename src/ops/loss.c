/*
 * Losses: cross entropy with class numbers, with distributions and per element,
 * and the mean squared error.
 *
 * The two softmax losses also put out the probabilities. Their gradient is made
 * of these alone, and what arrives at the probabilities themselves (it does when
 * a gradient is differentiated) goes on through the softmax.
 */
#include <lockstep/ops.h>
#include <string.h>

#include "dispatch/call.h"
#include "kernels/softmax.h"
#include "ops/shape.h"

/* ---- what the losses share ----------------------------------------------------------- */

/* One number per row, with an axis of size 1 for the classes. */
static ls_tensor *per_row(ls_tensor *t)
{
    return ls_expand_dims(t, -1);
}

static ls_tensor *sum_classes(ls_tensor *t)
{
    return ls_sum(t, LS_AXES(-1), false);
}

/* The first `count` inputs have the same float dtype and shape. */
static ls_status want_rows(const ls_call *c, int count)
{
    ls_status st = ls__want_dtype(c, 0, LS__FLOATS);
    if (!st)
        st = ls__want_rank_at_least(c, 0, 1);
    for (int i = 1; i < count && !st; i++) {
        st = ls__want_same_dtype(c, 0, i);
        if (!st && !ls__spec_same_shape(c->in[0], c->in[i]))
            st = ls_call_fail(c, LS_SHAPE, "inputs 0 and %d differ in shape, and do not broadcast", i);
    }
    return st;
}

static bool is_row_shape(const ls__spec *t, const ls__spec *logits)
{
    return t->rank == logits->rank - 1 &&
           memcmp(t->dims, logits->dims, (size_t)t->rank * sizeof *t->dims) == 0;
}

static ls_status want_labels(const ls_call *c)
{
    ls_status st = ls__want_dtype(c, 1, LS__INDEXES);
    if (!st && !is_row_shape(c->in[1], c->in[0]))
        st = ls__hint(ls_call_fail(c, LS_SHAPE, "labels do not fit the rows of logits"),
                      "wants logits [.., classes] and labels [..]");
    return st;
}

static ls_status want_row_gradient(const ls_call *c)
{
    ls_status st = ls__want_same_dtype(c, 0, 2);
    if (!st && !is_row_shape(c->in[2], c->in[0]))
        st = ls_call_fail(c, LS_SHAPE, "the loss's gradient does not fit the rows");
    return st;
}

static ls_status output_per_row(ls_call *c)
{
    return ls_call_output(c, 0, c->in[0]->dtype, c->in[0]->rank - 1, c->in[0]->dims);
}

/* The outputs of a softmax loss: one number per row, and the probabilities. */
static ls_status output_with_probabilities(ls_call *c)
{
    if (ls__row_size(c->in[0]) == 0 && ls__row_count(c->in[0]) != 0)
        return ls_call_fail(c, LS_SHAPE, "there are no classes to choose from");
    ls_status st = output_per_row(c);
    return st ? st : ls__output_like(c, 1, 0);
}

/* Labels are checked before any is used. */
static ls_status check_labels(const ls_call *c, ls__labels *labels)
{
    int64_t n = ls__row_size(c->in[0]);
    *labels = (ls__labels){ c->in_data[1], c->in[1]->dtype == LS_I64 };
    int64_t bad = ls__labels_check(*labels, ls__row_count(c->in[0]), n);
    if (bad < 0)
        return LS_OK;
    return ls_call_fail(c, LS_INVALID, "label %lld at row %lld, classes are 0 to %lld",
                        (long long)ls__label(*labels, bad), (long long)bad, (long long)n - 1);
}

/* Gives the logits what came through the loss (`dx`, looked at if a gradient
 * arrived there) and what came through the probabilities, which are a softmax:
 * p (dp - sum(p dp)). */
static ls_status give_logits(ls_grad *g, ls_tensor *dx)
{
    if (!ls_grad_arrived(g, 1))
        return ls_grad_give(g, 0, dx);
    ls_tensor *p = ls_grad_result(g, 1), *dp = ls_grad_output(g, 1);
    ls_tensor *more = ls_mul(p, ls_sub(dp, ls_sum(ls_mul(p, dp), LS_AXES(-1), true)));
    return ls_grad_give(g, 0, ls_grad_arrived(g, 0) ? ls_add(dx, more) : more);
}

/* ---- sparse_softmax_xent ---------------------------------------------------------------- */

static ls_status sparse_grad_shape(ls_call *c)
{
    ls_status st = want_rows(c, 1);
    if (!st)
        st = want_labels(c);
    if (!st)
        st = want_row_gradient(c);
    return st ? st : ls__output_like(c, 0, 0);
}

static ls_status sparse_grad_kernel(ls_call *c)
{
    int64_t rows = ls__row_count(c->in[0]), n = ls__row_size(c->in[0]);
    ls__labels labels;
    ls_status st = check_labels(c, &labels);
    if (st)
        return st;
    if (c->in[0]->dtype == LS_F64)
        ls__ref_sparse_xent_grad_f64(c->in_data[0], labels, c->in_data[2], c->out_data[0], rows, n);
    else
        LS__PICK(ls__softmax_table)
            ->sparse_xent_grad(c->in_data[0], labels, c->in_data[2], c->out_data[0], rows, n);
    return LS_OK;
}

/* dx = (p - onehot) dloss. */
static ls_status sparse_grad_gradient(ls_grad *g)
{
    ls_tensor *p = ls_grad_input(g, 0), *labels = ls_grad_input(g, 1);
    ls_tensor *dloss = ls_grad_input(g, 2), *dd = ls_grad_output(g, 0);
    ls_status st = LS_OK;
    if (ls_grad_wanted(g, 0))
        st = ls_grad_give(g, 0, ls_mul(dd, per_row(dloss)));
    if (st || !ls_grad_wanted(g, 2))
        return st;
    ls_tensor *one_hot = ls_one_hot(labels, ls_dim(p, -1), ls_dtype_of(p));
    return ls_grad_give(g, 2, sum_classes(ls_mul(dd, ls_sub(p, one_hot))));
}

static const ls_op sparse_grad = {
    .size = sizeof(ls_op),
    .name = "sparse_softmax_xent_grad",
    .inputs = 3,
    .outputs = 1,
    .flags = LS_OP_BF16_AS_F32,
    .shape = sparse_grad_shape,
    .kernel = sparse_grad_kernel,
    .gradient = sparse_grad_gradient,
};

static ls_status sparse_shape(ls_call *c)
{
    ls_status st = want_rows(c, 1);
    if (!st)
        st = want_labels(c);
    return st ? st : output_with_probabilities(c);
}

static ls_status sparse_kernel(ls_call *c)
{
    int64_t rows = ls__row_count(c->in[0]), n = ls__row_size(c->in[0]);
    ls__labels labels;
    ls_status st = check_labels(c, &labels);
    if (st)
        return st;
    if (c->in[0]->dtype == LS_F64)
        ls__ref_sparse_xent_f64(c->in_data[0], labels, c->out_data[0], c->out_data[1], rows, n);
    else
        LS__PICK(ls__softmax_table)
            ->sparse_xent(c->in_data[0], labels, c->out_data[0], c->out_data[1], rows, n);
    return LS_OK;
}

static ls_status sparse_gradient(ls_grad *g)
{
    ls_tensor *dx = NULL;
    if (ls_grad_arrived(g, 0))
        dx = ls__call3(&sparse_grad, NULL, ls_grad_result(g, 1), ls_grad_input(g, 1),
                       ls_grad_output(g, 0));
    return give_logits(g, dx);
}

static const ls_op sparse_softmax_xent = {
    .size = sizeof(ls_op),
    .name = "sparse_softmax_xent",
    .inputs = 2,
    .outputs = 2,
    .flags = LS_OP_BF16_AS_F32,
    .shape = sparse_shape,
    .kernel = sparse_kernel,
    .gradient = sparse_gradient,
};

ls_tensor *ls_sparse_softmax_xent(ls_tensor *logits, ls_tensor *labels)
{
    ls_tensor *in[2] = { logits, labels }, *out[2];
    return ls__call(&sparse_softmax_xent, NULL, 2, in, 0, NULL, out) ? NULL : out[0];
}

/* ---- softmax_xent ------------------------------------------------------------------------ */

static ls_status dense_grad_shape(ls_call *c)
{
    ls_status st = want_rows(c, 2);
    if (!st)
        st = want_row_gradient(c);
    return st ? st : ls__output_like(c, 0, 0);
}

static ls_status dense_grad_kernel(ls_call *c)
{
    int64_t rows = ls__row_count(c->in[0]), n = ls__row_size(c->in[0]);
    if (c->in[0]->dtype == LS_F64)
        ls__ref_xent_grad_f64(c->in_data[0], c->in_data[1], c->in_data[2], c->out_data[0], rows, n);
    else
        LS__PICK(ls__softmax_table)
            ->xent_grad(c->in_data[0], c->in_data[1], c->in_data[2], c->out_data[0], rows, n);
    return LS_OK;
}

/* dx = (p sum(t) - t) dloss. */
static ls_status dense_grad_gradient(ls_grad *g)
{
    ls_tensor *p = ls_grad_input(g, 0), *t = ls_grad_input(g, 1);
    ls_tensor *dloss = per_row(ls_grad_input(g, 2)), *dd = ls_grad_output(g, 0);
    ls_tensor *sum = ls_sum(t, LS_AXES(-1), true), *weighted = ls_mul(dd, dloss);
    ls_status st = LS_OK;
    if (ls_grad_wanted(g, 0))
        st = ls_grad_give(g, 0, ls_mul(weighted, sum));
    if (!st && ls_grad_wanted(g, 1)) {
        ls_tensor *dot = ls_sum(ls_mul(weighted, p), LS_AXES(-1), true);
        st = ls_grad_give(g, 1, ls_sub(dot, weighted));
    }
    if (!st && ls_grad_wanted(g, 2))
        st = ls_grad_give(g, 2, sum_classes(ls_mul(dd, ls_sub(ls_mul(p, sum), t))));
    return st;
}

static const ls_op dense_grad = {
    .size = sizeof(ls_op),
    .name = "softmax_xent_grad",
    .inputs = 3,
    .outputs = 1,
    .flags = LS_OP_BF16_AS_F32,
    .shape = dense_grad_shape,
    .kernel = dense_grad_kernel,
    .gradient = dense_grad_gradient,
};

static ls_status dense_shape(ls_call *c)
{
    ls_status st = want_rows(c, 2);
    return st ? st : output_with_probabilities(c);
}

static ls_status dense_kernel(ls_call *c)
{
    int64_t rows = ls__row_count(c->in[0]), n = ls__row_size(c->in[0]);
    if (c->in[0]->dtype == LS_F64)
        ls__ref_xent_f64(c->in_data[0], c->in_data[1], c->out_data[0], c->out_data[1], rows, n);
    else
        LS__PICK(ls__softmax_table)
            ->xent(c->in_data[0], c->in_data[1], c->out_data[0], c->out_data[1], rows, n);
    return LS_OK;
}

static ls_status dense_gradient(ls_grad *g)
{
    ls_tensor *logits = ls_grad_input(g, 0), *t = ls_grad_input(g, 1), *dx = NULL;
    if (ls_grad_wanted(g, 0)) {
        if (ls_grad_arrived(g, 0))
            dx = ls__call3(&dense_grad, NULL, ls_grad_result(g, 1), t, ls_grad_output(g, 0));
        ls_status st = give_logits(g, dx);
        if (st)
            return st;
    }
    if (!ls_grad_wanted(g, 1) || !ls_grad_arrived(g, 0))
        return LS_OK;
    ls_tensor *dloss = per_row(ls_grad_output(g, 0));
    return ls_grad_give(g, 1, ls_neg(ls_mul(ls_log_softmax(logits, -1), dloss)));
}

static const ls_op softmax_xent = {
    .size = sizeof(ls_op),
    .name = "softmax_xent",
    .inputs = 2,
    .outputs = 2,
    .flags = LS_OP_BF16_AS_F32,
    .shape = dense_shape,
    .kernel = dense_kernel,
    .gradient = dense_gradient,
};

ls_tensor *ls_softmax_xent(ls_tensor *logits, ls_tensor *labels)
{
    ls_tensor *in[2] = { logits, labels }, *out[2];
    return ls__call(&softmax_xent, NULL, 2, in, 0, NULL, out) ? NULL : out[0];
}

/* ---- sigmoid_xent -------------------------------------------------------------------------- */

static ls_status sigmoid_shape(ls_call *c)
{
    ls_status st = ls__want_dtype(c, 0, LS__FLOATS);
    if (!st)
        st = ls__want_same_dtype(c, 0, 1);
    if (!st && !ls__spec_same_shape(c->in[0], c->in[1]))
        st = ls_call_fail(c, LS_SHAPE, "logits and labels differ in shape");
    return st ? st : ls__output_like(c, 0, 0);
}

static ls_status sigmoid_kernel(ls_call *c)
{
    int64_t n = ls__spec_count(c->in[0]);
    if (c->in[0]->dtype == LS_F64)
        ls__ref_sigmoid_xent_f64(c->in_data[0], c->in_data[1], c->out_data[0], n);
    else
        LS__PICK(ls__softmax_table)->sigmoid_xent(c->in_data[0], c->in_data[1], c->out_data[0], n);
    return LS_OK;
}

static ls_status sigmoid_gradient(ls_grad *g)
{
    ls_tensor *x = ls_grad_input(g, 0), *t = ls_grad_input(g, 1), *dy = ls_grad_output(g, 0);
    ls_status st = LS_OK;
    if (ls_grad_wanted(g, 0))
        st = ls_grad_give(g, 0, ls_mul(ls_sub(ls_sigmoid(x), t), dy));
    if (st || !ls_grad_wanted(g, 1))
        return st;
    return ls_grad_give(g, 1, ls_neg(ls_mul(x, dy)));
}

static const ls_op sigmoid_xent = {
    .size = sizeof(ls_op),
    .name = "sigmoid_xent",
    .inputs = 2,
    .outputs = 1,
    .flags = LS_OP_BF16_AS_F32 | LS_OP_ELEMENTWISE,
    .shape = sigmoid_shape,
    .kernel = sigmoid_kernel,
    .gradient = sigmoid_gradient,
};

ls_tensor *ls_sigmoid_xent(ls_tensor *logits, ls_tensor *labels)
{
    return ls__call2(&sigmoid_xent, NULL, logits, labels);
}

/* ---- mse ------------------------------------------------------------------------------------- */

static ls_status mse_shape(ls_call *c)
{
    ls_status st = want_rows(c, 2);
    return st ? st : output_per_row(c);
}

static ls_status mse_kernel(ls_call *c)
{
    int64_t rows = ls__row_count(c->in[0]), n = ls__row_size(c->in[0]);
    if (c->in[0]->dtype == LS_F64)
        ls__ref_mse_f64(c->in_data[0], c->in_data[1], c->out_data[0], rows, n);
    else
        LS__PICK(ls__softmax_table)->mse(c->in_data[0], c->in_data[1], c->out_data[0], rows, n);
    return LS_OK;
}

static ls_status mse_gradient(ls_grad *g)
{
    ls_tensor *a = ls_grad_input(g, 0), *b = ls_grad_input(g, 1), *dy = ls_grad_output(g, 0);
    int64_t n = ls_dim(a, -1);
    ls_tensor *slope = ls_scale(per_row(dy), n ? 2.0 / (double)n : 0);
    ls_tensor *da = ls_mul(ls_sub(a, b), slope);
    ls_status st = LS_OK;
    if (ls_grad_wanted(g, 0))
        st = ls_grad_give(g, 0, da);
    if (!st && ls_grad_wanted(g, 1))
        st = ls_grad_give(g, 1, ls_neg(da));
    return st;
}

static const ls_op mse = {
    .size = sizeof(ls_op),
    .name = "mse",
    .inputs = 2,
    .outputs = 1,
    .flags = LS_OP_BF16_AS_F32,
    .shape = mse_shape,
    .kernel = mse_kernel,
    .gradient = mse_gradient,
};

ls_tensor *ls_mse(ls_tensor *prediction, ls_tensor *target)
{
    return ls__call2(&mse, NULL, prediction, target);
}

const ls_op *const ls__rows_loss[] = {
    &sparse_softmax_xent, &softmax_xent, &sigmoid_xent, &mse, &sparse_grad, &dense_grad, NULL,
};
