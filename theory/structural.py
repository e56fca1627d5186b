"""A structural model of features with a nuisance domain (UniFed, causal analysis), with answers."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int64
from scipy.special import expit, log_expit, logit

from theory import _loose
from theory._loose import ArrayLike
from theory._validate import as_matrix, as_vector, real
from theory.bounds import float_weights

Array = np.ndarray

FEATURES = 3
"""Dimension of Z, R and F: one pixel of an image holds a point."""

ANSWERS = ("observational", "backdoor", "do_f", "do_s", "bayes")
"""What may be answered to "which label?": see `structural_answer`."""


@dataclass(frozen=True, eq=False)
class Domain:
    """One domain of the structural model: what of the features and the labels is its own.

    With s = 2Y − 1, noise E ~ N(0, I) and the content's (δ_1, δ_2), common to all domains,

        Z = s (δ_1, δ_2, 0) + E,  V = Z + s c e_2,  R = a ⊙ V + b,  X = R (identity extraction),

    so that R | s ~ N(s a ⊙ m + b, diag a²) with m = (δ_1, δ_2 + c, 0). Content lies in feature 1
    (where δ_2 ≠ 0 in feature 2 too), the nuisance c in feature 2, and feature 3 is noise.

    Attributes:
        label_rate: π = P(Y = 1 | D), strictly between 0 and 1.
        scale: a, (3,), positive.
        shift: b, (3,).
        nuisance: c.

    Raises:
        TypeError: no real numbers.
        ValueError: a domain of one label (its statistics say nothing about the other), a scale
            that is not positive, or vectors of another length than 3.
    """

    label_rate: _loose.Real = 0.5
    scale: _loose.Array = (1.0, 1.0, 1.0)  # pyright: ignore[reportAssignmentType]
    shift: _loose.Array = (0.0, 0.0, 0.0)  # pyright: ignore[reportAssignmentType]
    nuisance: _loose.Real = 0.0

    def __post_init__(self) -> None:
        rate, nuisance = real(self.label_rate, "label_rate"), real(self.nuisance, "nuisance")
        if not 0 < rate < 1:
            raise ValueError(
                f"label_rate is P(Y = 1) of a domain that has both labels, so strictly between 0 "
                f"and 1, not {self.label_rate!r}."
            )
        if not np.isfinite(nuisance):
            raise ValueError(f"nuisance must be finite, not {self.nuisance!r}.")
        for name in ("scale", "shift"):
            vector = as_vector(getattr(self, name), name)
            if len(vector) != FEATURES:
                raise ValueError(f"{name} has {len(vector)} entries: give one for each of 3.")
            object.__setattr__(self, name, vector)
        if self.scale.min() <= 0:
            raise ValueError(f"scale must be positive, not {self.scale.tolist()}.")
        object.__setattr__(self, "label_rate", rate)
        object.__setattr__(self, "nuisance", nuisance)

    def normalised(self, content: _loose.Numbers) -> "Domain":
        """The domain of F = (R − E R)/sd R, feature by feature: batch norm at infinite n_t.

        With s̄ = E s = 2π − 1, E R = a s̄ m + b and Var R = a² (1 + (1 − s̄²) m²) =: a² τ², so that
        F = (V − s̄ m)/τ: a and b are gone, and what the labels do to mean and variance is not. F is
        again a domain of the model: scale 1/τ, shift −s̄ m/τ, the same π and c.
        """
        m, mean = self.direction(content), 2 * self.label_rate - 1
        tau = np.sqrt(1 + (1 - mean**2) * m**2)
        return Domain(self.label_rate, 1 / tau, -mean * m / tau, self.nuisance)

    def statistics(self, content: _loose.Numbers) -> tuple[Float[Array, " 3"], Float[Array, " 3"]]:
        """E R and sd R, feature by feature: what S holds in the limit n_t → ∞."""
        after = self.normalised(content)
        return self.shift - self.scale * after.shift / after.scale, self.scale / after.scale

    def direction(self, content: _loose.Numbers) -> Float[Array, " 3"]:
        """Half of E(V | Y = 1) − E(V | Y = 0): m = (δ_1, δ_2 + c, 0)."""
        return np.array([content[0], content[1] + self.nuisance, 0.0])


@dataclass(frozen=True, eq=False)
class StructuralModel:
    """Training domains D ∈ {1 … N} with P(D), and an unseen one.

    D → (a, b, c, π), and label and content go together, Y — Z → R → F. Read from content to label
    (P(Y = 1 | Z) = σ(2 δ·Z) at π = ½) that is the graph in which a content causes both X and the
    true label, and F is no cause of it (`theory.test_graph(label="content")`); π that differs is
    D → Y. The joint law is the same whichever of Y and Z is drawn first; we draw Y.

    Attributes:
        content: (δ_1, δ_2), not both 0: Z's classes lie 2|δ| standard deviations apart.
        domains: those trained on.
        unseen: the one served.
        weights: P(D), (N,), summing to one; None for equal ones.

    Raises:
        TypeError: domains that are no `Domain`.
        ValueError: no domain, content of other than two entries or 0, or weights that do not fit.
    """

    content: _loose.Numbers
    domains: tuple[Domain, ...]
    unseen: Domain
    weights: ArrayLike | None = None

    def __post_init__(self) -> None:
        members = tuple(self.domains) if isinstance(self.domains, list | tuple) else ()
        if not members:
            raise ValueError("domains must be a list of at least one Domain to train on.")
        for domain in (*members, self.unseen):
            if not isinstance(domain, Domain):
                raise TypeError(f"a domain must be a Domain, not {type(domain).__name__}.")
        object.__setattr__(self, "content", as_content(self.content))
        object.__setattr__(self, "domains", members)
        equal = np.full(len(members), 1 / len(members))
        weights = equal if self.weights is None else float_weights(self.weights)
        if len(weights) != len(members):
            raise ValueError(f"{len(weights)} weights but {len(members)} domains: give one each.")
        object.__setattr__(self, "weights", weights / weights.sum())

    def normalised(self) -> "StructuralModel":
        """The model of F, every domain normalised by its own statistics: do(S) everywhere."""
        own = [domain.normalised(self.content) for domain in (*self.domains, self.unseen)]
        return StructuralModel(self.content, tuple(own[:-1]), own[-1], self.weights)


def structural_sample(
    domain: Domain, content: _loose.Numbers, n: int, generator: np.random.Generator
) -> tuple[Float[Array, "n 3"], Int64[Array, " n"]]:
    """Draws n points x = R, (n, 3), and their labels in {0, 1}, (n,), from a domain.

    Raises:
        ValueError: n below one, or content of other than two entries or 0.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1 point, not {n!r}.")
    y = (generator.random(n) < domain.label_rate).astype(np.int64)
    noise = generator.standard_normal((n, FEATURES))
    v = np.outer(2 * y - 1, domain.direction(as_content(content))) + noise
    return domain.scale * v + domain.shift, y


def as_content(content: object) -> tuple[float, float]:
    """(δ_1, δ_2), or advice."""
    vector = as_vector(content, "content")
    if len(vector) != 2 or not vector.any():
        raise ValueError(
            f"content is half the distance of the classes in features 1 and 2, two numbers, not "
            f"both 0: give (1.5, 0.0) or the like, not {vector.tolist()}."
        )
    return float(vector[0]), float(vector[1])


def structural_answer(model: StructuralModel, answer: str, x: ArrayLike) -> Float[Array, " n"]:
    """P(Y = 1) at points x, (n, 3), of the unseen domain, by one of five answers.

    - "observational": P(Y | X) of the training domains pooled, Σ_d P(d) π_d p(x | 1, d) over the
      same with both labels. It weighs each domain by how well x fits it.
    - "backdoor": Eq. (20), Σ_d P(Y | X, d) P(d), each domain weighed by P(d) whatever x is.
    - "do_f": P(Y | do(F)): no arrow enters F from D. a, b are the domain's own and known, labels
      equally likely, c = 0: σ(2 δ·V), with V = (x − b)/a. The answer that intervening aims at.
    - "do_s": P(Y | do(S)), batch norm's stand-in for it: x normalised by the unseen domain's own
      mean and standard deviation, then P(Y | F) as learnt on training domains normalised likewise:
      the observational answer of `model.normalised()`.
    - "bayes": P(Y | X, D = unseen): nothing that knows x errs less often.

    With one domain, log P(1 | x)/P(0 | x) = log π/(1 − π) + 2 m·V, from the two Gaussians.

    Raises:
        ValueError: an unknown answer, or x of another shape.
    """
    points = as_matrix(x, "x")
    if points.shape[1] != FEATURES:
        raise ValueError(f"x has {points.shape[1]} features: the model has {FEATURES}.")
    return expit(answer_log_odds(model, answer, points))


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
    if answer == "do_f":
        return StructuralModel(model.content, (Domain(0.5, u.scale, u.shift),), u)
    raise ValueError(f"unknown answer {answer!r}: choose from {', '.join(ANSWERS)}.")


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
    square = -0.5 * (x**2) @ (1 / a**2).T
    sides = []
    for sign, share in ((1, rate), (-1, 1 - rate)):
        centre = b / a + sign * m
        constant = np.log(weights * share) - np.log(a).sum(1) - 0.5 * (centre**2).sum(1)
        sides.append(_log_sum(square + x @ (centre / a).T + constant))
    return sides[0] - sides[1]


def _adjusted(a: Array, b: Array, m: Array, rate: Array, weights: Array, x: Array) -> Array:
    """Log odds of Σ_d P(d) σ(l_d), l_d linear in x."""
    odds = x @ (2 * m / a).T + (logit(rate) - (2 * m * b / a).sum(1))
    share = np.log(weights)
    return _log_sum(log_expit(odds) + share) - _log_sum(log_expit(-odds) + share)


def _log_sum(terms: Float[Array, "n k"]) -> Float[Array, " n"]:
    largest = terms.max(axis=1)
    return largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1))
