"""TFRecord files written here are read by TensorFlow, and the reverse, plain, GZIP and ZLIB. Skipped
where there is no TensorFlow (`make bench` installs one). Usage: tensorflow_records_test.py LIBRARY"""
from support.packages import need

need("tensorflow")

import ctypes as c
import os
import random
import sys
import tempfile

ls = c.CDLL(sys.argv[1])
p, UNSUPPORTED, END = c.c_void_p, 8, 4


def function(name, result, *arguments):
    f = getattr(ls, name)
    f.restype, f.argtypes = result, arguments
    return f


class Options(c.Structure):  # ls_records_options
    _fields_ = [("size", c.c_size_t), ("compression", c.c_int), ("skip_corrupt", c.c_bool),
                ("record_bytes", c.c_int64), ("header_bytes", c.c_int64), ("footer_bytes", c.c_int64)]


writer_open = function("ls_record_writer_open", p, c.c_char_p, c.c_int)
write = function("ls_record_write", c.c_int, p, c.c_char_p, c.c_size_t)
writer_close = function("ls_record_writer_close", c.c_int, p)
files = function("ls_files", p, c.c_int, c.POINTER(c.c_char_p))
init = function("ls_records_init", None, p)
tfrecords = function("ls_tfrecords", p, p, p)
iterate = function("ls_iterate", p, p)
iterator_free = function("ls_iterator_free", None, p)
next_element = function("ls_next", c.c_int, p, p)
leaf = function("ls_leaf_tensor", p, p)
string_at = function("ls_string_at", c.c_int, p, c.c_int64, p, p)
frame_open = function("ls_frame_open", c.c_int)
frame_close = function("ls_frame_close", c.c_int, c.c_int)
error = function("ls_error", c.c_int)
report = function("ls_error_report", c.c_char_p)


def write_here(path, kind, records):
    """False: this build has no zlib."""
    w = writer_open(path.encode(), kind)
    if not w:
        assert error() == UNSUPPORTED
        return False
    for r in records:
        assert write(w, r, len(r)) == 0, report()
    assert writer_close(w) == 0, report()
    return True


def read_here(path, kind):
    frame, records = frame_open(), []
    options, element, data, length = Options(), p(), p(), c.c_size_t()
    init(c.byref(options))
    options.compression = kind
    it = iterate(tfrecords(files(1, (c.c_char_p * 1)(path.encode())), c.byref(options)))
    assert it, report()
    while (status := next_element(it, c.byref(element))) == 0:
        assert string_at(leaf(element), 0, c.byref(data), c.byref(length)) == 0
        records.append(c.string_at(data, length.value))
    assert status == END, report()
    iterator_free(it)
    frame_close(frame)
    return records


os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

numbers = random.Random(1)
records = [numbers.randbytes(n) for n in [0, 1, 830, 5000, 0, 262128, 400000] + list(range(200))]
with tempfile.TemporaryDirectory() as folder:
    for kind, name in enumerate(["", "GZIP", "ZLIB"]):
        path = os.path.join(folder, "x" + name)
        if not write_here(path, kind, records):
            continue
        theirs = [r.numpy() for r in tf.data.TFRecordDataset(path, compression_type=name)]
        assert theirs == records, name
        with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression_type=name)) as w:
            for r in records:
                w.write(r)
        assert read_here(path, kind) == records, name
