"""Cholesky factors in a symmetric matrix's own memory: at n rows, O(n) numbers beside the matrix.

A symmetric matrix is held twice. While the lower triangle holds a factor of ±(K - τI), the strict
upper one and a saved diagonal still hold K: products read it, and the lower triangle is restored
from it, tile by tile and bit by bit.

The factorisation goes by panels J of columns, looking left: with the factor L of columns before,

    T = ±(K - τI)[J, j:] - L[J, :j] L[j:, :j]ᵀ,   L_JJ L_JJᵀ = T_JJ,   L[j+b:, J] = (L_JJ⁻¹ T)ᵀ

by substitution. Every entry of the factor is thereby a sum of products, taken in some order, then a
root or a division, so that Rump's bound holds as for LAPACK's routine (`_certify`). No call of BLAS
sees more than a panel: neither the 32-bit integers of many builds, which n² exceeds from n = 46,341
on, nor a progress report or an interrupt has to wait for a whole factorisation.
"""

from fractions import Fraction
from types import TracebackType

import numpy as np
from jaxtyping import Float
from scipy import linalg

from theory import _certify, _extreme
from theory._progress import Meter

METHOD = "Cholesky in the matrix's own memory and Rayleigh quotient"
_TILE = 512
_EXPECTED = {1: 3, -1: 1}  # factorisations, for the report of progress


class InPlace:
    """Extreme eigenvalues of a matrix whose lower triangle is lent to factorisations.

    Use as a context manager: on exit, by an exception too, the matrix is what it was.
    """

    method = METHOD

    def __init__(self, matrix: Float[np.ndarray, "n n"], meter: Meter) -> None:
        """Takes a writable float64 matrix, columns contiguous, equal to its transpose."""
        self.matrix = matrix
        self.diagonal = matrix.diagonal().copy()
        self.size = _certify.frobenius(matrix)
        self._panel = 128 if len(matrix) < 4096 else 256
        self._corners: list[np.ndarray] = []  # the diagonal blocks of the factor, contiguous
        self._shift = 0.0
        self._meter, self._factors, self._expected = meter, 0, 1

    def __enter__(self) -> "InPlace":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.restore()

    def restore(self) -> None:
        """Writes K back into the lower triangle; interrupts and signal handlers only delay this."""
        interrupt = None
        while True:
            try:
                _restore(self.matrix, self.diagonal)
                break
            except BaseException as later:
                interrupt = later
        if interrupt is not None:
            raise interrupt

    def approximate(self, sign: int) -> _extreme.Approximation:
        """Approximates the smallest (sign 1) or the largest (-1) eigenpair."""
        self._expected = _EXPECTED[sign]
        if sign < 0:
            return _extreme.davidson(_extreme.Operator(self.diagonal, self.product, None), None)
        operator = _extreme.Operator(self.diagonal, self.product, self._inverse)
        # Singular up to rounding: a shift by a bound of the rounding still gives a factor.
        bump = -4.0 * (len(self.diagonal) + 3) * 2.0**-53 * float(np.abs(self.diagonal).sum())
        if self._factor(0.0, 1) or self._factor(bump, 1):
            return _extreme.davidson(operator, self._solve)
        return self._indefinite(operator)

    def _indefinite(self, operator: _extreme.Operator) -> _extreme.Approximation:
        """Lanczos on -K first, for no shift near 0 has a factor; then as for any other matrix."""
        negative = _extreme.Operator(self.diagonal, lambda v: -self.product(v), None)
        found = _extreme.davidson(negative, None)
        shift = -found.value - max(10 * found.error, 1e-6 * abs(found.value))
        if self._factor(shift, 1):
            return _extreme.davidson(operator, self._solve)
        return _extreme.Approximation(found.vector, -found.value, found.error)

    def _inverse(self, shift: float) -> _extreme.Solve | None:
        """Returns r -> (K - σI)⁻¹ r for a σ near `shift`; the factor before is lost in any case."""
        before = self._shift
        if self._factor(shift, 1) or self._factor(before, 1):
            return self._solve
        return None

    def rayleigh(self, vector: Float[np.ndarray, " n"]) -> tuple[Fraction, Fraction]:
        """Rigorous bounds of a Rayleigh quotient."""
        return _certify.quotient(vector, self.product(vector), self.size)

    def shifted_bound(self, shift: float, sign: int) -> Fraction | None:
        """As `_certify.shifted_bound`, by a factorisation in place."""
        if not self._factor(shift, sign):
            return None
        return _certify.factored_bound(sign * (self.diagonal - shift), shift, sign)

    def product(self, v: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """K v from the strict upper triangle and the saved diagonal; at most n + 2 roundings."""
        image = np.zeros(len(v))
        for j, panel in self._panels():
            corner = np.triu(self.matrix[panel, panel], 1)
            corner += corner.T
            corner[np.diag_indices_from(corner)] = self.diagonal[panel]
            above = self.matrix[:j, panel]
            image[panel] += corner @ v[panel]
            image[panel] += above.T @ v[:j]
            image[:j] += above @ v[panel]
        return image

    def _panels(self) -> list[tuple[int, slice]]:
        n, width = len(self.diagonal), self._panel
        return [(j, slice(j, min(j + width, n))) for j in range(0, n, width)]

    def _factor(self, shift: float, sign: int) -> bool:
        """Factors ±(K - σI) into the lower triangle; False where it breaks down."""
        diagonal = sign * (self.diagonal - shift)
        self._corners, self._shift = [], shift
        n, done = len(diagonal), self._factors
        self._factors += 1
        if not (diagonal > 0).all():
            return False
        buffers = np.empty((self._panel, n), order="F"), np.empty((self._panel, n), order="F")
        for _, panel in self._panels():
            corner = _factor_panel(self.matrix, diagonal, panel, sign, buffers)
            if corner is None:
                return False
            self._corners.append(corner)
            # Work grows as the area to the left: n j²/2 - j³/3.
            part = panel.stop / n
            self._meter(min(0.99, (done + part * part * (3 - 2 * part)) / self._expected))
        return True

    def _solve(self, r: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """(LLᵀ)⁻¹ r for the factor in the lower triangle."""
        y = np.array(r)
        panels = list(zip(self._panels(), self._corners, strict=True))
        (trsv,) = linalg.get_blas_funcs(("trsv",), (y,))
        for (_, panel), corner in panels:
            y[panel] = trsv(corner, y[panel], lower=1)
            y[panel.stop :] -= self.matrix[panel.stop :, panel] @ y[panel]
        for (_, panel), corner in reversed(panels):
            y[panel] -= self.matrix[panel.stop :, panel].T @ y[panel.stop :]
            y[panel] = trsv(corner, y[panel], lower=1, trans=1)
        return y


def _factor_panel(
    matrix: Float[np.ndarray, "n n"],
    diagonal: Float[np.ndarray, " n"],
    panel: slice,
    sign: int,
    buffers: tuple[Float[np.ndarray, "b n"], Float[np.ndarray, "b n"]],
) -> Float[np.ndarray, "k k"] | None:
    """Replaces a panel's lower part by the factor's; returns its corner, or None at breakdown."""
    j, end, n = panel.start, panel.stop, len(diagonal)
    rest, product = (buffer[: end - j, : n - j] for buffer in buffers)
    np.multiply(matrix[panel, j:], sign, out=rest)
    corner = np.triu(rest[:, : end - j], 1)
    corner += corner.T
    corner[np.diag_indices_from(corner)] = diagonal[panel]
    rest[:, : end - j] = corner
    if j:
        rest -= np.matmul(matrix[panel, :j], matrix[j:, :j].T, out=product)
    (potrf,) = linalg.get_lapack_funcs(("potrf",), (rest,))
    corner, info = potrf(rest[:, : end - j], lower=1, clean=1, overwrite_a=0)
    # A NaN pivot may pass as positive in some BLAS: look at the factor itself.
    pivots = corner.diagonal()
    if info != 0 or not (np.isfinite(pivots) & (pivots > 0)).all():
        return None
    own = matrix[panel, panel]
    np.copyto(own, corner, where=np.tri(end - j, dtype=bool))
    if end < n:
        (trsm,) = linalg.get_blas_funcs(("trsm",), (rest,))
        below = trsm(1.0, corner, rest[:, end - j :], side=0, lower=1, overwrite_b=1)
        matrix[end:, panel] = below.T
    return corner


def _restore(matrix: Float[np.ndarray, "n n"], diagonal: Float[np.ndarray, " n"]) -> None:
    n = len(matrix)
    for left in range(0, n, _TILE):
        right = slice(left, left + _TILE)
        own = matrix[right, right]
        np.copyto(own, own.T.copy(), where=np.tri(len(own), k=-1, dtype=bool))
        own[np.diag_indices_from(own)] = diagonal[right]
        for top in range(left + _TILE, n, _TILE):
            matrix[top : top + _TILE, right] = matrix[right, top : top + _TILE].T


def mirrored(matrix: Float[np.ndarray, "n n"]) -> bool:
    """Whether a matrix equals its transpose bit by bit, so that one triangle restores the other."""
    bits = matrix.view(np.int64)
    for left in range(0, len(bits), _TILE):
        right = slice(left, left + _TILE)
        for top in range(left, len(bits), _TILE):
            below = slice(top, top + _TILE)
            if not np.array_equal(bits[below, right], bits[right, below].T):
                return False
    return True
