"""Full whitening of what comes to each batch-norm layer, and scaling of each channel beside it."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from empirical.batch_checks import DivergedError
from empirical.checks import is_real
from empirical.taps import passes

CUT = 1e-6
"""Directions of less than this share of the largest variance are taken as dead."""


@dataclass(frozen=True, eq=False)
class Whitening:
    """What whitens one layer's channels (ZCA), and what scales each of them alone.

    Attributes:
        mean: (channels,) μ over all images and positions.
        variance: (channels,) the diagonal of Σ, dead directions and all.
        root: (channels, channels) the symmetric Σ^(-1/2), a pseudo-inverse where Σ has dead
            directions.
        kept: how many directions are not dead.
    """

    mean: Float64[Tensor, " channels"]
    variance: Float64[Tensor, " channels"]
    root: Float64[Tensor, "channels channels"]
    kept: int


@dataclass
class _Moments:
    """Sums over positions of one layer, about a shift that keeps them from cancelling."""

    shift: Tensor
    count: int = 0
    sums: Tensor = field(init=False)
    products: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.sums = torch.zeros_like(self.shift)
        self.products = self.shift.new_zeros(len(self.shift), len(self.shift))

    def add(self, rows: Tensor) -> None:
        rows = rows - self.shift
        self.count += len(rows)
        self.sums += rows.sum(0)
        self.products += rows.T @ rows


def whitenings(net: nn.Module, inputs: Tensor, cut: float = CUT) -> list[Whitening]:
    """What whitens every batch-norm layer's input over its channels, layers as `layer_features`.

    Mean and covariance (divided by their number) are those of all images and positions; directions
    of at most `cut` times the largest variance count as dead, and Σ^(-1/2) is zero on them.

    Args:
        net: as for `layer_features`.
        inputs: as for `layer_features`; all of them give the statistics.
        cut: in [0, 1).

    Raises:
        TypeError, ValueError: as `layer_features`; a cut outside [0, 1); one value per channel,
            which has no covariance.
    """
    if not (is_real(cut) and 0 <= cut < 1):
        raise ValueError(f"cut is a share of the largest variance in [0, 1), got {cut!r}")
    moments: dict[str, _Moments] = {}
    for batch in passes(net, inputs):
        for name, (_, r) in batch.items():
            rows = r.detach().movedim(1, -1).reshape(-1, r.shape[1]).double()
            moments.setdefault(name, _Moments(rows.mean(0))).add(rows)
    return [_whitening(name, found, cut) for name, found in moments.items()]


def _whitening(name: str, found: _Moments, cut: float) -> Whitening:
    if found.count < 2:
        raise ValueError(
            f"layer '{name}' has one value per channel, which has no covariance: give more images"
        )
    offset = found.sums / found.count
    covariance = found.products / found.count - torch.outer(offset, offset)
    if not bool(covariance.isfinite().all()):
        raise DivergedError(f"the covariance at layer '{name}' is not finite: the model diverged")
    values, vectors = torch.linalg.eigh(0.5 * (covariance + covariance.T))
    alive = values > max(cut * float(values[-1]), 0.0)
    root = vectors[:, alive] / values[alive].sqrt() @ vectors[:, alive].T
    mean, variance = found.shift + offset, covariance.diagonal().clamp(min=0.0)
    return Whitening(mean.cpu(), variance.cpu(), root.cpu(), int(alive.sum()))
