#!/usr/bin/env python3
"""Sets JSON lines of several systems side by side: compare.py FILE...

A line has "bench", "system", one measure (see MEASURES) and whatever else names the case; several
lines of one case are rounds, of which the median counts. Times on a shared machine say little; the
ratio to Lockstep, measured in the same run, is what counts: above 1 Lockstep is the faster one.
"""
import json
import statistics
import sys

# measure -> is more better?
MEASURES = {"us": False, "images_per_second": True, "samples_per_second": True}
BESIDE = {"eager_images_per_second", "eager_samples_per_second", "ratio_to_eager"}
NOT_A_CASE = set(MEASURES) | BESIDE | {"system", "version"}
OURS = "lockstep"


def read(paths):
    """{(case, measure): {system: median number}} in order of appearance."""
    cases = {}
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            for text in lines:
                if not text.startswith("{"):
                    continue
                line = json.loads(text)
                case = " ".join(str(line[k]) if k == "bench" else f"{k}={line[k]}"
                                for k in sorted(line, key=lambda k: (k != "bench", k))
                                if k not in NOT_A_CASE)
                for measure in MEASURES.keys() & line.keys():
                    rounds = cases.setdefault((case, measure), {})
                    rounds.setdefault(line.get("system", OURS), []).append(line[measure])
    return {case: {system: statistics.median(numbers) for system, numbers in rounds.items()}
            for case, rounds in cases.items()}


def ratio(ours, theirs, more_is_better):
    if not ours or not theirs:
        return "-"
    return f"{ours / theirs if more_is_better else theirs / ours:.2f}x"


def main(paths):
    cases = read(paths)
    systems = sorted({s for row in cases.values() for s in row} - {OURS})
    head = ["case", "measure", OURS]
    for system in systems:
        head += [system, "ratio"]
    table = [head]
    for (case, measure), row in cases.items():
        ours = row.get(OURS)
        cells = [case, measure, "-" if ours is None else f"{ours:g}"]
        for system in systems:
            theirs = row.get(system)
            cells += ["-" if theirs is None else f"{theirs:g}",
                      ratio(ours, theirs, MEASURES[measure])]
        table.append(cells)
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    for row in table:
        print("  ".join(cell.ljust(w) if i < 2 else cell.rjust(w)
                        for i, (cell, w) in enumerate(zip(row, widths))).rstrip())
    print("ratio: above 1, Lockstep is faster")
    return 0 if cases else 1


sys.exit(main(sys.argv[1:]))
