/*
 * The public functions of ops.h, image.h and loss.h by name, called with a case's inputs
 * and attributes. Those that are a row are held against TensorFlow a second time, so
 * that an argument packed into the wrong attribute is noticed; those that are
 * made of rows are tested only here.
 */
#include <lockstep/image.h>
#include <lockstep/loss.h>
#include <lockstep/ops.h>
#include <lockstep/tape.h>
#include <stdlib.h>
#include <string.h>

#include "support/case.h"

typedef struct function {
    const char *name;
    int inputs; /* LS_ANY_NUMBER: c->n_in */
    ls_tensor *(*one)(ls_tensor *x);
    ls_tensor *(*two)(ls_tensor *a, ls_tensor *b);
    ls_tensor *(*reduce)(ls_tensor *x, int count, const int64_t *axes, bool keep);
    ls_tensor *(*call)(const test_case *c, ls_tensor *const *x); /* one output */
    ls_value *(*calls)(const test_case *c, ls_tensor *const *x); /* several */
} function;

/* ---- attributes ---------------------------------------------------------------- */

static const char *text_of(const test_case *c, const char *name)
{
    for (int i = 0; i < c->n_attrs; i++)
        if (!strcmp(c->attrs[i].name, name))
            return c->attrs[i].text;
    return "0";
}

static int64_t integer(const test_case *c, const char *name)
{
    return case_to_int(text_of(c, name));
}

static int axis(const test_case *c)
{
    return (int)integer(c, "axis");
}

static bool truth(const test_case *c, const char *name)
{
    return integer(c, name) != 0;
}

static double real(const test_case *c, const char *name)
{
    return strtod(text_of(c, name), NULL);
}

static ls_ints list(const test_case *c, const char *name)
{
    ls_ints out;
    case_to_ints(text_of(c, name), &out);
    return out;
}

static ls_dtype dtype(const test_case *c)
{
    return (ls_dtype)integer(c, "dtype");
}

/* ---- one adapter a signature ------------------------------------------------------ */

#define CALL(name) static ls_tensor *name(const test_case *c, ls_tensor *const *x)
#define CALLS(name) static ls_value *name(const test_case *c, ls_tensor *const *x)

CALL(where)
{
    (void)c;
    return ls_where(x[0], x[1], x[2]);
}

CALL(gelu)
{
    return ls_gelu(x[0], truth(c, "approximate"));
}

CALL(clip)
{
    return ls_clip(x[0], real(c, "low"), real(c, "high"));
}

CALL(cast)
{
    return ls_cast(x[0], dtype(c));
}

CALL(scale)
{
    return ls_scale(x[0], real(c, "factor"));
}

CALL(shift)
{
    return ls_shift(x[0], real(c, "offset"));
}

CALL(argmax)
{
    return ls_argmax(x[0], axis(c));
}

CALL(argmin)
{
    return ls_argmin(x[0], axis(c));
}

CALL(cumsum)
{
    return ls_cumsum(x[0], axis(c), truth(c, "exclusive"), truth(c, "reverse"));
}

CALLS(top_k)
{
    return ls_top_k(x[0], integer(c, "k"));
}

CALL(matmul)
{
    bool ta = truth(c, "transpose_a"), tb = truth(c, "transpose_b");
    return ta || tb ? ls_matmul_t(x[0], ta, x[1], tb) : ls_matmul(x[0], x[1]);
}

CALL(matmul_t)
{
    return ls_matmul_t(x[0], truth(c, "transpose_a"), x[1], truth(c, "transpose_b"));
}

CALL(dense)
{
    (void)c;
    return ls_dense(x[0], x[1], x[2]);
}

CALL(attention)
{
    return ls_attention(x[0], x[1], x[2], truth(c, "causal"), real(c, "scale"));
}

static ls_conv_options conv_options(const test_case *c)
{
    ls_ints stride = list(c, "stride"), dilation = list(c, "dilation");
    return *LS_CONV(.stride = { stride.at[0], stride.at[1] },
                    .dilation = { dilation.at[0], dilation.at[1] },
                    .padding = (ls_padding)integer(c, "padding"));
}

CALL(conv2d)
{
    ls_conv_options options = conv_options(c);
    return ls_conv2d(x[0], x[1], &options);
}

CALL(depthwise_conv2d)
{
    ls_conv_options options = conv_options(c);
    return ls_depthwise_conv2d(x[0], x[1], &options);
}

CALL(max_pool2d)
{
    return ls_max_pool2d(x[0], integer(c, "window"), integer(c, "stride"),
                         (ls_padding)integer(c, "padding"));
}

CALL(avg_pool2d)
{
    return ls_avg_pool2d(x[0], integer(c, "window"), integer(c, "stride"),
                         (ls_padding)integer(c, "padding"));
}

CALLS(batch_norm)
{
    return ls_batch_norm(x[0], x[1], x[2], real(c, "epsilon"));
}

CALL(batch_norm_inference)
{
    return ls_batch_norm_inference(x[0], x[1], x[2], x[3], x[4], real(c, "epsilon"));
}

CALL(layer_norm)
{
    return ls_layer_norm(x[0], x[1], x[2], real(c, "epsilon"));
}

CALL(softmax)
{
    return ls_softmax(x[0], axis(c));
}

CALL(log_softmax)
{
    return ls_log_softmax(x[0], axis(c));
}

CALL(gather)
{
    return ls_gather(x[0], x[1], axis(c));
}

CALL(one_hot)
{
    return ls_one_hot(x[0], integer(c, "depth"), dtype(c));
}

CALL(reshape)
{
    ls_ints shape = list(c, "shape");
    return ls_reshape(x[0], (int)shape.count, shape.at);
}

CALL(expand_dims)
{
    return ls_expand_dims(x[0], axis(c));
}

CALL(squeeze)
{
    ls_ints axes = list(c, "axes");
    return ls_squeeze(x[0], (int)axes.count, axes.at);
}

CALL(transpose)
{
    ls_ints order = list(c, "order");
    return ls_transpose(x[0], (int)order.count, order.at);
}

CALL(broadcast_to)
{
    ls_ints shape = list(c, "shape");
    return ls_broadcast_to(x[0], (int)shape.count, shape.at);
}

CALL(concat)
{
    return ls_concat(c->n_in, x, axis(c));
}

CALL(stack)
{
    return ls_stack(c->n_in, x, axis(c));
}

CALLS(split)
{
    return ls_split(x[0], (int)integer(c, "parts"), axis(c));
}

CALLS(split_sizes)
{
    ls_ints sizes = list(c, "sizes");
    return ls_split_sizes(x[0], (int)sizes.count, sizes.at, axis(c));
}

CALL(slice)
{
    ls_ints begin = list(c, "begin"), size = list(c, "size");
    return ls_slice(x[0], (int)begin.count, begin.at, size.at);
}

CALL(pad)
{
    ls_ints before = list(c, "before"), after = list(c, "after");
    return ls_pad(x[0], (int)before.count, before.at, after.at, real(c, "value"));
}

CALL(tile)
{
    ls_ints times = list(c, "times");
    return ls_tile(x[0], (int)times.count, times.at);
}

CALL(resize_bilinear)
{
    return ls_resize_bilinear(x[0], integer(c, "height"), integer(c, "width"));
}

CALL(resize_nearest)
{
    return ls_resize_nearest(x[0], integer(c, "height"), integer(c, "width"));
}

CALL(crop)
{
    return ls_crop(x[0], integer(c, "top"), integer(c, "left"), integer(c, "height"),
                   integer(c, "width"));
}

CALL(center_crop)
{
    return ls_center_crop(x[0], integer(c, "height"), integer(c, "width"));
}

CALL(huber_delta)
{
    return ls_huber_delta(x[0], x[1], real(c, "delta"));
}

CALL(smooth_labels)
{
    return ls_smooth_labels(x[0], real(c, "amount"));
}

CALL(random_uniform)
{
    (void)x;
    ls_ints shape = list(c, "shape");
    return ls_random_uniform(dtype(c), (int)shape.count, shape.at, real(c, "low"), real(c, "high"));
}

CALL(random_normal)
{
    (void)x;
    ls_ints shape = list(c, "shape");
    return ls_random_normal(dtype(c), (int)shape.count, shape.at, real(c, "mean"),
                            real(c, "stddev"));
}

CALL(truncated_normal)
{
    (void)x;
    ls_ints shape = list(c, "shape");
    return ls_truncated_normal(dtype(c), (int)shape.count, shape.at, real(c, "mean"),
                               real(c, "stddev"));
}

CALL(categorical)
{
    return ls_categorical(x[0], integer(c, "samples"));
}

/* ---- the table ---------------------------------------------------------------------- */

#define ONE(f)                                                                                     \
    {                                                                                              \
        .name = #f, .inputs = 1, .one = ls_##f                                                     \
    }
#define TWO(f)                                                                                     \
    {                                                                                              \
        .name = #f, .inputs = 2, .two = ls_##f                                                     \
    }
#define REDUCE(f)                                                                                  \
    {                                                                                              \
        .name = #f, .inputs = 1, .reduce = ls_##f                                                  \
    }
#define OTHER(n, f)                                                                                \
    {                                                                                              \
        .name = #f, .inputs = n, .call = f                                                         \
    }
#define LIST(n, f)                                                                                 \
    {                                                                                              \
        .name = #f, .inputs = n, .calls = f                                                        \
    }

/* clang-format off */
static const function functions[] = {
    TWO(add), TWO(sub), TWO(mul), TWO(div), TWO(mod), TWO(pow), TWO(maximum), TWO(minimum),
    TWO(equal), TWO(not_equal), TWO(less), TWO(less_equal), TWO(greater), TWO(greater_equal),
    TWO(logical_and), TWO(logical_or), ONE(logical_not), OTHER(3, where),

    ONE(neg), ONE(abs), ONE(sign), ONE(square), ONE(exp), ONE(log), ONE(log1p), ONE(sqrt),
    ONE(rsqrt), ONE(sin), ONE(cos), ONE(tanh), ONE(erf), ONE(sigmoid), ONE(softplus), ONE(relu),
    OTHER(1, gelu), ONE(floor), ONE(ceil), ONE(round), ONE(isfinite), ONE(isnan), OTHER(1, clip),
    OTHER(1, cast), OTHER(1, scale), OTHER(1, shift),

    REDUCE(sum), REDUCE(mean), REDUCE(max), REDUCE(min), REDUCE(any), REDUCE(all),
    OTHER(1, argmax), OTHER(1, argmin), OTHER(1, cumsum), LIST(1, top_k),

    OTHER(2, matmul), OTHER(2, matmul_t), OTHER(3, dense), OTHER(3, attention), OTHER(2, conv2d),
    OTHER(2, depthwise_conv2d), OTHER(1, max_pool2d), OTHER(1, avg_pool2d),
    ONE(global_avg_pool2d), ONE(global_max_pool2d), LIST(3, batch_norm),
    OTHER(5, batch_norm_inference), OTHER(3, layer_norm), OTHER(1, softmax),
    OTHER(1, log_softmax), TWO(sparse_softmax_xent), TWO(softmax_xent), TWO(sigmoid_xent), TWO(mse),

    OTHER(2, gather), TWO(embedding), OTHER(1, one_hot), OTHER(1, reshape), ONE(flatten_rows),
    OTHER(1, expand_dims), OTHER(1, squeeze), OTHER(1, transpose), OTHER(1, broadcast_to),
    OTHER(LS_ANY_NUMBER, concat), OTHER(LS_ANY_NUMBER, stack), LIST(1, split),
    LIST(1, split_sizes), OTHER(1, slice), OTHER(1, pad), OTHER(1, tile), ONE(identity), ONE(require_finite),
    ONE(stop_gradient), OTHER(0, random_uniform), OTHER(0, random_normal),
    OTHER(0, truncated_normal), OTHER(1, categorical),

    OTHER(1, resize_bilinear), OTHER(1, resize_nearest), OTHER(1, crop), OTHER(1, center_crop),
    ONE(flip_left_right), ONE(flip_up_down),

    TWO(mae), TWO(huber), OTHER(2, huber_delta), TWO(hinge), TWO(binary_xent), TWO(kl_divergence),
    OTHER(1, smooth_labels),
};
/* clang-format on */

static const function *function_named(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (!strcmp(functions[i].name, name))
            return &functions[i];
    return NULL;
}

const char *case_function_at(int i)
{
    return (size_t)i < sizeof functions / sizeof functions[0] ? functions[i].name : NULL;
}

bool case_has_function(const char *op)
{
    return function_named(op) != NULL;
}

ls_value *case_call_function(const test_case *c, int count, ls_tensor *const *x)
{
    const function *f = function_named(c->op);
    case_fail("%s", "");
    if (!f || (f->inputs != LS_ANY_NUMBER && f->inputs != count)) {
        case_fail("there is no function %s of %d inputs", c->op, count);
        return NULL;
    }
    if (f->calls)
        return f->calls(c, x);
    ls_tensor *y = NULL;
    if (f->one) {
        y = f->one(x[0]);
    } else if (f->two) {
        y = f->two(x[0], x[1]);
    } else if (f->reduce) {
        ls_ints axes = list(c, "axes");
        y = f->reduce(x[0], (int)axes.count, axes.at, truth(c, "keep"));
    } else {
        y = f->call(c, x);
    }
    return y ? ls_tensors(1, &y) : NULL;
}
