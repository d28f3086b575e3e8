#!/usr/bin/env python3
"""Lets numpy write the arrays that src/data/npy_test.c and npz_test.c read: tests/golden_arrays.

    python3 -m venv golden-venv
    golden-venv/bin/pip install numpy
    golden-venv/bin/python tools/golden_arrays.py tests/golden_arrays

The files are committed; this runs again only when a case is added. What is in an array of a type
is a formula that the tests know, too (`numbers`).
"""
import os
import sys
import warnings
import zipfile

import numpy as np
from numpy.lib import format as npy

TYPES = ["b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
SHAPE = (2, 3, 4)


def numbers(name):
    """24 of them: the extremes first, then (37 k mod 200) - 100, an eighth of it as a float."""
    k = np.arange(24)
    if name == "b1":
        return (k % 3 == 0).reshape(SHAPE)
    if name[0] == "f":
        a = (((37 * k) % 200 - 100) / 8).astype(name)
        a[:4] = [-np.inf, np.finfo(name).smallest_subnormal, -0.0, np.finfo(name).max]
        return a.reshape(SHAPE)
    a = ((37 * k) % 200 - (0 if name[0] == "u" else 100)).astype(name)
    a[0] = np.iinfo(name).min
    a[1] = np.iinfo("i8").max if name == "u8" else np.iinfo(name).max
    return a.reshape(SHAPE)


def write(folder, name, array, version=(1, 0)):
    with open(os.path.join(folder, name + ".npy"), "wb") as f:
        npy.write_array(f, np.asanyarray(array), version=version)


def of_types(folder):
    for name in TYPES:
        for order in ["little"] if name[1] == "1" else ["little", "big"]:
            a = numbers(name).astype({"little": "<", "big": ">"}[order] + name)
            write(folder, "%s-%s-c" % (name, order), np.ascontiguousarray(a))
            write(folder, "%s-%s-fortran" % (name, order), np.asfortranarray(a))


def of_shapes(folder):
    write(folder, "version2", numbers("f4"), (2, 0))
    write(folder, "version3", numbers("f4"), (3, 0))
    write(folder, "scalar", np.float64(2.5))
    write(folder, "vector", np.arange(5, dtype="i4"))
    write(folder, "nothing", np.zeros((3, 0, 2), "f4"))
    write(folder, "nothing-fortran", np.zeros((3, 0, 2), "f4", order="F"))
    write(folder, "eight-axes", np.arange(24, dtype="u1").reshape(1, 2, 1, 3, 1, 2, 1, 2))
    # Longer than a block of the reader, which walks through it.
    write(folder, "long-fortran",
          np.asfortranarray(np.arange(3 * 2100, dtype=">u2").reshape(3, 2100)))


def refused(folder):
    write(folder, "bad-u8", np.array([1, 2**63], "u8"))
    write(folder, "bad-complex", np.zeros(2, "c8"))
    write(folder, "bad-strings", np.array(["ab", "c"]))
    write(folder, "bad-bytes", np.array([b"ab", b"c"]))
    write(folder, "bad-objects", np.array([{}, None], object))
    write(folder, "bad-fields", np.zeros(2, [("x", "f4"), ("y", "i4")]))
    write(folder, "bad-dates", np.zeros(2, "M8[D]"))
    write(folder, "bad-long-double", np.zeros(2, "f16"))
    write(folder, "bad-nine-axes", np.zeros((1,) * 9, "f4"))


def archives(folder):
    arrays = {"x_train": numbers("u1"), "y_train": numbers("i8"), "a/b c": numbers("f4"),
              "": np.float32(1.5), "fortran": np.asfortranarray(numbers("f8")),
              "zeros": np.zeros(3000, "f4")}
    np.savez(os.path.join(folder, "stored.npz"), **arrays)
    np.savez_compressed(os.path.join(folder, "deflated.npz"), **arrays)
    np.savez(os.path.join(folder, "empty.npz"))
    np.savez_compressed(os.path.join(folder, "large.npz"), a=np.zeros(1 << 20, "u1"),
                        b=np.zeros(1 << 20, "u1"))

    with open(os.path.join(folder, "vector.npy"), "rb") as f:
        vector = f.read()

    def other(name, method, names):
        with zipfile.ZipFile(os.path.join(folder, name), "w") as z:
            for n in names:
                z.writestr(zipfile.ZipInfo(n), "" if n.endswith("/") else vector, method)

    limit, zipfile.ZIP64_LIMIT = zipfile.ZIP64_LIMIT, 100  # sizes as those of large archives
    other("zip64.npz", zipfile.ZIP_STORED, ["a.npy"])
    zipfile.ZIP64_LIMIT = limit
    other("bad-method.npz", zipfile.ZIP_BZIP2, ["a.npy"])
    other("bad-name.npz", zipfile.ZIP_STORED, ["a.npy", "b.txt"])
    other("bad-folder.npz", zipfile.ZIP_STORED, ["a.npy", "folder/"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other("bad-twice.npz", zipfile.ZIP_STORED, ["a.npy", "a.npy"])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    of_types(folder)
    of_shapes(folder)
    refused(folder)
    archives(folder)


if __name__ == "__main__":
    main()
