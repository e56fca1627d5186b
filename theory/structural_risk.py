"""The risk of each answer on the unseen domain: closed form, quadrature, and simulation."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import logit, ndtr

from theory import _loose
from theory._batch_statistics import batch_risk
from theory._crossings import Crossings, crossings
from theory.structural import FEATURES, Domain, StructuralModel, is_whole, structural_sample
from theory.structural_answers import answer_log_odds, as_answer, behind

Array = np.ndarray

_ROUNDING = 1e-13  # of sums of a few thousand products of probabilities
_TAIL = 8.5  # standard deviations: beyond them lies 2e-17 of a Gaussian
_LARGEST = 4096  # n_t
_FAR = 30.0
_STEEP = 5.0  # change of log odds in one step
_EVALUATIONS = 2**27  # of the log odds: a minute
_STEPS = {0: 1.0, 1: 0.05, 2: 0.25}
"""Step of the trapezoidal rule, by how many features are integrated over numerically."""


@dataclass(frozen=True)
class Risk:
    """A 0-1 risk: P(answer's label ≠ Y) on the unseen domain.

    Attributes:
        value: the risk.
        error: how far it may be off, at most 1: for a closed form rounding, for a quadrature also
            the difference to the same rule at twice the step (an estimate, not a proof).
        route: "closed form", "quadrature".
    """

    value: float
    error: float
    route: str

    @property
    def lower(self) -> float:
        """Value less error, at least 0."""
        return max(0.0, self.value - self.error)

    @property
    def upper(self) -> float:
        """Value plus error, at most 1."""
        return min(1.0, self.value + self.error)


def structural_risk(
    model: "StructuralModel | _loose.Anything",
    answer: object,
    batch_size: "_loose.Whole | None" = None,
) -> Risk:
    """P(1{P(Y = 1) > ½} ≠ Y) of an answer (`structural_answer`) on the unseen domain, exactly.

    **Closed form**, where all class-conditional laws behind the answer are one ("do_f", "bayes",
    "observational" with equal domains): log odds o + w·V, and given s, w·V ~ N(s w·m, |w|²), so

        risk = π Φ(−(o + w·m)/|w|) + (1 − π) Φ((o − w·m)/|w|).

    **Quadrature** elsewhere. Given V_2, V_3 the log odds are a function of V_1 alone, whose sign
    changes are found by bisection, and P(log odds > 0 | V_2, V_3, s) is a sum of Φ at them. Over
    V_2, V_3 the trapezoidal rule integrates against their Gaussian density (for analytic
    integrands its error falls like exp(−2π²/h²)); features that no domain tells apart are left out.

    **With n_t points** ("do_s" only): mean and standard deviation (biased) are those of a batch of
    n_t independent points of the unseen domain, of which the one to be answered is one, as batch
    norm at τ = 0 has it; the expected risk over batches. See `theory/_batch_statistics.py`.

    Args:
        model: the domains.
        answer: one of `ANSWERS`.
        batch_size: n_t ≥ 2, for "do_s"; None for the population's statistics.

    Raises:
        TypeError: no `StructuralModel`.
        ValueError: an unknown answer; a batch of fewer than two points or more than 4096, or one
            for an answer that needs no statistics; a model beyond the quadrature (classes more
            than 60 standard deviations apart, or training domains far narrower than the unseen).
    """
    answer = as_answer(model, answer)
    reduced, model = behind(model, answer), model.met()
    if batch_size is not None:
        _check_batch(answer, batch_size)
        _check_reach(model)
        return Risk(*batch_risk(model, int(batch_size)), "quadrature")
    if answer == "do_s":  # the same risk in the coordinates of F
        model, answer = reduced, "observational"
    linear = _linear(reduced, answer)
    if linear is not None:
        return Risk(*_linear_risk(model, linear), "closed form")
    _check_reach(model)
    free = relevant(reduced, answer)
    step = _STEPS[len(free)]
    fine, coarse = (_quadrature(model, answer, free, h) for h in (step, 2 * step))
    error = abs(fine - coarse) + _ROUNDING + _rounding(model, reduced)
    if answer != "backdoor":
        error += sum(_unseen_steps(model, reduced, j, step) for j in free)
    return Risk(fine, min(1.0, error), "quadrature")


def _rounding(model: StructuralModel, reduced: StructuralModel) -> float:
    """What the digits cost that a far or wide domain's standard deviations leave to V."""
    u = model.unseen
    reach = max(
        float(((np.abs(d.shift - u.shift) + d.scale) / u.scale).max()) for d in reduced.domains
    )
    return 4 * float(np.finfo(float).eps) * reach


def _unseen_steps(model: StructuralModel, reduced: StructuralModel, j: int, step: float) -> float:
    """What the rule may miss where the answer passes from a domain to the next within its step h.

    That is (h/2) φ(0) at most, each time; the domains lie far apart in feature j there.
    """
    a, b = (np.array([getattr(d, name)[j] for d in reduced.domains]) for name in ("scale", "shift"))
    step *= float(_fineness(model)[j])
    pace = np.abs(b[:, None] - b) / a / (a[:, None] / model.unseen.scale[j])  # of the log odds
    return 0.2 * step * (len(a) - 1) * bool((pace * step).max() > _STEEP)


def _check_batch(answer: str, batch_size: Any) -> None:
    if answer != "do_s":
        raise ValueError(
            f"batch_size is for the answer 'do_s', whose statistics may be estimated; {answer!r} "
            "has none: leave it out."
        )
    if not is_whole(batch_size, 2) or batch_size > _LARGEST:
        raise ValueError(
            f"batch_size must be a whole number of points in 2 … {_LARGEST}, not {batch_size!r}: "
            "one point has no variance, and without a batch size the statistics are exact."
        )


def _check_reach(model: StructuralModel) -> None:
    for domain in (*model.domains, model.unseen):
        far = float(np.abs(domain.direction(model.content)).max())
        if far > _FAR:
            raise ValueError(
                f"the classes lie {2 * far:.3g} standard deviations apart, beyond the quadrature: "
                f"bring content and nuisance to at most {_FAR:g}."
            )


def _linear(reduced: StructuralModel, answer: str) -> tuple[float, Domain] | None:
    """π and the one domain whose log odds, linear in x, are the answer's; None where not linear."""
    first, *others = reduced.domains
    same = all(
        np.array_equal(first.scale, d.scale)
        and np.array_equal(first.shift, d.shift)
        and first.nuisance == d.nuisance
        for d in others
    )
    rates = np.array([d.label_rate for d in reduced.domains])
    if not same or (answer == "backdoor" and np.ptp(rates) > 0):
        return None
    rate = first.label_rate if np.ptp(rates) == 0 else float(rates @ np.asarray(reduced.weights))
    return rate, first


def _linear_risk(model: StructuralModel, linear: tuple[float, Domain]) -> tuple[float, float]:
    """The closed form, and what rounding its threshold costs."""
    u, (rate, first) = model.unseen, linear
    weights = 2 * first.direction(model.content)
    slope, parts = u.scale / first.scale * weights, weights * (u.shift - first.shift) / first.scale
    at = float(logit(rate) + parts.sum())
    largest, means = np.abs(slope).max(), slope * u.direction(model.content)
    if largest == 0:  # a nuisance that undoes the content: one label for all
        return (1 - u.label_rate if at > 0 else u.label_rate), _ROUNDING
    size = float(largest * np.linalg.norm(slope / largest))
    mean = float(means.sum())
    off = 4 * np.finfo(float).eps * (abs(logit(rate)) + np.abs([parts, means]).sum()) / size
    z = np.array([-(at + mean), at - mean]) / size
    shares = np.array([u.label_rate, 1 - u.label_rate])
    error = _ROUNDING + float(shares @ (off * _density(np.maximum(0.0, np.abs(z) - off))))
    return float(shares @ ndtr(z)), min(1.0, error)


def relevant(reduced: StructuralModel, answer: str) -> tuple[int, ...]:
    """Those of the features 2, 3 (counted from 0: 1, 2) that the log odds depend on."""
    used = []
    for j in range(1, FEATURES):
        laws = {(float(d.scale[j]), float(d.shift[j])) for d in reduced.domains}
        means = any(d.direction(reduced.content)[j] != 0 for d in reduced.domains)
        if means or (answer != "backdoor" and len(laws) > 1):
            used.append(j)
    return tuple(used)


def _quadrature(model: StructuralModel, answer: str, free: tuple[int, ...], step: float) -> float:
    u = model.unseen
    m = u.direction(model.content)
    steps = step * _fineness(model)
    steps[0] = min(steps[0], 0.2)
    used = [0, *free]
    if math.prod(2 * (abs(float(m[j])) + _TAIL) / float(steps[j]) for j in used) > _EVALUATIONS:
        raise ValueError(
            "a training domain is far narrower than the unseen one, beyond the quadrature: bring "
            "their scales closer together."
        )
    axes = [_nodes(m[j], steps[j]) if j in used else np.zeros(1) for j in range(FEATURES)]
    v2, v3 = (part.ravel() for part in np.meshgrid(*axes[1:], indexing="ij"))

    def log_odds(v1: Array, row: Array) -> Array:
        v = np.column_stack([v1, v2[row], v3[row]])
        return answer_log_odds(model, answer, u.scale * v, origin=u.shift)

    found = crossings(log_odds, len(v2), axes[0])
    risk = 0.0
    for sign, share in ((1, u.label_rate), (-1, 1 - u.label_rate)):
        weight = np.ones(len(v2))
        for j, values in ((1, v2), (2, v3)):
            if j in free:
                weight *= _density(values - sign * m[j]) * steps[j]
        positive = float(weight @ _positive(found, sign * m[0]))
        risk += share * (1 - positive if sign > 0 else positive)
    return risk


def _fineness(model: StructuralModel) -> Float[Array, " 3"]:
    """Factor on the steps, below 1 where a training domain is less than a quarter as wide."""
    narrowest = np.min([domain.scale for domain in model.domains], axis=0)
    return np.minimum(1.0, 4 * narrowest / model.unseen.scale)


def _nodes(mean: float, step: float) -> Float[Array, " k"]:
    """Evenly placed points that cover N(mean, 1) and N(−mean, 1)."""
    half = np.ceil((abs(mean) + _TAIL) / step)
    return step * np.arange(-half, half + 1)


def _density(z: Array) -> Array:
    return np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)


def _positive(found: Crossings, mean: float) -> Float[Array, " r"]:
    """P(log odds > 0 | row) where V_1 ~ N(mean, 1)."""
    return found.share(ndtr(mean - found.place))


def simulated_errors(
    model: StructuralModel,
    answer: str,
    n: int,
    generator: np.random.Generator,
    batch_size: int | None = None,
) -> int:
    """How many of n independent points of the unseen domain an answer labels wrongly.

    With a batch size each of the n points is the first of a batch of its own, drawn anew and
    normalised by the batch's mean and biased standard deviation: the errors stay independent.
    """
    u = model.unseen
    if batch_size is None:
        x, y = structural_sample(u, model.content, n, generator)
        return int(np.sum((answer_log_odds(model, answer, x) > 0) != y))
    x, y = structural_sample(u, model.content, n * batch_size, generator)
    batches = x.reshape(n, batch_size, FEATURES)
    f = (batches[:, 0] - batches.mean(1)) / batches.std(1)
    said = answer_log_odds(model.normalised(), "observational", f) > 0
    return int(np.sum(said != y[::batch_size]))
