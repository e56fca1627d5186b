"""Figure of the CNN federation: loss and accuracy per round, and each client's accuracy."""

import polars as pl
from matplotlib.figure import Figure

from figures.convergence.frame import of
from figures.convergence.training_tables import POLICIES
from figures.style import INK, letter, look, looks, panels


def training(curves: pl.DataFrame, clients: pl.DataFrame, paired: pl.DataFrame) -> Figure:
    """Draw the training loss, the test accuracy, their paired difference and the clients."""
    figure, axes = panels(1, 3, width="double", ratio=0.36)
    loss, accuracy, final = axes
    for ax, split, metric, words in (
        (loss, "train", "loss", "training loss"),
        (accuracy, "test", "accuracy", "test accuracy"),
    ):
        for policy in POLICIES:
            style = look(policy)
            rows = of(curves, bn_policy=policy, split=split, metric=metric).sort("round")
            ax.plot(rows["round"], rows["mean"], **style.line(markers=False))
            if rows["lower"].null_count() == 0:
                ax.fill_between(rows["round"], rows["lower"], rows["upper"], **style.band())
        ax.set(xlabel="communication round", ylabel=words)
        ax.set_title(f"{words}, mean over clients")
    loss.set(yscale="log")
    loss.legend(loc="best")
    _clients(final, clients)
    letter(axes)
    del paired
    return figure


def _clients(ax: object, clients: pl.DataFrame) -> None:
    names = [n for n in clients["client"].unique(maintain_order=True) if n != "server"]
    for offset, policy in zip((-0.14, 0.14), POLICIES, strict=True):
        rows = of(clients, bn_policy=policy)
        for k, name in enumerate(names):
            row = of(rows, client=name).row(0, named=True)
            spread = None
            if row["lower"] is not None:
                spread = [[row["mean"] - row["lower"]], [row["upper"] - row["mean"]]]
            points = look(policy).points(label=False)
            ax.errorbar([row["mean"]], [k + offset], xerr=spread, **points)  # type: ignore[attr-defined]
    ax.set_yticks(range(len(names)), [looks(names)[n].label for n in names])  # type: ignore[attr-defined]
    ax.invert_yaxis()  # type: ignore[attr-defined]
    ax.grid(axis="x")  # type: ignore[attr-defined]
    ax.set(xlabel="test accuracy", title="last round, by client")  # type: ignore[attr-defined]
    ax.tick_params(colors=INK)  # type: ignore[attr-defined]
