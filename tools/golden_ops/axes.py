"""Over axes, and linear algebra."""
import numpy as np
import tensorflow as tf

from .core import FLOATS, INF, NAN, NUMBERS, edges, op

# ---- over axes ----


@op("sum", "mean", "max", "min", "any", "all")
def reduce(o):
    tf_fn = getattr(tf, "reduce_" + o.name)
    floats = o.name in ("sum", "mean", "max", "min")
    first = "f64" if floats else "bool"

    def fn(axes, keep):
        return lambda v: tf_fn(v, axis=axes, keepdims=keep)

    def x(shape, dtype):
        extreme = o.name in ("max", "min") and dtype in FLOATS
        return o.distinct(shape, dtype) if extreme else o.rand(shape, dtype, -5, 5)

    for name, shape, axes, keep in (
            ("all_axes", (2, 3), None, False), ("all_axes_kept", (2, 3), None, True),
            ("first", (3, 4), [0], False), ("last_kept", (3, 4), [-1], True),
            ("middle", (2, 3, 4), [1], False), ("outer_two", (2, 3, 4), [0, 2], False),
            ("negative_two", (2, 3, 4), [-2, -1], True), ("no_axes", (2, 3), [], False),
            ("scalar", (), None, False), ("four", (2, 2, 2, 3), [1, 2], False)):
        o.case(name, fn(axes, keep), x(shape, first), attrs={"axes": axes, "keep": keep})
    last = {"axes": [-1], "keep": False}
    if floats:
        o.case("f32", fn([0], False), x((6, 5), "f32"), attrs={"axes": [0], "keep": False})
        o.case("f32_long", fn([-1], False), x((1, 67), "f32"), attrs=last, tol=1e-5)
        o.case("bf16", fn([-1], False), x((2, 5), "bf16"), attrs=last, via_f32=True)
        o.case("special", fn([-1], False), edges("f32", [[1, INF, 2], [-INF, 1, 3]]), attrs=last,
               wrt=[])
    if floats and o.name != "mean":
        for d in ("i32", "i64", "u8"):
            o.case(d, fn([-1], False), x((3, 4), d), attrs=last)
    if o.name in ("max", "min"):
        o.case("ties", fn([-1], False), edges("f64", [[1, 3, 3], [2, 2, 2], [0.0, -0.0, 5]]),
               attrs=last, nofd=True)
        o.case("ties_all", fn(None, True), edges("f32", [[1, 3, 3], [3, 1, 1]]),
               attrs={"axes": None, "keep": True}, nofd=True)
        o.case("of_nothing_i32", fn([0], False), x((0, 2), "i32"),
               attrs={"axes": [0], "keep": False})
    first_attr = {"axes": [0], "keep": False}
    o.case("of_nothing", fn([0], False), x((0, 3), first), attrs=first_attr)
    o.case("zero_rows", fn([-1], True), x((0, 3), first), attrs={"axes": [-1], "keep": True})
    if floats:
        o.case("of_nothing_f32", fn([0], False), x((0, 3), "f32"), attrs=first_attr)


@op("argmax", "argmin")
def arg(o):
    tf_fn = getattr(tf, o.name)
    fn = lambda axis: (lambda v: tf_fn(v, axis=axis, output_type=tf.int64))
    for d in NUMBERS:
        o.case(d, fn(-1), o.distinct((3, 4), d) if d != "u8" else o.rand((3, 4), d, 0, 200),
               attrs={"axis": -1})
    o.case("first_axis", fn(0), o.distinct((3, 4)), attrs={"axis": 0})
    o.case("middle_axis", fn(1), o.distinct((2, 5, 3), "f32"), attrs={"axis": 1})
    o.case("ties", fn(-1), edges("f32", [[1, 3, 3, 1], [2, 2, 2, 2], [0.0, -0.0, 0.0, -0.0]]),
           attrs={"axis": -1})
    o.case("infinite", fn(0), edges("f64", [1, INF, -INF, INF]), attrs={"axis": 0})
    o.case("zero_rows", fn(1), o.rand((0, 3)), attrs={"axis": 1})


@op("cumsum")
def cumsum(o):
    for exclusive in (False, True):
        for reverse in (False, True):
            at = {"axis": -1, "exclusive": exclusive, "reverse": reverse}
            fn = lambda v: tf.cumsum(v, axis=-1, exclusive=exclusive, reverse=reverse)
            o.case("exclusive%d_reverse%d" % (exclusive, reverse), fn, o.rand((2, 4)), attrs=at)
    fn = lambda axis: (lambda v: tf.cumsum(v, axis=axis))
    at = lambda axis: {"axis": axis, "exclusive": False, "reverse": False}
    o.case("first_axis", fn(0), o.rand((3, 2)), attrs=at(0))
    o.case("middle_axis", fn(1), o.rand((2, 3, 2), "f32"), attrs=at(1))
    for d in ("bf16", "i32", "i64", "u8"):
        o.case(d, fn(0), o.rand((4, 2), d, 0, 9), attrs=at(0), via_f32=True)
    o.case("zero_rows", fn(1), o.rand((0, 3)), attrs=at(1))
    o.case("zero_long", fn(0), o.rand((0, 3), "f32"), attrs=at(0))


@op("top_k")
def top_k(o):
    def fn(k):
        def run(v):
            values, places = tf.math.top_k(v, k=k)
            return values, tf.cast(places, tf.int64)
        return run
    o.case("matrix", fn(2), o.distinct((3, 5)), attrs={"k": 2})
    o.case("vector_all", fn(4), o.distinct((4,)), attrs={"k": 4})
    o.case("cube", fn(1), o.distinct((2, 2, 3)), attrs={"k": 1})
    o.case("none", fn(0), o.distinct((2, 3)), attrs={"k": 0}, nofd=True)
    for d in ("f32", "i32", "i64", "u8"):
        o.case(d, fn(3), o.distinct((2, 7), d), attrs={"k": 3})
    o.case("bf16", fn(3), o.distinct((2, 7), "bf16"), attrs={"k": 3}, via_f32=True)
    x = edges("f64", [[1, 2, 2, 1, 2], [5, 5, 5, 5, 5], [-0.0, 0.0, -1, 0.0, -2]])
    o.case("ties", fn(3), x, attrs={"k": 3}, nofd=True)
    o.case("zero_rows", fn(2), o.rand((0, 3)), attrs={"k": 2})


@op("sum_replicas")
def sum_replicas(o):
    def tree(v):
        if len(v) == 1:
            return v[0]
        left = 1
        while 2 * left < len(v):
            left *= 2
        return tree(v[:left]) + tree(v[left:])

    def fn(mean):
        return lambda *v: tree(v) / len(v) if mean else tree(v)

    for mean in (False, True):
        n, at = "mean" if mean else "sum", {"op": 2 if mean else 1}
        for d in NUMBERS:
            values = lambda shape: o.rand(shape, d, 0, 9)
            if d == "u8" and mean:  # TensorFlow's quotient of u8 is f32
                f = lambda *v: tf.cast(tree(v), tf.float64) / len(v)
            else:
                f = fn(mean)
            o.case("%s_%s" % (n, d), f, values((2, 3)), values((2, 3)), values((2, 3)), attrs=at,
                   via_f32=True)
        for count in (1, 2, 5, 7):
            o.case("%s_of_%d" % (n, count), fn(mean), *(o.rand((4,)) for _ in range(count)),
                   attrs=at)
        o.case(n + "_scalars", fn(mean), o.rand(()), o.rand(()), attrs=at)
        o.case(n + "_zero_rows", fn(mean), o.rand((0, 3)), o.rand((0, 3)), attrs=at)
    wraps = [edges("i32", [2**31 - 1, -2**31]), edges("i32", [2, -1])]
    o.case("wraps", fn(False), *wraps, attrs={"op": 1})
    o.case("u8_wraps", fn(False), edges("u8", [200, 255]), edges("u8", [100, 1]), attrs={"op": 1})


# ---- linear algebra ----


@op("matmul")
def matmul(o):
    for ta in (False, True):
        for tb in (False, True):
            fn = lambda a, b: tf.linalg.matmul(a, b, transpose_a=ta, transpose_b=tb)
            at = {"transpose_a": ta, "transpose_b": tb}
            a = lambda *batch: batch + ((4, 3) if ta else (3, 4))
            b = lambda *batch: batch + ((2, 4) if tb else (4, 2))
            n = "t%d%d" % (ta, tb)
            o.case(n, fn, o.rand(a()), o.rand(b()), attrs=at)
            o.case(n + "_f32", fn, o.rand(a(), "f32"), o.rand(b(), "f32"), attrs=at)
            o.case(n + "_batched", fn, o.rand(a(2)), o.rand(b(2)), attrs=at)
            o.case(n + "_stretched", fn, o.rand(a(2, 1), "f32"), o.rand(b(3), "f32"), attrs=at)
            o.case(n + "_bf16", fn, o.rand(a(), "bf16"), o.rand(b(), "bf16"), attrs=at,
                   via_f32=True, tol=2e-2)
    fn = tf.linalg.matmul
    at = {"transpose_a": False, "transpose_b": False}
    o.case("shared_right", fn, o.rand((2, 2, 3)), o.rand((3, 2)), attrs=at)
    o.case("shared_left", fn, o.rand((2, 3)), o.rand((2, 3, 2)), attrs=at)
    o.case("odd_sizes", fn, o.rand((5, 17), "f32"), o.rand((17, 3), "f32"), attrs=at)
    o.case("one_by_one", fn, o.rand((1, 1)), o.rand((1, 1)), attrs=at)
    o.case("nan", fn, edges("f32", [[NAN, 0], [1, 2]]), edges("f32", [[1, 2], [3, INF]]), attrs=at,
           wrt=[])
    o.case("zero_rows", fn, o.rand((0, 3)), o.rand((3, 2)), attrs=at)
    o.case("zero_inner", fn, o.rand((2, 0)), o.rand((0, 3)), attrs=at)
    o.case("zero_batch", fn, o.rand((0, 2, 3), "f32"), o.rand((3, 2), "f32"), attrs=at)


@op("matmul_t")
def matmul_t(o):
    """The public function alone, which packs its flags itself."""
    for ta in (False, True):
        for tb in (False, True):
            fn = lambda a, b: tf.linalg.matmul(a, b, transpose_a=ta, transpose_b=tb)
            at = {"transpose_a": ta, "transpose_b": tb}
            for name, batch, d in (("", (), "f64"), ("_f32", (2,), "f32")):
                o.case("t%d%d%s" % (ta, tb, name), fn,
                       o.rand(batch + ((4, 3) if ta else (3, 4)), d),
                       o.rand(batch + ((2, 4) if tb else (4, 2)), d), attrs=at)
    o.case("bf16", lambda a, b: tf.linalg.matmul(a, b, transpose_b=True), o.rand((2, 3), "bf16"),
           o.rand((4, 3), "bf16"), attrs={"transpose_a": False, "transpose_b": True},
           via_f32=True, tol=2e-2)
    o.case("zero_rows", lambda a, b: tf.linalg.matmul(a, b, transpose_a=True), o.rand((3, 0)),
           o.rand((3, 2)), attrs={"transpose_a": True, "transpose_b": False})


@op("dense")
def dense(o):
    def fn(x, w, b):
        return tf.tensordot(x, w, 1) + b
    o.case("matrix", fn, o.rand((3, 4)), o.rand((4, 2)), o.rand((2,)))
    o.case("vector", fn, o.rand((4,)), o.rand((4, 2)), o.rand((2,)))
    o.case("cube", fn, o.rand((2, 3, 2), "f32"), o.rand((2, 4), "f32"), o.rand((4,), "f32"))
    o.case("bf16", fn, o.rand((2, 3), "bf16"), o.rand((3, 2), "bf16"), o.rand((2,), "bf16"),
           via_f32=True, tol=3e-2)
    o.case("zero_rows", fn, o.rand((0, 4)), o.rand((4, 2)), o.rand((2,)))


@op("attention")
def attention(o):
    def fn(causal, scale):
        def run(q, k, v):
            s = scale if scale else 1.0 / np.sqrt(int(q.shape[-1]))
            scores = tf.linalg.matmul(q, k, transpose_b=True) * tf.constant(s, q.dtype)
            if causal:
                seen = tf.linalg.band_part(tf.ones(scores.shape[-2:], tf.bool), -1, 0)
                scores = tf.where(seen, scores, tf.constant(-INF, q.dtype))
            return tf.linalg.matmul(tf.nn.softmax(scores), v)
        return run

    def qkv(shape, dtype, keys=None):
        kv = shape if keys is None else shape[:-2] + (keys,) + shape[-1:]
        return o.rand(shape, dtype), o.rand(kv, dtype), o.rand(kv, dtype)

    for causal in (False, True):
        n = "causal" if causal else "full"
        at = {"causal": causal, "scale": 0.0}
        o.case(n, fn(causal, 0), *qkv((3, 4), "f64"), attrs=at)
        o.case(n + "_heads", fn(causal, 0), *qkv((2, 2, 3, 2), "f64"), attrs=at)
        o.case(n + "_f32", fn(causal, 0), *qkv((2, 5, 3), "f32"), attrs=at)
        o.case(n + "_scale", fn(causal, 0.3), *qkv((2, 3, 2), "f64"),
               attrs={"causal": causal, "scale": 0.3})
        o.case(n + "_bf16", fn(causal, 0), *qkv((3, 4), "bf16"), attrs=at, via_f32=True, tol=3e-2)
        o.case(n + "_zero_rows", fn(causal, 0), *qkv((0, 3, 2), "f64"), attrs=at)
    o.case("other_keys", fn(False, 0), *qkv((2, 3, 2), "f64", keys=5),
           attrs={"causal": False, "scale": 0.0})
    q, k, v = qkv((3, 2), "f32")
    o.case("large_logits", fn(False, 100.0), q, k, v, attrs={"causal": False, "scale": 100.0},
           nofd=True, tol=1e-3)
