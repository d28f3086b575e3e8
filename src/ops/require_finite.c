/*
 * require_finite: x as it is, or a failure. What it is for is to fail: it stays in a traced step
 * though nobody uses its result (LS__OP_CHECKS), and since it can fail, a replay writes after it.
 */
#include <lockstep/ops.h>
#include <math.h>
#include <string.h>

#include "dispatch/call.h"
#include "tensor/convert.h"

static ls_status finite_shape(ls_call *c)
{
    ls_status st = ls__want_dtype(c, 0, LS__FLOATS);
    return st ? st : ls__output_like(c, 0, 0);
}

/* The index of the first that is not finite, or -1. */
static int64_t first_not_finite(ls_dtype dtype, const void *data, int64_t count)
{
    const float *narrow = data;
    const double *wide = data;
    int64_t i = 0;
    if (dtype == LS_F32)
        while (i < count && isfinite(narrow[i]))
            i++;
    else if (dtype == LS_F64)
        while (i < count && isfinite(wide[i]))
            i++;
    else
        while (i < count && isfinite(ls__load_double(dtype, data, i)))
            i++;
    return i < count ? i : -1;
}

static ls_status finite_kernel(ls_call *c)
{
    int64_t at = first_not_finite(c->in[0]->dtype, c->in_data[0], ls__spec_count(c->in[0]));
    if (at >= 0) {
        double x = ls__load_double(c->in[0]->dtype, c->in_data[0], at);
        return ls__hint(ls_call_fail(c, LS_NOT_FINITE, "%s at element %lld of %s",
                                     isnan(x) ? "NaN" : "an infinity", (long long)at,
                                     ls__spec_text(c->in[0])),
                        "ls_check_numerics(LS_NUMERICS_NAN_AND_INF) makes the operator that "
                        "made it fail");
    }
    if (c->out_data[0] != c->in_data[0])
        memcpy(c->out_data[0], c->in_data[0], ls__spec_bytes(c->in[0]));
    return LS_OK;
}

static ls_status finite_gradient(ls_grad *g)
{
    return ls_grad_give(g, 0, ls_grad_output(g, 0));
}

static const ls_op require_finite = { .size = sizeof(ls_op),
                                      .name = "require_finite",
                                      .inputs = 1,
                                      .outputs = 1,
                                      .flags = LS_OP_ELEMENTWISE | LS__OP_CHECKS,
                                      .shape = finite_shape,
                                      .kernel = finite_kernel,
                                      .gradient = finite_gradient };

ls_tensor *ls_require_finite(ls_tensor *x)
{
    return ls__call1(&require_finite, NULL, x);
}

const ls_op *const ls__rows_require_finite[] = { &require_finite, NULL };
