"""The table of Gaussian clients: exact terms, exact risk, exact divergence."""

from typing import Any

import polars as pl

from figures.experiments.product import Table
from figures.generalization.gaussian import Gaussian
from figures.generalization.names import FEATURE_NAMES, SPREAD_OF, TERMS
from figures.tables import Layout, number

LABELS = {"whitened": "whitened features", "input": "inputs"}
HEADINGS = {
    "empirical risk": "risk",
    "half the divergence": "½ divergence",
    "ideal joint error": "ideal error",
    "capacity of the risk": "capacity (J)",
    "total": "bound",
    "external_risk": "J_u(f)",
    "spare": "spare capacity",
}


def gaussian_tables(found: Gaussian) -> list[Table]:
    """The means over draws, a row for teacher, features and κ."""
    at = ["teacher", "variant", "parameter"]
    if found.terms.is_empty():
        return []
    frame = found.terms.select(*at, "draws").unique(at, maintain_order=True)
    for name in TERMS:
        part = found.terms.filter(split=name).select(*at, pl.col("end").alias(name))
        frame = frame.join(part, on=at, how="left", maintain_order="left")
    for name, table in (("external_risk", found.risks), ("spare", found.spare)):
        part = table.select(*at, pl.col("value").alias(name))
        frame = frame.join(part, on=at, how="left", maintain_order="left")
    place = {name: k for k, name in enumerate(SPREAD_OF)}
    frame = frame.with_columns(
        pl.col("teacher")
        .replace_strict({name: k for k, name in enumerate(found.teachers)}, default=0)
        .alias("of_teacher"),
        pl.col("variant").replace_strict(place, default=len(place)).alias("of_features"),
    )
    frame = frame.sort("of_teacher", "of_features", "parameter", maintain_order=True)
    frame = frame.drop("of_teacher", "of_features")
    shown = pl.DataFrame([_shown(row) for row in frame.iter_rows(named=True)])
    there = {n: h for n, h in HEADINGS.items() if frame[n].count()}
    columns = {"teacher": "labels by", "variant": "features", "parameter": "κ", **there}
    facts = found.facts
    caption = (
        f"Gaussian clients, mean over draws: {facts['clients']} seen, d = {facts['dimension']}, "
        f"n = {facts['samples']:,} points, δ = {facts['delta']}. "
        if all(facts[name] is not None for name in ("clients", "dimension", "samples", "delta"))
        else "Gaussian clients, mean over draws. "
    )
    caption += (
        "Upper ends of the terms of (16), whitened of (18). The divergence is exact, so that its "
        "capacity is not needed; estimating it from the points would add the spare capacity. "
        "Below 10⁻⁶, what rounding may leave: 0."
    )
    layout = Layout(caption, "tab:gaussian", columns, compact=True)
    return [Table("gaussian", "Gaussian clients, exact terms", frame, layout, shown)]


def _shown(row: dict[str, Any]) -> dict[str, str]:
    """A row for people: what only rounding parts from 0 is 0."""
    texts = {name: _small(row[name]) for name in HEADINGS}
    teacher, variant = str(row["teacher"]), str(row["variant"])
    texts |= {"teacher": LABELS.get(teacher, teacher), "parameter": f"{row['parameter']:g}"}
    return texts | {"variant": FEATURE_NAMES.get(variant, variant)}


def _small(value: float | None) -> str:
    return "0" if value is not None and 0 < value < 1e-6 else number(value)
