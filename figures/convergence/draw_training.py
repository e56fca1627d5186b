"""Figure of the CNN federation: loss and accuracy per round, their difference, and the clients."""

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from figures.convergence.training_tables import POLICIES
from figures.selection import of
from figures.style import INK, MUTED, legend_below, letter, look, looks, panels, whole_numbers


def training(curves: pl.DataFrame, clients: pl.DataFrame, paired: pl.DataFrame) -> Figure:
    """Draw the training loss, the test accuracy, the paired difference of the loss, the clients."""
    figure, axes = panels(2, 2, width="double", ratio=0.66)
    loss, accuracy, gap, final = axes
    for ax, split, metric, words in (
        (loss, "train", "loss", "training loss"),
        (accuracy, "test", "accuracy", "test accuracy"),
    ):
        for policy in POLICIES:
            style = look(policy)
            rows = of(curves, bn_policy=policy, split=split, metric=metric).sort("round")
            ax.plot(rows["round"], rows["mean"], **style.line(markers=False))
            ax.fill_between(rows["round"], *_bounds(rows, "mean"), **style.band())
        ax.set(xlabel="communication round")
        ax.set_title(f"{words}, mean over the clients")
        whole_numbers(ax)
    loss.set(yscale="log")
    loss.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    loss.yaxis.set_major_formatter(ScalarFormatter())
    loss.yaxis.set_minor_formatter(NullFormatter())
    accuracy.set_ylim(0, 1)
    _gap(gap, paired)
    _clients(final, clients)
    legend_below(figure, [loss])
    letter(axes)
    return figure


def _bounds(rows: pl.DataFrame, middle: str) -> tuple[pl.Series, pl.Series]:
    return rows["lower"].fill_null(rows[middle]), rows["upper"].fill_null(rows[middle])


def _gap(ax: Axes, paired: pl.DataFrame) -> None:
    rows = of(paired, split="train", metric="loss").sort("round")
    ax.fill_between(rows["round"], *_bounds(rows, "mean"), color=INK, alpha=0.15, linewidth=0)
    ax.plot(rows["round"], rows["mean"], color=INK)
    ax.axhline(0.0, color=INK, linewidth=0.8, linestyle=":")
    ax.set(xlabel="communication round")
    ax.set_title("training loss: client-specific minus aggregated")
    ax.annotate(
        "below zero: client-specific BN is ahead",
        (0.98, 0.95),
        xycoords="axes fraction",
        ha="right",
        va="top",
        fontsize=8,
        color=MUTED,
    )
    # Room above the curve for the words.
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + 0.2 * (high - low))
    whole_numbers(ax)


def _clients(ax: Axes, clients: pl.DataFrame) -> None:
    names = [n for n in clients["client"].unique(maintain_order=True) if n != "server"]
    for offset, policy in zip((-0.14, 0.14), POLICIES, strict=True):
        rows = of(clients, bn_policy=policy, client=names)
        place = [names.index(name) + offset for name in rows["client"]]
        low, high = _bounds(rows, "mean")
        error = [(rows["mean"] - low).to_list(), (high - rows["mean"]).to_list()]
        ax.errorbar(rows["mean"], place, xerr=error, **look(policy).points(label=False))
    labels = looks(names)
    ax.set_yticks(range(len(names)), [labels[name].label for name in names])
    ax.invert_yaxis()
    ax.grid(axis="x")
    ax.grid(visible=False, axis="y")
    ax.set_xlim(right=1.0)
    ax.set_title("test accuracy after the last round, by client")
