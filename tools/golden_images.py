#!/usr/bin/env python3
"""Writes small pictures and asks TensorFlow what is in them: tests/images/.

    golden-venv/bin/python tools/golden_images.py tests/images

The venv is that of tools/golden.py. Files are committed; this runs again only when a kind of
picture is added. expected.txt has a line for each file and number of channels asked for:

    FILE CHANNELS HEIGHT WIDTH CHANNELS-GIVEN PIXELS-IN-HEX

PNGs are written here, with a filter of its own for every row, because TensorFlow writes no
palettes, no interlacing, no transparent colours and only 8 and 16 bits. Pixels are those TensorFlow reads, but for
three things: 16 bits are rounded to 8 instead of cut off, grey is made of colours with the weights of
luminance, and pictures without transparency are opaque (TensorFlow adds an alpha of 1 to one bit of grey).
"""
import os
import struct
import sys
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf

SAMPLES = {"grey": 1, "rgb": 3, "palette": 1, "grey_alpha": 2, "rgba": 4}
COLOUR_TYPE = {"grey": 0, "rgb": 2, "palette": 3, "grey_alpha": 4, "rgba": 6}
PASSES = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]

rng = np.random.default_rng(7)


# ---- a writer of PNGs ----


def chunk(kind, data=b""):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def packed(row, depth):
    """A row [width, samples] as bytes, high bits first."""
    if depth == 16:
        return row.astype(">u2").tobytes()
    if depth == 8:
        return row.astype(np.uint8).tobytes()
    bits = np.unpackbits(row.astype(np.uint8).reshape(-1, 1), axis=1)[:, 8 - depth:]
    return np.packbits(bits.reshape(-1)).tobytes()


def predict(kind, left, up, corner):
    if kind < 3:
        return (0, left, up)[kind]
    if kind == 3:
        return (left + up) // 2
    p = left + up - corner
    return min((abs(p - left), 0, left), (abs(p - up), 1, up), (abs(p - corner), 2, corner))[2]


def filtered(rows, step):
    """Row y with filter y % 5."""
    out, above = bytearray(), None
    for y, row in enumerate(rows):
        above = above or bytes(len(row))
        out.append(y % 5)
        for i, v in enumerate(row):
            left, corner = (row[i - step], above[i - step]) if i >= step else (0, 0)
            out.append((v - predict(y % 5, left, above[i], corner)) & 255)
        above = row
    return bytes(out)


def png(kind, depth, pixels, palette=b"", transparent=b"", interlaced=False, extra=b"", cut=10 ** 9):
    """pixels [height, width, samples]; `extra` lies before the data, which is cut into pieces."""
    h, w, samples = pixels.shape
    step = max(1, samples * depth // 8)
    passes = [pixels[y::dy, x::dx] for y, x, dy, dx in PASSES] if interlaced else [pixels]
    data = b"".join(filtered([packed(row, depth) for row in p], step) for p in passes if p.size)
    data = zlib.compress(data, 9)
    head = struct.pack(">IIBBBBB", w, h, depth, COLOUR_TYPE[kind], 0, 0, int(interlaced))
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra
    out += chunk(b"PLTE", palette) if palette else b""
    out += chunk(b"tRNS", transparent) if transparent else b""
    for at in range(0, len(data), cut):
        out += chunk(b"IDAT", data[at:at + cut])
    return out + chunk(b"IEND")


def noise(h, w, kind, depth):
    return rng.integers(0, 2 ** depth, (h, w, SAMPLES[kind]))


def pngs():
    h, w = 6, 7
    for depth in 1, 2, 4, 8, 16:
        yield "grey%d" % depth, png("grey", depth, noise(h, w, "grey", depth))
    for depth in 8, 16:
        for kind in "rgb", "grey_alpha", "rgba":
            yield kind + str(depth), png(kind, depth, noise(h, w, kind, depth))
    for depth in 1, 2, 4, 8:
        colours = bytes(rng.integers(0, 256, 3 * 2 ** min(depth, 5), np.uint8))
        index = noise(h, w, "palette", min(depth, 5))
        yield "palette%d" % depth, png("palette", depth, index, colours)
        alpha = bytes(rng.integers(0, 256, 2 ** min(depth, 5) - 1, np.uint8))
        yield "palette%d_clear" % depth, png("palette", depth, index, colours, alpha)
    # One colour is transparent: that of the pixel at (1, 2).
    for kind, depth in ("grey", 4), ("grey", 8), ("grey", 16), ("rgb", 8), ("rgb", 16):
        x = noise(h, w, kind, depth)
        clear = x[1, 2].astype(">u2").tobytes()
        yield "%s%d_clear" % (kind, depth), png(kind, depth, x, transparent=clear)
    for kind, depth in ("grey", 1), ("grey", 16), ("rgb", 8), ("rgba", 16), ("grey_alpha", 8):
        x = noise(9, 11, kind, depth)
        yield "%s%d_interlaced" % (kind, depth), png(kind, depth, x, interlaced=True)
    colours = bytes(rng.integers(0, 256, 48, np.uint8))
    yield "palette4_interlaced", png("palette", 4, noise(9, 10, "palette", 4), colours, interlaced=True)
    yield "pixel", png("rgba", 8, noise(1, 1, "rgba", 8))
    yield "pixel_interlaced", png("grey", 2, noise(1, 1, "grey", 2), interlaced=True)
    # What is no part of the picture: a text, and a time of day that does not exist.
    extra = chunk(b"tEXt", b"Title\0a picture") + chunk(b"tIME", bytes((7, 0xd0, 13, 40, 25, 61, 61)))
    yield "extra", png("rgb", 8, noise(h, w, "rgb", 8), extra=extra, cut=20)


# ---- what is in them ----


def luminance(rgb):
    return (rgb.astype(np.int64) @ [19595, 38470, 7471] + 32768) >> 16


def read_png(data, channels):
    deep = data[24] == 16
    dtype = tf.uint16 if deep else tf.uint8
    colour = data[25] & 2

    def ask(n):
        x = tf.io.decode_png(data, n, dtype).numpy().astype(np.int64)
        return (x * 255 + 32767) // 65535 if deep else x

    if channels == 1 and colour:
        return luminance(ask(3))[..., np.newaxis]
    if channels == 4 and not data[25] & 4 and b"tRNS" not in data:
        return np.insert(ask(3), 3, 255, -1)
    return ask(channels)


def jpegs():
    y, x = np.mgrid[0:13, 0:19]
    rgb = np.stack([12 * x, 18 * y, 255 - 6 * x - 8 * y], -1) + rng.integers(-9, 10, (13, 19, 3))
    rgb = np.clip(rgb, 0, 255).astype(np.uint8)
    encode = tf.io.encode_jpeg
    yield "rgb", encode(rgb, quality=90, chroma_downsampling=False)
    yield "rgb_420", encode(rgb, quality=90, chroma_downsampling=True)
    yield "rgb_progressive", encode(rgb, quality=80, progressive=True)
    yield "grey", encode(rgb[..., :1], quality=90)
    yield "pixel", encode(rgb[:1, :1], quality=95)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    lines = ["# Made by tools/golden_images.py from TensorFlow %s." % tf.__version__]

    def note(name, data, asked, read):
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
        for channels in asked:
            x = np.asarray(read(data, channels)).astype(np.uint8)
            lines.append("%s %d %d %d %d %s" % ((name, channels) + x.shape + (x.tobytes().hex(),)))

    for name, data in pngs():
        note(name + ".png", data, (0, 1, 3, 4), read_png)
    for name, data in jpegs():
        note(name + ".jpg", data.numpy(), (0, 1, 3),
             lambda d, n: tf.io.decode_jpeg(d, n, dct_method="INTEGER_ACCURATE"))
    with open(os.path.join(folder, "expected.txt"), "w") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
