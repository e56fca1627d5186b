"""Figures of f and f*: the decay against its bound, the regimes of α, the effect of the width."""

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures.convergence.draw_eigenvalues import data_name
from figures.convergence.frame import of
from figures.style import INK, MUTED, Look, letter, look, panels, ramp

NETS = {"f": "aggregated", "f*": "client_specific"}
CHOICES = {"common": "one common step size", "own": "each at its own largest step size"}
FLOOR = 1e-16


def decay(curves: pl.DataFrame, source: str) -> Figure:
    """Draw the squared residual of f and f*, its linearised prediction and its bound, over α."""
    rows = of(curves, data=source, width=curves["width"].max(), draw=0)
    alphas = sorted(rows["alpha"].unique().to_list())
    figure, axes = panels(
        len(CHOICES), len(alphas), width="double", ratio=0.52, sharex=True, sharey=True
    )
    for i, (choice, words) in enumerate(CHOICES.items()):
        for j, alpha in enumerate(alphas):
            ax = axes[i * len(alphas) + j]
            for net, policy in NETS.items():
                _curve(ax, of(rows, alpha=alpha, variant=f"{net}|{choice}"), look(policy))
            ax.set(yscale="log", ylim=(FLOOR, 4))
            ax.set_title(f"$\\alpha = {alpha:g}$" if i == 0 else "")
            if j == 0:
                ax.set_ylabel(f"{words.replace(' step', chr(10) + 'step')}\n" + r"$\|f-y\|^2$, relative")
            if i == len(CHOICES) - 1:
                ax.set_xlabel("step $t$")
    handles = [Line2D([], [], color=look(p).colour, label=look(p).label) for p in NETS.values()]
    handles += [
        Line2D([], [], color=MUTED, linestyle=dash, linewidth=width, label=label)
        for dash, width, label in (
            ("-", 1.3, "measured"),
            ((0, (1, 1.4)), 2.2, "linearised at $t=0$"),
            ((0, (6, 2)), 0.9, "bound of the theorem"),
        )
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5)
    return figure


def _curve(ax: Axes, rows: pl.DataFrame, style: Look) -> None:
    for metric, dash, width in (
        ("linearised", (0, (1, 1.4)), 2.2),
        ("bound", (0, (6, 2)), 0.9),
        ("squared_residual", "-", 1.3),
    ):
        part = of(rows, metric=metric).sort("round")
        values = part["relative"].clip(lower_bound=FLOOR / 100)
        ax.plot(part["round"], values, color=style.colour, linestyle=dash, linewidth=width)


def regimes(table: pl.DataFrame, thresholds: pl.DataFrame, descents: pl.DataFrame) -> Figure:
    """Draw what drives the rate as α grows: V∞/α², G∞, Λ∞, and e₀/2 by either formula."""
    sources = table["data"].unique(maintain_order=True).to_list()
    figure, axes = panels(1, len(sources), width="double", ratio=0.46, sharey=True)
    for ax, source in zip(axes, sources, strict=True):
        rows = of(table, data=source)
        for variant, name, label in (
            ("V", "predicted", r"$\lambda_{\min}(V^\infty)/\alpha^2$"),
            ("Lambda", "measured", r"$\lambda_{\min}(\Lambda^\infty)$"),
        ):
            part = of(rows, variant=variant).sort("alpha")
            style = look(name)
            ax.plot(part["alpha"], part["value"], **style.line(label=False, markers=False), label=label)
            ax.fill_between(part["alpha"], part["low"], part["high"], **style.band())
        magnitude = of(rows, variant="G")
        style, ends = look("true_kernel"), [rows["alpha"].min(), rows["alpha"].max()]
        half = [float(magnitude["value"][0]) / 2] * 2
        ax.plot(ends, half, **style.line(label=False, markers=False), label=r"$e_0/2$, the network's kernel")
        printed = of(rows, variant="printed").sort("alpha")
        style = look("printed_kernel")
        ax.plot(
            printed["alpha"],
            printed["value"] / 2,
            **style.line(label=False, markers=False),
            label=r"$e_0/2$, Eq. (10) as printed",
        )
        found = of(descents, data=source, net="f", choice="common", width=descents["width"].max())
        ax.plot(
            found["alpha"],
            found["lambda_min"],
            linestyle="none",
            marker="o",
            color=INK,
            label=rf"$\lambda_{{\min}}(\Lambda(0))$, $m = {descents['width'].max():,}$",
        )
        own = of(thresholds, data=source)["alpha"]
        ax.axvspan(own.min(), own.max(), color=MUTED, alpha=0.15, linewidth=0)
        ax.annotate(
            "$G$ dominates\nfrom here",
            (own.max(), 0.02),
            xycoords=("data", "axes fraction"),
            xytext=(3, 2),
            textcoords="offset points",
            fontsize=8,
            color=MUTED,
        )
        ax.set(xscale="log", yscale="log", xlabel=r"scale of the initialisation $\alpha$")
        ax.set_title(data_name(source))
    axes[0].set_ylabel("smallest eigenvalue")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    letter(axes)
    return figure


def widths(descents: pl.DataFrame, curves: pl.DataFrame) -> Figure:
    """Draw over m how far training is from its linearisation, and λ_min(Λ(t)) from e₀/2."""
    figure, axes = panels(1, 2, width="double", ratio=0.4)
    rows = curves.filter(pl.col("metric").is_in(["squared_residual", "linearised"]))
    wide = rows.pivot(
        on="metric", index=["data", "alpha", "width", "draw", "variant", "round"], values="relative"
    ).filter((pl.col("squared_residual") > 1e-20) & (pl.col("linearised") > 1e-20))
    gap = (pl.col("squared_residual") / pl.col("linearised")).log10().abs()
    distance = wide.group_by("data", "alpha", "width").agg(gap.max().alias("value"))
    slack = descents.group_by("data", "alpha", "width").agg(
        pl.col("eigenvalue_over_half_e0").min().alias("value")
    )
    alphas = sorted(descents["alpha"].unique().to_list())
    for ax, table, words in (
        (axes[0], distance, "largest distance from the\nlinearisation, decades"),
        (axes[1], slack, r"smallest $\lambda_{\min}(\Lambda(t))\,/\,(e_0/2)$"),
    ):
        for alpha, colour in zip(alphas, ramp(len(alphas)), strict=True):
            for source, dash in zip(table["data"].unique().sort(), ("-", (0, (4, 2))), strict=False):
                part = of(table, data=source, alpha=alpha).sort("width")
                ax.plot(part["width"], part["value"], color=colour, linestyle=dash, marker="o")
        ax.set(xscale="log", yscale="log", xlabel="width $m$", ylabel=words)
    axes[1].axhline(1.0, color=INK, linewidth=0.8, linestyle=":")
    axes[1].annotate("needed by the theorem", (0.02, 1.0), xycoords=("axes fraction", "data"),
                     xytext=(0, 3), textcoords="offset points", fontsize=8, color=MUTED)
    handles = [
        Line2D([], [], color=c, marker="o", label=f"$\\alpha = {a:g}$")
        for a, c in zip(alphas, ramp(len(alphas)), strict=True)
    ]
    for source, dash in zip(descents["data"].unique().sort(), ("-", (0, (4, 2))), strict=False):
        handles.append(Line2D([], [], color=MUTED, linestyle=dash, label=data_name(source)))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    letter(axes)
    return figure
