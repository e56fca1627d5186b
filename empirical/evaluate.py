"""Measurements: loss and accuracy of a network in eval mode over a whole split."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from empirical.bn_policy import Division
from empirical.sites import Samples, Site
from empirical.state import FederationState
from empirical.weights import load

BATCH = 100  # fast on a CPU; in eval mode no result depends on it beyond rounding


@dataclass(frozen=True)
class Measurement:
    """One number of a run.

    Attributes:
        round: rounds finished when it was taken; 0 is before training.
        client: the client's name, or "server" for the server's model.
        split: "train" or "test".
        metric: "loss" (mean cross-entropy), "accuracy" (fraction), or "batch_loss" (mean
            mini-batch loss while the client trained in this round).
        value: finite.
    """

    round: int
    client: str
    split: str
    metric: str
    value: float


@torch.inference_mode()
def evaluate(net: nn.Module, samples: Samples) -> dict[str, float]:
    """Mean cross-entropy ("loss") and "accuracy" of `net`, in eval mode, over all samples."""
    net.eval()
    loss = torch.zeros((), dtype=torch.float64, device=samples.labels.device)
    right = torch.zeros((), dtype=torch.int64, device=samples.labels.device)
    for x, y in zip(samples.inputs.split(BATCH), samples.labels.split(BATCH), strict=True):
        logits = net(x)
        loss += functional.cross_entropy(logits, y, reduction="sum")
        right += (logits.argmax(1) == y).sum()
    return {"loss": loss.item() / len(samples), "accuracy": right.item() / len(samples)}


def measure(
    net: nn.Module,
    sites: list[Site],
    state: FederationState,
    division: Division,
    round_: int,
    before: Callable[[nn.Module, Site], None] | None = None,
) -> list[Measurement]:
    """Every client's loss and accuracy with the weights that serve it, and the server's.

    `before` may change a client's model, which is loaded, just before it is measured.

    The server's is the unweighted mean over the clients' test splits; it is left out where the
    algorithm shares nothing, for then there is no server's model.
    """
    rows = []
    served: list[dict[str, float]] = []
    shares_any = bool(division.learned or division.statistics)
    load(net, state.server)
    # Without what stays with a client, or changes it, its model is the server's.
    apart = {s.name for s in sites if before or (division.mirrored and state.clients[s.name])}
    if shares_any:
        served = [evaluate(net, site.test) for site in sites if site.name in apart]
    for site in sites:
        load(net, state.weights(site.name))
        if before:
            before(net, site)
        for split, samples in (("train", site.train), ("test", site.test)):
            values = evaluate(net, samples)
            rows += [Measurement(round_, site.name, split, *item) for item in values.items()]
        if shares_any and site.name not in apart:
            served.append(values)
    for metric in ("loss", "accuracy") if served else ():
        value = math.fsum(values[metric] for values in served) / len(served)
        rows.append(Measurement(round_, "server", "test", metric, value))
    return rows
