"""Where functions of one variable change sign, many at once."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

Array = np.ndarray

_HALVINGS = 48  # of a cell of the grid, to below 1e-14 of its width
_TOGETHER = 2**18  # values in memory at once


@dataclass(frozen=True, eq=False)
class Crossings:
    """Sign changes of functions g_1 … g_r along a grid.

    Attributes:
        first: whether g_i is positive at the grid's first point, (r,).
        row: which function changes its sign, (k,).
        place: where, (k,).
        direction: +1 from negative to positive, −1 back, (k,).
    """

    first: Bool[Array, " r"]
    row: Int[Array, " k"]
    place: Float[Array, " k"]
    direction: Float[Array, " k"]

    def share(self, beyond: Float[Array, " k"]) -> Float[Array, " r"]:
        """P(g_i(T) > 0) where P(T > place) is `beyond`, T between the ends of the grid."""
        out = self.first.astype(np.float64)
        np.add.at(out, self.row, self.direction * beyond)
        return out


def crossings(
    g: Callable[[Float[Array, " n"], Int[Array, " n"]], Float[Array, " n"]],
    rows: int,
    grid: Float[Array, " m"],
) -> Crossings:
    """Finds the sign changes of g(·, row) between neighbouring points of the grid, by bisection.

    Two changes within one cell of the grid are not seen: halve the cells to see whether any are.
    """
    signs = []
    for some in np.array_split(np.arange(rows), max(1, rows * len(grid) // _TOGETHER)):
        values = g(np.tile(grid, len(some)), np.repeat(some, len(grid)))
        signs.append((values > 0).reshape(len(some), -1))
    positive = np.concatenate(signs)
    row, cell = np.nonzero(positive[:, 1:] != positive[:, :-1])
    low, high = grid[cell], grid[cell + 1]
    rising = positive[row, cell + 1]
    for _ in range(_HALVINGS if len(row) else 0):
        middle = 0.5 * (low + high)
        after = (g(middle, row) > 0) == rising
        low, high = np.where(after, low, middle), np.where(after, middle, high)
    return Crossings(positive[:, 0], row, 0.5 * (low + high), np.where(rising, 1.0, -1.0))
