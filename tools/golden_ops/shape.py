"""Looking up, moving and shaping."""
import numpy as np
import tensorflow as tf

from .core import ANY, FLOATS, INF, NUMPY, attr_text, edges, op

# ---- looking up ----


@op("gather")
def gather(o):
    fn = lambda axis: (lambda x, i: tf.gather(x, i, axis=axis))
    index = lambda shape, n, dtype="i64": o.rand(shape, dtype, 0, n - 1)
    o.case("rows", fn(0), o.rand((4, 3)), index((3,), 4), attrs={"axis": 0})
    o.case("repeated", fn(0), o.rand((3, 2)), edges("i32", [2, 0, 2, 2]), attrs={"axis": 0})
    o.case("last_axis", fn(-1), o.rand((2, 4)), index((2, 2), 4, "i32"), attrs={"axis": -1})
    o.case("middle_axis", fn(1), o.rand((2, 3, 2)), index((2,), 3), attrs={"axis": 1})
    o.case("one", fn(0), o.rand((4, 2)), edges("i64", 1), attrs={"axis": 0})
    for d in ANY:
        if d != "f64":
            o.case(d, fn(0), o.rand((4, 2), d, 0, 9), index((3,), 4), attrs={"axis": 0})
    o.case("zero_rows", fn(0), o.rand((4, 2)), index((0,), 4), attrs={"axis": 0})
    o.case("zero_wide", fn(0), o.rand((4, 0)), index((2,), 4), attrs={"axis": 0})


@op("embedding")
def embedding(o):
    fn = lambda table, ids: tf.nn.embedding_lookup(table, ids)
    o.case("vector", fn, o.rand((5, 3)), edges("i64", [4, 0, 2]))
    o.case("repeated", fn, o.rand((4, 2)), edges("i32", [[1, 1], [3, 1]]))
    o.case("one", fn, o.rand((3, 2)), edges("i64", 2))
    o.case("f32", fn, o.rand((6, 4), "f32"), o.rand((2, 3), "i32", 0, 5))
    o.case("bf16", fn, o.rand((3, 2), "bf16"), edges("i32", [2, 1, 2]))
    o.case("zero_rows", fn, o.rand((3, 2)), o.rand((0,), "i64", 0, 2))


@op("one_hot")
def one_hot(o):
    for d in ANY:
        fn = lambda ids: tf.one_hot(ids, 4, on_value=tf.cast(1, tf.as_dtype(NUMPY[d])),
                                    off_value=tf.cast(0, tf.as_dtype(NUMPY[d])))
        o.case(d, fn, edges("i64", [0, 3, 1]), attrs={"depth": 4, "dtype": d})
    fn = lambda ids: tf.one_hot(ids, 3)
    at = {"depth": 3, "dtype": "f32"}
    o.case("outside", fn, edges("i32", [[-1, 0], [3, 2]]), attrs=at)
    o.case("scalar", fn, edges("i64", 1), attrs=at)
    o.case("zero_rows", fn, o.rand((0, 2), "i32", 0, 2), attrs=at)
    o.case("zero_depth", lambda ids: tf.one_hot(ids, 0), edges("i32", [0, 1]),
           attrs={"depth": 0, "dtype": "f32"})


# ---- shape ----


def movement(o, name, fn, shape, attrs, dtypes=("f32", "bf16", "i32", "i64", "u8", "bool")):
    """The same movement in f64 with gradients and in every other dtype."""
    o.case(name, fn, o.rand(shape), attrs=attrs)
    for d in dtypes:
        o.case("%s_%s" % (name, d), fn, o.rand(shape, d, 0, 9), attrs=attrs)


@op("reshape")
def reshape(o):
    fn = lambda s: (lambda v: tf.reshape(v, s))
    movement(o, "matrix", fn([3, 4]), (2, 6), {"shape": [3, 4]})
    o.case("remains", fn([2, -1]), o.rand((2, 3, 2)), attrs={"shape": [2, -1]})
    o.case("to_scalar", fn([]), o.rand((1, 1)), attrs={"shape": []})
    o.case("from_scalar", fn([1, 1]), o.rand(()), attrs={"shape": [1, 1]})
    o.case("zero_rows", fn([0, 6]), o.rand((0, 2, 3)), attrs={"shape": [0, 6]})
    o.case("zero_remains", fn([-1, 3]), o.rand((0, 3)), attrs={"shape": [-1, 3]})


@op("flatten_rows")
def flatten_rows(o):
    fn = lambda v: tf.reshape(v, [v.shape[0], int(np.prod(v.shape[1:]))])
    o.case("cube", fn, o.rand((2, 3, 2)))
    o.case("matrix", fn, o.rand((2, 3), "f32"))
    o.case("zero_rows", fn, o.rand((0, 2, 3)))
    movement(o, "four", fn, (2, 2, 1, 2), {})


@op("expand_dims", "squeeze")
def expand_squeeze(o):
    if o.name == "expand_dims":
        for axis in (0, 1, -1):
            o.case("axis%d" % axis, lambda v: tf.expand_dims(v, axis), o.rand((2, 3)),
                   attrs={"axis": axis})
        o.case("scalar", lambda v: tf.expand_dims(v, 0), o.rand(()), attrs={"axis": 0})
        o.case("zero_rows", lambda v: tf.expand_dims(v, 1), o.rand((0, 2)), attrs={"axis": 1})
        movement(o, "cube", lambda v: tf.expand_dims(v, 2), (2, 3, 2), {"axis": 2})
        return
    for axes in (None, [0], [-1], [0, 2]):
        o.case("axes_" + attr_text(axes).replace(",", "_"), lambda v: tf.squeeze(v, axes),
               o.rand((1, 3, 1)), attrs={"axes": axes})
    o.case("zero_rows", lambda v: tf.squeeze(v, [1]), o.rand((0, 1, 2)), attrs={"axes": [1]})
    movement(o, "matrix", lambda v: tf.squeeze(v, [1]), (3, 1), {"axes": [1]})


@op("transpose")
def transpose(o):
    fn = lambda order: (lambda v: tf.transpose(v, order))
    movement(o, "matrix", fn([1, 0]), (2, 3), {"order": [1, 0]})
    for order in ([0, 2, 1], [2, 0, 1], [1, 2, 0], [2, 1, 0], [0, 1, 2]):
        o.case("cube_" + "".join(map(str, order)), fn(order), o.rand((2, 3, 4)),
               attrs={"order": order})
    o.case("four", fn([0, 2, 3, 1]), o.rand((2, 2, 3, 2), "f32"), attrs={"order": [0, 2, 3, 1]})
    o.case("scalar", fn([]), o.rand(()), attrs={"order": []})
    o.case("zero_rows", fn([1, 0]), o.rand((0, 3)), attrs={"order": [1, 0]})


@op("broadcast_to")
def broadcast_to(o):
    fn = lambda s: (lambda v: tf.broadcast_to(v, s))
    movement(o, "row", fn([3, 2]), (2,), {"shape": [3, 2]})
    o.case("column", fn([2, 3]), o.rand((2, 1)), attrs={"shape": [2, 3]})
    o.case("scalar", fn([2, 2]), o.rand(()), attrs={"shape": [2, 2]})
    o.case("both", fn([2, 3, 2]), o.rand((3, 1)), attrs={"shape": [2, 3, 2]})
    o.case("same", fn([2, 3]), o.rand((2, 3)), attrs={"shape": [2, 3]})
    o.case("zero_rows", fn([0, 3]), o.rand((1, 3)), attrs={"shape": [0, 3]})


@op("concat")
def concat(o):
    fn = lambda axis: (lambda *v: tf.concat(v, axis))
    for d in ("f64",) + tuple(d for d in ANY if d != "f64"):
        o.case(d, fn(0), o.rand((2, 3), d, 0, 9), o.rand((1, 3), d, 0, 9), attrs={"axis": 0})
    o.case("last_axis", fn(-1), o.rand((2, 3)), o.rand((2, 1)), o.rand((2, 2)), attrs={"axis": -1})
    o.case("middle_axis", fn(1), o.rand((2, 1, 2)), o.rand((2, 2, 2)), attrs={"axis": 1})
    o.case("vectors", fn(0), o.rand((2,)), o.rand((3,)), attrs={"axis": 0})
    o.case("one", fn(1), o.rand((2, 3)), attrs={"axis": 1})
    o.case("zero_part", fn(0), o.rand((0, 3)), o.rand((2, 3)), attrs={"axis": 0})
    o.case("zero_rows", fn(1), o.rand((0, 3)), o.rand((0, 1)), attrs={"axis": 1})


@op("stack")
def stack(o):
    fn = lambda axis: (lambda *v: tf.stack(v, axis))
    for d in ("f64",) + tuple(d for d in ANY if d != "f64"):
        o.case(d, fn(0), o.rand((3,), d, 0, 9), o.rand((3,), d, 0, 9), attrs={"axis": 0})
    o.case("last_axis", fn(-1), o.rand((2, 3)), o.rand((2, 3)), attrs={"axis": -1})
    o.case("middle_axis", fn(1), o.rand((2, 2)), o.rand((2, 2)), o.rand((2, 2)), attrs={"axis": 1})
    o.case("scalars", fn(0), o.rand(()), o.rand(()), attrs={"axis": 0})
    o.case("one", fn(0), o.rand((2,)), attrs={"axis": 0})
    o.case("zero_rows", fn(1), o.rand((0, 3)), o.rand((0, 3)), attrs={"axis": 1})


@op("split")
def split(o):
    fn = lambda parts, axis: (lambda v: tf.split(v, parts, axis))
    movement(o, "rows", fn(2, 0), (4, 2), {"parts": 2, "axis": 0})
    o.case("last_axis", fn(3, -1), o.rand((2, 6)), attrs={"parts": 3, "axis": -1})
    o.case("middle_axis", fn(2, 1), o.rand((2, 4, 2)), attrs={"parts": 2, "axis": 1})
    o.case("one_part", fn(1, 0), o.rand((3, 2)), attrs={"parts": 1, "axis": 0})
    o.case("zero_rows", fn(2, 1), o.rand((0, 4)), attrs={"parts": 2, "axis": 1})


@op("split_sizes")
def split_sizes(o):
    fn = lambda sizes, axis: (lambda v: tf.split(v, sizes, axis))
    o.case("rows", fn([1, 3], 0), o.rand((4, 2)), attrs={"sizes": [1, 3], "axis": 0})
    o.case("last_axis", fn([2, 0, 1], -1), o.rand((2, 3), "f32"),
           attrs={"sizes": [2, 0, 1], "axis": -1})
    o.case("zero_rows", fn([1, 2], 1), o.rand((0, 3)), attrs={"sizes": [1, 2], "axis": 1})
    movement(o, "columns", fn([2, 1], 1), (2, 3), {"sizes": [2, 1], "axis": 1})


@op("slice")
def slice_(o):
    fn = lambda b, s: (lambda v: tf.slice(v, np.asarray(b, np.int32), np.asarray(s, np.int32)))
    at = lambda b, s: {"begin": b, "size": s}
    movement(o, "matrix", fn([1, 0], [2, 2]), (3, 3), at([1, 0], [2, 2]))
    o.case("to_end", fn([1, 1], [-1, 1]), o.rand((3, 3)), attrs=at([1, 1], [-1, 1]))
    o.case("cube", fn([0, 1, 1], [2, 1, -1]), o.rand((2, 2, 3)), attrs=at([0, 1, 1], [2, 1, -1]))
    o.case("whole", fn([0, 0], [-1, -1]), o.rand((2, 2)), attrs=at([0, 0], [-1, -1]))
    o.case("scalar", fn([], []), o.rand(()), attrs=at([], []))
    o.case("nothing", fn([1, 0], [0, 2]), o.rand((3, 2)), attrs=at([1, 0], [0, 2]))
    o.case("zero_rows", fn([0, 1], [0, 2]), o.rand((0, 3)), attrs=at([0, 1], [0, 2]))


@op("pad")
def pad(o):
    fn = lambda b, a, v: (lambda x: tf.pad(x, list(zip(b, a)) or tf.zeros([0, 2], tf.int32),
                                           constant_values=tf.cast(v, x.dtype)))
    at = lambda b, a, v: {"before": b, "after": a, "value": v}
    movement(o, "matrix", fn([1, 0], [0, 2], 0.0), (2, 2), at([1, 0], [0, 2], 0.0),
             dtypes=("f32", "bf16", "i32", "i64", "u8"))
    o.case("bool", lambda x: tf.cast(tf.pad(tf.cast(x, tf.int32), [[1, 1]]), tf.bool),
           o.rand((3,), "bool"), attrs=at([1], [1], 0.0))
    o.case("value", fn([1, 1], [1, 0], -1.5), o.rand((2, 3)), attrs=at([1, 1], [1, 0], -1.5))
    o.case("i32_value", fn([1], [2], 7.0), o.rand((2,), "i32", 0, 9), attrs=at([1], [2], 7.0))
    o.case("cube", fn([0, 1, 0], [1, 0, 1], 0.5), o.rand((2, 1, 2)),
           attrs=at([0, 1, 0], [1, 0, 1], 0.5))
    o.case("none", fn([0, 0], [0, 0], 3.0), o.rand((2, 2)), attrs=at([0, 0], [0, 0], 3.0))
    o.case("from_nothing", fn([2, 0], [1, 0], 1.0), o.rand((0, 2)), attrs=at([2, 0], [1, 0], 1.0))
    o.case("zero_rows", fn([0, 1], [0, 1], 1.0), o.rand((0, 2)), attrs=at([0, 1], [0, 1], 1.0))


@op("tile")
def tile(o):
    fn = lambda t: (lambda v: tf.tile(v, t))
    movement(o, "matrix", fn([2, 3]), (2, 2), {"times": [2, 3]})
    o.case("vector", fn([3]), o.rand((2,)), attrs={"times": [3]})
    o.case("cube", fn([1, 2, 2]), o.rand((2, 1, 2)), attrs={"times": [1, 2, 2]})
    o.case("ones", fn([1, 1]), o.rand((2, 2)), attrs={"times": [1, 1]})
    o.case("no_times", fn([0, 2]), o.rand((2, 2)), attrs={"times": [0, 2]})
    o.case("zero_rows", fn([2, 2]), o.rand((0, 2)), attrs={"times": [2, 2]})


@op("require_finite")
def require_finite(o):
    fn = lambda x: tf.debugging.check_numerics(x, "")
    movement(o, "matrix", fn, (2, 3), {}, ("f32", "bf16"))
    o.case("scalar", fn, o.rand(()))
    o.case("zero_rows", fn, o.rand((0, 3)))
    o.case("largest", fn, np.array([3.4e38, -3.4e38, 1e-45, 0], np.float32), nofd=True)


@op("identity")
def identity(o):
    movement(o, "matrix", tf.identity, (2, 3), {})
    o.case("scalar", tf.identity, o.rand(()))
    o.case("zero_rows", tf.identity, o.rand((0, 3)))


@op("scatter_rows")
def scatter_rows(o):
    fn = lambda rows: (lambda i, v: tf.math.unsorted_segment_sum(v, i, rows))
    o.case("repeated", fn(4), edges("i64", [2, 0, 2]), o.rand((3, 2)), attrs={"rows": 4})
    o.case("i32", fn(3), edges("i32", [1, 2]), o.rand((2, 3)), attrs={"rows": 3})
    o.case("f32", fn(5), edges("i64", [4, 4, 1, 4]), o.rand((4, 3), "f32"), attrs={"rows": 5})
    o.case("bf16", fn(3), edges("i32", [0, 0]), o.rand((2, 2), "bf16"), attrs={"rows": 3},
           via_f32=True)
    o.case("zero_rows", fn(3), o.rand((0,), "i64"), o.rand((0, 2)), attrs={"rows": 3})


@op("dropout")
def dropout(o):
    def fn(rate):
        return lambda x, mask: tf.where(mask, x / tf.constant(1 - rate, x.dtype), tf.zeros_like(x))
    for name, shape, dtype, rate in (
            ("half", (3, 4), "f64", 0.5), ("tenth", (2, 3, 2), "f64", 0.1),
            ("none", (4,), "f64", 0.0), ("f32", (5, 7), "f32", 0.3),
            ("bf16", (2, 3), "bf16", 0.25), ("zero_rows", (0, 3), "f64", 0.5)):
        o.case(name, fn(rate), o.rand(shape, dtype), o.rand(shape, "bool"), attrs={"rate": rate},
               via_f32=True)


# ---- randomness that leaves no choice ----
# Draws cannot equal TensorFlow's; their statistics are tested beside the code.


@op("random_uniform")
def random_uniform(o):
    for d in ("i32", "i64", "u8"):
        o.case("only_" + d, lambda: tf.fill([2, 3], tf.constant(5, tf.as_dtype(NUMPY[d]))),
               attrs={"shape": [2, 3], "dtype": d, "low": 5.0, "high": 6.0})
    for d in FLOATS:
        o.case("zero_rows_" + d, lambda: tf.zeros([0, 3], tf.as_dtype(NUMPY[d])),
               attrs={"shape": [0, 3], "dtype": d, "low": 0.0, "high": 1.0})
    o.case("only_vector", lambda: tf.fill([4], tf.constant(-2, tf.int64)),
           attrs={"shape": [4], "dtype": "i64", "low": -2.0, "high": -1.0})


@op("random_normal", "truncated_normal")
def random_normal(o):
    for d in FLOATS:
        dtype = tf.as_dtype(NUMPY[d])
        o.case("certain_" + d, lambda: tf.fill([2, 2], tf.constant(1.5, dtype)),
               attrs={"shape": [2, 2], "dtype": d, "mean": 1.5, "stddev": 0.0})
        o.case("zero_rows_" + d, lambda: tf.zeros([2, 0], dtype),
               attrs={"shape": [2, 0], "dtype": d, "mean": 0.0, "stddev": 1.0})
    o.case("certain_vector", lambda: tf.fill([5], tf.constant(-0.25, tf.float32)),
           attrs={"shape": [5], "dtype": "f32", "mean": -0.25, "stddev": 0.0})


@op("categorical")
def categorical(o):
    fn = lambda samples: (lambda x: tf.random.categorical(x, samples, dtype=tf.int64))
    at = lambda samples: {"samples": samples}
    o.case("one_class", fn(4), edges("f32", [[0.5], [-3]]), attrs=at(4), wrt=[])
    o.case("all_but_one_masked", fn(5), edges("f64", [[-INF, 2, -INF], [-INF, -INF, -700]]),
           attrs=at(5), wrt=[])
    o.case("overwhelming", fn(5), edges("f32", [[-1000, 1000, 0]]), attrs=at(5), wrt=[])
    o.case("zero_rows", fn(2), o.rand((0, 3), "f32"), attrs=at(2), wrt=[])
    o.case("no_samples", fn(0), o.rand((2, 3), "f32"), attrs=at(0), wrt=[])
    o.case("bf16", fn(3), edges("bf16", [[-1000, 0, 1000, 0]]), attrs=at(3), wrt=[])


@op("dropout_mask")
def dropout_mask(o):
    fn = lambda x: tf.ones(x.shape, tf.bool)
    for d in FLOATS:
        o.case("keeps_all_" + d, fn, o.rand((2, 3), d), attrs={"rate": 0.0}, wrt=[])
    o.case("zero_rows", fn, o.rand((0, 3)), attrs={"rate": 0.5}, wrt=[])
    o.case("keeps_all_vector", fn, o.rand((7,), "f32"), attrs={"rate": 0.0}, wrt=[])


@op("stop_gradient")
def stop_gradient(o):
    movement(o, "matrix", tf.stop_gradient, (2, 3), {})
    o.case("zero_rows", tf.stop_gradient, o.rand((0, 3)))
    o.case("vector", tf.stop_gradient, o.rand((4,), "f32"))
