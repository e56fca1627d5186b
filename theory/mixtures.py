"""Eqs. (14), (15): what a mixture of clients does to divergence, risk and ideal joint error."""

from collections.abc import Iterable, Mapping, MappingView, Set, Sized
from dataclasses import dataclass

import numpy as np

from theory._enclosure import Enclosure
from theory._loose import ArrayLike, Flag, Real
from theory._validate import as_real_array, flag
from theory.bounds import Term, as_term, as_weights, weighted_mean
from theory.inequality import Inequality

__all__ = [
    "MixtureDivergence",
    "MixtureRisk",
    "counterexample_eq15",
    "mixture_divergence",
    "mixture_ideal_error",
    "mixture_risk",
]

_PRINTED = "Σ ω_i Ĵ_i(f_i), as printed"
_CONVEX = "Σ_i Σ_j ω_i ω_j Ĵ_i(f_j)"


@dataclass(frozen=True)
class MixtureDivergence:
    """Eq. (14): d̂(Σ ω_i D̂_i, D̂_u) ≤ Σ ω_i d̂(D̂_i, D̂_u).

    Attributes:
        term: the right side, with the clients' terms as its parts.
        inequality: both sides, if the left one was given. A side without an upper end is enclosed
            with 2, which no divergence exceeds.
    """

    term: Term
    inequality: Inequality | None


@dataclass(frozen=True)
class MixtureRisk:
    """Both right sides of Eq. (15) for f_u = Σ ω_j f_j: the printed one, and that of convexity.

    Attributes:
        printed: Σ ω_i Ĵ_i(f_i). Its caveat says that it bounds nothing, unless the other right
            side is below it.
        convex: Σ_i Σ_j ω_i ω_j Ĵ_i(f_j), which bounds Ĵ_s(f_u) for a convex loss and averaged
            predictions; None if the risks of models away from home are unknown.
        as_printed: Ĵ_s(f_u) ≤ printed, if Ĵ_s(f_u) was given. "violated" is a counterexample.
        by_convexity: Ĵ_s(f_u) ≤ convex, if both are known.
        under_one_law: why `printed` bounds nothing even where the features of all clients have one
            law, as in Eq. (18); None if it then does.
    """

    printed: Term
    convex: Term | None
    as_printed: Inequality | None
    by_convexity: Inequality | None
    under_one_law: str | None


def mixture_divergence(
    weights: ArrayLike, divergences: object, mixture: "Term | Enclosure | Real | None" = None
) -> MixtureDivergence:
    """Eq. (14): the divergence of a mixture is at most the mixture of the divergences.

    For every set A, |Σ ω_i P_i(A) − P_u(A)| ≤ Σ ω_i |P_i(A) − P_u(A)| since Σ ω_i = 1; the
    supremum over A of the right side is at most Σ ω_i sup_A |P_i(A) − P_u(A)|, a supremum of a
    convex combination being at most the combination of the suprema. It holds for the empirical
    distributions of one and the same sample, D̂^s = Σ ω_i D̂_i, hence ω_i = n_i/n there.

    Args:
        weights: ω_i ≥ 0, one per seen client, summing to 1.
        divergences: of each seen client to the unseen one, in [0, 2]: numbers, enclosures, terms
            or anything with a lower and an upper end (None where only a lower bound is known).
        mixture: the divergence of the mixture itself, where known.

    Raises:
        TypeError, ValueError: weights that are negative or do not sum to 1, a number of
            divergences other than theirs, or one outside [0, 2].
    """
    omega = as_weights(weights)
    parts = _parts(divergences, "divergence", len(omega), 2.0)
    term = weighted_mean("divergence", omega, parts)
    if mixture is None:
        return MixtureDivergence(term, None)
    left = as_term(mixture, "divergence of the mixture", 2.0)
    name = "d̂(Σ ω_i D̂_i, D̂_u) ≤ Σ ω_i d̂(D̂_i, D̂_u)"
    return MixtureDivergence(
        term, Inequality(name, "Eq. (14)", _enclosed(left, 2.0), _enclosed(term, 2.0))
    )


def mixture_risk(
    weights: ArrayLike,
    cross_risks: ArrayLike,
    mixture: "Term | Enclosure | Real | None" = None,
    *,
    convex_loss: Flag,
    averages_predictions: Flag = True,
    common_labels: Flag = False,
) -> MixtureRisk:
    """Eq. (15), Ĵ_s(f_u) ≤ Σ ω_i Ĵ_i(f_i), beside what convexity really gives.

    Ĵ_s(f_u) = Σ_i ω_i Ĵ_i(Σ_j ω_j f_j), and Jensen within each client bounds it by
    Σ_i Σ_j ω_i ω_j Ĵ_i(f_j): every local model meets every client. The printed right side keeps
    only i = j, as if f_j had been applied at home alone; `counterexample_eq15` breaks it.

    Jensen needs a loss convex in the prediction, and f_u(x) = Σ ω_j f_j(x): a network whose
    parameters are averaged is another function. The 0-1 loss of Theorem III.7 is not convex; the
    absolute loss of predictions in [0, 1] is, and the theorem holds for it with HΔH replaced by
    the sets {x : |f(x) − f'(x)| > t}, since E|f − f'| = ∫₀¹ P(|f − f'| > t) dt.

    Under Eq. (17), one law N of the features and one q_t, J_i(f_j) = J_N(q_j) for every i, and both
    right sides have the same expectation: in Corollary III.9 the printed one is what Jensen gives.

    Args:
        weights: ω_i ≥ 0, one per seen client, summing to 1.
        cross_risks: (N, N), row i column j the risk Ĵ_i(f_j) of client j's model on client i's
            data; or (N,), the risks Ĵ_i(f_i) at home alone.
        mixture: Ĵ_s(f_u), where it was measured.
        convex_loss: whether ℓ is convex in the prediction.
        averages_predictions: whether f_u averages predictions, not parameters.
        common_labels: whether the labels of all clients are one function q_t of their features;
            it matters to `corollary_iii9` alone.

    Raises:
        TypeError, ValueError: weights as for `mixture_divergence`; risks that are negative, not
            finite or of another shape; flags that are no booleans.
    """
    omega = as_weights(weights)
    jensen = _missing(
        (flag(convex_loss, "convex_loss"), "the loss is not convex"),
        (
            flag(averages_predictions, "averages_predictions"),
            "parameters are averaged, not predictions",
        ),
    )
    labels = flag(common_labels, "common_labels"), "the labels are not known to be one q_t(z)"
    matrix = _risks(cross_risks, len(omega))
    home = matrix.diagonal() if matrix.ndim == 2 else matrix
    printed = weighted_mean(_PRINTED, omega, [_exact(f"Ĵ_{i}(f_{i})", v) for i, v in _count(home)])
    convex = None
    if matrix.ndim == 2:
        pairs = [w * v for w in omega for v in omega]
        cross = [_exact(f"Ĵ_{i}(f_{j})", v) for i, row in enumerate(matrix) for j, v in _count(row)]
        convex = weighted_mean(_CONVEX, pairs, cross)
        convex = _with(convex, jensen, "Σ_i Σ_j ω_i ω_j of cross risks", omega)
    proven = convex is not None and convex.caveat is None and _top(convex) <= printed.lower
    caveat = None if proven else "not implied by convexity: f_i is counted at home alone"
    printed = _with(printed, caveat, printed.origin, omega)
    left = None if mixture is None else as_term(mixture, "Ĵ_s(f_u)", np.inf)
    sides = _compared(left, printed), _compared(left, convex)
    return MixtureRisk(printed, convex, *sides, jensen or _missing(labels))


def mixture_ideal_error(weights: ArrayLike, errors: object, *, common_hypothesis: Flag) -> Term:
    """ε against Σ ω_i ε_i, the second half of Eq. (15), which needs one common f^o.

    For every f, J_s(f) + J_u(f) = Σ ω_i (J_i(f) + J_u(f)) ≥ Σ ω_i ε_i, so that ε ≥ Σ ω_i ε_i
    always: the printed inequality is the other way round. If one f^o is best for all clients at
    once, both sides are equal, and Σ ω_i ε_i may stand for ε in a bound.

    Args:
        weights: ω_i ≥ 0, one per seen client, summing to 1.
        errors: ε_i in [0, 2] as numbers, enclosures or terms; None where unknown, as it is without
            labels of the unseen client.
        common_hypothesis: whether one f^o attains every ε_i.

    Returns:
        The term; without a common hypothesis its upper end is None.

    Raises:
        TypeError, ValueError: weights as for `mixture_divergence`; an error outside [0, 2]; a flag
            that is no boolean.
    """
    omega = as_weights(weights)
    term = weighted_mean("ideal joint error", omega, _parts(errors, "ε", len(omega), 2.0))
    if flag(common_hypothesis, "common_hypothesis"):
        return term
    origin = f"Σ ω_i ε_i ≤ ε without one common ideal hypothesis; {term.origin}"
    return Term(term.name, term.lower, None, origin, None, term.delta, term.weights, term.parts)


def counterexample_eq15() -> MixtureRisk:
    """Local models that are right only at home: left side 25, printed right side 0.

    Client 1 has its point at x = 1, client 2 at x = −1; one rule labels both, y = 0 for x > 0 and
    y = 10 otherwise. f_1 ≡ 0 and f_2 ≡ 10 make no error at home. With equal weights f_u ≡ 5, whose
    squared loss, convex, is 25 on either client. Convexity gives ¼(0 + 100 + 100 + 0) = 50.
    """
    models, labels, weights = np.array([0.0, 10.0]), np.array([0.0, 10.0]), np.array([0.5, 0.5])
    cross = (models[None, :] - labels[:, None]) ** 2
    measured = float(weights @ (weights @ models - labels) ** 2)
    return mixture_risk(weights, cross, measured, convex_loss=True)


def unknown(name: str) -> Term:
    """A risk that nothing is known of but that it is not negative."""
    return Term(name, 0.0, None, "unknown: needs labels of the unseen client")


def _parts(values: object, name: str, count: int, largest: float) -> list[Term]:
    # A set has no order, and of a mapping the keys would be taken.
    refused = isinstance(values, str | bytes | Mapping | MappingView | Set)
    if refused or not isinstance(values, Iterable) or not isinstance(values, Sized):
        raise TypeError(
            f"give a sequence of one {name} per seen client, such as a list, not {values!r}."
        )
    if getattr(values, "ndim", 1) != 1:
        raise ValueError(f"the values of {name} must have one dimension: one per seen client.")
    given = list(values)
    if len(given) != count:
        raise ValueError(f"there are {len(given)} values of {name} for {count} weights: one each.")
    named = [(f"{name} of client {i}", value) for i, value in enumerate(given)]
    return [unknown(n) if v is None else as_term(v, n, largest) for n, v in named]


def _risks(cross_risks: object, count: int) -> np.ndarray:
    matrix = as_real_array(cross_risks, "cross_risks")
    if matrix.shape not in ((count,), (count, count)):
        raise ValueError(
            f"cross_risks has shape {matrix.shape}; for {count} weights give ({count}, {count}), "
            f"row i the risks of all models on client i, or ({count},), the risks at home."
        )
    if (matrix < 0).any():
        raise ValueError("cross_risks holds negative values: a loss is not negative.")
    return matrix


def _count(values: np.ndarray) -> "list[tuple[int, float]]":
    return list(enumerate(values.tolist()))


def _exact(name: str, value: float) -> Term:
    return Term(name, value, value, "given as a number")


def _with(term: Term, caveat: str | None, origin: str, omega: list) -> Term:
    weights = tuple(map(float, omega))
    return Term(term.name, term.lower, term.upper, origin, caveat, term.delta, weights, term.parts)


def _missing(*conditions: tuple[bool, str]) -> str | None:
    lacking = [text for met, text in conditions if not met]
    return f"Jensen does not apply: {' and '.join(lacking)}" if lacking else None


def _compared(left: Term | None, right: Term | None) -> Inequality | None:
    if left is None or right is None:
        return None
    sides = _enclosed(left, None), _enclosed(right, None)
    return Inequality(f"Ĵ_s(f_u) ≤ {right.name}", "Eq. (15)", *sides)


def _enclosed(term: Term, largest: float | None) -> Enclosure:
    upper = largest if term.upper is None else term.upper
    if upper is None:
        raise ValueError(f"{term.name} has no upper end: give one to compare it.")
    return Enclosure(term.lower, upper, term.origin)


def _top(term: Term) -> float:
    return np.inf if term.upper is None else term.upper
