"""Lockstep's `gpt` in PyTorch, and the text it reads; for peer_torch.py.

Bytes, 4 layers that normalise first, width 256, 8 heads, 128 places with learned positions, GELU in an
MLP four times as wide, the embeddings used again at the end, GPT-2's initial values.
"""
import itertools
import subprocess

import torch
from torch import nn
from torch.nn import functional

BYTES, LAYERS, WIDTH, HEADS, CONTEXT = 256, 4, 256, 8, 128
SPREAD = 0.02
RATE, WARMUP = 1e-3, 100
HELD_OUT = 0.05  # of the text, at its end, is for tests


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        rows, places, _ = x.shape
        heads = self.qkv(x).view(rows, places, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(*heads.unbind(0), is_causal=True)
        return self.out(seen.transpose(1, 2).reshape(rows, places, WIDTH))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_attention, self.norm_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        x = x + self.attention(self.norm_attention(x))
        return x + self.down(functional.gelu(self.up(self.norm_mlp(x)), approximate="tanh"))


class Problem(nn.Module):
    """problem(bytes, next_bytes): the mean loss."""

    def __init__(self, _name):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(BYTES, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif "norm" not in name:
                back = name.endswith(("out.weight", "down.weight"))  # into the sum of all layers
                nn.init.normal_(parameter, 0, SPREAD / (2 * LAYERS) ** 0.5 if back else SPREAD)

    def forward(self, x, following):
        h = self.norm(self.layers(self.tokens(x) + self.positions.weight))
        logits = functional.linear(h, self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1), following.flatten())


def batches(generator, size, rank, replicas):
    """Without end: pieces of the text from anywhere; this rank's part of every global batch."""
    text = subprocess.run(["bible", "gen1:1-rev22:21"], check=True, stdout=subprocess.PIPE).stdout
    text = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    places = torch.arange(CONTEXT + 1)
    last = int(len(text) * (1 - HELD_OUT)) - CONTEXT
    while True:
        begin = torch.randint(0, last, (size * replicas, 1), generator=generator)
        rows = text[begin[rank * size:(rank + 1) * size] + places].long()
        yield rows[:, :-1], rows[:, 1:]


def optimizer(parameters):
    """AdamW, whose rate climbs from 0 in the first steps, as of `lockstep train gpt`."""
    update = torch.optim.AdamW(parameters, RATE, fused=True)
    done = itertools.count()

    def climb(*_):
        update.param_groups[0]["lr"] = RATE * min(1, next(done) / WARMUP)

    update.register_step_pre_hook(climb)
    return update
