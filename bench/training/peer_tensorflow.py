"""Peer: training with TensorFlow, MirroredStrategy on logical CPU devices, or one device with all cores.

peer.py says how it is called. As TensorFlow is fastest: tf.data shuffles, batches and prefetches, and
the loop over steps is compiled with the step, so that no Python runs between two of them.
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import tensorflow as tf

import network
import peer


def build(text):
    layers, flat = [tf.keras.layers.Input((28, 28, 1))], False
    for layer in network.parse(text):
        activation = "relu" if layer.relu else None
        if layer.kind == "conv":
            layers.append(tf.keras.layers.Conv2D(layer.units, layer.window, activation=activation))
        elif layer.kind == "pool":
            layers.append(tf.keras.layers.MaxPooling2D(layer.window))
        else:
            layers += [] if flat else [tf.keras.layers.Flatten()]
            layers.append(tf.keras.layers.Dense(layer.units, activation=activation))
            flat = True
    return tf.keras.Sequential(layers)


def strategy_of(replicas):
    if replicas == 1:
        return tf.distribute.get_strategy()
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * replicas)
    return tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(replicas)])


def batches(strategy, size, seed):
    images, labels = peer.fashion_mnist()
    data = tf.data.Dataset.from_tensor_slices((images[..., None], labels.astype("int32")))
    data = data.shuffle(len(labels), seed=seed).repeat().batch(size, drop_remainder=True)
    return iter(strategy.experimental_distribute_dataset(data.prefetch(tf.data.AUTOTUNE)))


def training(strategy, model, adam, size):
    """window(iterator, k): k steps, and the mean of their losses."""
    def step(images, labels):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels, model(images, training=True))
            loss = tf.reduce_sum(losses) / size
        variables = model.trainable_variables
        adam.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    @tf.function
    def window(iterator, steps):
        total = 0.0
        for _ in tf.range(steps):
            losses = strategy.run(step, args=next(iterator))
            total += strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)
        return total / tf.cast(steps, tf.float32)

    return window


def main():
    args = peer.parser(__doc__).parse_args()
    tf.keras.utils.set_random_seed(args.seed)
    strategy = strategy_of(args.replicas)
    size = args.replicas * args.batch
    with strategy.scope():
        model = build(args.network)
        adam = tf.keras.optimizers.Adam(1e-3)
        adam.build(model.trainable_variables)
    iterator = batches(strategy, size, args.seed)
    window = training(strategy, model, adam, size)
    figures = peer.measure(lambda k: float(window(iterator, tf.constant(k))), args.steps, size)
    peer.report(args, "tensorflow", "mirrored" if args.replicas > 1 else "one device",
                tf.__version__, {**figures, "peak_rss_bytes": peer.peak_bytes()})


main()
