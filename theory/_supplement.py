"""Kernels of two points from their angle alone, to some forty digits: no rounding to argue about.

With e = π − θ, sin θ = sin e and cos θ = −cos e, so that for unit points

    κ₁ = h = (sin θ + (π − θ) cos θ)/2π = (sin e − e cos e)/2π,    P₀ = e/2π.

t = sin e − e cos e = Σ_{k≥1} (−1)^{k+1} 2k e^{2k+1}/(2k + 1)! alternates, and its terms fall from
the first on for e < π; so do those of cos e from the second on. Thirty terms leave less than
10^-48 of the first one. With 60 digits a sum of thirty is wrong by less than 10^-57 of its largest
term, and π to 60 digits moves e >= 10^-16 by 10^-43 of itself at most: all of it lies far below
`SLACK`, by which results are widened.
"""

import math
from contextlib import AbstractContextManager
from decimal import Context, Decimal, localcontext

from theory._loose import Real
from theory._validate import real
from theory.spectrum import Enclosure

SLACK = Decimal("1e-30")
_CONTEXT = Context(prec=60)
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
_TERMS = 30


def digits() -> AbstractContextManager[Context]:
    """The context in which everything here is computed."""
    return localcontext(_CONTEXT)


def supplement(angle: Real) -> Decimal:
    """Returns e = π − θ of an angle taken as exact.

    Raises:
        TypeError: no real number.
        ValueError: an angle outside (0, π): such points are parallel.
    """
    value = real(angle, "angle")
    if not 0 < value <= math.pi:  # the double nearest to π lies below it
        raise ValueError(f"angle must lie between 0 and π (radians), not {value!r}.")
    return _PI - Decimal(value)


def coupling(e: Decimal) -> Decimal:
    """Returns g = 2h = (sin e − e cos e)/π, the cosine of two unit points in the space of κ₁."""
    return _difference(e) / _PI


def slope(e: Decimal) -> Decimal:
    """Returns cos θ P₀/h = −e cos e/(sin e − e cos e)."""
    return -e * _cosine(e) / _difference(e)


def _difference(e: Decimal) -> Decimal:
    """Returns sin e − e cos e, without the cancellation at small e."""
    square, term, total = e * e, e * e * e / 3, Decimal(0)
    for k in range(1, _TERMS + 1):
        total += term
        term *= -square * (k + 1) / (k * (2 * k + 2) * (2 * k + 3))
    return total


def _cosine(e: Decimal) -> Decimal:
    square, term, total = e * e, Decimal(1), Decimal(0)
    for k in range(1, _TERMS + 1):
        total += term
        term *= -square / ((2 * k - 1) * (2 * k))
    return total


def enclosed(low: Decimal, high: Decimal, method: str) -> Enclosure:
    """Rounds both ends outwards to doubles."""
    return Enclosure(
        math.nextafter(float(low), -math.inf), math.nextafter(float(high), math.inf), method
    )
