"""Figure of what the divergence loses against what the accuracy gains, by client and seed."""

from collections.abc import Mapping

import polars as pl
from matplotlib.figure import Figure

from figures.convergence.judgement import span
from figures.statistics import RankCorrelation, mean_interval
from figures.style import GRID, INK, Look, legend_below, panels


def scatter(points: pl.DataFrame, rank: RankCorrelation, series: Mapping[str, Look]) -> Figure:
    """Draw a mark for each held-out client and seed; lines join a client's to their mean."""
    figure, (ax,) = panels(ratio=0.86)
    gain = points.with_columns(pl.col("gain") * 100)
    for client, style in series.items():
        part = gain.filter(held_out=client)
        if part.is_empty():
            continue
        middle = [mean_interval(part[name].to_list()).mean for name in ("reduction", "gain")]
        for x, y in part.select("reduction", "gain").iter_rows():
            ax.plot([middle[0], x], [middle[1], y], color=style.colour, linewidth=0.6, alpha=0.6)
        ax.plot(part["reduction"], part["gain"], **style.points())
    for draw, name in ((ax.axhline, "gain"), (ax.axvline, "reduction")):
        # Far from zero a line there would press the marks together.
        low, high = span(points[name])
        if low <= 0.0 <= high:
            draw(0.0, color=INK, linewidth=0.7, linestyle=":")
    ax.margins(0.12)
    ax.grid(visible=True, axis="both", color=GRID)
    ax.set_xlabel("divergence: aggregated − client-specific")
    ax.set_ylabel("accuracy gained (points)")
    ax.set_title(rank_words(rank))
    legend_below(figure, [ax], columns=2)
    return figure


def rank_words(rank: RankCorrelation) -> str:
    """The rank correlation with its interval."""
    if rank.value is None:
        return "no rank correlation"
    text = f"Spearman's $\\rho$ = {rank.value:.2f}"
    if rank.lower is None or rank.upper is None:
        return text.replace("-", "−")
    return f"{text}, 95 % [{rank.lower:.2f}, {rank.upper:.2f}]".replace("-", "−")
