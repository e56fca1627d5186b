"""Two Gaussians on the line: greatest gap of their distribution functions, and total variation."""

import numpy as np
from scipy import special

from theory._enclosure import Enclosure

Array = np.ndarray

ROUNDING = 2.0**-46  # of a sum of four values of Φ, each good to some 2^-51, at rounded points


def crossings(gap: Array, s: Array, t: Array) -> tuple[Array, Array]:
    """u₊ ≥ u₋ where the densities of N(0, s²) and N(m, t²) cross, x = su; s ≤ t, m = gap ≥ 0.

    With g = s/t and ν = m/t they solve (1 − g²)u² + 2νgu = ν² + 2 ln(1/g), so that with
    R² = ν² + 2(1 − g²) ln(1/g): u₊ = (ν² + 2 ln(1/g))/(νg + R), u₋ = −(νg + R)/(1 − g²).
    """
    nu, g = np.where(gap == 0, 0.0, gap / t), np.where(t > 0, s / t, 1.0)
    log, rest = -np.log(g), (1 - g) * (1 + g)
    root = nu * g + np.sqrt(nu * nu + 2 * rest * log)
    return (nu * nu + 2 * log) / root, -root / rest


def tails(gap: Array, s: Array, t: Array) -> tuple[Array, Array]:
    """|F − G| where the densities of N(0, s²) and N(m, t²) cross, m = gap ≥ 0; arrays alike.

    Their sum is the total variation, as {f > g} is an interval between the crossings or the
    outside of it, and the first, the larger, is sup |F − G|. With s ≤ t they are
    Φ(u₊) − Φ(gu₊ − ν) and Φ(gu₋ − ν) − Φ(u₋). A law without variance is a point.
    """
    gap, s, t = np.broadcast_arrays(gap, np.minimum(s, t), np.maximum(s, t))
    with np.errstate(all="ignore"):
        nu, g = np.where(gap == 0, 0.0, gap / t), np.where(t > 0, s / t, 1.0)
        upper, lower = crossings(gap, s, t)
        first = special.ndtr(upper) - special.ndtr(g * upper - nu)
        second = special.ndtr(g * lower - nu) - special.ndtr(lower)
    same = g == 1
    first = np.where(same, special.erf(nu / np.sqrt(8.0)), first)
    second = np.where(same | ~np.isfinite(lower), 0.0, second)
    point = (g == 0) | ~np.isfinite(nu)
    first = np.where(point, special.ndtr(nu), first)
    second = np.where(point, special.ndtr(-nu), second)
    return np.clip(first, 0.0, 1.0), np.clip(second, 0.0, 1.0)


def greatest_gap(gap: Array, s: Array, t: Array) -> Array:
    """sup_x |F(x) − G(x)| of N(0, s²) and N(gap, t²), gap ≥ 0: their Kolmogorov distance.

    It grows with the gap, and for a fixed point x each of F and G is monotone in its own standard
    deviation: over a box of (s, t) the supremum is at one of its corners.
    """
    return tails(gap, s, t)[0]


def variations(gap: Array, s: Array, t: Array) -> Array:
    """Total variation of N(0, s²) and N(gap, t²), gap ≥ 0."""
    return np.add(*tails(gap, s, t))


def variation(gap: float, s: float, t: float) -> Enclosure:
    """The total variation of one pair, enclosed."""
    if s == t and gap == 0:
        return Enclosure(0.0, 0.0, "exact: the laws are the same")
    if min(s, t) == 0:
        return Enclosure(1.0, 1.0, "exact: one law is a point")
    value = float(variations(*(np.array([x]) for x in (gap, s, t)))[0])
    return around(value, value, "closed form of the crossings of the densities")


def around(low: float, high: float, method: str, largest: float = 1.0) -> Enclosure:
    """An enclosure within [0, largest], with the rounding of Φ added."""
    slack = largest * ROUNDING
    method += ", rounding estimated"
    return Enclosure(max(low - slack, 0.0), min(high + slack, largest), method)
