"""The loss and all gradients of `gpt` are those of the same network in PyTorch (the one that bench/training
measures), from the same weights and rows. Skipped where there is no PyTorch (`make bench` installs one).
Usage: torch_gpt_test.py LOCKSTEP"""
from support.packages import need

need("torch")

import json
import os
import random
import struct
import subprocess
import sys
import tempfile

import numpy
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench", "training"))
from peer_torch_gpt import CONTEXT, Problem

ROWS, PERIOD, BYTES = 18, 16, 2580  # of a text so short all blocks are one batch, and the rest is for tests
MOMENTS = "lockstep/optimizers/0/slots/m/"  # after one step from 0: a tenth of the gradient


# ---- safetensors ------------------------------------------------------------------------------------


def save(path, tensors):
    header, at, data = {}, 0, []
    for name, tensor in tensors.items():
        data.append(tensor.detach().contiguous().numpy().tobytes())
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, at + len(data[-1])]}
        at += len(data[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def load(path):
    with open(path, "rb") as f:
        data = f.read()
    size, = struct.unpack("<Q", data[:8])
    base, found = 8 + size, {}
    for name, entry in json.loads(data[8:base]).items():
        if entry.get("dtype") == "F32":
            begin, end = entry["data_offsets"]
            numbers = numpy.frombuffer(data[base + begin:base + end], numpy.float32)
            found[name] = torch.from_numpy(numbers.reshape(entry["shape"]).copy())
    return found


# ---- the two networks -------------------------------------------------------------------------------


def by_our_names(model, of):
    """{our name: of(parameter)}, kernels turned: PyTorch's are [out, in]."""
    found = {"tokens/table": of(model.tokens.weight), "positions/table": of(model.positions.weight)}

    def norm(name, layer):
        found[name + "/scale"], found[name + "/offset"] = of(layer.weight), of(layer.bias)

    def dense(name, layer):
        found[name + "/kernel"], found[name + "/bias"] = of(layer.weight).t(), of(layer.bias)

    for i, layer in enumerate(model.layers, 1):
        norm(f"layer{i}/norm1", layer.norm_attention)
        dense(f"layer{i}/qkv", layer.attention.qkv)
        dense(f"layer{i}/merge", layer.attention.out)
        norm(f"layer{i}/norm2", layer.norm_mlp)
        dense(f"layer{i}/up", layer.up)
        dense(f"layer{i}/down", layer.down)
    norm("norm", model.norm)
    return found


def step(lockstep, folder):
    """A step of ours from init.safetensors: its loss, and the gradients by name."""
    words = [lockstep, "train", "gpt", "--data", "text", "--batch", str(ROWS // 2), "--replicas", "2", "--steps", "1",
             "--init", "init.safetensors", "--checkpoint", "run", "--json"]
    done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    loss = next(e["loss"] for e in events if e["event"] == "step")
    saved = load(os.path.join(folder, "run", "step-000000001.safetensors"))
    return loss, {name[len(MOMENTS):]: 10 * m for name, m in saved.items() if name.startswith(MOMENTS)}


def rows_of(text, phase):
    begin = torch.arange(ROWS) * CONTEXT + phase
    rows = torch.tensor(list(text))[begin[:, None] + torch.arange(CONTEXT + 1)]
    return rows[:, :-1], rows[:, 1:]


def main():
    torch.manual_seed(1)
    model = Problem("gpt")
    with torch.no_grad():  # biases and norms that are not 0 and 1, too
        for parameter in model.parameters():
            parameter += 0.02 * torch.randn(parameter.shape)
    # The blocks of an epoch begin somewhere; in this text there are only 16 places.
    text = (bytes(random.Random(1).sample(range(32, 127), PERIOD)) * (BYTES // PERIOD + 1))[:BYTES]
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "text"), "wb") as f:
            f.write(text)
        save(os.path.join(folder, "init.safetensors"), by_our_names(model, lambda p: p))
        loss, gradients = step(os.path.abspath(sys.argv[1]), folder)
    with torch.no_grad():
        losses = [model(*rows_of(text, phase)).item() for phase in range(PERIOD)]
    phase = min(range(PERIOD), key=lambda i: abs(losses[i] - loss))
    assert abs(losses[phase] - loss) < 1e-5 * loss, (loss, losses)
    model(*rows_of(text, phase)).backward()
    want = by_our_names(model, lambda p: p.grad)
    assert want.keys() == gradients.keys(), want.keys() ^ gradients.keys()
    for name, gradient in want.items():
        off = ((gradients[name] - gradient).norm() / gradient.norm()).item()
        assert off < 1e-5, f"{name}: {off:.2g} of its norm"
    print(f"the loss and {len(want)} gradients are PyTorch's")


main()
