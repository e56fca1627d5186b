"""The bounds of Section III-B on Gaussian clients, where every term of them is known.

Half-spaces through the origin on features z of x ~ N(0, S_i): x itself ("raw"), BN of each unit of
Vx ("per_unit"), and Σ_i^(−1/2) Vx, Σ_i = VS_iVᵀ, with the symmetric root ("whitened"). The teacher
"whitened" labels by one sign(a·z) of whitened features, as Eq. (17) asks; the teacher "input" by
one sign(a·x), which whitening turns into another rule for each client.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from theory._enclosure import Enclosure
from theory.bounds import Bound, Term
from theory.capacity import divergence_capacity, risk_capacity
from theory.divergence import homogeneous_pair_divergence
from theory.generalization import corollary_iii8, corollary_iii9
from theory.half_spaces import LabelledGaussian, half_space_risk, ideal_half_space_error
from theory.hoeffding import empirical_risk
from theory.inequality import Inequality
from theory.laws import feature_laws
from theory.mixtures import mixture_divergence, mixture_ideal_error
from theory.studies.corollary import Generators, Points, Progress
from theory.studies.rows import enclosed, row, verdict_row
from theory.vc import half_space_vc_dimension

__all__ = ["FEATURES", "TEACHERS", "gaussian_bounds"]

Array = np.ndarray
Rows = Iterator[dict[str, Any]]

FEATURES = ("raw", "per_unit", "whitened")
TEACHERS = ("whitened", "input")
DIRECTIONS = ("gaussian", "orthogonal")
SHIFTS = ("rotation", "scale")

_CONDITION = 100.0  # of V, at most
_ROUNDING = 2.0**-26  # of an angle, from features computed in float64 at condition of Σ below 1e8


@dataclass(frozen=True)
class _Draw:
    """What is drawn once, and serves every spread, so that curves over the spread are smooth.

    Attributes:
        left: (N + 1, d, d), the unseen client last: S_i = A_iA_iᵀ, A_i = left_i κ^(e_i/2) right.
        right: (d, d).
        exponents: (N + 1, d), e_i, uniform in [−1, 1].
        directions: (d, d) V, drawn anew while its condition exceeds 100.
        rule: (d,) a of the teacher.
        client: (n,) seen client of each point.
        noise: (n, d), standard normal.
    """

    left: Array
    right: Array
    exponents: Array
    directions: Array
    rule: Array
    client: Array
    noise: Array


@dataclass(frozen=True)
class _Clients:
    """All clients in one kind of features: laws with labels, points, and S_i behind them."""

    laws: list[LabelledGaussian]
    z: Array
    y: Array
    covariances: Array


def gaussian_bounds(
    config: Mapping[str, Any], data: Points | None, generators: Generators, progress: Progress
) -> Rows:
    """Add up (16) for raw and per-unit features and (18) for whitened ones; compare with J_u(f).

    κ is the spread, at 1 all clients are equal. Under the shift "rotation" S_i has eigenvalues
    log-uniform in [1/κ, κ] in a random basis. Under "scale" clients differ in the scales of their
    units alone, VS_iVᵀ = D_iCD_i with one correlation matrix C, which is what per-unit BN undoes.
    n points come from the seen clients in equal parts, f is fitted to them by logistic regression.
    d_HΔH, ε and J_u are closed forms, so that only Ĵ_s is estimated.

    Args:
        config: `teacher`, `clients`, `dimension`, `samples` n, `spreads`, `draws`, `delta`, `seed`;
            `directions`, "gaussian" when left out: V as Eq. (8) starts it, or "orthogonal";
            `shift`, "rotation" when left out, or "scale".
        data: nothing.
        generators: gives a generator for (seed, purpose...).
        progress: told the fraction done.

    Raises:
        ValueError: another teacher or shift, or other directions.
    """
    del data
    choices = {"teacher": TEACHERS, "directions": DIRECTIONS, "shift": SHIFTS}
    for name, known in choices.items():
        if config.get(name, known[0]) not in known:
            raise ValueError(f"{name} must be one of {known}, not {config.get(name)!r}.")
    done, total = 0, config["draws"] * len(config["spreads"])
    for draw in range(config["draws"]):
        drawn = _drawn(generators(config["seed"], "gaussian_bounds", draw), config)
        for spread in config["spreads"]:
            for variant in FEATURES:
                at = {"variant": variant, "parameter": float(spread), "draw": draw}
                clients = _clients(drawn, spread, variant, config["teacher"])
                yield from _rows(clients, drawn, variant, config, at)
            done += 1
            progress(done / total)


def _drawn(generator: np.random.Generator, config: Mapping[str, Any]) -> _Draw:
    clients, d, n = config["clients"], config["dimension"], config["samples"]
    bases = np.array(
        [np.linalg.qr(generator.standard_normal((d, d)))[0] for _ in range(clients + 1)]
    )
    exponents = generator.uniform(-1.0, 1.0, (clients + 1, d))
    directions = generator.standard_normal((d, d))
    while np.linalg.cond(directions) > _CONDITION:
        directions = generator.standard_normal((d, d))
    if config.get("directions", "gaussian") == "orthogonal":
        directions = np.linalg.qr(directions)[0]
    left, right = bases, np.eye(d)
    if config.get("shift") == "scale":
        left = np.broadcast_to(np.linalg.inv(directions), bases.shape)
        # The basis of no client, so that draws of both shifts share all else.
        right = np.linalg.cholesky(_correlations(bases[-1] * np.exp(exponents[-1]) @ bases[-1].T))
    return _Draw(
        left,
        right,
        exponents,
        directions,
        generator.standard_normal(d),
        generator.integers(clients, size=n),
        generator.standard_normal((n, d)),
    )


def _clients(drawn: _Draw, spread: float, variant: str, teacher: str) -> _Clients:
    roots, covariances, maps, rules = [], [], [], []
    v = drawn.directions
    for left, exponents in zip(drawn.left, drawn.exponents, strict=True):
        roots.append(left * np.sqrt(spread**exponents) @ drawn.right)
        covariance = roots[-1] @ roots[-1].T
        covariances.append((covariance + covariance.T) / 2)
        maps.append(_feature_map(v, covariances[-1], variant))
        whitening = _feature_map(v, covariances[-1], "whitened")
        rules.append(drawn.rule if teacher == "input" else whitening.T @ drawn.rule)
    laws = []
    for covariance, to, rule in zip(covariances, maps, rules, strict=True):
        law = to @ covariance @ to.T
        # Whitened features have the law N(0, I), which rounding hides.
        law = np.eye(len(law)) if variant == "whitened" else (law + law.T) / 2
        laws.append(LabelledGaussian(law, np.linalg.solve(to.T, rule)))
    z, y = np.empty_like(drawn.noise), np.empty(len(drawn.noise), dtype=bool)
    for i in range(len(drawn.left) - 1):
        mine = drawn.client == i
        x = drawn.noise[mine] @ roots[i].T
        z[mine], y[mine] = x @ maps[i].T, x @ rules[i] > 0
    return _Clients(laws, z, y, np.array(covariances))


def _correlations(covariance: Array) -> Float[Array, "d d"]:
    scale = np.sqrt(covariance.diagonal())
    return covariance / scale[:, None] / scale


def _feature_map(v: Array, covariance: Array, variant: str) -> Float[Array, "d d"]:
    """A of z = Ax."""
    if variant == "raw":
        return np.eye(len(v))
    sigma = v @ covariance @ v.T
    if variant == "per_unit":
        return v / np.sqrt(sigma.diagonal())[:, None]
    values, vectors = np.linalg.eigh((sigma + sigma.T) / 2)
    return (vectors / np.sqrt(values)) @ vectors.T @ v


def _rows(
    clients: _Clients, drawn: _Draw, variant: str, config: Mapping[str, Any], at: dict[str, Any]
) -> Rows:
    a = _fitted(clients.z, clients.y)
    wrong = (clients.z @ a > 0) != clients.y
    measured = empirical_risk(wrong.astype(np.float64)).empirical
    add_up = _without_divergence if variant == "whitened" else _with_divergence
    bound, divergence = add_up(clients, measured, drawn.directions, config)
    external = half_space_risk(a, clients.laws[-1]).widened(_ROUNDING)
    yield from _bound_rows(bound, external, at)
    yield enclosed("pair_divergence", divergence, **at)
    size = half_space_vc_dimension(config["dimension"], homogeneous=True)
    spare = divergence_capacity(size, config["samples"], config["delta"] / 2)
    yield enclosed("spare_capacity", _ends(spare), note=spare.origin, **at)


def _with_divergence(
    clients: _Clients, measured: Term, directions: Array, config: Mapping[str, Any]
) -> tuple[Bound, Enclosure]:
    """Eq. (16) with the exact d_HΔH: nothing is estimated of it, and all of δ goes to the risk."""
    del directions
    *seen, unseen = clients.laws
    weights = np.full(len(seen), 1 / len(seen))
    each = [homogeneous_pair_divergence(law.covariance, unseen.covariance) for law in seen]
    divergence = mixture_divergence(weights, [e.widened(_ROUNDING) for e in each]).term
    ideal = ideal_half_space_error(weights, seen, unseen).widened(_ROUNDING)
    size = half_space_vc_dimension(config["dimension"], homogeneous=True)
    n, delta = config["samples"], config["delta"]
    bound = corollary_iii8(measured, divergence, ideal, vc_dimension=size, n=n, delta=delta)
    none = Term(
        "capacity of the divergence", 0.0, 0.0, "the divergence is exact, none is estimated"
    )
    terms = (*bound.terms[:3], none, risk_capacity(size, n, delta))
    return replace(bound, terms=terms), _ends(divergence)


def _without_divergence(
    clients: _Clients, measured: Term, directions: Array, config: Mapping[str, Any]
) -> tuple[Bound, Enclosure]:
    """Eq. (18): one law of all features, under which f^o = sign(t_u·z) is ideal for every pair."""
    *seen, unseen = clients.laws
    weights = np.full(len(seen), 1 / len(seen))
    evidence = feature_laws(directions, clients.covariances, "whitened")
    parts = [ideal_half_space_error([1.0], [law], unseen).widened(_ROUNDING) for law in seen]
    ideal = mixture_ideal_error(weights, parts, common_hypothesis=True)
    bound = corollary_iii9(
        measured,
        ideal,
        vc_dimension=half_space_vc_dimension(config["dimension"], homogeneous=True),
        n=config["samples"],
        delta=config["delta"],
        common_law=evidence,
    )
    return bound, Enclosure(0.0, 0.0 if evidence.common else 2.0, evidence.reason)


def _bound_rows(bound: Bound, external: Enclosure, at: dict[str, Any]) -> Rows:
    for term in bound.terms:
        yield _term_row(term, term.origin, at)
    yield _term_row(bound.total, bound.title, at)
    yield enclosed("external_risk", external, **at)
    yield verdict_row("holds", _inequality(external, bound), **at)
    terms = tuple(term for term in bound.terms if term.name != "ideal joint error")
    without = _inequality(external, replace(bound, terms=terms))
    yield verdict_row("holds_without_ideal_error", without, **at)


def _term_row(term: Term, note: str, at: dict[str, Any]) -> dict[str, Any]:
    value = term.lower if term.upper is None else (term.lower + term.upper) / 2
    ends = {"lower": term.lower, "upper": term.upper}
    return row("term", value, split=term.name, note=note, **ends, **at)


def _inequality(external: Enclosure, bound: Bound) -> Inequality:
    return Inequality("J_u(f) ≤ the bound", bound.source, external, _ends(bound.total))


def _ends(term: Term) -> Enclosure:
    if term.upper is None:
        raise ValueError(
            f"{term.name} has no upper end: the covariances are too badly conditioned."
        )
    return Enclosure(term.lower, term.upper, term.origin)


def _fitted(z: Array, y: Array) -> Float[Array, " d"]:
    """Logistic regression through the origin."""
    from sklearn.linear_model import LogisticRegression  # slow to import

    model = LogisticRegression(fit_intercept=False, solver="newton-cholesky", max_iter=50)
    return np.asarray(model.fit(z, y).coef_[0], dtype=np.float64)
