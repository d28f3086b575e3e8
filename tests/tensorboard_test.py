"""Event files against the real TensorBoard: its own readers find what was written (compared with NumPy),
and its server serves it; and what `lockstep train --log` writes is what it says. Skipped where TensorBoard
is not there. Usage: tensorboard_test.py TENSORBOARD_LOG LOCKSTEP"""
from support.packages import need

need("tensorboard", "numpy")

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

import numpy as np
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.backend.event_processing import event_file_loader
from tensorboard.backend.event_processing import plugin_event_accumulator
from tensorboard.compat.proto import event_pb2
from tensorboard.util import tensor_util

STEPS, DEADLINE = 8, 60
KERNELS = {"conv/kernel": "conv", "hidden/kernel": "hidden"}
ABOUT = "# A run\n\nof *two* replicas: \u20ac & <b>"
ALL = {kind: 0 for kind in event_accumulator.DEFAULT_SIZE_GUIDANCE}  # keep every one


def raw(folder, name, step, dtype):
    return np.fromfile(os.path.join(folder, f"{name}_{step}.raw"), dtype)


def check_histogram(rows, values):
    values = np.asarray(values, np.float64)
    counts, edges = np.histogram(values, 30)
    np.testing.assert_array_equal(rows[:, 2], counts)
    np.testing.assert_allclose(rows[:, 0], edges[:-1], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(rows[:, 1], edges[1:], rtol=1e-12, atol=1e-15)
    assert rows[0, 0] == values.min() and rows[-1, 1] == values.max()


def check_edge_cases(histogram):
    assert histogram("empty").shape == (30, 3) and not histogram("empty").any()
    equal = histogram("equal")
    assert (equal[:, :2] == 1).all() and equal[-1, 2] == 7 and not equal[:-1, 2].any()
    check_histogram(histogram("with_nan"), [1, 2, 4])


# ---- its readers -------------------------------------------------------------------------------------


def check_file(logs):
    """The records as they lie: the version first, then what was written, in order."""
    (name,) = os.listdir(logs)
    assert re.fullmatch(r"events\.out\.tfevents\.\d{10}\..+\.\d+\.\d+", name), name
    loader = event_file_loader.RawEventFileLoader(os.path.join(logs, name))
    events = [event_pb2.Event.FromString(e) for e in loader.Load()]
    assert events[0].file_version == "brain.Event:2"
    assert len(events) == 1 + 3 * STEPS + 6 + 1
    now = time.time()
    assert all(now - 600 < e.wall_time <= now for e in events)
    assert all(a.wall_time <= b.wall_time for a, b in zip(events, events[1:]))
    for e in events:  # nothing that the format does not know
        assert not e.SerializeToString() or e == event_pb2.Event.FromString(e.SerializeToString())


def check_reader(folder, logs):
    reader = event_accumulator.EventAccumulator(logs, ALL)
    reader.Reload()
    tags = reader.Tags()
    assert set(tags["scalars"]) == {"loss", "not_finite", "far/along"}, tags
    assert set(tags["tensors"]) == {*KERNELS, "empty", "equal", "with_nan", "about"}, tags
    losses = reader.Scalars("loss")
    assert [e.step for e in losses] == list(range(STEPS))
    assert [e.value for e in losses] == [np.float32(raw(folder, "loss", i, np.float64)[0]) for i in range(STEPS)]
    assert losses[-1].value != losses[0].value
    assert np.isnan(reader.Scalars("not_finite")[0].value)
    assert [(e.step, e.value) for e in reader.Scalars("far/along")] == [(3000000000, -2.5)]
    for tag, name in KERNELS.items():
        histograms = reader.Tensors(tag)
        assert [e.step for e in histograms] == list(range(STEPS))
        for e in histograms:
            check_histogram(tensor_util.make_ndarray(e.tensor_proto), raw(folder, name, e.step, np.float32))
    check_edge_cases(lambda tag: tensor_util.make_ndarray(reader.Tensors(tag)[0].tensor_proto))
    (about,) = reader.Tensors("about")
    assert about.tensor_proto.string_val[0].decode() == ABOUT
    check_graph(reader.Graph())


def check_plugins(logs):
    """What the dashboards ask for: which tag is whose."""
    reader = plugin_event_accumulator.EventAccumulator(logs, ALL)
    reader.Reload()
    for plugin, tags in {
        "scalars": {"loss", "not_finite", "far/along"},
        "histograms": {*KERNELS, "empty", "equal", "with_nan"},
        "text": {"about"},
    }.items():
        assert set(reader.PluginTagToContent(plugin)) == tags, plugin


def check_graph(graph):
    nodes = {n.name: n for n in graph.node}
    assert len(nodes) == len(graph.node)
    inputs = {name: [i.split(":")[0] for i in n.input] for name, n in nodes.items()}
    assert all(re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*", name) for name in nodes)  # TensorFlow's rule
    assert all(i in nodes for list_ in inputs.values() for i in list_)
    done = set()  # it has no circles: somebody is always next
    while len(done) < len(nodes):
        ready = [name for name in nodes if name not in done and done.issuperset(inputs[name])]
        assert ready, set(nodes) - done
        done.update(ready)
    shape = [[d.size for d in s.dim] for s in nodes["conv/conv2d"].attr["_output_shapes"].list.shape]
    assert shape == [[4, 10, 10, 8]], shape
    assert [d.size for d in nodes["conv/kernel"].attr["_output_shapes"].list.shape[0].dim] == [3, 3, 1, 8]
    assert list(nodes["conv/conv2d"].attr["stride"].list.i) == [1, 1]
    assert abs(nodes["ls_minimize/conv/adam_update"].attr["beta1"].f - 0.9) < 1e-6
    groups = {name.split("/")[0] for name in nodes if "/" in name}
    assert groups == {"conv", "hidden", "out", "loss", "gradients", "ls_minimize"}, groups
    assert inputs["conv/conv2d"] == ["argument_0", "conv/kernel/read"]
    # Replica 0's gradient and the other's are added up, and all is led from the pictures to the loss.
    assert "gradients/conv/conv2d_grad_filter" in inputs["ls_minimize/sum_replicas"]
    assert "ls_minimize/replica_1" in inputs["ls_minimize/sum_replicas"]
    before, todo = set(), ["result_0"]
    while todo:
        name = todo.pop()
        before.add(name)
        todo += [i for i in inputs[name] if i not in before]
    assert {"argument_0", "argument_1", "conv/kernel", "hidden/bias", "out/kernel"} <= before


# ---- its server ----------------------------------------------------------------------------------------


def until(what, wanted):
    end = time.monotonic() + DEADLINE
    while not (got := wanted()):
        assert time.monotonic() < end, what
        time.sleep(0.05)
    return got


class Server:
    """TensorBoard on a free port of this host; it is gone afterwards, with all it started."""

    def __init__(self, folder):
        self.said = os.path.join(folder, "server.txt")
        environment = {**os.environ, "TMPDIR": folder, "PYTHONUNBUFFERED": "1"}
        with open(self.said, "w") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tensorboard.main", "--logdir", os.path.join(folder, "logs"),
                 "--host", "127.0.0.1", "--port", "0", "--reload_interval", "1"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment, start_new_session=True)

    def words(self):
        with open(self.said) as said:
            return said.read()

    def address(self):
        assert self.process.poll() is None, self.words()
        return re.search(r"http://127\.0\.0\.1:\d+", self.words())

    def __enter__(self):
        self.address = until(f"a server: {self.words()}", self.address).group()
        return self

    def get(self, path, **arguments):
        url = f"{self.address}/data/plugin/{path}?{urllib.parse.urlencode(arguments)}"
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(url, timeout=DEADLINE) as answer:
            return answer.read().decode()

    def ask(self, path, **arguments):
        return json.loads(self.get(path, **arguments))

    def group_is_gone(self):
        try:
            os.killpg(self.process.pid, 0)
            return False
        except ProcessLookupError:
            return True

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(DEADLINE)
            until("what the server started ends", self.group_is_gone)
        except (subprocess.TimeoutExpired, AssertionError):
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            raise


def check_server(folder):
    server = Server(folder)
    with server:
        # The graph was written last: when it is there, all is.
        until("the run is served", lambda: server.ask("graphs/info").get("run1", {}).get("run_graph"))
        assert set(server.ask("scalars/tags")["run1"]) == {"loss", "not_finite", "far/along"}
        losses = server.ask("scalars/scalars", run="run1", tag="loss")
        assert [row[1] for row in losses] == list(range(STEPS))
        for _, step, value in losses:
            assert np.float32(value) == np.float32(raw(folder, "loss", step, np.float64)[0])
        series = server.ask("timeseries/tags")
        assert set(series["scalars"]["runTagInfo"]["run1"]) == {"loss", "not_finite", "far/along"}
        assert set(KERNELS) <= set(series["histograms"]["runTagInfo"]["run1"])
        assert set(KERNELS) <= set(server.ask("histograms/tags")["run1"])
        for tag, name in KERNELS.items():
            histograms = server.ask("histograms/histograms", run="run1", tag=tag)
            assert [row[1] for row in histograms] == list(range(STEPS))
            for _, step, rows in histograms:
                check_histogram(np.array(rows), raw(folder, name, step, np.float32))
        check_edge_cases(lambda tag: np.array(server.ask("histograms/histograms", run="run1", tag=tag)[0][2]))
        assert server.ask("distributions/distributions", run="run1", tag="conv/kernel")
        assert server.ask("text/tags") == {"run1": ["about"]}
        (about,) = server.ask("text/text", run="run1", tag="about")
        assert "<h1>A run</h1>" in about["text"] and "<em>two</em>" in about["text"], about
        assert "\u20ac &amp;" in about["text"], about
        graph = server.get("graphs/graph", run="run1", limit_attr_size=1024, large_attrs_key="_too_large_attrs")
        assert 'name: "gradients/conv/conv2d_grad_filter"' in graph and 'op: "adam_update"' in graph


# ---- a run of the command ------------------------------------------------------------------------------


def train(folder):
    """Two epochs of a small data set; the events that --json prints."""
    draw = np.random.default_rng(1)
    data = os.path.join(folder, "data.npz")
    np.savez(data, x_train=draw.integers(0, 256, (96, 28, 28), np.uint8), y_train=draw.integers(0, 10, 96),
             x_test=draw.integers(0, 256, (40, 28, 28), np.uint8), y_test=draw.integers(0, 10, 40))
    command = [sys.argv[2], "train", "cnn", "--data", data, "--batch", "16", "--epochs", "2",
               "--log", os.path.join(folder, "log"), "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_train(folder):
    events = train(folder)
    reader = event_accumulator.EventAccumulator(os.path.join(folder, "log"), ALL)
    reader.Reload()
    found = lambda tag: [(e.step, np.float32(e.value)) for e in reader.Scalars(tag)]
    steps = [(e["step"], np.float32(e["loss"])) for e in events if e["event"] == "step"]
    assert len(steps) == 2 and [step for step, _ in found("step/loss")] == [step for step, _ in steps]
    np.testing.assert_allclose([v for _, v in found("step/loss")], [v for _, v in steps], rtol=1e-6)
    epochs = [e for e in events if e["event"] == "epoch"]
    for name in ("loss", "accuracy", "test_loss", "test_accuracy"):
        assert [step for step, _ in found("epoch/" + name)] == [3, 6]
        np.testing.assert_allclose([v for _, v in found("epoch/" + name)], [e[name] for e in epochs], rtol=1e-6)
    kernel = [tensor_util.make_ndarray(e.tensor_proto) for e in reader.Tensors("conv/kernel")]
    assert len(kernel) == 2 and all(rows[:, 2].sum() == 3 * 3 * 32 for rows in kernel)
    assert any(node.op.startswith("adam") for node in reader.Graph().node)


with tempfile.TemporaryDirectory() as folder:
    check_train(folder)
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1], folder], check=True)
    logs = os.path.join(folder, "logs", "run1")
    check_file(logs)
    check_reader(folder, logs)
    check_plugins(logs)
    check_server(folder)
