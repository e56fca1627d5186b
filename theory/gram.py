"""Closed-form Gram matrices in float64, each with a bound of its rounding error.

Notation: u = 2^-53, γ_d = du/(1 - du), θ the angle of x and y, c = cos θ,
κ₁ = ‖x‖‖y‖ h(c), h = (sin θ + (π - θ) cos θ)/2π, P₀ = dh/dc = (π - θ)/2π <= 1/2.

Error of an entry α²κ₁ (first order; the constants leave room for the rest). L = ⌈log2 d⌉,
δ = (L + 3)u/2 bounds the relative error of a norm (`_pairs.unit_rows`).

* Matrix product of the rounded unit rows, in any order of summation: |Δc| <= γ_d + 2u, hence
  P₀(γ_d + 2u) in h.
* Norms: x·y = ‖x‖‖y‖c stays fixed when c is divided by a wrong norm, so an error of ‖x‖ enters with
  ∂(‖x‖‖y‖h)/∂‖x‖ = ‖y‖ sin θ/2π only: 2δ sin θ/2π.
* w = 1 - |c|, h from it: 1.6u (`_arccosine`). Scaling by α‖x‖, α‖y‖: 4u h.

The sum is largest at θ = 0 for d >= 8: γ_d/2 + 4u; for smaller d it is below γ_d/2 + 8u at all θ,
and for large d the norms' part at larger θ is below the γ_d(1/2 - P₀) left over. So

    |ΔK_pq| <= (γ_d/2 + 8u) α²‖x_p‖‖x_q‖.

The right side is a matrix of rank one with nonnegative entries, and ‖ΔK‖₂ <= ‖|ΔK|‖₂ grows with the
entries (Perron), so ‖ΔK‖₂ <= (γ_d/2 + 8u) α² Σ‖x_p‖², which is `gram_error`.

Relative error: pairs with θ < 0.045 get w = ‖x̂ - ŷ‖²/2, so 2δ + γ_d w + 8u is left. Near θ = π,
with e = π - θ, h = e³/6π loses 3(γ_d + 2δ)/e² in the bulk; pairs below an e where that is 1e-12 get
w = ‖x̂ + ŷ‖²/2; the rounding of x̂ and ŷ then leaves 6u/e.

`client_gram_matrix` calls the same code on each client's rows. BLAS may sum in another order there,
so its blocks and those of `gram_matrix` may differ in the last bits, each within its own bound;
`diagonal_blocks(gram_matrix(x), client)` gives bitwise equal ones.
"""

import math
from functools import partial

import numpy as np
from jaxtyping import Float

from theory import _arccosine
from theory._loose import ArrayLike, Real
from theory._pairs import (
    UNIT_ROUNDOFF,
    Recompute,
    UnitRows,
    gamma,
    norm_error,
    symmetric_kernel,
    unit_rows,
)
from theory._validate import as_groups, as_points, positive
from theory.blocks import BlockDiagonal

ROUNDINGS, NORMALISED_ROUNDINGS = 8, 11
"""Beside γ_d/2, the constants of an entry's error in units of u: see `gram_error`."""

_SMALLEST, _LARGEST = 1e-140, 1e150  # scaled norms whose products, cubes of angles too, are normal


def gram_matrix(x: ArrayLike, alpha: Real = 1.0) -> Float[np.ndarray, "n n"]:
    """Eq. (10), G∞ as printed: α²κ₁(x_p, x_q) = E φ(v·x_p) φ(v·x_q), v ~ N(0, α²I).

    Exactly symmetric. Zero rows give zero entries. The threads are BLAS's.

    Args:
        x: points, (n, d), one per row.
        alpha: standard deviation of the initial weights, positive.

    Raises:
        TypeError: points or alpha that are no real numbers.
        ValueError: bad points, alpha <= 0, or points whose kernel would over- or underflow.
    """
    return _magnitude(*scaled_rows(x, alpha))


def gram_error(x: ArrayLike, alpha: Real = 1.0) -> float:
    """Bound of ‖ΔK‖₂, the distance of `gram_matrix(x, alpha)` from the exact Eq. (10).

    (γ_d/2 + 8u) α² Σ‖x_p‖²; derived in this module's docstring.
    """
    return _rank_one(*scaled_rows(x, alpha), ROUNDINGS)


def client_gram_matrix(x: ArrayLike, client: ArrayLike, alpha: Real = 1.0) -> BlockDiagonal:
    """Eq. (11), G*∞ as printed: Eq. (10) within a client, zero between clients.

    Only the blocks are allocated; their `errors` bound ‖ΔK‖₂ block by block.

    Raises:
        TypeError: as `gram_matrix`.
        ValueError: as `gram_matrix`, or not one label per row.
    """
    return _blocks(*scaled_rows(x, alpha), client, ROUNDINGS)


def normalised_gram_matrix(x: ArrayLike, scale: Real = 1.0) -> Float[np.ndarray, "n n"]:
    """The limit of G(t) for S = scale·I: E φφ/‖v‖²_S = κ₁/(d·scale), free of α.

    Eq. (10) as printed omits 1/‖v‖_S and is larger by the factor α²·d·scale.

    Args:
        x: points, (n, d).
        scale: the variance λ in S = λI, positive.

    Raises:
        TypeError: points or scale that are no real numbers.
        ValueError: bad points, scale <= 0, or points whose kernel would over- or underflow.
    """
    return _magnitude(*normalised_scaled_rows(x, scale))


def normalised_gram_error(x: ArrayLike, scale: Real = 1.0) -> float:
    """Bound of ‖ΔK‖₂ for `normalised_gram_matrix`: (γ_d/2 + 11u) Σ‖x_p‖²/(d·scale).

    As `gram_error`, and 2.5u for each of the two factors 1/√(d·scale), times h <= 1/2.
    """
    return _rank_one(*normalised_scaled_rows(x, scale), NORMALISED_ROUNDINGS)


def normalised_client_gram_matrix(
    x: ArrayLike, client: ArrayLike, scale: Real = 1.0
) -> BlockDiagonal:
    """The limit of G*(t) for S = scale·I: κ₁/(d·scale) within a client, zero between clients.

    Raises:
        TypeError: as `normalised_gram_matrix`.
        ValueError: as `normalised_gram_matrix`, or not one label per row.
    """
    return _blocks(*normalised_scaled_rows(x, scale), client, NORMALISED_ROUNDINGS)


def direction_gram_matrix(x: ArrayLike, scale: Real = 1.0) -> Float[np.ndarray, "n n"]:
    """The limit of V(t) for S = scale·I: ((x·y)P₀ - κ₁/d)/scale, so that Λ∞ = V/α² + G.

    V is not masked by client, not even for client-specific BN: the directions are shared.

    Args:
        x: points, (n, d).
        scale: the variance λ in S = λI, positive.

    Raises:
        TypeError: points or scale that are no real numbers.
        ValueError: bad points, scale <= 0, or points whose kernel would over- or underflow.
    """
    points, row_scale = _direction_scaled(x, scale)
    profile = partial(_arccosine.direction, dimension=points.unit.shape[1])
    return symmetric_kernel(points, profile, row_scale, Recompute(_DIRECTION, _DIRECTION))


_DIRECTION = 0.03  # 1 - |c| below which V's angle is recomputed


def direction_gram_error(x: ArrayLike, scale: Real = 1.0) -> float:
    """Bound of ‖ΔV‖₂ for `direction_gram_matrix`: (1.2γ_d + 4δ + 16u) Σ‖x_p‖²/scale.

    P₀ has derivative 1/(2π sin θ). In the bulk 1 - |c| >= 0.03, so sin θ >= 0.243 and V/‖x‖‖y‖
    has a derivative in c of at most 1/2 + 1/(2π·0.243) = 1.16; it meets |Δc| <= γ_d + 2u + 2δ, the
    scaling adds (2δ + 8u)/2, the evaluation 5u. Closer pairs have an angle from ‖x̂ ∓ ŷ‖, wrong by
    at most 2u + 2δ + 0.25(γ_d/2 + δ): less.
    """
    points, row_scale = _direction_scaled(x, scale)
    dimension = points.unit.shape[1]
    constant = 1.2 * gamma(dimension) + (4 * norm_error(dimension) + 16) * UNIT_ROUNDOFF
    return constant * _squared(row_scale)


def _prepared(x: ArrayLike, factor: float, name: str) -> tuple[UnitRows, Float[np.ndarray, " n"]]:
    """Returns unit rows and factor·‖x_p‖; refuses what would leave the range of float64."""
    points = unit_rows(as_points(x))
    mantissa, exponent = math.frexp(factor)
    with np.errstate(over="ignore", under="ignore"):
        scale = np.ldexp(points.norm * mantissa, points.exponent + exponent)
    bad = (points.norm > 0) & ~((scale >= _SMALLEST) & (scale <= _LARGEST))
    if bad.any():
        row = int(bad.argmax())
        size = (math.log2(points.norm[row]) + int(points.exponent[row])) * math.log10(2)
        raise ValueError(
            f"row {row} of x has norm 1e{size:+.0f}: with {name} = {factor:g} its kernel leaves "
            "the range of float64; bring both to moderate sizes, the kernel scales with the square "
            "of either."
        )
    return points, scale


def scaled_rows(x: ArrayLike, alpha: Real) -> tuple[UnitRows, Float[np.ndarray, " n"]]:
    """Unit rows, and the factors α‖x_p‖ of Eq. (10)."""
    return _prepared(x, positive(alpha, "alpha"), "alpha")


def normalised_scaled_rows(x: ArrayLike, scale: Real) -> tuple[UnitRows, Float[np.ndarray, " n"]]:
    """Unit rows, and the factors ‖x_p‖/√(d·scale) of the normalised kernel."""
    points = as_points(x)
    return _prepared(points, 1 / math.sqrt(points.shape[1] * _variance(scale)), "1/sqrt(d·scale)")


def _direction_scaled(x: ArrayLike, scale: Real) -> tuple[UnitRows, Float[np.ndarray, " n"]]:
    return _prepared(x, 1 / math.sqrt(_variance(scale)), "1/sqrt(scale)")


def _variance(scale: Real) -> float:
    variance = positive(scale, "scale")
    if not 1e-300 < variance < 1e290:
        raise ValueError(f"scale = {variance:g} leaves the range of float64: rescale x instead.")
    return variance


def _magnitude(points: UnitRows, scale: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n n"]:
    return symmetric_kernel(points, _arccosine.magnitude, scale, recompute(points.unit.shape[1]))


def recompute(dimension: int) -> Recompute:
    """Which pairs get their angle anew, for the relative accuracy that this module promises."""
    bulk = gamma(dimension) + (2 + 2 * norm_error(dimension)) * UNIT_ROUNDOFF
    # 3·bulk/e² = 1e-12 at 1 - |c| = e²/2; a quarter bounds the work for very large d.
    return Recompute(1e-3, min(0.25, 1.5 * bulk / 1e-12))


def _rank_one(points: UnitRows, scale: Float[np.ndarray, " n"], roundings: int) -> float:
    constant = gamma(points.unit.shape[1]) / 2 + roundings * UNIT_ROUNDOFF
    return constant * _squared(scale)


def _squared(scale: Float[np.ndarray, " n"]) -> float:
    """Σ scale², rounded upwards past the error of the norms (at most 40 u for any d)."""
    return math.fsum(scale * scale) * (1 + 128 * UNIT_ROUNDOFF)


def _blocks(
    points: UnitRows, scale: Float[np.ndarray, " n"], client: ArrayLike, roundings: int
) -> BlockDiagonal:
    groups = as_groups(client, len(scale))
    blocks, errors = [], []
    for rows in groups.rows:
        own = UnitRows(points.unit[rows], points.norm[rows], points.exponent[rows])
        blocks.append(_magnitude(own, scale[rows]))
        errors.append(_rank_one(own, scale[rows], roundings))
    return BlockDiagonal(groups.names, tuple(blocks), groups.rows, tuple(errors))
