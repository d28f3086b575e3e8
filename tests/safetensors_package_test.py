"""Files written here are read by the safetensors package to equal arrays, and the reverse; what the
package refuses is refused here. Skipped where there is no such package (in the project's venv:
pip install safetensors numpy). Usage: safetensors_package_test.py LIBRARY ROOT"""
from support.packages import need

need("safetensors", "numpy")

import ctypes as c
import hashlib
import json
import os
import random
import struct
import sys
import tempfile

import numpy as np
import safetensors
from safetensors.numpy import load_file, save_file

ls = c.CDLL(sys.argv[1])
p = c.c_void_p
DTYPES = {"float32": 1, "float64": 2, "int32": 3, "int64": 4, "uint8": 5, "bool": 6}
WIDER = {"float16": "float32", "int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64",
         "uint64": "int64"}
BF16 = 7


class Note(c.Structure):
    _fields_ = [("key", c.c_char_p), ("text", c.c_char_p)]


def function(name, result, *arguments):
    f = getattr(ls, name)
    f.restype, f.argtypes = result, arguments
    return f


from_memory = function("ls_from", p, c.c_int, c.c_int, c.POINTER(c.c_int64), p)
leaf = function("ls_leaf", p, p)
dict_of = function("ls_dict", p, c.c_int, c.POINTER(c.c_char_p), c.POINTER(p))
write = function("ls_safetensors_write", c.c_int, c.c_char_p, p, c.c_int, c.POINTER(Note))
read = function("ls_safetensors_read", p, c.c_char_p)
note = function("ls_safetensors_note", c.c_char_p, c.c_char_p, c.c_char_p)
length = function("ls_length", c.c_int, p)
key = function("ls_key", c.c_char_p, p, c.c_int)
item = function("ls_item", p, p, c.c_int)
dtype_of = function("ls_dtype_of", c.c_int, p)
rank = function("ls_rank", c.c_int, p)
shape = function("ls_shape", c.POINTER(c.c_int64), p)
data = function("ls_data", p, p)
size_in_bytes = function("ls_size_in_bytes", c.c_size_t, p)
variable_new = function("ls_variable_new", p, c.c_char_p, p, c.c_bool)
weights_digest = function("ls_weights_digest", c.c_int, c.c_int, c.POINTER(p), c.c_char_p)
frame_open = function("ls_frame_open", c.c_int)
frame_close = function("ls_frame_close", c.c_int, c.c_int)
error = function("ls_error", c.c_int)
report = function("ls_error_report", c.c_char_p)


def tensor(array, dtype=None):
    array = np.asarray(array, order="C")
    dims = (c.c_int64 * max(array.ndim, 1))(*array.shape)
    t = from_memory(dtype or DTYPES[str(array.dtype)], array.ndim, dims, array.ctypes.data_as(p))
    assert t, report()
    return t


def write_here(path, tensors, notes=()):
    keys = (c.c_char_p * len(tensors))(*[k.encode() for k in tensors])
    items = (p * len(tensors))(*[leaf(t) for t in tensors.values()])
    list_of_notes = (Note * len(notes))(*[Note(k.encode(), t.encode()) for k, t in notes])
    assert write(path.encode(), dict_of(len(tensors), keys, items), len(notes), list_of_notes) == 0, report()


def read_here(path):
    """Arrays by name, with the number of their dtype; None: refused."""
    all_of_it = read(path.encode())
    if not all_of_it:
        assert error() != 0
        return None
    out = {}
    for i in range(length(all_of_it)):
        t = item(all_of_it, i)
        dims = tuple(shape(t)[k] for k in range(rank(t)))
        raw = c.string_at(data(t), size_in_bytes(t)) if size_in_bytes(t) else b""
        names = {v: k for k, v in DTYPES.items()}
        out[key(all_of_it, i).decode()] = (dtype_of(t), np.frombuffer(
            raw, names.get(dtype_of(t), "uint16")).reshape(dims))
    return out


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def arrays(rng, dtypes):
    out = {}
    for i, dtype in enumerate(dtypes):
        for dims in [(), (3,), (2, 1, 5), (0, 4), (7, 3)]:
            raw = rng.integers(0, 256, size=dims + (np.dtype(dtype).itemsize,), dtype=np.uint8)
            if dtype == "bool":
                raw &= 1
            if dtype == "uint64":
                raw[..., 7] &= 127  # so that it fits an int64
            out["%s/%s schön \" \\ %d" % (dtype, "x".join(map(str, dims)), i)] = \
                raw.view(dtype).reshape(dims)
    return out


def ours_there(directory, rng):
    path = os.path.join(directory, "ours.safetensors")
    all_of_it = arrays(rng, DTYPES)
    notes = [("model", "cnn"), ("text", "schön → \"\\\n")]
    tensors = {k: tensor(a) for k, a in all_of_it.items()}
    half = rng.integers(0, 65536, size=(2, 3), dtype=np.uint16)
    tensors["half"] = tensor(half, BF16)
    write_here(path, tensors, notes)
    with safetensors.safe_open(path, "np") as f:
        assert set(f.keys()) == set(tensors)
        for k, a in all_of_it.items():
            assert same(f.get_tensor(k), a), k
        metadata = f.metadata()
        assert all(metadata[k] == t for k, t in notes)
    # bfloat16 is none of numpy's: its bytes, by the header
    with open(path, "rb") as f:
        everything = f.read()
    n = struct.unpack("<Q", everything[:8])[0]
    assert n % 8 == 0
    about = json.loads(everything[8:8 + n])["half"]
    begin, end = about["data_offsets"]
    assert about["dtype"] == "BF16" and everything[8 + n + begin:8 + n + end] == half.tobytes()
    assert note(path.encode(), b"model") == b"cnn"
    # The package writes the same tensors and notes: a file without a checksum of ours.
    again = os.path.join(directory, "again.safetensors")
    save_file(all_of_it, again, metadata)
    for k, (_, a) in read_here(again).items():
        assert same(a, all_of_it[k]), k
    write_here(path, {})
    assert load_file(path) == {}


def theirs_here(directory, rng):
    path = os.path.join(directory, "theirs.safetensors")
    all_of_it = arrays(rng, list(DTYPES) + list(WIDER))
    save_file(all_of_it, path, {"who": "the package"})
    got = read_here(path)
    assert set(got) == set(all_of_it)
    for k, a in all_of_it.items():
        want = a.astype(WIDER.get(str(a.dtype), a.dtype))
        dtype, b = got[k]
        assert dtype == DTYPES[str(want.dtype)] and b.shape == want.shape, k
        assert np.array_equal(b, want, equal_nan=want.dtype.kind == "f"), k
    assert note(path.encode(), b"who") == b"the package"
    save_file({}, path)
    assert read_here(path) == {}


def header_of(random_numbers):
    """A header that is nearly right, and its data."""
    r = random_numbers
    entries, at = {}, 0
    for name in ["a", "b", "c"][:r.randrange(4)]:
        dtype, size = r.choice([("F32", 4), ("U8", 1), ("I64", 8), ("BF16", 2), ("BOOL", 1)])
        dims = [r.randrange(3) for _ in range(r.randrange(3))]
        bytes_of_it = size * int(np.prod(dims, dtype=np.int64))
        entries[name] = {"dtype": dtype, "shape": dims, "data_offsets": [at, at + bytes_of_it]}
        at += bytes_of_it
    if r.randrange(3) == 0:
        entries["__metadata__"] = r.choice([{}, {"k": "v"}, {"k": 1}, [], None, {"k": None}])
    broken = r.randrange(12)
    names = [n for n in entries if n != "__metadata__"]
    if names:
        e = entries[r.choice(names)]
        if broken == 0:
            e["data_offsets"][r.randrange(2)] += r.choice([-1, 1, 4, -4])
        elif broken == 1:
            e["shape"].append(r.choice([0, 2, -1, 2.0, "1", 1 << 62, 1 << 64, None]))
        elif broken == 2:
            del e[r.choice(list(e))]
        elif broken == 3:
            e["dtype"] = r.choice(["f32", "F128", "", 7, None, "X"])
        elif broken == 4:
            e["data_offsets"] = r.choice([[], [0], [0, 0, 0], {}, None, [0.0, 4.0], ["0", "4"]])
        elif broken == 5:
            e["more"] = [1, {}]
    text = json.dumps(entries)
    if broken == 6:
        text = r.choice([" ", "\n", "\t"]) + text
    elif broken == 7:
        text += r.choice([" ", "   \n", "x", "{}", "\0"])
    elif broken == 8:
        text = text[:r.randrange(len(text))]
    count = len(text) + (r.choice([-1, 1, 7, 1 << 40]) if broken == 9 else 0)
    at += r.choice([-1, 1, 8]) if broken == 10 else 0
    return struct.pack("<Q", max(count, 0)) + text.encode() + bytes(i % 2 for i in range(max(at, 0)))


def refused_there_and_here(directory):
    path = os.path.join(directory, "random.safetensors")
    r = random.Random(1)
    taken = refused = 0
    for _ in range(600):
        content = header_of(r)
        with open(path, "wb") as f:
            f.write(content)
        try:
            with safetensors.safe_open(path, "np") as f:
                theirs = set(f.keys())
        except Exception:
            theirs = None
        depth = frame_open()
        ours = read_here(path)
        frame_close(depth)
        if theirs is None:
            refused += 1
            assert ours is None, "refused there and taken here: %r" % content
        elif ours is None:
            # It takes blanks before the header, which the text of the format forbids; and no tensor
            # here is of 2^63 bytes, had it no dimension of 0.
            assert content[8:9] != b"{" or str(1 << 62).encode() in content, \
                "taken there and refused here: %r" % content
        else:
            taken += 1
            assert set(ours) == theirs
    assert taken > 100 and refused > 100, (taken, refused)


def digests(rng):
    """Of the weights: as hashlib has it."""
    variables, want = [], hashlib.sha256()
    for i, (dims, dtype) in enumerate([((3, 4), "float32"), ((), "float64"), ((5,), "float32")]):
        a = rng.standard_normal(dims).astype(dtype)
        variables.append(variable_new(b"v%d" % i, tensor(a), i != 1))
        if i != 1:
            want.update(a.tobytes())
    out = c.create_string_buffer(65)
    assert weights_digest(3, (p * 3)(*variables), out) == 0, report()
    assert out.value.decode() == want.hexdigest()


with tempfile.TemporaryDirectory() as directory:
    depth = frame_open()
    rng = np.random.default_rng(1)
    ours_there(directory, rng)
    theirs_here(directory, rng)
    refused_there_and_here(directory)
    digests(rng)
    frame_close(depth)
