"""Losses of each row: Keras's functions of these names (see ../golden.py)."""
import numpy as np
import tensorflow as tf

from .core import NUMPY, edges, op

losses = tf.keras.losses


def pairs(o, fn, labels, **more):
    """Cases of every shape and dtype; `labels` makes them for a shape and dtype."""
    o.case("matrix", fn, o.rand((3, 4)), labels((3, 4), "f64"), **more)
    o.case("vector", fn, o.rand((5,)), labels((5,), "f64"), **more)
    o.case("cube", fn, o.rand((2, 2, 3)), labels((2, 2, 3), "f64"), **more)
    o.case("f32", fn, o.rand((4, 6), "f32"), labels((4, 6), "f32"), **more)
    o.case("bf16", fn, o.rand((3, 4), "bf16"), labels((3, 4), "bf16"), via_f32=True, tol=3e-2, **more)
    o.case("zero_rows", fn, o.rand((0, 3)), labels((0, 3), "f64"), **more)


@op("mae")
def mae(o):
    fn = lambda a, b: losses.mae(b, a)
    pairs(o, fn, lambda shape, dtype: o.rand(shape, dtype, 3, 5))
    o.case("both_sides", fn, edges("f64", [[1, -2, 3]]), edges("f64", [[-1, 2, 5]]))
    o.case("equal", fn, edges("f64", [[1, 2]]), edges("f64", [[1, 0]]), nofd=True)


@op("huber")
def huber(o):
    fn = lambda a, b: losses.huber(b, a)
    pairs(o, fn, lambda shape, dtype: o.rand(shape, dtype, 4, 6))
    o.case("both_parts", fn, edges("f64", [[0.25, -0.5, 3, -2, 0.75]]), edges("f64", [[0, 0, 0, 0, 0]]))
    o.case("at_delta", fn, edges("f64", [[1, -1, 0]]), edges("f64", [[0, 0, 0]]), nofd=True)


@op("huber_delta")
def huber_delta(o):
    fn = lambda a, b: losses.huber(b, a, delta=0.3)
    pairs(o, fn, lambda shape, dtype: o.rand(shape, dtype, 3, 5), attrs={"delta": 0.3})
    o.case("both_parts", fn, edges("f64", [[0.25, -0.5, 3, -0.2]]), edges("f64", [[0, 0, 0, 0]]),
           attrs={"delta": 0.3})


@op("hinge")
def hinge(o):
    fn = lambda a, b: losses.hinge(b, a)
    sides = lambda shape, dtype: np.asarray(o.rng.choice([-1.0, 1.0], shape), NUMPY[dtype])
    pairs(o, fn, sides)
    o.case("at_one", fn, edges("f64", [[1, -1, 0.5]]), edges("f64", [[1, -1, -1]]), nofd=True)


@op("binary_xent")
def binary_xent(o):
    fn = lambda a, b: losses.binary_crossentropy(b, a, from_logits=True)
    pairs(o, fn, lambda shape, dtype: o.rand(shape, dtype, 0, 1))
    o.case("large_logits", fn, edges("f32", [[1000, -1000], [80, -80]]), edges("f32", [[0, 1], [1, 0]]),
           nofd=True)


@op("kl_divergence")
def kl_divergence(o):
    fn = lambda a, b: losses.kld(b, a)

    def distribution(shape, dtype):
        p = o.rand(shape, "f64", 0.1, 1)
        return np.asarray(p / p.sum(-1, keepdims=True), NUMPY[dtype])

    for name, shape, dtype in (("matrix", (3, 4), "f64"), ("vector", (5,), "f64"),
                               ("cube", (2, 2, 3), "f64"), ("f32", (4, 6), "f32")):
        o.case(name, fn, distribution(shape, dtype), distribution(shape, dtype))
    o.case("bf16", fn, distribution((3, 4), "bf16"), distribution((3, 4), "bf16"), via_f32=True,
           tol=5e-2)
    o.case("certain", fn, edges("f64", [[1, 0], [0.5, 0.5]]), edges("f64", [[0, 1], [1, 0]]), nofd=True)
    o.case("zero_rows", fn, o.rand((0, 3)), o.rand((0, 3)))


@op("smooth_labels")
def smooth_labels(o):
    """What Keras's categorical cross entropy does to its labels."""
    def fn(y):
        return y * (1.0 - 0.1) + 0.1 / y.shape[-1]
    for name, shape, dtype in (("matrix", (3, 4), "f64"), ("vector", (5,), "f64"),
                               ("f32", (2, 2, 3), "f32"), ("zero_rows", (0, 3), "f64")):
        o.case(name, fn, o.rand(shape, dtype, 0, 1), attrs={"amount": 0.1})
    o.case("bf16", fn, o.rand((3, 4), "bf16", 0, 1), via_f32=True, tol=1e-2, attrs={"amount": 0.1})
