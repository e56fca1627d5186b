"""The section's tables as people see them; the CSV files keep every column and digit."""

from collections.abc import Iterator

import polars as pl

from figures.convergence.draw_eigenvalues import data_name
from figures.convergence.drift_layouts import drift_tables
from figures.convergence.exact_tables import exact_sheets
from figures.convergence.findings_layouts import findings_tables
from figures.convergence.summary import Summary
from figures.convergence.training_tables import difference_table
from figures.selection import of
from figures.style import look, looks
from figures.tables import Layout


def tables(summary: Summary) -> Iterator[tuple[str, str, pl.DataFrame, Layout]]:
    """Yield file name, title, table and layout of every table that has rows."""
    for name, title, frame, layout in (
        _corollary(summary),
        *exact_sheets(summary.exact),
        *findings_tables(summary.findings),
        _descents(summary),
        *drift_tables(summary.drift),
        *_training(summary),
    ):
        if frame.height:
            yield name, title, frame, layout


def _corollary(summary: Summary) -> tuple[str, str, pl.DataFrame, Layout]:
    frame = summary.comparison.with_columns(
        points=pl.col("data").map_elements(data_name, return_dtype=pl.String)
    )
    columns = {
        "points": "points",
        "clients": "N",
        "samples": "M",
        "draws": "draws",
        "certified": "certified",
        "min": "λ_min(G∞)",
        "min_star": "λ_min(G*∞)",
        "ratio": "ratio",
        "max": "λ_max(G∞)",
        "max_star": "λ_max(G*∞)",
        "driving_client": "client",
    }
    ranges = {name: (f"{name}_low", f"{name}_high") for name in ("ratio",)}
    caption = (
        "Corollary III.6: medians over draws of clients and samples; the ratio "
        "λ_min(G*∞)/λ_min(G∞) with its range. “certified” counts draws whose enclosures prove "
        "the inequality; “client” attains λ_min(G*∞) most often."
    )
    layout = Layout(caption, "tab:corollary", columns, ranges)
    return "corollary", "Corollary III.6 over clients and samples", frame, layout


def _descents(summary: Summary) -> tuple[str, str, pl.DataFrame, Layout]:
    frame = summary.descents.with_columns(
        points=pl.col("data").map_elements(data_name, return_dtype=pl.String)
    )
    if frame.height:
        frame = of(frame, width=frame["width"].max(), draw=0)
    whole = pl.col("steps_to_thousandth", "steps_promised").cast(pl.Int64, strict=False)
    scale = pl.col("alpha").map_elements(lambda alpha: f"{alpha:g}", return_dtype=pl.String)
    frame = frame.with_columns(whole, scale=scale)
    columns = {
        "points": "points",
        "scale": "α",
        "net": "net",
        "choice": "η",
        "step_size": "η value",
        "e0": "e₀",
        "lambda_min": "λ_min(Λ(0))",
        "g_dominated": "G dominates",
        "bound_slack_decades": "least slack",
        "final_slack_decades": "last slack",
        "steps_to_thousandth": "steps to 10⁻³",
        "steps_promised": "promised",
        "required_width": "width asked",
    }
    caption = (
        "Gradient descent on f and f* at the largest width, first draw (all runs: "
        "all_descents.csv beside this table). Slack: log₁₀ of the bound of Theorem III.4 by the "
        "measured squared residual, the smallest over the steps and that of the last step. "
        "Promised: steps to 10⁻³ by the bound. Width asked: by the theorem with its unknown "
        "constant set to 1."
    )
    return "descents", "f and f* against Theorem III.4", frame, Layout(caption, "tab:f", columns)


def _training(summary: Summary) -> Iterator[tuple[str, str, pl.DataFrame, Layout]]:
    bounds = {"mean": ("lower", "upper")}
    final = summary.training.filter(pl.col("round") == pl.col("round").max())
    final = final.with_columns(policy=_labels(final["bn_policy"]))
    columns = {"policy": "BN", "split": "split", "metric": "metric", "mean": "mean", "n": "seeds"}
    caption = "After the last round: mean over clients, then over seeds, with the 95 % interval."
    yield "training", "Loss and accuracy", final, Layout(caption, "tab:training", columns, bounds)
    clients = summary.clients.filter(pl.col("client") != "server")
    known = looks(clients["client"].unique(maintain_order=True))
    clients = clients.with_columns(
        policy=_labels(clients["bn_policy"]),
        name=pl.col("client").replace_strict(
            {name: style.label for name, style in known.items()}, return_dtype=pl.String
        ),
    )
    columns = {"name": "client", "policy": "BN", "mean": "test accuracy", "n": "seeds"}
    caption = "Test accuracy of each client after the last round, with the 95 % interval."
    yield "clients", "Accuracy by client", clients, Layout(caption, "tab:clients", columns, bounds)
    rounds = summary.rounds.with_columns(policy=_labels(summary.rounds["bn_policy"]))
    columns = {"policy": "BN", "target": "training loss", "rounds": "rounds: median (range)"}
    caption = (
        "Rounds until the mean training loss over the clients is at or below a target; a training "
        "that diverged before counts as one that never reaches it."
    )
    yield "rounds", "Rounds to a training loss", rounds, Layout(caption, "tab:rounds", columns)
    paired = difference_table(summary.differences)
    columns = {
        "quantity": "quantity",
        "difference": "client-specific − aggregated",
        "p_value": "p",
        "n": "seeds",
        "method": "interval",
    }
    caption = "Differences paired by seed with the 95 % interval; p before Holm's correction."
    layout = Layout(caption, "tab:paired", columns, {"difference": ("lower", "upper")})
    yield "paired", "Paired differences", paired, layout


def _labels(policies: pl.Series) -> pl.Series:
    return pl.Series([look(policy).label for policy in policies], dtype=pl.String)
