"""What the peers share: their command line, the data, five windows of steps and the line they print.

    PEER.py NETWORK --replicas 2 --batch 64 --steps 500 --seed 1

The line is that of `lockstep bench train --json` with "system", "way" and "version": samples a second
(the median of five windows after one to warm up, and the best), the mean loss of the last window, and the
most memory that was resident, of all processes that train.
"""
import argparse
import gzip
import json
import os
import statistics
import time

WINDOWS = 5
DATA = os.environ.get("LOCKSTEP_FASHION_MNIST") or "/usr/share/datasets/fashion-mnist"


def parser(about):
    p = argparse.ArgumentParser(description=about.splitlines()[0])
    p.add_argument("network", metavar="NETWORK", help="as in network.py, or gpt")
    p.add_argument("--replicas", type=int, default=2, help="1: all cores without a strategy")
    p.add_argument("--batch", type=int, default=64, help="samples of each replica in a step")
    p.add_argument("--steps", type=int, default=500, help="that are timed, in five windows")
    p.add_argument("--seed", type=int, default=1)
    return p


def fashion_mnist():
    """Pictures as f32 from 0 to 1, [60000, 28, 28], and labels; without an f64 copy in between."""
    import numpy
    with gzip.open(f"{DATA}/train-images-idx3-ubyte.gz") as f:
        images = numpy.frombuffer(f.read(), numpy.uint8, offset=16).reshape(-1, 28, 28)
    with gzip.open(f"{DATA}/train-labels-idx1-ubyte.gz") as f:
        labels = numpy.frombuffer(f.read(), numpy.uint8, offset=8)
    pixels = images.astype(numpy.float32)
    pixels /= 255
    return pixels, labels


def measure(window, steps, samples):
    """window(k) trains k steps of so many samples and gives their mean loss. -> the line's figures."""
    each = -(-steps // WINDOWS)
    window(each)
    rates = []
    for _ in range(WINDOWS):
        began = time.perf_counter()
        loss = window(each)
        rates.append(each * samples / (time.perf_counter() - began))
    return {"samples_per_second": statistics.median(rates), "best": max(rates), "loss": loss}


def peak_bytes():
    """The most that this process had resident. (What getrusage tells may be that of its parent.)"""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def report(args, system, way, version, figures):
    print(json.dumps({"bench": "train", "system": system, "way": way, "version": version,
                      "model": args.network, "replicas": args.replicas, "batch": args.batch,
                      "seed": args.seed, **figures}), flush=True)
