"""A structural model of features with a nuisance domain (UniFed, causal analysis)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int64

from theory import _loose
from theory._loose import ArrayLike
from theory._validate import as_vector, real
from theory.bounds import float_weights

Array = np.ndarray

FEATURES = 3
"""Dimension of Z, R and F: one pixel of an image holds a point."""


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
    true label, and F is no cause of it (`theory.test_graph(label="content")`), so that do(F) and
    do(S) leave P(Y), and what `structural_answer` compares are conditional laws. π that differs is
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
    domains: "tuple[Domain, ...] | _loose.Anything"
    unseen: "Domain | _loose.Anything"
    weights: ArrayLike | None = None

    def __post_init__(self) -> None:
        members = tuple(self.domains) if isinstance(self.domains, list | tuple) else ()
        if not members:
            raise ValueError("domains must be a list of at least one Domain to train on.")
        for domain in (*members, self.unseen):
            _check_kind(domain, Domain, "each domain")
        object.__setattr__(self, "content", as_content(self.content))
        object.__setattr__(self, "domains", members)
        equal = np.full(len(members), 1 / len(members))
        weights = equal if self.weights is None else float_weights(self.weights)
        if len(weights) != len(members):
            raise ValueError(f"{len(weights)} weights but {len(members)} domains: give one each.")
        object.__setattr__(self, "weights", weights / weights.sum())

    def normalised(self) -> "StructuralModel":
        """The model of F, every domain normalised by its own statistics, S := s_d in each."""
        own = [domain.normalised(self.content) for domain in (*self.domains, self.unseen)]
        return StructuralModel(self.content, tuple(own[:-1]), own[-1], self.weights)


def structural_sample(
    domain: "Domain | _loose.Anything",
    content: _loose.Numbers,
    n: _loose.Whole,
    generator: "np.random.Generator | _loose.Anything",
) -> tuple[Float[Array, "n 3"], Int64[Array, " n"]]:
    """Draws n points x = R, (n, 3), and their labels in {0, 1}, (n,), from a domain.

    Raises:
        TypeError: no `Domain`, or no NumPy `Generator`.
        ValueError: n that is no whole number of at least 1, or content that `StructuralModel`
            refuses.
    """
    _check_kind(domain, Domain, "domain")
    _check_kind(generator, np.random.Generator, "generator")
    if not is_whole(n, 1):
        raise ValueError(f"n must be a whole number of at least 1 point, not {n!r}.")
    y = (generator.random(n) < domain.label_rate).astype(np.int64)
    noise = generator.standard_normal((n, FEATURES))
    v = np.outer(2 * y - 1, domain.direction(as_content(content))) + noise
    return domain.scale * v + domain.shift, y


def is_whole(value: Any, least: int) -> bool:
    """Whether it is an integer, no bool, of at least so much."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and bool(value >= least)


def _check_kind(value: object, kind: type, name: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, not {type(value).__name__}.")


def as_content(content: object) -> tuple[float, float]:
    """(δ_1, δ_2), or advice."""
    vector = as_vector(content, "content")
    if len(vector) != 2 or not vector.any():
        raise ValueError(
            f"content is half the distance of the classes in features 1 and 2, two numbers, not "
            f"both 0: give (1.5, 0.0) or the like, not {vector.tolist()}."
        )
    return float(vector[0]), float(vector[1])
