"""What the section compares: the planned claims as one family, and the tables of differences."""

from typing import Any

from figures.experiments.cells import Cell
from figures.experiments.measures import POLICIES
from figures.experiments.wide import MEAN

Cells = dict[tuple[Any, ...], Cell]
Sides = tuple[Cell | None, Cell | None]
Pairs = dict[str, Sides]

SHOWN = {
    "client-specific": POLICIES,
    "fresh": (POLICIES[0], "per_unit"),
    "stale": (POLICIES[1], "per_unit"),
    "whitened": ("per_unit", "whitened"),
}
"""What is compared -> the features whose divergence is larger, then those with the smaller."""
FLOORS = ("whitened", "per_unit")
"""Features by known statistics, of which estimation alone leaves a floor."""
RISING = ("stale", "gap", *(f"{name} {of}" for name in FLOORS for of in ("floor", "pair floor")))
"""Of what is claimed, that of which the first side is to be the larger."""


def sides(found: Cells, name: str, column: str, layer: str) -> Sides:
    """The features with the smaller divergence, and those that they are held against."""
    larger, smaller = SHOWN[name]
    return found.get((column, smaller, layer)), found.get((column, larger, layer))


def shown_pairs(found: Cells, columns: list[str], layers: list[str]) -> dict[Any, Sides]:
    """Both sides of every comparison, column and layer."""
    keys = [(name, c, layer) for name in SHOWN for c in columns for layer in layers]
    return {(name, c, layer): sides(found, name, c, layer) for name, c, layer in keys}


def of_divergence(found: Cells, pairs: Cells, last: str) -> Pairs:
    """By features at the last layer: of half-spaces, full against diagonal also of pairs."""
    both = {name: sides(found, name, MEAN, last) for name in ("client-specific", "fresh")}
    return {
        **both,
        "whitened pairs": sides(pairs, "whitened", MEAN, last),
        "whitened": sides(found, "whitened", MEAN, last),
    }


def of_floors(found: Cells, floor: Cells, name: str, last: str) -> Pairs:
    """Features by known statistics against what estimating these leaves."""
    return {
        f"{variant} {name}": (found.get((MEAN, variant, last)), floor.get((MEAN, variant, last)))
        for variant in FLOORS
    }


def of_batches(after: Cells) -> Pairs:
    """What more test batches do, and what the seen clients' running statistics do.

    Both sides of "stale" have the very features of the client held out: those after the most
    batches. The seen clients' differ in their statistics alone.
    """
    numbers = sorted({t for *_, t in after})
    if not numbers:
        return {}
    first, last = numbers[0], numbers[-1]
    deployed, fresh = (after.get((MEAN, name, last)) for name in SHOWN["stale"])
    earlier = after.get((MEAN, "per_unit", first)) if first < last else None
    return {"stale": (deployed, fresh), "batches": (fresh, earlier)}


def of_terms(sums: Cells, risks: Cells, home: Cells) -> Pairs:
    """What client-specific BN does to the sum of the terms, and what (18) leaves out.

    The latter is the Gibbs risk of averaged predictions outside, against the mean Gibbs risk of
    each model at home: that risk is linear, so that averaging changes nothing.
    """
    first, second = (sums.get((policy, MEAN, "16")) for policy in POLICIES)
    outside, inside = risks.get((POLICIES[1], MEAN)), home.get((POLICIES[1], MEAN))
    return {"terms": (second, first), "gap": (outside, inside)}
