"""tf.data on TFRecord files of tf.train.Example: records a second, raw and parsed.

usage: tf_data.py FILE...          as lockstep bench input --json prints it
       tf_data.py --write DIR      writes Fashion-MNIST (or $LOCKSTEP_FASHION_MNIST) as ten such files

raw: batches of 64. parsed: shuffled by a buffer of 10,000, batches of 64, parsed, images as f32 from 0
to 1, prefetched. The best of three times through all files counts."""
import gzip
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

BATCH, BUFFER, ROUNDS = 64, 10000, 3


def write(directory):
    source = os.environ.get("LOCKSTEP_FASHION_MNIST") or "/usr/share/datasets/fashion-mnist"
    with gzip.open(f"{source}/train-images-idx3-ubyte.gz") as f:
        images = np.frombuffer(f.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(f"{source}/train-labels-idx1-ubyte.gz") as f:
        labels = np.frombuffer(f.read(), np.uint8, offset=8)
    os.makedirs(directory, exist_ok=True)
    for part in range(10):
        with tf.io.TFRecordWriter(f"{directory}/fashion-{part:05d}-of-00010.tfrecord") as w:
            for i in range(part, len(labels), 10):
                image = tf.train.Feature(bytes_list=tf.train.BytesList(value=[images[i].tobytes()]))
                label = tf.train.Feature(int64_list=tf.train.Int64List(value=[int(labels[i])]))
                features = tf.train.Features(feature={"image": image, "label": label})
                w.write(tf.train.Example(features=features).SerializeToString())


def rate(dataset):
    best = 0
    for _ in range(ROUNDS):
        start, records = time.perf_counter(), 0
        for _ in dataset:
            records += BATCH
        best = max(best, records / (time.perf_counter() - start))
    return best


SPEC = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}


def parse(batch):
    e = tf.io.parse_example(batch, SPEC)
    return tf.cast(tf.io.decode_raw(e["image"], tf.uint8), tf.float32) / 255.0, e["label"]


def measure(files):
    raw = tf.data.TFRecordDataset(files).batch(BATCH, drop_remainder=True)
    parsed = (
        tf.data.TFRecordDataset(files)
        .shuffle(BUFFER, seed=1)
        .batch(BATCH, drop_remainder=True)
        .map(parse, num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(tf.data.AUTOTUNE)
    )
    line = {"peer": "tf.data", "raw_records_per_second": rate(raw), "parsed_records_per_second": rate(parsed)}
    print(json.dumps(line))


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--write":
        write(sys.argv[2])
    elif len(sys.argv) > 1:
        measure(sorted(sys.argv[1:]))
    else:
        sys.exit(__doc__)
