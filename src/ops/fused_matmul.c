/*
 * matmul_bias_act: act(op(a) op(b) + bias), put into graphs by the pass
 * fuse-matmul. Invariant: the bits of the rows matmul, add and act one after the
 * other; what is saved is passes over memory. The product is matmul's own
 * kernel; bias and activation then go over a block of rows while it is in the
 * cache, with the loops of the rows they stand for.
 */
#include "kernels/elementwise.h"
#include "ops/matmul.h"
#include "ops/shape.h"

/* ---- bias and activation -------------------------------------------------------- */

static const ls__fn act_fn[LS__ACT_END] = {
    [LS__ACT_RELU] = LS__FN_relu,           [LS__ACT_TANH] = LS__FN_tanh,
    [LS__ACT_SIGMOID] = LS__FN_sigmoid,     [LS__ACT_GELU] = LS__FN_gelu,
    [LS__ACT_GELU_TANH] = LS__FN_gelu_tanh,
};

ls_status ls__want_act(const ls_call *c, int64_t act)
{
    if (act >= LS__ACT_NONE && act < LS__ACT_END)
        return LS_OK;
    return ls_call_fail(c, LS_INVALID, "activation %lld, wants 0 to %d", (long long)act,
                        LS__ACT_END - 1);
}

ls_status ls__want_bias(const ls_call *c, int index)
{
    ls_status st = ls__want_same_dtype(c, 0, index);
    if (!st)
        st = ls__want_rank(c, index, 1);
    if (!st && c->in[index]->dims[0] != ls__row_size(&c->out[0]))
        st = ls_call_fail(c, LS_SHAPE, "a bias of %lld for rows of %lld",
                          (long long)c->in[index]->dims[0], (long long)ls__row_size(&c->out[0]));
    return st;
}

/* Half of the smallest first-level cache there is. */
enum { BLOCK_BYTES = 16 * 1024 };

static void add_bias(ls_dtype dtype, void *y, int64_t rows, int64_t n, const void *bias)
{
    const size_t size[2] = { ls_dtype_size(dtype), ls_dtype_size(dtype) };
    const int64_t dims[2] = { rows, n };
    const int ranks[2] = { 2, 1 };
    ls__broadcast p;
    ls__broadcast_plan(&p, 2, dims, 2, ranks, (const int64_t *const[]){ dims, dims + 1 });
    ls__broadcast_run(&p, ls__elementwise_loop(LS__FN_add, dtype), (const void *const[]){ y, bias },
                      size, y, size[0]);
}

void ls__bias_act(ls_dtype dtype, void *y, int64_t rows, int64_t n, const void *bias, int64_t act)
{
    if (rows <= 0 || n <= 0)
        return;
    int64_t row = n * (int64_t)ls_dtype_size(dtype);
    int64_t step = row >= BLOCK_BYTES ? 1 : BLOCK_BYTES / row;
    ls__loop *loop = act == LS__ACT_NONE ? NULL : ls__elementwise_loop(act_fn[act], dtype);
    for (int64_t r = 0; r < rows; r += step) {
        char *at = (char *)y + r * row;
        int64_t take = rows - r < step ? rows - r : step;
        if (bias)
            add_bias(dtype, at, take, n, bias);
        if (loop)
            loop((const void *const[]){ at }, (const int64_t[]){ 1 }, at, take * n);
    }
}

/* ---- the row ---------------------------------------------------------------------- */

static const ls_attr bias_act_attr_list[] = {
    { "transpose_a", LS_ATTR_KIND_INT, offsetof(ls__matmul_bias_attrs, matmul.transpose_a) },
    { "transpose_b", LS_ATTR_KIND_INT, offsetof(ls__matmul_bias_attrs, matmul.transpose_b) },
    LS_ATTR_INT(ls__matmul_bias_attrs, act),
    LS_ATTR_END,
};

static ls_status bias_act_shape(ls_call *c)
{
    const ls__matmul_bias_attrs *t = c->attrs;
    ls_status st = ls__want_act(c, t->act);
    if (!st)
        st = ls__want_dtype(c, 0, LS__BIT(LS_F32) | LS__BIT(LS_F64));
    if (!st)
        st = ls__matmul_rule(c, &t->matmul);
    return st ? st : ls__want_bias(c, 2);
}

static ls_status bias_act_kernel(ls_call *c)
{
    const ls__matmul_bias_attrs *t = c->attrs;
    ls_status st = ls__matmul_run(c, &t->matmul);
    if (st)
        return st;
    ls__bias_act(c->out[0].dtype, c->out_data[0], ls__row_count(&c->out[0]),
                 ls__row_size(&c->out[0]), c->in_data[2], t->act);
    return LS_OK;
}

static const ls_op bias_act_row = {
    .size = sizeof(ls_op),
    .name = "matmul_bias_act",
    .inputs = 3,
    .outputs = 1,
    .flags = LS__OP_FUSED,
    .attr_size = sizeof(ls__matmul_bias_attrs),
    .attrs = bias_act_attr_list,
    .shape = bias_act_shape,
    .kernel = bias_act_kernel,
};

const ls_op *const ls__rows_fused_matmul[] = { &bias_act_row, NULL };
