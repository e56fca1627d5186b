"""The rows of the table, and the grids from which their hyper-parameters are chosen."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from empirical.methods import Method, methods

METHODS = (
    "fedavg",
    "fedprox",
    "scaffold",
    "fedadam",
    "fednova",
    "fedbn",
    "moon",
    "feddc",
    "perfedavg",
)
"""The rows of Table I, names of `methods()`."""


@dataclass(frozen=True)
class Grid:
    """Values to try, and the authors' own.

    Attributes:
        values: setting -> the values, each combined with each.
        authors: setting -> the authors' default, one of them.
    """

    values: Mapping[str, tuple[float, ...]]
    authors: Mapping[str, float]

    def candidates(self) -> list[dict[str, float]]:
        """Every combination, in the order of the values."""
        rows = itertools.product(*self.values.values())
        return [dict(zip(self.values, row, strict=True)) for row in rows]


GRID: dict[str, Grid] = {
    "fedprox": Grid({"mu": (0.001, 0.01, 0.1, 1.0)}, {"mu": 0.01}),
    "scaffold": Grid({"server_lr": (0.5, 1.0, 1.5)}, {"server_lr": 1.0}),
    "fedadam": Grid(
        {"server_lr": (0.003, 0.01, 0.03, 0.1), "tau": (1e-3, 1e-2)},
        {"server_lr": 0.1, "tau": 1e-3},
    ),
    "fednova": Grid({"momentum": (0.0, 0.5, 0.9)}, {"momentum": 0.0}),
    "moon": Grid({"mu": (0.1, 1.0, 5.0, 10.0)}, {"mu": 5.0}),
    "feddc": Grid({"alpha": (0.001, 0.01, 0.1)}, {"alpha": 0.01}),
    "perfedavg": Grid(
        {"alpha": (0.01, 0.03), "beta": (0.001, 0.01, 0.03)}, {"alpha": 0.01, "beta": 0.001}
    ),
}
"""Algorithm -> its grid; FedAvg and FedBN have nothing to choose."""


def registered(wanted: tuple[str, ...] = ()) -> list[Method]:
    """The rows of the table, or those wanted, that are there to run."""
    known = methods()
    return [known[name] for name in wanted or METHODS if name in known]
