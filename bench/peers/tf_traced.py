"""Peer: TensorFlow, compiled by tf.function, one thread: images/s of a training step of `cnn`.

The loop over steps is compiled too, which is how TensorFlow is fastest: no Python between two
steps, and no input pipeline, since our side has none either. Prints the same JSON line as
bench/traced.c: tf_traced.py [STEPS]
"""
import sys

import tf_cnn
import timing
from tf_cnn import tf

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100
step, x, y = tf_cnn.training_step()


@tf.function
def loop(images, labels, count):
    loss = 0.0
    for _ in tf.range(count):
        loss = step(images, labels)
    return loss


turns = tf.constant(steps)
seconds = timing.median_seconds(lambda: loop(x, y, turns).numpy(), 1) / steps
timing.report("tensorflow", tf.__version__, bench="traced_step", model="cnn", batch=tf_cnn.BATCH,
              threads=1, images_per_second=round(tf_cnn.BATCH / seconds))
