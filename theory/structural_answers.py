"""What may be answered to "which label?" at a point of the unseen domain."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import expit, log_expit, logit

from theory import _loose
from theory._loose import ArrayLike
from theory._validate import as_matrix
from theory.structural import FEATURES, Domain, StructuralModel

Array = np.ndarray

_FARTHEST = 1e100  # standard deviations from a domain
_TOGETHER = 2**20  # terms in memory at once

ANSWERS = ("observational", "backdoor", "do_f", "do_s", "bayes")


def structural_answer(
    model: "StructuralModel | _loose.Anything", answer: object, x: ArrayLike
) -> Float[Array, " n"]:
    """P(Y = 1) at points x, (n, 3), of the unseen domain, by one of five answers.

    - "observational": P(Y | X) of the training domains pooled, Σ_d P(d) π_d p(x | 1, d) over the
      same with both labels. It weighs each domain by how well x fits it.
    - "backdoor": Eq. (20), Σ_d P(Y | X, d) P(d), each domain weighed by P(d) whatever x is.
    - "do_f": P(Y | F), the domain cut off: F = V = (x − b)/a with a, b known, labels equally
      likely, c = 0: σ(2 δ·V). It is conditioning on F in a neutral domain. If F causes Y, as the
      paper draws it, by one law in all domains (π = ½, c = 0 in all), it is P(Y | do(F := V)); as
      this model draws it, content causing both X and Y, P(Y | do(F)) = P(Y) by rule 3.
    - "do_s": batch norm's stand-in for it, P(Y | F) after do(S := s_d), every domain's S its own
      mean and deviation: x normalised by the unseen domain's, then P(Y | F) as learnt on training
      domains normalised likewise: the observational answer of `model.normalised()`.
    - "bayes": P(Y | X, D = unseen): nothing that knows x errs less often.

    With one domain, log P(1 | x)/P(0 | x) = log π/(1 − π) + 2 m·V, from the two Gaussians.

    Raises:
        TypeError: no `StructuralModel`.
        ValueError: an unknown answer, x of another shape, or points beyond 1e100 standard
            deviations of a domain that the answer looks at.
    """
    name = as_answer(model, answer)
    points = as_matrix(x, "x")
    if points.shape[1] != FEATURES:
        raise ValueError(f"x has {points.shape[1]} features: the model has {FEATURES}.")
    _check_near(model, name, points)
    return expit(answer_log_odds(model, name, points))


def as_answer(model: object, answer: object) -> str:
    """The name of an answer that a model gives, or advice."""
    if not isinstance(model, StructuralModel):
        raise TypeError(
            f"model must be a StructuralModel, not {type(model).__name__}: structural_model(...) "
            "gives one."
        )
    if not isinstance(answer, str) or answer not in ANSWERS:
        raise ValueError(f"unknown answer {answer!r}: choose from {', '.join(ANSWERS)}.")
    return answer


def _check_near(model: StructuralModel, answer: str, x: Float[Array, "n 3"]) -> None:
    pooled = answer in ("observational", "backdoor")
    for domain in behind(model, answer).domains if pooled else (model.unseen,):
        with np.errstate(over="ignore"):  # infinity is refused
            far = np.abs((x - domain.shift) / domain.scale).max(axis=1)
        if far.max() > _FARTHEST:
            raise ValueError(
                f"x lies more than {_FARTHEST:g} standard deviations from a domain, first in row "
                f"{int((far > _FARTHEST).argmax())}, beyond what float64 can square: leave such "
                "points out."
            )


def answer_log_odds(
    model: StructuralModel, answer: str, x: Float[Array, "n 3"], origin: ArrayLike = 0.0
) -> Float[Array, " n"]:
    """Log odds of `structural_answer` at origin + x; x is not checked.

    Near an origin that lies far out x keeps the digits that the sum would lose.
    """
    reduced, start = behind(model, answer), np.asarray(origin, dtype=np.float64)
    if answer == "do_s":
        u, after = model.unseen, reduced.unseen
        x, start = after.scale * (x - (u.shift - start)) / u.scale, after.shift
    odds = _adjusted if answer == "backdoor" else _pooled
    size = max(1, _TOGETHER // len(reduced.domains))
    parts = [odds(reduced, x[i : i + size], start) for i in range(0, len(x), size)]
    return np.concatenate(parts)


def behind(model: StructuralModel, answer: str) -> StructuralModel:
    """The model of which an answer is the pooled (of "backdoor": the adjusted) posterior."""
    u = model.unseen
    if answer in ("observational", "backdoor"):
        return model.met()
    if answer == "do_s":
        return model.met().normalised()
    if answer == "bayes":
        return StructuralModel(model.content, (u,), u)
    return StructuralModel(model.content, (Domain(0.5, u.scale, u.shift),), u)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of Gaussians: a, b, m as (N, 3), π and P(d) as (N,)."""

    a: Array
    b: Array
    m: Array
    rate: Array
    weights: Array

    @classmethod
    def of(cls, model: StructuralModel) -> "_Pairs":
        """Stacks the training domains."""
        members = model.domains
        return cls(
            np.stack([d.scale for d in members]),
            np.stack([d.shift for d in members]),
            np.stack([d.direction(model.content) for d in members]),
            np.array([d.label_rate for d in members]),
            np.asarray(model.weights),
        )

    def constants(self) -> Float[Array, " N"]:
        """The logarithm of P(d)/|a| exp(−|m|²/2), up to the same for all."""
        squares = ((self.m - self.m[0]) * (self.m + self.m[0])).sum(1)
        return np.log(self.weights) - np.log(self.a / self.a[0]).sum(1) - 0.5 * squares

    def noise(self, k: int, x: Array, origin: Array) -> Float[Array, "3 n"]:
        """V = (x − b)/a, were x of domain k."""
        return (x.T - (self.b[k] - origin)[:, None]) / self.a[k][:, None]


def _pooled(model: StructuralModel, x: Array, origin: Array) -> Array:
    """Log odds of a mixture of Gaussian pairs.

    What fits worse than the domain that fits a point best is computed as a difference, from
    −(v_d² − v²)/2 = (v − v_d)(v − (v − v_d)/2) feature by feature: what domains share cancels
    exactly, however far out it lies.
    """
    pairs = _Pairs.of(model)
    best = _best(pairs, x, origin)
    odds = np.empty(len(x))
    for k in np.unique(best):
        rows = best == k
        odds[rows] = _against(pairs, int(k), pairs.noise(int(k), x[rows], origin))
    return odds


def _best(pairs: _Pairs, x: Array, origin: Array) -> Array:
    """The domain that fits each point best; the first where all have one scale and shift."""
    if (pairs.a == pairs.a[0]).all() and (pairs.b == pairs.b[0]).all():
        return np.zeros(len(x), dtype=np.intp)
    fit = []
    for k, constant in enumerate(pairs.constants()):
        v = pairs.noise(k, x, origin)
        fit.append(constant - 0.5 * (v**2).sum(0) + np.abs(pairs.m[k] @ v))
    return np.argmax(fit, axis=0)


def _against(pairs: _Pairs, k: int, v: Float[Array, "3 n"]) -> Float[Array, " n"]:
    """Log odds where domain k fits best and has noise v there."""
    ratio, move = (pairs.a - pairs.a[k]) / pairs.a, (pairs.b[k] - pairs.b) / pairs.a
    base = np.repeat(pairs.constants()[:, None], v.shape[1], axis=1)
    lean = np.zeros_like(base)
    for j in range(FEATURES):
        if ratio[:, j].any() or move[:, j].any():
            less = np.outer(ratio[:, j], v[j]) - move[:, j, None]  # v − v_d
            base += less * (v[j] - 0.5 * less)
            lean += pairs.m[:, j, None] * (v[j] - less)
        else:
            lean += np.outer(pairs.m[:, j], v[j])
    shares = np.log(pairs.rate)[:, None], np.log1p(-pairs.rate)[:, None]
    return _log_sum(base + lean + shares[0]) - _log_sum(base - lean + shares[1])


def _adjusted(model: StructuralModel, x: Array, origin: Array) -> Array:
    """Log odds of Σ_d P(d) σ(l_d), l_d linear in x."""
    pairs = _Pairs.of(model)
    lean = [2 * pairs.m[k] @ pairs.noise(k, x, origin) for k in range(len(pairs.a))]
    odds = np.stack(lean) + logit(pairs.rate)[:, None]
    share = np.log(pairs.weights)[:, None]
    return _log_sum(log_expit(odds) + share) - _log_sum(log_expit(-odds) + share)


def _log_sum(terms: Float[Array, "k n"]) -> Float[Array, " n"]:
    largest = terms.max(axis=0)
    return largest + np.log(np.exp(terms - largest).sum(axis=0))
