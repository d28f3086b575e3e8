"""Keras optimizers, step by step, in the format of the golden files.

A case's inputs are the start values of its variables and then their gradients of each
step, its outputs the values after each step. The second variable of a case is called
`bias`. Keras keeps its settings in f32, even for f64 variables; settings named `exact` are
numbers that f32 holds exactly, so that f64 can be compared closely (Adam's default betas
are not such: 1 - beta2 is off by 1e-5).
"""
import numpy as np
import tensorflow as tf

from .core import Op, attr_text, tensor_text

K = tf.keras.optimizers
MAKERS = {"sgd": K.SGD, "adam": K.Adam, "adamw": K.AdamW}
EXACT_ADAM = {"rate": 0.0625, "beta1": 0.75, "beta2": 0.96875, "epsilon": 0.0009765625}
COSINE = {"rate": 0.5, "schedule": "cosine", "steps": 3, "alpha": 0.125}
STEPWISE = {"schedule": "step", "boundaries": "0,2", "values": "0.5,0.25,0.125"}

# name, case, settings, variables
CASES = [
    ("sgd", "default", {}, 1),
    ("sgd", "exact", {"rate": 0.125}, 1),
    ("sgd", "momentum_default", {"momentum": 0.9}, 1),
    ("sgd", "momentum_exact", {"rate": 0.125, "momentum": 0.75}, 1),
    ("sgd", "nesterov_default", {"momentum": 0.9, "nesterov": 1}, 1),
    ("sgd", "nesterov_exact", {"rate": 0.125, "momentum": 0.75, "nesterov": 1}, 1),
    ("sgd", "decay_exact", {"rate": 0.125, "weight_decay": 0.25}, 1),
    ("sgd", "decay_momentum_exact",
     {"rate": 0.125, "momentum": 0.5, "weight_decay": 0.25, "exclude": "bias"}, 2),
    ("sgd", "clip_value_exact", {"rate": 0.125, "clip_value": 1.5}, 1),
    ("sgd", "clip_norm_exact", {"rate": 0.125, "clip_norm": 2.5}, 2),
    ("sgd", "clip_global_norm_exact", {"rate": 0.125, "clip_global_norm": 2.5}, 2),
    ("sgd", "cosine", COSINE, 1),
    ("sgd", "cosine_warmup", {**COSINE, "warmup_steps": 2, "warmup_from": 0.0625}, 1),
    ("sgd", "step_exact", STEPWISE, 1),
    ("adam", "default", {}, 1),
    ("adam", "exact", EXACT_ADAM, 1),
    ("adam", "decay_exact", {**EXACT_ADAM, "weight_decay": 0.25}, 1),
    ("adam", "clip_value_exact", {**EXACT_ADAM, "clip_value": 1.5}, 1),
    ("adam", "clip_norm_exact", {**EXACT_ADAM, "clip_norm": 2.5}, 2),
    ("adam", "clip_global_norm_exact", {**EXACT_ADAM, "clip_global_norm": 2.5}, 2),
    ("adam", "cosine", {**EXACT_ADAM, **COSINE}, 1),
    ("adam", "step_exact", {**EXACT_ADAM, **STEPWISE}, 1),
    ("adamw", "default", {}, 1),
    ("adamw", "exact", {**EXACT_ADAM, "weight_decay": 0.00390625}, 1),
    ("adamw", "exclude_default", {"exclude": "bias"}, 2),
    ("adamw", "exclude_exact", {**EXACT_ADAM, "weight_decay": 0.25, "exclude": "ia"}, 2),
]
KERAS_NAMES = {"rate": "learning_rate", "beta1": "beta_1", "beta2": "beta_2",
               "epsilon": "epsilon", "momentum": "momentum", "nesterov": "nesterov",
               "weight_decay": "weight_decay", "clip_value": "clipvalue",
               "clip_norm": "clipnorm", "clip_global_norm": "global_clipnorm"}


def numbers(text):
    return [float(x) for x in text.split(",")]


def schedule_of(s):
    """The Keras schedule of some settings; None without one."""
    if s.get("schedule") == "step":
        return K.schedules.PiecewiseConstantDecay(
            [int(x) for x in numbers(s["boundaries"])], numbers(s["values"]))
    if s.get("schedule") == "cosine":
        warmup = s.get("warmup_steps", 0)
        return K.schedules.CosineDecay(
            s["warmup_from"] if warmup else s["rate"], s["steps"], alpha=s["alpha"],
            warmup_target=s["rate"] if warmup else None, warmup_steps=warmup)
    return None


def make(name, settings):
    options = {KERAS_NAMES[k]: v for k, v in settings.items() if k in KERAS_NAMES}
    if "nesterov" in options:
        options["nesterov"] = bool(options["nesterov"])
    schedule = schedule_of(settings)
    if schedule:
        options["learning_rate"] = schedule
    optimizer = MAKERS[name](**options)
    if "exclude" in settings:
        optimizer.exclude_from_weight_decay(var_names=[settings["exclude"]])
    return optimizer


def write(path):
    lines = ["# Made by tools/golden.py from TensorFlow %s, Keras %s." %
             (tf.__version__, tf.keras.__version__)]
    rng = {name: Op(name) for name in MAKERS}
    for name, case, settings, n in CASES:
        o, exact = rng[name], case.endswith("exact")
        for dtype in ("f32", "f64"):
            optimizer = make(name, settings)
            shape = (7,) if exact else (2, 3)
            starts = [o.rand(shape if i == 0 else (3,), dtype) for i in range(n)]
            gradients = [[o.rand(w.shape, dtype) for w in starts] for _ in range(5 if n == 1 else 3)]
            gradients[1][0].flat[0] = 0
            if n == 1:
                gradients[2][0].flat[1] = 1000
            else:
                gradients[2][0] /= 16
                gradients[2][1] /= 16
            ws = [tf.Variable(w, name=("w", "bias")[i]) for i, w in enumerate(starts)]
            lines += ["", "case %s/%s_%s" % (name, case, dtype), "op " + name]
            lines += ["attr %s %s" % (k, attr_text(v)) for k, v in settings.items()]
            lines += ["attr variables %d" % n] if n > 1 else []
            lines += ["in " + tensor_text(t) for t in starts + sum(gradients, [])]
            for step in gradients:
                optimizer.apply_gradients([(tf.constant(g), w) for g, w in zip(step, ws)])
                lines += ["out " + tensor_text(np.asarray(w.numpy())) for w in ws]
            close = dtype == "f64" and exact
            lines += ["tol %g" % (1e-12 if close else 1e-6), "end"]
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n")
