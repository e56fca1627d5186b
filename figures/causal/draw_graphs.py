"""The paper's Fig. 2 from the records: training and testing graphs, also under interventions."""

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch

from figures.causal.graphs import DASHED, INTERVENED, LATENT, REMOVED, SOLID, Graphs, title
from figures.selection import of
from figures.style import DOUBLE, INK, letter, panels

PLACES = {"X": (0.0, 0.0), "R": (1.0, 0.0), "F": (2.0, 0.0), "Y": (3.0, 0.0)}
PLACES |= {"D": (0.5, 0.95), "S": (1.5, -0.95), "C": (2.5, 0.95)}
SPARE = ((0.0, -0.95), (3.0, -0.95), (1.5, 1.5))
RADIUS, RING = 0.25, 0.32
OPEN = "#cc3311"  # no method has this colour
FILL, FAINT = "#c9c9c9", "#b5b5b5"
EDGES: dict[str, dict[str, Any]] = {
    SOLID: {"color": INK, "linewidth": 1.1, "linestyle": "-"},
    DASHED: {"color": INK, "linewidth": 1.1, "linestyle": (0, (3.2, 2.2))},
    REMOVED: {"color": FAINT, "linewidth": 0.9, "linestyle": (0, (1, 1.6))},
}
Place = tuple[float, float]


def causal_graphs(graphs: Graphs) -> Figure:
    """Draw every graph in a panel: training above, testing below, the legend in a free place."""
    names = graphs.names
    training = [name for name in names if name.startswith("train")]
    rows = [row for row in (training, [n for n in names if n not in training]) if row]
    rows = [row[k : k + 3] for row in rows for k in range(0, len(row), 3)]
    across = max(len(row) for row in rows)
    where = places(graphs.nodes["node"].unique(maintain_order=True))
    boxes = [_box(graphs, row, where) for row in rows]
    heights = [box[3] - box[2] for box in boxes]
    scale = DOUBLE / across / (boxes[0][1] - boxes[0][0])
    free = any(len(row) < across for row in rows)
    height = sum(heights) * scale + 0.28 * len(rows) + 0.5 * (not free)
    layout = {"width": "double", "ratio": min(height / DOUBLE, 3.0), "height_ratios": heights}
    figure, axes = panels(len(rows), across, **layout)
    shown, corner = [], None
    for k, ax in enumerate(axes):
        ax.set_axis_off()
        row, column = divmod(k, across)
        if column < len(rows[row]):
            _graph(ax, graphs, rows[row][column], where, boxes[row])
            shown.append(ax)
        elif corner is None:
            corner = ax
    letter(shown)
    _legend(figure, corner, graphs)
    return figure


def places(names: Iterable[str]) -> dict[str, Place]:
    """Where nodes are drawn: those of the paper at their own places, others where there is room."""
    others = [name for name in names if name not in PLACES]
    rest = [(float(k % 4), -1.9 - 0.95 * (k // 4)) for k in range(len(others))]
    return {n: PLACES[n] for n in names if n in PLACES} | dict(
        zip(others, (*SPARE, *rest), strict=False)
    )


def bend(source: Place, target: Place, others: Iterable[Place]) -> float:
    """How far an arrow must bend (`arc3`'s rad) to keep clear of the other nodes.

    The least of some curvatures; straight where none does.
    """
    obstacles = np.array(list(others), dtype=float).reshape(-1, 2)
    for rad in (0.0, 0.2, -0.2, 0.4, -0.4, 0.6, -0.6, 0.8, -0.8):
        line = curve(source, target, rad)
        gaps = np.linalg.norm(line[:, None] - obstacles[None], axis=-1)
        if not obstacles.size or gaps.min() > RING + 0.06:
            return rad
    return 0.0


def curve(source: Place, target: Place, rad: float, points: int = 41) -> Float[np.ndarray, "n 2"]:
    """The quadratic Bézier curve that matplotlib's `arc3` draws."""
    a, b = np.array(source), np.array(target)
    step = b - a
    control = (a + b) / 2 + rad * np.array([step[1], -step[0]])
    t = np.linspace(0, 1, points)[:, None]
    return (1 - t) ** 2 * a + 2 * t * (1 - t) * control + t**2 * b


def node_label(name: str, graph: str) -> str:
    """A node's name as it is printed: D is that of the seen or of the unseen clients."""
    if name == "D":
        return r"$\mathcal{D}^{\,s}$" if graph.startswith("train") else r"$\mathcal{D}^{\,u}$"
    return f"${name}$" if len(name) == 1 and name.isalpha() else name.replace("$", r"\$")


def _graph(
    ax: Axes, graphs: Graphs, graph: str, where: Mapping[str, Place], box: tuple[float, ...]
) -> None:
    nodes = {}
    for name, kind in of(graphs.nodes, graph=graph).select("node", "kind").iter_rows():
        nodes[name] = _node(ax, where[name], kind)
        ax.text(*where[name], node_label(name, graph), ha="center", va="center", zorder=4)
    path = graphs.broken(graph)
    steps = {frozenset(pair) for pair in pairwise(path)}
    for source, target, kind in (
        of(graphs.edges, graph=graph).select("source", "target", "kind").iter_rows()
    ):
        if source not in nodes or target not in nodes:
            continue
        style = EDGES.get(kind, EDGES[SOLID])
        if kind != REMOVED and frozenset((source, target)) in steps:
            style = style | {"color": OPEN, "linewidth": 1.7}
        others = [where[name] for name in nodes if name not in (source, target)]
        rad = bend(where[source], where[target], others)
        _arrow(ax, (nodes[source], nodes[target]), rad, style)
        if kind == REMOVED:
            line = curve(where[source], where[target], rad)
            seen = np.linalg.norm(line - where[source], axis=1) > nodes[source].radius
            seen &= np.linalg.norm(line - where[target], axis=1) > nodes[target].radius + 0.15
            middle = line[seen][seen.sum() // 2] if seen.any() else line[20]
            ax.plot(*middle, marker="x", color=FAINT, markersize=4.5, markeredgewidth=1.0)
    ax.set(xlim=box[:2], ylim=box[2:], aspect="equal")
    ax.set_title(re.sub(r"do\((\w)\)", r"do($\1$)", title(graph)))


def _arrow(ax: Axes, ends: tuple[Circle, Circle], rad: float, style: Mapping[str, Any]) -> None:
    """Draw a line and its head apart: a dashed line would dash the head, too."""
    whole = {"posA": ends[0].center, "posB": ends[1].center, "patchA": ends[0], "patchB": ends[1]}
    whole |= {"connectionstyle": f"arc3,rad={rad}", "shrinkA": 0.5}
    line = {"arrowstyle": "-", "shrinkB": 4.0, "capstyle": "butt", **style}
    ax.add_patch(FancyArrowPatch(**whole, **line))
    head = {"arrowstyle": "-|>,head_length=5,head_width=2.4", "shrinkB": 1.0, "linewidth": 0}
    ax.add_patch(FancyArrowPatch(**whole, **head, color=style["color"]))


def _node(ax: Axes, at: Place, kind: str) -> Circle:
    """Draw a node; what is given back is its outermost ring, at which arrows end."""
    fill = "white" if kind == LATENT else FILL
    circle = Circle(at, RADIUS, facecolor=fill, edgecolor=INK, linewidth=0.9, zorder=3)
    ax.add_patch(circle)
    if kind != INTERVENED:
        return circle
    ring = Circle(at, RING, facecolor="white", edgecolor=INK, linewidth=0.9, zorder=2.9)
    ax.add_patch(ring)
    return ring


def _box(
    graphs: Graphs, row: Iterable[str], where: Mapping[str, Place]
) -> tuple[float, float, float, float]:
    """Left, right, bottom, top of a row of graphs; all rows are equally wide."""
    x = [at[0] for at in where.values()]
    y = [where[node][1] for node in of(graphs.nodes, graph=list(row))["node"]]
    return min(x) - 0.4, max(x) + 0.4, min(y) - 0.4, max(y) + 0.4


def _legend(figure: Figure, corner: Axes | None, graphs: Graphs) -> None:
    """Explain what is there: kinds of nodes and of arrows, and the path that breaks a rule."""
    dot: dict[str, Any] = {
        "linestyle": "none",
        "marker": "o",
        "markersize": 9,
        "markeredgewidth": 0.9,
    }
    dot |= {"markeredgecolor": INK}
    kinds, edges = set(graphs.nodes["kind"]), set(graphs.edges["kind"])
    handles: dict[str, Any] = {"observed": Line2D([], [], **dot, markerfacecolor=FILL)}
    if LATENT in kinds:
        handles["latent"] = Line2D([], [], **dot, markerfacecolor="white")
    if INTERVENED in kinds:
        wide: dict[str, Any] = dot | {"markersize": 12}
        ring = Line2D([], [], **wide, markerfacecolor="white")
        handles["set by an intervention"] = (ring, Line2D([], [], **dot, markerfacecolor=FILL))
    handles["cause → effect"] = Line2D([], [], **EDGES[SOLID])
    if DASHED in edges:
        handles["BN's statistics do not fit"] = Line2D([], [], **EDGES[DASHED])
    if REMOVED in edges:
        handles["removed"] = Line2D([], [], **EDGES[REMOVED], marker="x", markersize=4.5)
    if any(graphs.broken(name) for name in graphs.names):
        line = EDGES[SOLID] | {"color": OPEN, "linewidth": 1.7}
        handles["open path that breaks a step"] = Line2D([], [], **line)
    how: dict[str, Any] = {"handler_map": {tuple: HandlerTuple(ndivide=1)}, "handlelength": 2.2}
    what = (list(handles.values()), list(handles))
    if corner is None:
        figure.legend(*what, loc="outside lower center", ncols=4, **how)
    else:
        corner.legend(*what, loc="center", **how).set_in_layout(False)
