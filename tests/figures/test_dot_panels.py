"""Dots with intervals in panels: every value where it belongs, and said where there is none."""

import pytest

from figures.experiments.comparisons import marks
from figures.experiments.dot_panels import Axis, dot_panels
from figures.style import context, look

SERIES = {name: look(name) for name in ("aggregated", "client_specific")}
ROWS = {"fedavg": "FedAvg", "moon": "MOON"}


@pytest.fixture(autouse=True)
def _styled():
    with context():
        yield


def axis(panels=("a", "b"), **special):
    return Axis({name: f"panel {name}" for name in panels}, ROWS, SERIES, "accuracy", **special)


def row(panel, name, series, mean, half=1.0, lost=None, hollow=None):
    ends = {"lower": None, "upper": None} if half is None else {}
    if half is not None and mean is not None:
        ends = {"lower": mean - half, "upper": mean + half}
    return {
        "panel": panel,
        "row": name,
        "series": series,
        "mean": mean,
        "lost": lost,
        **ends,
        "hollow": hollow,
    }


def drawn(ax, series):
    """Place and value of the marks of a series."""
    (line,) = [one[0] for one in ax.containers if one[0].get_color() == look(series).colour]
    return list(zip(line.get_xdata(), line.get_ydata(), strict=True))


def test_values_stand_in_their_panel_and_row_series_beside_one_another():
    table = marks(
        [
            row("a", "fedavg", "aggregated", 80.0),
            row("a", "fedavg", "client_specific", 85.0),
            row("a", "moon", "aggregated", 70.0, None),
            row("b", "moon", "client_specific", 60.0),
        ]
    )
    first, second = dot_panels(table, axis()).axes
    assert drawn(first, "aggregated") == [(80.0, pytest.approx(-0.18)), (70.0, pytest.approx(0.82))]
    assert drawn(first, "client_specific") == [(85.0, pytest.approx(0.18))]
    assert drawn(second, "client_specific") == [(60.0, pytest.approx(1.18))]
    bars = [one for one in first.containers if one[0].get_color() == look("aggregated").colour]
    ends = [segment[:, 0].tolist() for segment in bars[0][2][0].get_segments()]
    assert ends == [[79.0, 81.0], [70.0, 70.0]]  # one seed has no interval
    assert first.get_title(loc="left") == "(a) panel a"
    assert [text.get_text() for text in first.get_yticklabels()] == ["FedAvg", "MOON"]
    low, high = first.get_ylim()
    assert low > high  # the first row is on top


def test_pairs_are_joined_and_zero_is_marked_where_asked():
    table = marks(
        [row("a", "fedavg", s, v) for s, v in (("aggregated", 1), ("client_specific", 2))]
    )
    (joined,) = dot_panels(table, axis(["a"])).axes
    (alone,) = dot_panels(table, axis(["a"], joined=False, zero=True)).axes
    lines = [[list(line.get_xdata()) for line in ax.lines] for ax in (joined, alone)]
    assert [1.0, 2.0] in lines[0] and [1.0, 2.0] not in lines[1]
    assert [0, 0] in lines[1] and [0, 0] not in lines[0]


def test_what_diverged_is_said_instead_of_drawn():
    words = "diverged (round 7), all 3 seeds"
    table = marks(
        [
            row("a", "fedavg", "aggregated", None, None, words),
            row("a", "fedavg", "client_specific", 85.0),
            row("a", "moon", "aggregated", None, None),
        ]
    )
    (ax,) = dot_panels(table, axis(["a"])).axes
    assert [text.get_text() for text in ax.texts] == [words]
    assert drawn(ax, "aggregated") == [] and len(drawn(ax, "client_specific")) == 1


@pytest.mark.parametrize(("count", "rows", "hidden"), [(1, 1, 0), (4, 2, 2), (6, 2, 0)])
def test_panels_fill_rows_and_empty_places_are_hidden(count, rows, hidden):
    names = [f"p{k}" for k in range(count)]
    table = marks([row(name, "fedavg", "aggregated", 1.0) for name in names])
    figure = dot_panels(table, axis(names))
    assert figure.axes[0].get_gridspec().nrows == rows
    assert sum(not ax.get_visible() for ax in figure.axes) == hidden
    # What is measured is said below the last panel of every column.
    said = [bool(ax.get_xlabel()) for ax in figure.axes if ax.get_visible()]
    assert said == [k + min(3, count) >= count for k in range(count)]


def test_rows_that_are_not_named_are_left_out():
    table = marks([row("a", "unknown", "aggregated", 1.0), row("a", "moon", "aggregated", 2.0)])
    (ax,) = dot_panels(table, axis(["a"])).axes
    assert drawn(ax, "aggregated") == [(2.0, pytest.approx(0.82))]


def test_an_axis_ends_where_its_values_do():
    wide = marks([row("a", "moon", "aggregated", 60.0, 80.0)])
    (free,) = dot_panels(wide, axis(["a"])).axes
    assert free.get_xlim()[0] < -20 and free.get_xlim()[1] > 140
    (ends,) = dot_panels(wide, axis(["a"], within=(0.0, 100.0))).axes
    assert ends.get_xlim() == (0.0, 100.0)
    narrow = marks([row("a", "moon", "aggregated", 60.0, 1.0)])
    (inside,) = dot_panels(narrow, axis(["a"], within=(0.0, 100.0))).axes
    assert 58 < inside.get_xlim()[0] < 59 and 61 < inside.get_xlim()[1] < 62


def test_bars_are_cut_at_the_ends_and_marks_there_are_whole():
    values = [row("a", "fedavg", "aggregated", 100.0, 40.0), row("a", "moon", "aggregated", 0.0)]
    figure = dot_panels(marks(values), axis(["a"], within=(0.0, 100.0)))
    figure.draw_without_rendering()
    (ax,) = figure.axes
    points, caps, bars = ax.containers[0]
    ends = ax.transAxes.transform([(0, 0), (1, 0)])[:, 0]
    for part in (*caps, *bars):
        # Clipped to the axes, whatever it holds.
        assert part.get_clip_on() and part.get_clip_box().extents[[0, 2]] == pytest.approx(ends)
    assert not points.get_clip_on()
    assert list(points.get_xdata()) == [100.0, 0.0]


def test_a_mark_that_lacks_seeds_is_hollow_where_it_stands():
    values = [
        row("a", "fedavg", "aggregated", 80.0, hollow=True),
        row("a", "moon", "aggregated", 70.0, hollow=False),
        row("a", "moon", "client_specific", 60.0),
    ]
    (ax,) = dot_panels(marks(values), axis(["a"])).axes
    found = [one for one in ax.lines if one.get_markerfacecolor() == "white"]
    (line,) = found
    assert list(zip(line.get_xdata(), line.get_ydata(), strict=True)) == [
        (80.0, pytest.approx(-0.18))
    ]
    assert line.get_markeredgecolor() == look("aggregated").colour
    # Above the filled mark, and not in the legend.
    assert line.get_zorder() > ax.containers[0][0].get_zorder()
    assert line.get_label().startswith("_")
