/*
 * ops.h: the operators.
 *
 * How to use it
 *
 * Every function takes tensors and returns a new one (NULL on failure, see
 * status.h). Dtypes are never converted behind your back: two inputs must have
 * the same one, and ls_cast converts. Shapes broadcast as in NumPy: sizes are
 * matched from the last axis, and 1 stretches. Negative axes count from the
 * end. Every operator accepts tensors with zero rows.
 *
 * The comment of a function says what it gives and the dtypes it takes:
 * "float" is f32 f64 bf16, "number" adds i32 i64 u8, "any" adds bool. Indices
 * and labels are i32 or i64. The row of a function has its name without ls_
 * (operator.h); its whole story is in one file of src/ops.
 */
#ifndef LOCKSTEP_OPS_H
#define LOCKSTEP_OPS_H

#include <lockstep/value.h>

LS_BEGIN_DECLS

/* ---- element-wise, two inputs (src/ops/binary.c, compare.c) -------------- */

LS_API ls_tensor *ls_add(ls_tensor *a, ls_tensor *b); /* number */
LS_API ls_tensor *ls_sub(ls_tensor *a, ls_tensor *b); /* number */
LS_API ls_tensor *ls_mul(ls_tensor *a, ls_tensor *b); /* number */
/* Number; integers divide towards zero and refuse a zero divisor. */
LS_API ls_tensor *ls_div(ls_tensor *a, ls_tensor *b);
/* Number: a - floor(a / b) * b, the sign of b; integers refuse b = 0. */
LS_API ls_tensor *ls_mod(ls_tensor *a, ls_tensor *b);
LS_API ls_tensor *ls_pow(ls_tensor *a, ls_tensor *b); /* float */
/* Number; NaN if either is. Where a == b the gradient goes to a. */
LS_API ls_tensor *ls_maximum(ls_tensor *a, ls_tensor *b);
LS_API ls_tensor *ls_minimum(ls_tensor *a, ls_tensor *b);

/* Any -> bool. */
LS_API ls_tensor *ls_equal(ls_tensor *a, ls_tensor *b);
LS_API ls_tensor *ls_not_equal(ls_tensor *a, ls_tensor *b);
LS_API ls_tensor *ls_less(ls_tensor *a, ls_tensor *b);
LS_API ls_tensor *ls_less_equal(ls_tensor *a, ls_tensor *b);
LS_API ls_tensor *ls_greater(ls_tensor *a, ls_tensor *b);
LS_API ls_tensor *ls_greater_equal(ls_tensor *a, ls_tensor *b);

/* Bool -> bool. */
LS_API ls_tensor *ls_logical_and(ls_tensor *a, ls_tensor *b);
LS_API ls_tensor *ls_logical_or(ls_tensor *a, ls_tensor *b);
LS_API ls_tensor *ls_logical_not(ls_tensor *a);

/* a where `condition` (bool) holds, b elsewhere; all three broadcast; any. */
LS_API ls_tensor *ls_where(ls_tensor *condition, ls_tensor *a, ls_tensor *b);

/* ---- element-wise, one input (src/ops/unary.c, cast.c, clip.c) ------------ */

LS_API ls_tensor *ls_neg(ls_tensor *x);        /* number (u8 wraps) */
LS_API ls_tensor *ls_abs(ls_tensor *x);        /* number; gradient 0 at 0 */
LS_API ls_tensor *ls_sign(ls_tensor *x);       /* number */
LS_API ls_tensor *ls_square(ls_tensor *x);     /* number */
LS_API ls_tensor *ls_exp(ls_tensor *x);        /* float, as all below */
LS_API ls_tensor *ls_log(ls_tensor *x);
LS_API ls_tensor *ls_log1p(ls_tensor *x);
LS_API ls_tensor *ls_sqrt(ls_tensor *x);
LS_API ls_tensor *ls_rsqrt(ls_tensor *x);      /* 1 / sqrt(x) */
LS_API ls_tensor *ls_sin(ls_tensor *x);
LS_API ls_tensor *ls_cos(ls_tensor *x);
LS_API ls_tensor *ls_tanh(ls_tensor *x);
LS_API ls_tensor *ls_erf(ls_tensor *x);
LS_API ls_tensor *ls_sigmoid(ls_tensor *x);
LS_API ls_tensor *ls_softplus(ls_tensor *x);   /* log(1 + exp(x)), without overflow */
LS_API ls_tensor *ls_relu(ls_tensor *x);       /* number; gradient 0 at 0 */
/* x * Phi(x). `approximate` takes the tanh formula, as GPT-2 does. */
LS_API ls_tensor *ls_gelu(ls_tensor *x, bool approximate);
LS_API ls_tensor *ls_floor(ls_tensor *x);
LS_API ls_tensor *ls_ceil(ls_tensor *x);
LS_API ls_tensor *ls_round(ls_tensor *x);      /* halves to even */
LS_API ls_tensor *ls_isfinite(ls_tensor *x);   /* float -> bool */
LS_API ls_tensor *ls_isnan(ls_tensor *x);      /* float -> bool */

/* Float: x as it is, if all its elements are finite; else LS_NOT_FINITE. So a step (ls_run) whose loss
 * is NaN or infinite fails, and did not happen:
 *
 *     ls_tensor *loss = ls_mean(...), *seen = ls_require_finite(loss);    // before ls_minimize:
 *     ls_minimize(adam, tape, loss, n, variables);                        // nothing is written yet,
 *     return ls_leaf(seen);                                               // and nothing is saved
 *
 * It is looked at in a traced step also when nobody uses the result. Run the same step with the same
 * arguments again under ls_check_numerics (tape.h) to learn where it began. */
LS_API ls_tensor *ls_require_finite(ls_tensor *x);

/* Number; NaN stays. The gradient passes where low <= x <= high. */
LS_API ls_tensor *ls_clip(ls_tensor *x, double low, double high);

/* Any to any (not bytes). Float to integer truncates (NaN gives 0); what does not
 * fit an integer type saturates; to bool: x != 0; to bf16: rounds to even. */
LS_API ls_tensor *ls_cast(ls_tensor *x, ls_dtype dtype);

/* x times, plus, a number that is converted to x's dtype. */
LS_API ls_tensor *ls_scale(ls_tensor *x, double factor);
LS_API ls_tensor *ls_shift(ls_tensor *x, double offset);

/* ---- over axes (src/ops/reduce.c, scan.c) --------------------------------
 *
 * LS_AXES(0, 2) stands for two arguments, LS_ALL_AXES for every axis. `keep`
 * leaves the reduced axes in place with size 1. */
#ifndef __cplusplus
#define LS_AXES(...) LS_DIMS(__VA_ARGS__)
#endif
#define LS_ALL_AXES (-1), NULL

/* Number; integers wrap. */
LS_API ls_tensor *ls_sum(ls_tensor *x, int count, const int64_t *axes, bool keep);
/* Float; of nothing: NaN. */
LS_API ls_tensor *ls_mean(ls_tensor *x, int count, const int64_t *axes, bool keep);
/* Number; equal extremes share the gradient; of nothing: -inf, +inf, or the
 * integer type's limit. */
LS_API ls_tensor *ls_max(ls_tensor *x, int count, const int64_t *axes, bool keep);
LS_API ls_tensor *ls_min(ls_tensor *x, int count, const int64_t *axes, bool keep);
LS_API ls_tensor *ls_any(ls_tensor *x, int count, const int64_t *axes, bool keep);  /* bool */
LS_API ls_tensor *ls_all(ls_tensor *x, int count, const int64_t *axes, bool keep);  /* bool */

/* Place of the first largest (smallest) element along `axis`: i64. Number. The
 * axis must not be empty unless the result is. */
LS_API ls_tensor *ls_argmax(ls_tensor *x, int axis);
LS_API ls_tensor *ls_argmin(ls_tensor *x, int axis);

/* Running sums along `axis`; exclusive: each without itself; reverse: from the
 * end. Number. */
LS_API ls_tensor *ls_cumsum(ls_tensor *x, int axis, bool exclusive, bool reverse);

/* The k largest along the last axis, largest first, ties by position: a list
 * of the values and their places (i64). Number. */
LS_API ls_value *ls_top_k(ls_tensor *x, int64_t k);

/* ---- linear algebra (src/ops/matmul.c, attention.c) ----------------------- */

/* [.., m, k] x [.., k, n] -> [.., m, n]; the axes before the last two
 * broadcast; either matrix may be taken transposed. Float. */
LS_API ls_tensor *ls_matmul(ls_tensor *a, ls_tensor *b);
LS_API ls_tensor *ls_matmul_t(ls_tensor *a, bool transpose_a, ls_tensor *b, bool transpose_b);

/* x w + b for x of [.., k], w of [k, n], b of [n]. */
LS_API ls_tensor *ls_dense(ls_tensor *x, ls_tensor *w, ls_tensor *b);

/* Attention of [.., time, width] tensors: softmax(scale q k^T) v; causal: a row
 * sees itself and what is before it. scale 0 means 1 / sqrt(width). Float. */
LS_API ls_tensor *ls_attention(ls_tensor *q, ls_tensor *k, ls_tensor *v, bool causal,
                               double scale);

/* ---- convolution and pooling, NHWC (src/ops/conv.c, pool.c) ---------------- */

typedef enum ls_padding {
    LS_VALID, /* only windows that lie wholly inside */
    LS_SAME   /* as many windows as stride steps; edges are padded with zeros */
} ls_padding;

/* Zero means default. In C: LS_CONV(.stride = {2, 2}, .padding = LS_SAME), and
 * NULL for all defaults; elsewhere start from ls_conv_init. */
typedef struct ls_conv_options {
    size_t size;
    int64_t stride[2];   /* height, width (1, 1) */
    int64_t dilation[2]; /* (1, 1) */
    ls_padding padding;  /* LS_VALID */
} ls_conv_options;
LS_API void ls_conv_init(ls_conv_options *options);
#ifndef __cplusplus
#define LS_CONV(...) (&(ls_conv_options){ .size = sizeof(ls_conv_options), __VA_ARGS__ })
#endif

/* x [n, h, w, c] with w [kh, kw, c, out] -> [n, h', w', out]. Float. */
LS_API ls_tensor *ls_conv2d(ls_tensor *x, ls_tensor *w, const ls_conv_options *options);

/* w [kh, kw, c, m]: each channel has m filters of its own -> [n, h', w', c m]. */
LS_API ls_tensor *ls_depthwise_conv2d(ls_tensor *x, ls_tensor *w,
                                      const ls_conv_options *options);

/* Windows of `window` x `window`, `stride` apart. Float. Padding never counts:
 * not for the maximum, nor in the average. Of equal maxima the first gets the
 * gradient. */
LS_API ls_tensor *ls_max_pool2d(ls_tensor *x, int64_t window, int64_t stride,
                                ls_padding padding);
LS_API ls_tensor *ls_avg_pool2d(ls_tensor *x, int64_t window, int64_t stride,
                                ls_padding padding);
/* [n, h, w, c] -> [n, c]. */
LS_API ls_tensor *ls_global_avg_pool2d(ls_tensor *x);
LS_API ls_tensor *ls_global_max_pool2d(ls_tensor *x);

/* ---- normalisation (src/ops/batch_norm.c, layer_norm.c) -------------------- */

/* Over all axes but the last, with the batch's own statistics: a list of the
 * result, the mean and the variance (divided by the count; both 0 for 0 rows).
 * Float. */
LS_API ls_value *ls_batch_norm(ls_tensor *x, ls_tensor *scale, ls_tensor *offset,
                               double epsilon);
/* With statistics that are given. */
LS_API ls_tensor *ls_batch_norm_inference(ls_tensor *x, ls_tensor *scale, ls_tensor *offset,
                                          ls_tensor *mean, ls_tensor *variance, double epsilon);
/* Over the last axis. Float. */
LS_API ls_tensor *ls_layer_norm(ls_tensor *x, ls_tensor *scale, ls_tensor *offset,
                                double epsilon);

/* ---- softmax and losses (src/ops/softmax.c, loss.c) ------------------------- */

LS_API ls_tensor *ls_softmax(ls_tensor *x, int axis);     /* float */
LS_API ls_tensor *ls_log_softmax(ls_tensor *x, int axis); /* float */

/* One loss per row; logits [.., classes]; labels [..] in 0 .. classes - 1, or a
 * distribution [.., classes]. Float. */
LS_API ls_tensor *ls_sparse_softmax_xent(ls_tensor *logits, ls_tensor *labels);
LS_API ls_tensor *ls_softmax_xent(ls_tensor *logits, ls_tensor *labels);
/* One loss per element, from logits. Float. */
LS_API ls_tensor *ls_sigmoid_xent(ls_tensor *logits, ls_tensor *labels);
/* Mean over the last axis of (prediction - target)^2. Float. */
LS_API ls_tensor *ls_mse(ls_tensor *prediction, ls_tensor *target);

/* ---- looking up (src/ops/gather.c, embedding.c, one_hot.c) ------------------- */

/* Slices of x along `axis`, chosen by indices of any shape. Any. */
LS_API ls_tensor *ls_gather(ls_tensor *x, ls_tensor *indices, int axis);
/* Rows of a table; its gradient is sparse (tape.h). */
LS_API ls_tensor *ls_embedding(ls_tensor *table, ls_tensor *ids);
/* ids [..] -> [.., depth] of dtype: 1 at the id, 0 elsewhere; all 0 for an id
 * outside 0 .. depth - 1. */
LS_API ls_tensor *ls_one_hot(ls_tensor *ids, int64_t depth, ls_dtype dtype);

/* ---- shape (src/ops/reshape.c, transpose.c, concat.c, slice.c, pad.c, tile.c) --- */

/* One size may be -1: what remains. No copy. Any, and bytes. */
LS_API ls_tensor *ls_reshape(ls_tensor *x, int rank, const int64_t *dims);
LS_API ls_tensor *ls_flatten_rows(ls_tensor *x);            /* [n, ...] -> [n, rest] */
LS_API ls_tensor *ls_expand_dims(ls_tensor *x, int axis);   /* a new axis of size 1 */
LS_API ls_tensor *ls_squeeze(ls_tensor *x, int count, const int64_t *axes); /* LS_ALL_AXES: every 1 */
/* Output axis i is input axis order[i]. Any. */
LS_API ls_tensor *ls_transpose(ls_tensor *x, int count, const int64_t *order);
LS_API ls_tensor *ls_broadcast_to(ls_tensor *x, int rank, const int64_t *dims); /* any */
LS_API ls_tensor *ls_concat(int count, ls_tensor *const *xs, int axis);  /* any */
LS_API ls_tensor *ls_stack(int count, ls_tensor *const *xs, int axis);   /* any; a new axis */
/* Equal parts, and parts of given sizes: a list. Any. */
LS_API ls_value *ls_split(ls_tensor *x, int parts, int axis);
LS_API ls_value *ls_split_sizes(ls_tensor *x, int count, const int64_t *sizes, int axis);
/* `begin` and `size` have one number per axis; size -1: to the end. Any. */
LS_API ls_tensor *ls_slice(ls_tensor *x, int rank, const int64_t *begin, const int64_t *size);
/* `value` around x: before[i] and after[i] elements on axis i. Any. */
LS_API ls_tensor *ls_pad(ls_tensor *x, int rank, const int64_t *before, const int64_t *after,
                         double value);
/* x repeated times[i] times along axis i. Any. */
LS_API ls_tensor *ls_tile(ls_tensor *x, int rank, const int64_t *times);
LS_API ls_tensor *ls_identity(ls_tensor *x);

/* ---- randomness (src/ops/random.c, dropout.c; random.h says what it depends on) --- */

LS_API ls_tensor *ls_random_uniform(ls_dtype dtype, int rank, const int64_t *dims, double low,
                                    double high); /* float in [low, high); integers too */
LS_API ls_tensor *ls_random_normal(ls_dtype dtype, int rank, const int64_t *dims, double mean,
                                   double stddev); /* float */
/* As normal; what is beyond two standard deviations is drawn again. Float. */
LS_API ls_tensor *ls_truncated_normal(ls_dtype dtype, int rank, const int64_t *dims,
                                      double mean, double stddev);
/* `samples` class numbers (i64) per row of logits [rows, classes]. */
LS_API ls_tensor *ls_categorical(ls_tensor *logits, int64_t samples);
/* Zeroes elements with probability `rate` and scales the others by
 * 1 / (1 - rate). Float. */
LS_API ls_tensor *ls_dropout(ls_tensor *x, double rate);

LS_END_DECLS

#endif
