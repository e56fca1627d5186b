"""Means over seeds with intervals, paired differences, and the verdicts they allow."""

import inspect
import math
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import stats

from figures._rank_correlation import RankCorrelation as RankCorrelation
from figures._rank_correlation import rank_correlation as rank_correlation
from figures._values import as_values, check_level

EXPERIMENT_VERDICTS = ("supported", "inconclusive", "contradicted")
_BOOTSTRAP_FROM = 10
_RESAMPLES = 9_999
# scipy < 1.15 knows the generator under its former name.
_RNG = "rng" if "rng" in inspect.signature(stats.bootstrap).parameters else "random_state"
_ONE = "one value: no interval"


@dataclass(frozen=True)
class Interval:
    """A mean and its confidence interval; `lower` and `upper` are None where there is none."""

    mean: float
    lower: float | None
    upper: float | None
    n: int
    sd: float | None
    level: float
    method: str


@dataclass(frozen=True)
class PairedDifference:
    """Mean of a − b over common seeds, its interval and the two-sided p-value of "no difference".

    `unpaired` names the seeds that only one side has; they are left out.
    """

    mean: float
    lower: float | None
    upper: float | None
    n: int
    p_value: float | None
    level: float
    method: str
    unpaired: tuple[Any, ...] = ()


def mean_interval(values: object, level: float = 0.95) -> Interval:
    """Mean with its interval: Student t below ten values, BCa bootstrap (Efron 1987) from ten.

    The bootstrap is seeded: the same values in the same order give the same interval. Equal values
    give an interval of width zero, a single value none.

    Raises:
        ValueError: no values, a value that is not finite, or a level outside (0, 1).
    """
    x = as_values(values, "values")
    check_level(level)
    n, mean = len(x), math.fsum(x) / len(x)
    if n == 1:
        return Interval(mean, None, None, 1, None, level, _ONE)
    if np.ptp(x) == 0:
        same = float(x[0])
        return Interval(same, same, same, n, 0.0, level, "all values are equal")
    sd = float(np.std(x, ddof=1))
    lower, upper, method = _interval(x, level)
    return Interval(mean, lower, upper, n, sd, level, method)


def paired_difference(
    a: Mapping[Any, Any], b: Mapping[Any, Any], level: float = 0.95
) -> PairedDifference:
    """Mean of a − b, paired by seed: Student t below ten pairs, BCa and sign flips from ten.

    Where all differences are the same non-zero number, no spread is there to judge by; the exact
    sign-flip test decides, which cannot reach 5 % below six pairs: there is no interval then.

    Raises:
        ValueError: no common seed, or a value that is not finite.
    """
    check_level(level)
    common = [seed for seed in a if seed in b]
    unpaired = tuple(s for s in (*a, *b) if s not in a or s not in b)
    if not common:
        raise ValueError(
            f"nothing to pair: one side has seeds {list(a)}, the other {list(b)}; "
            "run both with the same seeds"
        )
    if unpaired:
        warnings.warn(f"seeds {list(unpaired)} are on one side only and left out", stacklevel=2)
    left = as_values([a[seed] for seed in common], "a")
    right = as_values([b[seed] for seed in common], "b")
    x, n = left - right, len(common)
    mean = math.fsum(x) / n
    # Equal decimal differences differ in their last bits; that is no spread.
    rounding = 8 * np.finfo(float).eps * max(np.abs(left).max(), np.abs(right).max())
    lower: float | None = None
    upper: float | None = None
    p: float | None = None
    if n == 1:
        method = _ONE
    elif np.ptp(x) <= rounding:
        p = 1.0 if abs(mean) <= rounding else 2.0 ** (1 - n)
        method = "all differences are equal: sign flips"
        if p == 1.0 or p <= 1 - level:
            lower = upper = mean = 0.0 if p == 1.0 else mean
    else:
        lower, upper, method = _interval(x, level)
        p = _p_value(x)
        method = f"paired {method}"
    return PairedDifference(mean, lower, upper, n, p, level, method, unpaired)


def verdict(difference: PairedDifference, direction: str) -> str:
    """What the interval says of the claim that a − b is `greater` or `less` than zero.

    `supported` or `contradicted` only where the interval excludes zero, else `inconclusive`.
    """
    if direction not in ("greater", "less"):
        raise ValueError(f"direction is 'greater' or 'less', not {direction!r}")
    if difference.lower is None or difference.upper is None:
        return "inconclusive"
    sign = (difference.lower > 0) - (difference.upper < 0)
    if sign == 0:
        return "inconclusive"
    return "supported" if (sign > 0) == (direction == "greater") else "contradicted"


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's step-down adjustment (Holm 1979) of the p-values of one table, in their order."""
    p = np.asarray(p_values, dtype=float)
    if p.ndim != 1 or not np.all((p >= 0) & (p <= 1)):
        raise ValueError(f"p-values lie between 0 and 1, not {list(p_values)}")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    steps = (len(p) - np.arange(len(p))) * p[order]
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return tuple(float(value) for value in adjusted)


def verdicts_holm(
    differences: Mapping[Hashable, PairedDifference],
    directions: str | Mapping[Hashable, str],
) -> dict[Hashable, tuple[str, float]]:
    """Verdict and Holm-adjusted p-value of every comparison of one table.

    A comparison is decided only where its interval excludes zero and its adjusted p-value is at
    most 1 − level. One without a p-value counts in the family, with p = 1.
    """
    names = list(differences)
    adjusted = holm([1.0 if (p := differences[k].p_value) is None else p for k in names])
    result: dict[Hashable, tuple[str, float]] = {}
    for name, p in zip(names, adjusted, strict=True):
        difference = differences[name]
        found = verdict(difference, directions if isinstance(directions, str) else directions[name])
        result[name] = (found if p <= 1 - difference.level else "inconclusive", p)
    return result


def _interval(x: Float[np.ndarray, " n"], level: float) -> tuple[float, float, str]:
    n = len(x)
    if n >= _BOOTSTRAP_FROM:
        generator: dict[str, Any] = {_RNG: np.random.default_rng(0)}
        low, high = stats.bootstrap(
            (x,),
            np.mean,
            n_resamples=_RESAMPLES,
            confidence_level=level,
            method="BCa",
            **generator,
        ).confidence_interval
        if math.isfinite(low) and math.isfinite(high):
            return float(low), float(high), f"BCa bootstrap, n = {n}"
    half = float(stats.t.ppf((1 + level) / 2, n - 1) * np.std(x, ddof=1) / math.sqrt(n))
    mean = math.fsum(x) / n
    return mean - half, mean + half, f"Student t, n = {n}"


def _p_value(x: Float[np.ndarray, " n"]) -> float:
    if len(x) < _BOOTSTRAP_FROM:
        _, p = stats.ttest_1samp(x, 0.0)
        return float(p)  # type: ignore[arg-type]
    return _sign_flip_p(x)


def _sign_flip_p(x: Float[np.ndarray, " n"]) -> float:
    """Two-sided p of a mean of zero under random signs: exact to 13 values, then sampled."""
    n = len(x)
    if n <= 13:
        bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        sums = np.abs((2 * bits - 1) @ x)
        extra = 0
    else:
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(_RESAMPLES, n))
        sums, extra = np.abs(signs @ x), 1
    # The observed arrangement must count itself, whatever the order of summation.
    reached = sums >= abs(x.sum()) - 1e-12 * np.abs(x).sum()
    return float((reached.sum() + extra) / (len(sums) + extra))
