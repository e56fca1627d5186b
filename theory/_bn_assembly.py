"""Blocks of BN kernels between groups of points with one covariance each, from their metrics."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from scipy import linalg
from threadpoolctl import threadpool_info, threadpool_limits

from theory._bn_blocks import mirrored
from theory._bn_line import on_line
from theory._bn_metric import Demand, Pair, Tally, add, rule_for
from theory._bn_setting import Group, Setting
from theory._elliptic import pair_rule
from theory._pairs import UNIT_ROUNDOFF
from theory._scales import NO_EPS, scale_rule

Array = np.ndarray
_WORTH_THREADS = 256


def block(
    given: Setting, first: Group, second: Group | None, level: float
) -> tuple[Float[Array, "n m"], Tally]:
    """The block between two groups of one covariance each, or within one (second None)."""
    orders, dimension = (1 if given.component == "magnitude" else 3), given.points.shape[1]
    scales = NO_EPS
    if given.eps > 0:
        scales = scale_rule(dimension, given.alpha, orders, level / 4)
    if dimension == 1:
        return on_line(given, first, second, scales)
    demand = Demand(given.eps, scales, given.component, level / 2)
    errors = {"tilt": given.tilt, "defect": given.defect}
    if second is None:
        own = first.covariance
        out = np.zeros((len(first.rows),) * 2)
        tally = add(Pair(first.points, None, own, (own, own), 0.0, **errors), demand, out)
        mirrored(out)
        return out, tally
    # Of all S + (eps/t)I those with the largest t differ most; the others lie nearer to 1.
    low, high = _ratios(first, second, given.eps / float(scales.t.max()))
    if given.eps > 0:
        low, high = min(low, 1.0), max(high, 1.0)
    rule = pair_rule(low, high, 1 if orders == 1 else 4, level / 8)
    pairs = [
        Pair(
            first.points,
            second.points,
            first.covariance + square * second.covariance,
            (first.covariance, second.covariance),
            float(square),
            float(weight),
            max(rule.errors),
            **errors,
        )
        for square, weight in zip(rule.squares, rule.weights, strict=True)
    ]
    return _summed(pairs, demand, (len(first.rows), len(second.rows)))


def _summed(
    pairs: list[Pair], demand: Demand, shape: tuple[int, int]
) -> tuple[Float[Array, "n m"], Tally]:
    """Sums metrics in their order, each computed by one thread: as many as BLAS would use.

    Small metrics are all Python, which threads only hinder.
    """

    def one(pair: Pair) -> tuple[Array, Tally]:
        part = np.zeros(shape)
        return part, add(pair, likely, part)

    out = np.zeros(shape)
    # The middle metric's rule is where the others' searches begin.
    middle = len(pairs) // 2
    likely = replace(demand, hint=rule_for(pairs[middle], demand))
    total = Tally()
    cores = max([pool["num_threads"] for pool in threadpool_info()], default=1)
    threads = cores if len(pairs[0].metric) >= _WORTH_THREADS else 1
    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        for part, tally in (pool.map if threads > 1 else map)(one, pairs):
            out += part
            total.error += tally.error
            total.size += tally.size
            total.nodes += tally.nodes
            total.bases += tally.bases
    return out, total


def _ratios(first: Group, second: Group, shift: float) -> tuple[float, float]:
    """Bounds of vᵀS_i v/vᵀS_j v, S + shift·I: the pencil's eigenvalues, with room for rounding."""
    own = [group.spectrum + shift for group in (first, second)]
    d = len(first.covariance)
    # S_i - μS_j, scaled to S_j = I, is known up to the condition times the unit roundoff.
    doubt = 64 * d * UNIT_ROUNDOFF * max(float(s[-1]) / max(float(s[0]), 1e-300) for s in own)
    if doubt < 0.01:
        some, other = (group.covariance + shift * np.eye(d) for group in (first, second))
        values = linalg.eigh(some, other, eigvals_only=True)
        reverse = linalg.eigh(other, some, eigvals_only=True)
        room = 1 + 1e-6 + 4 * doubt
        return float(1 / (reverse[-1] * room)), float(values[-1] * room)
    # LAPACK's eigenvalues are known to a few d u of the largest, and no covariance has vᵀSv < 0.
    doubts = [4 * d * UNIT_ROUNDOFF * float(s[-1]) for s in own]
    least = [max(float(s[0]) - e, shift, 1e-300) for s, e in zip(own, doubts, strict=True)]
    most = [float(s[-1]) + e for s, e in zip(own, doubts, strict=True)]
    return least[0] / most[1], most[0] / least[1]
