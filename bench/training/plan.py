"""What `make bench` measures: cases, the ways in which each is trained, and the rows with what they have to reach.

A case is a network with a batch and a number of steps; a way is a system and how it is used. `ROWS` says
which figures of which ways make a ratio; nothing here runs or computes.
"""
import dataclasses

from network import NETWORKS

# Ways. Those of a peer are alternatives, of which the better one counts.
BUILT_IN, FILE, ONE_CORE = "lockstep", "lockstep FILE.c", "lockstep, 1 replica, 1 core"
MIRRORED, ONE_DEVICE = "tensorflow MirroredStrategy", "tensorflow one device"
DDP, ONE_PROCESS = "torch DDP", "torch one process"
TENSORFLOW, TORCH = (MIRRORED, ONE_DEVICE), (DDP, ONE_PROCESS)
TWO_APART = "lockstep, 1 replica on each core, apart"
OWN = (BUILT_IN, FILE, ONE_CORE, TWO_APART)
PEER_OF = {**dict.fromkeys(TENSORFLOW, "tensorflow"), **dict.fromkeys(TORCH, "torch")}


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    network: str     # as in network.py, or gpt
    steps: int       # timed, in five windows; the same for all ways, as losses are compared
    ways: tuple
    batch: int = 64  # of each of 2 replicas; ways with one device get twice that
    turns: int = 1   # that our own ways take in a round: these are compared with each other, too
    quick_steps: int = 50


CASES = (
    Case("cnn", NETWORKS["cnn"], 1000, (*OWN, *TENSORFLOW, *TORCH), turns=5),
    Case("cnn2", NETWORKS["cnn2"], 300, (*OWN, *TENSORFLOW, *TORCH), turns=5),
    Case("mlp", NETWORKS["mlp"], 300, (BUILT_IN, FILE, *TENSORFLOW, *TORCH), turns=5),
    # Not much shorter: the rate climbs for 100 steps.
    Case("gpt", "gpt", 150, (BUILT_IN, *TORCH), batch=8, quick_steps=25),
    Case("24 filters", "conv24x3 pool2 dense64 dense10", 300, (FILE, *TENSORFLOW)),
    Case("48 filters", "conv48x3 pool2 dense64 dense10", 300, (FILE, *TENSORFLOW)),
    Case("5x5", "conv32x5 pool2 dense64 dense10", 300, (FILE, *TENSORFLOW)),
    Case("batch 50", NETWORKS["cnn"], 300, (FILE, *TENSORFLOW), batch=50),
    Case("dense 100", "conv32x3 pool2 dense100 dense10", 300, (FILE, *TENSORFLOW)),
    Case("24 and 48 filters", "conv24x3 pool2 conv48x3 pool2 dense100 dense10", 300,
         (FILE, *TENSORFLOW)),
    Case("mlp of 1000, 500", "dense1000 dense500 dense10", 300, (FILE, *TENSORFLOW)),
)
VARIANTS = tuple(case.name for case in CASES[4:])


@dataclasses.dataclass(frozen=True)
class Row:
    """A ratio of one figure of two ways, or (`theirs` empty) the figure itself."""
    group: str
    case: str
    ours: str
    theirs: tuple      # the better of these counts
    bound: float       # what has to be reached (None: it is there to be read with another row)...
    aim: float = None  # ...and what would be better still
    figure: str = "samples_per_second"
    more: bool = True  # is better

    def met(self, value, bound):
        """None: there is nothing to be met."""
        return None if bound is None else value >= bound if self.more else value <= bound


def rows():
    by_tensorflow = "times as fast as TensorFlow, the better of MirroredStrategy and one device"
    for case, bound, aim in ("cnn", 3, 3.5), ("cnn2", 2, 2.5), ("mlp", 1.7, 2):
        yield Row(by_tensorflow, case, BUILT_IN, TENSORFLOW, bound, aim)
    yield Row("times as fast as MirroredStrategy", "mlp", BUILT_IN, (MIRRORED,), 4)
    by_torch = "times as fast as PyTorch, the better of DDP and one process"
    for case, bound, aim in ("cnn", 8, 10), ("cnn2", 4, 5), ("mlp", 1.2, 1.5), ("gpt", 1.25, 1.5):
        yield Row(by_torch, case, BUILT_IN, TORCH, bound, aim)
    for case in VARIANTS:
        yield Row("variants in a FILE.c, times as fast as TensorFlow", case, FILE, TENSORFLOW, 1)
    for case in "cnn", "cnn2":
        yield Row("2 replicas on 2 cores, times as fast as 1 on one core", case, BUILT_IN,
                  (ONE_CORE,), 1.9)
    for case in "cnn", "cnn2":
        yield Row("2 processes apart, one on each core, times as fast as one alone: what the machine has",
                  case, TWO_APART, (ONE_CORE,), None)
    for case in "cnn", "cnn2", "mlp":
        yield Row("the network in a FILE.c, times as fast as the built-in one", case, FILE,
                  (BUILT_IN,), 0.97)
    for case in "cnn", "cnn2", "mlp":
        yield Row("peak memory, parts of TensorFlow's", case, BUILT_IN, TENSORFLOW, 0.25,
                  figure="peak_rss_bytes", more=False)
    for case in ("cnn", "cnn2", "mlp", *VARIANTS):
        ours = FILE if case in VARIANTS else BUILT_IN
        yield Row("loss of the last window, parts of TensorFlow's", case, ours, TENSORFLOW, 1.05,
                  figure="loss", more=False)
    for case in "cnn", "cnn2", "mlp", "gpt":
        yield Row("loss of the last window, parts of PyTorch's", case, BUILT_IN, TORCH, 1.05,
                  figure="loss", more=False)
    yield Row("seconds from the start of `lockstep train cnn --steps 1` to its first step event",
              "cnn", "lockstep train", (), 0.3, figure="seconds", more=False)


ROWS = tuple(rows())
