"""What the scripts of the peers share: how a call is timed and how a result is printed."""
import json
import statistics
import time

WINDOWS = 5


def report(system, version, **fields):
    """One line of JSON, as bench/eager.c prints them."""
    print(json.dumps({"system": system, "version": version, **fields}), flush=True)


def median_seconds(call, turns):
    """Median over windows of the seconds one call takes."""
    for _ in range(max(1, turns // 10)):
        call()
    windows = []
    for _ in range(WINDOWS):
        start = time.perf_counter()
        for _ in range(turns):
            call()
        windows.append((time.perf_counter() - start) / turns)
    return statistics.median(windows)
