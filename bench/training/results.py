"""From runs to rows: the ratios of each round, their median and spread, and what was reached. Pure.

A run is a line that a system printed, with "round", "case" and "way". `summary` gives, for each row of
plan.py whose case was run, a dict with the row's words and

    value            the median of the rounds' ratios (of losses: the ratio of their means over seeds)
    least, greatest  of the rounds' ratios
    reached, aimed   against the row's bound and aim (None: there is none)
    missing          instead of these: why there is no value
"""
import dataclasses
import statistics


def figures_of(runs, case, way, figure):
    """{round: number} of the runs that gave one."""
    return {run["round"]: run[figure] for run in runs
            if run["case"] == case and run["way"] == way and run.get(figure) is not None}


def ratios(row, ours, theirs):
    """Of each round that has all: ours to the better one of theirs in that round."""
    better = max if row.more else min
    common = set(ours).intersection(*theirs)
    return [ours[r] / better(their[r] for their in theirs) if theirs else ours[r]
            for r in sorted(common)]


def ratio_of_means(ours, theirs):
    """Losses: one that is lower in one round by luck does not count."""
    return statistics.mean(ours.values()) / min(statistics.mean(t.values()) for t in theirs)


def missing(row, runs, left_out):
    """Why a row has no value."""
    for way in (row.ours, *row.theirs):
        if way in left_out:
            return f"left out: {left_out[way]}"
        failed = [run["failed"] for run in runs
                  if run["case"] == row.case and run["way"] == way and "failed" in run]
        if failed:
            return f"failed: {way}: {failed[0]}"
    return "failed: not all was measured"


def value_of(row, runs, rounds, left_out):
    ours = figures_of(runs, row.case, row.ours, row.figure)
    theirs = [figures_of(runs, row.case, way, row.figure) for way in row.theirs]
    each = ratios(row, ours, theirs)
    if len(each) < rounds:
        return {"missing": missing(row, runs, left_out)}
    value = ratio_of_means(ours, theirs) if row.figure == "loss" else statistics.median(each)
    return {"value": value, "least": min(each), "greatest": max(each),
            "reached": row.met(value, row.bound),
            "aimed": None if row.aim is None else row.met(value, row.aim)}


def summary(rows, runs, rounds, left_out):
    """`rounds` is how many each row must have; `left_out` is {way: why}."""
    cases = {run["case"] for run in runs}
    return [{**dataclasses.asdict(row), **value_of(row, runs, rounds, left_out)}
            for row in rows if row.case in cases]


def complete(summarised):
    """Whether all was measured, but for peers that are not there."""
    return not any(row.get("missing", "").startswith("failed") for row in summarised)
