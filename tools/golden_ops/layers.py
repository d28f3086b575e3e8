"""Convolution, pooling, normalisation, softmax and losses."""
import numpy as np
import tensorflow as tf

from .core import INF, NAN, NUMPY, edges, op

# ---- convolution and pooling ----


def same_pad(size, window, stride):
    """TensorFlow's SAME: output size, padding before, padding after."""
    out = -(-size // stride)
    total = max(0, (out - 1) * stride + window - size)
    return out, total // 2, total - total // 2


def conv_by_slices(x, w, stride, dilation, same, depthwise):
    """A convolution as a sum of shifted pieces: any strides and dilations, and
    gradients on a CPU where TensorFlow's own kernels have restrictions."""
    kh, kw = int(w.shape[0]), int(w.shape[1])
    sizes, pads = [], [[0, 0]]
    for i, k in enumerate((kh, kw)):
        n, span = int(x.shape[1 + i]), (k - 1) * dilation[i] + 1
        if same:
            out, before, after = same_pad(n, span, stride[i])
        else:
            out, before, after = (n - span) // stride[i] + 1, 0, 0
        sizes.append(out)
        pads.append([before, after])
    x = tf.pad(x, pads + [[0, 0]])
    total = None
    for i in range(kh):
        for j in range(kw):
            h, v = i * dilation[0], j * dilation[1]
            piece = x[:, h:h + (sizes[0] - 1) * stride[0] + 1:stride[0],
                      v:v + (sizes[1] - 1) * stride[1] + 1:stride[1], :]
            if depthwise:
                part = tf.einsum("nhwc,cm->nhwcm", piece, w[i, j])
                part = tf.reshape(part, [x.shape[0]] + sizes + [w.shape[2] * w.shape[3]])
            else:
                part = tf.einsum("nhwc,co->nhwo", piece, w[i, j])
            total = part if total is None else total + part
    return total


@op("conv2d", "depthwise_conv2d")
def conv(o):
    depthwise = o.name != "conv2d"

    def run(name, xs, ws, dtype, stride=(1, 1), dilation=(1, 1), same=False, plain=True, **more):
        pad = "SAME" if same else "VALID"

        def fn(x, w):
            if not plain:
                return conv_by_slices(x, w, stride, dilation, same, depthwise)
            if depthwise:
                return tf.nn.depthwise_conv2d(x, w, [1, *stride, 1], pad, dilations=list(dilation))
            return tf.nn.conv2d(x, w, list(stride), pad, dilations=list(dilation))
        o.case(name, fn, o.rand(xs, dtype), o.rand(ws, dtype), via_f32=True,
               attrs={"stride": stride, "dilation": dilation, "padding": int(same)}, **more)

    run("valid", (1, 4, 4, 2), (2, 2, 2, 2), "f64")
    run("same", (1, 3, 4, 1), (3, 3, 1, 2), "f64", same=True)
    run("same_even_window", (1, 4, 3, 2), (2, 2, 2, 1), "f64", same=True)
    run("stride2_valid", (2, 5, 5, 1), (3, 3, 1, 2), "f64", stride=(2, 2))
    run("stride2_same", (1, 5, 6, 1), (3, 3, 1, 2), "f64", stride=(2, 2), same=True)
    run("strides_differ", (1, 5, 6, 1), (2, 3, 1, 2), "f64", stride=(1, 2), plain=False)
    run("dilated", (1, 6, 5, 1), (2, 2, 1, 2), "f64", dilation=(2, 3), plain=False)
    run("dilated_same", (1, 4, 5, 2), (3, 2, 2, 1), "f64", dilation=(2, 2), same=True, plain=False)
    run("stride_over_window", (1, 6, 6, 1), (1, 2, 1, 2), "f64", stride=(3, 3))
    run("pointwise", (2, 2, 3, 3), (1, 1, 3, 4), "f64")
    run("whole_image", (2, 3, 3, 2), (3, 3, 2, 2), "f64")
    run("f32", (2, 5, 5, 3), (3, 3, 3, 4), "f32", tol=2e-5)
    run("f32_same", (2, 4, 5, 3), (3, 3, 3, 2), "f32", same=True, tol=2e-5)
    run("f32_stride2_same", (1, 7, 7, 2), (3, 3, 2, 3), "f32", stride=(2, 2), same=True, tol=2e-5)
    run("bf16", (1, 4, 4, 2), (2, 2, 2, 2), "bf16", tol=3e-2)
    run("zero_rows", (0, 4, 4, 2), (3, 3, 2, 2), "f64", plain=False)
    run("zero_rows_f32", (0, 4, 4, 2), (3, 3, 2, 2), "f32", same=True, plain=False)


@op("max_pool2d", "avg_pool2d")
def pool(o):
    tf_fn = getattr(tf.nn, o.name)

    def run(name, shape, dtype, window, stride, same=False, x=None, **more):
        pad = "SAME" if same else "VALID"
        x = o.distinct(shape, dtype) if x is None else x
        o.case(name, lambda v: tf_fn(v, window, stride, pad), x, via_f32=True,
               attrs={"window": window, "stride": stride, "padding": int(same)}, **more)

    run("valid", (1, 4, 4, 2), "f64", 2, 2)
    run("overlap", (2, 4, 4, 1), "f64", 3, 1)
    run("same", (1, 5, 4, 1), "f64", 2, 2, same=True)
    run("same_overlap", (1, 4, 5, 1), "f64", 3, 1, same=True)
    run("stride_over_window", (1, 7, 6, 1), "f64", 2, 3)
    run("one", (1, 2, 3, 2), "f64", 1, 1)
    run("whole", (2, 3, 3, 2), "f64", 3, 3)
    run("f32", (2, 5, 5, 3), "f32", 2, 2)
    run("f32_same", (1, 5, 5, 3), "f32", 3, 2, same=True)
    run("bf16", (1, 4, 4, 1), "bf16", 2, 2)
    run("negative_same", (1, 3, 3, 1), "f64", 2, 2, same=True,
        x=o.distinct((1, 3, 3, 1)) - 5)
    run("ties", (1, 4, 4, 1), "f64", 2, 2, x=np.asarray(
        o.rand((1, 4, 4, 1), "i32", 0, 1), np.float64), nofd=o.name == "max_pool2d")
    run("ties_overlap", (1, 4, 4, 1), "f32", 3, 1, same=True, x=np.asarray(
        o.rand((1, 4, 4, 1), "i32", 0, 1), np.float32), nofd=True)
    run("zero_rows", (0, 4, 4, 2), "f64", 2, 2)
    run("zero_rows_f32", (0, 4, 4, 2), "f32", 2, 2, same=True)


@op("global_avg_pool2d", "global_max_pool2d")
def global_pool(o):
    tf_fn = tf.reduce_mean if "avg" in o.name else tf.reduce_max
    fn = lambda v: tf_fn(v, axis=[1, 2])
    o.case("image", fn, o.distinct((2, 2, 3, 2)))
    o.case("f32", fn, o.distinct((2, 3, 3, 3), "f32"))
    o.case("bf16", fn, o.distinct((1, 2, 2, 2), "bf16"), via_f32=True)
    o.case("zero_rows", fn, o.rand((0, 2, 2, 3)))
    if "max" in o.name:
        for d in ("i32", "i64", "u8"):
            o.case(d, fn, o.distinct((1, 3, 2, 2), d))


# ---- normalisation ----


@op("batch_norm")
def batch_norm(o):
    def fn(epsilon):
        def run(x, scale, offset):
            mean, variance = tf.nn.moments(x, list(range(len(x.shape) - 1)))
            y = tf.nn.batch_normalization(x, mean, variance, offset, scale, epsilon)
            return y, mean, variance
        return run

    def args(shape, dtype):
        return o.rand(shape, dtype), o.rand(shape[-1:], dtype), o.rand(shape[-1:], dtype)

    at = {"epsilon": 0.001}
    o.case("rows", fn(0.001), *args((5, 3), "f64"), attrs=at)
    o.case("images", fn(0.001), *args((2, 2, 3, 2), "f64"), attrs=at)
    o.case("epsilon", fn(0.5), *args((4, 2), "f64"), attrs={"epsilon": 0.5})
    o.case("f32", fn(0.001), *args((2, 3, 3, 3), "f32"), attrs=at, tol=2e-5)
    o.case("bf16", fn(0.001), *args((6, 2), "bf16"), attrs=at, via_f32=True, tol=3e-2)
    o.case("one_row", fn(0.001), *args((1, 3), "f64"), attrs=at)
    x = edges("f32", [[1000.1, 2], [1000.2, 2], [1000.3, 2], [1000.4, 2]])
    o.case("far_from_zero", fn(1e-5), x, edges("f32", [1, 2]), edges("f32", [0, 1]),
           attrs={"epsilon": 1e-5}, wrt=[], tol=5e-3)
    x, scale, offset = args((0, 3), "f64")
    zero = np.zeros(3)
    o.case("zero_rows", fn(0.001), x, scale, offset, attrs=at, wrt=[],
           formula=[np.zeros((0, 3)), zero, zero])


@op("batch_norm_inference")
def batch_norm_inference(o):
    def run(name, shape, dtype, epsilon=0.001, **more):
        c = shape[-1:]
        o.case(name, lambda x, scale, offset, mean, variance: tf.nn.batch_normalization(
                   x, mean, variance, offset, scale, epsilon),
               o.rand(shape, dtype), o.rand(c, dtype), o.rand(c, dtype), o.rand(c, dtype),
               o.rand(c, dtype, 0.2, 2), attrs={"epsilon": epsilon}, via_f32=True, **more)
    run("rows", (4, 3), "f64")
    run("images", (2, 2, 2, 3), "f64", epsilon=0.1)
    run("f32", (2, 3, 3, 2), "f32", tol=2e-5)
    run("bf16", (4, 2), "bf16", tol=3e-2)
    run("zero_rows", (0, 3), "f64")


@op("batch_moments")
def batch_moments(o):
    def fn(x):
        axes = list(range(len(x.shape) - 1))
        rows = np.prod(x.shape[:-1], dtype=np.float64)
        return *tf.nn.moments(x, axes), tf.constant(rows, tf.float64)

    o.case("rows", fn, o.rand((5, 3)), wrt=[])
    o.case("images", fn, o.rand((2, 2, 3, 2)), wrt=[])
    o.case("f32", fn, o.rand((2, 3, 3, 3), "f32"), wrt=[])
    o.case("one_row", fn, o.rand((1, 3)), wrt=[])
    zero = np.zeros(3)
    o.case("zero_rows", fn, o.rand((0, 3)), wrt=[], formula=[zero, zero, np.float64(0)])


@op("merge_moments")
def merge_moments(o):
    def fn(*parts):  # not pair by pair, as the operator does it
        v = len(parts) // 3
        wide = [tf.cast(p, tf.float64) for p in parts]
        means, variances, rows = wide[:v], wide[v:2 * v], wide[2 * v:]
        n = tf.add_n(rows)
        mean = tf.add_n([m * k for m, k in zip(means, rows)]) / n
        squares = [(s + tf.square(m - mean)) * k for m, s, k in zip(means, variances, rows)]
        return tf.cast(mean, parts[0].dtype), tf.cast(tf.add_n(squares) / n, parts[0].dtype), n

    def run(name, rows, cols, dtype="f64", **more):
        each = lambda low: [o.rand((cols,), dtype, low) for _ in rows]
        o.case(name, fn, *each(-2), *each(0.1), *(np.float64(n) for n in rows),
               attrs={"replicas": len(rows)}, wrt=[], **more)

    run("two", (3, 5), 2)
    run("unequal", (1, 7), 3)
    run("f32", (64, 32), 4, "f32")
    run("empty_replica", (5, 0), 3)
    run("alone", (7,), 2)
    run("no_columns", (7, 2), 0)
    run("no_rows", (0, 0), 2, formula=[np.zeros(2), np.zeros(2), np.float64(0)])


@op("layer_norm")
def layer_norm(o):
    def fn(epsilon):
        def run(x, scale, offset):
            mean = tf.reduce_mean(x, -1, keepdims=True)
            variance = tf.reduce_mean(tf.square(x - mean), -1, keepdims=True)
            return (x - mean) / tf.sqrt(variance + tf.constant(epsilon, x.dtype)) * scale + offset
        return run

    def args(shape, dtype):
        return o.rand(shape, dtype), o.rand(shape[-1:], dtype), o.rand(shape[-1:], dtype)

    at = {"epsilon": 1e-5}
    o.case("rows", fn(1e-5), *args((3, 4), "f64"), attrs=at)
    o.case("cube", fn(1e-5), *args((2, 2, 5), "f64"), attrs=at)
    o.case("vector", fn(0.1), *args((6,), "f64"), attrs={"epsilon": 0.1})
    o.case("f32", fn(1e-5), *args((4, 9), "f32"), attrs=at, tol=2e-5)
    o.case("bf16", fn(1e-5), *args((3, 5), "bf16"), attrs=at, via_f32=True, tol=3e-2)
    o.case("zero_rows", fn(1e-5), *args((0, 4), "f64"), attrs=at)
    o.case("zero_rows_f32", fn(1e-5), *args((2, 0, 3), "f32"), attrs=at)


# ---- softmax and losses ----


@op("softmax", "log_softmax")
def softmax(o):
    tf_fn = getattr(tf.nn, o.name)
    fn = lambda axis: (lambda v: tf_fn(v, axis=axis))
    o.case("rows", fn(-1), o.rand((3, 4)), attrs={"axis": -1})
    o.case("first_axis", fn(0), o.rand((3, 4)), attrs={"axis": 0})
    o.case("middle_axis", fn(1), o.rand((2, 3, 2)), attrs={"axis": 1})
    o.case("vector", fn(0), o.rand((5,)), attrs={"axis": 0})
    o.case("one_class", fn(-1), o.rand((3, 1)), attrs={"axis": -1})
    o.case("f32", fn(-1), o.rand((4, 11), "f32", -6, 6), attrs={"axis": -1})
    o.case("f32_axis", fn(1), o.rand((2, 5, 3), "f32", -6, 6), attrs={"axis": 1})
    o.case("bf16", fn(-1), o.rand((2, 4), "bf16"), attrs={"axis": -1}, via_f32=True, tol=2e-2)
    o.case("large_logits", fn(-1), edges("f32", [[1000, 999, -1000], [-1e4, -1e4, -1e4 - 2],
                                                 [3e38, 0, -3e38]]), attrs={"axis": -1}, nofd=True)
    o.case("masked", fn(-1), edges("f32", [[1, -INF, 2], [-INF, -INF, 0]]), attrs={"axis": -1},
           wrt=[0] if o.name == "softmax" else [], nofd=True)
    o.case("nan_row", fn(-1), edges("f32", [[1, NAN], [1, 2]]), attrs={"axis": -1}, wrt=[])
    o.case("zero_rows", fn(-1), o.rand((0, 3)), attrs={"axis": -1})
    o.case("zero_rows_axis", fn(0), o.rand((3, 0), "f32"), attrs={"axis": 0})


@op("sparse_softmax_xent")
def sparse_softmax_xent(o):
    fn = lambda logits, labels: tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    for d in ("i32", "i64"):
        o.case("labels_" + d, fn, o.rand((4, 3)), o.rand((4,), d, 0, 2))
    o.case("cube", fn, o.rand((2, 3, 4)), o.rand((2, 3), "i64", 0, 3))
    o.case("vector", fn, o.rand((4,)), edges("i32", 2))
    o.case("f32", fn, o.rand((6, 10), "f32", -5, 5), o.rand((6,), "i32", 0, 9))
    o.case("bf16", fn, o.rand((3, 4), "bf16"), o.rand((3,), "i32", 0, 3), via_f32=True, tol=2e-2)
    o.case("large_logits", fn, edges("f32", [[1000, 0, -1000], [1000, 0, -1000], [-1e4, -1e4, 0]]),
           edges("i64", [0, 2, 1]), nofd=True)
    o.case("one_class", fn, o.rand((2, 1)), edges("i32", [0, 0]))
    o.case("zero_rows", fn, o.rand((0, 3)), o.rand((0,), "i32", 0, 2))


@op("softmax_xent")
def softmax_xent(o):
    fn = lambda logits, labels: tf.nn.softmax_cross_entropy_with_logits(labels, logits)

    def labels(shape, dtype):
        p = o.rand(shape, "f64", 0.1, 1)
        return np.asarray(p / p.sum(-1, keepdims=True), NUMPY[dtype])
    o.case("rows", fn, o.rand((4, 3)), labels((4, 3), "f64"))
    o.case("cube", fn, o.rand((2, 2, 3)), labels((2, 2, 3), "f64"))
    o.case("vector", fn, o.rand((4,)), labels((4,), "f64"))
    o.case("f32", fn, o.rand((5, 7), "f32", -5, 5), labels((5, 7), "f32"))
    o.case("bf16", fn, o.rand((3, 4), "bf16"), labels((3, 4), "bf16"), via_f32=True, tol=3e-2)
    o.case("large_logits", fn, edges("f32", [[1000, 0, -1000], [-1e4, 0, 1]]),
           edges("f32", [[0.5, 0.25, 0.25], [0, 1, 0]]), nofd=True)
    o.case("zero_rows", fn, o.rand((0, 3)), o.rand((0, 3)))


@op("sigmoid_xent")
def sigmoid_xent(o):
    fn = lambda logits, labels: tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)
    o.case("matrix", fn, o.away((3, 2)), o.rand((3, 2), "f64", 0, 1))
    o.case("scalar", fn, o.away(()), o.rand((), "f64", 0, 1))
    o.case("f32", fn, o.away((4, 5), "f32", 0.1, 6), o.rand((4, 5), "f32", 0, 1))
    o.case("bf16", fn, o.away((5,), "bf16"), o.rand((5,), "bf16", 0, 1), via_f32=True, tol=2e-2)
    o.case("large_logits", fn, edges("f32", [1000, -1000, 1000, -1000, 80, -80]),
           edges("f32", [1, 0, 0, 1, 0.5, 0.5]), nofd=True)
    o.case("at_zero", fn, edges("f64", [0, 0, 0]), edges("f64", [0, 1, 0.5]), nofd=True)
    o.case("zero_rows", fn, o.rand((0, 3)), o.rand((0, 3)))


@op("mse")
def mse(o):
    fn = lambda a, b: tf.reduce_mean(tf.math.squared_difference(a, b), axis=-1)
    o.case("matrix", fn, o.rand((3, 4)), o.rand((3, 4)))
    o.case("vector", fn, o.rand((5,)), o.rand((5,)))
    o.case("cube", fn, o.rand((2, 2, 3)), o.rand((2, 2, 3)))
    o.case("f32", fn, o.rand((4, 6), "f32"), o.rand((4, 6), "f32"))
    o.case("bf16", fn, o.rand((3, 4), "bf16"), o.rand((3, 4), "bf16"), via_f32=True, tol=2e-2)
    o.case("zero_rows", fn, o.rand((0, 3)), o.rand((0, 3)))
