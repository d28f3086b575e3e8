"""Is a recorded profile a trace that Perfetto and chrome://tracing show as it was?
Usage: profile_test.py WRITER (tests/profile_writer.c)

Times are read here as Perfetto does: doubles, cut to whole nanoseconds. An event of a row that begins
before the one before it has ended would be dropped there."""
import json
import os
import subprocess
import sys
import tempfile

PHASES = ["input", "forward", "backward", "reduce", "apply", "other"]
STEPS = 5


def record(folder, devices, replicas, steps):
    path = os.path.join(folder, "trace.json")
    said = subprocess.run([sys.argv[1], devices, str(replicas), str(steps), path],
                          stdout=subprocess.PIPE, check=True).stdout
    with open(path) as f:
        trace = json.load(f)
    assert os.listdir(folder) == ["trace.json"], os.listdir(folder)
    return trace, json.loads(said)


def check_names(trace, replicas):
    names = [e for e in trace["traceEvents"] if e["ph"] == "M"]
    for e in names:
        assert 1 <= e["tid"] <= replicas and e["pid"] == replicas + 1, e  # 0 and the process's own are special
    of = lambda what: [e["args"]["name"] for e in names if e["name"] == what]
    assert of("process_name") == ["lockstep"], names
    rows = of("thread_name")
    assert len(rows) == replicas, rows
    for r, name in enumerate(rows):
        assert name.startswith("replica %d on " % r), name


def check_row(events, took, spent):
    """One replica's: in order, apart, inside of the time there was, and all of what was counted."""
    end, sums = 0, dict.fromkeys(PHASES, 0)
    for e in events:
        begin, length = int(e["ts"] * 1000), int(e["dur"] * 1000)
        assert begin >= end, (e, end)
        assert length >= 0 and e["name"] in PHASES and e["cat"] == "phase", e
        end = begin + length
        sums[e["name"]] += e["dur"]
    assert end <= took * 1e9, (end, took)
    for name in PHASES:
        apart = abs(sums[name] / 1e6 - spent[name])
        assert apart <= 3e-9 * len(events) + 1e-9, (name, sums[name], spent[name])


def check_step(events, replicas, step):
    """Waits, goes forward, back, meets, applies."""
    names = [e["name"] for e in events if e["args"]["step"] == step]
    for wanted in "input", "forward", "backward", "apply", "other":
        assert wanted in names, (step, names)
    assert names.count("forward") == names.count("backward") == 1, (step, names)
    order = [n for n in names if n in ("input", "forward", "backward", "apply")]
    assert order == sorted(order, key=PHASES.index), (step, names)
    assert ("reduce" in names) == (replicas > 1), (step, names)


def check(folder, devices, replicas):
    trace, said = record(folder, devices, replicas, STEPS)
    assert trace["displayTimeUnit"] == "ms" and trace["otherData"]["left_out"] == 0
    check_names(trace, replicas)
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert len(spans) + 1 + 2 * replicas == len(trace["traceEvents"])
    for r in range(replicas):
        events = [e for e in spans if e["pid"] == replicas + 1 and e["tid"] == r + 1]
        check_row(events, said["took"], said["spent"][r])
        for step in range(2, 2 + STEPS):
            check_step(events, replicas, step)


with tempfile.TemporaryDirectory() as folder:
    for devices, replicas in ("/cpu:0", 1), ("/cpu:0", 2), ("/cpu:0,/cpu:1", 2), ("/cpu:0,/cpu:1", 3):
        check(folder, devices, replicas)
