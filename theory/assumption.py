"""Assumption III.1 checked on data: centred clients, and no two points on one line."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from theory._angles import ClosePairs, close_pairs
from theory._loose import ArrayLike, Real
from theory._validate import Groups, as_groups, as_points
from theory.singular import Diagnosis, as_angle, diagnose

Centring = Literal["exact", "sampling", "absent"]

_EXACT = 1e-9  # a mean this small beside the points is rounding
_SAMPLING = 4.0  # a mean below this many times rms/√n_i is what a sample of mean 0 shows


@dataclass(frozen=True)
class Assumption:
    """What the data say about Assumption III.1.

    Attributes:
        holds: centred (exactly or within sampling) and no parallel, antiparallel or zero point.
        centring: "exact" if every client's mean is zero up to rounding, "sampling" if it is no
            larger than a sample from a centred client shows, "absent" otherwise.
        worst_mean: ‖mean‖ / rms norm of the points, for the client where it is worst.
        sampling_scale: 1/√n_i, the size of that ratio for n_i points of a centred client.
        worst_client: that client.
        parallel: pairs (p, q) of rows with x_p = κx_q, κ > 0.
        antiparallel: pairs with κ < 0.
        zero_rows: rows that are zero.
        smallest_angle: smallest angle between the lines of two points, in radians; infinite
            for fewer than two points.
        advice: one or more sentences: what breaks, what follows for G∞ and G*∞, what to do.
    """

    holds: bool
    centring: Centring
    worst_mean: float
    sampling_scale: float
    worst_client: Hashable
    parallel: tuple[tuple[int, int], ...]
    antiparallel: tuple[tuple[int, int], ...]
    zero_rows: tuple[int, ...]
    smallest_angle: float
    advice: str

    def __str__(self) -> str:
        """The advice."""
        return self.advice


@dataclass(frozen=True)
class Centredness:
    """Worst client by ‖mean‖·√n_i / rms; see `Assumption`."""

    state: Centring
    ratio: float
    scale: float
    client: Hashable


def check_assumption(x: ArrayLike, client: ArrayLike, tolerance: Real = 1e-10) -> Assumption:
    """Checks Assumption III.1: E xⁱ = 0 for every client, and x_p ≠ κx_q for every κ ≠ 0.

    κ < 0 counts as well: one antipodal pair breaks the assumption without making G∞ singular,
    while one parallel pair makes it singular.

    Args:
        x: (n, d) points.
        client: n labels.
        tolerance: angle in radians, below 0.1, up to which two points count as on one line.

    Raises:
        ValueError, TypeError: bad points, labels or tolerance.
    """
    points = as_points(x)
    groups = as_groups(client, len(points))
    limit = as_angle(tolerance)
    centred = centredness(points, groups)
    zero, rest = (np.flatnonzero(points.any(axis=1) == some) for some in (False, True))
    pairs = close_pairs(points[rest], limit)
    parallel, antiparallel = rest[pairs.parallel], rest[pairs.antiparallel]
    broken = centred.state == "absent" or len(zero) or len(parallel) or len(antiparallel)
    found = diagnose(points, limit) if len(antiparallel) else None
    sentences = [
        "Assumption III.1",
        "is broken." if broken else "holds.",
        _centring_advice(centred),
        *_pair_advice(parallel, antiparallel, groups.labels(), found),
        *_remaining_advice(zero, pairs),
    ]
    return Assumption(
        not broken,
        centred.state,
        centred.ratio,
        centred.scale,
        centred.client,
        _tuples(parallel),
        _tuples(antiparallel),
        tuple(zero.tolist()),
        pairs.smallest,
        " ".join(sentences),
    )


def centredness(x: Float[np.ndarray, "n d"], groups: Groups) -> Centredness:
    """How well every client is centred, judged by the worst one."""
    worst = Centredness("exact", 0.0, 1.0, groups.names[0])
    excess = -1.0
    for name, rows in zip(groups.names, groups.rows, strict=True):
        own = x[rows]
        size = np.abs(own).max()
        if size == 0:
            continue
        own = own / size  # squares stay in range
        ratio = float(np.linalg.norm(own.mean(axis=0)) / np.sqrt((own**2).sum(axis=1).mean()))
        scale = 1 / math.sqrt(len(rows))
        if ratio / scale > excess:
            excess = ratio / scale
            worst = Centredness(_state(ratio, scale), ratio, scale, name)
    return worst


def _state(ratio: float, scale: float) -> Centring:
    if ratio <= _EXACT:
        return "exact"
    return "sampling" if ratio <= _SAMPLING * scale else "absent"


def _centring_advice(centred: Centredness) -> str:
    if centred.state == "exact":
        return "Every client's mean is zero up to rounding."
    size = (
        f"client {centred.client!r} has a mean of {centred.ratio:.2g} of its points' size, where "
        f"sampling alone gives {centred.scale:.2g}"
    )
    if centred.state == "sampling":
        return f"The clients' means are zero within sampling ({size})."
    return f"Not centred: {size}; use theory.centre(x, client)."


def _pair_advice(
    parallel: np.ndarray,
    antiparallel: np.ndarray,
    label: dict[int, Hashable],
    found: Diagnosis | None,
) -> list[str]:
    out = []
    if len(parallel):
        inside = sum(label[int(p)] == label[int(q)] for p, q in parallel)
        effect = (
            f"{inside} of them within a client, which makes G*∞ singular too"
            if inside
            else "all across clients, which leaves G*∞ as it is"
        )
        out.append(
            f"Parallel: {_named(parallel, label)}. That makes G∞ singular; {effect}. Drop one "
            "point of each pair."
        )
    if len(antiparallel):
        out.append(f"Antiparallel: {_named(antiparallel, label)}. {_antipodal_effect(found)}")
    return out


def _antipodal_effect(found: Diagnosis | None) -> str:
    if found is None or not found.antipodal:
        return "Such pairs break the assumption."
    lines = len(found.antipodal)
    if found.rank < lines:
        return (
            f"Their {lines} lines span only {found.rank} dimensions, which makes G∞ singular "
            "(φ(t) − φ(−t) = t is linear); drop one point of each pair."
        )
    count = "One pair breaks" if lines == 1 else "Such pairs break"
    return (
        f"{count} the assumption without making G∞ singular: that takes pairs on "
        "linearly dependent lines, such as more than d of them."
    )


def _remaining_advice(zero: np.ndarray, pairs: ClosePairs) -> list[str]:
    out = []
    if len(zero):
        rows = ", ".join(map(str, zero[:5].tolist()))
        out.append(f"Zero rows ({len(zero)}: {rows}) make G∞ singular; drop them.")
    if not pairs.complete:
        out.append("There are more pairs on one line than are listed.")
    if len(pairs.parallel) + len(pairs.antiparallel) == 0 and math.isfinite(pairs.smallest):
        out.append(f"The closest two lines are {math.degrees(pairs.smallest):.3g}° apart.")
    return out


def _named(pairs: np.ndarray, label: dict[int, Hashable]) -> str:
    """The first pairs by row and client."""
    shown = "; ".join(
        f"rows {p} and {q} (clients {label[p]!r}, {label[q]!r})" for p, q in pairs[:3].tolist()
    )
    return shown + (f"; {len(pairs)} pairs in all" if len(pairs) > 3 else "")


def _tuples(pairs: np.ndarray) -> tuple[tuple[int, int], ...]:
    return tuple((int(p), int(q)) for p, q in pairs)
