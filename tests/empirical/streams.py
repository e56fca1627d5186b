"""Streams of test batches, and Eqs. (3), (4) a second time: plain loops, layer by layer."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from empirical import FederationState
from empirical.weights import take, tensors


def stream(*sizes: int, seed: int = 0, shape: tuple[int, ...] = (3, 28, 28)) -> list[Tensor]:
    """Float64 batches of the given sizes, each with its own mean and spread."""
    draws = torch.Generator().manual_seed(seed)
    return [
        torch.randn(n, *shape, generator=draws, dtype=torch.float64) * (1 + t) + 0.5 * t
        for t, n in enumerate(sizes)
    ]


def channels(x: Tensor) -> list[Tensor]:
    """The values of each channel in one row each."""
    return [x.select(1, c).reshape(-1) for c in range(x.shape[1])]


@dataclass
class Loops:
    """One layer's running statistics as lists of floats, by the mixture's weights.

    Instead of recursions it keeps every batch's mean and variance and sums over all of them with
    the weights that Eq. (4) gives them in the end: τ^(T−1) for the first, (1 − τ) τ^(T−t) after.
    """

    layer: nn.Module
    tau: float
    total: bool = False
    identity: bool = False
    source: bool = False
    unbiased: bool = False
    still: bool = False
    seen: list[list[tuple[float, float]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.source:
            mean, variance = self.layer.running_mean.tolist(), self.layer.running_var.tolist()
            self.seen.append(list(zip(mean, variance, strict=True)))

    def statistics(self) -> tuple[list[float], list[float]]:
        last = len(self.seen) - 1
        w = [(1 - self.tau if t else 1.0) * self.tau ** (last - t) for t in range(last + 1)]
        means, variances = [], []
        for c in range(len(self.seen[0])):
            mean = sum(w[t] * self.seen[t][c][0] for t in range(last + 1))
            variance = sum(w[t] * self.seen[t][c][1] for t in range(last + 1))
            if self.total:
                variance += sum(w[t] * (self.seen[t][c][0] - mean) ** 2 for t in range(last + 1))
            means.append(mean)
            variances.append(variance)
        return means, variances

    def __call__(self, x: Tensor) -> Tensor:
        if not self.still:
            self.see(x)
        return self.normalised(x)

    def see(self, x: Tensor) -> None:
        rows = [row.tolist() for row in channels(x)]
        batch_means = [sum(row) / len(row) for row in rows]
        self.seen.append(
            [
                (mean, sum((r - mean) ** 2 for r in row) / (len(row) - self.unbiased))
                for mean, row in zip(batch_means, rows, strict=True)
            ]
        )

    def normalised(self, x: Tensor) -> Tensor:
        out = x.clone()
        for c, (mean, variance) in enumerate(zip(*self.statistics(), strict=True)):
            gamma = 1.0 if self.identity else self.layer.weight[c].item()
            beta = 0.0 if self.identity else self.layer.bias[c].item()
            out[:, c] = (x[:, c] - mean) / (variance + self.layer.eps) ** 0.5 * gamma + beta
        return out


def in_sequence(net: nn.Sequential, make: Callable[[nn.Module], Loops]) -> tuple[list, Callable]:
    """The `Loops` of each batch-norm layer of `net`, and its forward through them."""
    steps = [make(m) if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d) else m for m in net]

    @torch.no_grad()
    def forward(x: Tensor) -> Tensor:
        for step in steps:
            x = step(x)
        return x

    return [step for step in steps if isinstance(step, Loops)], forward


def trained(net: nn.Module, seed: int = 1) -> nn.Module:
    """`net` with γ, β, statistics and counters that no initialisation gives."""
    draws = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for m in net.modules():
            if isinstance(m, nn.modules.batchnorm._BatchNorm):
                for tensor in (m.weight, m.bias, m.running_mean, m.running_var):
                    tensor.copy_(torch.rand(tensor.shape, generator=draws, dtype=torch.float64))
                m.num_batches_tracked.fill_(7)
    return net


def state_of(net: nn.Module, *names: str, status: str = "complete") -> FederationState:
    """A federation whose server's model is `net`."""
    p = dict.fromkeys(names or ("a", "b"), 0.5)
    server = take(tensors(net), tensors(net))
    return FederationState(status, 4, server, {name: {} for name in p}, p)
