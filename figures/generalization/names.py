"""What features, statements, terms and layers are called, and in which order they come."""

import re
from collections.abc import Iterable

from figures.experiments.measures import POLICIES
from figures.tables import number

INPUT = "input"
MIXTURE = "mixture"
"""The seen clients pooled, where records name a client."""

WAYS = {
    POLICIES[0]: ("aggregated",),
    POLICIES[1]: ("client_specific", "per_unit", "whitened", "affine"),
}
"""BN policy of a training -> the features of its layers whose divergence is measured."""
FEATURES = ("raw", *WAYS[POLICIES[0]], *WAYS[POLICIES[1]][:3])
"""Those that figures and tables show; the CSV also has those after γ and β."""
FEATURE_NAMES = {
    "raw": "raw inputs",
    "aggregated": "aggregated",
    "client_specific": "client-specific",
    "per_unit": "per-unit BN",
    "whitened": "whitened",
    "affine": "with its γ, β",
}
"""Features as a cell of a table."""

STATEMENTS = {
    (POLICIES[0], "16"): "(16), aggregated BN",
    (POLICIES[1], "16"): "(16), client-specific BN",
    (POLICIES[1], "16 per unit"): "(16), per-unit BN",
    (POLICIES[1], "16 whitened"): "(16), whitened",
    (POLICIES[1], "18"): "(18), as printed",
}
"""BN policy of the training and statement -> what a row of the bound's figure is called."""
SERVED = {POLICIES[0]: "server", POLICIES[1]: "adapted"}
"""How the two policies serve a client from outside."""

AVERAGED = "averaged"
"""How records call the risk of the seen clients' averaged predictions, J_u(f_u)."""
READINGS = {"features": "mixture_risk", "inputs": "mixture_risk_on_inputs"}
"""What local models are functions of -> the metric of both sides of Eq. (15)."""

IDEAL = "ideal joint error"
RISKS = ("empirical risk", "half the divergence", IDEAL)
CAPACITIES = ("capacity of the divergence", "capacity of the risk")
TOTAL = "total"
TERMS = (*RISKS, *CAPACITIES, TOTAL)
SPREAD_OF = ("raw", "per_unit", "whitened")
"""What is done to Gaussian clients whose spread κ varies."""
SETTINGS = {
    "rotation, gaussian": "random axes, Gaussian V",
    "rotation, orthogonal": "random axes, orthogonal V",
    "scale, gaussian": "units' scales alone",
}
"""How Gaussian clients' covariances differ, and what the directions V of the units are.

The first is that of records which say nothing else."""
TEACHERS = {"whitened": "labels by whitened features", "input": "labels by inputs"}


def between(ends: tuple[float, float]) -> str:
    """A range in words, once where both ends read the same."""
    low, high = map(number, ends)
    return low if low == high else f"{low} to {high}"


def layer_order(splits: Iterable[str]) -> list[str]:
    """The input first, then the batch-norm layers by their number, then others as they come."""
    there = list(dict.fromkeys(splits))

    def place(name: str) -> tuple[int, int]:
        found = re.fullmatch(r"layer (\d+)", name)
        return (0, 0) if name == INPUT else (1, int(found[1])) if found else (2, there.index(name))

    return sorted(there, key=place)


def layer_tick(layer: str) -> str:
    """A layer below an axis that is called by layers."""
    return layer.removeprefix("layer ")


def title(kinds: Iterable[float | None]) -> str:
    """What sums are, by their records of the metric "kind"."""
    there = {kind for kind in kinds if kind is not None}
    if there == {1.0}:
        return "bound"
    return "some bounds, some diagnostics" if 1.0 in there else "diagnostic, not a bound"
