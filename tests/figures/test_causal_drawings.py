"""Figures of the section `causal`: what lines, marks and levels show."""

import numpy as np
import pytest
from synthetic import Records, student
from synthetic_causal import HELD, answers, everything, skewed, structural

from figures import style
from figures.causal import summarise
from figures.causal.draw_distance import distance_marks
from figures.causal.draw_skew import label_shift
from figures.causal.draw_structural import answers as draw_answers
from figures.causal.draw_structural import batch_sizes
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


def test_marks_that_lack_seeds_are_hollow_above_the_others(summary):
    ax = axes_of(draw_answers(summary.structural))["confounded"]
    colour = look("aggregated").colour
    marks = [ln for ln in ax.lines if ln.get_color() == colour and ln.get_marker() == "s"]
    hollow = [ln for ln in marks if ln.get_markerfacecolor() == "white"]
    filled = [ln for ln in marks if ln not in hollow]
    assert len(hollow) == len(filled) == 1
    assert list(hollow[0].get_ydata()) == list(filled[0].get_ydata())
    assert hollow[0].get_zorder() > filled[0].get_zorder()
    assert hollow[0].get_markersize() == filled[0].get_markersize()


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
    heads = [f"({k}) {title}" for k, title in zip("abcd", titles.values(), strict=True)]
    assert [ax.get_title(loc="left") for ax in top] == heads
    bottom = figure.axes[4:8]
    assert [ax.get_title(loc="left") for ax in bottom] == ["(e)", "(f)", "(g)", "(h)"]
    assert len({ax.get_ylim() for ax in bottom}) == 1 and bottom[0].get_ylim()[0] <= 0
    (harm,) = [ln for ln in bottom[0].lines if ln.get_marker() == "D"]
    decades = np.log10([1, 2, 5, 10, 20, 50])
    assert harm.get_ydata() == pytest.approx(6.4 * decades)
    accuracy = {ln.get_marker(): ln.get_ydata() for ln in top[0].lines if ln.get_marker() in "o^s"}
    assert len(accuracy) == 3
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
