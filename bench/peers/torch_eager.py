"""Peer: PyTorch, eager, one thread. Cost of one small operator and images/s of a training step of `cnn`.

Prints the same JSON lines as bench/eager.c.
"""
import sys

import torch
import torch.nn.functional as F

import timing

torch.set_num_threads(1)
torch.manual_seed(1)

BATCH = 64


def report(**fields):
    timing.report("pytorch", torch.__version__, **fields)


def small_operators():
    for elements in (1, 8):
        shape = [] if elements == 1 else [elements]
        a, b = torch.ones(shape), torch.ones(shape)
        seconds = timing.median_seconds(lambda: torch.add(a, b), 20000)
        report(bench="eager_op", op="add", elements=elements, us=round(seconds * 1e6, 3))


def training_step(steps, channels_last):
    """The model of the CLI's `cnn`; the faster of PyTorch's two layouts counts."""
    layout = torch.channels_last if channels_last else torch.contiguous_format
    x = torch.rand(BATCH, 1, 28, 28).to(memory_format=layout)
    y = torch.randint(0, 10, (BATCH,))
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 32, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(13 * 13 * 32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10),
    ).to(memory_format=layout)
    adam = torch.optim.Adam(model.parameters(), 0.001, fused=True)

    def step():
        adam.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        adam.step()
        return loss

    return BATCH / timing.median_seconds(lambda: step().item(), steps)


small_operators()
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100
best = max(training_step(steps, False), training_step(steps, True))
report(bench="eager_step", model="cnn", batch=BATCH, threads=1, images_per_second=round(best))
