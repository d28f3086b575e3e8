#!/usr/bin/env python3
"""The table of what bench/input_peers measured, with what was promised: input_table.py FILE...

Several lines of one case are rounds, of which the median counts; the spread is that of the ratios round
by round. What misses its target says so.
"""
import json
import statistics
import sys

RATIO, WAITING, BESIDE = 5, 0.05, 64 << 20


def read(paths):
    lines = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            lines += [json.loads(text) for text in file if text.startswith("{")]
    return lines


def verdict(met):
    return "" if met else "  MISSED"


def print_rates(ours, peers):
    for what in ("raw", "parsed"):
        key = f"{what}_records_per_second"
        own = [line[key] for line in ours]
        text = f"{what:7} {statistics.median(own):12,.0f} records/s"
        if peers:
            ratios = sorted(a / line[key] for a, line in zip(own, peers))
            middle = statistics.median(ratios)
            text += (f"   tf.data {statistics.median(line[key] for line in peers):10,.0f}"
                     f"   {middle:.1f} times ({ratios[0]:.1f} to {ratios[-1]:.1f}), at least {RATIO} wanted"
                     + verdict(middle >= RATIO))
        print(text)


def main():
    lines = read(sys.argv[1:])
    of = lambda name, key="bench": [line for line in lines if line.get(key) == name]
    print_rates(of("input"), of("tf.data", "peer"))
    feeds = of("feed")
    if feeds:
        waiting = statistics.median(line["waiting"] for line in feeds)
        rate = statistics.median(line["samples_per_second"] for line in feeds)
        bare = statistics.median(line["samples_per_second_without_input"] for line in feeds)
        print(f"waiting {100 * waiting:6.1f} % of the time of 2 replicas of cnn, less than "
              f"{100 * WAITING:.0f} wanted{verdict(waiting < WAITING)}"
              f"   ({rate:,.0f} images/s; one batch again and again: {bare:,.0f})")
    for line in of("input_memory"):
        beside = line["peak_bytes"] - line["declared_bytes"]
        print(f"memory  {line['peak_bytes'] / 2**20:6.1f} MiB at most, of which stages declare "
              f"{line['declared_bytes'] / 2**20:.1f}: {beside / 2**20:.1f} beside them, "
              f"less than {BESIDE >> 20} wanted{verdict(beside < BESIDE)}")


if __name__ == "__main__":
    main()
