#!/usr/bin/env python3
"""Has TensorFlow write TFRecord files, which tests/tfrecords_golden_test.c reads and compares.

    golden-venv/bin/python tools/golden_records.py tests/golden_records

The files are committed. What is in a record depends on its number alone; packed files have one
more, which is longer than the reader's buffer.
"""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

RECORDS = 40


def record(i):
    if i == RECORDS:
        return bytes(j >> 12 & 255 for j in range(300000))
    return bytes(i * 31 + j * 7 + (j >> 3) & 255 for j in range(i * i * 3 % 257))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    for kind in "", "GZIP", "ZLIB":
        name = os.path.join(sys.argv[1], (kind.lower() or "plain") + ".tfrecord")
        with tf.io.TFRecordWriter(name, tf.io.TFRecordOptions(compression_type=kind)) as w:
            for i in range(RECORDS + (kind != "")):
                w.write(record(i))


if __name__ == "__main__":
    main()
