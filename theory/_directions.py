"""sup over directions w of what half-spaces {w·x ≥ c} tell apart of two Gaussians.

Along w the laws are N(0, wᵀPw) and N(w·δ, wᵀQw), and `greatest_gap` gives the best threshold. It
depends on w through three numbers alone, and grows with |w·δ|. In coordinates with P = diag(a),
P + Q = I and |w| = 1 the variances are wᵀPw = sin²θ and cos²θ, and for every weight e > 0 that is
linear in a, Cauchy–Schwarz gives (w·δ)² ≤ (Σ δ_k²/e_k)(Σ e_k w_k²), where Σ e_k w_k² is the value
of e at sin²θ; equality holds for w_k ∝ δ_k/e_k, Anderson and Bahadur's (1962) family of
discriminants. So the supremum is over θ alone: each interval of θ has an upper bound, by the
corners of its box of standard deviations, each w of the family gives a lower one, and intervals
are split until the two agree.
"""

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy import special

from theory._line import ROUNDING, greatest_gap
from theory._normal import Shared
from theory._pairs import gamma

Array = np.ndarray

_FIRST = 64
_ROUNDS = 14
_ENTRIES = 1 << 20  # of intervals × coordinates at a time: megabytes, and a second
_HALVINGS = 40
_EXTREME = 100.0  # logit of the weight: beyond any that is needed, and squares stay finite
_NUDGE = 1e-8  # of |δ|: gives every coordinate a part, else w might miss the extreme variances
_FLOOR = 2.0**-60  # the same for a δ that is about zero, far below the tolerance


def best_direction(shared: Shared, tolerance: float) -> tuple[Float[Array, " r"], float]:
    """The best w found, in Vᵀx, and an upper bound of sup |F − G| over all directions.

    Intervals are split until the two agree to the tolerance, or too many are left. The rounding of
    the coordinates is bounded: variances are wrong by at most `doubt` |w|².
    """
    a, delta = shared.shares, shared.delta
    least_part = max(_NUDGE * float(np.linalg.norm(delta)), _FLOOR)
    delta = np.where(delta < 0, -1, 1) * np.hypot(delta, least_part)
    least, most = np.arcsin(np.sqrt([a.min(), a.max()])).tolist()
    edges = np.linspace(least, most, _FIRST + 1)
    left, right = edges[:-1], edges[1:]
    # First the family's middle and its ends.
    best, lower = _best(shared, delta / _line(a, np.array([[0.0], [-_EXTREME], [_EXTREME]]), a))
    closed = 0.0
    for turn in range(_ROUNDS):
        w, upper = _bounds(shared, delta, left, right)
        best, lower = max((best, lower), _best(shared, w), key=lambda pair: pair[1])
        left_open = upper > lower + tolerance
        many = 4 * int(left_open.sum()) * len(a) > _ENTRIES
        if not left_open.any() or many or turn == _ROUNDS - 1:
            closed = max(closed, float(upper.max()))
            break
        closed = max(closed, float(upper[~left_open].max(initial=0.0)))
        step = (right - left)[left_open] / 4
        edges = left[left_open] + step * np.arange(5)[:, None]
        left, right = edges[:-1].ravel(), edges[1:].ravel()
    return best, min(closed + ROUNDING, 1.0)


def shown_by(
    shared: Shared, w: Float[Array, "k r"], told_apart: Callable[..., Array] = greatest_gap
) -> float:
    """The most that one of k directions shows, less the rounding of the coordinates.

    With p the narrower law, the set that the crossings give, a half-line or an interval about p's
    mean, only gains p's mass from a smaller deviation of p; each of its ends, as ½ ≤ t², changes
    q's mass by less than `doubt`, and a shift of the means by less than itself.
    """
    gap, s, t = _along(shared, w)
    squares = w * w
    doubt = squares @ shared.doubt / squares.sum(axis=1)
    narrow = np.sqrt(np.minimum(s, t) ** 2 + doubt)
    value = float((told_apart(gap, narrow, np.maximum(s, t)) - 2 * doubt).max())
    return max(value - 2 * _shift(shared) - ROUNDING, 0.0)


def _bounds(shared: Shared, delta: Array, left: Array, right: Array) -> tuple[Array, Array]:
    """Per interval of θ a direction of the family, and an upper bound of the greatest gap."""
    a, doubt = shared.shares, float(shared.doubt.max())
    low, high = np.sin(left) ** 2 - doubt, np.sin(right) ** 2 + doubt
    # At an end the best weight for an exact variance is useless for one with a doubt.
    inner = np.sort([a.min() + 4 * doubt, a.max() - 4 * doubt])
    target = np.clip((low + high) / 2, *inner)
    logits = _logits(a, delta / np.linalg.norm(delta), target)
    ends = np.stack([_line(a, logits, low), _line(a, logits, high)])
    w = delta / _line(a, logits[:, None], a)
    most = np.minimum(np.sqrt((w @ delta) * ends.max(axis=0)), np.linalg.norm(delta))
    most = most * (1 + 1e-12) + _shift(shared)
    corners = [
        greatest_gap(most, np.sqrt(s), np.sqrt(t))
        for s in (np.maximum(low, 0.0), high)
        for t in (np.maximum(1 - high, 0.0), 1 - low)
    ]
    return w, np.max(corners, axis=0)


def _best(shared: Shared, w: Float[Array, "k r"]) -> tuple[Float[Array, " r"], float]:
    values = greatest_gap(*_along(shared, w))
    at = int(values.argmax())
    return w[at], float(values[at])


def _line(a: Array, logit: Array, at: Array) -> Array:
    """The linear e with values 1 − τ at the least variance and τ at the greatest."""
    least, width = a.min(), max(float(np.ptp(a)), 2.0**-60)
    place = np.clip((at - least) / width, 0.0, 1.0)
    return special.expit(-logit) * (1 - place) + special.expit(logit) * place


def _logits(a: Array, delta: Array, target: Array) -> Array:
    """The logit of τ at which the variance of the family's w is the target; it falls with τ."""
    low, high = np.full(len(target), -_EXTREME), np.full(len(target), _EXTREME)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        w = (delta / _line(a, middle[:, None], a)) ** 2
        above = w @ a > target * w.sum(axis=1)
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return (low + high) / 2


def _along(shared: Shared, w: Array) -> tuple[Array, Array, Array]:
    """|w·δ| and the standard deviations along the directions w/|w|."""
    w = w / np.linalg.norm(w, axis=1, keepdims=True)
    squares = w * w
    s, t = (np.sqrt(squares @ share) for share in (shared.shares, 1 - shared.shares))
    return np.abs(w @ shared.delta), s, t


def _shift(shared: Shared) -> float:
    """Bound of the rounding of w·δ for |w| = 1."""
    size = np.linalg.norm(np.abs(shared.v).T @ np.abs(shared.gap))
    return 1.01 * gamma(len(shared.gap) + 8) * float(size) + math.ulp(0.0)
