"""λ_max of a Gram matrix too large to store, between a Rayleigh quotient and weighted row sums.

The entries are nonnegative, so that for every v > 0 (Collatz and Wielandt, from Perron)

    vᵀKv/vᵀv <= λ_max(K) <= max_p (Kv)_p/v_p,

where v = 1 gives the largest row sum, and both are equalities for the eigenvector. Here v is the
image of 1 under two columns of blocks: K[:, S] K[S, S] 1 for an even sample S. Kv is summed from
tiles that are computed and dropped.

Rounding, with s_p the factors in K_pq = s_p s_q h: an entry is wrong by at most c s_p s_q, so that
(Kv)_p is by c s_p Σ s_q v_q; and its sum of n nonnegative terms, in any order, by the factor
1 ± γ_{2n+16}. Underflow, with s and v at most 1, is charged 2^-1000 a term.
"""

import math
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from theory import _certify
from theory._cores import in_threads
from theory._enclosure import Enclosure
from theory._kernels import Kernel, rectangle
from theory._pairs import UNIT_ROUNDOFF, gamma
from theory._progress import Meter

METHOD = "Rayleigh quotient and weighted row sums, by tiles"
_SAMPLE = 1024
_WIDE = 2048
_PANELS = 128  # at most: each keeps a vector until all are summed, in order


def largest_by_tiles(points: Float[np.ndarray, "n d"], kernel: Kernel, meter: Meter) -> Enclosure:
    """Encloses λ_max of the exact kernel of all points, none of them zero, without its matrix."""
    unit, scale = kernel.scaled(points)
    exponent = int(np.frexp(scale.max())[1])
    s = np.ldexp(scale, -exponent)
    vector = _positive(unit.unit, s)
    image = _product(unit.unit, s, vector, meter)
    low, high = _bounds(s, vector, image, kernel.entry_error(points.shape[1]))
    unit_squared = Fraction(4) ** exponent
    return Enclosure(
        _certify.rounded(low * unit_squared, up=False),
        _certify.rounded(high * unit_squared, up=True),
        METHOD,
        rows=tuple(np.argsort(-vector, kind="stable")[:1].tolist()),
    )


def _positive(
    unit: Float[np.ndarray, "n d"], s: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """A vector near the eigenvector, with entries in (0, 1]."""
    n = len(s)
    sample = np.arange(0, n, -(-n // _SAMPLE))
    own, weight = unit[sample], s[sample]
    first = weight * (rectangle(own, own) @ weight)
    vector = np.empty(n)
    for start in range(0, n, _WIDE):
        part = slice(start, start + _WIDE)
        vector[part] = s[part] * (rectangle(unit[part], own) @ (weight * first))
    vector /= vector.max()
    # An entry may be 0 where a point is opposite to all others; any positive one will do.
    return np.maximum(vector, np.maximum(1e-6 * s, 1e-150))


def _product(
    unit: Float[np.ndarray, "n d"],
    s: Float[np.ndarray, " n"],
    vector: Float[np.ndarray, " n"],
    meter: Meter,
) -> Float[np.ndarray, " n"]:
    """Kv for K_pq = s_p s_q h(c_pq), each tile used for both of its triangles."""
    n = len(s)
    tall = max(256, -(-n // _PANELS))

    def panel(top: int) -> Float[np.ndarray, " m"]:
        rows = slice(top, min(top + tall, n))
        image = np.zeros(n - top)
        for left in range(top, n, _WIDE):
            columns = slice(left, min(left + _WIDE, n))
            tile = rectangle(unit[rows], unit[columns])
            tile *= s[rows, None]
            tile *= s[columns]
            if left < rows.stop:
                # Entries below the diagonal belong to another tile.
                tile[np.arange(left, columns.stop) < np.arange(top, rows.stop)[:, None]] = 0.0
            image[: rows.stop - top] += tile @ vector[columns]
            if left < rows.stop:
                at = np.arange(max(left, top), min(columns.stop, rows.stop))
                tile[at - top, at - left] = 0.0
            image[left - top : columns.stop - top] += tile.T @ vector[rows]
        return image

    tops = range(0, n, tall)
    total = np.zeros(n)
    parts = in_threads(panel, tops, meter, sizes=[float(n - top) for top in tops])
    for top, part in zip(tops, parts, strict=True):
        total[top:] += part
    return total


def _bounds(
    s: Float[np.ndarray, " n"],
    vector: Float[np.ndarray, " n"],
    image: Float[np.ndarray, " n"],
    entry: float,
) -> tuple[Fraction, Fraction]:
    """The two sides, with all rounding charged."""
    n = len(s)
    room = 1 + 8 * UNIT_ROUNDOFF
    tiny = n * 2.0**-1000
    # Within a tile at most n additions, and one a tile and a panel; doubled for 1/(1 - γ).
    sums = 2 * gamma(2 * n + 16)
    wrong = entry * math.fsum(s * vector) * room
    least = image * (1 - sums) - s * wrong * room - tiny
    most = image * (1 + sums) + s * wrong * room + tiny
    high = Fraction(float((most / vector).max())) * Fraction(room)
    # Against the sign of what is left, should rounding exceed the quotient itself.
    products = least * vector
    top = Fraction(math.fsum(products)) - Fraction(math.fsum(np.abs(products))) * Fraction(
        4 * UNIT_ROUNDOFF
    )
    below = Fraction(math.fsum(vector * vector)) * Fraction(1 + 4 * UNIT_ROUNDOFF)
    return max(top / below, Fraction(0)), high
