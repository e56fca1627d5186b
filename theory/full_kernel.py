"""Corollary III.6 does not extend to the full kernel Λ = V/α² + G: where it fails, exactly.

f and f* share the directions v_k, so that V is dense in both: Λ = V/α² + G, Λ* = V/α² + G*. Masking
G helps λ_min only if the entries of V between clients do not pull the other way.

**Two points, one per client**, lengths a, b, angle θ, S = λI (`gram`): with s = 1/α² both kernels
have the diagonal δa², δb², δ = (s(1 − 1/d) + 1/d)/2λ, and the off-diagonal entries

    o = sV_o + G_o (Λ),    o* = sV_o (Λ*),    V_o = ab(cos θ P₀ − h/d)/λ,    G_o = ab h/dλ.

The smallest eigenvalue of a symmetric 2×2 matrix with a given diagonal falls with the absolute
value of its off-diagonal entry, and the largest rises. So λ_min(Λ*) < λ_min(Λ) if and only if
|o*| > |o|, that is (sV_o)² > (sV_o + G_o)², G_o(2sV_o + G_o) < 0. For θ < π G_o > 0: hence V_o < 0
and G_o < 2|V_o|/α²,

    λ_min(Λ*) < λ_min(Λ)  ⟺  α < α*,    α*² = −2V_o/G_o = 2 − 2d cos θ P₀/h.

Lengths and λ cancel. With e = π − θ, h = (sin e − e cos e)/2π and P₀ = e/2π this is

    α*² = 2 + 2d e/(tan e − e).

It rises with θ: from the angle a little below 90° at which V_o = 0, through √2 at 90° in every
dimension, to infinity at 180°, α*² ≈ 2 + 6d/e²: no α is large enough for all pairs. Two orthogonal
unit vectors and α = 1, S = I: the entries of Λ off its diagonal, (x·y)P₀, are 0, those of Λ* are
−1/2πd, so that λ_min(Λ) = 1/2 > λ_min(Λ*) = 1/2 − 1/2πd. λ_max(Λ*) = 1/2 + 1/2πd > λ_max(Λ) too.

**What remains** is the bound that the theorem uses: λ_min(Λ*) >= λ_min(V)/α² + λ_min(G*), which is
no smaller than λ_min(V)/α² + λ_min(G).
"""

import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from theory._client_kernels import Kernel, both_kernels
from theory._comparable import as_alpha, comparable
from theory._loose import ArrayLike, PerClient, Real, Whole
from theory._pairs import UNIT_ROUNDOFF
from theory._supplement import SLACK, digits, enclosed, slope, supplement
from theory._validate import real
from theory.inequality import Inequality, as_text, in_words
from theory.spectrum import Enclosure, largest_eigenvalue, smallest_eigenvalue

_MOST = 290  # decades of an entry


@dataclass(frozen=True)
class FullKernelComparison:
    """Λ∞ = V/α² + G against Λ*∞ = V/α² + G*.

    Attributes:
        aggregated: λ_min(Λ∞).
        client_specific: λ_min(Λ*∞).
        largest_aggregated: λ_max(Λ∞).
        largest_client_specific: λ_max(Λ*∞).
        alpha: the scale of the initialisation.
        method: how the kernels were computed.
        one_client: whether there is one client, so that Λ∞ and Λ*∞ are the same matrix.
    """

    aggregated: Enclosure
    client_specific: Enclosure
    largest_aggregated: Enclosure
    largest_client_specific: Enclosure
    alpha: float
    method: str
    one_client: bool = False

    @property
    def inequality(self) -> Inequality:
        """λ_min(Λ) ≤ λ_min(Λ*): "violated" where it certainly fails, which it can."""
        return Inequality(
            "λ_min(Λ∞) ≤ λ_min(Λ*∞)",
            "Corollary III.6, stretched",
            self.aggregated,
            self.client_specific,
            self.one_client,
        )

    def __str__(self) -> str:
        """A block of text for a terminal."""
        return "\n".join(
            (
                f"λ_min(Λ*∞) ≥ λ_min(Λ∞) at α = {self.alpha:g}: {in_words(self.inequality)}",
                f"  λ_min(Λ∞)  = {as_text(self.aggregated)}",
                f"  λ_min(Λ*∞) = {as_text(self.client_specific)}",
            )
        )


def compare_full_kernels(
    x: ArrayLike,
    client: ArrayLike,
    alpha: Real = 1.0,
    covariances: PerClient = 1.0,
    *,
    tolerance: Real = 1e-10,
) -> FullKernelComparison:
    """Compares λ_min and λ_max of Λ∞ and of Λ*∞, both with S_i for client i.

    Closed forms where every S_i = λ_i I, `bn_gram_matrix` otherwise.

    Args:
        x: points, (n, d), centred by client.
        client: n labels.
        alpha: scale of the initialisation, positive.
        covariances: S_i, as `pooled_comparison`, None included; I when left out.
        tolerance: of the quadrature, where one is needed.

    Raises:
        ValueError, TypeError: bad points, labels, alpha or covariances; a row of zeros.
    """
    scale = as_alpha(alpha)
    points, _, given = comparable(x, client, covariances)
    magnitude, direction = both_kernels(points, client, given, tolerance)
    return compare_full(magnitude, direction, scale)


def compare_full(magnitude: Kernel, direction: Kernel, alpha: float) -> FullKernelComparison:
    """As `compare_full_kernels`, from G and V that are there already."""
    largest = float(np.abs(direction.matrix).max())
    if largest > 0 and math.log10(largest) - 2 * math.log10(alpha) > _MOST:
        raise ValueError(f"V/α² leaves float64 at alpha = {alpha!r}: choose a larger one.")
    weighted = direction.divided(alpha * alpha, 2 * UNIT_ROUNDOFF)
    whole, masked = weighted.plus(magnitude), weighted.plus(magnitude.within_clients())
    return FullKernelComparison(
        smallest_eigenvalue(whole.matrix, whole.error),
        smallest_eigenvalue(masked.matrix, masked.error),
        largest_eigenvalue(whole.matrix, whole.error),
        largest_eigenvalue(masked.matrix, masked.error),
        alpha,
        magnitude.method,
        len(magnitude.groups.names) == 1,
    )


def full_kernel_threshold(angle: Real, dimension: Whole) -> Enclosure | None:
    """The α* below which λ_min(Λ*) < λ_min(Λ), and above which the reverse: √(2 + 2de/(tan e − e)).

    Two points at this angle, one per client, of any lengths, S = λI; e = π − θ. Derived in the
    module's docstring.

    Args:
        angle: between the points, in radians, 0 < θ <= π, taken as exact.
        dimension: d, of the points.

    Returns:
        An enclosure of α*, or None where III.6 extends to Λ at every α (α*² <= 0).

    Raises:
        TypeError, ValueError: parameters outside their range.
    """
    d = real(dimension, "dimension")
    if not (1 <= d <= 2**53 and d.is_integer()):
        raise ValueError(f"dimension must be a whole number of 1 or more, not {dimension!r}.")
    with digits():
        ratio = slope(supplement(angle))
        square = 2 - 2 * int(d) * ratio
        slack = SLACK * (2 + 2 * int(d) * (1 + abs(ratio)))
        if square + slack <= 0:
            return None
        low = max(square - slack, Decimal(0))
        return enclosed(low.sqrt(), (square + slack).sqrt(), "sixty digits")
