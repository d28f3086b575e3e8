"""The losses of a small model that two replicas train under tf.distribute.MirroredStrategy.

A case's inputs are x, y and the start values of w1, b1, w2 and b2 (called bias), its output
the loss of each step: the mean square over the whole batch, half of which each replica has.
"""
import numpy as np
import tensorflow as tf

from .core import Op, attr_text, tensor_text
from .optimizers import make

STEPS = 30
CURVES = [
    ("sgd", "plain", {"rate": 0.125}),
    ("sgd", "momentum", {"rate": 0.0625, "momentum": 0.75}),
    ("sgd", "nesterov", {"rate": 0.0625, "momentum": 0.75, "nesterov": 1}),
    ("sgd", "decay_cosine",
     {"rate": 0.125, "weight_decay": 0.0625, "schedule": "cosine", "steps": 20, "alpha": 0.125,
      "warmup_steps": 5, "warmup_from": 0.015625}),
    ("adam", "plain", {"rate": 0.03125}),
    ("adam", "step", {"schedule": "step", "boundaries": "9,19", "values": "0.0625,0.03125,0.0078125"}),
    ("adamw", "exclude", {"rate": 0.03125, "weight_decay": 0.125, "exclude": "bias"}),
]


def two_devices():
    """Before TensorFlow does anything else."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)


def losses(name, settings, data):
    x, y, *starts = data
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        ws = [tf.Variable(w, name=n) for w, n in zip(starts, ("w1", "bias1", "w2", "bias2"))]
        optimizer = make(name, settings)
        optimizer.build(ws)

    @tf.function
    def replica_step(mine, wanted):
        with tf.GradientTape() as tape:
            y1 = tf.tanh(mine @ ws[0] + ws[1]) @ ws[2] + ws[3]
            loss = tf.reduce_sum((y1 - wanted) ** 2) / (x.shape[0] * y.shape[1])
        optimizer.apply_gradients(zip(tape.gradient(loss, ws), ws))
        return loss

    def part(t):
        return strategy.experimental_distribute_values_from_function(
            lambda c: tf.constant(np.split(t, 2)[c.replica_id_in_sync_group]))

    @tf.function
    def step(a, b):
        return strategy.reduce("SUM", strategy.run(replica_step, (a, b)), None)

    a, b = part(x), part(y)
    return np.array([step(a, b).numpy() for _ in range(STEPS)], np.float32)


def write(path):
    o = Op("curves")
    shapes = [(8, 6), (8, 3), (6, 5), (5,), (5, 3), (3,)]
    data = [o.rand(s, "f32", -1, 1) for s in shapes]
    lines = ["# Made by tools/golden.py from TensorFlow %s, Keras %s: two replicas of "
             "MirroredStrategy." % (tf.__version__, tf.keras.__version__)]
    for name, case, settings in CURVES:
        lines += ["", "case %s/%s" % (name, case), "op " + name]
        lines += ["attr %s %s" % (k, attr_text(v)) for k, v in settings.items()]
        lines += ["in " + tensor_text(t) for t in data]
        lines += ["out " + tensor_text(losses(name, settings, data)), "tol 2e-05", "end"]
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n")
