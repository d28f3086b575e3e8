"""What `make bench` computes and draws, from canned results: bench_training_test.py LOCKSTEP

No peer runs here, and nothing is timed. Networks are parsed, written as FILE.c and trained for a step;
ratios, spread and verdicts are made of known numbers; pictures have to be XML.
"""
import itertools
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench", "training"))
import bars
import curves
import growth
import ideal
import machine
import network
import plan
import results
import run
import systems
import table

SVG = "{http://www.w3.org/2000/svg}"
failed = []


def check(truth, what):
    if not truth:
        failed.append(what)
        print(what)


# ---- networks --------------------------------------------------------------------------------------


def networks():
    counts = {name: network.parameters(text) for name, text in network.NETWORKS.items()}
    check(counts == {"cnn": 347146, "cnn2": 121930, "mlp": 5824522}, f"parameters: {counts}")
    conv, pool, hidden, out = network.parse(network.NETWORKS["cnn"])
    check((conv.side, pool.side, hidden.inputs, out.relu) == (26, 13, 5408, False), "not cnn's shapes")
    check(network.operations("dense10") == 6 * 7840, "operations of a dense layer")
    for wanted in (10**n for n in range(4, 9)):
        got = network.parameters(network.mlp_of(wanted))
        check(abs(got - wanted) < 0.06 * wanted, f"mlp_of({wanted}) has {got}")
    for text in "", "pool2", "dense", "conv32", "dense0", "conv8x29 dense10", "dense10 conv8x3 dense10", "lstm4":
        try:
            network.parse(text)
            check(False, f"'{text}' was taken")
        except ValueError:
            pass


def npy(kind, shape, data):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape!r}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + data


def trains(lockstep, folder):
    """A FILE.c of every kind of layer compiles, and has the parameters that were counted."""
    data = os.path.join(folder, "small.npz")
    with zipfile.ZipFile(data, "w") as z:
        for part in "train", "test":
            z.writestr(f"x_{part}.npy", npy("|u1", (32, 28, 28), bytes(range(256)) * 98))
            z.writestr(f"y_{part}.npy", npy("|u1", (32,), bytes(i % 10 for i in range(32))))
    text = "conv4x5 pool2 conv3x3 dense8 dense10"
    path = systems.Systems("build", "", folder).file_of(text)
    done = subprocess.run([lockstep, "train", path, "--steps", "1", "--batch", "8", "--data", data, "--json"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    check(done.returncode == 0, f"train {path}: {done.stderr}")
    start = json.loads(done.stdout.splitlines()[0])
    check(start.get("parameters") == network.parameters(text), f"other parameters: {start}")


# ---- results ---------------------------------------------------------------------------------------


def canned(left_out=(), fails=None):
    """Three rounds of cnn: Lockstep 30, 40, 38; the better TensorFlow 10 (then one device), 10, 10."""
    speeds = {plan.BUILT_IN: (30, 40, 38), plan.MIRRORED: (8, 10, 9), plan.ONE_DEVICE: (10, 9, 10),
              plan.DDP: (4, 4, 4), plan.ONE_PROCESS: (5, 5, 5), plan.FILE: (30, 40, 38),
              plan.ONE_CORE: (20, 20, 20), plan.TWO_APART: (30, 40, 38)}
    losses = {plan.BUILT_IN: (0.5, 0.4, 0.3), plan.MIRRORED: (0.3, 0.5, 0.4)}
    runs = []
    for way, each in speeds.items():
        for i, speed in enumerate(each):
            one = {"round": i + 1, "case": "cnn", "way": way, "turn": 1}
            if way == fails:
                runs.append({**one, "failed": "out of <memory> & hope"})
            elif way not in left_out:
                runs.append({**one, "samples_per_second": speed, "peak_rss_bytes": 2**20 * speed,
                             "loss": losses.get(way, (0.5, 0.5, 0.5))[i]})
    runs += [{"round": r, "case": "cnn", "way": "lockstep train", "turn": 1, "seconds": s}
             for r, s in ((1, 0.2), (2, 0.4), (3, 0.25))]
    return runs


def row_of(summarised, words, case="cnn"):
    return next(row for row in summarised if words in row["group"] and row["case"] == case)


def ratios():
    rows = results.summary(plan.ROWS, canned(), 3, {})
    check({row["case"] for row in rows} == {"cnn"}, "rows of cases that were not run")
    fast = row_of(rows, "fast as TensorFlow")
    check((fast["value"], fast["least"], fast["greatest"]) == (3.8, 3.0, 4.0), f"ratios: {fast}")
    check(fast["reached"] and fast["aimed"], "3.8 reaches 3 and 3.5")
    torch = row_of(rows, "PyTorch, the better")
    check(torch["value"] == 7.6 and not torch["reached"], f"to PyTorch: {torch}")
    start = row_of(rows, "first step event")
    check((start["value"], start["least"], start["greatest"], start["reached"]) == (0.25, 0.2, 0.4, True),
          f"start: {start}")
    loss = row_of(rows, "loss of the last window, parts of TensorFlow's")
    check(abs(loss["value"] - 1) < 1e-12, f"means of losses: {loss}")
    memory = row_of(rows, "peak memory")
    check(memory["value"] == 38 / 9 and not memory["reached"], f"to the lesser memory: {memory}")
    apart = row_of(rows, "apart")
    check(apart["value"] == 1.9 and apart["reached"] is None and "MISSED" not in table.render([apart]), f"apart: {apart}")
    check(results.complete(rows), "all is there")
    text = table.render(rows)
    for wanted in "3..4", "at least 3 (aim 3.5)  reached, aim too", "7.6", "MISSED", "at most 0.3":
        check(wanted in text, f"'{wanted}' is not in the table:\n{text}")
    check("cnn, torch DDP" in table.speeds(canned()), "speeds lack a way")


def taken():
    """What a hypervisor takes is between nothing and all; where nobody knows, the table says so."""
    busy, gone = machine.time_of_cores()
    check(0 <= gone <= busy, f"of {busy} ticks {gone} were taken")
    check(machine.taken_since((busy + 10**9, gone)) is None, "ticks of no time were taken")
    check(machine.taken_since((busy - 100, gone - 100)) > 0, "taken ticks are not seen")
    runs = [{**run, "taken": 0.25} if run["way"] == plan.BUILT_IN else run for run in canned()]
    lines = {line.split("  ")[0]: line for line in table.speeds(runs).splitlines()}
    check(lines["cnn, lockstep"].endswith("25.0 %") and lines["cnn, torch DDP"].endswith("-"), f"taken: {lines}")


def several_turns():
    """Ways that took the same turns are compared turn by turn; beside who took one, the median counts."""
    own = {plan.BUILT_IN: (30, 10, 20), plan.FILE: (33, 8, 20), plan.ONE_CORE: (15, 10, 8),
           plan.TWO_APART: (30, 15, 12)}
    runs = [run for run in canned() if run["way"] not in own]
    runs += [{"round": r, "case": "cnn", "way": way, "turn": t + 1, "samples_per_second": speed, "loss": 0.5,
              "peak_rss_bytes": 1} for r in (1, 2, 3) for way, each in own.items() for t, speed in enumerate(each)]
    rows = results.summary(plan.ROWS, runs, 3, {})
    for words, value in ("as 1 on one core", 2), ("built-in", 1), ("fast as TensorFlow", 2), ("apart", 1.5):
        check(row_of(rows, words)["value"] == value, f"{words}: {row_of(rows, words)}")
    runs[-1] = {**runs[-1], "samples_per_second": None, "failed": "it ended"}
    check("it ended" in row_of(results.summary(plan.ROWS, runs, 3, {}), "apart")["missing"], "one turn failed")


def absent():
    """A peer that is not there is told, one that fails, too; only the second is a failure."""
    left_out = {way: "torch is not installed" for way in plan.TORCH}
    rows = results.summary(plan.ROWS, canned(left_out), 3, left_out)
    check(row_of(rows, "PyTorch, the better")["missing"] == "left out: torch is not installed", "not told")
    check(results.complete(rows) and "torch is not installed" in table.render(rows), "left out is no failure")
    rows = results.summary(plan.ROWS, canned(fails=plan.MIRRORED), 3, {})
    check("out of <memory>" in row_of(rows, "fast as TensorFlow")["missing"], "no reason")
    check(not results.complete(rows), "a failure is none")
    check("out of <memory> & hope" in words_of(bars.bars(rows, "a machine", "today")), "not in the picture")


def turns():
    case = plan.CASES[0]
    orders = [run.in_turn(case, number, {plan.DDP: ""}) for number in (1, 2, 3)]
    check(len({order[0] for order in orders}) == 3, "rounds begin with the same system")
    wanted = ([(way, 1) for way in case.ways if way != plan.DDP]
              + [(way, turn) for way in plan.OWN for turn in range(2, case.turns + 1)])
    check(all(sorted(order) == sorted(wanted) for order in orders), "other ways, or turns")
    places = [[order.index((way, turn)) for way in plan.OWN] for order in orders for turn in range(2, case.turns + 1)]
    for i, j in itertools.permutations(range(len(plan.OWN)), 2):
        before = sum(place[i] < place[j] for place in places)
        check(3 * before >= len(places), f"{plan.OWN[i]} is before {plan.OWN[j]} in {before} of {len(places)} turns")
    single = run.in_turn(plan.CASES[3], 1, {})
    check([way for way, _ in single] == list(plan.CASES[3].ways), f"one turn: {single}")
    runner = systems.Systems("build", "venv", "/nowhere")
    alone = runner.words(case, plan.ONE_PROCESS, 50, 3)
    check(alone[-4:] == ["--replicas", "1", "--batch", "128"] and "3" in alone, f"one process: {alone}")
    core = runner.words(case, plan.ONE_CORE, 50, 3, 1)
    check(core[:3] == ["taskset", "-c", "1"] and core[-4:] == ["--replicas", "1", "--devices", "/cpu:0"], f"{core}")
    check({row.case for row in plan.ROWS} == {c.name for c in plan.CASES}, "a case has no row, or a row no case")


# ---- pictures --------------------------------------------------------------------------------------


def words_of(text):
    root = ElementTree.fromstring(text)
    check(root.tag == SVG + "svg", "no SVG")
    first = next(root.iter(SVG + "rect"))
    check(float(first.get("width")) == float(root.get("width")), "the ground is not painted")
    for shape in root.iter(SVG + "rect"):
        check(float(shape.get("width")) >= 0 and float(shape.get("x")) + float(shape.get("width"))
              <= float(root.get("width")), "a bar leaves the picture")
    return " ".join("".join(words.itertext()) for words in root.iter(SVG + "text"))


def pictures():
    words = words_of(bars.bars(results.summary(plan.ROWS, canned(), 3, {}), "a machine & more", "today"))
    for wanted in "a machine & more; today", "3.8, at least 3 (aim 3.5)", "7.6, at least 8 (aim 10): MISSED":
        check(wanted in words, f"'{wanted}' is not in the picture: {words}")


def grows():
    for points in growth.SWEEPS.values():
        check(all(p.steps % 5 == 0 and p.steps * 1.2 * p.replicas * p.batch < 60000 for p in points),
              "other than whole windows within an epoch")
    points = growth.SWEEPS["replicas"]
    runs = [{"samples_per_second": 64 * p.replicas / (p.replicas + 1) * 2, "peak_rss_bytes": 10**8}
            for p in points]
    rows = ideal.beside(points, runs)
    check([round(row["ideal_seconds"] / rows[0]["seconds"], 9) for row in rows] == [1, 1, 2, 2, 3, 3, 4, 4],
          "devices take turns")
    check(rows[0]["ideal_bytes"] == 10**8 and rows[1]["ideal_bytes"] == rows[7]["ideal_bytes"],
          "replicas that wait need no memory")
    one, two = (ideal.Point(n, text, 2, 64, 5) for n, text in ((1, "dense10"), (2, "dense20 dense10")))
    more = ideal.beside([one, two], runs[:2])[1]["ideal_bytes"] - 10**8
    check(more == 16 * (785 * 20 + 210 - 7850) + 4 * 2 * 64 * 20, f"{more} bytes more")
    sweeps = {"replicas": rows, "batch": rows}
    words = words_of(curves.curves(sweeps, "a machine"))
    check("peak memory, MiB, by batch" in words and "a machine" in words, words)
    check(growth.render(sweeps).count("\n") == 2 * 10, "not a line for each point")


def main():
    networks()
    with tempfile.TemporaryDirectory() as folder:
        trains(os.path.abspath(sys.argv[1]), folder)
    ratios()
    taken()
    several_turns()
    absent()
    turns()
    pictures()
    grows()
    sys.exit(bool(failed))


main()
