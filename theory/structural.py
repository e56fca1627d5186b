"""A structural model of features with a nuisance domain (UniFed, causal analysis)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int64

from theory import _loose
from theory._loose import ArrayLike
from theory._memory import as_memory, gib
from theory._validate import as_vector, real
from theory.bounds import float_weights

Array = np.ndarray

FEATURES = 3
"""Dimension of Z, R and F: one pixel of an image holds a point."""

FARTHEST = 1e40
"""Most of content and of a nuisance: beyond it powers of them leave float64."""

_LARGEST = 1e200  # scale, its inverse and shift
_APART = 1e100  # ratio of two domains' scales, and their distance in deviations of either
_PER_POINT = 128  # bytes that drawing takes
_FEW = 2**20  # points that are drawn without a look at the memory


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
            that is not positive, vectors of another length than 3, or sizes that leave float64: a
            nuisance beyond 1e40, scale or shift beyond 1e200.
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
        refuse_beyond(nuisance, "nuisance", FARTHEST)
        for name in ("scale", "shift"):
            vector = as_vector(getattr(self, name), name)
            if len(vector) != FEATURES:
                raise ValueError(f"{name} has {len(vector)} entries: give one for each of 3.")
            object.__setattr__(self, name, vector)
        if self.scale.min() <= 0:
            raise ValueError(f"scale must be positive, not {self.scale.tolist()}.")
        for name in ("scale", "shift"):
            refuse_beyond(float(np.abs(getattr(self, name)).max()), name, _LARGEST)
        if self.scale.min() < 1 / _LARGEST:
            raise ValueError(
                f"scale must be at least {1 / _LARGEST:g}, not {self.scale.min():g}: measure in a "
                "smaller unit."
            )
        object.__setattr__(self, "label_rate", rate)
        object.__setattr__(self, "nuisance", nuisance)

    def normalised(self, content: _loose.Numbers) -> "Domain":
        """The domain of F = (R − E R)/sd R, feature by feature: batch norm at infinite n_t.

        With s̄ = E s = 2π − 1 and 1 − s̄² = 4π(1 − π),

            E R = a s̄ m + b,  Var R = a² (1 + 4π(1 − π) m²) =: a² τ²,

        so that F = (V − s̄ m)/τ: a and b are gone, and what the labels do to mean and variance is
        not. F is again a domain of the model: scale 1/τ, shift −s̄ m/τ, the same π and c.
        """
        m, mean = self.direction(content), 2 * self.label_rate - 1
        tau = np.sqrt(1 + 4 * self.label_rate * (1 - self.label_rate) * m**2)
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
        ValueError: no domain, content of other than two entries, 0 or beyond 1e40, weights that do
            not fit, or domains further apart than float64 can hold (1e100 of their deviations).
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
        _check_apart((*members, self.unseen))

    def normalised(self) -> "StructuralModel":
        """The model of F, every domain normalised by its own statistics, S := s_d in each."""
        own = [domain.normalised(self.content) for domain in (*self.domains, self.unseen)]
        return StructuralModel(self.content, tuple(own[:-1]), own[-1], self.weights)

    def met(self) -> "StructuralModel":
        """The model without training domains of weight 0, of which no law speaks."""
        shares = np.asarray(self.weights)
        if shares.all():
            return self
        kept = tuple(d for d, share in zip(self.domains, shares, strict=True) if share > 0)
        return StructuralModel(self.content, kept, self.unseen, shares[shares > 0])


def structural_sample(
    domain: "Domain | _loose.Anything",
    content: _loose.Numbers,
    n: _loose.Whole,
    generator: "np.random.Generator | _loose.Anything",
) -> tuple[Float[Array, "n 3"], Int64[Array, " n"]]:
    """Draws n points x = R, (n, 3), and their labels in {0, 1}, (n,), from a domain.

    Raises:
        TypeError: no `Domain`, or no NumPy `Generator`.
        ValueError: n that is no whole number of at least 1 or more points than memory holds, or
            content that `StructuralModel` refuses.
    """
    _check_kind(domain, Domain, "domain")
    _check_kind(generator, np.random.Generator, "generator")
    if not is_whole(n, 1):
        raise ValueError(f"n must be a whole number of at least 1 point, not {n!r}.")
    if n > _FEW and _PER_POINT * int(n) > (budget := as_memory(None)):
        raise ValueError(
            f"n asks for more points than the {gib(budget)} of free memory hold: draw at most "
            f"{int(budget) // _PER_POINT} at a time."
        )
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
    refuse_beyond(float(np.abs(vector).max()), "content", FARTHEST)
    return float(vector[0]), float(vector[1])


def refuse_beyond(value: float, name: str, most: float) -> None:
    """Refuses a size whose powers would leave float64.

    Raises:
        ValueError: its absolute value is larger than `most`.
    """
    if abs(value) > most:
        raise ValueError(
            f"{name} must be at most {most:g} in size, not {value:g}: float64 cannot hold what "
            "follows from it."
        )


def _check_apart(domains: tuple[Domain, ...]) -> None:
    scales, shifts = (np.stack([getattr(d, name) for d in domains]) for name in ("scale", "shift"))
    with np.errstate(over="ignore"):  # infinity is refused
        ratio = (scales.max(axis=0) / scales.min(axis=0)).max()
        distance = (np.ptp(shifts, axis=0) / scales.min(axis=0)).max()
    if ratio > _APART:
        raise ValueError(
            f"the domains' scales differ by a factor of more than {_APART:g} in one feature, which "
            "float64 cannot hold together: bring them closer."
        )
    if distance > _APART:
        raise ValueError(
            f"the domains' shifts differ by more than {_APART:g} standard deviations (scale) in "
            "one feature, which float64 cannot hold together: bring them closer."
        )
