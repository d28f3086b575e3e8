/*
 * dropout in two rows: dropout_mask draws which elements stay, dropout zeroes
 * the others and scales. The mask is a value of its own, so the gradient (and
 * its gradient) applies the same one without drawing again.
 */
#include <lockstep/ops.h>

#include "dispatch/call.h"
#include "kernels/random.h"

typedef struct rate_attrs {
    double rate;
} rate_attrs;

static const ls_attr rate_attr_list[] = { LS_ATTR_FLOAT(rate_attrs, rate), LS_ATTR_END };

static ls_status want_rate(const ls_call *c)
{
    double rate = ((const rate_attrs *)c->attrs)->rate;
    if (rate >= 0 && rate < 1)
        return LS_OK;
    return ls_call_fail(c, LS_INVALID, "rate %g, wants 0 <= rate < 1", rate);
}

static ls_status mask_shape(ls_call *c)
{
    ls_status st = ls__want_dtype(c, 0, LS__FLOATS);
    if (!st)
        st = want_rate(c);
    return st ? st : ls__output_as(c, 0, LS_BOOL, 0);
}

static ls_status mask_kernel(ls_call *c)
{
    LS__PICK(ls__random_table)
        ->keep(&c->draw, ((const rate_attrs *)c->attrs)->rate, c->out_data[0],
               ls__spec_count(&c->out[0]));
    return LS_OK;
}

static const ls_op dropout_mask = {
    .size = sizeof(ls_op),
    .name = "dropout_mask",
    .inputs = 1,
    .outputs = 1,
    .flags = LS_OP_DRAWS,
    .attr_size = sizeof(rate_attrs),
    .attrs = rate_attr_list,
    .shape = mask_shape,
    .kernel = mask_kernel,
};

static ls_status dropout_shape(ls_call *c)
{
    ls_status st = ls__want_dtype(c, 0, LS__FLOATS);
    if (!st)
        st = ls__want_dtype(c, 1, LS__BIT(LS_BOOL));
    if (!st)
        st = want_rate(c);
    if (!st && !ls__spec_same_shape(c->in[0], c->in[1]))
        st = ls_call_fail(c, LS_SHAPE, "the mask has another shape");
    return st ? st : ls__output_like(c, 0, 0);
}

static ls_status dropout_kernel(ls_call *c)
{
    const ls__random *kernels = LS__PICK(ls__random_table);
    double factor = 1 / (1 - ((const rate_attrs *)c->attrs)->rate);
    int64_t n = ls__spec_count(&c->out[0]);
    if (c->out[0].dtype == LS_F64)
        kernels->dropout_f64(c->in_data[0], c->in_data[1], factor, c->out_data[0], n);
    else
        kernels->dropout_f32(c->in_data[0], c->in_data[1], (float)factor, c->out_data[0], n);
    return LS_OK;
}

static const ls_op dropout;

/* Linear, and its own transpose. */
static ls_status dropout_gradient(ls_grad *g)
{
    return ls_grad_give(
        g, 0, ls__call2(&dropout, ls_grad_attrs(g), ls_grad_output(g, 0), ls_grad_input(g, 1)));
}

static const ls_op dropout = {
    .size = sizeof(ls_op),
    .name = "dropout",
    .inputs = 2,
    .outputs = 1,
    .flags = LS_OP_ELEMENTWISE | LS_OP_BF16_AS_F32,
    .attr_size = sizeof(rate_attrs),
    .attrs = rate_attr_list,
    .shape = dropout_shape,
    .kernel = dropout_kernel,
    .gradient = dropout_gradient,
};

ls_tensor *ls_dropout(ls_tensor *x, double rate)
{
    const rate_attrs attrs = { .rate = rate };
    ls_tensor *mask = ls__call1(&dropout_mask, &attrs, x);
    return mask ? ls__call2(&dropout, &attrs, x, mask) : NULL;
}

const ls_op *const ls__rows_dropout[] = { &dropout_mask, &dropout, NULL };
