"""Risks of a trained federation's models, and every term of (16), (18) with the way it was got."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from theory.bounds import Bound, Term
from theory.estimated_bound import generalization_bound
from theory.estimated_terms import cross_losses_risk, oracle_ideal_error
from theory.estimates import Estimate, clopper_pearson
from theory.hoeffding import empirical_risk
from theory.mixtures import MixtureRisk
from theory.proxy import proxy_a_distance
from theory.studies.rows import row
from theory.vc import vc_dimension

Rows = Iterator[dict[str, Any]]
Array = np.ndarray

_STRENGTH = 0.1  # C of the oracle's logistic regression, on the scale of one point

READINGS = {"probabilities": "", "on_inputs": "_on_inputs"}
"""Local models as functions of features and of images: the data's name, and what metrics add."""

STATEMENTS = {"whitened": "16 whitened", "per_unit": "16 per unit"}
"""What (16) is called with these features; "16" with those of the deployed net."""

DEPLOYED = "of the deployed net, which was not trained with the features of this statement"
GIBBS = "Gibbs risk 1 − p_y of predictions averaged over the local models"
ORACLE = (
    "oracle: uses labels of the unseen client; any hypothesis bounds the minimum from above; "
    "logistic regression on the last layer, one for all clients, fitted on half of the test images"
)
DIMENSION = (
    "d ≤ {:,} of the 0-1 losses of one network of this architecture; that of the thresholded "
    "risks is not known"
)


@dataclass(frozen=True)
class Layer:
    """The last layer's features: client -> (n, d), and d_HΔH of each seen client if searched."""

    variant: str
    clients: Mapping[str, Float[Array, "n d"]]
    pairs: list[Estimate] | None
    seed: int


def share(config: Mapping[str, Any], data: Mapping[str, Any]) -> float:
    """The δ of one client's divergence: divergences, capacities and ideal error have a third."""
    return config["delta"] / 3 / len(data["seen"])


def risk_rows(data: Mapping[str, Any], delta: float) -> Rows:
    """Every local model on every seen client, both right sides of (15), and the external risks."""
    for reading, suffix in READINGS.items():
        yield from _cross_rows(data, reading, suffix)
        found, measured = mixture(data, reading)
        sides = {"measured": measured, "printed": found.printed, "convex": found.convex}
        for variant, term in sides.items():
            assert term is not None  # of risks of all models on all clients
            yield _term_row(f"mixture_risk{suffix}", term, variant=variant)
    yield from _external_rows(data, delta)


def _cross_rows(data: Mapping[str, Any], reading: str, suffix: str) -> Rows:
    for i in data["seen"]:
        labels = data["train_labels"][i]
        for j, given in zip(data["seen"], data[reading][i], strict=True):
            where = {"client": i, "split": "train", "variant": j, "samples": len(labels)}
            yield row(f"cross_risk{suffix}", _gibbs(given, labels).mean(), **where)
            yield row(f"cross_error{suffix}", _wrong(given, labels).mean(), **where)


def _external_rows(data: Mapping[str, Any], delta: float) -> Rows:
    """J_u(f_u), that the bounds speak of, and the error of what serves the unseen client."""
    labels = data["test_labels"][data["unseen"]]
    averaged = np.tensordot(np.asarray(data["weights"]), data["external"], 1)
    term = empirical_risk(_gibbs(averaged, labels), delta=delta).population
    where = {"client": data["unseen"], "split": "test", "variant": "averaged"}
    about: dict[str, Any] = {"samples": len(labels), "note": f"{GIBBS}; {term.origin}"}
    value = _gibbs(averaged, labels).mean()
    yield row("external_risk", value, lower=term.lower, upper=term.upper, **about, **where)
    for variant, given in data["served"].items():
        wrong = int(_wrong(given, labels).sum())
        low, high = clopper_pearson(wrong, len(labels), delta)
        where = {"client": data["unseen"], "split": "test", "variant": variant}
        ends = {"lower": low, "upper": high, "samples": len(labels)}
        yield row("external_error", wrong / len(labels), **ends, **where)


def mixture(data: Mapping[str, Any], reading: str = "probabilities") -> tuple[MixtureRisk, Term]:
    """Both right sides of (15) for the averaged predictions of all local models, and the left."""
    seen = data["seen"]
    losses = [
        np.stack([_gibbs(p, data["train_labels"][i]) for p in data[reading][i]]) for i in seen
    ]
    omega = np.asarray(data["weights"], dtype=np.float64)
    found = cross_losses_risk(losses, weights=omega, convex_loss=True)
    averaged = [np.tensordot(omega, data[reading][i], 1) for i in seen]
    each = [_gibbs(p, data["train_labels"][i]) for i, p in zip(seen, averaged, strict=True)]
    value = float(omega @ [losses.mean() for losses in each])
    slack = 1e-12  # for some thousand roundings of numbers below 1
    measured = Term("Ĵ_s(f_u)", max(value - slack, 0.0), value + slack, f"measured: {GIBBS}")
    return found, measured


def bound_rows(config: Mapping[str, Any], data: Mapping[str, Any], layer: Layer) -> Rows:
    """The terms of (16) with one variant's features, and with whitened ones those of (18) too."""
    delta, omega = config["delta"] / 3, np.asarray(data["weights"], dtype=np.float64)
    risk, _ = mixture(data)
    ideal = _ideal(data, layer, delta)
    seen = [_counted(data, layer, client) for client in data["seen"]]
    vc = vc_dimension(data["architecture"])
    common: dict[str, Any] = {"weights": omega, "ideal_error": ideal}
    common |= {"vc_dimension": vc, "delta": delta}
    divergences = [found.term() for found in layer.pairs or _proxies(config, data, layer)]
    assert risk.convex is not None  # of risks of all models on all clients
    bound = generalization_bound(
        risk.convex, seen, layer.clients[data["unseen"]], divergences=divergences, **common
    )
    yield from _bound(bound, STATEMENTS.get(layer.variant, "16"), data["unseen"], vc)
    if layer.variant == "whitened":
        bound = generalization_bound(risk, seen, statement="18", **common)
        yield from _bound(bound, "18", data["unseen"], vc)


def _counted(data: Mapping[str, Any], layer: Layer, client: str) -> Float[Array, "n d"]:
    """Features of which the bound counts the rows: risk and divergence have other images.

    The risk is that of the training images, the divergence that of the test images; the smaller
    number holds for both.
    """
    return layer.clients[client][: len(data["train_labels"][client])]


def _proxies(config: Mapping[str, Any], data: Mapping[str, Any], layer: Layer) -> list[Estimate]:
    """Lower bounds of d_H, which d_HΔH is not below."""
    chosen: dict[str, Any] = {"capacity": config["capacity"], "seed": layer.seed}
    chosen["delta"] = share(config, data)
    unseen = layer.clients[data["unseen"]]
    return [proxy_a_distance(layer.clients[i], unseen, **chosen) for i in data["seen"]]


def _ideal(data: Mapping[str, Any], layer: Layer, delta: float) -> Term:
    """ε from above: one classifier for all clients, fitted on half of their labelled images.

    It is linear in the features, as the network behind them is where β keeps ReLU from cutting.
    """
    from sklearn.linear_model import LogisticRegression

    seen, unseen = data["seen"], data["unseen"]
    rng = np.random.default_rng(layer.seed)
    halves = {}
    for client in (*seen, unseen):
        order = rng.permutation(len(layer.clients[client]))
        halves[client] = order[: len(order) // 2], order[len(order) // 2 :]
    x = np.concatenate([layer.clients[c][halves[c][0]] for c in halves])
    y = np.concatenate([data["test_labels"][c][halves[c][0]] for c in halves])
    # Half of the weight is the unseen client's, as in J_s + J_u.
    shares = dict(zip(seen, np.asarray(data["weights"]), strict=True)) | {unseen: 1.0}
    weight = np.concatenate([np.full(len(h), shares[c] / len(h)) for c, (h, _) in halves.items()])
    mean, scale = x.mean(0), x.std(0)
    scale[scale == 0] = 1.0
    model = LogisticRegression(C=_STRENGTH, max_iter=500)
    model.fit((x - mean) / scale, y, sample_weight=weight * len(x) / 2)
    wrong = {}
    for client, (_, rows) in halves.items():
        said = model.predict((layer.clients[client][rows] - mean) / scale)
        wrong[client] = (said != data["test_labels"][client][rows]).astype(np.float64)
    losses = [wrong[client] for client in seen]
    return oracle_ideal_error(losses, wrong[unseen], weights=data["weights"], delta=delta)


def _bound(bound: Bound, statement: str, client: str, vc: int) -> Rows:
    notes = {
        "empirical risk": GIBBS if statement == "16" else f"{GIBBS}, {DEPLOYED}",
        "ideal joint error": ORACLE,
        "capacity of the divergence": DIMENSION.format(vc),
        "capacity of the risk": DIMENSION.format(vc),
    }
    where = {"client": client, "variant": statement}
    for term in (*bound.terms, bound.total):
        name = "half the divergence" if term.name.startswith("half the") else term.name
        yield _term_row("term", term, notes.get(name), split=name, **where)
    kind = 1.0 if bound.kind == "bound" else 0.0
    yield row("kind", kind, note=bound.title, **where)


def _term_row(metric: str, term: Term, more: str | None = None, **where: Any) -> dict[str, Any]:
    value = term.lower if term.upper is None else 0.5 * (term.lower + term.upper)
    notes = [text for text in (term.origin, term.caveat, more) if text]
    ends = {"lower": term.lower, "upper": term.upper}
    return row(metric, value, note="; ".join(notes), **ends, **where)


def _gibbs(probabilities: Array, labels: Array) -> Float[Array, " n"]:
    """1 − p_y, rounding that leaves [0, 1] cut off."""
    return np.clip(1 - probabilities[np.arange(len(labels)), labels], 0.0, 1.0)


def _wrong(probabilities: Array, labels: Array) -> Float[Array, " n"]:
    return (probabilities.argmax(1) != labels).astype(np.float64)
