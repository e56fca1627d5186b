"""Approximate extreme eigenvectors. Nothing here is certified: `_certify` takes any vector.

The smallest: Davidson's method, preconditioned by a single-precision Cholesky factor of K - σI,
with products and Rayleigh-Ritz in double. σ = 0 first; once the Ritz value has settled to a part in
hundreds, σ moves right below it, and five more steps give an eigenvalue good to 1e-7 relative.
Two single-precision factorisations cost as much as one in double, and accuracy comes from K.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import linalg

_DENSE = 256  # up to here a full eigensolver is as fast
_STEPS = 150
_ACCURACY = 1e-7  # of the eigenvalue, relative

Solve = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Approximation:
    """A unit vector, its Ritz value and an estimate of the Ritz value's distance to λ."""

    vector: Float[np.ndarray, " n"]
    value: float
    error: float


@dataclass(frozen=True)
class Operator:
    """A symmetric matrix by what can be done with it.

    Attributes:
        diagonal: its diagonal.
        product: v -> Kv.
        inverse: σ -> (r -> about (K - σI)⁻¹r), None where there is no factor; for the smallest.
    """

    diagonal: Float[np.ndarray, " n"]
    product: Solve
    inverse: Callable[[float], Solve | None] | None


def smallest(matrix: Float[np.ndarray, "n n"]) -> Approximation:
    """Approximates the smallest eigenpair; only the lower triangle is read, Fortran order."""
    n = len(matrix)
    if n <= _DENSE:
        return _dense(matrix, 0)
    solve = _inverse(matrix, 0.0)
    if solve is None:
        return _dense(matrix, 0)
    return davidson(_operator(matrix), solve)


def largest(matrix: Float[np.ndarray, "n n"]) -> Approximation:
    """Approximates the largest eigenpair by Lanczos steps."""
    n = len(matrix)
    if n <= _DENSE:
        return _dense(matrix, n - 1)
    return davidson(_operator(matrix), None)


def _operator(matrix: Float[np.ndarray, "n n"]) -> Operator:
    (symv,) = linalg.get_blas_funcs(("symv",), (matrix,))
    return Operator(
        matrix.diagonal(),
        lambda v: symv(1.0, matrix, v, lower=1),
        lambda shift: _inverse(matrix, shift),
    )


def _dense(matrix: Float[np.ndarray, "n n"], index: int) -> Approximation:
    values, vectors = linalg.eigh(
        matrix, lower=True, subset_by_index=[index, index], check_finite=False
    )
    return Approximation(vectors[:, 0], float(values[0]), 0.0)


def _inverse(matrix: Float[np.ndarray, "n n"], shift: float) -> Solve | None:
    """Returns r -> about (K - σI)⁻¹ r: in single precision if that factor exists, else in double.

    A matrix that is singular up to rounding has no factor in either; a shift by a bound of the
    rounding then gives one, unless the matrix is indefinite.
    """
    trace = float(np.abs(matrix.diagonal()).sum())
    bump = -4.0 * (len(matrix) + 3) * 2.0**-53 * trace
    attempts = [(np.float32, shift)]
    if shift == 0.0:
        attempts += [(np.float64, 0.0), (np.float64, bump)]
    for dtype, at in attempts:
        factor = matrix.astype(dtype, order="F")
        factor[np.diag_indices_from(factor)] -= dtype(at)
        (potrf,) = linalg.get_lapack_funcs(("potrf",), (factor,))
        factor, info = potrf(factor, lower=1, clean=0, overwrite_a=1)
        if info == 0 and np.isfinite(factor.diagonal()).all():
            return _solver(factor)
    return None


def _solver(factor: np.ndarray) -> Solve:
    (trsv,) = linalg.get_blas_funcs(("trsv",), (factor,))

    def solve(r: np.ndarray) -> np.ndarray:
        half = trsv(factor, r.astype(factor.dtype), lower=1)
        return trsv(factor, half, lower=1, trans=1, overwrite_x=1).astype(np.float64)

    return solve


def davidson(operator: Operator, solve: Solve | None) -> Approximation:
    """Expands a subspace by preconditioned residuals until the Ritz value is accurate.

    Without a preconditioner the residuals span a Krylov space, and the largest value is sought.
    """
    n = len(operator.diagonal)
    steps = min(_STEPS, n)
    basis, image = np.empty((n, steps), order="F"), np.empty((n, steps), order="F")
    projected = np.zeros((steps, steps))
    seed = np.random.default_rng(0).standard_normal(n)
    new = seed if solve is None else solve(seed)
    # A fraction of what the certificate loses to rounding.
    noise = 2.0**-56 * n * float(np.abs(operator.diagonal).sum())
    previous, shifts, best = np.inf, 0, Approximation(seed, 0.0, np.inf)
    for k in range(1, steps + 1):
        if not _append(operator.product, basis, image, k, new):
            break
        projected[:k, k - 1] = projected[k - 1, :k] = basis[:, :k].T @ image[:, k - 1]
        values, coordinates = np.linalg.eigh(projected[:k, :k])
        pick, other = (0, min(1, k - 1)) if solve else (k - 1, max(k - 2, 0))
        value, y = float(values[pick]), coordinates[:, pick]
        vector = basis[:, :k] @ y
        residual = image[:, :k] @ y - value * vector
        size, gap = float(np.linalg.norm(residual)), abs(float(values[other]) - value)
        best = Approximation(vector, value, size * size / gap if gap > size else size)
        if (k > 1 and best.error <= max(_ACCURACY * abs(value), noise)) or size == 0:
            break
        drop = abs(previous - value)
        # Settled to a part in hundreds: now a shift pays. Later shifts only if the first was poor.
        if (
            solve
            and operator.inverse
            and k >= 8 * (4**shifts)
            and shifts < 3
            and drop < 2e-3 * abs(value)
        ):
            shifts += 1
            solve = operator.inverse(value - 10 * drop - 1e-6 * abs(value)) or solve
        previous = value
        residual /= size
        new = residual if solve is None else solve(residual)
    return best


def _append(product: Solve, basis: np.ndarray, image: np.ndarray, k: int, new: np.ndarray) -> bool:
    """Orthogonalises a vector, twice, and stores it and its image; False if nothing is left."""
    for _ in range(2):
        before = np.linalg.norm(new)
        if not (np.isfinite(before) and before > 0):
            return False
        new = new / before
        new = new - basis[:, : k - 1] @ (basis[:, : k - 1].T @ new)
    length = np.linalg.norm(new)
    if not length > 1e-8:
        return False
    basis[:, k - 1] = new / length
    image[:, k - 1] = product(basis[:, k - 1])
    return True
