"""A client's share of a round: local epochs of plain SGD."""

import torch
from torch import nn
from torch.nn import functional

from empirical.algorithm import Algorithm, Local
from empirical.batches import batches
from empirical.schedule import Schedule
from empirical.seeds import forked
from empirical.sites import Site


def train(
    net: nn.Module,
    site: Site,
    algorithm: Algorithm,
    local: Local,
    schedule: Schedule,
    round_: int,
) -> float:
    """Trains `net` in place on the site's images with a fresh optimiser; counts `local.steps`.

    Returns:
        The mean mini-batch cross-entropy over the images seen, without what the algorithm adds;
        not finite where training diverged.
    """
    net.train()
    device = site.train.labels.device
    # On a CPU foreach saves a few per cent of a step of a small net, and costs a large one nothing.
    optimiser = torch.optim.SGD(net.parameters(), lr=schedule.lr, foreach=True)
    total = torch.zeros((), dtype=torch.float64, device=device)
    with forked(schedule.seed, "layers", site.name, round_, device=device):
        for rows in batches(site.name, len(site.train), schedule, round_):
            rows = rows.to(device)
            optimiser.zero_grad()
            loss = functional.cross_entropy(net(site.train.inputs[rows]), site.train.labels[rows])
            loss.backward()
            algorithm.correct_gradient(local)
            optimiser.step()
            local.steps += 1
            total += loss.detach() * len(rows)
    return total.item() / (len(site.train) * schedule.local_epochs)
