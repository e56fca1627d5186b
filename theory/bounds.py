"""Generalization bounds as sums of named terms, each an interval with the way it was got."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from jaxtyping import Float

from theory._certify import rounded
from theory._enclosure import Enclosure
from theory._loose import Numbers, Real
from theory._validate import as_vector, real

Kind = Literal["bound", "diagnostic, not a bound"]


@dataclass(frozen=True)
class Term:
    """One named term of a bound: an interval that contains it, and where that came from.

    Attributes:
        name: what it is.
        lower: it is at least this.
        upper: it is at most this; None where nothing but the lower end is known.
        origin: how the interval was got.
        caveat: the condition under which it may stand where it stands, if that is not met.
        delta: probability with which the interval itself may fail, 0 for one that is certain.
        weights: of a mean over clients, the ω_i it was taken with; else empty.
        parts: of a mean over clients, the clients' own terms.
    """

    name: str
    lower: Real
    upper: Real | None
    origin: str
    caveat: str | None = None
    delta: Real = 0.0
    weights: Numbers = ()
    parts: "tuple[Term, ...]" = ()

    def __post_init__(self) -> None:
        for end in ("lower", "upper", "delta"):
            given = getattr(self, end)
            if given is not None:
                object.__setattr__(self, end, real(given, f"{end} of term {self.name!r}"))
        if not math.isfinite(self.lower) or not math.isfinite(self.upper or 0.0):
            raise ValueError(
                f"the interval [{self.lower}, {self.upper}] of term {self.name!r} must be finite; "
                "give upper=None where no upper end is known."
            )
        if self.upper is not None and self.lower > self.upper:
            raise ValueError(
                f"the interval of term {self.name!r} is empty: lower {self.lower!r} exceeds upper "
                f"{self.upper!r}; swap them."
            )
        if not 0 <= self.delta < 1:
            raise ValueError(
                f"delta of term {self.name!r} is a probability in [0, 1), not {self.delta!r}."
            )

    def scaled(self, factor: Real, name: str) -> "Term":
        """The term times a factor >= 0, under another name."""
        exact = Fraction(factor)
        upper = None if self.upper is None else outward(Fraction(self.upper) * exact, up=True)
        lower = outward(Fraction(self.lower) * exact, up=False)
        parts = tuple(part.scaled(factor, f"{name}: {part.name}") for part in self.parts)
        return replace(self, name=name, lower=lower, upper=upper, parts=parts)


@dataclass(frozen=True)
class Bound:
    """J_u(f) ≤ the sum of the terms, with probability at least 1 − δ, if it is a bound at all.

    Attributes:
        source: the statement of the paper.
        terms: what is added up, in the order of the formula.
        delta: probability with which it may fail, failing intervals of terms included.
    """

    source: str
    terms: tuple[Term, ...]
    delta: float

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the sum is no bound, a sentence per term; empty if it is one."""
        out = []
        for term in self.terms:
            if term.upper is None:
                out.append(f"{term.name}: only a lower bound is known ({term.origin})")
            if term.caveat is not None:
                out.append(f"{term.name}: {term.caveat}")
        if self.delta >= 1:
            out.append(f"delta: the failures add up to {self.delta:g}, which promises nothing")
        return tuple(out)

    @property
    def kind(self) -> Kind:
        """Whether the sum bounds the risk, or one of its terms does not allow that."""
        return "diagnostic, not a bound" if self.reasons else "bound"

    @property
    def title(self) -> str:
        """What a figure or table of it is to be called."""
        return f"{self.source}: {self.kind}"

    @property
    def total(self) -> Term:
        """The sum; where a term has no upper end neither has it, and it bounds the sum from below.

        The risk of a "bound" is at most `total.upper`.
        """
        lower = outward(sum(Fraction(term.lower) for term in self.terms), up=False)
        ends = [term.upper for term in self.terms]
        known = [Fraction(end) for end in ends if end is not None]
        upper = outward(sum(known), up=True) if len(known) == len(ends) else None
        origin = "sum of the terms" if upper is not None else "lower bound of the sum of the terms"
        return Term("total", lower, upper, origin, delta=min(self.delta, math.nextafter(1, 0)))

    @property
    def vacuous(self) -> bool | None:
        """Whether it says no more than J ≤ 1; None for a diagnostic below 1, which cannot tell."""
        total = self.total
        if total.lower >= 1:
            return True
        return None if self.kind != "bound" or total.upper is None else total.upper >= 1

    def term(self, name: str) -> Term:
        """The term of this name; ValueError if there is none."""
        for term in self.terms:
            if term.name == name:
                return term
        raise ValueError(f"no term is called {name!r}; there are {[t.name for t in self.terms]}.")


def outward(value: Fraction | int, up: bool) -> float:
    """The nearest double on one side."""
    try:
        return rounded(Fraction(value), up=up)
    except ValueError:
        raise ValueError("a term is beyond the range of float64: rescale the losses.") from None


def as_term(value: object, name: str, largest: float) -> Term:
    """A number, `Enclosure`, `Term` or anything with lower and upper ends, within [0, largest].

    Raises:
        TypeError: no quantity, or one that says that it is another than `name`.
        ValueError: one outside [0, largest].
    """
    _refuse_other(value, name)
    if isinstance(value, Term):
        found = replace(value, name=name)
    elif isinstance(value, Enclosure):
        found = Term(name, value.lower, value.upper, value.method)
    elif _has_ends(value):
        origin = f"given as {type(value).__name__}"
        found = Term(
            name,
            value.lower,  # type: ignore[attr-defined]
            value.upper,  # type: ignore[attr-defined]
            origin,
            delta=getattr(value, "delta", 0.0),
        )
    else:
        number = real(value, name)
        if not 0 <= number <= largest:
            raise ValueError(f"{name} = {number!r} is outside [0, {largest:g}]: {_advice(largest)}")
        found = Term(name, number, number, "given as a number")
    if found.lower > largest or (found.upper is not None and found.upper < 0):
        ends = f"[{found.lower!r}, {'unknown' if found.upper is None else repr(found.upper)}]"
        raise ValueError(f"{name} in {ends} is outside [0, {largest:g}]: {_advice(largest)}")
    upper = None if found.upper is None else min(found.upper, largest)
    return replace(found, lower=max(found.lower, 0.0), upper=upper)


_QUANTITIES = {
    "half the divergence": ("half the divergence",),
    "divergence": ("divergence",),
    "ideal joint error": ("ideal joint error", "ε of client"),
    "risk": ("empirical risk", "Ĵ_", "Σ ω_i Ĵ_i", "Σ_i Σ_j ω_i ω_j Ĵ_i"),
    "capacity": ("capacity of the",),
}


def _quantity(name: str) -> str | None:
    """What a term of this name is, if it is one that this package makes."""
    return next((kind for kind, starts in _QUANTITIES.items() if name.startswith(starts)), None)


def _refuse_other(value: object, name: str) -> None:
    """TypeError where a term, or an estimate of a divergence, stands in for another quantity."""
    wanted = _quantity(name)
    given = _quantity(value.name) if isinstance(value, Term) else None
    if isinstance(getattr(value, "divergence", None), str):  # `Estimate`, which imports this file
        given = "divergence"
    if wanted is not None and given is not None and given != wanted:
        raise TypeError(
            f"{name} was given the {given}: pass that in its own place, and here the {wanted}, or "
            "None where it is unknown."
        )


def _advice(largest: float) -> str:
    return {
        1.0: "divide the loss by its largest possible value.",
        2.0: "an estimate may leave the range, the quantity cannot; pass what it shows of it, such "
        "as Term(name, lower, None, origin) for a lower bound.",
    }.get(largest, "a loss is finite and not negative.")


def _has_ends(value: object) -> bool:
    ends = [getattr(value, end, len) for end in ("lower", "upper")]
    return not any(map(callable, ends))


def as_weights(weights: object) -> list[Fraction]:
    """ω_i ≥ 0 that sum to 1 up to rounding, made to sum to 1 exactly."""
    values = float_weights(weights).tolist()
    exact = sum(map(Fraction, values))
    return [Fraction(value) / exact for value in values]


def float_weights(weights: object) -> Float[np.ndarray, " n"]:
    """Weights ≥ 0 that sum to 1 up to rounding, or advice."""
    values = as_vector(weights, "weights")
    if values.min() < 0:
        raise ValueError(f"weights must not be negative, but one is {float(values.min())!r}.")
    total = math.fsum(values)
    if abs(total - 1) > 1e-6:
        raise ValueError(
            f"the weights sum to {total:.9g}, not 1: divide them by their sum (an average of "
            "hypotheses needs weights that sum to 1)."
        )
    return values


def weighted_mean(name: str, weights: Sequence[Fraction], parts: Sequence[Term]) -> Term:
    """Σ ω_i t_i with outward rounding; no upper end if a part that counts has none."""
    pairs = [(w, part) for w, part in zip(weights, parts, strict=True) if w > 0]
    lower = outward(sum(w * Fraction(part.lower) for w, part in pairs), up=False)
    known = [w * Fraction(part.upper) for w, part in pairs if part.upper is not None]
    upper = outward(sum(known), up=True) if len(known) == len(pairs) else None
    origins = list(dict.fromkeys(part.origin for _, part in pairs))
    caveats = list(dict.fromkeys(part.caveat for _, part in pairs if part.caveat))
    return Term(
        name,
        lower,
        upper,
        f"Σ ω_i of {len(parts)} clients: {'; '.join(origins)}",
        "; ".join(caveats) or None,
        min(math.fsum(part.delta for _, part in pairs), math.nextafter(1, 0)),
        tuple(map(float, weights)),
        tuple(parts),
    )
