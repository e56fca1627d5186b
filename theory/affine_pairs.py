"""d_HΔH of pairs of half-spaces between Gaussians, where no closed form is known."""

import numpy as np
from jaxtyping import Float
from scipy import special

from theory._enclosure import Enclosure
from theory._line import ROUNDING, crossings, variations
from theory._loose import Anything, Whole
from theory._normal import Gaussian, Shared, share
from theory.network import at_least
from theory.total_variation import likely_lines, on_lines, total_variation

Array = np.ndarray

_STEP = 1e-6  # of differences in the gradient
_SLACK = 1e-9  # of a probability by Owen's T, whose arguments are nudged and rounded
_NUDGE = 1e-12
_FAR = 40.0  # standard deviations: such a half-space is everything or nothing
_THIN = 1e-13  # variance of one law to both: below, slabs err by 1e-5, and the nudge by a share
_LINES = 2
_STEPS = 60
_STARTS = 10_000  # each costs a search


def affine_pair_divergence(
    p: Gaussian | Anything, q: Gaussian | Anything, *, starts: Whole = 4, seed: Whole = 0
) -> Enclosure:
    """d_HΔH = 2 sup |P(A) − Q(A)|, A where two half-spaces {a·x ≥ c}, {b·x ≥ e} differ.

    With h = (c − a·μ)/‖a‖_S, k likewise, and ρ their correlation, two half-spaces differ with
    probability 2T(h, (k/h − ρ)/√(1 − ρ²)) + 2T(k, (h/k − ρ)/√(1 − ρ²)) + 1[hk < 0] under N(μ, S),
    T being Owen's function. The lower end is the best pair of a search from intervals on lines
    (parallel half-spaces), from the worst pair through either mean, and from random pairs, by
    quasi-Newton steps. The upper end is twice the total variation, as no set tells laws apart
    better; for equal covariances, and on the line, the two are equal. Where one law is thin beside
    the other, with less than 3e-7 of its deviation in some direction, an interval across it misses
    2 by no more than 1e-5, and is not improved.

    Args:
        p: one law.
        q: the other.
        starts: random pairs to begin at, 10,000 at most.
        seed: of the random pairs, a whole number ≥ 0.

    Raises:
        TypeError: no `Gaussian`; starts or a seed that are no integers.
        ValueError: other dimensions; a negative number; too many starts.
    """
    starts, seed = at_least(starts, 0, "starts"), at_least(seed, 0, "seed")
    if starts > _STARTS:
        raise ValueError(f"starts is above {_STARTS}: each costs a search, and a few are enough.")
    most = total_variation(p, q).scaled(2.0)
    shared = share(p, q)
    same = isinstance(p, Gaussian) and np.array_equal(p.covariance, q.covariance)
    if shared is None or same or p.dimension == 1 or most.lower == 2 or shared.apart is not None:
        return most
    if min(shared.shares.min(), 1 - shared.shares.max()) < _THIN:
        lower, method = 2 * on_lines(shared), "below intervals across the thinner law"
        method = f"{method}; above twice the total variation, rounding estimated{shared.remark}"
        return Enclosure(min(lower, most.upper), most.upper, method)
    rng = np.random.default_rng(seed)
    found = _improved(shared, _likely_pairs(shared) + _random_pairs(shared, starts, rng))
    lower = max(found, 2 * on_lines(shared))
    method = "below a multi-start search of pairs; above twice the total variation, rounding"
    return Enclosure(min(lower, most.upper), most.upper, f"{method} estimated{shared.remark}")


def _improved(shared: Shared, pairs: list[Array]) -> float:
    """2 |P − Q| of the best pair that quasi-Newton steps lead to, less its rounding."""
    from scipy import optimize  # slow to import

    def lost(x: Array) -> tuple[float, Array]:
        steps = _STEP * np.eye(len(x))
        values = -_told_apart(shared, np.vstack([x, x + steps, x - steps]))
        up, down = values[1 : len(x) + 1], values[len(x) + 1 :]
        return float(values[0]), (up - down) / (2 * _STEP)

    best = float(_told_apart(shared, np.stack(pairs)).max())
    for start in pairs:
        end = optimize.minimize(
            lost, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}
        )
        best = max(best, -float(end.fun))
    return max(best - 8 * (float(shared.doubt.max()) + ROUNDING) - _SLACK, 0.0)


def _told_apart(shared: Shared, x: Float[Array, "k n"]) -> Float[Array, " k"]:
    """2 |P(A) − Q(A)| for pairs (a, c, b, e), one per row."""
    a = shared.shares
    under_p = _differ(x, np.zeros_like(shared.delta), a)
    return 2 * np.abs(under_p - _differ(x, shared.delta, 1 - a))


def _differ(
    x: Float[Array, "k n"], mean: Float[Array, " r"], variance: Float[Array, " r"]
) -> Float[Array, " k"]:
    """The probability that the half-spaces differ under N(μ, diag v)."""
    r = len(mean)
    units, heights = [], []
    for part in (x[:, : r + 1], x[:, r + 1 :]):
        # Of no consequence but that steps of the search cannot overflow.
        part = np.ldexp(part, -np.frexp(np.abs(part).max(axis=1, keepdims=True))[1])
        w = part[:, :r] * np.sqrt(variance)
        size = np.sqrt((w * w).sum(axis=1) + _NUDGE**2 * (part[:, :r] ** 2).sum(axis=1) + 1e-300)
        h = (part[:, r] - part[:, :r] @ mean) / size
        units.append(w / size[:, None])
        heights.append(np.where(np.abs(h) < _NUDGE, _NUDGE, np.clip(h, -_FAR, _FAR)))
    (u, v), (h, k) = units, heights
    near = ((u - v) ** 2).sum(axis=1), ((u + v) ** 2).sum(axis=1)
    cosine = (near[1] - near[0]) / 4
    sine = np.maximum(np.sqrt(near[0] * near[1]) / 2, _NUDGE)
    first, second = (k / h - cosine) / sine, (h / k - cosine) / sine
    value = 2 * special.owens_t(h, first) + 2 * special.owens_t(k, second) + (h * k < 0)
    return np.clip(value, 0.0, 1.0)


def _likely_pairs(shared: Shared) -> list[Array]:
    """The best intervals on lines, and the worst homogeneous pair moved to either mean."""
    a, delta = shared.shares, shared.delta
    lines = likely_lines(shared)
    lines /= np.linalg.norm(lines, axis=1, keepdims=True)
    s, t = (np.sqrt(lines**2 @ share) for share in (a, 1 - a))
    worth = variations(np.abs(lines @ delta), s, t)
    pairs = [
        _interval(w, delta, float(sigma), float(tau))
        for w, sigma, tau in [(lines[i], s[i], t[i]) for i in worth.argsort()[-_LINES:]]
    ]
    i, j = int(a.argmin()), int(a.argmax())
    ratio = np.clip((1 - a) / np.maximum(a, _NUDGE), _NUDGE, 1 / _NUDGE)
    slope = (ratio[j] / ratio[i]) ** 0.25  # tan φ = 1/√ρ; λ is greatest where a is least
    low, high = np.zeros_like(a), np.zeros_like(a)
    low[j], high[i] = 1 / np.sqrt(a[j]), slope / np.sqrt(max(a[i], _NUDGE))
    one, other = low - high, low + high
    for mean in (np.zeros_like(delta), delta):
        pairs.append(np.concatenate([one, [one @ mean], other, [other @ mean]]))
    return pairs


def _interval(w: Array, delta: Array, sigma: float, tau: float) -> Array:
    """The pair of parallel half-spaces that differ between the crossings of the densities."""
    origin, other = (np.zeros_like(delta), delta) if sigma <= tau else (delta, 0 * delta)
    w = w if w @ (other - origin) >= 0 else -w
    narrow, wide = sorted((sigma, tau))
    gap = np.array([w @ (other - origin)])
    with np.errstate(all="ignore"):
        ends = np.ravel(crossings(gap, np.array([narrow]), np.array([wide])))
    high, low = w @ origin + narrow * np.clip(np.nan_to_num(ends), -_FAR, _FAR)
    return np.concatenate([w, [low], w, [high]])


def _random_pairs(shared: Shared, count: int, rng: np.random.Generator) -> list[Array]:
    w = rng.normal(size=(count, 2, len(shared.delta)))
    thresholds = w @ shared.delta * rng.uniform(size=(count, 2))
    return list(
        np.concatenate([w, thresholds[..., None]], axis=2).reshape(count, 2 * w.shape[2] + 2)
    )
