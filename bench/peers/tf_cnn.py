"""The training step of the CLI's `cnn` in TensorFlow, with plain operators: no Keras between us and the tape.

Importing it sets TensorFlow to one thread.
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)

BATCH = 64


def training_step():
    """step(x, y), which returns the loss, and a batch to call it with."""
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

    def step(images, labels):
        with tf.GradientTape() as tape:
            h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(images, w1, 1, "VALID"), b1))
            h = tf.reshape(tf.nn.max_pool2d(h, 2, 2, "VALID"), [BATCH, -1])
            h = tf.nn.relu(tf.matmul(h, w2) + b2)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.matmul(h, w3) + b3)
            loss = tf.reduce_mean(losses)
        adam.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    return step, x, y
