"""Element-wise operators."""
import math

import numpy as np
import tensorflow as tf

from .core import ANY, FLOATS, INF, NAN, NUMBERS, NUMPY, edges, op

# ---- element-wise, two inputs ----

BINARY = {
    # name: (function, dtypes, low and high of a, low and high of b, avoid 0 in b)
    "add": (tf.add, NUMBERS), "sub": (tf.subtract, NUMBERS), "mul": (tf.multiply, NUMBERS),
    "div": (lambda a, b: a / b if a.dtype.is_floating else tf.truncatediv(a, b), NUMBERS),
    "mod": (tf.math.floormod, NUMBERS), "pow": (tf.pow, FLOATS),
    "maximum": (tf.maximum, NUMBERS), "minimum": (tf.minimum, NUMBERS),
}
SPECIAL = [NAN, INF, -INF, 0.0, -0.0, 1.0, -2.5]


@op(*BINARY)
def binary(o):
    fn, dtypes = BINARY[o.name]

    def a(shape, dtype):
        if o.name == "pow":
            return o.rand(shape, dtype, 0.2, 2.0)
        if o.name == "sub" and dtype == "u8":
            return o.rand(shape, dtype, 10, 20)
        return o.rand(shape, dtype, -9 if dtype not in FLOATS else -2, 9)

    def b(shape, dtype):
        return o.away(shape, dtype) if o.name in ("div", "mod") else o.rand(shape, dtype, -3, 5)

    def pair(name, sa, sb, dtype, **more):
        o.case(name, fn, a(sa, dtype), b(sb, dtype), **more)

    pair("same_shape", (2, 3), (2, 3), "f64")
    pair("row", (2, 3), (3,), "f64")
    pair("both_stretch", (2, 1, 3), (4, 1), "f64")
    pair("scalar_left", (), (2, 2), "f64")
    pair("scalars", (), (), "f64")
    pair("f32", (3, 4), (3, 4), "f32")
    pair("f32_column", (3, 4), (3, 1), "f32")
    pair("f32_long", (61,), (), "f32", tol=1e-4 if o.name in ("mod", "pow") else None)
    pair("bf16", (2, 3), (3,), "bf16", via_f32=True)
    for d in ("i32", "i64", "u8"):
        if d in dtypes:
            pair(d, (3, 5), (5,), d)
    if o.name == "div":
        o.case("i32_signs", fn, edges("i32", [7, -7, 7, -7, 0]), edges("i32", [2, 2, -2, -2, -5]))
    if o.name == "mod":
        o.case("i64_signs", fn, edges("i64", [7, -7, 7, -7, 0]), edges("i64", [3, 3, -3, -3, -5]))
        o.case("f64_signs", fn, edges("f64", [7, -7, 7, -7, 0, 6, -6]),
               edges("f64", [3, 3, -3, -3, -5, 3, 3]), nofd=True)
    if o.name in ("maximum", "minimum"):
        o.case("ties", fn, edges("f64", [1, 2, 0.0, -0.0, -3]), edges("f64", [1, 3, -0.0, 0.0, -3]),
               nofd=True)
        o.case("ties_stretched", fn, edges("f32", [[1, 2, 3], [3, 2, 1]]), edges("f32", [2]),
               nofd=True)
    if o.name == "pow":
        o.case("whole_exponents", fn, edges("f64", [-2, -1.5, 3, 0.5]), edges("f64", [3, 2, 0, -2]),
               nofd=True)
        o.case("zero_base", fn, edges("f64", [0, 0, 0]), edges("f64", [2, 1, 3]), nofd=True)
    if o.name != "mod":
        n = len(SPECIAL)
        o.case("special", fn, np.repeat(edges("f32", SPECIAL), n),
               np.tile(edges("f32", SPECIAL), n), wrt=[])
    o.case("zero_rows", fn, a((0, 3), "f32"), b((3,), "f32"))
    o.case("zero_rows_f64", fn, a((2, 1), "f64"), b((2, 0), "f64"))


COMPARE = {"equal": tf.equal, "not_equal": tf.not_equal, "less": tf.less,
           "less_equal": tf.less_equal, "greater": tf.greater,
           "greater_equal": tf.greater_equal}


@op(*COMPARE)
def compare(o):
    fn = COMPARE[o.name]
    def whole(shape, d):
        return o.rand(shape, "i32", 0, 2).astype(NUMPY[d]) if d != "bool" else o.rand(shape, d)

    for d in NUMBERS:
        o.case(d, fn, whole((3, 4), d), whole((4,), d))
    # TensorFlow orders no bools; false is less than true.
    o.case("bool", lambda a, b: fn(tf.cast(a, tf.int32), tf.cast(b, tf.int32)),
           whole((3, 4), "bool"), whole((4,), "bool"))
    n = len(SPECIAL)
    o.case("special", fn, np.repeat(edges("f32", SPECIAL), n), np.tile(edges("f32", SPECIAL), n))
    o.case("scalars", fn, edges("i64", 3), edges("i64", 3))
    o.case("both_stretch", fn, o.rand((2, 1, 3), "i32", 0, 2), o.rand((4, 1), "i32", 0, 2))
    o.case("zero_rows", fn, o.rand((0, 3)), o.rand((1, 3)))


@op("logical_and", "logical_or")
def logical(o):
    fn = getattr(tf, o.name, None) or getattr(tf.math, o.name)
    o.case("table", fn, edges("bool", [0, 0, 1, 1]), edges("bool", [0, 1, 0, 1]))
    o.case("both_stretch", fn, o.rand((3, 1), "bool"), o.rand((2, 1, 4), "bool"))
    o.case("scalars", fn, edges("bool", True), edges("bool", False))
    o.case("zero_rows", fn, o.rand((0, 2), "bool"), o.rand((2,), "bool"))


@op("logical_not")
def logical_not(o):
    o.case("table", tf.logical_not, edges("bool", [0, 1]))
    o.case("scalar", tf.logical_not, edges("bool", True))
    o.case("zero_rows", tf.logical_not, o.rand((0, 2), "bool"))


@op("where")
def where(o):
    for d in ANY:
        o.case(d, tf.where, o.rand((3, 4), "bool"), o.rand((3, 4), d, 0, 9),
               o.rand((3, 4), d, 0, 9))
    o.case("all_stretch", tf.where, o.rand((2, 1, 1), "bool"), o.rand((3, 1)), o.rand((4,)))
    o.case("scalars", tf.where, edges("bool", True), edges("f64", 2), edges("f64", 3))
    o.case("scalar_condition", tf.where, edges("bool", False), o.rand((2, 2)), o.rand(()))
    o.case("keeps_nan_out", tf.where, edges("bool", [1, 0, 1]), edges("f32", [1, NAN, INF]),
           edges("f32", [NAN, 2, NAN]), nofd=True)
    o.case("zero_rows", tf.where, o.rand((0, 1), "bool"), o.rand((0, 3)), o.rand((3,)))


# ---- element-wise, one input ----

UNARY = {
    # name: (function, dtypes, low, high)
    "neg": (tf.negative, NUMBERS, -2, 2), "abs": (tf.abs, NUMBERS, None, None),
    "sign": (tf.sign, NUMBERS, None, None), "square": (tf.square, NUMBERS, -2, 2),
    "exp": (tf.exp, FLOATS, -3, 3), "log": (tf.math.log, FLOATS, 0.1, 4),
    "log1p": (tf.math.log1p, FLOATS, -0.8, 3), "sqrt": (tf.sqrt, FLOATS, 0.1, 9),
    "rsqrt": (tf.math.rsqrt, FLOATS, 0.1, 9), "sin": (tf.sin, FLOATS, -7, 7),
    "cos": (tf.cos, FLOATS, -7, 7), "tanh": (tf.tanh, FLOATS, -3, 3),
    "erf": (tf.math.erf, FLOATS, -3, 3), "sigmoid": (tf.sigmoid, FLOATS, -6, 6),
    "softplus": (tf.math.softplus, FLOATS, -6, 6), "relu": (tf.nn.relu, NUMBERS, None, None),
    "floor": (tf.floor, FLOATS, None, None), "ceil": (tf.math.ceil, FLOATS, None, None),
    "round": (tf.round, FLOATS, None, None), "isfinite": (tf.math.is_finite, FLOATS, -2, 2),
    "isnan": (tf.math.is_nan, FLOATS, -2, 2),
}
# Large finite numbers, where a careless formula overflows or cancels.
LARGE = {"exp": [-100, -87, 88, 20, 1e-8], "log": [1e-30, 1e30, 1e-6, 1.0000001, 3e38],
         "log1p": [1e-10, -1e-10, 1e-20, 1e30, -0.999999], "sqrt": [1e-30, 1e30, 3e38],
         "rsqrt": [1e-30, 1e30, 3e38], "tanh": [-100, 100, 1e-6, -1e-6, 9.5],
         "erf": [-100, 100, 1e-6, -4, 3.9], "sigmoid": [-80, 80, 1000, -1000, 1e-6],
         "softplus": [-80, 80, 1000, -1000, 17, -17, 1e-6], "sin": [100, -1000.5, 1e-6, 31.4159],
         "cos": [100, -1000.5, 1e-6, 31.4159]}


@op(*UNARY)
def unary(o):
    fn, dtypes, low, high = UNARY[o.name]

    def x(shape, dtype):
        if low is None:
            return o.away(shape, dtype, 0.1, 0.4) + np.asarray(
                o.rand(shape, "i32", 0, 3), NUMPY[dtype])
        return o.rand(shape, dtype, low, high)

    nofd = o.name in ("sign", "floor", "ceil", "round")
    o.case("matrix", fn, x((2, 3), "f64"))
    o.case("scalar", fn, x((), "f64"))
    o.case("cube", fn, x((2, 3, 2), "f64"))
    o.case("f32", fn, x((5, 7), "f32"))
    o.case("bf16", fn, x((6,), "bf16"), via_f32=True)
    for d in ("i32", "i64", "u8"):
        if d in dtypes and d != "u8":
            o.case(d, fn, o.rand((3, 3), d, -4, 9))
    if "u8" in dtypes and o.name != "neg":  # TensorFlow lacks some of these
        o.case("u8", lambda v: tf.cast(fn(tf.cast(v, tf.int32)), tf.uint8),
               o.rand((3, 3), "u8", 0, 9))
    if o.name == "neg":
        o.case("u8_wraps", lambda v: v, edges("u8", [0, 1, 255]),
               formula=[edges("u8", [0, 255, 1])])
    if low is None:
        o.case("kinks", fn, edges("f64", [-1, -0.5, -0.0, 0.0, 0.5, 1, 1.5, 2.5, -1.5]), nofd=True)
    if o.name in LARGE:
        for d in ("f32", "f64"):
            o.case("large_" + d, fn, edges(d, LARGE[o.name]), nofd=True)
    if o.name in ("log", "sqrt", "rsqrt"):
        o.case("zero_gradient", fn, edges("f64", [0.0]), nofd=True)
    special = [NAN, INF, -INF, 0.0, -0.0, 1.0, -2.5]
    for d in ("f32", "f64"):
        # TensorFlow 2.21 says that erf of an infinite f64 is NaN.
        right = [edges(d, [math.erf(v) for v in special])] if o.name == "erf" else None
        o.case("special_" + d, fn, edges(d, special), wrt=[], formula=right)
    o.case("zero_rows", fn, x((0, 3), "f32"), nofd=nofd)


def gelu_f64(x, approximate):
    if approximate:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1 + tf.tanh(inner))
    return 0.5 * x * (1 + tf.math.erf(x / math.sqrt(2)))


@op("gelu")
def gelu(o):
    for approximate in (False, True):
        n = "approximate" if approximate else "exact"
        # tf.nn.gelu rounds its constants to f32; in f64 the formula is asked.
        fn = lambda v: gelu_f64(v, approximate) if v.dtype == tf.float64 else \
            tf.nn.gelu(v, approximate=approximate)
        at = {"approximate": approximate}
        o.case(n, fn, o.rand((2, 3)), attrs=at)
        o.case(n + "_scalar", fn, o.rand(()), attrs=at)
        o.case(n + "_f32", fn, o.rand((4, 5), "f32", -5, 5), attrs=at)
        o.case(n + "_bf16", fn, o.rand((5,), "bf16"), attrs=at, via_f32=True)
        o.case(n + "_large", fn, edges("f32", [-30, -6, 0, 6, 30, NAN]), attrs=at, nofd=True)
        o.case(n + "_zero_rows", fn, o.rand((0, 2), "f32"), attrs=at)


@op("clip")
def clip(o):
    def fn(low, high):
        return lambda v: tf.clip_by_value(v, tf.constant(low, v.dtype), tf.constant(high, v.dtype))
    at = {"low": -0.5, "high": 1.0}
    f = fn(-0.5, 1.0)
    o.case("matrix", f, edges("f64", [[-2, -0.7, 0.3], [0.9, 1.2, 0.0]]), attrs=at)
    o.case("scalar", f, edges("f64", 0.25), attrs=at)
    o.case("f32", f, o.rand((4, 5), "f32"), attrs=at)
    o.case("bf16", f, o.rand((6,), "bf16"), attrs=at, via_f32=True)
    for d in ("i32", "i64", "u8"):
        o.case(d, fn(2, 6), o.rand((3, 3), d, 0, 9), attrs={"low": 2.0, "high": 6.0})
    o.case("borders", f, edges("f64", [-0.5, 1.0, -0.5000001, 1.0000001]), attrs=at, nofd=True)
    o.case("infinite", f, edges("f32", [INF, -INF, -0.0]), attrs=at, nofd=True)
    o.case("nan_stays", lambda v: v, edges("f32", [NAN, 0.5]), attrs=at, wrt=[])
    o.case("zero_rows", f, o.rand((0, 3)), attrs=at)


@op("cast")
def cast(o):
    for d in ANY:
        for e in ANY:
            x = o.rand((2, 3), d, 0 if e == "u8" else -5, 9)
            o.case("%s_to_%s" % (d, e), lambda v: tf.cast(v, tf.as_dtype(NUMPY[e])), x,
                   attrs={"dtype": e}, nofd=e != "f64")
    big = edges("f64", [3e9, -3e9, 1e30, -1e30, NAN, INF, -INF, 300, -1])
    for e in ("i32", "i64", "u8"):
        info = np.iinfo(NUMPY[e])
        want = [0 if np.isnan(v) else info.max if v >= info.max else
                info.min if v <= info.min else int(v) for v in big]
        o.case("saturates_" + e, lambda v: v, big, attrs={"dtype": e}, wrt=[],
               formula=[np.asarray(want, NUMPY[e])])
        o.case("saturates_f32_" + e, lambda v: v, big.astype(np.float32), attrs={"dtype": e},
               wrt=[], formula=[np.asarray(want, NUMPY[e])])
    o.case("special_to_bool", lambda v: tf.cast(v, tf.bool),
           edges("f32", [NAN, INF, 0, -0.0, 1e-30]), attrs={"dtype": "bool"})
    o.case("bf16_rounds_to_even", lambda v: tf.cast(v, tf.bfloat16),
           edges("f32", [1.00390625, 1.01171875, 1.001, 3.38e38, -1.00390625, NAN, INF]),
           attrs={"dtype": "bf16"}, wrt=[])
    o.case("scalar", lambda v: tf.cast(v, tf.float32), edges("i64", 7), attrs={"dtype": "f32"})
    o.case("zero_rows", lambda v: tf.cast(v, tf.float32), o.rand((0, 3), "i32"),
           attrs={"dtype": "f32"})


@op("scale", "shift")
def scale_shift(o):
    name, v = ("factor", 1.5) if o.name == "scale" else ("offset", -0.75)
    fn = (lambda x: x * v) if o.name == "scale" else (lambda x: x + v)
    o.case("matrix", fn, o.rand((2, 3)), attrs={name: v})
    o.case("scalar", fn, o.rand(()), attrs={name: v})
    o.case("f32", fn, o.rand((3, 5), "f32"), attrs={name: v})
    o.case("bf16", fn, o.rand((5,), "bf16"), attrs={name: v}, via_f32=True)
    o.case("zero_rows", fn, o.rand((0, 3)), attrs={name: v})
    for d in ("i32", "i64", "u8"):
        n = 3 if o.name == "scale" else 2
        fn = (lambda x: x * tf.constant(n, x.dtype)) if o.name == "scale" else \
            (lambda x: x + tf.constant(n, x.dtype))
        o.case(d, fn, o.rand((2, 4), d, -9, 9), attrs={name: float(n)})
