#!/usr/bin/env python3
"""Trains with Lockstep and its peers by turns, and sets them side by side: what `make bench` runs.

    bench/training/run.py --build build --peers VENV
    bench/training/run.py --cases cnn gpt --rounds 1 --quick     a look, in a minute or two

Prints the table and writes train.json (every run, every row) and train.svg. A peer that VENV does not
have is left out. Ends with 0 when all else was measured, whether targets were reached or not.
README.md says what is measured and how.
"""
import argparse
import json
import os
import sys
import tempfile
import time

import bars
import machine
import plan
import results
import systems
import table

STARTS, QUICK_STARTS = 11, 3
PEER_TRIES = 3


def default_peers():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "lockstep", "peers")


def arguments():
    names = [case.name for case in plan.CASES]
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--build", default="build", help="the build folder (build)")
    p.add_argument("--peers", default=default_peers(), metavar="VENV",
                   help="the environment with TensorFlow and PyTorch (~/.cache/lockstep/peers)")
    p.add_argument("--rounds", type=int, default=3, help="of all; the seed is the round (3)")
    p.add_argument("--cases", "--models", nargs="+", choices=names, default=names, metavar="CASE",
                   help=f"of {', '.join(names)} (all)")
    p.add_argument("--quick", action="store_true",
                   help="few steps: whether it works, not how fast it is")
    p.add_argument("--out", metavar="FOLDER", help="for train.json and train.svg (BUILD/bench)")
    args = p.parse_args()
    if args.rounds < 1:
        p.error("--rounds: 1 or more")
    args.out = args.out or os.path.join(args.build, "bench")
    return args


def say(text):
    print(text, file=sys.stderr, flush=True)


def rotated(ways, by):
    by %= len(ways)
    return ways[by:] + ways[:by]


def in_turn(case, number, left_out):
    """[(way, its turn)] of a round. Each round begins with another way. Turns but the first are of our own ways, all in a
    row; each begins with another way and goes the other way round, so that who runs behind whom evens out."""
    ways = [way for way in case.ways if way not in left_out]
    own = [way for way in ways if way in plan.OWN]
    order = [(way, 1) for way in rotated(ways, number - 1)]
    for turn in range(2, case.turns + 1):
        forth = rotated(own, number + turn)
        order += [(way, turn) for way in (forth if turn % 2 else reversed(forth))]
    return order


def measure(runner, case, way, steps, number, turn):
    """A run, or why there is none: one that failed does not end the others. A peer may try again: PyTorch's DDP
    ends now and then with "terminate called without an active exception"."""
    run = {"round": number, "case": case.name, "way": way, "turn": turn, "steps": steps, "seed": number}
    for left in reversed(range(PEER_TRIES if way in plan.PEER_OF else 1)):
        began = machine.time_of_cores()
        try:
            return {**runner.run(case, way, steps, number), **run, "taken": machine.taken_since(began)}
        except systems.Failed as reason:
            say(f"  {way}: {reason}{' (once more)' if left else ''}")
            why = str(reason)
    return {**run, "failed": why}


def time_starts(runner, number, count):
    """Runs of the row that tells how long a start takes; the first brings files into the page cache."""
    run = {"round": number, "case": "cnn", "way": "lockstep train", "turn": 1}
    try:
        runner.seconds_to_first_step()
        each = sorted(runner.seconds_to_first_step() for _ in range(count))
        return {**run, "seconds": each[len(each) // 2], "all_seconds": each}
    except systems.Failed as reason:
        say(f"  start: {reason}")
        return {**run, "failed": str(reason)}


def measure_all(args, runner, left_out):
    runs = []
    for number in range(1, args.rounds + 1):
        for case in plan.CASES:
            if case.name not in args.cases:
                continue
            say(f"round {number}, {case.name}...")
            steps = case.quick_steps if args.quick else case.steps
            runs += [measure(runner, case, way, steps, number, turn)
                     for way, turn in in_turn(case, number, left_out)]
        if "cnn" in args.cases:
            runs.append(time_starts(runner, number, QUICK_STARTS if args.quick else STARTS))
    return runs


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main():
    args = arguments()
    with tempfile.TemporaryDirectory() as folder:
        runner = systems.Systems(args.build, args.peers, folder)
        left_out = runner.left_out()
        for way, why in left_out.items():
            say(f"{way}: left out: {why}")
        runs = measure_all(args, runner, left_out)
        here, known = machine.describe(), machine.versions(runner.version(), runs)
    rows = results.summary(plan.ROWS, runs, args.rounds, left_out)
    when = time.strftime("%Y-%m-%d") + f", {args.rounds} round{'s' * (args.rounds > 1)}" + (", quick" if args.quick else "")
    os.makedirs(args.out, exist_ok=True)
    write(os.path.join(args.out, "train.json"),
          json.dumps({"bench": "training", "machine": here, "versions": known, "when": when,
                      "rounds": args.rounds, "quick": args.quick, "left_out": left_out,
                      "rows": rows, "runs": runs}, indent=1) + "\n")
    title = machine.one_line(here, known)
    write(os.path.join(args.out, "train.svg"), bars.bars(rows, title, when))
    print(f"{title}; {when}\n\n{table.speeds(runs)}\n{table.render(rows)}")
    print(f"wrote {args.out}/train.json and {args.out}/train.svg")
    return 0 if results.complete(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
