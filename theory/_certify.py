"""Rigorous one-sided bounds of eigenvalues in ordinary floating point.

All bounds are for a symmetric matrix A given by its lower triangle, exact as given.

Lower bound (S. M. Rump, Verification of positive definiteness, BIT 46, 2006). If the floating
Cholesky factorisation of the computed A' = fl(A - τI) ends with a positive diagonal, its factor R
satisfies RᵀR = A' + Δ with |Δ_ij| <= γ_{min(i,j)+3} ‖r_i‖‖r_j‖ and ‖r_i‖² <= a'_ii/(1 - γ_{i+3}),
whatever the order of summation, blocked or not (+1 for the root or the division, +1 where BLAS
multiplies by a reciprocal, +1 spare). Since γ_min(i,j) <= √(γ_i γ_j), |Δ| lies below a matrix of
rank one and ‖Δ‖₂ <= Σ_i γ_{i+3}/(1 - γ_{i+3}) a'_ii: at most γ_{n+3}/(1 - γ_{n+3}) tr A', half
of it when the diagonal is even. Rounding of the shift moves the diagonal by at most u max a'_ii.
Hence λ_min(A) >= τ - Σ_i γ_{i+3}/(1 - γ_{i+3}) a'_ii - u max a'_ii - underflow.

Upper bound: a Rayleigh quotient vᵀAv/vᵀv with y = fl(Av), |y - Av| <= γ_{n+2}|A||v|, so
|vᵀ(y - Av)| <= γ_{n+2}‖A‖_F‖v‖²; the two sums over n terms are rounded once (fsum).

Underflow is charged 2^-1022 per operation, which also covers flush-to-zero modes. Scalars are
combined as fractions, without rounding.
"""

import math
from fractions import Fraction

import numpy as np
from jaxtyping import Float
from scipy import linalg

_U = Fraction(1, 2**53)
_TINY = Fraction(1, 2**1022)


def rounded(value: Fraction, up: bool) -> float:
    """Returns the nearest double on one side of an exact value."""
    try:
        nearest = float(value)
    except OverflowError:
        nearest = math.inf
    if math.isfinite(nearest) and (Fraction(nearest) < value if up else Fraction(nearest) > value):
        nearest = math.nextafter(nearest, math.inf if up else -math.inf)
    if math.isinf(nearest):
        raise ValueError(
            "the eigenvalue is beyond the range of float64: divide the matrix by a power of ten."
        )
    return nearest


def cholesky_radius(diagonal: Float[np.ndarray, " n"]) -> Fraction:
    """Bound of ‖Δ‖₂ for a completed Cholesky factorisation with this (nonnegative) diagonal."""
    n = len(diagonal)
    k = np.arange(4, n + 4) * 2.0**-53
    # Each factor k u/(1 - 2k u) and product has at most 8 roundings.
    total = Fraction(math.fsum(k / (1 - 2 * k) * diagonal)) * (1 + 16 * _U)
    largest = Fraction(float(diagonal.max()))
    return total + 4 * (n + 1) ** 2 * _TINY * (1 + largest)


def shifted_bound(matrix: Float[np.ndarray, "n n"], shift: float, sign: int) -> Fraction | None:
    """Tries to certify λ_min(A) >= about τ (sign 1) or λ_max(A) <= about τ (sign -1).

    Returns the certified bound, or None when the Cholesky factorisation breaks down.
    """
    diagonal = sign * (matrix.diagonal() - shift)
    if not (diagonal > 0).all():
        return None
    work = np.array(matrix, order="F")
    if sign < 0:
        np.negative(work, out=work)
    work[np.diag_indices_from(work)] = diagonal
    (potrf,) = linalg.get_lapack_funcs(("potrf",), (work,))
    factor, info = potrf(work, lower=1, clean=0, overwrite_a=1)
    # A NaN pivot may pass as positive in some BLAS: look at the factor itself.
    if info != 0 or not (np.isfinite(factor.diagonal()) & (factor.diagonal() > 0)).all():
        return None
    return factored_bound(diagonal, shift, sign)


def factored_bound(diagonal: Float[np.ndarray, " n"], shift: float, sign: int) -> Fraction:
    """The bound that a completed factorisation of ±(A - τI), with this diagonal, certifies."""
    radius = cholesky_radius(diagonal) + _U * Fraction(float(diagonal.max()))
    return Fraction(shift) - sign * radius


def rayleigh(
    matrix: Float[np.ndarray, "n n"], vector: Float[np.ndarray, " n"], frobenius: float
) -> tuple[Fraction, Fraction]:
    """Returns rigorous bounds of vᵀAv/vᵀv, given a bound of ‖A‖_F."""
    (symv,) = linalg.get_blas_funcs(("symv",), (matrix,))
    return quotient(vector, symv(1.0, matrix, vector, lower=1), frobenius)


def quotient(
    vector: Float[np.ndarray, " n"], image: Float[np.ndarray, " n"], frobenius: float
) -> tuple[Fraction, Fraction]:
    """The same from an image Av whose entries are sums of at most n + 2 roundings a term."""
    n = len(vector)
    products = vector * image
    value = Fraction(math.fsum(products))
    size = Fraction(math.fsum(np.abs(products)))
    squared = Fraction(math.fsum(vector * vector))
    steps = (n + 2) * _U
    error = (
        2 * _U * size * (1 + 2 * _U)
        + steps / (1 - steps) * Fraction(frobenius) * squared * (1 + 4 * _U)
        + 4 * (n + 1) ** 2 * _TINY
    )
    low, high = value - error, value + error
    least, most = squared * (1 - 4 * _U), squared * (1 + 4 * _U)
    return low / (most if low >= 0 else least), high / (least if high >= 0 else most)


def frobenius(matrix: Float[np.ndarray, "n n"]) -> float:
    """Upper bound of ‖A‖_F for entries of moderate size."""
    n = len(matrix)
    flat = matrix.ravel(order="K")
    # n² additions in any order, a root, and underflow of squares far below the largest entry.
    return math.sqrt(float(flat @ flat)) * (1 + (n * n + 8) * 2.0**-53) + n * 2.0**-510
