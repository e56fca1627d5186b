"""Tables of the counterexamples and of the readings on data, as people see them."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from figures.convergence.findings_claims import COVARIANCES
from figures.convergence.findings_tables import Findings
from figures.convergence.sources import data_name
from figures.selection import of
from figures.tables import Layout, number

Sheet = tuple[str, str, pl.DataFrame, Layout]
EXAMPLES = {
    "pooled.orthogonal": "e₁, e₂, one per client; λ = 1 and 0.1, S = 0.55 I",
    "pooled.own": "triangles of radius 4 and 1, and of 1; S_i their own covariances",
    "pooled.gaussian": "Gaussian points, d = 20; λ = 1 and 0.05, S = 0.525 I",
    "full.orthogonal": "e₁, e₂, one per client; S = I, α = 1",
    "full.obtuse": "two points 120° apart, one per client, d = 10; S = I, α = 1",
}
KERNELS = {"masked": "G∞ and its blocks", "pooled": "G∞ with S, G*∞ with S_i", "full": "Λ∞ and Λ*∞"}
QUANTITIES = {"smallest": "λ_min ≤ λ*_min", "largest": "λ*_max ≤ λ_max", "condition": "κ* ≤ κ"}


def findings_tables(found: Findings) -> Iterator[Sheet]:
    """Yield file name, title, table and layout."""
    yield _examples(found.examples)
    yield _readings(found.readings)


def findings_words(found: Findings) -> dict[str, Any]:
    """Fill the blanks of the captions from what was run."""
    kinds = found.readings["covariances"].unique().to_list()
    kind = "own" if "own" in kinds else "isotropic"
    draws = of(found.readings, covariances=kind)["draw"].n_unique()
    sizes = found.readings["setting"].drop_nulls().str.extract(r"d = (\d+)").unique().sort()
    return {
        "reading_draws": number(draws),
        "reading_dimension": " and ".join(sizes.drop_nulls()),
        "reading_kind": COVARIANCES[kind],
    }


def _examples(examples: pl.DataFrame) -> Sheet:
    frame = examples.unique(subset="split", keep="first", maintain_order=True)
    ratio = pl.col("aggregated_value") / pl.col("client_specific_value")
    name = pl.col("split").replace_strict(EXAMPLES, return_dtype=pl.String)
    fails = pl.col("verdict").replace_strict(
        {"violated": "fails, certified", "certified": "holds", "consistent": "open"},
        return_dtype=pl.String,
    )
    frame = frame.with_columns(ratio=ratio, name=name, fails=fails)
    columns = {
        "name": "points",
        "aggregated_value": "λ_min, aggregated",
        "client_specific_value": "λ_min, client-specific",
        "ratio": "ratio",
        "fails": "λ_min ≤ λ*_min",
    }
    caption = (
        "Counterexamples to Corollary III.6 outside its proof: with a pooled S in G∞ against S_i "
        "in G*∞, and for Λ. Of the Gaussian ones the first draw."
    )
    layout = Layout(caption, "tab:counterexamples", columns)
    return "counterexamples", "Where the corollary stops", frame, layout


def _readings(readings: pl.DataFrame) -> Sheet:
    verdicts = {"holds": "certified", "fails": "violated", "open": "consistent"}
    keys = ["data", "covariances", "variant", "split"]
    frame = readings.group_by(keys, maintain_order=True).agg(
        pl.len().alias("comparisons"),
        *((pl.col("verdict") == word).sum().alias(name) for name, word in verdicts.items()),
        pl.col("ratio").median(),
        pl.col("ratio").min().alias("low"),
        pl.col("ratio").max().alias("high"),
    )
    frame = frame.with_columns(
        points=pl.col("data").map_elements(data_name, return_dtype=pl.String),
        kind=pl.col("covariances").replace_strict(COVARIANCES, return_dtype=pl.String),
        kernels=pl.col("variant").replace_strict(KERNELS, return_dtype=pl.String),
        quantity=pl.col("split").replace_strict(QUANTITIES, return_dtype=pl.String),
    )
    columns = {
        "points": "points",
        "kind": "covariances",
        "kernels": "kernels",
        "quantity": "inequality",
        "comparisons": "comparisons",
        "holds": "holds",
        "fails": "fails",
        "open": "open",
        "ratio": "right by left side",
    }
    caption = (
        "Which reading of Corollary III.6 holds, over draws of clients and samples (of Λ over α "
        "too); λ_i I has the trace of client i's covariance. Certified counts, and the ratio of "
        "the right by the left side, median with its range. The first kernels are those of the "
        "proof; the others may fail."
    )
    layout = Layout(caption, "tab:readings", columns, {"ratio": ("low", "high")})
    return "readings", "Which reading of the corollary holds on data", frame, layout
