"""What may be answered to "which label?" at a point of the unseen domain."""

import numpy as np
from jaxtyping import Float
from scipy.special import expit, log_expit, logit

from theory import _loose
from theory._loose import ArrayLike
from theory._validate import as_matrix
from theory.structural import FEATURES, Domain, StructuralModel

Array = np.ndarray

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
        ValueError: an unknown answer, or x of another shape.
    """
    name = as_answer(model, answer)
    points = as_matrix(x, "x")
    if points.shape[1] != FEATURES:
        raise ValueError(f"x has {points.shape[1]} features: the model has {FEATURES}.")
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


def answer_log_odds(
    model: StructuralModel, answer: str, x: Float[Array, "n 3"]
) -> Float[Array, " n"]:
    """Log odds of `structural_answer`; x is not checked."""
    if answer == "do_s":
        mean, sd = model.unseen.statistics(model.content)
        return answer_log_odds(model.normalised(), "observational", (x - mean) / sd)
    reduced = behind(model, answer)
    arrays = _stacked(reduced)
    if answer == "backdoor":
        return _adjusted(*arrays, x)
    return _pooled(*arrays, x)


def behind(model: StructuralModel, answer: str) -> StructuralModel:
    """The model of which an answer is the pooled (of "backdoor": the adjusted) posterior."""
    u = model.unseen
    if answer in ("observational", "backdoor"):
        return model
    if answer == "do_s":
        return model.normalised()
    if answer == "bayes":
        return StructuralModel(model.content, (u,), u)
    return StructuralModel(model.content, (Domain(0.5, u.scale, u.shift),), u)


def _stacked(model: StructuralModel) -> tuple[Array, Array, Array, Array, Array]:
    """a, b, m as (N, 3), π and P(d) as (N,)."""
    members = model.domains
    return (
        np.stack([d.scale for d in members]),
        np.stack([d.shift for d in members]),
        np.stack([d.direction(model.content) for d in members]),
        np.array([d.label_rate for d in members]),
        np.asarray(model.weights),
    )


def _pooled(a: Array, b: Array, m: Array, rate: Array, weights: Array, x: Array) -> Array:
    """Log odds of a mixture of Gaussian pairs, its quadratic forms as matrix products."""
    square = -0.5 * (1 / a**2) @ (x**2).T
    sides = []
    for sign, share in ((1, rate), (-1, 1 - rate)):
        centre = b / a + sign * m
        constant = np.log(weights * share) - np.log(a).sum(1) - 0.5 * (centre**2).sum(1)
        sides.append(_log_sum(square + (centre / a) @ x.T + constant[:, None]))
    return sides[0] - sides[1]


def _adjusted(a: Array, b: Array, m: Array, rate: Array, weights: Array, x: Array) -> Array:
    """Log odds of Σ_d P(d) σ(l_d), l_d linear in x."""
    offset = logit(rate) - (2 * m * b / a).sum(1)
    odds = (2 * m / a) @ x.T + offset[:, None]
    share = np.log(weights)[:, None]
    return _log_sum(log_expit(odds) + share) - _log_sum(log_expit(-odds) + share)


def _log_sum(terms: Float[Array, "k n"]) -> Float[Array, " n"]:
    largest = terms.max(axis=0)
    return largest + np.log(np.exp(terms - largest).sum(axis=0))
