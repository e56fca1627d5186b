"""Tables of what follows: both sides of Eq. (15), and whether accuracy follows divergence."""

from dataclasses import replace
from typing import Any

import polars as pl

from figures.experiments.cells import NONE, Cell
from figures.experiments.names import BN, client_titles
from figures.experiments.product import Table
from figures.experiments.wide import WIDEST
from figures.generalization.points import REDUCTIONS
from figures.generalization.summary import Summary
from figures.statistics import RankCorrelation
from figures.tables import Layout

SIDES = ("measured", "printed", "convex")
TAKEN = {"client_specific": "client-specific, as deployed", "per_unit": "per-unit BN"}
"""Features -> what takes the divergence."""


def outcome_tables(summary: Summary) -> list[Table]:
    """Rank correlations and Eq. (15)."""
    return [_ranks(summary), _mixtures(summary)]


def cell_text(cell: Cell | None, seeds: int) -> str:
    """A mean with its interval; what diverged is told elsewhere."""
    return NONE if cell is None else replace(cell, diverged={}).text(1.0, of=seeds)


def _ranks(summary: Summary) -> Table:
    rows, shown = [], []
    for name, found in summary.ranks.items():
        row: dict[str, Any] = {"features": name, "column": REDUCTIONS[name]}
        row |= {"rank": found.of_clients.value, "points": found.of_clients.n}
        row |= {"clients": found.of_clients.groups}
        texts = {"features": TAKEN[name], "rank": _value(found.of_clients)}
        for kind, one in (("clients", found.of_clients), ("points", found.of_points)):
            row |= {f"lower_by_{kind}": one.lower, f"upper_by_{kind}": one.upper}
            texts[f"by_{kind}"] = _interval(one)
        rows.append(row)
        shown.append(texts | {"points": row["points"], "clients": row["clients"]})
    caption = (
        f"Spearman's ρ of what is taken from d(h) of {summary.last} (aggregated BN less these "
        "features) and of the accuracy gained outside, over held-out clients and seeds, with 95 % "
        "intervals of Bonett and Wright: with clients as the independent ones, and with all "
        "points, which they are not."
    )
    columns = {"features": "divergence of", "rank": "ρ", "by_clients": "by clients"}
    columns |= {"by_points": "by points", "points": "points", "clients": "clients"}
    layout = Layout(caption, "tab:ranks", columns)
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return Table("ranks", "Divergence taken and accuracy gained", frame, layout,
                 pl.DataFrame(shown))  # fmt: skip


def _value(found: RankCorrelation) -> str:
    return NONE if found.value is None else f"{found.value:.2f}".replace("-", "−")


def _interval(found: RankCorrelation) -> str:
    if found.lower is None or found.upper is None:
        return NONE
    return f"{found.lower:.2f} to {found.upper:.2f}".replace("-", "−")


def _mixtures(summary: Summary) -> Table:
    names = client_titles(summary.clients[:WIDEST])
    shown = []
    by = ["held_out", "bn_policy", "reading"]
    for key, part in summary.mixtures.group_by(by, maintain_order=True):
        client, policy, reading = map(str, key)
        if client in names:
            row = {"client": names[client], "bn": BN.get(policy, policy), "reading": reading}
            for side in SIDES:
                values = dict(part.drop_nulls(side).select("seed", side).iter_rows())
                row[side] = cell_text(Cell(values), summary.seeds)
            shown.append(row)
    caption = (
        "Eq. (15) for the average f_u of the seen clients' predictions, the Gibbs risk 1 − p_y on "
        "the seen clients' training images: left side Ĵ_s(f_u); right side as printed, "
        "Σ ω_i Ĵ_i(f_i), each model on its own client; by convexity Σ_iΣ_j ω_iω_j Ĵ_i(f_j), each "
        "model on every client, equal to the left side for this risk. Models are functions of "
        "features, which each client normalises by its own statistics, or of inputs, with the "
        "statistics of the client that they come from. Mean over seeds with its interval, a row "
        "for each client held out."
    )
    columns = {"client": "held out", "bn": "BN", "reading": "functions of"}
    columns |= {"measured": "left side", "printed": "right side, printed", "convex": "by convexity"}
    layout = Layout(caption, "tab:mixtures", columns)
    return Table("mixtures", "Eq. (15): both right sides", summary.mixtures, layout,
                 pl.DataFrame(shown))  # fmt: skip
