"""Peer: TensorFlow's MirroredStrategy on two logical CPU devices: a run of a step that does nothing,
and an all-reduce of one number, eager and compiled by tf.function.

An all-reduce is what a step with many of them, each of the result of the one before, takes longer
than a step with one, divided by how many more there are. Prints the same JSON lines as
bench/strategy.c: tf_run.py
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import tensorflow as tf

import timing

DEVICES = 2
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * DEVICES)
strategy = tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(DEVICES)])
one = tf.constant(1.0, tf.float64)


def nothing():
    return None


def reduce_times(reductions):
    def step(x):
        x = tf.identity(x)  # it does not add up what is one object on all replicas
        for _ in range(reductions):
            x = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, x)
        return x
    return step


def runner(compiled, step, *args):
    def run():
        return strategy.run(step, args=args)
    return tf.function(run) if compiled else run


def check(run, reductions):
    total = strategy.experimental_local_results(run())[0].numpy()
    assert total == DEVICES ** reductions, total


def report(bench, way, seconds):
    timing.report("tensorflow", tf.__version__, bench=bench, way=way, replicas=DEVICES,
                  devices=DEVICES, us=round(seconds * 1e6, 3))


for way, more, turns in (("eager", 10, 20), ("traced", 100, 100)):
    compiled = way == "traced"
    report("empty_run", way, timing.median_seconds(runner(compiled, nothing), 10 * turns))
    took = []
    for reductions in (1, 1 + more):
        run = runner(compiled, reduce_times(reductions), one)
        check(run, reductions)
        took.append(timing.median_seconds(run, turns))
    report("scalar_all_reduce", way, (took[1] - took[0]) / more)
