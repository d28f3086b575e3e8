#!/usr/bin/env python3
"""Asks Keras what the five models give, and two with all layers, and writes it to
tests/golden_models.txt.

    golden-venv/bin/python tools/golden_models.py tests/golden_models.txt

(golden.py says how to make the environment.) Weights and inputs are a function of the
variable's number and the element's, so that nothing but answers has to be stored;
tests/models_golden_test.c has the same function. A line is a model, what was asked,
and numbers: logits, or, of a batch norm model, the moving statistics after a batch ("train"
without numbers: a batch that is only to leave them).
"""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

L = tf.keras.layers
INPUT = 1000  # the number of x


def mixed(count, number):
    """u32: element i of variable `number`."""
    h = np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B1)
    h += np.uint32(number * 0x85EBCA77 & 0xFFFFFFFF)
    h ^= h >> np.uint32(15)
    h *= np.uint32(0x2C1B3C6D)
    return h ^ h >> np.uint32(12)


def unit(shape, number):
    """[-0.5, 0.5)"""
    return (mixed(int(np.prod(shape)), number) >> np.uint32(8)).reshape(shape) / 2.0**24 - 0.5


class Weights:
    """Hands out variables in the order our models make them."""

    def __init__(self):
        self.number = 0

    def take(self, shape, around=0.0):
        """Matrices keep the size of what passes through; vectors are near `around`."""
        u = unit(shape, self.number)
        self.number += 1
        if len(shape) == 1:
            return (around + 0.2 * u).astype(np.float32)
        return (u * np.sqrt(12.0 / np.prod(shape[:-1]))).astype(np.float32)

    def apply(self, layer, x):
        layer.build(x.shape)
        kinds = {L.BatchNormalization: (1, 0, 0, 1), L.LayerNormalization: (1, 0)}
        around = kinds.get(type(layer), (0, 0))
        layer.set_weights([self.take(w.shape, a) for w, a in zip(layer.get_weights(), around)])
        return layer(x)


def sequential(*layers, shape=(28, 28, 1), dtype="float32"):
    w, x = Weights(), L.Input(shape, dtype=dtype)
    y = x
    for layer in layers:
        y = w.apply(layer, y)
    return tf.keras.Model(x, y)


def cnn():
    return sequential(L.Conv2D(32, 3, activation="relu"), L.MaxPooling2D(), L.Flatten(),
                      L.Dense(64, activation="relu"), L.Dense(10))


def cnn2():
    return sequential(L.Conv2D(32, 3, activation="relu"), L.MaxPooling2D(),
                      L.Conv2D(64, 3, activation="relu"), L.MaxPooling2D(), L.Flatten(),
                      L.Dense(64, activation="relu"), L.Dense(10))


def mlp():
    return sequential(L.Flatten(), L.Dense(2048, activation="relu"),
                      L.Dense(2048, activation="relu"), L.Dense(10))


def layers():
    """Each layer of model.h that pictures go through, with other options than the models have."""
    return sequential(L.Conv2D(4, 5, strides=2, padding="same", activation="relu"),
                      L.BatchNormalization(momentum=0.9, epsilon=1e-2), L.AveragePooling2D(2),
                      L.LayerNormalization(epsilon=1e-5),
                      L.Conv2D(5, 2, use_bias=False, activation="tanh"), L.Flatten(),
                      L.Dense(7, use_bias=False), L.Activation("sigmoid"), L.Dropout(0.5), L.Dense(3),
                      shape=(12, 10, 3))


def pooled():
    return sequential(L.Conv2D(4, 3, strides=3), L.GlobalAveragePooling2D(), L.Dense(3),
                      shape=(12, 10, 3))


def words():
    return sequential(L.Embedding(16, 5), L.Dense(4, activation="relu"),
                      L.LayerNormalization(epsilon=1e-2), L.Flatten(), L.Dense(2),
                      shape=(6,), dtype="int32")


def resnet():
    w, x = Weights(), L.Input((28, 28, 1))

    def conv_norm(y, window, channels, stride):
        y = w.apply(L.Conv2D(channels, window, strides=stride, padding="same", use_bias=False), y)
        return w.apply(L.BatchNormalization(), y)

    y, channels = L.ReLU()(conv_norm(x, 3, 16, 1)), 16
    for block in range(9):
        wide = 16 << block // 3
        stride = 1 if wide == channels else 2
        h = L.ReLU()(conv_norm(y, 3, wide, stride))
        h = conv_norm(h, 3, wide, 1)
        y = L.ReLU()(h + (y if stride == 1 else conv_norm(y, 1, wide, stride)))
        channels = wide
    return tf.keras.Model(x, w.apply(L.Dense(10), L.GlobalAveragePooling2D()(y)))


def gpt(ids):
    w, heads, width = Weights(), 8, 256
    tokens, positions = w.take((256, width)), w.take((128, width))
    x = tf.gather(tokens, ids) + positions
    mask = np.triu(np.full((128, 128), -np.inf, np.float32), 1)

    def split(t):
        return tf.transpose(tf.reshape(t, (-1, 128, heads, width // heads)), (0, 2, 1, 3))

    for _ in range(4):
        h = w.apply(L.LayerNormalization(epsilon=1e-5), x)
        q, k, v = (split(t) for t in tf.split(w.apply(L.Dense(3 * width), h), 3, -1))
        scores = tf.matmul(q, k, transpose_b=True) / np.sqrt(np.float32(width // heads)) + mask
        a = tf.transpose(tf.matmul(tf.nn.softmax(scores), v), (0, 2, 1, 3))
        x = x + w.apply(L.Dense(width), tf.reshape(a, (-1, 128, width)))
        h = w.apply(L.LayerNormalization(epsilon=1e-5), x)
        h = tf.nn.gelu(w.apply(L.Dense(4 * width), h), approximate=True)
        x = x + w.apply(L.Dense(width), h)
    return tf.matmul(w.apply(L.LayerNormalization(epsilon=1e-5), x), tokens, transpose_b=True)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = open(sys.argv[1], "w")
    out.write("# Keras's answers, by tools/golden_models.py\n")

    def write(model, what, numbers):
        out.write(" ".join([model, what] + ["%.8g" % n for n in np.ravel(numbers)]) + "\n")

    images = (unit((2, 28, 28, 1), INPUT) + 0.5).astype(np.float32)
    for make in (cnn, cnn2, mlp, resnet):
        model = make()
        write(make.__name__, "evaluate", model(images, training=False))
        if make is resnet:
            write("resnet", "train", model(images, training=True))
            # What a batch left in the first norm and in the last.
            norms = [l for l in model.layers if isinstance(l, L.BatchNormalization)]
            first, last = norms[0].get_weights(), norms[-1].get_weights()
            write("resnet", "stem/bn/mean", first[2])
            write("resnet", "stem/bn/variance", first[3])
            write("resnet", "block9/bn2/mean", last[2])
            write("resnet", "block9/bn2/variance", last[3])
    ids = (mixed(128, INPUT) & np.uint32(255)).astype(np.int32).reshape(1, 128)
    write("gpt", "evaluate", gpt(ids).numpy()[0, ::9, ::17])

    images = (unit((2, 12, 10, 3), INPUT) + 0.5).astype(np.float32)
    model = layers()
    write("layers", "evaluate", model(images, training=False))
    write("layers", "train", np.zeros(0))  # dropout draws: what it left counts
    model(images, training=True)
    norm = next(l for l in model.layers if isinstance(l, L.BatchNormalization))
    write("layers", "batch_norm_1/mean", norm.get_weights()[2])
    write("layers", "batch_norm_1/variance", norm.get_weights()[3])
    write("pooled", "evaluate", pooled()(images))
    ids = (mixed(12, INPUT) & np.uint32(15)).astype(np.int32).reshape(2, 6)
    write("words", "evaluate", words()(ids))


if __name__ == "__main__":
    main()
