"""Suprema over an interval, rounding included, of functions that are analytic around it.

Let e(ζ) + 1 = Σ_l T_l(ζ) with T_l(ζ) = C e^{kζ} (u + (1 - u)e^ζ)^{-p}, C > 0 and 0 <= u <= 1. For
z = |z|e^{iβ}, |u + (1 - u)z|² = (u + (1 - u)|z|)² - 2u(1 - u)|z|(1 - cos β), which is at least
(u + (1 - u)|z|)² cos²(β/2), so |T_l| grows in the strip |Im ζ| <= β by at most cos(β/2)^{-p}: with
β² <= 8/p by a small factor. A Chebyshev interpolant of degree K - 1 on an interval of half length
β/8, whose Bernstein ellipse ρ = 8 + √65 stays in the strip, is therefore wrong by at most
2 sup|e| ρ^{-K}/(ρ - 1) · ρ; and a polynomial of degree < K sampled at 2K Chebyshev points is at
most 1/cos(π/4) times as large in between (Ehlich and Zeller 1964).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

_DEGREE = 14
_SAMPLES = 2 * _DEGREE
_RHO = 8 + math.sqrt(65)
_NEIGHBOURS = 4  # subintervals that the ellipse reaches into on either side
_COSINES = np.cos((np.arange(_SAMPLES) + 0.5) * np.pi / _SAMPLES)


@dataclass(frozen=True)
class Pieces:
    """Subintervals of log z, and for each a bound of |e| on it.

    Attributes:
        left, right: ends of the subintervals.
        bound: suprema, rounded upwards.
    """

    left: Float[np.ndarray, " j"]
    right: Float[np.ndarray, " j"]
    bound: Float[np.ndarray, " j"]


def suprema(
    sums: Callable[[Float[np.ndarray, " s"]], Float[np.ndarray, " s"]],
    low: float,
    high: float,
    power: float,
    rounding: float,
) -> Pieces:
    """Bounds |Σ_l T_l - 1| on the subintervals of [low, high], an interval of log z.

    Args:
        sums: Σ_l T_l at the given log z.
        low: log of the least z.
        high: log of the greatest z.
        power: the largest p of the terms.
        rounding: relative error of a computed Σ_l T_l.
    """
    beta = min(1.0, math.sqrt(8 / power))
    half = beta / 8
    count = max(1, math.ceil((high - low) / (2 * half)))
    # Room for the rounding of the ends.
    middle, step = (low + high) / 2, max(1e-12, (high - low) / (2 * count)) * (1 + 1e-9)
    index = np.arange(-_NEIGHBOURS, count + _NEIGHBOURS) - (count - 1) / 2
    centres = middle + 2 * step * index
    points = centres[:, None] + step * _COSINES
    values = sums(points.ravel()).reshape(points.shape)
    largest = values.max(axis=1)
    # d log T / dζ <= power + 3, and samples lie within step·π/56 of any point.
    growth = math.exp((power + 3) * step * np.pi / _SAMPLES) * math.cos(beta / 2) ** -power
    windows = np.lib.stride_tricks.sliding_window_view(largest, 2 * _NEIGHBOURS + 1)
    analytic = 1 + growth * windows.max(axis=1)
    rest = 2 * analytic * _RHO ** (1 - _DEGREE) / (_RHO - 1)
    inner = slice(_NEIGHBOURS, len(centres) - _NEIGHBOURS)
    sampled = np.abs(values[inner] - 1).max(axis=1) + rounding * largest[inner]
    bound = (sampled + rest) * (1 / math.cos(math.pi / 4)) + rest
    left, right = centres[inner] - step, centres[inner] + step
    return Pieces(left, right, bound * (1 + 1e-6))
