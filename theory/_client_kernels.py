"""G and V of clients with their own S_i, each with the bound of its error.

Closed forms where every S_i = λ_i I: q_i = λ_i‖v‖², so that dividing client i's points by √λ_i
leaves the case S = I. The division moves a point by at most 2.01u of its length; with
|κ₁(x + δ, y) − κ₁(x, y)| <= E|v·δ|φ(v·y) <= ‖δ‖‖y‖/√2 an entry of G moves by 3u‖z_p‖‖z_q‖/d at
most, and one of V, where also P₀ turns by ‖δ‖/2π‖z‖, by 6u‖z_p‖‖z_q‖. These bounds have rank one:
3u Σ‖z_p‖²/d and 6u Σ‖z_p‖² in the 2-norm, as in `gram`.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from theory._loose import ArrayLike, Real
from theory._pairs import UNIT_ROUNDOFF
from theory._validate import Groups, as_groups, as_points, as_real_array, positive
from theory.blocks import BlockDiagonal
from theory.bn_kernel import bn_gram_matrix
from theory.covariances import as_covariances as covariances_of
from theory.gram import (
    direction_gram_error,
    direction_gram_matrix,
    normalised_gram_error,
    normalised_gram_matrix,
)

Covariances = dict[Hashable, float | Float[np.ndarray, "d d"]]


@dataclass(frozen=True, eq=False)
class Kernel:
    """A symmetric matrix known up to an error, with the clients of its rows.

    Attributes:
        matrix: (n, n).
        error: bound of ‖ΔK‖₂, also of every diagonal block.
        groups: the clients.
        method: how it was computed.
    """

    matrix: Float[np.ndarray, "n n"]
    error: float
    groups: Groups
    method: str

    def masked(self) -> BlockDiagonal:
        """The clients' blocks, literally those of the matrix."""
        groups = self.groups
        blocks = tuple(self.matrix[np.ix_(rows, rows)] for rows in groups.rows)
        return BlockDiagonal(groups.names, blocks, groups.rows, (self.error,) * len(blocks))

    def restricted(self, rows: Int[np.ndarray, " k"]) -> "Kernel":
        """The kernel of some of the points; a part of a matrix errs no more than the whole."""
        labels = self.groups.labels()
        groups = as_groups([labels[int(row)] for row in rows], len(rows))
        return replace(self, matrix=self.matrix[np.ix_(rows, rows)], groups=groups)

    def plus(self, other: "Kernel") -> "Kernel":
        """The sum; u for each rounded entry."""
        total = self.matrix + other.matrix
        rounding = UNIT_ROUNDOFF * frobenius(total)
        return replace(self, matrix=total, error=_up(self.error + other.error + rounding))

    def divided(self, squared: float, rounding: float) -> "Kernel":
        """The matrix divided by a number that is itself wrong by `rounding` relatively."""
        matrix = self.matrix / squared
        error = self.error / squared + (rounding + 2 * UNIT_ROUNDOFF) * frobenius(matrix)
        error += len(matrix) * 2.0**-1022  # entries may underflow
        return replace(self, matrix=matrix, error=_up(error))

    def within_clients(self) -> "Kernel":
        """The same with zeros between clients."""
        matrix = np.zeros_like(self.matrix)
        for rows in self.groups.rows:
            matrix[np.ix_(rows, rows)] = self.matrix[np.ix_(rows, rows)]
        return replace(self, matrix=matrix)


def as_covariances(covariances: object, groups: Groups, d: int) -> Covariances:
    """Gives every client its S_i: a number λ_i where S_i = λ_i I, else a (d, d) matrix.

    Args:
        covariances: a number or one (d, d) for all; N numbers or (N, d, d), the clients in order
            of first appearance; or a mapping from each client to either.
        groups: the clients.
        d: the dimension of the points.

    Raises:
        TypeError, ValueError: not of these kinds, a client without S_i, a matrix of another size,
            or a variance that is not positive.
    """
    names = groups.names
    if isinstance(covariances, Mapping):
        given = {n: _as_matrix(covariances[n], n, d) for n in names if n in covariances}
        found = covariances_of(given, groups, d)
    elif _is_row(covariances, len(names)):
        variances: Any = covariances
        found = [positive(v, f"variance of {n!r}") for n, v in zip(names, variances, strict=True)]
    else:
        found = covariances_of(covariances, groups, d)
    return {name: _simplest(value) for name, value in zip(names, found, strict=True)}


def _is_row(value: object, clients: int) -> bool:
    """Whether these are one variance per client in their order; a table's is by its index."""
    if hasattr(value, "index") and hasattr(value, "to_dict"):
        return False
    return not _is_matrix(value) and np.shape(value) == (clients,)  # type: ignore[arg-type]


def _is_matrix(value: object) -> bool:
    """Whether it has two axes or more, or rows of different lengths, which NumPy cannot tell."""
    try:
        return np.ndim(value) > 1  # type: ignore[arg-type]
    except ValueError:
        return True


def _as_matrix(value: object, name: object, d: int) -> object:
    """λI of a variance λ; what is none is left to be refused."""
    if _is_matrix(value):
        return as_real_array(value, f"covariances[{name!r}]")
    if np.ndim(value) > 0:  # type: ignore[arg-type]
        return value
    try:
        return positive(value, f"variance of {name!r}") * np.eye(d)
    except TypeError:
        return value


def _simplest(value: float | Float[np.ndarray, "d d"]) -> float | Float[np.ndarray, "d d"]:
    """A number λ where S_i = λI."""
    if not isinstance(value, np.ndarray):
        return value
    first = float(value[0, 0])
    return first if first > 0 and np.array_equal(value, first * np.eye(len(value))) else value


def isotropic(covariances: Covariances) -> bool:
    """Whether every S_i is a multiple of the identity, so that closed forms apply."""
    return all(isinstance(value, float) for value in covariances.values())


def client_kernel(
    x: ArrayLike,
    client: ArrayLike,
    covariances: Covariances,
    component: str = "magnitude",
    tolerance: Real = 1e-10,
) -> Kernel:
    """G (component "magnitude") or V ("direction") with S_i for client i; nothing is masked."""
    points = as_points(x)
    groups = as_groups(client, len(points))
    if isotropic(covariances):
        matrix, error = _closed_form(points, groups, covariances, component)
        return Kernel(matrix, error, groups, "closed form")
    given = {name: _dense(value, points.shape[1]) for name, value in covariances.items()}
    try:
        found = bn_gram_matrix(points, client, given, component=component, tolerance=tolerance)
    except ValueError as error:
        raise ValueError(_without_eps(str(error))) from None
    return Kernel(found.matrix, found.error, groups, found.method)


def both_kernels(
    x: ArrayLike, client: ArrayLike, covariances: Covariances, tolerance: Real = 1e-10
) -> tuple[Kernel, Kernel]:
    """Returns G and V."""
    return (
        client_kernel(x, client, covariances, "magnitude", tolerance),
        client_kernel(x, client, covariances, "direction", tolerance),
    )


_EPS = (  # advice of `bn_gram_matrix` that readers of these functions cannot follow
    ("give eps > 0, add", "add"),
    (", add a ridge, or give eps > 0", " or add a ridge"),
    (", give a larger eps, or", " or"),
)


def _without_eps(advice: str) -> str:
    for words, others in _EPS:
        advice = advice.replace(words, others)
    return advice


def _dense(value: float | Float[np.ndarray, "d d"], d: int) -> Float[np.ndarray, "d d"]:
    return value if isinstance(value, np.ndarray) else value * np.eye(d)


def _closed_form(
    points: Float[np.ndarray, "n d"], groups: Groups, covariances: Covariances, component: str
) -> tuple[Float[np.ndarray, "n n"], float]:
    scaled, moved = np.array(points), False
    for name, rows in zip(groups.names, groups.rows, strict=True):
        variance = covariances[name]
        if variance != 1.0:
            scaled[rows], moved = points[rows] / np.sqrt(variance), True
    dimension = points.shape[1]
    if component == "magnitude":
        matrix, error = normalised_gram_matrix(scaled), normalised_gram_error(scaled)
        roundings = 3 / dimension
    else:
        matrix, error = direction_gram_matrix(scaled), direction_gram_error(scaled)
        roundings = 6.0
    slack = roundings * UNIT_ROUNDOFF * float((scaled * scaled).sum()) if moved else 0.0
    return matrix, _up(error + slack)


def pooled_covariance(
    covariances: Covariances, weights: Mapping[Hashable, Fraction], d: int
) -> float | Float[np.ndarray, "d d"]:
    """S = Σ p_i S_i; a number, the exact one rounded once, where every S_i = λ_i I."""
    if isotropic(covariances):
        return float(sum(weights[n] * Fraction(v) for n, v in covariances.items()))  # type: ignore[arg-type]
    parts = [float(weights[name]) * _dense(value, d) for name, value in covariances.items()]
    total = np.sum(parts, axis=0)
    return (total + total.T) / 2


def frobenius(matrix: Float[np.ndarray, "n n"]) -> float:
    """‖A‖_F up to rounding, at sizes whose squares float64 does not hold too."""
    exponent = math.frexp(float(np.abs(matrix).max()))[1]
    with np.errstate(under="ignore"):
        return math.ldexp(float(np.linalg.norm(np.ldexp(matrix, -exponent))), exponent)


def _up(error: float) -> float:
    """Past the rounding of the few operations that made a bound."""
    return error * (1 + 1e-12)
