"""Running TensorFlow on a case and writing down what it said (see ../golden.py)."""
import os
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf

# One thread, so that sums have one order.
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)

BF16 = tf.bfloat16.as_numpy_dtype
NUMPY = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64,
         "u8": np.uint8, "bool": np.bool_, "bf16": BF16}
NAMES = {np.dtype(v): k for k, v in NUMPY.items()}
FLOATS = ("f32", "f64", "bf16")
NUMBERS = FLOATS + ("i32", "i64", "u8")
ANY = NUMBERS + ("bool",)
NAN, INF = float("nan"), float("inf")
MISSING = (tf.errors.OpError, TypeError, ValueError)


def is_float(x):
    return NAMES[np.dtype(x.dtype)] in FLOATS


# ---- writing ----


def number(v, dtype):
    if dtype == "bool":
        return "1" if v else "0"
    if dtype not in FLOATS:
        return str(int(v))
    v = np.float32(v) if dtype == "bf16" else v
    if np.isnan(v):
        return "nan"
    if np.isinf(v):
        return "inf" if v > 0 else "-inf"
    text = repr(float(v)) if dtype == "f64" else str(np.float32(v))
    return text[:-2] if text.endswith(".0") else text


def tensor_text(x):
    x = np.asarray(x)
    dtype = NAMES[x.dtype]
    head = "%s[%s]" % (dtype, ",".join(str(d) for d in x.shape))
    return " ".join([head] + [number(v, dtype) for v in x.reshape(-1)])


def attr_text(v):
    if v is None:
        return "all"
    if isinstance(v, (list, tuple)):
        return ",".join(str(int(i)) for i in v) or "-"
    if isinstance(v, (bool, np.bool_)):
        return str(int(v))
    return v if isinstance(v, str) else repr(v)


class Op:
    """The cases of one operator: `case` runs TensorFlow and notes what it said."""

    def __init__(self, name):
        self.name = name
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))
        self.lines = ["# Made by tools/golden.py from TensorFlow %s." % tf.__version__]
        self.names = set()

    # Random inputs have three decimals, so that files stay short.
    def rand(self, shape, dtype="f64", low=-2.0, high=2.0):
        if dtype == "bool":
            return np.asarray(self.rng.integers(0, 2, shape), np.bool_)
        if dtype not in FLOATS:
            low, high = max(0, int(low)) if dtype == "u8" else int(low), int(high)
            return np.asarray(self.rng.integers(low, high + 1, shape), NUMPY[dtype])
        x = np.round(self.rng.uniform(low, high, shape), 3)
        return np.asarray(np.asarray(x, np.float64), NUMPY[dtype])

    def away(self, shape, dtype="f64", low=0.1, high=2.0):
        """Not near 0, where some operators have a kink."""
        if dtype not in FLOATS:
            return self.rand(shape, dtype, 1, 9)
        x = np.asarray(self.rand(shape, "f64", low, high))
        return np.asarray(x * self.rng.choice([-1.0, 1.0], shape), NUMPY[dtype])

    def distinct(self, shape, dtype="f64", step=0.25):
        """No two equal, and far enough apart for finite differences."""
        count = int(np.prod(shape))
        x = self.rng.permutation(count) - count // 2
        if dtype not in FLOATS:
            return np.asarray((x + count).reshape(shape), NUMPY[dtype])
        return np.asarray((x * step).reshape(shape), NUMPY[dtype])

    def case(self, name, fn, *inputs, attrs=None, wrt=None, nofd=False, nosecond=False,
             tol=None, via_f32=False, formula=None):
        """wrt: inputs whose gradients are asked; None: every float input."""
        xs = [np.asarray(x) for x in inputs]
        assert name not in self.names, (self.name, name)
        try:
            outs, seeds, grads = self.ask(fn, xs, wrt, via_f32)
        except MISSING as e:
            print("%s/%s: TensorFlow cannot: %s" % (self.name, name, str(e).split("\n")[0][:90]))
            return
        if formula is not None:
            outs = [np.asarray(o) for o in formula]
        self.names.add(name)
        add = self.lines.append
        add("")
        add("case %s/%s" % (self.name, name))
        add("op %s" % self.name)
        for k, v in (attrs or {}).items():
            add("attr %s %s" % (k, attr_text(v)))
        for x in xs:
            add("in " + tensor_text(x))
        for o in outs:
            add("out " + tensor_text(o))
        if any(g is not None for g in grads):
            for i, s in seeds.items():
                add("seed %d %s" % (i, tensor_text(s)))
            for i, g in enumerate(grads):
                if g is not None:
                    add("grad %d %s" % (i, tensor_text(g)))
        if tol is not None:
            add("tol %g" % tol)
        if nofd:
            add("nofd")
        if nosecond:
            add("nosecond")
        add("end")

    def ask(self, fn, xs, wrt, via_f32):
        narrow = via_f32 and any(x.dtype == BF16 for x in xs)

        def widen(x):
            return x.astype(np.float32) if narrow and x.dtype == BF16 else x

        def back(x):
            return x.astype(BF16) if narrow and x.dtype == np.float32 else x

        if wrt is None:
            wrt = [i for i, x in enumerate(xs) if is_float(x)]
        ts = [tf.constant(widen(x)) for x in xs]
        with tf.GradientTape(persistent=True) as tape:
            for i in wrt:
                tape.watch(ts[i])
            outs = fn(*ts)
            outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
        values = [back(np.asarray(o.numpy())) for o in outs]
        seeds = {}
        for i, v in enumerate(values):
            if is_float(v):
                seeds[i] = self.rand(v.shape, NAMES[v.dtype])
        grads = [None] * len(xs)
        for i in wrt:
            targets = [outs[k] for k in seeds]
            g = tape.gradient(targets, ts[i],
                              output_gradients=[tf.constant(widen(s)) for s in seeds.values()])
            if g is not None:
                grads[i] = back(np.asarray(tf.convert_to_tensor(g).numpy()))
        return values, seeds, grads

    def write(self, folder):
        with open(os.path.join(folder, self.name + ".txt"), "w") as f:
            f.write("\n".join(self.lines) + "\n")


OPS = {}


def op(*names):
    def note(fn):
        for n in names:
            assert n not in OPS, n
            OPS[n] = fn
        return fn
    return note


def edges(dtype, values):
    return np.asarray(values, NUMPY[dtype])
