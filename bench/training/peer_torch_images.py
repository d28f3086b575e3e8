"""A network of network.py in PyTorch, and Fashion-MNIST in its batches; for peer_torch.py."""
import numpy
import torch
from torch import nn

import network
import peer


def build(text):
    layers, flat = [], False
    for layer in network.parse(text):
        if layer.kind == "conv":
            layers.append(nn.Conv2d(layer.inputs, layer.units, layer.window))
        elif layer.kind == "pool":
            layers.append(nn.MaxPool2d(layer.window))
        else:
            layers += [] if flat else [nn.Flatten()]
            layers.append(nn.Linear(layer.inputs, layer.units))
            flat = True
        layers += [nn.ReLU()] if layer.relu else []
    return nn.Sequential(*layers)


class Problem(nn.Module):
    """problem(images, labels): the mean loss."""

    def __init__(self, text):
        super().__init__()
        self.net = build(text)

    def forward(self, images, labels):
        return nn.functional.cross_entropy(self.net(images), labels)


def batches(generator, size, rank, replicas):
    """Without end: all samples in a new order each time; this rank's part of every global batch."""
    images, labels = peer.fashion_mnist()
    images = torch.from_numpy(images).unsqueeze(1)
    labels = torch.from_numpy(labels.astype(numpy.int64))
    together = size * replicas
    while True:
        order = torch.randperm(len(labels), generator=generator)
        for at in range(0, len(order) - together + 1, together):
            own = order[at + rank * size:at + (rank + 1) * size]
            yield images[own], labels[own]


def optimizer(parameters):
    return torch.optim.Adam(parameters, 1e-3, fused=True)
