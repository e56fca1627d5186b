"""Intervals that contain an eigenvalue."""

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from fractions import Fraction

from theory import _certify
from theory._loose import Real
from theory._validate import non_negative, real


@dataclass(frozen=True)
class Enclosure:
    """An interval that contains an eigenvalue.

    Attributes:
        lower: rigorous lower bound.
        upper: rigorous upper bound.
        method: how the bounds were obtained.
        cause: why a smallest eigenvalue is not certified positive, None if it is.
        block: of several blocks (clients) the one with the least lower end (for a largest
            eigenvalue: the greatest upper end). Where the enclosures of blocks overlap, another may
            be the one that attains the eigenvalue. None for a dense matrix.
        rows: rows of the cause, else the largest entries of the eigenvector, in the matrix's order.
    """

    lower: Real
    upper: Real
    method: str
    cause: str | None = None
    block: Hashable | None = None
    rows: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for end in ("lower", "upper"):
            object.__setattr__(self, end, real(getattr(self, end), f"{end} end of an enclosure"))
        if not (math.isfinite(self.lower) and math.isfinite(self.upper)):
            raise ValueError(f"enclosure [{self.lower}, {self.upper}] must be finite.")
        if self.lower > self.upper:
            raise ValueError(f"enclosure is empty: lower {self.lower!r} > upper {self.upper!r}.")

    @property
    def width(self) -> float:
        """Upper - lower."""
        return self.upper - self.lower

    @property
    def midpoint(self) -> float:
        """The middle of the interval."""
        return self.lower + self.width / 2

    def contains(self, value: Real) -> bool:
        """Whether lower <= value <= upper; TypeError for what is no real number."""
        return self.lower <= real(value, "value") <= self.upper

    def widened(self, error: Real) -> "Enclosure":
        """Returns the enclosure for a matrix at spectral distance at most `error` (Weyl)."""
        if error == 0:
            return self
        amount = Fraction(non_negative(error, "error"))
        lower = _certify.rounded(Fraction(self.lower) - amount, up=False)
        upper = _certify.rounded(Fraction(self.upper) + amount, up=True)
        return replace(self, lower=lower, upper=upper)

    def scaled(self, factor: Real) -> "Enclosure":
        """Returns the enclosure of factor·λ for a factor >= 0."""
        exact = Fraction(non_negative(factor, "factor"))
        lower = _certify.rounded(Fraction(self.lower) * exact, up=False)
        upper = _certify.rounded(Fraction(self.upper) * exact, up=True)
        return replace(self, lower=lower, upper=upper)
