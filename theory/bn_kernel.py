"""Infinite-width kernels of networks with batch normalization, exact up to a stated error.

For a point x_p of client i, v ~ N(0, α²I) and q_i(v) = vᵀS_i v + eps,

    G_pq = E φ(v·x_p) φ(v·x_q)/√(q_i q_j),
    V_pq = E ‖v‖²/√(q_i q_j) ⟨x_p - S_i v (v·x_p)/q_i, x_q - S_j v (v·x_q)/q_j⟩ 1{v·x_p, v·x_q > 0},

the limits of G(t) and V(t) of Eq. (9), so that Λ∞ = V/α² + G. With eps = 0 both integrands depend
on the direction ω of v only and are free of α. The route:

1. eps > 0: given ‖v‖² = t, q = t ωᵀ(S + (eps/t)I)ω; a mean over t ~ α²χ²_d (`_scales`).
2. S_i ≠ S_j: 1/√(q_i q_j) = Σ_l w_l/(q_i + x_l²q_j), and its derivatives (`_elliptic`).
3. One metric S: 1/(ωᵀSω)^k = Σ_l of Gaussian weights (`_radial`), whose expectations with φφ, 1 and
   quadratic forms are elementary (`_bn_blocks`).

Every step replaces a positive function of ω by one that differs from it by a bounded relative
error, pointwise; step 3 also by what lies outside a core of ωᵀSω, bounded as Chernoff does
(`_nodes.tailed`). As φφ >= 0, the error of G is at most that fraction of G itself, and of V that
fraction of the sum of its terms' sizes. What rounding does is added.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from theory import _loose
from theory._bn_assembly import block
from theory._bn_metric import Tally
from theory._bn_setting import Setting, setting
from theory._loose import ArrayLike, Covariances, Flag, Real
from theory._pairs import gamma
from theory._validate import flag, positive
from theory.blocks import BlockDiagonal
from theory.gram import (
    direction_gram_error,
    direction_gram_matrix,
    normalised_gram_error,
    normalised_gram_matrix,
)

Array = np.ndarray
_LEAST_TOLERANCE = 1e-13


@dataclass(frozen=True, eq=False)
class BNGram:
    """A kernel matrix and how far it may be from the exact one.

    Attributes:
        matrix: (n, n), symmetric, rows in the order of the points.
        error: bound of ‖ΔK‖₂: quadrature, eigenbases and rounding.
        method: how it was computed.
    """

    matrix: _loose.Array
    error: float
    method: str


def bn_gram_matrix(  # noqa: PLR0913
    x: ArrayLike,
    client: ArrayLike,
    covariances: Covariances,
    eps: Real = 0.0,
    alpha: Real = 1.0,
    component: str = "magnitude",
    *,
    tolerance: Real = 1e-10,
) -> BNGram:
    """The limit of G(t) (magnitude) or V(t) (direction) of networks with BN, Eq. (9), unmasked.

    Args:
        x: (n, d) points, centred by their client's mean (`centre`).
        client: n labels.
        covariances: S_i of BN: a number λ for λI, one (d, d) matrix for all clients (aggregated
            statistics), (N, d, d) in the order in which clients first appear, or a mapping from
            client to matrix, such as `client_covariances` gives.
        eps: BN's eps, added to vᵀS_i v.
        alpha: scale of the initialisation; without eps it has no effect.
        component: "magnitude" for G, "direction" for V.
        tolerance: relative error that quadrature may leave; the nodes follow from it.

    Returns:
        The matrix and a rigorous bound of its error. Quadrature leaves about the tolerance times
        ½ Σ‖x_p‖² E (1/q), of G itself times its trace; rounding adds to it, and grows with the
        condition of the S_i.

    Raises:
        TypeError: points, covariances or numbers that are no real numbers.
        ValueError: bad points, labels or covariances; a point outside the range of a singular S_i,
            or singular covariances of different ranges, while eps = 0; an unknown component.

    While eps = 0, eigenvalues below 16 d u times the largest count as 0 and points within rounding
    of the range as in it: S is taken to be its projection, whose kernel the bound is for.
    """
    given = setting(x, client, covariances, eps, alpha, component)
    level = _level(tolerance)
    n = len(given.points)
    if given.isotropic is not None:
        return _isotropic(given)
    out = np.zeros((n, n))
    groups = given.groups_by_covariance()
    errors = np.zeros((len(groups), len(groups)))
    tally = Tally()
    for i, first in enumerate(groups):
        for j in range(i, len(groups)):
            found, part = block(given, first, None if i == j else groups[j], level)
            errors[i, j] = errors[j, i] = part.error + gamma(part.nodes + 8) * part.size
            rows, columns = first.rows, groups[j].rows
            out[np.ix_(rows, columns)] = found
            if i != j:
                out[np.ix_(columns, rows)] = found.T
            tally.nodes, tally.bases = tally.nodes + part.nodes, tally.bases + part.bases
    method = f"quadrature: {tally.bases} metrics, {tally.nodes} nodes"
    # A matrix of the norms of blocks has at least the norm of the blocks together.
    bound = float(errors.sum(axis=1).max()) * (1 + 1e-9)
    if not math.isfinite(bound):
        raise ValueError(
            "the covariances are so ill-conditioned that no quadrature in float64 is certain of a "
            "digit: add a ridge (client_covariances(x, client, ridge=1e-3)), give a larger eps, or "
            "reduce the dimension."
        )
    return BNGram(*given.rescaled(out, bound), method)


def bn_client_gram_matrix(
    x: ArrayLike,
    client: ArrayLike,
    covariances: Covariances,
    eps: Real = 0.0,
    alpha: Real = 1.0,
    *,
    tolerance: Real = 1e-10,
) -> BlockDiagonal:
    """The limit of G*(t): `bn_gram_matrix` within a client, zero between clients.

    Only the blocks are computed: no pair of different S_i, which may be singular each in its own
    range. The blocks' `errors` bound ‖ΔK‖₂ of each.

    Arguments and errors as for `bn_gram_matrix`.
    """
    given = setting(x, client, covariances, eps, alpha, "magnitude", apart=True)
    blocks, errors = [], []
    for name, rows in zip(given.groups.names, given.groups.rows, strict=True):
        labels: Any = [name] * len(rows)
        own = given.matrix_of(name)
        part = bn_gram_matrix(given.given[rows], labels, own, eps, alpha, tolerance=tolerance)
        blocks.append(part.matrix)
        errors.append(part.error)
    return BlockDiagonal(given.groups.names, tuple(blocks), given.groups.rows, tuple(errors))


def bn_ntk(  # noqa: PLR0913
    x: ArrayLike,
    client: ArrayLike,
    covariances: Covariances,
    *,
    alpha: Real,
    client_specific: Flag,
    eps: Real = 0.0,
    tolerance: Real = 1e-10,
) -> BNGram:
    """Λ∞ = V/α² + G of f, or Λ*∞ = V/α² + G* of f* (client_specific), Eq. (9).

    V is the same for both: the directions are shared, and only G loses its blocks between clients.

    Arguments and errors as for `bn_gram_matrix`.
    """
    scale = positive(alpha, "alpha")
    specific = flag(client_specific, "client_specific")
    if not 1e-100 <= scale <= 1e100:
        raise ValueError(f"V/α² leaves float64 at alpha = {scale:g}: choose one of moderate size.")
    arguments = x, client, covariances, eps, scale
    turning = bn_gram_matrix(*arguments, "direction", tolerance=tolerance)
    if specific:
        blocks = bn_client_gram_matrix(*arguments, tolerance=tolerance)
        growing = BNGram(blocks.dense(), max(blocks.errors), "")
    else:
        growing = bn_gram_matrix(*arguments, tolerance=tolerance)
    matrix = turning.matrix / scale**2 + growing.matrix
    rounding = 2.0**-51 * (_size(turning.matrix) / scale**2 + _size(growing.matrix))
    error = (turning.error / scale**2 + growing.error + rounding) * (1 + 1e-9)
    return BNGram(matrix, error, f"V: {turning.method}")


def _size(matrix: Float[Array, "n n"]) -> float:
    """‖K‖_F without squares that overflow."""
    largest = float(np.abs(matrix).max())
    return largest * float(np.linalg.norm(matrix / largest)) if largest > 0 else 0.0


def _level(tolerance: Real) -> float:
    level = positive(tolerance, "tolerance")
    if not _LEAST_TOLERANCE <= level <= 0.01:
        raise ValueError(
            f"tolerance must lie between {_LEAST_TOLERANCE:g} and 0.01, not {level!r}: float64 "
            "holds no more digits, and the bounds assume at least two."
        )
    return level


def _isotropic(given: Setting) -> BNGram:
    """S_i = λ_i I without eps: κ₁/(d√(λ_i λ_j)), and V likewise, in closed form."""
    points = given.points
    if given.component == "magnitude":
        matrix, error = normalised_gram_matrix(points), normalised_gram_error(points)
    else:
        matrix, error = direction_gram_matrix(points), direction_gram_error(points)
    # Dividing x by √λ_i rounds twice; each of the two factors of an entry is wrong by 2u.
    error += 2.0**-50 * float((points * points).sum())
    return BNGram(*given.rescaled(matrix, error), "closed form, S_i = λ_i I")
