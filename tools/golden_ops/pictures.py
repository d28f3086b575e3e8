"""Pictures: resizing, cropping, flipping."""
import numpy as np
import tensorflow as tf

from .core import ANY, NUMBERS, op


def weights(n, out):
    """How much of each of n pixels is in each of `out`: [out, n]. The higher pixel's part is
    TensorFlow's, which has it in f32; the lower one's is what remains, in f64."""
    eye = np.eye(n, dtype=np.float32).reshape(n, 1, n)
    w = np.asarray(tf.image.resize(eye, [out, 1]))[:, 0, :].astype(np.float64)
    for row in w:
        low, high = np.flatnonzero(row)[[0, -1]]
        row[low] = 1 - row[high] if low != high else 1
    return w


def bilinear(h, w):
    """tf.image.resize always gives f32. For f64 the same weights, in f64."""

    def fn(x):
        if x.dtype != tf.float64:
            y = tf.image.resize(x, [h, w], method="bilinear", antialias=False)
            return tf.cast(y, tf.float32)  # a size that stays keeps its dtype there
        down = tf.constant(weights(x.shape[-3], h), tf.float64)
        across = tf.constant(weights(x.shape[-2], w), tf.float64)
        return tf.einsum("oh,pw,...hwc->...opc", down, across, x)

    return fn


SIZES = [("up", (2, 3, 2), (5, 7)), ("down", (7, 5, 1), (3, 2)), ("twice", (3, 2, 3), (6, 4)),
         ("half", (4, 6, 1), (2, 3)), ("up_down", (3, 7, 1), (7, 3)), ("same", (3, 4, 2), (3, 4)),
         ("from_one", (1, 1, 3), (2, 3)), ("to_one", (3, 4, 2), (1, 1)), ("batch", (2, 3, 4, 2), (4, 3)),
         ("far_down", (11, 13, 1), (2, 3)), ("row", (1, 9, 1), (1, 4))]


@op("resize_bilinear")
def resize_bilinear(o):
    for name, shape, (h, w) in SIZES:
        at = {"height": h, "width": w}
        o.case(name, bilinear(h, w), o.rand(shape), attrs=at)
        o.case(name + "_f32", bilinear(h, w), o.rand(shape, "f32", -99, 99), attrs=at)
        o.case(name + "_u8", bilinear(h, w), o.rand(shape, "u8", 0, 255), attrs=at)
    for d in NUMBERS:
        o.case("two_" + d, bilinear(3, 5), o.rand((2, 4, 3, 1), d, 0, 99), attrs={"height": 3, "width": 5})
    o.case("zero_rows", bilinear(3, 2), o.rand((0, 2, 2, 1)), attrs={"height": 3, "width": 2})
    o.case("zero_channels", bilinear(3, 2), o.rand((2, 2, 0)), attrs={"height": 3, "width": 2})


def nearest(h, w):
    def fn(x):
        boolean = x.dtype == tf.bool
        y = tf.cast(x, tf.uint8) if boolean else x
        y = tf.image.resize(y, [h, w], method="nearest", antialias=False)
        return tf.cast(y, x.dtype)

    return fn


@op("resize_nearest")
def resize_nearest(o):
    for name, shape, (h, w) in SIZES:
        at = {"height": h, "width": w}
        o.case(name, nearest(h, w), o.rand(shape), attrs=at)
        o.case(name + "_u8", nearest(h, w), o.rand(shape, "u8", 0, 255), attrs=at)
    for d in ANY:
        o.case("two_" + d, nearest(3, 5), o.rand((2, 4, 3, 1), d, 0, 99), attrs={"height": 3, "width": 5})
    # Centres that fall between two pixels, or would if numbers were exact.
    for n, out in (6, 4), (10, 4), (9, 6), (7, 3), (3, 41), (57, 19), (41, 3), (49, 7), (5, 64):
        x = np.arange(n, dtype=np.float32).reshape(1, n, 1)
        o.case("ties_%d_%d" % (n, out), nearest(1, out), x, attrs={"height": 1, "width": out})
    zero = np.zeros((0, 2, 2, 1))
    o.case("zero_rows", lambda x: tf.zeros((0, 3, 2, 1), x.dtype) + 0 * tf.reduce_sum(x), zero,
           attrs={"height": 3, "width": 2})


def all_dtypes(o, name, fn, shape, attrs):
    o.case(name, fn, o.rand(shape), attrs=attrs)
    for d in ANY:
        o.case("%s_%s" % (name, d), fn, o.rand(shape, d, 0, 99), attrs=attrs)


@op("crop", "center_crop")
def crop(o):
    centred = o.name == "center_crop"

    def fn(top, left, h, w):
        return lambda x: tf.image.crop_to_bounding_box(x, top, left, h, w)

    for name, shape, top, left, h, w in (("batch", (2, 5, 4, 1), 1, 1, 2, 2), ("one", (5, 3, 2), 2, 1, 1, 1),
                                         ("whole", (3, 2, 2), 0, 0, 3, 2), ("odd", (6, 7, 1), 2, 1, 2, 4),
                                         ("zero_rows", (0, 5, 4, 1), 1, 0, 2, 4)):
        at = {"height": h, "width": w} if centred else {"top": top, "left": left, "height": h, "width": w}
        all_dtypes(o, name, fn(top, left, h, w), shape, at)


@op("flip", "flip_left_right", "flip_up_down")
def flip(o):
    if o.name == "flip":
        for axis in (0, 1, -1):
            all_dtypes(o, "axis%d" % axis, lambda x: tf.reverse(x, [axis]), (2, 3, 2), {"axis": axis})
        o.case("vector", lambda x: tf.reverse(x, [0]), o.rand((5,)), attrs={"axis": 0})
        o.case("zero_rows", lambda x: tf.reverse(x, [1]), o.rand((0, 2)), attrs={"axis": 1})
        return
    fn = tf.image.flip_left_right if o.name == "flip_left_right" else tf.image.flip_up_down
    for name, shape in ("picture", (2, 3, 3)), ("grey", (3, 4, 1)), ("batch", (2, 3, 2, 2)), ("pixel", (1, 1, 2)):
        all_dtypes(o, name, fn, shape, {})
    o.case("zero_rows", fn, o.rand((0, 2, 3, 1)))
