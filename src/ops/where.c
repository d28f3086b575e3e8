/*
 * where: a where the condition holds, b elsewhere; all three broadcast. The
 * kernel moves elements by their size and never looks at them. The gradient
 * goes to whichever was taken.
 */
#include <lockstep/ops.h>

#include "ops/elementwise.h"

static ls_status where_shape(ls_call *c)
{
    ls_status st = ls__want_dtype(c, 0, LS__BIT(LS_BOOL));
    if (!st)
        st = ls__want_dtype(c, 1, LS__ANY);
    if (!st)
        st = ls__want_same_dtype(c, 1, 2);
    ls__spec pair, out;
    if (!st)
        st = ls__want_broadcast(c, c->in[1], c->in[2], &pair);
    if (!st)
        st = ls__want_broadcast(c, c->in[0], &pair, &out);
    return st ? st : ls_call_output(c, 0, c->in[1]->dtype, out.rank, out.dims);
}

static ls_status where_kernel(ls_call *c)
{
    size_t size = ls_dtype_size(c->out[0].dtype);
    const size_t sizes[] = { 1, size, size };
    ls__broadcast p;
    ls__plan_call(c, &p);
    ls__broadcast_run(&p, ls__where_loop(size), c->in_data, sizes, c->out_data[0], size);
    return LS_OK;
}

static ls_status where_gradient(ls_grad *g)
{
    ls_tensor *condition = ls_grad_input(g, 0), *dy = ls_grad_output(g, 0);
    ls_tensor *zero = ls_scalar(ls_dtype_of(dy), 0);
    ls_status st = LS_OK;
    if (ls_grad_wanted(g, 1))
        st = ls_grad_give(g, 1, ls__sum_to(ls_where(condition, dy, zero), ls_grad_input(g, 1)));
    if (!st && ls_grad_wanted(g, 2))
        st = ls_grad_give(g, 2, ls__sum_to(ls_where(condition, zero, dy), ls_grad_input(g, 2)));
    return st;
}

static const ls_op where_row = { .size = sizeof(ls_op),
                                 .name = "where",
                                 .inputs = 3,
                                 .outputs = 1,
                                 .flags = LS_OP_ELEMENTWISE | LS_OP_TOTAL,
                                 .shape = where_shape,
                                 .kernel = where_kernel,
                                 .gradient = where_gradient };

ls_tensor *ls_where(ls_tensor *condition, ls_tensor *a, ls_tensor *b)
{
    return ls__call3(&where_row, NULL, condition, a, b);
}

const ls_op *const ls__rows_where[] = { &where_row, NULL };
