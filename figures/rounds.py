"""Rounds to a target, with curves that never reach it, and intervals per row of a table."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from figures.statistics import mean_interval


@dataclass(frozen=True)
class CensoredRounds:
    """Rounds to target over seeds; None stands for "not within `horizon` rounds".

    The median is given only where it does not depend on how late the unreached seeds would be;
    a mean would have to leave them out, which flatters the slower method.
    """

    median: float | None
    first: int | None
    last: int | None
    reached: int
    n: int
    horizon: int

    def __str__(self) -> str:
        """The median with the range, for example `7 (5 to >15), 2 of 3 seeds reached`."""
        over = f">{self.horizon}"
        if self.reached == 0:
            return f"{over}, none of {self.n} seeds reached"
        median = over if self.median is None else f"{self.median:g}"
        last = over if self.last is None else str(self.last)
        span = f"{median} ({self.first} to {last})"
        whole = self.reached == self.n
        return span if whole else f"{span}, {self.reached} of {self.n} seeds reached"


def rounds_to_target(
    curve: Mapping[int, Any], target: float | int, side: str = "below"
) -> int | None:
    """The first round whose value is at or `below` (or `above`) the target; None if there is none.

    Raises:
        ValueError: an empty curve, a target or value that is not finite, another side.
    """
    if side not in ("below", "above"):
        raise ValueError(f"side is 'below' or 'above', not {side!r}")
    if not curve:
        raise ValueError("the curve is empty: it needs at least one round")
    if not all(map(math.isfinite, (target, *curve.values()))):
        raise ValueError("the target and every value of the curve must be finite")
    for k in sorted(curve):
        if curve[k] <= target if side == "below" else curve[k] >= target:
            return k
    return None


def summarise_rounds(rounds: Sequence[int | None], horizon: int) -> CensoredRounds:
    """Median and range of rounds to target, unreached ones counted as later than `horizon`.

    Raises:
        ValueError: no seeds, or a round beyond the horizon.
    """
    if not rounds:
        raise ValueError("there are no seeds to summarise")
    found = sorted(k for k in rounds if k is not None)
    if found and found[-1] > horizon:
        raise ValueError(f"round {found[-1]} lies beyond the horizon of {horizon} rounds")
    n = len(rounds)
    low, high = (n - 1) // 2, n // 2
    median = (found[low] + found[high]) / 2 if high < len(found) else None
    whole = len(found) == n
    return CensoredRounds(
        median,
        found[0] if found else None,
        found[-1] if whole else None,
        len(found),
        n,
        horizon,
    )


def interval_table(
    frame: pl.DataFrame, by: Sequence[str], value: str = "value", level: float = 0.95
) -> pl.DataFrame:
    """One row per group, in order of first appearance: mean, lower, upper, n, sd, method.

    Each group must hold one value per seed: average over clients before.
    """
    missing = [name for name in (*by, value) if name not in frame.columns]
    if missing:
        raise ValueError(f"the table has no columns {missing}; it has {frame.columns}")
    rows = []
    for key, group in frame.group_by(list(by), maintain_order=True):
        found = mean_interval(group[value].to_numpy(), level)
        rows.append((*key, found.mean, found.lower, found.upper, found.n, found.sd, found.method))
    kinds = {"mean": pl.Float64, "lower": pl.Float64, "upper": pl.Float64, "n": pl.Int64}
    kinds |= {"sd": pl.Float64, "method": pl.String}
    schema = {name: frame.schema[name] for name in by} | kinds
    return pl.DataFrame(rows, schema=schema, orient="row")
