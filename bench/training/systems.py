"""How each way of plan.py is run: a process that prints one line of JSON.

    systems = Systems(build, venv, folder)       # `folder` is for the networks' FILE.c
    line = systems.run(case, plan.MIRRORED, steps, seed)
"""
import json
import os
import subprocess
import time

import network
import plan

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 900  # seconds, after which a run counts as hanging
ONE_DEVICE = ("--replicas", "1", "--devices", "/cpu:0")
# Ways with a process on each of these cores; others are one process, on all.
CORES_OF = {plan.ONE_CORE: lambda: sorted(os.sched_getaffinity(0))[:1],
            plan.TWO_APART: lambda: sorted(os.sched_getaffinity(0))[:2]}


class Failed(Exception):
    """A system that ended without a result; the text is the last line it wrote."""


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it says nothing"


def started(words):
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def result(process):
    """The last line of JSON that it prints, as a dict."""
    try:
        out, errors = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Failed(f"no end after {PATIENCE} seconds") from None
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if process.returncode or not lines:
        raise Failed(last_line(errors))
    return json.loads(lines[-1])


def added_up(runs):
    """One line for processes that ran at the same time, apart."""
    return {**runs[0], "samples_per_second": sum(run["samples_per_second"] for run in runs),
            "peak_rss_bytes": sum(run["peak_rss_bytes"] for run in runs)}


class Systems:
    def __init__(self, build, venv, folder):
        self.lockstep = os.path.abspath(os.path.join(build, "lockstep"))
        self.python = os.path.join(venv, "bin", "python")
        self.folder = folder

    def left_out(self):
        """{way: why} of the peers that are not installed."""
        return {way: f"{module} is not installed ({self.python})"
                for way, module in plan.PEER_OF.items() if not self.has(module)}

    def has(self, module):
        look = "import importlib.util as u, sys; sys.exit(u.find_spec(sys.argv[1]) is None)"
        return (os.access(self.python, os.X_OK)
                and subprocess.run([self.python, "-c", look, module]).returncode == 0)

    def file_of(self, text):
        """The path of a network's FILE.c."""
        path = os.path.join(self.folder, text.replace(" ", "-") + ".c")
        with open(path, "w", encoding="utf-8") as file:
            file.write(network.c_source(text))
        return path

    def words(self, case, way, steps, seed, core=None):
        """The command line of a way, on one core or on all."""
        common = ["--steps", str(steps), "--seed", str(seed)]
        if way in plan.PEER_OF:
            script = os.path.join(HERE, f"peer_{plan.PEER_OF[way]}.py")
            together = way in (plan.MIRRORED, plan.DDP)
            return [self.python, script, case.network, *common,
                    "--replicas", "2" if together else "1",
                    "--batch", str(case.batch if together else 2 * case.batch)]
        model = self.file_of(case.network) if way == plan.FILE else case.name
        words = [self.lockstep, "bench", "train", model, "--json", *common,
                 "--batch", str(case.batch)]
        if core is not None:
            return ["taskset", "-c", str(core), *words, *ONE_DEVICE]
        return [*words, "--replicas", "2"]

    def run(self, case, way, steps, seed):
        cores = CORES_OF.get(way, lambda: [None])()
        processes = [started(self.words(case, way, steps, seed, core)) for core in cores]
        try:
            return added_up([result(process) for process in processes])
        finally:
            for process in processes:
                process.kill()
                process.wait()

    def seconds_to_first_step(self):
        """From the start of the process to the line that tells of its first step."""
        began = time.perf_counter()
        words = [self.lockstep, "train", "cnn", "--steps", "1", "--json"]
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) as process:
            found = None
            for line in process.stdout:
                if found is None and json.loads(line).get("event") == "step":
                    found = time.perf_counter() - began
        if process.returncode or found is None:
            raise Failed(f"{' '.join(words)}: no step")
        return found

    def version(self):
        return result_text([self.lockstep, "--version"])


def result_text(words):
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
