"""From runs to rows: the ratios of each round, their median and spread, and what was reached. Pure.

A run is a line that a system printed, with "round", "case", "way" and "turn". `summary` gives, for each row of
plan.py whose case was run, a dict with the row's words and

    value            the median of the rounds' ratios (of losses: the ratio of their means over seeds)
    least, greatest  of the rounds' ratios, each of which is the median of its turns
    reached, aimed   against the row's bound and aim (None: there is none)
    missing          instead of these: why there is no value
"""
import dataclasses
import statistics


def figures_of(runs, case, way, figure):
    """{round: {turn: number}} of the runs that gave one."""
    found = {}
    for run in runs:
        if run["case"] == case and run["way"] == way and run.get(figure) is not None:
            found.setdefault(run["round"], {})[run["turn"]] = run[figure]
    return found


def ratio(row, ours, theirs):
    """Of one round: ours to the better one of theirs, turn by turn if all took the same turns; the median of that.
    Who took several turns beside one who took one is known by its median."""
    if any(set(their) != set(ours) for their in theirs):
        ours, *theirs = ({1: statistics.median(each.values())} for each in (ours, *theirs))
    better = max if row.more else min
    return statistics.median(mine / better(their[turn] for their in theirs) if theirs else mine
                             for turn, mine in ours.items())


def ratios(row, ours, theirs):
    """Of each round that has all."""
    common = set(ours).intersection(*theirs)
    return [ratio(row, ours[r], [their[r] for their in theirs]) for r in sorted(common)]


def mean(figures):
    return statistics.mean(number for turns in figures.values() for number in turns.values())


def ratio_of_means(ours, theirs):
    """Losses: one that is lower in one round by luck does not count."""
    return mean(ours) / min(mean(their) for their in theirs)


def missing(row, runs, left_out):
    """Why a row has no value; None: it has."""
    for way in (row.ours, *row.theirs):
        if way in left_out:
            return f"left out: {left_out[way]}"
        failed = [run["failed"] for run in runs
                  if run["case"] == row.case and run["way"] == way and "failed" in run]
        if failed:
            return f"failed: {way}: {failed[0]}"
    return None


def value_of(row, runs, rounds, left_out):
    ours = figures_of(runs, row.case, row.ours, row.figure)
    theirs = [figures_of(runs, row.case, way, row.figure) for way in row.theirs]
    each = ratios(row, ours, theirs)
    why = missing(row, runs, left_out)
    if why or len(each) < rounds:
        return {"missing": why or "failed: not all was measured"}
    value = ratio_of_means(ours, theirs) if row.figure == "loss" else statistics.median(each)
    return {"value": value, "least": min(each), "greatest": max(each),
            "reached": row.met(value, row.bound), "aimed": row.met(value, row.aim)}


def summary(rows, runs, rounds, left_out):
    """`rounds` is how many each row must have; `left_out` is {way: why}."""
    cases = {run["case"] for run in runs}
    return [{**dataclasses.asdict(row), **value_of(row, runs, rounds, left_out)}
            for row in rows if row.case in cases]


def complete(summarised):
    """Whether all was measured, but for peers that are not there."""
    return not any(row.get("missing", "").startswith("failed") for row in summarised)
