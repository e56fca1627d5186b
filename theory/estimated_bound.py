"""Eqs. (13), (16), (18) from arrays: every term is estimated, named, and says how it was got."""

import math
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from theory._loose import Anything, ArrayLike, Flag, Real, Whole
from theory._validate import as_matrix
from theory.bounds import Bound, Term, as_weights
from theory.capacity import risk_capacity
from theory.estimated_terms import as_client_weights, as_losses, each, mean_risk
from theory.estimates import Estimate
from theory.generalization import corollary_iii8, corollary_iii9, theorem_iii7
from theory.laws import FeatureLaws
from theory.mixtures import MixtureRisk, mixture_divergence, mixture_ideal_error
from theory.network import at_least
from theory.rates import as_risk

__all__ = ["generalization_bound"]

Array = np.ndarray

STATEMENTS = ("13", "16", "18")
_SAME = 1e-9  # weights that differ by less are the same, rounded


@dataclass(frozen=True)
class _Given:
    """Checked input: the risk, features, weights as given to every mean, and numbers of points."""

    risk: Term | MixtureRisk
    seen: list[Array]
    unseen: Array | None
    weights: list[float]
    sizes: list[int]
    by_size: bool


def generalization_bound(  # noqa: PLR0913 - one argument per term, and the samples
    losses: "Iterable[ArrayLike] | Term | MixtureRisk | Anything",
    seen: "Iterable[ArrayLike] | Anything",
    unseen: "ArrayLike | None" = None,
    *,
    vc_dimension: Whole,
    statement: str | Anything = "16",
    weights: "ArrayLike | None" = None,
    ideal_error: object = None,
    divergences: object = None,
    common_law: "FeatureLaws | Flag | None" = None,
    delta: Real = 0.05,
    seed: Whole = 0,
) -> Bound:
    """Estimates every term of Theorem III.7 (13), Corollary III.8 (16) or III.9 (18) and adds up.

    The risk is that of the points f was trained on; the capacities pay for that: that of the risk
    for the n = Σ n_i points of the seen clients alone, whatever the unseen one has; that of the
    divergence, estimated from both, for the smaller of n and n_u. Of the divergence
    a domain classifier on held-out features gives a lower bound alone, of d_H, which d_HΔH is not
    below if H has a constant; the ideal joint error needs labels of the unseen client. So from
    arrays alone the sum is a diagnostic; it becomes a bound with divergences that have an upper end
    (Gaussian laws: `homogeneous_pair_divergence`; 2, always true) and an `oracle_ideal_error`.

    δ: what is estimated here shares it. The capacities get all of it, or one half where the
    divergences are estimated too, which have the other half in equal parts. Terms that are given
    bring their own, which come on top (`Bound.delta`).

    Weights other than n_i/n: losses of client i weigh ω_i/n_i, and in symmetrisation and
    Hoeffding's inequality n_eff = 1/Σ_p w_p² takes the place of n outside of the logarithm, so that
    the capacities of the n points grow by √(n/n_eff); of the divergence's, n_eff is at most n_u.

    Args:
        losses: one array (n_i,) per seen client, losses in [0, 1] of f at its training points; or a
            right side of (15), `cross_losses_risk(...).convex` or `.printed`; or, for (18), what
            `cross_losses_risk` returns.
        seen: one array (n_i, d) per seen client, features of the same points.
        unseen: (n_u, d), features of the unseen client, without labels; not needed for (18).
        vc_dimension: d of H: `half_space_vc_dimension`, `vc_dimension`.
        statement: "13", "16" or "18".
        weights: ω_i ≥ 0 that sum to 1; n_i/n when left out, which (13) asks for.
        ideal_error: ε as a number, enclosure or term; a sequence of ε_i, one per seen client, whose
            mean bounds ε from below; None for unknown.
        divergences: of each seen client to the unseen one (of the pooled sample for "13"), as
            `Estimate`s, numbers, enclosures or terms; or a function of (seen, unseen, delta) that
            gives one; None for `proxy_a_distance`. None for "18", which has no divergence.
        common_law: for "18", as `corollary_iii9` takes it.
        delta: probability with which what is estimated here may fail, in (0, 1).
        seed: of `proxy_a_distance`.

    Raises:
        TypeError, ValueError: another statement; no seen client; losses outside [0, 1], or not one
            per row of the features; a mean over other clients or with other weights; a term in the
            place of another quantity; weights as for `mixture_divergence`; arguments that the
            statement has no use for; quantities as for `theorem_iii7`.
    """
    if not isinstance(statement, str) or statement not in STATEMENTS:
        raise ValueError(f"statement must be one of {STATEMENTS}, not {statement!r}.")
    start = at_least(seed, 0, "seed")
    given = _checked(losses, seen, unseen, weights, statement)
    _refuse_other_means(ideal_error, "ideal_error", given)
    ideal: Any = _ideal(ideal_error, given.weights)
    risk: Any = given.risk
    n = sum(given.sizes)
    if statement == "18":
        if divergences is not None:
            raise ValueError('(18) has no divergence: leave divergences out, or choose "16".')
        if isinstance(given.risk, MixtureRisk):
            n = min(given.sizes)
        sizes = {"vc_dimension": vc_dimension, "n": n, "delta": delta}
        bound = corollary_iii9(risk, ideal, common_law=common_law, **sizes)
        return bound if isinstance(given.risk, MixtureRisk) else _weighted(bound, given)
    if common_law is not None:
        raise ValueError('common_law belongs to (18): leave it out, or choose statement="18".')
    found, rest = _divergences(divergences, given, statement, as_risk(delta, 4), start)
    smaller = n if given.unseen is None else min(n, len(given.unseen))
    sizes = {"vc_dimension": vc_dimension, "n": smaller if given.by_size else n, "delta": rest}
    if statement == "13":
        bound = theorem_iii7(risk, found[0], ideal, **sizes)
    else:
        mixture = mixture_divergence(given.weights, found)
        bound = corollary_iii8(risk, mixture, ideal, **sizes)
    # Half of the δ that is left, as in `theorem_iii7`, which knows one number of points.
    own = risk_capacity(vc_dimension, n, as_risk(rest, 2) / 2)
    terms = tuple(own if term.name == own.name else term for term in bound.terms)
    return _weighted(replace(bound, terms=terms), given)


def _checked(
    losses: object, seen: object, unseen: object, weights: object, statement: str
) -> _Given:
    features = [as_matrix(v, f"features of client {i}") for i, v in each(seen, "seen")]
    target = None if unseen is None else as_matrix(unseen, "unseen")
    if target is None and statement != "18":
        raise ValueError(f"({statement}) needs the features of the unseen client: give unseen.")
    columns = {x.shape[1] for x in (*features, *([] if target is None else [target]))}
    if len(columns) > 1:
        raise ValueError(
            f"the features have different numbers of columns, {sorted(columns)}: take them from "
            "the same layer."
        )
    sizes = [len(x) for x in features]
    omega, by_size = as_client_weights(weights, sizes)
    if statement == "13" and not by_size:
        raise ValueError("(13) is about one pooled sample: leave weights out, or choose (16).")
    if isinstance(losses, MixtureRisk) and statement != "18":
        raise TypeError(
            "choose one right side of Eq. (15): .printed (a diagnostic) or .convex of the losses."
        )
    risk = losses if isinstance(losses, Term | MixtureRisk) else None
    if risk is None:
        listed = [as_losses(v, f"losses of client {i}") for i, v in each(losses, "losses")]
        if [len(values) for values in listed] != sizes:
            raise ValueError(
                f"losses of {[len(v) for v in listed]} points do not match features of {sizes}: "
                "give one loss per row of the features, client by client."
            )
        risk = mean_risk(listed, omega)
    found = _Given(risk, features, target, omega, sizes, by_size)
    _refuse_other_means(risk, "losses", found)
    return found


def _refuse_other_means(value: object, name: str, given: _Given) -> None:
    """ValueError for a mean over clients that is not that of the given ones and their weights."""
    mean = value.printed if isinstance(value, MixtureRisk) else value
    own = mean.weights if isinstance(mean, Term) else ()
    if not own:  # a quantity of which nobody says what it is a mean of
        return
    if len(own) != len(given.sizes):
        raise ValueError(
            f"{name} is a mean over {len(own)} clients, but seen has features of "
            f"{len(given.sizes)}: give both of the same clients, in the same order."
        )
    if np.abs(np.subtract(own, [float(w) for w in as_weights(given.weights)])).max() > _SAME:
        which = "n_i/n, as no weights are given" if given.by_size else "weights"
        raise ValueError(
            f"{name} is a mean with the weights {_brief(own)}, not {_brief(given.weights)} "
            f"({which}): use the same ω_i for both."
        )


def _brief(weights: Sequence[Any]) -> str:
    shown = ", ".join(f"{float(w):.4g}" for w in weights[:8])
    return f"[{shown}{', ...' if len(weights) > 8 else ''}]"


def _divergences(
    given: object, samples: _Given, statement: str, delta: float, seed: int
) -> tuple[list[Any], float]:
    """One divergence per seen client (one in all for (13)), and the δ that is left."""
    pooled = statement == "13"
    seen = [np.concatenate(samples.seen)] if pooled else samples.seen
    if given is not None and not callable(given):
        single = pooled and (not isinstance(given, Sized) or isinstance(given, Term))
        values = [given] if single else [value for _, value in each(given, "divergences")]
        if len(values) != len(seen):
            raise ValueError(
                f"there are {len(values)} divergences for {len(seen)} "
                f"{'pooled sample' if pooled else 'seen clients'}: give one each."
            )
        for value in values if pooled else ():
            _refuse_other_means(value, "divergences", samples)
        return [_as_term(value, i) for i, value in enumerate(values)], delta
    measure = _proxy(seed) if given is None else given
    share = delta / 2 / len(seen)
    values = [measure(x, samples.unseen, share) for x in seen]  # type: ignore[operator]
    return [_as_term(value, i) for i, value in enumerate(values)], delta / 2


def _proxy(seed: int) -> Callable[[Array, Array, float], Estimate]:
    from theory.proxy import proxy_a_distance  # scikit-learn is slow to import

    return lambda a, b, delta: proxy_a_distance(a, b, seed=seed, delta=delta)


def _as_term(value: object, client: int) -> object:
    return value.term(f"divergence of client {client}") if isinstance(value, Estimate) else value


def _ideal(given: object, weights: list[float]) -> object:
    if isinstance(given, list | tuple) or getattr(given, "ndim", 0) == 1:
        return mixture_ideal_error(weights, given, common_hypothesis=len(weights) == 1)
    return given


def _weighted(bound: Bound, given: _Given) -> Bound:
    """The bound with capacities of weighted points."""
    if given.by_size:
        return bound
    squares = (w * w / n for w, n in zip(as_weights(given.weights), given.sizes, strict=True))
    seen = 1 / sum(squares)
    both = seen if given.unseen is None else min(seen, Fraction(len(given.unseen)))
    points = {"capacity of the divergence": both, "capacity of the risk": seen}
    terms = []
    for term in bound.terms:
        effective = points.get(term.name)
        if effective and term.upper:
            origin = f"{term.origin}, times √(n/n_eff), n_eff = {float(effective):.6g}"
            factor = math.sqrt(sum(given.sizes) / effective) * (1 + 2.0**-50)
            term = replace(term.scaled(factor, term.name), origin=origin)
        terms.append(term)
    return replace(bound, terms=tuple(terms))
