"""Figures of the section `causal`: where nodes and arrows lie, what lines and marks show."""

import numpy as np
import pytest
from matplotlib.patches import Circle, FancyArrowPatch
from synthetic import Records, student
from synthetic_causal import GRAPHS, HELD, STEPS, answers, everything, graphs, skewed, structural

from figures import style
from figures.causal import draw_graphs as drawn
from figures.causal import draw_steps as steps
from figures.causal import summarise
from figures.causal.draw_distance import distance_marks
from figures.causal.draw_skew import label_shift
from figures.causal.draw_structural import answers as draw_answers
from figures.causal.draw_structural import batch_sizes
from figures.causal.graphs import title
from figures.causal.layouts import column_titles
from figures.selection import of
from figures.style import look


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
        *("testing", "label shift\nD → Y", "training,\nclient-spec.")
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


def test_lines_of_answers_are_exact_and_in_per_cent(summary):
    axes = axes_of(draw_answers(summary.structural))
    assert list(axes) == ["shift", "label shift", "confounded"]
    for scenario, ax in axes.items():
        for answer in ("observational", "backdoor", "do_f", "do_s", "bayes"):
            line = next(ln for ln in ax.lines if ln.get_color() == look(answer).colour)
            wanted = [100 * answers(scenario, s)[answer] for s in (0.0, 1.0, 2.0, 3.0)]
            assert line.get_ydata() == pytest.approx(wanted)
            assert line.get_linestyle() != "None"
        low, high = ax.get_ylim()
        assert low >= 0 and high <= 100


def test_networks_are_marks_with_the_interval_over_seeds(summary):
    ax = axes_of(draw_answers(summary.structural))["shift"]
    cell = summary.structural.errors["shift", "client_specific", 3.0, 32]
    mean, low, high = (100 * x for x in student([cell.values[s] for s in range(3)]))
    (bars,) = [
        c
        for c in ax.containers
        if c[0].get_color() == look("client_specific").colour and len(c[0].get_xdata()) == 2
    ]
    assert bars[0].get_ydata()[1] == pytest.approx(mean)
    segment = bars[2][0].get_segments()[1]
    assert sorted(segment[:, 1]) == pytest.approx([low, high])


def test_batches_are_on_a_log_axis_with_levels(summary):
    axes = axes_of(batch_sizes(summary.structural))
    ax = axes["label shift, strength 3"]
    assert ax.get_xscale() == "log"
    exact = answers("label shift", 3.0)
    levels = {
        line.get_color(): line.get_ydata()[0]
        for line in ax.lines
        if len(line.get_xdata()) == 2 and list(line.get_xdata()) == [0, 1]
    }
    assert levels[look("do_f").colour] == pytest.approx(100 * exact["do_f"])
    assert levels[look("do_s").colour] == pytest.approx(100 * exact["do_s"])
    own = [ln for ln in ax.lines if ln.get_color() == look("client_specific").colour]
    own = {ln.get_marker(): ln for ln in own if ln.get_marker() in ("o", "^")}
    for line in own.values():
        assert list(line.get_xdata()) == [4, 8, 16, 32, 64, 128]
    # Each batch alone errs by 0.3/n more.
    apart = own["^"].get_ydata() - own["o"].get_ydata()
    assert apart == pytest.approx(30 / np.array([4, 8, 16, 32, 64, 128]))


def test_a_scenario_that_was_not_computed_says_so():
    records = structural(Records())
    config = {"study": "structural_training", "scenario": "confounded", "strength": 1.0}
    records.add(config | {"bn_policy": "aggregated", "seed": 0}, [], "diverged")
    axes = axes_of(draw_answers(summarise(*records.both).structural))
    assert [text.get_text() for text in axes["confounded"].texts] == ["not run"]


def test_distances_have_no_unit(summary):
    table = distance_marks(summary.structural)
    cell = summary.structural.distance("shift", "aggregated", "do_f")
    where = {"panel": "shift", "row": "do_f", "series": "aggregated"}
    row = of(table, **where).row(0, named=True)
    assert row["mean"] == pytest.approx(sum(cell.values.values()) / 3)
    assert 0.2 < row["mean"] < 0.3
    assert table.height == 24


def test_harm_has_one_scale_and_shows_zero(summary):
    titles = {c: t for c, t in column_titles(summary.skew).items() if c != "mean"}
    figure = label_shift(summary.skew, titles)
    top = figure.axes[:4]
    assert [ax.get_title(loc="left") for ax in top] == list(titles.values())
    bottom = figure.axes[4:8]
    assert len({ax.get_ylim() for ax in bottom}) == 1 and bottom[0].get_ylim()[0] <= 0
    (harm,) = [ln for ln in bottom[0].lines if ln.get_marker() == "D"]
    decades = np.log10([1, 2, 5, 10, 20, 50])
    assert harm.get_ydata() == pytest.approx(6.4 * decades)
    accuracy = {ln.get_marker(): ln.get_ydata() for ln in top[0].lines}
    assert set(accuracy) == {"o", "^", "s"}
    assert accuracy["^"] - accuracy["o"] == pytest.approx(harm.get_ydata())


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_any_number_of_clients_is_drawn(count):
    records = Records()
    for k in range(count):
        skewed(records, HELD[k] if k < 4 else f"c{k}", 0)
    skew = summarise(*records.both).skew
    titles = {c: t for c, t in column_titles(skew).items() if c != "mean"}
    figure = label_shift(skew, titles)
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert len(shown) == 2 * count
    figure.draw_without_rendering()
