"""What the axes show is what the tables hold; nothing is computed on the way."""

import numpy as np
import polars as pl
import pytest
from synthetic import Records, corollary, descent, everything, regime, spectrum, training

from figures import style
from figures.convergence import draw_dynamics, draw_eigenvalues, draw_training, summarise
from figures.selection import of
from figures.style import look


def made(records):
    return summarise(*records.both)


@pytest.fixture(scope="module")
def whole():
    return made(everything())


@pytest.fixture(autouse=True)
def styled():
    with style.context():
        yield


def labels(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def lines(ax, colour=None):
    return [line for line in ax.lines if colour is None or line.get_color() == colour]


def holds(line, x, y):
    np.testing.assert_allclose(np.asarray(line.get_xdata(), float), np.asarray(x, float))
    np.testing.assert_allclose(np.asarray(line.get_ydata(), float), np.asarray(y, float))


def band(collection):
    """x to (low, high) of a filled band."""
    found = {}
    for x, y in collection.get_paths()[0].vertices:
        low, high = found.get(x, (y, y))
        found[float(x)] = (min(low, y), max(high, y))
    return found


def test_smallest_eigenvalues_shows_medians_ranges_and_every_draw(whole):
    figure = draw_eigenvalues.smallest_eigenvalues(whole.comparison, whole.draws)
    assert len(figure.axes) == 8  # two sources; the spectrum's digits are one of them
    first, second, third, fourth = figure.axes[4:]  # gaussian: N = 2, 4 at M = 8; M = 4, 8 at N = 4
    for ax, key, which, x in (
        (first, {"samples": 8}, "min", [2, 4]),
        (second, {"clients": 4}, "min", [4, 8]),
        (fourth, {"clients": 4}, "max", [4, 8]),
    ):
        by = "clients" if ax is first else "samples"
        rows = of(whole.comparison, data="gaussian", **key).sort(by)
        for line, shade, name in zip(
            ax.lines, ax.collections, (which, f"{which}_star"), strict=True
        ):
            holds(line, x, rows[name])
            ends = zip(rows[f"{name}_low"], rows[f"{name}_high"], strict=True)
            assert band(shade) == dict(zip(x, ends, strict=True))
    dots, medians, one = third.lines
    assert sorted(zip(dots.get_xdata(), dots.get_ydata(), strict=True)) == [
        (4, 4.0 / 3.0),
        (8, 1.5),
        (8, 3.0),
    ]
    holds(medians, [4, 8], [4.0 / 3.0, 2.25])
    assert set(one.get_ydata()) == {1.0}
    assert labels(figure) == [draw_eigenvalues.kernel(""), draw_eigenvalues.kernel("_star")]
    assert first.lines[0].get_color() == look("aggregated").colour
    assert first.get_title(loc="left") == "(e) $M = 8$"


def test_smallest_eigenvalues_with_one_size_and_one_singular_draw():
    summary = made(corollary(Records(), {(1, 4): [(0.0, 0.0)]}))
    figure = draw_eigenvalues.smallest_eigenvalues(summary.comparison, summary.draws)
    figure.draw_without_rendering()
    assert [ax.get_xlabel() for ax in figure.axes][:2] == ["clients $N$", "samples a client $M$"]


def test_spectra_shows_every_eigenvalue_and_whose_it_is(whole):
    figure = draw_eigenvalues.spectra(whole.spectra, ["mnist", "my-own"])
    full, tail = figure.axes
    holds(full.lines[0], range(1, 6), [10.0, 9.0, 3.0, 2.0, 1.0])
    holds(full.lines[1], range(1, 6), [5.0, 4.5, 4.0, 3.0, 2.0])
    holds(tail.lines[0], range(1, 6), [1.0, 2.0, 3.0, 9.0, 10.0])
    holds(tail.lines[1], [1, 3, 5], [2.0, 4.0, 5.0])
    holds(tail.lines[2], [2, 4], [3.0, 4.5])
    shown = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "client MNIST" in shown[1] and "client my-own" in shown[2]


def test_spectra_with_a_single_client_unknown_to_the_style():
    figure = draw_eigenvalues.spectra(
        made(spectrum(Records())).spectra.with_columns(client=pl.lit("solo")), ["solo"]
    )
    figure.draw_without_rendering()


@pytest.mark.parametrize("source", ["digits", "gaussian"])
def test_decay_shows_the_widest_networks_of_the_first_draw(whole, source):
    figure = draw_dynamics.decay(whole.curves, source)
    assert len(figure.axes) == 4  # two step sizes by two α
    for k, (choice, alpha) in enumerate(
        [("common", 2.0), ("common", 10.0), ("own", 2.0), ("own", 10.0)]
    ):
        for net, policy in (("f", "aggregated"), ("f*", "client_specific")):
            at = {"data": source, "width": 8192, "draw": 0, "alpha": alpha}
            rows = of(whole.curves, variant=f"{net}|{choice}", **at)
            drawn = lines(figure.axes[k], look(policy).colour)
            for line, metric in zip(
                drawn, ("linearised", "bound", "squared_residual"), strict=True
            ):
                part = of(rows, metric=metric)
                holds(line, part["round"], part["relative"])
    assert figure.axes[0].get_title(loc="left") == "(a) $\\alpha = 2$"
    assert labels(figure)[2:] == ["measured", "bound of the theorem", "linearised at $t=0$"]


def test_decay_takes_what_widths_and_draws_its_source_has():
    records = descent(Records(), width=8192, draw=0, data="digits")
    summary = made(descent(records, width=512, draw=3, alpha=2.0))
    figure = draw_dynamics.decay(summary.curves, "gaussian")
    assert len(figure.axes) == 2 and all(len(ax.lines) == 6 for ax in figure.axes)
    assert figure.axes[0].lines[0].get_xdata().tolist() == [0, 10, 20]


def test_regimes_shows_lines_bands_dots_and_the_threshold(whole):
    figure = draw_dynamics.regimes(whole.regimes, whole.thresholds, whole.descents)
    ax = figure.axes[1]
    for line, shade, (variant, factor) in zip(
        ax.lines[:4],
        ax.collections,
        (("V", 1.0), ("Lambda", 1.0), ("G", 0.5), ("printed", 0.5)),
        strict=True,
    ):
        rows = of(whole.regimes, data="gaussian", variant=variant).sort("alpha")
        holds(line, rows["alpha"], factor * rows["value"])
        ends = zip(factor * rows["low"], factor * rows["high"], strict=True)
        assert list(band(shade).values()) == list(ends)
    dots = ax.lines[4]
    holds(dots, [2.0, 10.0, 2.0, 10.0], [1.0] * 4)  # two draws at m = 8192, f alone
    assert "8{,}192" in dots.get_label()
    grey = ax.patches[0]
    assert grey.get_x() == pytest.approx(3.0) and grey.get_width() == pytest.approx(1.0)
    assert len(labels(figure)) == 5


def test_regimes_without_networks_and_without_a_threshold():
    summary = made(regime(Records(), [(1e-9, 9.0)]))
    figure = draw_dynamics.regimes(summary.regimes, summary.thresholds, summary.descents)
    figure.draw_without_rendering()
    assert len(labels(figure)) == 4 and not figure.axes[0].patches


def test_widths_shows_both_tables_for_every_source():
    records = Records()
    for data in ("digits", "gaussian", "third"):
        for width in (512, 2048):
            descent(records, data=data, width=width, ratio=width / 512)
    summary = made(records)
    figure = draw_dynamics.widths(summary.distances, summary.slacks)
    for ax, table in zip(figure.axes, (summary.distances, summary.slacks), strict=True):
        curves = ax.lines[:3]
        for line, data in zip(curves, ("digits", "gaussian", "third"), strict=True):
            rows = of(table, data=data).sort("width")
            holds(line, rows["width"], rows["value"])
        assert len({line.get_linestyle() + str(line._dash_pattern) for line in curves}) == 3
    assert labels(figure)[-3:] == ["digits images", "Gaussian clients", "third images"]


def test_training_shows_means_intervals_and_the_paired_difference(whole):
    figure = draw_training.training(whole.training, whole.clients, whole.paired)
    loss, accuracy, gap, final = figure.axes
    for ax, split, metric in ((loss, "train", "loss"), (accuracy, "test", "accuracy")):
        for k, policy in enumerate(("aggregated", "client_specific")):
            rows = of(whole.training, bn_policy=policy, split=split, metric=metric).sort("round")
            holds(ax.lines[k], rows["round"], rows["mean"])
            ends = rows.select("lower", "upper").rows()
            np.testing.assert_allclose(list(band(ax.collections[k]).values()), ends)
    rows = of(whole.paired, split="train", metric="loss").sort("round")
    holds(gap.lines[0], rows["round"], rows["mean"])
    aggregated, specific = (container[0] for container in final.containers)
    assert aggregated.get_xdata().tolist() == pytest.approx([0.7, 0.6])
    assert specific.get_xdata().tolist() == pytest.approx([0.81, 0.71])
    names = [tick.get_text() for tick in final.get_yticklabels()]
    assert names == ["MNIST", "my-own"]  # not the server
    shown = labels(figure)
    assert shown == [look(p).label for p in ("aggregated", "client_specific")]


def test_training_with_one_client_one_seed_and_one_policy():
    summary = made(training(Records(), "aggregated", 0, [4.0], clients=("alone",)))
    figure = draw_training.training(summary.training, summary.clients, summary.paired)
    figure.draw_without_rendering()
    assert figure.axes[0].lines[0].get_ydata().tolist() == [4.0]
