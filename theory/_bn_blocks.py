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

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from theory import _arccosine
from theory._bn_terms import Numerators, positive, rounding, terms
from theory._nodes import Nodes
from theory._pairs import UNIT_ROUNDOFF, Recompute, cosines, gamma

__all__ = ["Numerators", "direction", "magnitude", "mirrored"]

_TILE = 128
_NEAR = 0.03
_BATCH, _BATCH_MATRIX = 1 << 16, 1 << 20  # doubles of a batch of nodes: stays in the cache
Array = np.ndarray


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
    far = min(0.25, 6 * dimension * UNIT_ROUNDOFF / 1e-12)
    scale = nodes.factor / (nodes.rule.scale * dimension)
    for some in _batches(use, len(x), out.shape[1], dimension, diagonal=True):
        left = _unit(x, nodes.b[some], norms_x[some])
        right = left if y is None else _unit(y, nodes.b[some], norms_y[some])
        product = _products(left, right)
        row, column = scale[some, None] * norms_x[some], norms_y[some]
        for p, q in _tiles(len(x), out.shape[1], y is None):
            c = product[:, p, q]
            w = cosines(left[:, p], right[:, q], c, Recompute(1e-3, far))
            _same(c, w, p, q, y is None)
            value = _arccosine.magnitude(c, w)
            value *= row[:, p, None]
            value *= column[:, None, q]
            out[p, q] += value.sum(axis=0)


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
    d, wrong, added = x.shape[1], 0.0, 0.0
    for some in _batches(use, len(x), len(other), d, numerators.diagonal):
        b, norms = nodes.b[some], (norms_x[some], norms_y[some])
        part = terms(nodes, some, numerators, x, other)
        matrix = part.matrix
        turned = x * matrix[:, None, :] if numerators.diagonal else x @ matrix
        mixed = plain + turned @ other.T
        left = _unit(x, b, norms[0])
        right = left if y is None else _unit(other, b, norms[1])
        product = _products(left, right)
        for p, q in _tiles(len(x), out.shape[1], y is None):
            c = product[:, p, q]
            w = cosines(left[:, p], right[:, q], c, Recompute(_NEAR, _NEAR))
            _same(c, w, p, q, y is None)
            value = mixed[:, p, q] * _arccosine.half_plane(c, w)
            sine = np.sqrt(w * (2 - w))
            sine *= part.row[:, p, None] + part.column[:, None, q]
            sine *= norms[0][:, p, None] * norms[1][:, None, q]
            value += sine / (2 * np.pi)
            out[p, q] += np.einsum("l,lpq->pq", part.factor, value)
        angle = 1.2 * (gamma(d + 2) + 8 * UNIT_ROUNDOFF) + doubt * _reach(b, (x, other), norms) / 4
        lengths = float(np.linalg.norm(x) * np.linalg.norm(other))
        of_norms = np.linalg.norm(norms[0], axis=1) * np.linalg.norm(norms[1], axis=1)
        errors, results = rounding(nodes, some, part, mixed, (lengths, of_norms, angle))
        wrong, added = wrong + errors, added + results
    return wrong, added


def _reach(
    b: Float[Array, "l d"], points: tuple[Array, Array], norms: tuple[Array, Array]
) -> Float[Array, " l"]:
    """How much an error of the points' Euclidean norm can grow, relatively, in the B norm."""
    both = np.zeros(len(b))
    for z, norm in zip(points, norms, strict=True):
        both += (np.sqrt((z * z).sum(axis=1)) / positive(norm)).max(axis=1)
    return both * np.sqrt(b.max(axis=1))


def _batches(use: Array, n: int, m: int, d: int, diagonal: bool) -> Iterator[Array]:
    """Nodes that are worked on together: many where there are few points."""
    count = min(_BATCH // (n * m), 4 * _BATCH // ((n + m) * d))
    count = max(1, count if diagonal else min(count, _BATCH_MATRIX // (d * d)))
    for start in range(0, len(use), count):
        yield use[start : start + count]


def _products(left: Float[Array, "l n d"], right: Float[Array, "l m d"]) -> Float[Array, "l n m"]:
    if len(left) == 1:  # of a matrix with itself half the work, and symmetric
        return (left[0] @ right[0].T)[None]
    return left @ right.transpose(0, 2, 1)


def _norms(nodes: Nodes, x: Float[Array, "n d"]) -> Float[Array, "l n"]:
    return np.sqrt(nodes.b @ (x * x).T)


def _unit(
    x: Float[Array, "n d"], b: Float[Array, "l d"], norm: Float[Array, "l n"]
) -> Float[Array, "l n d"]:
    unit = x * np.sqrt(b)[:, None, :]
    unit /= positive(norm)[:, :, None]
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
        place = np.arange(c.shape[1])
        c[:, place, place] = 1.0
        w[:, place, place] = 0.0


def mirrored(out: Float[Array, "n n"]) -> None:
    """Copies the upper tiles to the lower ones and the upper triangle within the diagonal ones."""
    n = len(out)
    for p, q in _tiles(n, n, True):
        if p == q:
            upper = np.triu(out[p, p])
            out[p, p] = upper + np.triu(upper, 1).T
        else:
            out[q, p] = out[p, q].T
