"""Which steps hold in which graph: a row for each statement, a column for each graph."""

import re
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures._shorten import shortened
from figures.causal.draw_graphs import OPEN
from figures.causal.graphs import Graphs, rule_of, title
from figures.selection import of
from figures.style import DOUBLE, GRID, MUTED, panels

HOLDS = "#009e73"
MARKS = {
    True: {"marker": "o", "color": HOLDS, "markersize": 6},
    False: {"marker": "X", "color": OPEN, "markersize": 6.5},
}
HEADS = {
    "test": "testing",
    "train aggregated": "training,\nD → F",
    "train client_specific": "training,\nno D → F",
    "test, population statistics": "population\nstatistics,\nD → S",
    "test, rest of the batch": "rest of\nthe batch,\nD → B → S",
    "test, aggregated BN": "D → F\nkept",
    "test, aggregated BN, rest of the batch": "D → F,\nD → B → S",
    "test, label shift": "label shift,\nD → Y",
    "test, content causes the label": "content,\nC → X, Y",
}
LONGEST = 60  # letters of a statement


def columns(graphs: Graphs) -> list[str]:
    """Graphs with more than one step, as the others show what is in the first; training last."""
    several = [name for name in graphs.checked if of(graphs.steps, graph=name).height > 1]
    return sorted(several or graphs.checked, key=lambda name: name.startswith("train"))


def step_grid(graphs: Graphs) -> Figure:
    """Draw a dot where a step holds, a cross where an open path breaks it."""
    names = columns(graphs)
    rows = of(graphs.ordered, graph=names).unique("step", keep="first", maintain_order=True)
    steps, heads = rows["step"].to_list(), [HEADS.get(n, fill(title(n), 12)) for n in names]
    lines = max(head.count("\n") + 1 for head in heads)
    height = 0.2 * len(steps) + 0.17 * lines + 0.4
    figure, (ax,) = panels(width="double", ratio=max(0.1, min(height / DOUBLE, 3.0)))
    for x, name in enumerate(names):
        for step, holds in of(graphs.steps, graph=name).select("step", "holds").iter_rows():
            ax.plot(x, steps.index(step), linestyle="none", markeredgecolor="white", **MARKS[holds])
    _frame(ax, [formula(text) for text in rows["statement"]], heads)
    for y, step in enumerate(steps):
        place = {"va": "center", "fontsize": 8, "color": MUTED}
        ax.text(len(heads) - 0.4, y, rule_of(step).removesuffix(" criterion"), **place)
    labels = {True: "holds", False: "an open path breaks it"}
    handles = [Line2D([], [], linestyle="none", **MARKS[k], label=labels[k]) for k in labels]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


def formula(statement: str) -> str:
    """A statement as mathtext; what has other signs than probabilities do stays plain text."""
    if not re.fullmatch(r"[A-Za-z0-9()|=,⊥Σ_′ ]+", statement) or len(statement) > LONGEST:
        return shortened(statement, LONGEST).replace("$", r"\$")
    text = re.sub(r"Σ_([a-z])(′?)", r"\\Sigma_{\1\2}\\,", statement).replace("′", "'")
    text = text.replace("do(", r"\mathrm{do}(").replace("|", r"\,|\,").replace("⊥", r"\perp ")
    text = text.replace(") P", r")\,P")
    return f"${text}$"


def _frame(ax: Axes, rows: list[str], heads: list[str]) -> None:
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xticks(range(len(heads)), heads)
    ax.tick_params(length=0, labeltop=True, labelbottom=False)
    ax.set(xlim=(-0.5, len(heads) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    ax.spines[:].set_visible(False)
    ax.grid(visible=False)
    for k in range(len(rows) + 1):
        ax.axhline(k - 0.5, color=GRID, linewidth=0.5)
