#!/usr/bin/env python3
"""Asks TensorFlow what serialised examples hold, and writes it to tests/golden_examples.txt.

    golden-venv/bin/python tools/golden_examples.py tests/golden_examples.txt [fuzz/corpus/example]

(golden.py says how to make the environment.) With a folder, the examples that the fuzz target
starts from go there. tests/examples_golden_test.c reads the file:

    case NAME
    example HEX                                of a batch, in order; - for nothing
    feature KEY DTYPE fixed RANK SIZES...      what is asked; .. for an empty key
    feature KEY DTYPE missing NUMBER RANK SIZES...
    feature KEY DTYPE variable
    counts N...                                of the variable feature above
    values V...                                f32 as bits, i64 in decimal, bytes in hex
    refused                                    TensorFlow refuses the whole case

    leaf KEY DTYPE RANK SIZES... HEX...        memory of numbers, or strings: of a dict
    made HEX                                   its Example, in protobuf's deterministic order

Encodings that no writer makes are put together by hand here, read with protobuf and asked for in
their usual form: tf.io.parse_example itself takes only some of them.
"""
import os
import struct
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

DTYPES = {"f32": tf.float32, "i64": tf.int64, "bytes": tf.string}
Example = tf.train.Example


# ---- the wire ---------------------------------------------------------------------------------


def varint(n, least=1):
    """In at least so many bytes."""
    n &= 2**64 - 1
    out = b""
    while True:
        byte, n, least = n & 127, n >> 7, least - 1
        if not n and least <= 0:
            return out + bytes([byte])
        out += bytes([byte | 128])


def tag(field, kind, least=1):
    return varint(field << 3 | kind, least)


def message(field, body, least=1):
    return tag(field, 2) + varint(len(body), least) + body


def entry(key, *features):
    return message(1, message(1, key) + b"".join(message(2, f) for f in features))


def example(*entries):
    return message(1, b"".join(entries))


def ints(*values, least=1):
    return message(3, message(1, b"".join(varint(v, least) for v in values)))


def floats(*values):
    return message(2, message(1, struct.pack("<%df" % len(values), *values)))


def strings(*values):
    return message(1, b"".join(message(1, v) for v in values))


def unpacked_ints(*values):
    return message(3, b"".join(tag(1, 0) + varint(v) for v in values))


def unpacked_floats(*values):
    return message(2, b"".join(tag(1, 5) + struct.pack("<f", v) for v in values))


# ---- features as TensorFlow's writer has them ---------------------------------------------------


def feature(kind, values):
    if kind == "f32":
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    if kind == "i64":
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def written(**features):
    """By TensorFlow; in the order of keys, so that it is the same every time."""
    return Example(
        features=tf.train.Features(feature={k: feature(*v) for k, v in features.items()})
    ).SerializeToString(deterministic=True)


def in_this_order(features):
    return example(*[entry(k.encode(), feature(*v).SerializeToString())
                     for k, v in features.items()])


def usual_form(raw):
    e = Example.FromString(raw)
    e.DiscardUnknownFields()
    return e.SerializeToString()


# ---- the file -------------------------------------------------------------------------------------


class File:
    def __init__(self):
        self.lines = []

    def add(self, *words):
        self.lines.append(" ".join(str(w) for w in words))

    def text(self, values, kind):
        if kind == "i64":
            return [str(v) for v in values]
        if kind == "bytes":
            return [v.hex() or "-" for v in values]
        return ["%08x" % b for b in np.asarray(values, np.float32).view(np.uint32)]

    def case(self, name, examples, asked, refused=False):
        """asked: key -> (dtype, shape, missing), or (dtype,) of any number."""
        self.add("case", name)
        for e in examples:
            self.add("example", e.hex() or "-")
        answers = self.ask(name, examples, asked, refused)
        for key, (kind, *rest) in asked.items():
            shown = key or ".."
            if not rest:
                self.add("feature", shown, kind, "variable")
            elif rest[1] is None:
                self.add("feature", shown, kind, "fixed", len(rest[0]), *rest[0])
            else:
                self.add("feature", shown, kind, "missing", rest[1] or 0, len(rest[0]), *rest[0])
            if refused:
                continue
            counts, values = answers[key]
            if counts is not None:
                self.add("counts", *counts)
            self.add("values", *self.text(values, kind))
        if refused:
            self.add("refused")

    def ask(self, name, examples, asked, refused):
        specs = {}
        for key, (kind, *rest) in asked.items():
            if not rest:
                specs[key] = tf.io.VarLenFeature(DTYPES[kind])
                continue
            shape, missing = rest
            if missing is not None:
                missing = np.full(shape, missing).tolist()
            specs[key] = tf.io.FixedLenFeature(shape, DTYPES[kind], missing)
        try:
            parsed = tf.io.parse_example([usual_form(e) for e in examples], specs)
        except Exception as error:
            if not refused:
                sys.exit("%s: TensorFlow says: %s" % (name, error))
            return None
        if refused:
            sys.exit("%s: TensorFlow takes it" % name)
        answers = {}
        for key, t in parsed.items():
            if isinstance(t, tf.SparseTensor):
                rows = t.indices.numpy()[:, 0]
                counts = np.bincount(rows, minlength=len(examples)).tolist()
                answers[key] = counts, t.values.numpy()
            else:
                answers[key] = None, t.numpy().reshape(-1)
        return answers

    def make(self, name, leaves):
        """leaves: key -> (dtype, array of numbers, or of strings)."""
        self.add("case", name)
        features = {}
        for key, (kind, array) in leaves.items():
            shape = np.shape(array)
            if kind == "bytes":
                flat = [v for v in np.asarray(array, object).reshape(-1)]
                words = [v.hex() or "-" for v in flat]
                features[key] = feature("bytes", flat)
            else:
                words = [array.tobytes().hex() or "-"]
                flat = array.reshape(-1)
                features[key] = (feature("i64", flat.astype(np.int64)) if kind in INTS else
                                 feature("f32", flat.astype(np.float32)))
            self.add("leaf", key or "..", kind, len(shape), *shape, *words)
        made = Example(features=tf.train.Features(feature=features))
        self.add("made", made.SerializeToString(deterministic=True).hex())


INTS = ("i32", "i64", "u8", "bool")


# ---- the cases ------------------------------------------------------------------------------------


def usual_cases(f, rng):
    images = [written(image=("bytes", [rng.bytes(49)]), label=("i64", [i * 3 % 10]))
              for i in range(12)]
    f.case("images", images, {"image": ("bytes", [], None), "label": ("i64", [], None)})
    f.case("one-of-two", images[:3], {"label": ("i64", [1], None)})
    f.case("nothing-asked-twice", images[:1], {"label": ("i64",)})

    shapes = {"a": ("f32", []), "b": ("f32", [4]), "c": ("f32", [2, 3]), "d": ("i64", []),
              "e": ("i64", [3, 1, 2]), "f": ("bytes", [1]), "g": ("bytes", [2, 2]),
              "h": ("f32", [1, 1, 1])}

    def value(kind):
        return (rng.randn() if kind == "f32" else int(rng.randint(-1000, 1000)) if kind == "i64"
                else rng.bytes(rng.randint(0, 9)))

    def sample(keys):
        return in_this_order({k: (shapes[k][0], [value(shapes[k][0])
                                                 for _ in range(int(np.prod(shapes[k][1])))])
                              for k in keys})

    keys = list(shapes)
    f.case("shapes", [sample(rng.permutation(keys)) for _ in range(6)],
           {k: (kind, shape, None) for k, (kind, shape) in shapes.items()})
    missing = {"f32": 0.25, "i64": -7, "bytes": ""}
    f.case("missing", [sample([k for k in keys if rng.rand() < 0.5]) for _ in range(10)] + [b""],
           {k: (kind, shape, missing[kind]) for k, (kind, shape) in shapes.items()})
    f.case("missing-large", [b"", written(x=("i64", [5]))],
           {"x": ("i64", [], 2**40), "y": ("f32", [2], -1e30)})

    wide = [0, 1, -1, 127, 128, 16383, 16384, 2**31, -2**31, 2**63 - 1, -2**63]
    odd = [0.0, -0.0, 1e-42, -3.4e38, float("inf"), float("-inf"), 1 / 3]
    rows = []
    for i in range(9):
        rows.append(written(
            ints=("i64", [wide[(i + k) % len(wide)] for k in range(i * 2 % 11)]),
            reals=("f32", [odd[(i + k) % len(odd)] for k in range(i % 5)]),
            texts=("bytes", [rng.bytes(k * i) for k in range(i % 4)])))
    variable = {"ints": ("i64",), "reals": ("f32",), "texts": ("bytes",), "never": ("f32",)}
    f.case("variable", rows, variable)
    f.case("variable-and-missing", [b"", rows[3], written(other=("i64", [1]))], variable)
    many = {"feature%02d" % i: ("i64", [i]) for i in range(30)}
    f.case("many", [in_this_order({k: many[k] for k in rng.permutation(list(many))})
                    for _ in range(4)], {k: ("i64", [], None) for k in list(many)[::2]})
    f.case("unicode", [written(**{"größe": ("i64", [1]), "": ("f32", [2])})],
           {"größe": ("i64", [], None), "": ("f32", [], None)})
    return images, rows


UNKNOWN = (tag(9, 0) + varint(2**50) + tag(2000, 1) + b"12345678" + message(15, b"no matter") +
           tag(2**29 - 1, 5) + b"1234" + tag(7, 3) + tag(8, 3) + tag(1, 0) + varint(3) +
           tag(8, 4) + tag(7, 4))


def odd_cases(f):
    """Encodings that writers do not use, each of what protobuf reads the same."""
    ask = {"a": ("i64",), "b": ("f32",), "c": ("bytes",)}
    usual = example(entry(b"a", ints(1, -2, 300)), entry(b"b", floats(0.5, -1)),
                    entry(b"c", strings(b"x", b"")))
    odd = {
        "unpacked": example(entry(b"a", unpacked_ints(1, -2, 300)),
                            entry(b"b", unpacked_floats(0.5, -1)), entry(b"c", strings(b"x", b""))),
        "mixed": example(
            entry(b"a", message(3, tag(1, 0) + varint(1) + message(1, varint(-2) + varint(300)))),
            entry(b"b", message(2, message(1, struct.pack("<f", 0.5)) + message(1, b"") +
                                tag(1, 5) + struct.pack("<f", -1)))),
        "lists-in-pieces": example(
            entry(b"a", ints(1) + ints(-2, 300)),
            entry(b"b", floats(0.5) + unpacked_floats(-1) + floats()),
            entry(b"c", strings(b"x") + strings() + strings(b""))),
        "values-in-pieces": example(entry(b"a", ints(1), b"", ints(-2), unpacked_ints(300)),
                                    entry(b"c", strings(b"x"), strings(b""))),
        "kinds-in-turn": example(
            entry(b"a", floats(9) + ints(8) + strings(b"z") + ints(1, 2) + ints(3)),
            entry(b"b", ints(8), floats(7), strings(), floats(0.25)),
            entry(b"c", strings(b"x") + message(2, b"") + strings(b"y"))),
        "last-key": example(entry(b"a", ints(7, 7)), entry(b"b", ints(1)), entry(b"a", ints(4)),
                            entry(b"b", floats(2))),
        "last-key-empties": example(entry(b"a", ints(7, 7)), entry(b"a", message(3, b"")),
                                    entry(b"b", floats(1)), entry(b"b")),
        "value-first": example(message(1, message(2, ints(5)) + message(1, b"a")),
                               message(1, message(1, b"b") + message(2, strings(b"x")) +
                                       message(1, b"c"))),
        "features-in-pieces": example(entry(b"a", ints(1))) + example() +
                              example(entry(b"b", floats(1)), entry(b"a", ints(2, 3))),
        "unknown": UNKNOWN + message(1, UNKNOWN + entry(b"a", UNKNOWN + message(
            3, UNKNOWN + message(1, varint(4)) + UNKNOWN)) + UNKNOWN) + UNKNOWN,
        "other-types": tag(1, 0) + varint(1) + message(1, tag(1, 5) + b"1234" + entry(
            b"a", tag(3, 0) + varint(9) + message(3, tag(1, 1) + b"12345678" + message(
                1, varint(6)) + tag(1, 5) + b"1234")) + entry(
                    b"b", message(2, tag(1, 0) + varint(8) + tag(1, 5) + b"\0\0\x80?")) + entry(
                        b"c", message(1, tag(1, 0) + varint(8) + message(1, b"s")))),
        "long-numbers": example(entry(b"a", ints(1, 2, least=10) + ints(3, least=7)),
                                entry(b"a", message(3, message(1, b"\x81" + b"\x80" * 8 + b"\x7f"),
                                                    least=3))),
        "long-tags": tag(1, 2, 5) + varint(len(entry(b"a", ints(1))), 4) + entry(b"a", ints(1)),
        "kinds-of-nothing": example(entry(b"a", message(3, b"")), entry(b"b"), entry(b"c", b"")),
    }
    f.case("usual", [usual], ask)
    for name, raw in odd.items():
        f.case(name, [raw, usual, raw], ask)
    f.case("no-value-is-missing", [example(entry(b"a", b""))], {"a": ("i64", [2], 11)})
    return odd


def refused_cases(f, images):
    label = {"label": ("i64", [], None)}
    f.case("refused-missing", [images[0], b""], label, refused=True)
    f.case("refused-kind", [images[0]], {"label": ("f32", [], None)}, refused=True)
    f.case("refused-kind-variable", [images[0]], {"label": ("bytes",)}, refused=True)
    f.case("refused-kind-default", [images[0]], {"image": ("i64", [], 1)}, refused=True)
    f.case("refused-few", [images[0]], {"label": ("i64", [2], None)}, refused=True)
    f.case("refused-many", [written(x=("f32", [1, 2, 3]))], {"x": ("f32", [2], None)}, refused=True)
    f.case("refused-many-strings", [written(x=("bytes", [b"1", b"2"]))], {"x": ("bytes", [], None)},
           refused=True)
    f.case("refused-empty", [written(x=("i64", []))], {"x": ("i64", [], 5)}, refused=True)
    whole = images[1]
    for cut in range(1, len(whole), 5):
        f.case("refused-cut-%d" % cut, [whole[:cut]], label, refused=True)
    for name, raw in {
            "number-0": b"\x00\x01", "type-6": b"\x0e\x01", "type-7": b"\x0f",
            "group-end": b"\x0c", "group-open": tag(5, 3), "group-other": tag(5, 3) + tag(6, 4),
            "groups-deep": tag(5, 3) * 1000 + tag(5, 4) * 1000, "tag-long": tag(5, 0, 6) + b"\1",
            "tag-large": varint(2**32 | 40) + b"\1", "length": b"\x0a\x05abc",
            "length-huge": b"\x0a" + varint(2**64 - 1), "number-open": b"\x28\x80",
            "floats": example(entry(b"label", message(2, message(1, b"abc")))),
            "int-11": example(entry(b"label", message(3, message(1, b"\x80" * 10 + b"\1")))),
            "int-open": example(entry(b"label", message(3, message(1, b"\x80"))))}.items():
        f.case("refused-" + name, [raw], {"label": ("i64", [], 3)}, refused=True)


def made_cases(f, rng):
    """No key begins another: Python's protobuf puts the longer one first then."""
    f.make("made-images", {"image": ("bytes", np.array(rng.bytes(49), object)),
                           "label": ("i64", np.array(7, np.int64))})
    f.make("made-nothing", {})
    f.make("made-numbers", {
        "i32": ("i32", np.array([[0, 1, -1], [2**31 - 1, -2**31, 300]], np.int32)),
        "i64": ("i64", np.array([2**63 - 1, -2**63, 127, 128, 0], np.int64)),
        "u8": ("u8", np.arange(0, 256, 17, dtype=np.uint8)),
        "bool": ("bool", np.array([True, False, True])),
        "f32": ("f32", np.array([[1.5, -0.0], [float("inf"), 1e-42]], np.float32)),
        "f64": ("f64", np.array([0.1, 1e-300, -2.5], np.float64))})
    f.make("made-without-a-key", {"": ("f32", np.array(3, np.float32))})
    f.make("made-empty", {"a": ("i64", np.zeros([0], np.int64)), "b": ("f32", np.zeros([2, 0], np.float32)),
                          "c": ("bytes", np.zeros([0], object))})
    f.make("made-strings", {"B": ("bytes", np.array([b"", b"x", rng.bytes(200)], object)),
                            "a": ("bytes", np.array([[b"\0\xff", b"q"]], object)),
                            "größe": ("i64", np.array([1], np.int64))})


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    rng = np.random.RandomState(7)
    f = File()
    images, rows = usual_cases(f, rng)
    odd = odd_cases(f)
    refused_cases(f, images)
    made_cases(f, rng)
    with open(sys.argv[1], "w") as out:
        out.write("\n".join(f.lines) + "\n")
    if len(sys.argv) > 2:
        os.makedirs(sys.argv[2], exist_ok=True)
        for name, raw in dict(odd, image=images[0], lists=rows[7]).items():
            with open(os.path.join(sys.argv[2], name + ".bin"), "wb") as out:
                out.write(raw)


if __name__ == "__main__":
    main()
