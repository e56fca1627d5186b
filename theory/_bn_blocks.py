"""The magnitude and direction parts between two groups of points, node by node.

All in the eigenbasis of one metric Q = vᵀSv, B = B_l of a node, f its factor, λ its scale, u its
node, g₂ = (1 - u)/2λ, g₃ = (1 - u)²/8λ². With v ~ N(0, B), θ the angle of x and y in the B inner
product, N the B norm, P₀ = (π - θ)/2π, s = sin θ/2π and 1 for v·x > 0, v·y > 0:

    E 1 = P₀,   E (v·x)(v·y)1 = κ₁ = N_x N_y (s + P₀ cos θ),
    E (v·w)(v·x)1 = wᵀBx P₀ + wᵀBy (N_x/N_y) s,
    E vᵀCv (v·x)(v·y)1 = tr(CB)κ₁ + E (v·CBx)(v·y)1 + E (v·CBy)(v·x)1,

the last two by Stein's identity E vᵀF(v) = E tr(B∇F), whose boundary terms vanish with (v·x)(v·y).
Magnitude: f κ₁/(λd). Direction, with S_i, S_j the covariances, C = (S_i S_j + S_j S_i)/2 and
coefficients c = (c₁, c₂, c₃, c₄) of (x·y)/Q, (v·x)(vᵀS_i y)/Q², (v·y)(vᵀS_j x)/Q² and
(v·x)(v·y)vᵀCv/Q³: collecting P₀ and s,

    (f/λ) [ xᵀMy P₀ + N_x N_y (κ + a_x + b_y) s ],
    M = c₁I - g₂(c₂ B S_i + c₃ S_j B) + g₃c₄(2BCB + tr(CB) B),   κ = g₃c₄ tr(CB),
    a_x = (g₃c₄ xᵀBCBx - g₂c₃ xᵀS_jBx)/N_x²,   b_y = (g₃c₄ yᵀBCBy - g₂c₂ yᵀS_iBy)/N_y².
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from theory import _arccosine
from theory._nodes import Nodes
from theory._pairs import UNIT_ROUNDOFF, Recompute, cosines, gamma

_TILE = 128
_NEAR = 0.03
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


def magnitude(
    nodes: Nodes,
    use: Array,
    x: Float[Array, "n d"],
    y: Float[Array, "m d"] | None,
    out: Float[Array, "n m"],
) -> None:
    """Adds the magnitude part to `out`; of a symmetric one (y None) the upper tiles only.

    Args:
        nodes: the rule at work.
        use: indices of the nodes to take.
        x: the row points in the eigenbasis.
        y: the column points; None where they are the row points.
        out: the sum so far.
    """
    norms_x = _norms(nodes, x)
    norms_y = norms_x if y is None else _norms(nodes, y)
    dimension = x.shape[1]
    far = min(0.25, 6 * dimension * 2.0**-53 / 1e-12)
    for node in use.tolist():
        scale = nodes.factor[node] / (nodes.rule.scale * dimension)
        left = _unit(x, nodes.b[node], norms_x[node])
        right = left if y is None else _unit(y, nodes.b[node], norms_y[node])
        product = left @ right.T
        row, column = scale * norms_x[node], norms_y[node]
        for p, q in _tiles(len(x), len(right), y is None):
            c = product[p, q]
            w = cosines(left[p], right[q], c, Recompute(1e-3, far))
            _same(c, w, p, q, y is None)
            value = _arccosine.magnitude(c, w)
            value *= row[p, None]
            value *= column[q]
            out[p, q] += value


def direction(
    nodes: Nodes,
    use: Array,
    numerators: Numerators,
    points: tuple[Float[Array, "n d"], Float[Array, "m d"] | None],
    out: Float[Array, "n m"],
    doubt: float,
) -> tuple[float, float]:
    """Adds the direction part to `out`; of a symmetric one the upper tiles only.

    Args:
        nodes: the rule at work.
        use: indices of the nodes to take.
        numerators: what stands above Q.
        points: row and column points in the eigenbasis, None for the columns where they are alike.
        out: the sum so far.
        doubt: relative error of the points in the Euclidean norm.

    Returns:
        Bounds of the Frobenius norm of the errors, of rounding and of what `doubt` does to angles,
        and of the norms of all that was added.
    """
    x, y = points
    other = x if y is None else y
    norms_x, norms_y = _norms(nodes, x), _norms(nodes, other)
    plain = numerators.coefficients[0] * (x @ other.T)
    lengths = [np.sqrt((z * z).sum(axis=1)) for z in (x, other)]
    wrong = added = 0.0
    for node in use.tolist():
        b, norms = nodes.b[node], (norms_x[node], norms_y[node])
        part = _coefficients(nodes, node, numerators, x, other)
        matrix = part.matrix
        mixed = plain + (x * matrix if matrix.ndim == 1 else x @ matrix) @ other.T
        left = _unit(x, b, norms[0])
        right = left if y is None else _unit(other, b, norms[1])
        product = left @ right.T
        for p, q in _tiles(len(x), len(right), y is None):
            c = product[p, q]
            w = cosines(left[p], right[q], c, Recompute(_NEAR, _NEAR))
            _same(c, w, p, q, y is None)
            value = mixed[p, q] * _arccosine.half_plane(c, w)
            sine = np.sqrt(w * (2 - w))
            sine *= (part.row[p, None] + part.column[q]) * (norms[0][p, None] * norms[1][q])
            value += sine / (2 * np.pi)
            out[p, q] += part.factor * value
        reach = [
            float((size / _positive(norm)).max()) * math.sqrt(float(b.max()))
            for size, norm in zip(lengths, norms, strict=True)
        ]
        angle = 1.2 * (gamma(len(b) + 2) + 8 * UNIT_ROUNDOFF) + doubt * sum(reach) / 4
        errors, result = _rounding(nodes, node, part, (mixed, *lengths, *norms), angle)
        wrong += part.factor * errors
        added += part.factor * result
    return wrong, added


def _rounding(
    nodes: Nodes, node: int, part: "_Part", arrays: tuple[Array, ...], angle: float
) -> tuple[float, float]:
    """Bounds the Frobenius norms of a node's errors and of its result, over its factor.

    P₀ <= 1/2 errs by `angle` and s by as much at most; the products over d terms by γ of the sums
    of absolute values, and the factor by `roundings` u of the result.
    """
    mixed, *lengths = arrays
    plain, of_norms = (math.prod(map(_length, lengths[i : i + 2])) for i in (0, 2))
    size = float(np.abs(part.row).max() + np.abs(part.column).max())
    result = _length(mixed.ravel()) / 2 + of_norms * size / 6
    products = gamma(2 * len(nodes.b[node]) + 12) * (
        plain * part.size_matrix / 2 + of_norms * part.size_sines / 6
    )
    relative = (nodes.roundings[node] + 8) * UNIT_ROUNDOFF + gamma(len(nodes.b[node]) + 2)
    wrong = angle * (_length(mixed.ravel()) + of_norms * size / 6) + products + relative * result
    return wrong, result


def _length(x: Array) -> float:
    return float(np.sqrt(x @ x))


@dataclass(frozen=True)
class _Part:
    """f/λ, M - c₁I, a_x + κ and b_y of a node, and the sizes of all that was summed in them."""

    factor: float
    matrix: Array
    row: Array
    column: Array
    size_matrix: float
    size_sines: float


def _coefficients(
    nodes: Nodes, node: int, given: Numerators, x: Float[Array, "n d"], y: Float[Array, "m d"]
) -> _Part:
    b, v, scale = nodes.b[node], nodes.rule.v[node], nodes.rule.scale
    second, third = v / (2 * scale), v * v / (8 * scale * scale)
    c1, c2, c3, c4 = given.coefficients
    diagonal = given.middle.ndim == 1
    trace = float(((given.middle if diagonal else given.middle.diagonal()) * b).sum())
    column = b if diagonal else b[:, None]
    parts = [
        -second * c2 * column * given.first,
        -second * c3 * given.second * b,
        2 * third * c4 * column * given.middle * b,
    ]
    kappa = third * c4 * trace
    matrix = parts[0] + parts[1] + parts[2]
    if diagonal:
        matrix += kappa * b
    else:
        matrix[np.diag_indices_from(matrix)] += kappa * b
    size_matrix = c1 + kappa * _length(b) + sum(_length(part.ravel()) for part in parts)

    def form(z: Array, numerator: Array, weight: float) -> tuple[Array, float]:
        """Row sums of (z C)∘(z B) over zᵀBz, C over it twice scaled by B, and their sizes."""
        image = z * numerator if diagonal else z @ numerator
        norm = _positive((z * z * b).sum(axis=1))
        terms = weight * image * (z * b)
        absolute = np.abs(weight) * np.sqrt((z * z).sum(axis=1) * ((z * b) ** 2).sum(axis=1))
        size = float((absolute / norm).max()) * _length(numerator.ravel())
        return terms.sum(axis=1) / norm, size

    def middle(z: Array) -> tuple[Array, float]:
        """zᵀBCBz over zᵀBz."""
        zb = z * b
        norm = _positive((z * zb).sum(axis=1))
        image = zb * given.middle if diagonal else zb @ given.middle
        size = float(((zb * zb).sum(axis=1) / norm).max()) * _length(given.middle.ravel())
        return third * c4 * (image * zb).sum(axis=1) / norm, third * c4 * size

    pairs = [middle(x), form(x, given.second, -second * c3)]
    pairs += [middle(y), form(y, given.first, -second * c2)]
    row, other = pairs[0][0] + pairs[1][0] + kappa, pairs[2][0] + pairs[3][0]
    size_sines = kappa + sum(size for _, size in pairs)
    return _Part(nodes.factor[node] / scale, matrix, row, other, size_matrix, size_sines)


def _positive(squares: Float[Array, " n"]) -> Float[Array, " n"]:
    return np.where(squares > 0, squares, 1.0)


def _norms(nodes: Nodes, x: Float[Array, "n d"]) -> Float[Array, "l n"]:
    return np.sqrt(nodes.b @ (x * x).T)


def _unit(x: Float[Array, "n d"], b: Float[Array, " d"], norm: Float[Array, " n"]) -> Array:
    unit = x * np.sqrt(b)
    unit /= _positive(norm)[:, None]
    return unit


def _tiles(n: int, m: int, symmetric: bool) -> list[tuple[slice, slice]]:
    return [
        (slice(top, min(top + _TILE, n)), slice(left, min(left + _TILE, m)))
        for top in range(0, n, _TILE)
        for left in range(top if symmetric else 0, m, _TILE)
    ]


def _same(c: Array, w: Array, p: slice, q: slice, symmetric: bool) -> None:
    """A point is at the angle 0 from itself, exactly."""
    if symmetric and p == q:
        np.fill_diagonal(c, 1.0)
        np.fill_diagonal(w, 0.0)


def mirrored(out: Float[Array, "n n"]) -> None:
    """Copies the upper tiles to the lower ones and the upper triangle within the diagonal ones."""
    n = len(out)
    for p, q in _tiles(n, n, True):
        if p == q:
            upper = np.triu(out[p, p])
            out[p, p] = upper + np.triu(upper, 1).T
        else:
            out[q, p] = out[p, q].T
