"""An inequality whose sides are known up to enclosures."""

import math
from dataclasses import dataclass
from typing import Literal

from theory.spectrum import Enclosure

Judgement = Literal["certified", "consistent", "violated"]


@dataclass(frozen=True)
class Inequality:
    """lhs ≤ rhs, each side known up to an enclosure.

    Attributes:
        name: what is compared.
        source: the statement of the paper.
        lhs: the side that should be the smaller one.
        rhs: the side that should be the larger one.
        same: whether both sides are one number, by what they are: enclosures of it overlap, and
            the inequality holds as an equality.
    """

    name: str
    source: str
    lhs: Enclosure
    rhs: Enclosure
    same: bool = False

    @property
    def verdict(self) -> Judgement:
        """Certified if it holds for all values enclosed, violated if for none."""
        if self.lhs.lower > self.rhs.upper:
            return "violated"
        return "certified" if self.same or self.lhs.upper <= self.rhs.lower else "consistent"

    @property
    def slack(self) -> float:
        """The certain part of rhs − lhs; negative unless certified."""
        return 0.0 if self.same else self.rhs.lower - self.lhs.upper

    @property
    def slack_decades(self) -> float:
        """log₁₀(rhs/lhs), the certain part; infinite where lhs is 0, NaN for a negative side."""
        if self.same:
            return 0.0
        if self.lhs.upper < 0 or self.rhs.lower < 0:
            return math.nan
        if self.lhs.upper == 0:
            return math.inf
        return _log10(self.rhs.lower) - math.log10(self.lhs.upper)


def in_words(inequality: Inequality, proven: bool = False) -> str:
    """The verdict on an inequality, which may be proven to hold for all data."""
    if proven:
        return {
            "certified": "holds, certified, as proven",
            "violated": "fails, certified, though proven: a bug, or an error bound too small",
            "consistent": "holds, as proven: equal up to the width of the enclosures",
        }[inequality.verdict]
    return {
        "certified": "holds, certified",
        "violated": "fails, certified",
        "consistent": "not decided, the enclosures overlap",
    }[inequality.verdict]


def as_text(value: Enclosure) -> str:
    """The middle of an enclosure and half its width."""
    return f"{value.midpoint:.9g} ± {value.width / 2:.1g}"


def _log10(value: float) -> float:
    return math.log10(value) if value > 0 else -math.inf
