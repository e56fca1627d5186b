"""The coefficients of the direction part (see `_bn_blocks`), of many nodes at a time."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from theory._nodes import Nodes
from theory._pairs import UNIT_ROUNDOFF, gamma

Array = np.ndarray


@dataclass(frozen=True)
class Numerators:
    """What stands above Q in the direction part, in the metric's eigenbasis.

    Attributes:
        first, second: S_i and S_j, (d, d), or (d,) where they are diagonal too.
        middle: C, likewise.
        coefficients: c₁, c₂, c₃, c₄.
    """

    first: Array
    second: Array
    middle: Array
    coefficients: tuple[float, float, float, float]

    @property
    def diagonal(self) -> bool:
        """Whether all are diagonal in the metric's eigenbasis."""
        return self.middle.ndim == 1


@dataclass(frozen=True)
class Terms:
    """f/λ, M - c₁I, a_x + κ and b_y of L nodes, and the sizes of all that was summed in them.

    Attributes:
        factor: (L,).
        matrix: (L, d, d), or (L, d) where it is diagonal.
        row: (L, n).
        column: (L, m).
        size_matrix, size_sines: (L,), bounds of sums of absolute values.
    """

    factor: Float[Array, " l"]
    matrix: Array
    row: Float[Array, "l n"]
    column: Float[Array, "l m"]
    size_matrix: Float[Array, " l"]
    size_sines: Float[Array, " l"]


def terms(
    nodes: Nodes, use: Array, given: Numerators, x: Float[Array, "n d"], y: Float[Array, "m d"]
) -> Terms:
    """The coefficients of the nodes `use` for row points x and column points y."""
    b, v, scale = nodes.b[use], nodes.rule.v[use], nodes.rule.scale
    second, third = v / (2 * scale), v * v / (8 * scale * scale)
    c1, c2, c3, c4 = given.coefficients
    middle = given.middle if given.diagonal else given.middle.diagonal()
    kappa = third * c4 * (b @ middle)
    left, right, wide = _shapes(b, given.diagonal)
    parts = [
        -wide(second * c2) * left * given.first,
        -wide(second * c3) * given.second * right,
        wide(2 * third * c4) * left * given.middle * right,
    ]
    matrix = parts[0] + parts[1] + parts[2]
    if given.diagonal:
        matrix += kappa[:, None] * b
    else:
        place = np.arange(b.shape[1])
        matrix[:, place, place] += kappa[:, None] * b
    size_matrix = c1 + kappa * np.sqrt((b * b).sum(axis=1))
    size_matrix += sum(np.sqrt((part * part).reshape(len(b), -1).sum(axis=1)) for part in parts)
    row, size_row = _sines(b, x, given, (given.second, third * c4, -second * c3))
    column, size_column = _sines(b, y, given, (given.first, third * c4, -second * c2))
    row += kappa[:, None]
    size_sines = kappa + size_row + size_column
    return Terms(nodes.factor[use] / scale, matrix, row, column, size_matrix, size_sines)


def _shapes(b: Float[Array, "l d"], diagonal: bool) -> tuple:
    """B on the left and on the right of a matrix, and what stretches (L,) to its shape."""
    if diagonal:
        return b, b, lambda a: a[:, None]
    return b[:, :, None], b[:, None, :], lambda a: a[:, None, None]


def _sines(
    b: Float[Array, "l d"],
    z: Float[Array, "k d"],
    given: Numerators,
    weighted: tuple[Array, Float[Array, " l"], Float[Array, " l"]],
) -> tuple[Float[Array, "l k"], Float[Array, " l"]]:
    """(w₁ zᵀBCBz + w₂ zᵀNBz)/zᵀBz of every node and point, and a bound of the sums' sizes."""
    numerator, outer, inner = weighted
    squares = z * z
    norm = positive(b @ squares.T)
    doubled = (b * b) @ squares.T
    if given.diagonal:
        twice = (b * b) @ (squares * given.middle).T
        once = b @ (squares * numerator).T
    else:
        zb = z * b[:, None, :]
        twice = ((zb @ given.middle) * zb).sum(axis=2)
        once = b @ ((z @ numerator) * z).T
    lengths = np.sqrt(squares.sum(axis=1) * doubled)
    size = np.abs(outer) * (doubled / norm).max(axis=1) * _frobenius(given.middle)
    size += np.abs(inner) * (lengths / norm).max(axis=1) * _frobenius(numerator)
    return (outer[:, None] * twice + inner[:, None] * once) / norm, size


def rounding(
    nodes: Nodes,
    use: Array,
    part: Terms,
    mixed: Float[Array, "l n m"],
    sizes: tuple[float, Float[Array, " l"], Float[Array, " l"]],
) -> tuple[float, float]:
    """Bounds the Frobenius norms of the nodes' errors, and of their results, summed over nodes.

    P₀ <= 1/2 errs by `angle` and s by as much at most; the products over d terms by γ of the sums
    of absolute values, and the factor by `roundings` u of the result.

    Args:
        nodes: the rule at work.
        use: which of its nodes.
        part: their coefficients.
        mixed: xᵀMy.
        sizes: ‖X‖_F ‖Y‖_F, the same in the B norms, and the error of angles in radians over 2.
    """
    plain, of_norms, angle = sizes
    size = np.abs(part.row).max(axis=1) + np.abs(part.column).max(axis=1)
    of_mixed = np.sqrt((mixed * mixed).sum(axis=(1, 2)))
    result = of_mixed / 2 + of_norms * size / 6
    d = nodes.b.shape[1]
    products = gamma(2 * d + 12) * (plain * part.size_matrix / 2 + of_norms * part.size_sines / 6)
    relative = (nodes.roundings[use] + 8) * UNIT_ROUNDOFF + gamma(d + 2)
    wrong = angle * (of_mixed + of_norms * size / 6) + products + relative * result
    return float((part.factor * wrong).sum()), float((part.factor * result).sum())


def positive(squares: Array) -> Array:
    """The same with 1 in place of 0, to divide by."""
    return np.where(squares > 0, squares, 1.0)


def _frobenius(matrix: Array) -> float:
    return float(np.sqrt((matrix * matrix).sum()))
