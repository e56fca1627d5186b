"""Spearman's rank correlation with an interval, also of points that come in groups."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import stats

from figures._values import as_values, check_level


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's rank correlation and its interval; None where there is none.

    `n` counts the points, `groups` those of them that are independent.
    """

    value: float | None
    lower: float | None
    upper: float | None
    n: int
    groups: int
    level: float
    method: str


def rank_correlation(
    x: object, y: object, groups: Sequence[Hashable] | None = None, level: float = 0.95
) -> RankCorrelation:
    """Spearman's rank correlation with the interval of Bonett and Wright (2000).

    On Fisher's scale: artanh r ± z √((1 + r²/2)/(n − 3)), for n points that are independent. Points
    of one group are not: n is then the number of groups, as if the points of a group told the same
    thing. That is true at worst, so the interval is wide rather than wrong. At r = ±1 the half
    width is that of the next correlation that n points can have.

    Args:
        x: one side of the pairs.
        y: the other side.
        groups: of each pair, what it shares with those of the same group; None for none.
        level: of the interval.

    Raises:
        ValueError: lists of different lengths, a value that is not finite, a level outside (0, 1).
        TypeError: values that are no real numbers.
    """
    first, second = as_values(x, "x"), as_values(y, "y")
    check_level(level)
    names = list(range(len(first))) if groups is None else list(groups)
    if not len(first) == len(second) == len(names):
        lengths = f"{len(first)}, {len(second)} and {len(names)}"
        raise ValueError(f"x, y and groups must be of one length, not {lengths}")
    n, independent = len(first), len(set(names))
    what = "points" if groups is None else "groups"
    ranks = (_ranks(first), _ranks(second))
    if n < 2 or min(np.ptp(values) for values in ranks) == 0:
        same = "fewer than two points" if n < 2 else "all values of one side are equal"
        return RankCorrelation(None, None, None, n, independent, level, f"{same}: no correlation")
    # Rounded: the order of summation must not decide whether the ranks agree in full.
    r = round(float(np.corrcoef(ranks[0], ranks[1])[0, 1]), 12)
    if independent < 4:
        method = f"{independent} {what}: no interval below four"
        return RankCorrelation(r, None, None, n, independent, level, method)
    most = 1 - 12 / (n * (n * n - 1))
    ends = _interval(r, most, independent, level)
    method = f"Bonett and Wright, {independent} {what}"
    return RankCorrelation(r, *ends, n, independent, level, method)


def _interval(r: float, most: float, n: int, level: float) -> tuple[float, float]:
    """Of n independent points; `most` is the largest correlation below 1."""
    inner = min(max(r, -most), most)
    half = stats.norm.ppf((1 + level) / 2) * math.sqrt((1 + inner**2 / 2) / (n - 3))
    lower, upper = (math.tanh(math.atanh(inner) + sign * half) for sign in (-1, 1))
    return -1.0 if r == -1 else min(lower, r), 1.0 if r == 1 else max(upper, r)


def _ranks(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Mean ranks; equal decimal numbers that differ in their last bits are ties."""
    scale = np.abs(values).max() or 1.0
    return stats.rankdata(np.round(values / scale, 12))
