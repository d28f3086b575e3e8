#!/usr/bin/env python3
"""Tables of what bench/reduce_peers measured, with what was promised: reduce_table.py FILE...

Reads the JSON lines of bench/reduce.c, `lockstep bench allreduce` and its peer; several lines of one
case are rounds, of which the median counts. What misses its target says so.
"""
import json
import statistics
import sys

SMALL = 256 << 10  # below this a difference counts, from here on a ratio


def read(paths):
    lines = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            lines += [json.loads(text) for text in file if text.startswith("{")]
    return lines


def median(lines, measure, **case):
    """Over the lines of a case; None when there are none."""
    found = [line[measure] for line in lines
             if all(line.get(k) == v for k, v in case.items()) and line.get(measure) is not None]
    return statistics.median(found) if found else None


def size_text(size):
    for unit in ("B", "KiB", "MiB"):
        if size < 1024 or unit == "MiB":
            return f"{size:g} {unit}"
        size /= 1024


def print_table(title, head, rows):
    if not rows:
        return
    print(title)
    table = [head] + rows
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    for row in table:
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths)).rstrip())
    print()


def verdict(met):
    return "" if met else "MISSED"


def sizes(lines, bench):
    return sorted({line["bytes"] for line in lines if line["bench"] == bench})


def peers(lines):
    rows = []
    for size in sizes(lines, "allreduce"):
        case = {"bench": "allreduce", "bytes": size}
        # The command's lines have a transport, the peer's a system.
        ours = median(lines, "median_us", transport="local", **case)
        theirs = median(lines, "median_us", system="mpi", **case)
        best = median(lines, "best_us", transport="local", **case)
        if ours is None:
            continue
        row = [size_text(size), f"{ours:.2f}", f"{best:.2f}", f"{1e-3 * size / ours:.2f}"]
        row += ["-", "-", ""] if theirs is None else [
            f"{theirs:.2f}", f"{theirs / ours:.2f}x", verdict(theirs >= 3 * ours)]
        rows.append(row)
    print_table("All-reduce (SUM, f32, in place), 2 ranks, median us; target: 3x Open MPI",
                ["size", "lockstep", "best", "GB/s", "Open MPI", "ratio", ""], rows)


def bare(lines):
    rows = []
    for size in sizes(lines, "bare_sum"):
        case = {"bench": "bare_sum", "bytes": size}
        least, ours = median(lines, "bare_us", **case), median(lines, "allreduce_us", **case)
        met = ours <= 1.15 * least if size >= SMALL else ours <= least + 1
        rows.append([size_text(size), f"{ours:.2f}", f"{least:.2f}", f"{ours / least:.2f}",
                     f"{ours - least:+.2f}", verdict(met)])
    print_table("All-reduce beside a bare sum by two pinned threads, median us; target: within 15 % "
                "from 256 KiB up, within 1 us below",
                ["size", "all-reduce", "bare", "ratio", "us more", ""], rows)


def adam(lines):
    rows = []
    targets = {"fused": None, "shared": 0.85, "own": 0.60}
    texts = {"fused": "in one pass", "shared": "reduce, then Adam on shared weights",
             "own": "all-reduce, then Adam on own weights"}
    fused = median(lines, "us", bench="reduce_adam", way="fused")
    for way, most in targets.items():
        took = median(lines, "us", bench="reduce_adam", way=way)
        if took is None:
            continue
        rows.append([texts[way], f"{took / 1000:.2f}", f"{100 * fused / took:.0f} %",
                     f"{100 * most:.0f} %" if most else "",
                     verdict(not most or fused <= most * took)])
    print_table("Gradients of 2 replicas, 10^7 parameters, reduced and given to Adam by two threads",
                ["way", "ms", "one pass takes", "at most", ""], rows)


def memory(lines):
    rows = [[str(line["replicas"]), str(line["devices"]), f'{line["parameters"]:,}',
             f'{line["peak_rss_bytes"] / 2**20:,.0f}', f'{line["bytes_per_parameter"]:.1f}']
            for line in lines if line["bench"] == "peak_memory"]
    print_table("Peak memory of traced training steps of an mlp with Adam",
                ["replicas", "devices", "parameters", "MiB", "bytes/parameter"], rows)


def main(paths):
    lines = read(paths)
    for table in (peers, bare, adam, memory):
        table(lines)
    return 0


sys.exit(main(sys.argv[1:]))
