"""Measures the feature shift of a federation: train on one client, test on each."""

import numpy as np
import torch
from torch import nn


def accuracies(clients, seed=0, epochs=30, norm=True):
    """Test accuracy, a row for each training client and a column for each test client."""
    splits = [(c.train.inputs(), c.train.labels, c.test.inputs(), c.test.labels) for c in clients]
    table = np.zeros((len(clients), len(clients)))
    for row, (x, y, _, _) in enumerate(splits):
        net = _trained(x, y, seed, epochs, norm).eval()
        with torch.no_grad():
            table[row] = [(net(u).argmax(1) == v).double().mean() for _, _, u, v in splits]
    return table


def _trained(x, y, seed, epochs, norm):
    torch.manual_seed(seed)
    layers = []
    for a, b in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Flatten(), nn.Linear(576, 128), nn.BatchNorm1d(128), nn.ReLU()]
    layers += [nn.Linear(128, 10)]
    if not norm:
        layers = [k for k in layers if not isinstance(k, nn.BatchNorm1d | nn.BatchNorm2d)]
    net = nn.Sequential(*layers)
    step = {"lr": 0.01} if norm else {"lr": 0.02, "momentum": 0.9}
    sgd = torch.optim.SGD(net.parameters(), **step)
    order = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for rows in torch.randperm(len(y), generator=order).split(32)[: len(y) // 32]:
            sgd.zero_grad()
            nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
            sgd.step()
    return net
