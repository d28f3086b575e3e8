/*
 * Parts of pictures, and pictures turned round. A crop is a slice, so it has
 * its gradient; flip is a row of its own, and its own gradient.
 *
 * The random ones look pixels up at places that were drawn (gather): what is drawn
 * stays a value, so a traced step draws anew in every replay, and gradients go
 * through. They draw the same number of times whatever the sizes are.
 */
#include <lockstep/image.h>
#include <lockstep/ops.h>
#include <string.h>

#include "kernels/movement.h"
#include "ops/picture.h"

/* ---- checks --------------------------------------------------------------------------- */

#define WANTED "wants a picture [height, width, channels] or a batch of them"

ls_status ls__want_picture(const ls_call *c, int input)
{
    int rank = c->in[input]->rank;
    if (rank == 3 || rank == 4)
        return LS_OK;
    return ls_call_fail(c, LS_SHAPE, "input %d has rank %d, " WANTED, input, rank);
}

ls_status ls__check_picture(const char *who, const ls_tensor *x)
{
    ls_status st = ls__check_tensor(who, "x", x);
    if (st)
        return st;
    if ((ls_rank(x) == 3 || ls_rank(x) == 4) && ls_dtype_of(x) != LS_BYTES)
        return LS_OK;
    return ls__fail(LS_SHAPE, "%s: given %s, " WANTED, who, ls_describe(x));
}

static ls_status check_one(const char *who, const ls_tensor *x)
{
    ls_status st = ls__check_picture(who, x);
    if (st || ls_rank(x) == 3)
        return st;
    return ls__hint(ls__fail(LS_SHAPE, "%s: given %s, wants one picture", who, ls_describe(x)),
                    "in a dataset, map it over the pictures before they are batched");
}

ls_tensor *ls__indices_new(const char *who, int64_t count)
{
    ls__spec spec;
    return ls__spec_make(&spec, who, LS_I64, 1, &count) ? NULL : ls__tensor_new(who, &spec);
}

/* ---- flip: an axis backwards ------------------------------------------------------------ */

typedef struct flip_attrs {
    int64_t axis;
} flip_attrs;

static const ls_attr flip_attr_list[] = { LS_ATTR_INT(flip_attrs, axis), LS_ATTR_END };

static ls_status flip_shape(ls_call *c)
{
    int axis;
    ls_status st = ls__want_dtype(c, 0, LS__ANY);
    if (!st)
        st = ls__want_axis(c, ((const flip_attrs *)c->attrs)->axis, c->in[0]->rank, &axis);
    return st ? st : ls__output_like(c, 0, 0);
}

/* A walk that reads the axis from its last place on. */
static ls_status flip_kernel(ls_call *c)
{
    const ls__spec *x = c->in[0];
    int axis = ls__axis(((const flip_attrs *)c->attrs)->axis, x->rank);
    size_t element = ls_dtype_size(x->dtype);
    ls__walk w = { .rank = x->rank };
    if (ls__spec_count(x) == 0)
        return LS_OK;
    ls__row_major(x->rank, x->dims, w.to);
    ls__row_major(x->rank, x->dims, w.from);
    memcpy(w.dims, x->dims, (size_t)x->rank * sizeof *w.dims);
    const char *last =
        (const char *)c->in_data[0] + (size_t)((x->dims[axis] - 1) * w.from[axis]) * element;
    w.from[axis] = -w.from[axis];
    LS__PICK(ls__movement_table)->move(&w, element, last, c->out_data[0]);
    return LS_OK;
}

static const ls_op flip;

static ls_status flip_gradient(ls_grad *g)
{
    return ls_grad_give(g, 0, ls__call1(&flip, ls_grad_attrs(g), ls_grad_output(g, 0)));
}

static const ls_op flip = {
    .size = sizeof(ls_op),
    .name = "flip",
    .inputs = 1,
    .outputs = 1,
    .flags = LS_OP_TOTAL,
    .attr_size = sizeof(flip_attrs),
    .attrs = flip_attr_list,
    .shape = flip_shape,
    .kernel = flip_kernel,
    .gradient = flip_gradient,
};

static ls_tensor *flip_axis(const char *who, ls_tensor *x, int64_t axis)
{
    const flip_attrs attrs = { axis };
    return ls__check_picture(who, x) ? NULL : ls__call1(&flip, &attrs, x);
}

ls_tensor *ls_flip_left_right(ls_tensor *x)
{
    return flip_axis("flip_left_right", x, -2);
}

ls_tensor *ls_flip_up_down(ls_tensor *x)
{
    return flip_axis("flip_up_down", x, -3);
}

/* ---- crop -------------------------------------------------------------------------------- */

static ls_status want_inside(const char *who, const ls_tensor *x, int64_t height, int64_t width)
{
    if (height >= 1 && width >= 1 && height <= ls_dim(x, -3) && width <= ls_dim(x, -2))
        return LS_OK;
    return ls__fail(LS_INVALID,
                    "%s: height %lld and width %lld of %s; wants 1 to %lld and 1 to %lld", who,
                    (long long)height, (long long)width, ls_describe(x), (long long)ls_dim(x, -3),
                    (long long)ls_dim(x, -2));
}

/* Everything was checked. */
static ls_tensor *cut(ls_tensor *x, int64_t top, int64_t left, int64_t height, int64_t width)
{
    const int64_t begin[] = { 0, top, left, 0 }, size[] = { -1, height, width, -1 };
    int skip = 4 - ls_rank(x);
    return ls_slice(x, ls_rank(x), begin + skip, size + skip);
}

ls_tensor *ls_crop(ls_tensor *x, int64_t top, int64_t left, int64_t height, int64_t width)
{
    if (ls__check_picture("crop", x) || want_inside("crop", x, height, width))
        return NULL;
    int64_t last_top = ls_dim(x, -3) - height, last_left = ls_dim(x, -2) - width;
    if (top >= 0 && left >= 0 && top <= last_top && left <= last_left)
        return cut(x, top, left, height, width);
    ls__hint(ls__fail(LS_INVALID, "crop: %lld x %lld from top %lld, left %lld is not inside %s",
                      (long long)height, (long long)width, (long long)top, (long long)left,
                      ls_describe(x)),
             "top is 0 to %lld and left 0 to %lld", (long long)last_top, (long long)last_left);
    return NULL;
}

/* Where the margins are not even, the greater ones are below and right. */
ls_tensor *ls_center_crop(ls_tensor *x, int64_t height, int64_t width)
{
    if (ls__check_picture("center_crop", x) || want_inside("center_crop", x, height, width))
        return NULL;
    return cut(x, (ls_dim(x, -3) - height) / 2, (ls_dim(x, -2) - width) / 2, height, width);
}

/* ---- drawn ------------------------------------------------------------------------------- */

/* A whole number, 0 to most. */
static ls_tensor *draw_to(int64_t most)
{
    return ls_random_uniform(LS_I64, LS_SCALAR, 0, (double)most + 1);
}

/* first, first + step, ... */
static ls_tensor *numbers(const char *who, int64_t count, int64_t first, int64_t step)
{
    ls_tensor *t = ls__indices_new(who, count);
    for (int64_t i = 0; t && i < count; i++)
        ((int64_t *)ls__data(t))[i] = first + i * step;
    return t;
}

ls_tensor *ls_random_crop(ls_tensor *x, int64_t height, int64_t width)
{
    if (check_one("random_crop", x) || want_inside("random_crop", x, height, width))
        return NULL;
    ls_tensor *top = draw_to(ls_dim(x, 0) - height), *left = draw_to(ls_dim(x, 1) - width);
    x = ls_gather(x, ls_add(numbers("random_crop", height, 0, 1), top), 0);
    return ls_gather(x, ls_add(numbers("random_crop", width, 0, 1), left), 1);
}

/* Column i comes from i, or from i + (last - 2 i) when it is turned. */
ls_tensor *ls_random_flip_left_right(ls_tensor *x)
{
    if (check_one("random_flip_left_right", x))
        return NULL;
    int64_t width = ls_dim(x, 1);
    ls_tensor *straight = numbers("random_flip_left_right", width, 0, 1);
    ls_tensor *turn = numbers("random_flip_left_right", width, width - 1, -2);
    return ls_gather(x, ls_add(straight, ls_mul(turn, draw_to(1))), 1);
}

const ls_op *const ls__rows_picture[] = { &flip, NULL };
