"""An eigenbasis with rigorous bounds of what rounding did to it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from theory._pairs import UNIT_ROUNDOFF, gamma

Array = np.ndarray
_BITS = 21  # two factors of 21 bits and a sum of 2^11 terms are exact in 53


@dataclass(frozen=True)
class Eigenbasis:
    """QᵀSQ = diag(s) + E for an orthogonal Q, U = Q + D.

    Attributes:
        s: eigenvalues, none below 0.
        u: columns U, (d, d).
        defect: bound of ‖E‖₂.
        tilt: bound of ‖fl(Uᵀx) - Qᵀx‖/‖x‖.
    """

    s: Float[Array, " d"]
    u: Float[Array, "d d"]
    defect: float
    tilt: float

    def rotated(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """Points in the basis."""
        return x @ self.u


def eigenbasis(matrix: Float[Array, "d d"]) -> Eigenbasis:
    """Diagonalises a symmetric positive semidefinite matrix.

    Let U = QH be the polar decomposition, so that ‖U - Q‖ <= ‖UᵀU - I‖ = o. With the residual
    R = SU - U diag(s), QᵀSQ - diag(s) = QᵀR + QᵀS(Q - U) + (H - I) diag(s), of norm at most
    ‖R‖ + 2‖S‖o. Both are measured with products of 21-bit parts, which are exact, so that nothing
    of the order of the residual itself is lost.
    """
    d = len(matrix)
    if not np.any(matrix - np.diag(matrix.diagonal())):
        s = np.maximum(matrix.diagonal(), 0.0)
        return Eigenbasis(s, np.eye(d), float((s - matrix.diagonal()).max()), 0.0)
    s, u = np.linalg.eigh(matrix)
    size = float(np.abs(s).max()) * 1.01
    high, low = _split(u, 1.0)
    cross = high.T @ low
    gram = (high.T @ high - np.eye(d)) + (cross + cross.T + low.T @ low)
    small = float(np.abs(low).max()) * d
    orthogonality = _norm(gram) + 4 * gamma(d + 4) * d * small + 2 * d * UNIT_ROUNDOFF * _norm(gram)
    first, rest = _split(matrix, float(np.abs(matrix).max()))
    main = first @ high - u * s
    residual = main + (first @ low + rest @ high + rest @ low)
    left = float(np.abs(rest).max()) * d
    rounding = gamma(d + 4) * (_norm(first) * small + left * np.sqrt(d) + left * small)
    rounding += 4 * UNIT_ROUNDOFF * (size * np.sqrt(d) + _norm(residual))
    defect = float(_norm(residual) + rounding + 2.1 * size * orthogonality)
    tilt = orthogonality + 1.01 * gamma(d + 2) * np.sqrt(d)
    # Eigenvalues below the doubt about them say nothing; raising them costs as much again.
    raised = np.maximum(s, defect)
    return Eigenbasis(raised, u, defect + float((raised - s).max()), float(tilt))


def _split(matrix: Array, largest: float) -> tuple[Array, Array]:
    """Parts of at most 21 bits and the rest, exactly."""
    exponent = int(np.frexp(largest)[1])
    # Adding and taking away a large number rounds to a fixed number of places.
    shift = np.ldexp(1.5, exponent + 52 - _BITS)
    high = (matrix + shift) - shift
    return high, matrix - high


def _norm(matrix: Array) -> float:
    flat = matrix.ravel(order="K")
    return float(np.sqrt(flat @ flat)) * (1 + (flat.size + 8) * UNIT_ROUNDOFF)
