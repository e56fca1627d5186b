"""What methods, policies and clients are called in tables, figures and claims."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from figures.convergence.sources import client_labels
from figures.experiments.measures import METHODS
from figures.style import Look, looks

BN = {"aggregated": "aggregated", "client_specific": "client-specific"}
"""A policy of the two as a cell of a table."""

STEP = "after its adaptation step"
"""How Per-FedAvg serves its own clients, which every table that shows it says."""


def method_order(algorithms: Iterable[str]) -> list[str]:
    """Algorithms in the order of the paper's Table I, then others as they come."""
    there = list(dict.fromkeys(algorithms))
    known = [name for name in METHODS if name in there]
    return known + [name for name in there if name not in known]


def method_labels(algorithms: Iterable[str]) -> dict[str, str]:
    """Algorithm -> its name for people, in the order of `method_order`."""
    return {name: style.label for name, style in looks(method_order(algorithms)).items()}


def paired_labels(algorithms: Iterable[str], mark: str = "") -> dict[str, str]:
    """The same for rows that hold both policies: FedAvg's client-specific side is FedBN.

    `mark` stands behind Per-FedAvg.
    """
    labels = method_labels(algorithms)
    if "fedavg" in labels:
        labels["fedavg"] = "FedAvg, FedBN"
    if "perfedavg" in labels:
        labels["perfedavg"] += mark
    return labels


def cell_label(algorithm: str, policy: str) -> str:
    """The name of one run's method: FedBN is FedAvg with client-specific BN."""
    if (algorithm, policy) == ("fedavg", "client_specific"):
        return "FedBN"
    return method_labels([algorithm])[algorithm]


def run_label(algorithm: str, policy: str) -> str:
    """The same with the BN that it was trained with."""
    return f"{cell_label(algorithm, policy)}, {BN[policy]} BN"


def client_looks(names: Iterable[str]) -> dict[str, Look]:
    """Looks of clients, whose labels a figure can draw."""
    known = looks(names)
    labels = client_labels(known, _known(known))
    return {name: replace(style, label=labels[name]) for name, style in known.items()}


def client_titles(names: Iterable[str]) -> dict[str, str]:
    """Client -> its name for people, of any number of clients."""
    there = list(dict.fromkeys(names))
    known: dict[str, str] = {}
    for name in there:
        known |= _known(looks([name]))
    return client_labels(there, known)


def _known(given: Mapping[str, Look]) -> dict[str, str]:
    """Labels of those that the style knows: others are called by their own names."""
    return {name: style.label for name, style in given.items() if style.label != name}


def slugs(names: Iterable[str]) -> dict[str, str]:
    """Name -> lower-case words for a claim's id, each its own."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(names):
        plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "client"
        slug, k = plain, 1
        while slug in found.values():
            k += 1
            slug = f"{plain}-{k}"
        found[name] = slug
    return found
