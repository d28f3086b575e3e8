#!/usr/bin/env python3
"""What traced functions and strategies promise, against what this run measured: figures.py FILE...

Reads the JSON lines of bench/traced.c, bench/strategy.c and their peers; several lines of one case are rounds, of
which the median counts.
"""
import json
import statistics
import sys


def read(paths):
    lines = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            lines += [json.loads(text) for text in file if text.startswith("{")]
    return lines


def pick(lines, measure, system="lockstep", **case):
    """The median of a measure over the lines of a case; None when there are none."""
    found = [line[measure] for line in lines
             if line["system"] == system and measure in line
             and all(line.get(k) == v for k, v in case.items())]
    return statistics.median(found) if found else None


def growth(lines, what):
    """How much more of it there is at the end of the replays than after the first 100."""
    early = pick(lines, f"{what}_after_100", bench="replay_memory")
    end = pick(lines, f"{what}_at_end", bench="replay_memory")
    return end - early if end is not None else None


def figure(text, value, target, met):
    if value is None:
        print(f"{text}: not measured (target {target})")
    else:
        print(f"{text}: {value:.3g} (target {target}{'' if met(value) else ', MISSED'})")


def traced(lines):
    step = {"bench": "traced_step", "model": "cnn", "batch": 64, "threads": 1}
    ours = pick(lines, "images_per_second", **step)
    theirs = pick(lines, "images_per_second", "tensorflow", **step)
    figure("traced cnn, batch 64, one thread, times as fast as TensorFlow's compiled step",
           ours / theirs if ours and theirs else None, "1.5", lambda v: v >= 1.5)
    figure("traced cnn, times as fast as eager", pick(lines, "ratio_to_eager", **step), "above 1",
           lambda v: v > 1)
    figure("1,000 dependent scalar adds, fusion off, us each",
           pick(lines, "us_each", bench="scalar_adds", fusion=False), "under 1", lambda v: v < 1)
    figure("arena of cnn, times the least any plan needs",
           pick(lines, "ratio", bench="arena", model="cnn"), "at most 1.2", lambda v: v <= 1.2)
    figure("tensor bytes more after 1,000 replays than after 100", growth(lines, "bytes"), "0",
           lambda v: v == 0)
    figure("resident KiB more after 1,000 replays than after 100", growth(lines, "resident_kib"),
           "at most 256", lambda v: v <= 256)


def strategies(lines):
    for bench, way, text, most in (
            ("empty_run", "eager", "eager run of an empty step", 30),
            ("empty_run", "traced", "traced run of an empty step", 10),
            ("scalar_all_reduce", "traced", "all-reduce of a number in a traced step", 3)):
        figure(f"{text}, 2 replicas, us",
               pick(lines, "us", bench=bench, way=way, replicas=2, devices=2), f"under {most}",
               lambda v, most=most: v < most)


def main(paths):
    lines = read(paths)
    traced(lines)
    strategies(lines)
    return 0


sys.exit(main(sys.argv[1:]))
