"""The section's figures: what is drawn where, that it can be read, and that nothing is cut off."""

import itertools

import matplotlib as mpl
import pytest
from matplotlib.patches import Rectangle
from synthetic import Records
from synthetic_generalization import distances, everything, measured, run, trained
from synthetic_spreads import gaussian

from figures import style
from figures.generalization import content, drawings, summarise
from figures.generalization.draw_layers import layer_marks
from figures.generalization.draw_terms import COLOURS, bars
from figures.generalization.marks import look_of


def made(records, name):
    """The drawn figure of this name, and the summary behind it."""
    summary = summarise(*records.both)
    with style.context():
        figure = drawings(summary)[name].make()
        figure.draw_without_rendering()
    return figure, summary


@pytest.fixture(scope="module")
def whole():
    """Every figure of a section that has all parts."""
    with style.context():
        found = {}
        for name, one in content(summarise(*everything().both)).drawings.items():
            found[name] = one.make()
            found[name].draw_without_rendering()
        return found


def ticks(axis):
    """The labels of an axis that are drawn: matplotlib keeps those beyond its ends, too."""
    low, high = sorted(axis.get_view_interval())
    room = 1e-9 * (high - low)
    found = axis.get_major_ticks() + axis.get_minor_ticks()
    return [
        (low - room <= tick.get_loc() <= high + room, tick.label1)
        for tick in found
        if tick.label1.get_text() and tick.label1.get_visible() and axis.axes.get_visible()
    ]


def readable(figure):
    """No text is small, none leaves the figure, and no two labels of an axis touch."""
    axes = [axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)]
    beyond = {id(label) for axis in axes for drawn, label in ticks(axis) if not drawn}
    page = figure.bbox
    for text in figure.findobj(mpl.text.Text):
        if not text.get_text().strip() or not text.get_visible() or id(text) in beyond:
            continue
        assert text.get_fontsize() >= 7, text.get_text()
        box = text.get_window_extent()
        where = (box.x0 > -1, box.x1 < page.x1 + 1, box.y0 > -1, box.y1 < page.y1 + 1)
        assert all(where), (text.get_text(), box, page)
    for axis in axes:
        labels = [label for drawn, label in ticks(axis) if drawn]
        boxes = [label.get_window_extent() for label in labels]
        for one, other in itertools.pairwise(boxes):
            assert not one.overlaps(other), [label.get_text() for label in labels]


NAMES = ["layers", "last_layer", "terms", "batches", "scatter", "gaussian_terms", "residual"]


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_can_be_read(whole, name):
    assert list(whole) == NAMES
    readable(whole[name])


@pytest.mark.parametrize("name", ["layers", "last_layer", "batches", "terms"])
def test_the_figure_of_one_client_can_be_read(name):
    readable(made(trained(seeds=1, folds=("mnist-m",)), name)[0])


def test_axes_of_many_spreads_can_be_read():
    spreads = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
    readable(made(gaussian(draws=1, spreads=spreads), "residual")[0])


def test_layers_show_the_table(whole):
    figure, summary = made(everything(), "layers")
    ax = figure.axes[0]
    assert ax.get_title(loc="left") == "(a) MNIST held out"
    marks = layer_marks(summary).filter(panel="client mnist", series="aggregated").sort("place")
    (line,) = [
        one
        for one in ax.get_lines()
        if one.get_color() == style.look("aggregated").colour and len(one.get_xdata()) == 3
        and one.get_marker() == "s"
    ]  # fmt: skip
    assert list(line.get_ydata()) == pytest.approx(marks["mean"].to_list())
    assert [t.get_text() for t in ax.get_xticklabels()] == ["input", "1", "2", "3"]
    legend = [t.get_text() for t in whole["layers"].legends[0].get_texts()]
    assert legend == [
        "raw inputs",
        "aggregated BN (f)",
        "client-specific BN, as deployed",
        "per-unit BN, statistics of training images",
        "full whitening",
        "one Gaussian law, per-unit BN",
        "one Gaussian law, whitened",
    ]


def test_the_last_layer_has_half_spaces_beside_pairs():
    figure, summary = made(everything(), "last_layer")
    for ax, found, floors in zip(
        figure.axes,
        (summary.divergence, summary.pairs),
        (summary.floor, summary.pair_floor),
        strict=True,
    ):
        drawn = {}
        for line in ax.get_lines():
            # Intervals end in marks like a tick, without a label.
            tick = str(line.get_label()).startswith("one Gaussian law")
            if tick or line.get_marker() in ("D", "^"):
                drawn[line.get_color(), tick] = line
        for name in ("per_unit", "whitened"):
            colour = look_of(name).colour
            for tick, cells in ((False, found), (True, floors)):
                line = drawn[colour, tick]
                means = [cells[c, name, "layer 3"].interval.mean for c in summary.columns]
                assert list(line.get_xdata()) == pytest.approx(means)
            # A floor stands at the height of the features that it belongs to.
            heights = (list(drawn[colour, tick].get_ydata()) for tick in (False, True))
            assert next(heights) == pytest.approx(next(heights))


def test_where_nobody_searched_for_pairs_there_is_no_figure_of_the_last_layer():
    records = Records()
    run(records, "client_specific", 0, distances({"mnist": 0.5}, "whitened"))
    assert set(drawings(summarise(*records.both))) == {"layers"}


def test_wide_intervals_end_where_divergence_does():
    records = Records()
    for seed, value in enumerate((1.9, 0.2)):
        run(records, "aggregated", seed, distances({"mnist": value}, "aggregated"))
    low, high = made(records, "layers")[0].axes[0].get_ylim()
    # Student's interval of two such values reaches ten units to either side.
    assert (low, high) == (-2.08, 2.08)


def rectangles(ax, colour):
    shade = mpl.colors.to_rgba(colour)
    found = [p for p in ax.patches if isinstance(p, Rectangle) and p.get_facecolor() == shade]
    return sorted(found, key=lambda one: one.get_y())


def test_bars_of_terms_stand_one_behind_another():
    figure, summary = made(trained(seeds=2), "terms")
    left, right = figure.axes
    table = bars(summary)
    first = table.filter(held_out="mnist", bn_policy="aggregated").rows(named=True)
    width = {row["split"]: row["drawn"] for row in first}
    start = 0.0
    for name in ("empirical risk", "half the divergence", "ideal joint error"):
        bar = rectangles(left, COLOURS[name])[0]
        assert (bar.get_x(), bar.get_width()) == pytest.approx((start, width[name]))
        start += width[name]
    assert first[0]["end"] == pytest.approx(start)
    (legend,) = figure.legends
    assert "interval of the sum, over seeds" in [t.get_text() for t in legend.get_texts()]
    hatches = {
        name: {bar.get_hatch() for bar in rectangles(left, COLOURS[name])} for name in COLOURS
    }
    assert hatches["empirical risk"] == {None}
    # (18) leaves the divergence out: nothing of it is known from below only.
    assert hatches["half the divergence"] == {"////", None}
    assert hatches["ideal joint error"] == {"...."}
    assert left.get_title(loc="left") == "(a) diagnostic, not a bound"
    assert right.get_xscale() == "log" and right.get_xlim()[1] > 330


def test_a_client_without_one_statement_has_the_others():
    records = trained(seeds=1, folds=("mnist-m",))
    measured(records, "aggregated", "mnist", 0)
    figure, _ = made(records, "terms")
    labels = [t.get_text() for t in figure.axes[0].get_yticklabels() if t.get_text()]
    assert labels.count("(16), aggregated BN") == 2 and labels.count("(18), as printed") == 1
    readable(figure)


def test_the_scatter_has_a_mark_for_each_client_and_seed():
    figure, summary = made(trained(seeds=2), "scatter")
    ax = figure.axes[0]
    marks = [line for line in ax.get_lines() if line.get_marker() not in ("None", "", None)]
    assert sum(len(line.get_xdata()) for line in marks) == summary.points.height == 8
    rho = f"{summary.rank.value:.2f}".replace("-", "−")
    assert f"= {rho}" in ax.get_title(loc="left")


def test_gaussian_bars_end_at_the_bound():
    figure, summary = made(gaussian(draws=2), "gaussian_terms")
    ax = figure.axes[0]
    tops = {}
    for bar in (p for p in ax.patches if isinstance(p, Rectangle)):
        key = round(bar.get_x() + bar.get_width() / 2)
        tops[key] = max(tops.get(key, 0.0), bar.get_y() + bar.get_height())
    found = summary.gaussian.terms.filter(teacher="whitened", variant="raw", split="total")
    assert list(tops.values()) == pytest.approx(found["end"].to_list())
