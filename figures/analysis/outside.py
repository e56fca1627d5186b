"""FedBN's model outside the federation over τ and n_t, and what of BN stays with the clients."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from figures.experiments import measures
from figures.experiments.cells import Cell, cells
from figures.experiments.comparisons import Compared, compare
from figures.experiments.measures import POLICIES, SAMPLES, TAU
from figures.experiments.wide import MEAN, WORST, column_of
from figures.selection import of

ORDERS = ("shuffled", "sorted", "drifting")
ALL_POLICIES = (*POLICIES, "client_statistics", "client_affine")
WAYS = ("server", "adapted", "identity")


@dataclass(frozen=True)
class Grid:
    """Accuracy over τ and n_t. Keys are (order, column, τ, n_t); column: a client's or `MEAN`.

    `momentum`: n_t -> τ = 0.9 minus τ = 0 in the mean over clients, one family. `lost`: held-out
    client -> the seeds that diverged.
    """

    clients: list[str] = field(default_factory=list)
    orders: list[str] = field(default_factory=list)
    taus: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    cells: Mapping[tuple[str, str, float, int], Cell] = field(default_factory=dict)
    momentum: Mapping[int, Compared] = field(default_factory=dict)
    seeds: int = 0
    lost: Mapping[str, Cell] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """What of BN stays with the clients. Keys of `cells`: (policy, what).

    What: `MEAN` and `WORST` inside, and each of `WAYS` outside (mean over the held-out clients).

    `inside`: policy -> all of BN client-specific minus that policy, mean over clients, one family;
    `outside`: policy -> adapted with γ, β as they are minus with γ = 1, β = 0, one family.
    """

    policies: list[str] = field(default_factory=list)
    cells: Mapping[tuple[str, str], Cell] = field(default_factory=dict)
    inside: Mapping[str, Compared] = field(default_factory=dict)
    outside: Mapping[str, Compared] = field(default_factory=dict)
    folds: int = 0
    seeds: int = 0


def grid(frame: pl.DataFrame, behind: pl.DataFrame) -> Grid:
    """FedBN's model adapted with every τ and n_t that was tried; τ = 0 is the batch alone."""
    settings = {"study": "external", "algorithm": "fedavg", "bn_policy": POLICIES[1]}
    behind = of(behind, **settings)
    values = measures.external(of(frame, **settings), tau=None, samples=None, order=None)
    values = of(values, variant=["adapted", "batch"])
    # The batch alone is τ = 0, under either name.
    key = ["seed", "held_out", "note", "parameter", "samples"]
    values = values.unique(key, keep="first", maintain_order=True)
    within = ["note", "parameter", "samples"]
    each = cells(values, behind, ["held_out"], within)
    means = cells(values, behind, ["bn_policy"], within)
    found = {(order, column_of(c), tau, n): x for (c, order, tau, n), x in each.items()}
    found |= {(order, MEAN, tau, n): x for (_, order, tau, n), x in means.items()}
    found = {at: cell for at, cell in found.items() if cell.values}
    usual = ORDERS[0]
    sizes = values["samples"].unique().sort().to_list()
    pairs = {n: tuple(found.get((usual, MEAN, tau, n)) for tau in (TAU, 0.0)) for n in sizes}
    return Grid(
        behind["held_out"].unique(maintain_order=True).to_list(),
        [order for order in ORDERS if order in values["note"]],
        values["parameter"].unique().sort().to_list(),
        sizes,
        found,
        compare({n: (one, other) for n, (one, other) in pairs.items()}),
        behind["seed"].n_unique(),
        {c: x for (c,), x in cells(values, behind, ["held_out"]).items() if x.diverged},
    )


def choice(frame: pl.DataFrame, behind: pl.DataFrame) -> Choice:
    """The four policies, inside and outside, as far as they were run; nothing below three."""
    trained, served = _policies(behind), of(behind, study="external", algorithm="fedavg")
    policies = [p for p in ALL_POLICIES if p in trained["bn_policy"]]
    if len(policies) < 3:
        return Choice()
    own = frame.filter(pl.col("run").is_in(trained["run"].to_list()))
    table: dict[tuple[str, str], Cell] = {}
    for what, values in ((MEAN, measures.internal(own)), (WORST, measures.worst(own))):
        table |= {(p, what): x for (p,), x in cells(values, trained, ["bn_policy"]).items()}
    outside = measures.external(of(frame, algorithm="fedavg"), samples=SAMPLES)
    found = cells(outside, served, ["bn_policy"], ["variant"])
    table |= {(p, v): cell for (p, v), cell in found.items() if v in WAYS and p in policies}
    whole = table.get((POLICIES[1], MEAN))
    rest = [p for p in policies if p != POLICIES[1]]
    ways = {p: (table.get((p, "adapted")), table.get((p, "identity"))) for p in policies}
    return Choice(
        policies,
        {at: cell for at, cell in table.items() if cell.values or cell.diverged},
        compare({p: (whole, table.get((p, MEAN))) for p in rest}),
        compare(ways),
        trained["held_out"].drop_nulls().n_unique(),
        trained["seed"].n_unique(),
    )


def _policies(behind: pl.DataFrame) -> pl.DataFrame:
    """Trainings of FedAvg that differ in the policy: the schedule and folds that have the most."""
    usual = pl.all_horizontal(pl.col("fraction", "per_domain", "validation").is_null())
    runs = of(behind, study="training", algorithm="fedavg").filter(usual)
    runs = runs.with_columns(whole=pl.col("held_out").is_null())
    key = ["whole", "last_round", "local_epochs"]
    most = runs.group_by(key, maintain_order=True).agg(pl.col("bn_policy").n_unique())
    most = most.sort("bn_policy", descending=True, maintain_order=True).head(1)
    return runs.join(most.select(key), on=key, how="semi")
