"""Graphs of the section `causal` as drawn: nodes, arrows, the open path; the grid of steps."""

import numpy as np
import pytest
from matplotlib.patches import Circle, FancyArrowPatch
from synthetic import Records
from synthetic_causal import GRAPHS, STEPS, everything, graphs

from figures import style
from figures.causal import draw_graphs as drawn
from figures.causal import draw_steps as steps
from figures.causal import summarise
from figures.causal.graphs import title


@pytest.fixture(autouse=True)
def styled():
    with style.context():
        yield


@pytest.fixture(scope="module")
def summary():
    return summarise(*everything().both)


def axes_of(figure):
    return {ax.get_title(loc="left")[4:]: ax for ax in figure.axes if ax.get_title(loc="left")}


def test_places_are_fixed_by_name_and_differ():
    all_of_them = drawn.places(["Y", "Z1", "X", "C", "Z2", "Z3", "Z4", "Z5", "S", "R", "D", "F"])
    for name, place in drawn.PLACES.items():
        assert all_of_them[name] == place
    assert len(set(all_of_them.values())) == len(all_of_them) == 12
    gaps = [
        np.hypot(a[0] - b[0], a[1] - b[1])
        for name, a in all_of_them.items()
        for other, b in all_of_them.items()
        if name < other
    ]
    assert min(gaps) > 2 * drawn.RING


def test_no_arrow_crosses_a_node():
    """Also of graphs with every pair of nodes joined, those of the paper and a confounder."""
    places = drawn.places(["X", "D", "R", "S", "F", "Y", "C"])
    for source, a in places.items():
        for target, b in places.items():
            if source == target:
                continue
            others = [at for name, at in places.items() if name not in (source, target)]
            line = drawn.curve(a, b, drawn.bend(a, b, others), 400)
            gap = min(np.linalg.norm(line - other, axis=1).min() for other in others)
            assert gap > drawn.RING, (source, target)


def test_an_arrow_is_straight_where_it_can_be_and_its_curve_is_matplotlibs():
    assert drawn.bend((0.0, 0.0), (1.0, 0.0), [(0.5, 1.0)]) == 0.0
    rad = drawn.bend((0.0, 0.0), (2.0, 0.0), [(1.0, 0.0)])
    assert rad != 0.0
    patch = FancyArrowPatch((0, 0), (2, 0), connectionstyle=f"arc3,rad={rad}", shrinkA=0, shrinkB=0)
    control = patch.get_connectionstyle()((0, 0), (2, 0), shrinkA=0, shrinkB=0).vertices[1]
    assert drawn.curve((0.0, 0.0), (2.0, 0.0), rad)[20] == pytest.approx(
        np.array([1, 0]) / 2 + control / 2
    )


def plain(graph):
    """A panel's title as it is drawn."""
    return title(graph).replace("(S)", "($S$)").replace("(F)", "($F$)")


def test_panels_show_nodes_rings_and_arrows(summary):
    figure = drawn.causal_graphs(summary.graphs)
    axes = axes_of(figure)
    assert list(axes) == [plain(name) for name in GRAPHS]
    for name, (nodes, solid, dashed, removed, changed) in GRAPHS.items():
        patches = axes[plain(name)].patches
        circles = [p for p in patches if isinstance(p, Circle)]
        assert len(circles) == len(nodes.split()) + len(changed)
        white = [c for c in circles if c.radius == drawn.RADIUS and c.get_facecolor()[0] == 1]
        assert [c.center for c in white] == [drawn.PLACES["D"]]
        rings = [c.center for c in circles if c.radius == drawn.RING]
        assert rings == [drawn.PLACES[node] for node in changed]
        arrows = [p for p in patches if isinstance(p, FancyArrowPatch)]
        edges = [*solid.split(), *dashed.split(), *removed.split()]
        # A line and a head for each.
        assert len(arrows) == 2 * len(edges)
        crosses = axes[plain(name)].lines
        assert len(crosses) == len(removed.split())


def red(ax):
    return sum(
        p.get_edgecolor()[:3] == pytest.approx((0.8, 0.2, 0.067), abs=0.01)
        and p.get_linewidth() > 1
        for p in ax.patches
        if isinstance(p, FancyArrowPatch)
    )


def test_the_open_path_is_red_where_a_step_fails(summary):
    axes = axes_of(drawn.causal_graphs(summary.graphs))
    # D ⇢ F; D → R → F; S ← R → F; D → R → F → Y; none under do(F). A line each, heads have none.
    assert [red(ax) for ax in axes.values()] == [1, 2, 2, 3, 0]
    sound = graphs(Records(), {"test": STEPS["test"][:1]})
    figure = drawn.causal_graphs(summarise(*sound.both).graphs)
    assert not any(map(red, axes_of(figure).values()))
    labels = [
        text.get_text() for ax in figure.axes if (box := ax.get_legend()) for text in box.texts
    ]
    assert "removed" in labels and not any("breaks" in label for label in labels)


def test_steps_are_dots_and_crosses(summary):
    figure = steps.step_grid(summary.graphs)
    (ax,) = figure.axes
    assert [text.get_text() for text in ax.get_xticklabels()] == [
        *("testing", "label shift,\nD → Y", "training,\nno D → F")
    ]
    rows = [text.get_text() for text in ax.get_yticklabels()]
    assert len(rows) == 6 and rows[1] == r"$P(F \,|\, \mathrm{do}(S)) = P(F \,|\, S)$"
    marks = {}
    for line in ax.lines:
        if line.get_marker() in ("o", "X"):
            at = int(line.get_xdata()[0]), int(line.get_ydata()[0])
            marks[at] = line.get_marker()
    assert [marks.get((0, y)) for y in range(6)] == ["o", "X", "o", "o", "o", None]
    assert [marks.get((1, y)) for y in range(6)] == ["X", "X", None, "X", None, None]
    figure.draw_without_rendering()


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        ("(S ⊥ Y | F)", r"$(S \perp  Y \,|\, F)$"),
        ("P(Y) = Σ_x′ P(Y | x′) P(x′)", r"$P(Y) = \Sigma_{x'}\, P(Y \,|\, x')\,P(x')$"),
        ("costs 5 $ & more", r"costs 5 \$ & more"),
    ],
)
def test_statements_are_formulae_where_they_can_be(statement, shown):
    assert steps.formula(statement) == shown


def test_domains_are_those_of_the_seen_or_the_unseen_clients():
    assert drawn.node_label("D", "train aggregated") != drawn.node_label("D", "test do(S)")
    assert drawn.node_label("F", "test") == "$F$"
    assert drawn.node_label("a$b", "test") == r"a\$b"


def test_unknown_nodes_and_graphs_are_drawn():
    odd = {"test": ("X D R S F Y C U1 U2 U3 U4", "CX CY CF DC", "DF", "", "S")}
    odd["my own graph"] = ("X Y", "XY", "", "", "")
    figure = drawn.causal_graphs(summarise(*graphs(Records(), {}, odd).both).graphs)
    assert list(axes_of(figure)) == ["testing", "my own graph"]
    figure.draw_without_rendering()
