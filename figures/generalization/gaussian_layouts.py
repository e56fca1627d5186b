"""The table of Gaussian clients: exact terms, exact risk, exact divergence."""

import polars as pl

from figures.experiments.product import Table
from figures.generalization.gaussian import Gaussian
from figures.generalization.names import FEATURE_NAMES, TERMS
from figures.tables import Layout

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
    frame = frame.sort("teacher", "variant", "parameter", maintain_order=True)
    shown = frame.with_columns(pl.col("variant").replace(FEATURE_NAMES))
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
        "capacity is not needed; estimating it from the points would add the spare capacity."
    )
    layout = Layout(caption, "tab:gaussian", columns, compact=True)
    return [Table("gaussian", "Gaussian clients, exact terms", frame, layout, shown)]
