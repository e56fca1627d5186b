"""λ_min of a Gram matrix too large to store, bounded above by a principal submatrix.

λ_min(K) <= λ_min(K_SS) for any set S of rows (Cauchy), and a small λ_min of a kernel is the work of
few points: two of nearly one direction, at an angle θ, bring it below about θ²/4 of a diagonal
entry, half of that once other points absorb the linear half of φ. So S starts with the pairs of
the smallest angles, found over all pairs without storing them, and grows by the rows that lower the
eigenvalue most: for its vector v, adding row r takes away about (K_rS v)²/(K_rr - λ).
"""

import threading
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from theory import _extreme
from theory._angles import line_angles
from theory._cores import in_threads
from theory._kernels import Kernel, rectangle
from theory._pairs import UnitRows
from theory._progress import Meter
from theory._strategy import Resources
from theory._symmetric import as_symmetric
from theory.spectrum import Enclosure, enclose

_ROUNDS = 2  # of growing by rows that lower the eigenvalue
_WIDE = 2048  # columns of a tile


@dataclass(frozen=True)
class Submatrix:
    """A principal submatrix of the Gram matrix and its smallest eigenvalue.

    Attributes:
        rows: its rows, in ascending order.
        matrix: its entries.
        low: λ_min, an upper bound of that of all rows, named by the rows of the whole.
    """

    rows: Int[np.ndarray, " k"]
    matrix: Float[np.ndarray, "k k"]
    low: Enclosure


def lowest_submatrix(
    points: Float[np.ndarray, "n d"], kernel: Kernel, size: int, use: Resources
) -> Submatrix:
    """Chooses at most `size` rows with a small λ_min and encloses it, the entries' error included.

    Args:
        points: none of them zero.
        kernel: the kernel.
        size: at least 2, where there are as many points.
        use: what may be used; about 24·size² bytes are.
    """
    unit, scale = kernel.scaled(points)
    n = len(scale)
    size = min(size, n)
    if size == n:
        rows = np.arange(n)
    else:
        # Norms up to a power of two: they may be far from 1.
        weight = np.ldexp(scale, -int(np.frexp(scale.max())[1]))
        pairs = nearest_pairs(unit, weight, size, use.meter.part(0.0, 0.7))
        rows = _first_rows(pairs, weight, size)
        for left in range(_ROUNDS, 0, -1):
            more = (size - len(rows)) // left
            rows = np.union1d(rows, _lowering(unit, weight, rows, more))
            use.meter(0.7 + 0.1 * (_ROUNDS - left + 1))
    matrix = kernel.matrix(points[rows])
    error = kernel.error(points[rows])
    low = enclose(matrix, "the submatrix", error, 1, replace(use, meter=Meter(None)), rows)
    use.meter(1.0)
    return Submatrix(rows, matrix, low)


def _first_rows(
    pairs: Int[np.ndarray, "2 m"], weight: Float[np.ndarray, " n"], size: int
) -> Int[np.ndarray, " k"]:
    """The rows of the nearest pairs, up to half of the size, and a few of the shortest points."""
    short = np.argsort(weight, kind="stable")[: max(1, size // 32)]
    chosen = dict.fromkeys(short[: size // 2].tolist())
    for p, q in pairs.T.tolist():
        if len(chosen) + 2 > max(size // 2, 2):
            break
        chosen.update(((p, None), (q, None)))
    return np.sort(np.array(list(chosen), dtype=np.intp))


def _lowering(
    unit: UnitRows, weight: Float[np.ndarray, " n"], rows: Int[np.ndarray, " k"], count: int
) -> Int[np.ndarray, " m"]:
    """The rows beside `rows` that lower the smallest eigenvalue most, to second order."""
    if count < 1:
        return np.empty(0, dtype=np.intp)
    own = unit.unit[rows]
    matrix = rectangle(own, own) * np.outer(weight[rows], weight[rows])
    matrix = (matrix + matrix.T) / 2
    found = _extreme.smallest(as_symmetric(matrix, "the submatrix").matrix)
    gain = np.empty(len(weight))
    for start in range(0, len(weight), _WIDE):
        part = slice(start, start + _WIDE)
        image = rectangle(unit.unit[part], own) @ (weight[rows] * found.vector)
        # Both factors hold the row's weight: (w g)²/(w²/2 - λ).
        size = np.maximum(weight[part] ** 2 / 2 - found.value, 1e-300)
        gain[part] = (weight[part] * image) ** 2 / size
    gain[rows] = -1.0
    best = np.argsort(-gain, kind="stable")[:count]
    return best[gain[best] >= 0]


def nearest_pairs(
    unit: UnitRows, weight: Float[np.ndarray, " n"], count: int, meter: Meter
) -> Int[np.ndarray, "2 m"]:
    """The `count` pairs p < q nearest to one line, parallel or antipodal, the nearest first.

    Near is a small (1 - |cos θ|)/(1/w_p² + 1/w_q²), the smallest eigenvalue of the pair's own 2 × 2
    submatrix up to a factor. X̂X̂ᵀ is computed by tiles, by as many threads as BLAS has, of which
    only the best pairs are kept; those are ordered anew by an angle that does not cancel.
    """
    n = len(weight)
    best = _Best(count)
    weak = 1 / np.maximum(weight, 1e-100) ** 2
    tall = max(128, min(512, n // 64))

    def search(top: int) -> None:
        rows = slice(top, top + tall)
        for left in range(top, n, _WIDE):
            columns = slice(left, left + _WIDE)
            near = 1.0 - np.abs(unit.unit[rows] @ unit.unit[columns].T)
            both = weak[rows, None] + weak[columns]
            p, q = np.nonzero(near <= best.limit * both)
            keep = q + left > p + top
            p, q = p[keep], q[keep]
            best.add(near[p, q] / both[p, q], p + top, q + left)

    tops = range(0, n, tall)
    in_threads(search, tops, meter, sizes=[float(n - top) for top in tops])
    p, q = best.pairs
    angle, _ = line_angles(unit.unit, p, q)
    order = np.lexsort((q, p, np.sin(angle / 2) ** 2 / (weak[p] + weak[q])))
    return np.stack([p[order], q[order]])


class _Best:
    """The pairs of the smallest scores; ties go by their rows, so that no order of adding shows."""

    def __init__(self, count: int) -> None:
        self.limit = np.inf
        self._count, self._lock = count, threading.Lock()
        self._score, none = np.empty(0), np.empty(0, dtype=np.intp)
        self.pairs = none, none

    def add(
        self, score: Float[np.ndarray, " m"], p: Int[np.ndarray, " m"], q: Int[np.ndarray, " m"]
    ) -> None:
        if not len(score):
            return
        with self._lock:
            score = np.concatenate([self._score, score])
            p, q = np.concatenate([self.pairs[0], p]), np.concatenate([self.pairs[1], q])
            if len(score) > self._count:
                cut = np.partition(score, self._count - 1)[self._count - 1]
                some = np.flatnonzero(score <= cut)
                order = some[np.lexsort((q[some], p[some], score[some]))[: self._count]]
                score, p, q = score[order], p[order], q[order]
                self.limit = float(cut)
            self._score, self.pairs = score, (p, q)
