"""Tables of Corollary III.6 with the exact kernel of BN, over dimension and ridge."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from figures.claims import Claim
from figures.convergence.judgement import overall, span
from figures.convergence.sources import data_name, plain
from figures.selection import of
from figures.tables import Layout

FIGURE = "figures/exact.pdf"
_ENDS = ("value", "lower", "upper")
_KEYS = ["data", "setting", "round", "parameter"]


@dataclass(frozen=True)
class Exact:
    """Empty where the study was not run.

    Attributes:
        table: per data, k and ρ: both λ_min and λ_max with their enclosures, ratio, error, verdict,
            the largest condition number of the S_i; null where there is no kernel.
    """

    table: pl.DataFrame


def summarise_exact(frame: pl.DataFrame) -> Exact:
    """One row per data, k and ρ."""
    rows = of(frame, study="exact")
    table = of(rows, metric="exact_condition").select(*_KEYS, pl.col("value").alias("condition"))
    parts = {
        "low": of(rows, metric="exact_smallest", variant="G"),
        "low_star": of(rows, metric="exact_smallest", variant="G*"),
        "top": of(rows, metric="exact_largest", variant="G"),
        "top_star": of(rows, metric="exact_largest", variant="G*"),
    }
    for name, part in parts.items():
        ends = (pl.col(end).alias(f"{name}_{end}") for end in _ENDS)
        table = _with(table, part.select(*_KEYS, *ends))
    error = of(rows, metric="exact_error").select(*_KEYS, pl.col("value").alias("error"))
    verdict = of(rows, metric="exact").select(*_KEYS, pl.col("note").alias("verdict"))
    table = _with(_with(table, error), verdict)
    ratio = pl.when(pl.col("low_lower") > 0)
    return Exact(
        table.with_columns(
            ratio=ratio.then(pl.col("low_star_value") / pl.col("low_value")),
            ratio_lower=ratio.then(pl.col("low_star_lower") / pl.col("low_upper")),
            ratio_upper=ratio.then(pl.col("low_star_upper") / pl.col("low_lower")),
        )
    )


def _with(table: pl.DataFrame, part: pl.DataFrame) -> pl.DataFrame:
    return table.join(part, on=_KEYS, how="left", nulls_equal=True, maintain_order="left")


def exact_claims(found: Exact) -> Iterator[Claim]:
    """Corollary III.6 with the kernel that the networks have, wherever that exists."""
    for (data,), part in found.table.drop_nulls("verdict").group_by("data", maintain_order=True):
        known = part.drop_nulls("ratio")
        certified = int((part["verdict"] == "certified").sum())
        yield Claim(
            f"corollary-iii.6.exact.{data}",
            f"λ_min(G*∞) ≥ λ_min(G∞) with the exact kernel of BN on {plain(str(data))}, for every "
            "dimension kept and ridge",
            "UniFed, Corollary III.6",
            f"{certified} of {part.height} certified",
            span(known["ratio_lower"], known["ratio_upper"]) if known.height else None,
            overall(part["verdict"]),
            FIGURE,
        )


def exact_sheets(found: Exact) -> Iterator[tuple[str, str, pl.DataFrame, Layout]]:
    """Yield file name, title, table and layout."""
    if not found.table.height:
        return
    frame = found.table.with_columns(
        points=pl.col("data").map_elements(data_name, return_dtype=pl.String),
        outcome=pl.col("verdict").fill_null("no kernel: S_i singular"),
    )
    columns = {
        "points": "points",
        "round": "k",
        "parameter": "ρ",
        "condition": "condition of S_i",
        "low_value": "λ_min(G∞)",
        "low_star_value": "λ_min(G*∞)",
        "ratio": "ratio",
        "top_value": "λ_max(G∞)",
        "top_star_value": "λ_max(G*∞)",
        "error": "error of G∞",
        "outcome": "λ_min(G∞) ≤ λ_min(G*∞)",
    }
    caption = (
        "Corollary III.6 with the exact kernel of BN: S_i the clients' covariances in the k "
        "leading directions, with a ridge ρ (tr S_i/k) I. The enclosures hold the error of G∞, of "
        "quadrature and rounding together."
    )
    yield "exact", "The exact kernel of BN", frame, Layout(caption, "tab:exact", columns)
