"""Peer: TensorFlow, eager, one thread. Cost of one small operator and images/s of a training step of `cnn`.

Prints the same JSON lines as bench/eager.c.
"""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np
import tensorflow as tf

import timing

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)

BATCH = 64


def report(**fields):
    timing.report("tensorflow", tf.__version__, **fields)


def small_operators():
    for elements in (1, 8):
        shape = [] if elements == 1 else [elements]
        a, b = tf.ones(shape), tf.ones(shape)
        seconds = timing.median_seconds(lambda: tf.add(a, b), 20000)
        report(bench="eager_op", op="add", elements=elements, us=round(seconds * 1e6, 3))


def training_step(steps):
    """The model of the CLI's `cnn`, with plain operators: no Keras between us and the tape."""
    rng = np.random.default_rng(1)
    x = tf.constant(rng.random((BATCH, 28, 28, 1), dtype=np.float32))
    y = tf.constant(rng.integers(0, 10, BATCH, dtype=np.int32))

    def variable(*shape):
        limit = np.sqrt(6 / (np.prod(shape[:-1]) + shape[-1]))
        return tf.Variable(rng.uniform(-limit, limit, shape).astype(np.float32))

    w1, b1 = variable(3, 3, 1, 32), tf.Variable(tf.zeros(32))
    w2, b2 = variable(13 * 13 * 32, 64), tf.Variable(tf.zeros(64))
    w3, b3 = variable(64, 10), tf.Variable(tf.zeros(10))
    variables = [w1, b1, w2, b2, w3, b3]
    adam = tf.keras.optimizers.Adam(0.001)
    adam.build(variables)

    def step():
        with tf.GradientTape() as tape:
            h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w1, 1, "VALID"), b1))
            h = tf.reshape(tf.nn.max_pool2d(h, 2, 2, "VALID"), [BATCH, -1])
            h = tf.nn.relu(tf.matmul(h, w2) + b2)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, tf.matmul(h, w3) + b3)
            loss = tf.reduce_mean(losses)
        adam.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    seconds = timing.median_seconds(lambda: step().numpy(), steps)
    report(bench="eager_step", model="cnn", batch=BATCH, threads=1,
           images_per_second=round(BATCH / seconds))


small_operators()
training_step(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
