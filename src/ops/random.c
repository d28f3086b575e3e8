/*
 * Random tensors. Element i depends on (seed, replica, step, ordinal of the
 * draw, i) and the attributes alone: kernels/random.h says how. None of them
 * has a gradient.
 */
#include <lockstep/ops.h>
#include <math.h>
#include <string.h>

#include "base/bf16.h"
#include "dispatch/call.h"
#include "kernels/random.h"

/* A spec made of attributes instead of inputs. */
static ls_status output_of(ls_call *c, const ls_ints *shape, int64_t dtype, unsigned set)
{
    if (dtype < LS_F32 || dtype > LS_BYTES || !(set & LS__BIT(dtype)))
        return ls_call_fail(c, LS_INVALID, "no random numbers of dtype %s",
                            ls_dtype_name((ls_dtype)dtype));
    return ls_call_output(c, 0, (ls_dtype)dtype, (int)shape->count, shape->at);
}

/* ---- random_uniform ------------------------------------------------------------- */

typedef struct uniform_attrs {
    ls_ints shape;
    int64_t dtype;
    double low;
    double high;
} uniform_attrs;

static const ls_attr uniform_attr_list[] = { LS_ATTR_INTS(uniform_attrs, shape),
                                             LS_ATTR_INT(uniform_attrs, dtype),
                                             LS_ATTR_FLOAT(uniform_attrs, low),
                                             LS_ATTR_FLOAT(uniform_attrs, high), LS_ATTR_END };

/* The ends as the dtype holds them, and the last number before the upper one. */
typedef struct bounds {
    double low, high, last;
} bounds;

static bounds float_bounds(const uniform_attrs *a)
{
    bounds b = { a->low, a->high, nextafter(a->high, -INFINITY) };
    if (a->dtype == LS_F32) {
        b = (bounds){ (float)a->low, (float)a->high, nextafterf((float)a->high, -INFINITY) };
    } else if (a->dtype == LS_BF16) {
        uint16_t high = ls__bf16_from_f32((float)a->high);
        /* One step down: away from zero for negative numbers. */
        uint16_t last =
            (high & 0x7FFF) == 0 ? 0x8001 : (uint16_t)(high & 0x8000 ? high + 1 : high - 1);
        b = (bounds){ ls__bf16_to_f32(ls__bf16_from_f32((float)a->low)), ls__bf16_to_f32(high),
                      ls__bf16_to_f32(last) };
    }
    return b;
}

static ls_status want_integer_bounds(const ls_call *c, const uniform_attrs *a)
{
    double least = a->dtype == LS_I64 ? -0x1p63 : a->dtype == LS_I32 ? -0x1p31 : 0;
    double most = a->dtype == LS_I64 ? 0x1p63 : a->dtype == LS_I32 ? 0x1p31 : 256;
    if (trunc(a->low) < least || trunc(a->high) > most)
        return ls_call_fail(c, LS_INVALID, "low %g and high %g leave the range of %s", a->low,
                            a->high, ls_dtype_name((ls_dtype)a->dtype));
    if (trunc(a->low) >= trunc(a->high))
        return ls_call_fail(c, LS_INVALID, "low %g and high %g, wants an integer between them",
                            a->low, a->high);
    return LS_OK;
}

static ls_status uniform_shape(ls_call *c)
{
    const uniform_attrs *a = c->attrs;
    ls_status st = output_of(c, &a->shape, a->dtype, LS__NUMBERS);
    if (st)
        return st;
    if (!isfinite(a->low) || !isfinite(a->high) || !(a->low < a->high))
        return ls_call_fail(c, LS_INVALID, "low %g and high %g, wants finite low < high", a->low,
                            a->high);
    if (!ls_dtype_is_float((ls_dtype)a->dtype))
        return want_integer_bounds(c, a);
    bounds b = float_bounds(a);
    double range = a->dtype == LS_F64 ? b.high - b.low : (double)((float)b.high - (float)b.low);
    if (!(b.low < b.high) || !isfinite(range))
        return ls_call_fail(c, LS_INVALID, "low %g and high %g are too close or too far for %s",
                            a->low, a->high, ls_dtype_name((ls_dtype)a->dtype));
    return LS_OK;
}

static ls_status uniform_kernel(ls_call *c)
{
    const uniform_attrs *a = c->attrs;
    const ls__random *kernels = LS__PICK(ls__random_table);
    int64_t n = ls__spec_count(&c->out[0]);
    if (!ls_dtype_is_float((ls_dtype)a->dtype)) {
        /* 2^63 is no int64, but a bound: as unsigned the difference is right. */
        int64_t low = (int64_t)a->low;
        uint64_t high = a->high >= 0 ? (uint64_t)a->high : (uint64_t)(int64_t)a->high;
        kernels->uniform_int(&c->draw, low, high - (uint64_t)low,
                             (int)ls_dtype_size((ls_dtype)a->dtype), c->out_data[0], n);
        return LS_OK;
    }
    bounds b = float_bounds(a);
    if (a->dtype == LS_F64)
        kernels->uniform_f64(&c->draw, b.low, b.high - b.low, b.last, c->out_data[0], n);
    else
        kernels->uniform_f32(&c->draw, (float)b.low, (float)b.high - (float)b.low, (float)b.last,
                             c->out_data[0], n);
    return LS_OK;
}

static const ls_op random_uniform = {
    .size = sizeof(ls_op),
    .name = "random_uniform",
    .inputs = 0,
    .outputs = 1,
    .flags = LS_OP_DRAWS | LS_OP_BF16_AS_F32,
    .attr_size = sizeof(uniform_attrs),
    .attrs = uniform_attr_list,
    .shape = uniform_shape,
    .kernel = uniform_kernel,
};

ls_tensor *ls_random_uniform(ls_dtype dtype, int rank, const int64_t *dims, double low, double high)
{
    uniform_attrs attrs;
    memset(&attrs, 0, sizeof attrs);
    attrs.dtype = dtype;
    attrs.low = low;
    attrs.high = high;
    ls_tensor *y = NULL;
    if (ls__ints(&attrs.shape, "random_uniform", "dims", rank, dims))
        return NULL;
    return ls__call(&random_uniform, &attrs, 0, NULL, 0, NULL, &y) ? NULL : y;
}

/* ---- random_normal, truncated_normal ------------------------------------------------ */

typedef struct normal_attrs {
    ls_ints shape;
    int64_t dtype;
    double mean;
    double stddev;
} normal_attrs;

static const ls_attr normal_attr_list[] = { LS_ATTR_INTS(normal_attrs, shape),
                                            LS_ATTR_INT(normal_attrs, dtype),
                                            LS_ATTR_FLOAT(normal_attrs, mean),
                                            LS_ATTR_FLOAT(normal_attrs, stddev), LS_ATTR_END };

static ls_status normal_shape(ls_call *c)
{
    const normal_attrs *a = c->attrs;
    ls_status st = output_of(c, &a->shape, a->dtype, LS__FLOATS);
    if (st)
        return st;
    bool finite = a->dtype == LS_F64 ? isfinite(a->mean) && isfinite(a->stddev)
                                     : isfinite((float)a->mean) && isfinite((float)a->stddev);
    if (!finite || a->stddev < 0)
        return ls_call_fail(c, LS_INVALID,
                            "mean %g and stddev %g, wants them finite and stddev "
                            "not below 0",
                            a->mean, a->stddev);
    return LS_OK;
}

static ls_status fill_normal(ls_call *c, bool truncate)
{
    const normal_attrs *a = c->attrs;
    const ls__random *kernels = LS__PICK(ls__random_table);
    int64_t n = ls__spec_count(&c->out[0]);
    if (a->dtype == LS_F64)
        kernels->normal_f64(&c->draw, a->mean, a->stddev, truncate, c->out_data[0], n);
    else
        kernels->normal_f32(&c->draw, (float)a->mean, (float)a->stddev, truncate, c->out_data[0],
                            n);
    return LS_OK;
}

static ls_status normal_kernel(ls_call *c)
{
    return fill_normal(c, false);
}

static ls_status truncated_kernel(ls_call *c)
{
    return fill_normal(c, true);
}

static const ls_op random_normal = {
    .size = sizeof(ls_op),
    .name = "random_normal",
    .inputs = 0,
    .outputs = 1,
    .flags = LS_OP_DRAWS | LS_OP_BF16_AS_F32,
    .attr_size = sizeof(normal_attrs),
    .attrs = normal_attr_list,
    .shape = normal_shape,
    .kernel = normal_kernel,
};

static const ls_op truncated_normal = {
    .size = sizeof(ls_op),
    .name = "truncated_normal",
    .inputs = 0,
    .outputs = 1,
    .flags = LS_OP_DRAWS | LS_OP_BF16_AS_F32,
    .attr_size = sizeof(normal_attrs),
    .attrs = normal_attr_list,
    .shape = normal_shape,
    .kernel = truncated_kernel,
};

static ls_tensor *draw_normal(const ls_op *op, ls_dtype dtype, int rank, const int64_t *dims,
                              double mean, double stddev)
{
    normal_attrs attrs;
    memset(&attrs, 0, sizeof attrs);
    attrs.dtype = dtype;
    attrs.mean = mean;
    attrs.stddev = stddev;
    ls_tensor *y = NULL;
    if (ls__ints(&attrs.shape, op->name, "dims", rank, dims))
        return NULL;
    return ls__call(op, &attrs, 0, NULL, 0, NULL, &y) ? NULL : y;
}

ls_tensor *ls_random_normal(ls_dtype dtype, int rank, const int64_t *dims, double mean,
                            double stddev)
{
    return draw_normal(&random_normal, dtype, rank, dims, mean, stddev);
}

ls_tensor *ls_truncated_normal(ls_dtype dtype, int rank, const int64_t *dims, double mean,
                               double stddev)
{
    return draw_normal(&truncated_normal, dtype, rank, dims, mean, stddev);
}

/* ---- categorical ---------------------------------------------------------------------- */

typedef struct categorical_attrs {
    int64_t samples;
} categorical_attrs;

static const ls_attr categorical_attr_list[] = { LS_ATTR_INT(categorical_attrs, samples),
                                                 LS_ATTR_END };

static ls_status categorical_shape(ls_call *c)
{
    int64_t samples = ((const categorical_attrs *)c->attrs)->samples;
    ls_status st = ls__want_dtype(c, 0, LS__FLOATS);
    if (!st)
        st = ls__want_rank(c, 0, 2);
    if (st)
        return st;
    if (samples < 0)
        return ls_call_fail(c, LS_INVALID, "%lld samples", (long long)samples);
    if (c->in[0]->dims[1] == 0 && c->in[0]->dims[0] > 0 && samples > 0)
        return ls_call_fail(c, LS_SHAPE, "there are no classes to draw from");
    return ls_call_output(c, 0, LS_I64, 2, (const int64_t[]){ c->in[0]->dims[0], samples });
}

/* The running sums of one row. */
static size_t categorical_scratch(ls_call *c)
{
    return (size_t)c->in[0]->dims[1] * sizeof(double);
}

static ls_status categorical_kernel(ls_call *c)
{
    const ls__random *kernels = LS__PICK(ls__random_table);
    int64_t rows = c->in[0]->dims[0], classes = c->in[0]->dims[1];
    int64_t samples = c->out[0].dims[1], *out = c->out_data[0];
    for (int64_t r = 0; r < rows && samples > 0; r++) {
        int fine;
        if (c->in[0]->dtype == LS_F64)
            fine = kernels->categorical_f64(&c->draw, (const double *)c->in_data[0] + r * classes,
                                            classes, c->scratch, r * samples, out + r * samples,
                                            samples);
        else
            fine = kernels->categorical_f32(&c->draw, (const float *)c->in_data[0] + r * classes,
                                            classes, c->scratch, r * samples, out + r * samples,
                                            samples);
        if (!fine)
            return ls_call_fail(c, LS_INVALID,
                                "the logits of row %lld are no distribution: they "
                                "hold NaN or +inf, or -inf alone",
                                (long long)r);
    }
    return LS_OK;
}

static const ls_op categorical = {
    .size = sizeof(ls_op),
    .name = "categorical",
    .inputs = 1,
    .outputs = 1,
    .flags = LS_OP_DRAWS | LS_OP_BF16_AS_F32,
    .attr_size = sizeof(categorical_attrs),
    .attrs = categorical_attr_list,
    .shape = categorical_shape,
    .scratch = categorical_scratch,
    .kernel = categorical_kernel,
};

ls_tensor *ls_categorical(ls_tensor *logits, int64_t samples)
{
    const categorical_attrs attrs = { .samples = samples };
    return ls__call1(&categorical, &attrs, logits);
}

const ls_op *const ls__rows_random[] = { &random_uniform, &random_normal, &truncated_normal,
                                         &categorical, NULL };
