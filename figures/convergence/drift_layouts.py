"""Tables of the drift, the width asked for and local steps, as people see them."""

from collections.abc import Iterator

import polars as pl

from figures.convergence.drift_tables import DriftSummary
from figures.convergence.sources import data_name
from figures.selection import of
from figures.tables import Layout, number

Sheet = tuple[str, str, pl.DataFrame, Layout]
CELL = {"points": "points", "scale": "α", "net": "net"}
WHAT = {
    ("start", "V"): "‖V(0) − V∞‖",
    ("start", "G"): "‖G(0) − G∞‖",
    ("start", "Lambda"): "‖Λ(0) − Λ∞‖",
    ("movement", "V"): "max ‖V(t) − V(0)‖",
    ("movement", "G"): "max ‖G(t) − G(0)‖",
    ("movement", "Lambda"): "max ‖Λ(t) − Λ(0)‖",
}


def drift_tables(summary: DriftSummary) -> Iterator[Sheet]:
    """Yield file name, title, table and layout."""
    yield _slopes(summary)
    yield _holds(summary)
    yield _asked(summary)
    yield _rates(summary)


def drift_words(summary: DriftSummary) -> dict[str, str]:
    """Fill the blanks of the captions from what was run."""
    starts, moved = (of(summary.spread, quantity=name) for name in ("start", "movement"))
    client = of(summary.federated, choice="client")
    return {
        "starts": number(starts["draws"].max()),
        "drift_draws": number(summary.along["draws"].max()),
        "drift_steps": number(summary.along["round"].max()),
        "slope_alpha": f"{moved['alpha'].max() or 0:g}",
        "memory": ", ".join(summary.asked["memory"].unique().drop_nulls()),
        "local_draws": number(client["draw"].n_unique()),
        "rounds": number(client["round"].max()),
    }


def _named(frame: pl.DataFrame) -> pl.DataFrame:
    scale = pl.col("alpha").map_elements(lambda alpha: f"{alpha:g}", return_dtype=pl.String)
    points = pl.col("data").map_elements(data_name, return_dtype=pl.String)
    return frame.with_columns(points=points, scale=scale)


def _slopes(summary: DriftSummary) -> Sheet:
    frame = summary.slopes
    pairs = zip(frame["quantity"], frame["part"], strict=True)
    frame = _named(frame).with_columns(pl.Series("what", [WHAT[p] for p in pairs], dtype=pl.String))
    columns = {"what": "norm", **CELL, "mean": "slope", "widths": "widths", "draws": "draws"}
    caption = (
        "Slopes of spectral norms over the width m, in logarithms: least squares for each draw of "
        "points and networks, then mean over draws with the 95 % interval. Independent neurons "
        "give −1/2 at t = 0; max is over the recorded steps."
    )
    layout = Layout(caption, "tab:drift", columns, {"mean": ("lower", "upper")})
    return "drift", "Drift of the kernels over the width", frame, layout


def _holds(summary: DriftSummary) -> Sheet:
    frame = _named(summary.holds)
    columns = {**CELL, "width": "m", "smallest": "least ratio", "held": "held", "draws": "draws"}
    caption = (
        "λ_min(Λ(t))/(e₀/2), as computed, the least over recorded steps and draws; “held” counts "
        "draws in which it is at least 1, as Theorem III.4 says, at every recorded step."
    )
    layout = Layout(caption, "tab:held", columns)
    return "held", "λ_min(Λ(t)) against e₀/2 by width", frame, layout


def _asked(summary: DriftSummary) -> Sheet:
    frame = _named(summary.asked).with_columns(pl.col("affordable").cast(pl.Int64))
    columns = {
        **CELL,
        "asked": "m asked for",
        "largest": "largest run",
        "affordable": "fits in memory",
        "times": "asked/fits",
        "memory": "memory",
        "draws": "draws",
    }
    caption = (
        "The width of Theorem III.4 with its unknown constant set to 1, median and range over "
        "draws, beside the largest run here and the largest that a memory holds."
    )
    layout = Layout(caption, "tab:asked", columns, {"asked": ("low", "high")})
    return "asked", "The width asked for and the width one can have", frame, layout


def _rates(summary: DriftSummary) -> Sheet:
    frame = _named(of(summary.rates, choice="client"))
    share = [f"{100 * part:g} %" if part < 1 else "everyone" for part in frame["fraction"]]
    frame = frame.with_columns(
        pl.Series("share", share, dtype=pl.String),
        ended=pl.format("{} of {}", pl.col("runs") - pl.col("diverged"), "runs"),
    )
    columns = {
        **CELL,
        "share": "clients a round",
        "steps": "E",
        "rate": "decades a round",
        "step_rate": "decades a local step",
        "promised": "promised for E = 1",
        "theorem": "scope",
        "ended": "finished",
    }
    caption = (
        "Mean decay of ‖f − y‖² in decades, mean and range over draws, with the step that every "
        "client's own loss admits. Theorem III.4 speaks of E = 1 and everyone alone: all other "
        "rows are measured and nothing is promised of them."
    )
    layout = Layout(caption, "tab:local", columns, {"rate": ("low", "high")})
    return "local_steps", "Local steps and sampled clients", frame, layout
