/*
 * max_pool2d_packed and max_pool2d_grad_packed: max_pool2d (with relu of what is pooled, if asked) and its
 * gradient on an image that is packed in blocks of channels, as convolutions make and take it. The layout
 * pass puts these rows in, no program calls them. What is pooled, and places, are plain. f32 only; the bits
 * are those of the plain rows.
 */
#include "ops/pool.h"

static const ls_attr attr_list[] = { LS_ATTR_INT(ls__pool_packed_attrs, window),
                                     LS_ATTR_INT(ls__pool_packed_attrs, stride),
                                     LS_ATTR_INT(ls__pool_packed_attrs, padding),
                                     LS_ATTR_INTS(ls__pool_packed_attrs, shape),
                                     LS_ATTR_INT(ls__pool_packed_attrs, block),
                                     LS_ATTR_INT(ls__pool_packed_attrs, relu),
                                     LS_ATTR_END };

/* The pool, from attributes that were checked. */
static ls_status packed_geometry(const ls_call *c, ls__pool_shape *s)
{
    const ls__pool_packed_attrs *a = c->attrs;
    ls_status st = ls__pool_geometry(c, a->shape.at, s);
    s->block = a->block;
    return st;
}

/* And the image as a vector. */
static ls_status check(const ls_call *c, ls__pool_shape *s, ls__spec *image)
{
    const ls__pool_packed_attrs *a = c->attrs;
    const int64_t *x = a->shape.at;
    if (a->shape.count != 4 || x[0] < 0 || x[1] < 0 || x[2] < 0 || x[3] < 0 || a->block < 1 ||
        x[3] % a->block != 0)
        return ls_call_fail(c, LS_INVALID, "the image is none in blocks of %lld channels",
                            (long long)a->block);
    *image = (ls__spec){ LS_F32, 1, { x[0] } };
    for (int k = 1; k < 4; k++)
        if (__builtin_mul_overflow(image->dims[0], x[k], &image->dims[0]))
            return ls_call_fail(c, LS_INVALID, "the image has too many elements");
    return packed_geometry(c, s);
}

/* ---- forward -------------------------------------------------------------------------------- */

static ls_status forward_shape(ls_call *c)
{
    ls__pool_shape s;
    ls__spec image;
    ls_status st = check(c, &s, &image);
    if (!st)
        st = ls__want_spec(c, 0, &image);
    if (st)
        return st;
    const int64_t pooled[] = { s.n, s.oh, s.ow, s.c };
    st = ls_call_output(c, 0, LS_F32, 4, pooled);
    return st ? st : ls_call_output(c, 1, LS_I32, 4, pooled);
}

static ls_status forward_kernel(ls_call *c)
{
    ls__pool_shape s;
    ls_status st = packed_geometry(c, &s);
    if (st)
        return st;
    if (((const ls__pool_packed_attrs *)c->attrs)->relu)
        ls__max_pool_forward_relu_f32(&s, c->in_data[0], c->out_data[0], c->out_data[1]);
    else
        ls__max_pool_forward_f32(&s, c->in_data[0], c->out_data[0], c->out_data[1]);
    return LS_OK;
}

/* ---- backward ------------------------------------------------------------------------------- */

static ls_status backward_shape(ls_call *c)
{
    ls__pool_shape s;
    ls__spec image;
    ls_status st = check(c, &s, &image);
    if (!st)
        st = ls__want_dtype(c, 0, LS__BIT(LS_F32));
    if (!st)
        st = ls__want_dtype(c, 1, LS__BIT(LS_I32));
    for (int i = 0; i < 2 && !st; i++)
        st = ls__pool_want_pooled(c, i, &s);
    return st ? st : ls_call_output(c, 0, LS_F32, 1, image.dims);
}

static ls_status backward_kernel(ls_call *c)
{
    ls__pool_shape s;
    ls_status st = packed_geometry(c, &s);
    if (st)
        return st;
    return ls__max_pool_backward_f32(&s, c->in_data[0], c->in_data[1], c->out_data[0])
               ? LS_OK
               : ls__pool_place_outside(c, &s);
}

/* ---- rows ----------------------------------------------------------------------------------- */

const ls_op ls__max_pool2d_packed = {
    .size = sizeof(ls_op),
    .name = "max_pool2d_packed",
    .inputs = 1,
    .outputs = 2,
    .flags = LS__OP_FUSED | LS_OP_TOTAL,
    .attr_size = sizeof(ls__pool_packed_attrs),
    .attrs = attr_list,
    .shape = forward_shape,
    .kernel = forward_kernel,
};

const ls_op ls__max_pool2d_grad_packed = {
    .size = sizeof(ls_op),
    .name = "max_pool2d_grad_packed",
    .inputs = 2,
    .outputs = 1,
    .flags = LS__OP_FUSED,
    .attr_size = sizeof(ls__pool_packed_attrs),
    .attrs = attr_list,
    .shape = backward_shape,
    .kernel = backward_kernel,
};

const ls_op *const ls__rows_layout_pool[] = { &ls__max_pool2d_packed, &ls__max_pool2d_grad_packed,
                                              NULL };
