"""Whether two sets of runs that differ in their seeds agree, and a row of the table."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np


@dataclass(frozen=True)
class Criterion:
    """How far two means may lie apart: `errors` standard errors of their difference, + `margin`."""

    errors: float
    margin: float


# Accuracies in per cent.
MEAN, CLIENT = Criterion(3, 0.5), Criterion(4, 1.5)
# Nats. Half a point more of the right digit's probability p moves its loss by 0.005 / p, which is
# 0.005 at least: the strictest reading of "likewise".
LOSS = Criterion(3, 0.005)


@dataclass(frozen=True)
class Comparison:
    """One quantity of both codes, a value per seed.

    Attributes:
        what: the quantity.
        ours, theirs: its values, two seeds at least.
        criterion: what is allowed.
    """

    what: str
    ours: Sequence[float]
    theirs: Sequence[float]
    criterion: Criterion

    def __post_init__(self) -> None:
        if min(len(self.ours), len(self.theirs)) < 2:
            raise ValueError(f"{self.what}: a standard error needs two seeds at least")

    @property
    def difference(self) -> float:
        """Our mean minus theirs."""
        return fmean(self.ours) - fmean(self.theirs)

    @property
    def error(self) -> float:
        """Standard error of the difference: seeds are independent, variances need not be equal."""
        return math.hypot(*(_spread(v) / math.sqrt(len(v)) for v in (self.ours, self.theirs)))

    @property
    def allowance(self) -> float:
        """The largest difference allowed."""
        return self.criterion.errors * self.error + self.criterion.margin

    @property
    def agrees(self) -> bool:
        """Whether the difference is allowed; never where a value is no number."""
        return abs(self.difference) <= self.allowance

    def row(self, digits: int) -> str:
        """A line of a Markdown table."""
        ours, theirs = (
            f"{fmean(v):.{digits}f} ({_spread(v):.{digits}f})" for v in (self.ours, self.theirs)
        )
        verdict = "within" if self.agrees else "**outside**"
        return (
            f"| {self.what} | {ours} | {theirs} | {self.difference:+.{digits}f} | "
            f"{self.error:.{digits}f} | {self.allowance:.{digits}f} | {verdict} |"
        )


def _spread(values: Sequence[float]) -> float:
    """Standard deviation over seeds, n - 1."""
    return float(np.std(values, ddof=1))


def compared(
    ours: Mapping[str, Sequence[float]], theirs: Mapping[str, Sequence[float]], loss: str
) -> list[Comparison]:
    """Mean over the clients, each client, and the training loss.

    Args:
        ours: client -> accuracy in per cent by seed, and `loss` -> training loss by seed.
        theirs: the same of the other code.
        loss: the key that is no client.

    Raises:
        ValueError: they name different clients.
    """
    if ours.keys() != theirs.keys():
        raise ValueError(f"ours has {sorted(ours)}, theirs {sorted(theirs)}")
    clients = [name for name in theirs if name != loss]
    mine, other = (
        [fmean(seed) for seed in zip(*(values[name] for name in clients), strict=True)]
        for values in (ours, theirs)
    )
    return [
        Comparison("mean over clients", mine, other, MEAN),
        *(Comparison(name, ours[name], theirs[name], CLIENT) for name in clients),
        Comparison(loss, ours[loss], theirs[loss], LOSS),
    ]
