"""Claims about the kernels' drift and about the width at which Theorem III.4's decay is seen."""

from collections.abc import Iterator

import polars as pl

from figures.claims import Claim
from figures.convergence.drift_tables import DriftSummary
from figures.convergence.judgement import RUN, overall, span
from figures.convergence.sources import plain
from figures.selection import of
from figures.tables import number

MARGIN = 0.1
"""How far a slope may lie from −1/2 to count as −1/2."""

FAR = 10
"""A width this many times below the one asked for is far below it."""


def drift(summary: DriftSummary) -> Iterator[Claim]:
    """‖G(0) − G∞‖ falls as m^(−1/2), and training moves Λ the less the wider the network."""
    for source in summary.slopes["data"].unique(maintain_order=True):
        rows = of(summary.slopes, data=source)
        start = of(rows, quantity="start", part="G", net="f").sort("alpha")  # G(0) is free of α
        for row in start.head(1).iter_rows(named=True):
            yield Claim(
                f"drift.start.{source}",
                f"‖G(0) − G∞‖ of f falls as m^(−1/2): its slope is −1/2 to within {MARGIN:g} "
                f"({plain(source)})",
                "derived here (independent neurons); UniFed, Theorem III.4",
                f"slope {number(row['mean'])} over {row['widths']} widths, mean of "
                f"{row['draws']} draws",
                _interval(row["lower"], row["upper"]),
                near_half(row["lower"], row["upper"]),
                f"figures/drift_{source}.pdf",
            )
        movement = of(rows, quantity="movement", part="Lambda")
        if movement.height:
            known = not movement["lower"].has_nulls()
            ends = span(movement["lower"], movement["upper"]) if known else None
            least, most = span(movement["mean"])
            yield Claim(
                f"drift.movement.{source}",
                "Training moves Λ the less the wider the network: max over t of ‖Λ(t) − Λ(0)‖ "
                f"falls with m for f and f* at every α ({plain(source)})",
                "measured here; UniFed, Theorem III.4",
                f"slopes from {number(least)} to {number(most)} over {movement.height} pairs of "
                f"net and α, each the mean of {movement['draws'].min()} or more draws",
                ends,
                falls(movement),
                f"figures/drift_{source}.pdf",
            )


def _interval(lower: float | None, upper: float | None) -> tuple[float, float] | None:
    return None if lower is None or upper is None else (lower, upper)


def near_half(lower: float | None, upper: float | None) -> str:
    """Supported where the interval lies within the margin of −1/2, contradicted if all outside."""
    if lower is None or upper is None:
        return "inconclusive"
    low, high = -0.5 - MARGIN, -0.5 + MARGIN
    if low <= lower and upper <= high:
        return "supported"
    return "contradicted" if upper < low or lower > high else "inconclusive"


def falls(slopes: pl.DataFrame) -> str:
    """Supported where every interval lies below 0, contradicted where one lies above."""
    if slopes["lower"].has_nulls():
        return "inconclusive"
    if (slopes["lower"] > 0).any():
        return "contradicted"
    return "supported" if (slopes["upper"] < 0).all() else "inconclusive"


def far_below(descents: pl.DataFrame) -> Iterator[Claim]:
    """The decay that Theorem III.4 promises holds at widths far below the one that it asks for.

    A finding of this project and no claim of the paper: the theorem is sufficient, not necessary.
    The verdict is that of the certified decay, over runs in which G dominates.
    """
    rows = descents.filter(pl.col("g_dominated") & pl.col("required_width").is_not_null())
    rows = rows.filter(FAR * pl.col("width") <= pl.col("required_width"))
    rows = rows.unique(subset=RUN, keep="first", maintain_order=True)
    if rows.is_empty():
        return
    times = span(rows["required_width"] / rows["width"])
    lost = rows["diverged_at"].is_not_null()
    verdicts = rows["bound_slack_decades_verdict"].to_list()
    verdicts = ["violated" if gone else v for v, gone in zip(verdicts, lost, strict=True)]
    yield Claim(
        "theorem-iii.4.width",
        f"The decay of Theorem III.4 holds at widths far below the one that it asks for ({FAR} "
        "times or more, its constant taken as 1), in every run in which G dominates",
        "measured here; UniFed, Theorem III.4",
        f"m from {rows['width'].min()} to {rows['width'].max()}, {number(times[0], 2)} to "
        f"{number(times[1], 2)} times below the width asked for, over {rows.height} runs",
        None,
        overall(pl.Series(verdicts, dtype=pl.String)),
        "figures/asked.pdf",
    )
