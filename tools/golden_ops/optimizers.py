"""Keras optimizers, step by step, in the format of the golden files.

A case's inputs are the start value and the gradients of each step, its outputs
the value after each step. Keras keeps its settings in f32, even for f64
variables; the `exact` settings are numbers that f32 holds exactly, so that f64
can be compared closely.
"""
import numpy as np
import tensorflow as tf

from .core import Op, attr_text, tensor_text

STEPS = 5
SETTINGS = {
    "sgd": (tf.keras.optimizers.SGD, {"default": {}, "exact": {"rate": 0.125}}),
    "adam": (tf.keras.optimizers.Adam, {
        "default": {},
        "exact": {"rate": 0.0625, "beta1": 0.75, "beta2": 0.96875, "epsilon": 0.0009765625}}),
}
KERAS_NAMES = {"rate": "learning_rate", "beta1": "beta_1", "beta2": "beta_2",
               "epsilon": "epsilon"}
SHAPES = {"default": (2, 3), "exact": (7,)}


def write(path):
    lines = ["# Made by tools/golden.py from TensorFlow %s, Keras %s." %
             (tf.__version__, tf.keras.__version__)]
    for name, (make, settings) in SETTINGS.items():
        o = Op(name)
        for setting, attrs in settings.items():
            for dtype in ("f32", "f64"):
                optimizer = make(**{KERAS_NAMES[k]: v for k, v in attrs.items()})
                start = o.rand(SHAPES[setting], dtype)
                gradients = [o.rand(start.shape, dtype) for _ in range(STEPS)]
                gradients[1].flat[0] = 0
                gradients[2].flat[1] = 1000
                w = tf.Variable(start)
                lines += ["", "case %s/%s_%s" % (name, setting, dtype), "op " + name]
                lines += ["attr %s %s" % (k, attr_text(v)) for k, v in attrs.items()]
                lines += ["in " + tensor_text(t) for t in [start] + gradients]
                for g in gradients:
                    optimizer.apply_gradients([(tf.constant(g), w)])
                    lines.append("out " + tensor_text(np.asarray(w.numpy())))
                close = dtype == "f64" and setting == "exact"
                lines += ["tol %g" % (1e-12 if close else 1e-6), "end"]
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n")
