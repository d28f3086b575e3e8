/*
 * Pictures at another size. resize_bilinear and its transpose are each other's
 * gradients: both are linear. resize_nearest only looks pixels up, so it is two
 * gathers, along the height and along the width.
 */
#include <lockstep/image.h>
#include <lockstep/ops.h>
#include <string.h>

#include "dispatch/call.h"
#include "kernels/resize.h"
#include "ops/picture.h"

typedef struct size_attrs {
    int64_t height;
    int64_t width;
} size_attrs;

static const ls_attr size_attr_list[] = { LS_ATTR_INT(size_attrs, height),
                                          LS_ATTR_INT(size_attrs, width), LS_ATTR_END };

/* ---- both rows: a picture in, one of another size out ---------------------------------- */

static ls_status size_shape(ls_call *c, ls_dtype dtype)
{
    const size_attrs *a = c->attrs;
    const ls__spec *x = c->in[0];
    ls_status st = ls__want_picture(c, 0);
    if (st)
        return st;
    if (a->height < 1 || a->width < 1 || a->height > INT32_MAX || a->width > INT32_MAX)
        return ls_call_fail(c, LS_INVALID, "to height %lld and width %lld; both are 1 to 2^31 - 1",
                            (long long)a->height, (long long)a->width);
    int64_t dims[LS_MAX_RANK];
    memcpy(dims, x->dims, sizeof dims);
    if (dims[x->rank - 3] == 0 || dims[x->rank - 2] == 0)
        return ls_call_fail(c, LS_SHAPE, "there are no pixels");
    dims[x->rank - 3] = a->height;
    dims[x->rank - 2] = a->width;
    return ls_call_output(c, 0, dtype, x->rank, dims);
}

/* `from` is what resize_bilinear takes, `to` what it gives. */
static ls__resize_shape shape_of(const ls__spec *from, const ls__spec *to)
{
    int r = from->rank;
    return (ls__resize_shape){ .n = r == 4 ? from->dims[0] : 1,
                               .h = from->dims[r - 3],
                               .w = from->dims[r - 2],
                               .c = from->dims[r - 1],
                               .oh = to->dims[r - 3],
                               .ow = to->dims[r - 2] };
}

/* ---- bilinear ----------------------------------------------------------------------- */

static const ls_op resize_bilinear_grad;

static ls_status bilinear_shape(ls_call *c)
{
    ls_status st = ls__want_dtype(c, 0, LS__NUMBERS);
    return st ? st : size_shape(c, c->in[0]->dtype == LS_F64 ? LS_F64 : LS_F32);
}

static size_t bilinear_scratch(ls_call *c)
{
    ls__resize_shape s = shape_of(c->in[0], &c->out[0]);
    return ls__resize_scratch(&s, c->out[0].dtype);
}

static ls_status bilinear_kernel(ls_call *c)
{
    ls__resize_shape s = shape_of(c->in[0], &c->out[0]);
    ls__resize_bilinear(&s, c->in[0]->dtype, c->in_data[0], c->out_data[0], c->scratch);
    return LS_OK;
}

static size_attrs size_of(ls_tensor *x)
{
    return (size_attrs){ ls_dim(x, -3), ls_dim(x, -2) };
}

static ls_status bilinear_gradient(ls_grad *g)
{
    ls_tensor *x = ls_grad_input(g, 0), *dy = ls_grad_output(g, 0);
    const size_attrs attrs = size_of(x);
    if (!ls_grad_wanted(g, 0))
        return LS_OK;
    ls_tensor *dx = ls__call1(&resize_bilinear_grad, &attrs, dy);
    bool same = ls_dtype_of(x) == ls_dtype_of(dy); /* not so for bf16 */
    return ls_grad_give(g, 0, same ? dx : ls_cast(dx, ls_dtype_of(x)));
}

static const ls_op resize_bilinear = {
    .size = sizeof(ls_op),
    .name = "resize_bilinear",
    .inputs = 1,
    .outputs = 1,
    .flags = LS_OP_BF16_AS_F32 | LS_OP_TOTAL,
    .attr_size = sizeof(size_attrs),
    .attrs = size_attr_list,
    .shape = bilinear_shape,
    .scratch = bilinear_scratch,
    .kernel = bilinear_kernel,
    .gradient = bilinear_gradient,
};

/* dy -> dx, of the size in the attributes. */
static ls_status grad_shape(ls_call *c)
{
    ls_status st = ls__want_dtype(c, 0, LS__BIT(LS_F32) | LS__BIT(LS_F64));
    return st ? st : size_shape(c, c->in[0]->dtype);
}

static size_t grad_scratch(ls_call *c)
{
    ls__resize_shape s = shape_of(&c->out[0], c->in[0]);
    return ls__resize_scratch(&s, c->out[0].dtype);
}

static ls_status grad_kernel(ls_call *c)
{
    ls__resize_shape s = shape_of(&c->out[0], c->in[0]);
    ls__resize_bilinear_back(&s, c->in[0]->dtype, c->in_data[0], c->out_data[0], c->scratch);
    return LS_OK;
}

static ls_status grad_gradient(ls_grad *g)
{
    const size_attrs attrs = size_of(ls_grad_input(g, 0));
    return ls_grad_give(g, 0, ls__call1(&resize_bilinear, &attrs, ls_grad_output(g, 0)));
}

static const ls_op resize_bilinear_grad = {
    .size = sizeof(ls_op),
    .name = "resize_bilinear_grad",
    .inputs = 1,
    .outputs = 1,
    .flags = LS_OP_TOTAL,
    .attr_size = sizeof(size_attrs),
    .attrs = size_attr_list,
    .shape = grad_shape,
    .scratch = grad_scratch,
    .kernel = grad_kernel,
    .gradient = grad_gradient,
};

ls_tensor *ls_resize_bilinear(ls_tensor *x, int64_t height, int64_t width)
{
    const size_attrs attrs = { height, width };
    return ls__call1(&resize_bilinear, &attrs, x);
}

/* ---- nearest -------------------------------------------------------------------------- */

static ls_tensor *nearest_of(int64_t in, int64_t out)
{
    ls_tensor *t = ls__indices_new("resize_nearest", out);
    for (int64_t i = 0; t && i < out; i++)
        ((int64_t *)ls__data(t))[i] = ls__resize_nearest(i, in, out);
    return t;
}

ls_tensor *ls_resize_nearest(ls_tensor *x, int64_t height, int64_t width)
{
    if (ls__check_picture("resize_nearest", x))
        return NULL;
    int64_t h = ls_dim(x, -3), w = ls_dim(x, -2);
    if (height < 1 || width < 1 || height > INT32_MAX || width > INT32_MAX) {
        ls__fail(LS_INVALID,
                 "resize_nearest: to height %lld and width %lld; both are 1 to 2^31 - 1; got %s",
                 (long long)height, (long long)width, ls_describe(x));
        return NULL;
    }
    if (h == 0 || w == 0) {
        ls__fail(LS_SHAPE, "resize_nearest: there are no pixels in %s", ls_describe(x));
        return NULL;
    }
    x = ls_gather(x, nearest_of(h, height), -3);
    return ls_gather(x, nearest_of(w, width), -2);
}

const ls_op *const ls__rows_resize[] = { &resize_bilinear, &resize_bilinear_grad, NULL };
