#!/usr/bin/env python3
"""How time and memory of training grow: what `make bench-growth` runs.

    bench/training/growth.py --build build
    bench/training/growth.py --sweeps batch --quick

Three sweeps: replicas (1 to 8 logical ones on 2 devices, cnn), batch (16 to 512, cnn) and parameters (10^4
to 10^8, a network of two hidden layers in a FILE.c). Prints a table and writes growth.json and
growth.svg. The ideal that they are set beside is in ideal.py.
"""
import argparse
import json
import os
import sys
import tempfile
import time

import curves
import ideal
import machine
import network
import systems
import table

CNN = network.NETWORKS["cnn"]
QUICK_STEPS = 25
# Timed at each point of a sweep: less than an epoch, with a window to warm up.
SAMPLES = 40000
MOST_STEPS = {10**7: 40, 10**8: 5}  # a step takes long enough


def steps_of(samples):
    """So many steps, in five windows, that handle SAMPLES."""
    return max(1, round(SAMPLES / samples / 5)) * 5


SWEEPS = {
    "replicas": [ideal.Point(v, CNN, v, 64, steps_of(v * 64)) for v in range(1, 9)],
    "batch": [ideal.Point(b, CNN, 2, b, steps_of(2 * b)) for b in (16, 32, 64, 128, 256, 512)],
    "parameters": [ideal.Point(p, network.mlp_of(p), 2, 64, MOST_STEPS.get(p, steps_of(128)))
                   for p in (10**4, 10**5, 10**6, 10**7, 10**8)],
}


def measure(runner, point, rounds, quick):
    """The run of the median speed."""
    words = [runner.lockstep, "bench", "train", runner.file_of(point.network), "--json",
             "--replicas", str(point.replicas), "--batch", str(point.batch),
             "--devices", "/cpu:0,/cpu:1" if point.replicas > 1 else "/cpu:0",
             "--steps", str(min(point.steps, QUICK_STEPS) if quick else point.steps)]
    runs = sorted((systems.result(systems.started(words)) for _ in range(rounds)), key=lambda r: r["samples_per_second"])
    return runs[len(runs) // 2]


def cells(row):
    return [f"{row['x']:,}", f"{row['samples_per_second']:,.0f}", f"{1000 * row['seconds']:.3g}",
            f"{1000 * row['ideal_seconds']:.3g}", f"{row['seconds'] / row['ideal_seconds']:.2f}",
            f"{row['bytes'] / 2**20:.0f}", f"{row['ideal_bytes'] / 2**20:.0f}",
            f"{row['bytes'] / row['ideal_bytes']:.2f}", f"{row['operations_per_second'] / 1e9:.0f}"]


def render(sweeps):
    text = ""
    for name, rows in sweeps.items():
        head = [name, "samples/s", "ms a step", "ideal", "times", "MiB", "ideal", "times", "GFLOP/s"]
        text += "\n".join(table.aligned([head] + [cells(row) for row in rows])) + "\n\n"
    return text


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--build", default="build", help="the build folder (build)")
    p.add_argument("--sweeps", nargs="+", choices=list(SWEEPS), default=list(SWEEPS))
    p.add_argument("--rounds", type=int, default=3, help="of each point; the median counts (3)")
    p.add_argument("--quick", action="store_true", help="few steps: whether it works")
    p.add_argument("--out", metavar="FOLDER", help="for growth.json and growth.svg (BUILD/bench)")
    args = p.parse_args()
    if args.rounds < 1:
        p.error("--rounds: 1 or more")
    args.out = args.out or os.path.join(args.build, "bench")
    return args


def main():
    args = arguments()
    sweeps = {}
    with tempfile.TemporaryDirectory() as folder:
        runner = systems.Systems(args.build, "", folder)
        for name in args.sweeps:
            runs = []
            for point in SWEEPS[name]:
                print(f"{name} {point.x:,}...", file=sys.stderr, flush=True)
                runs.append(measure(runner, point, args.rounds, args.quick))
            sweeps[name] = ideal.beside(SWEEPS[name], runs)
        here, known = machine.describe(), machine.versions(runner.version(), [])
    when = time.strftime("%Y-%m-%d") + (", quick" if args.quick else "")
    title = machine.one_line(here, known)
    os.makedirs(args.out, exist_ok=True)
    with open(os.path.join(args.out, "growth.json"), "w", encoding="utf-8") as file:
        json.dump({"bench": "growth", "machine": here, "versions": known, "when": when,
                   "sweeps": sweeps}, file, indent=1)
        file.write("\n")
    with open(os.path.join(args.out, "growth.svg"), "w", encoding="utf-8") as file:
        file.write(curves.curves(sweeps, f"{title}; {when}"))
    print(f"{title}; {when}\n\n{render(sweeps)}wrote {args.out}/growth.json and {args.out}/growth.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
