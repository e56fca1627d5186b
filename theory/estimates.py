"""Divergence from samples: what a classifier's held-out decisions say about d(h), d_H, d_HΔH.

A set h, here the points that a classifier says are of domain A, has d(h) = 2(P_A(h) − P_B(h)), and
d_H = 2 sup_h |P_A(h) − P_B(h)| is at least that. Decisions on points that h was not chosen with
bound d(h) on both sides, hence d_H from below. They never bound d_H from above: another h may be
better.
"""

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool

from theory._betting import difference_p_value
from theory._grouping import Rows, as_group_rows
from theory._intervals import Rate, binomial_lower
from theory._loose import Anything, ArrayLike, Real, Whole
from theory._relabelling import groups_p_value, points_p_value
from theory._validate import as_vector
from theory.bounds import Term
from theory.network import at_least
from theory.rates import as_risk

__all__ = ["Estimate", "clopper_pearson", "held_out_divergence"]

_SIDES = ("two", "upper", "lower")
_TRIALS = 10**9
_LEAST = sys.float_info.min  # a smaller p-value is given as this, which it is at most
_OF_GROUPS = 'of the laws "a group, then a point of it"'


@dataclass(frozen=True)
class Estimate:
    """A divergence estimated with one classifier h: an interval of d(h), a lower bound of d_H.

    Attributes:
        value: d(h) on the held-out points, in [−2, 2], as measured: under d_H = 0 it is negative
            half of the time.
        interval: contains the true d(h) with probability at least 1 − δ.
        lower: at most d_H with probability at least 1 − δ, never negative. With groups it is d_H
            between the laws "draw a group, then a point of it", in which small groups count as much
            as large ones: not between the laws of the points, if sizes and points are related.
        upper: None: a classifier bounds d_H from below only.
        bounds: "lower", for the same reason.
        p_value: one-sided; of the hypothesis that `held_out_divergence` states: points, or groups
            of one size, of one law in both domains; for groups of several sizes, d(h) ≤ 0. It is
            never 0: below 2.2e-308 (the least normal float) it is given as that.
        n: held-out points of A and of B.
        delta: δ.
        origin: how the interval was got.
        divergence: what `lower` bounds: "d_H", or "d_HΔH" for a pair of hypotheses.
        groups: held-out groups of A and of B, where points are dependent; else None.
        capacity: the class that h was chosen from, if a function of this package chose it.
        strength: the parameter of regularisation that was chosen, if any.
        seed: of the split into fit and held-out part, and of relabelling.
        classifier: h itself: takes points (n, d) and says of each whether it is of A.
    """

    value: float
    interval: tuple[float, float]
    lower: float
    p_value: float
    n: tuple[int, int]
    delta: float
    origin: str
    divergence: str = "d_H"
    groups: tuple[int, int] | None = None
    capacity: str | None = None
    strength: float | None = None
    seed: int | None = None
    classifier: Any = field(default=None, compare=False, repr=False)
    upper: None = field(default=None, init=False)
    bounds: str = field(default="lower", init=False)

    def __str__(self) -> str:
        """One line: value, interval, lower bound, p-value, held-out points."""
        low, high = self.interval
        held_out = f"{self.n[0]} + {self.n[1]} held-out points"
        if self.groups is not None:
            held_out += f" in {self.groups[0]} + {self.groups[1]} groups"
        chosen = "" if self.capacity is None else f", {self.capacity}"
        return (
            f"d(h) = {self.value:.3f}, {100 * (1 - self.delta):.4g} % interval [{low:.3f}, "
            f"{high:.3f}]; {self.bounded} ≥ {self.lower:.3f}; p = {self.p_value:.2g} "
            f"({held_out}{chosen})"
        )

    @property
    def bounded(self) -> str:
        """What `lower` bounds, in words: of which laws, if the points are grouped."""
        return self.divergence + ("" if self.groups is None else f" {_OF_GROUPS}")

    def term(self, name: str | Anything = "divergence") -> Term:
        """A term of a bound: at least `lower`, without upper end, wrong with probability δ.

        Raises:
            TypeError: the name is no text.
        """
        if not isinstance(name, str):
            raise TypeError(f"name must be the text that the term is to bear, not {name!r}.")
        origin = f"held-out classifier, lower bound of {self.bounded}: {self.origin}"
        return Term(name, self.lower, None, origin, delta=self.delta)


def clopper_pearson(
    successes: Whole, n: Whole, delta: Real = 0.05, side: str | Anything = "two"
) -> tuple[float, float]:
    """An interval of a probability from independent trials (Clopper & Pearson 1934).

    The lower end is the p at which so many successes or more have probability δ/2 (δ if
    one-sided), a quantile of the beta law B(k, n − k + 1); the upper end mirrors it. It contains
    the true p with probability at least 1 − δ, whatever p is.

    Args:
        successes: k, out of n trials.
        n: number of trials.
        delta: probability with which it may fail, in (0, 1).
        side: "two"; "upper" for [0, upper end]; "lower" for [lower end, 1].

    Raises:
        TypeError, ValueError: k or n no integer, k outside 0..n, n = 0 or above 10⁹; δ outside
            (0, 1); another side.
    """
    trials, count = at_least(n, 1, "n"), at_least(successes, 0, "successes")
    if count > trials:
        raise ValueError(f"there are {count} successes in {trials} trials: at most n can be.")
    if trials > _TRIALS:
        raise ValueError(
            f"n has {len(str(trials))} digits: at most {_TRIALS:.0e} trials, since the ends are "
            "rounded to 1e-16."
        )
    risk = as_risk(delta, 4)
    if not isinstance(side, str) or side not in _SIDES:
        raise ValueError(f"side must be one of {', '.join(_SIDES)}, not {side!r}.")
    tail = risk / 2 if side == "two" else risk
    low = 0.0 if side == "upper" else binomial_lower(count, trials, tail)
    high = 1.0 if side == "lower" else 1 - binomial_lower(trials - count, trials, tail)
    return low, high


def held_out_divergence(
    said_a: ArrayLike,
    said_b: ArrayLike,
    *,
    groups_a: object = None,
    groups_b: object = None,
    delta: Real = 0.05,
    seed: Whole = 0,
) -> Estimate:
    """d(h) = 2(P_A(h) − P_B(h)) = 2(1 − 2 × balanced error) of a fixed h, from held-out decisions.

    The two rates are estimated apart, so that unequal numbers of points do no harm. Interval: each
    rate within a Clopper–Pearson interval of confidence 1 − δ/2, hence both, and d(h), with 1 − δ.
    Lower bound of d_H: one-sided ends of both rates at δ/2 and d(h) ≤ |d(h)| ≤ d_H; clipped at 0.
    p-value: of the hypothesis that both domains have one law. Then the held-out points that h calls
    A are spread over the domains at random, hypergeometrically; the exact one-sided tail, ties
    included.

    Groups: points of one patient, say, are dependent, but groups are not. The value is then
    2(mean of A's group rates − mean of B's), and what the interval contains is its expectation, in
    which each group counts once, whatever its size. So P_A is the law "draw a group of A, then one
    of its points", and `lower` bounds d_H between such laws: with equal laws of points it may be
    positive, if sizes differ and large groups hold other points than small ones. The group rates
    lie in [0, 1], so that the interval inverts n kl(m ‖ μ) ≤ log(1/δ') (Hoeffding 1963), wider than
    Clopper–Pearson's. If every group has one point there is nothing to group.

    p-value with groups: if all held-out groups of both domains have one size, of the hypothesis
    that groups of A and of B have one law; whole groups are relabelled, which is exact. Groups of
    unlike sizes are not exchangeable even if all points have one law, and relabelling them may
    reject far too often: the hypothesis is then d(h) ≤ 0 for the laws above, that the expected
    group rates of A are on average at most those of B. It is tested by bets on the group means,
    valid for every number and all laws of independent groups, and weaker than relabelling.

    Args:
        said_a: (n_a,) booleans for held-out points of A: is it in h, said to be of A?
        said_b: (n_b,) the same for held-out points of B.
        groups_a: (n_a,) labels of the groups of A's points; None if points are independent.
        groups_b: (n_b,) labels of the groups of B's points, none of which occurs in A.
        delta: probability with which the interval may fail, and with which the lower bound may.
        seed: of the relabellings drawn where the groups are too many to try all.

    Raises:
        TypeError, ValueError: decisions other than booleans (or 0 and 1); fewer than two points in
            a domain; groups given for one domain only, or as `proxy_a_distance` refuses them;
            δ outside (0, 1).
    """
    a, b = _decisions(said_a, "said_a"), _decisions(said_b, "said_b")
    risk, start = as_risk(delta, 4), at_least(seed, 0, "seed")
    rates, grouped, alike = _rates(a, b, groups_a, groups_b)
    low = rates[0].at_least(risk / 4) - rates[1].at_most(risk / 4)
    high = rates[0].at_most(risk / 4) - rates[1].at_least(risk / 4)
    floor = rates[0].at_least(risk / 2) - rates[1].at_most(risk / 2)
    first, second = (rate.means for rate in rates)
    if first is None or second is None:
        p_value = points_p_value((rates[0].said, rates[1].said), (len(a), len(b)))
        origin = "Clopper–Pearson"
    else:
        p_value = (
            groups_p_value(first, second, start) if alike else difference_p_value(first, second)
        )
        origin = "Chernoff–Hoeffding of group means"
    return Estimate(
        value=2 * (rates[0].value - rates[1].value),
        interval=(2 * low, 2 * high),
        lower=max(0.0, 2 * floor),
        p_value=max(p_value, _LEAST),
        n=(len(a), len(b)),
        delta=risk,
        origin=f"{origin}, confidence {1 - risk:g}",
        groups=grouped,
        seed=start,
    )


def _decisions(value: object, name: str) -> Bool[np.ndarray, " _"]:
    vector = as_vector(value, name)
    if not np.isin(vector, (0, 1)).all():
        raise ValueError(
            f"{name} must hold booleans, whether each point is said to be of A: compare scores "
            "with the threshold first."
        )
    if len(vector) < 2:
        raise ValueError(f"{name} has one point: hold out at least two of each domain.")
    return vector.astype(bool)


def _rates(
    a: np.ndarray, b: np.ndarray, groups_a: object, groups_b: object
) -> tuple[tuple[Rate, Rate], tuple[int, int] | None, bool]:
    """Both rates, the numbers of groups, and whether all groups have one size."""
    single = (
        Rate(float(a.mean()), int(a.sum()), len(a)),
        Rate(float(b.mean()), int(b.sum()), len(b)),
    )
    if groups_a is None and groups_b is None:
        return single, None, True
    if groups_a is None or groups_b is None:
        lacking = "groups_a" if groups_a is None else "groups_b"
        raise ValueError(f"{lacking} is missing: give groups for both domains, or for neither.")
    rows = as_group_rows(groups_a, groups_b, (len(a), len(b)), ("groups_a", "groups_b"))
    count = len(rows[0]), len(rows[1])
    if count == (len(a), len(b)):
        return single, None, True
    sizes = {len(group) for part in rows for group in part}
    return (_rate(a, rows[0]), _rate(b, rows[1])), count, len(sizes) == 1


def _rate(said: np.ndarray, groups: Rows | None = None) -> Rate:
    if groups is None:
        return Rate(float(said.mean()), int(said.sum()), len(said))
    means = np.array([said[rows].mean() for rows in groups])
    return Rate(float(means.mean()), int(said.sum()), len(said), means)
