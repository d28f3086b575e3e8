"""Peer: TensorFlow, eager, one thread. Cost of one small operator and images/s of a training step of `cnn`.

Prints the same JSON lines as bench/eager.c.
"""
import sys

import tf_cnn
import timing
from tf_cnn import tf


def report(**fields):
    timing.report("tensorflow", tf.__version__, **fields)


def small_operators():
    for elements in (1, 8):
        shape = [] if elements == 1 else [elements]
        a, b = tf.ones(shape), tf.ones(shape)
        seconds = timing.median_seconds(lambda: tf.add(a, b), 20000)
        report(bench="eager_op", op="add", elements=elements, us=round(seconds * 1e6, 3))


def training_step(steps):
    step, x, y = tf_cnn.training_step()
    seconds = timing.median_seconds(lambda: step(x, y).numpy(), steps)
    report(bench="eager_step", model="cnn", batch=tf_cnn.BATCH, threads=1,
           images_per_second=round(tf_cnn.BATCH / seconds))


small_operators()
training_step(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
