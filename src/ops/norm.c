/*
 * What batch_norm.c and layer_norm.c ask of their inputs (norm.h).
 */
#include "ops/norm.h"

#include <math.h>

#include "ops/shape.h"

const ls_attr ls__norm_attr_list[] = { LS_ATTR_FLOAT(ls__norm_attrs, epsilon), LS_ATTR_END };

ls_status ls__norm_want_inputs(const ls_call *c, int last)
{
    static const char *const names[] = { "x", "scale", "offset", "mean", "variance" };
    double epsilon = ((const ls__norm_attrs *)c->attrs)->epsilon;
    ls_status st = ls__want_dtype(c, 0, LS__FLOATS);
    if (!st)
        st = ls__want_rank_at_least(c, 0, 1);
    for (int i = 1; i <= last && !st; i++) {
        st = ls__want_same_dtype(c, 0, i);
        if (!st && (c->in[i]->rank != 1 || c->in[i]->dims[0] != ls__row_size(c->in[0])))
            st = ls_call_fail(c, LS_SHAPE, "%s wants one number per column, [%lld]", names[i],
                              (long long)ls__row_size(c->in[0]));
    }
    if (!st && !(epsilon >= 0 && isfinite(epsilon)))
        st = ls_call_fail(c, LS_INVALID, "epsilon is %g, wants 0 or more", epsilon);
    return st;
}

ls_status ls__norm_want_backward(const ls_call *c)
{
    ls_status st = ls__norm_want_inputs(c, 2);
    if (!st)
        st = ls__want_same_dtype(c, 0, 3);
    if (!st && !ls__spec_same_shape(c->in[0], c->in[3]))
        st = ls_call_fail(c, LS_SHAPE, "x and the gradient differ in shape");
    return st;
}
