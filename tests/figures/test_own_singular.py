"""Figures of singular points, of one client and of narrow ranges: nothing is lost unsaid."""

import warnings

import polars as pl
import pytest
from matplotlib.figure import Figure
from synthetic import Records, corollary
from test_convergence_exact import frame as exact_frame
from test_own_points import shown, spectra_of

from figures import style
from figures.convergence import draw_dynamics, draw_eigenvalues, summarise
from figures.convergence.draw_exact import exact
from figures.convergence.draw_step_sizes import step_sizes
from figures.convergence.exact_tables import summarise_exact
from figures.convergence.log_axes import (
    EQUAL,
    NO_RATIO,
    SOME_RATIOS,
    above_rounding,
    from_zero,
    over,
    readable_ticks,
)


@pytest.fixture(autouse=True)
def styled_and_silent():
    with style.context(), warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def labels(ax):
    return [tick.get_text() for tick in ax.get_yticklabels() if tick.get_text()]


def singular(table, ridges, nets=("low", "low_star")):
    """The midpoint of what may be 0 is rounding, and can be positive."""
    at = pl.col("parameter").is_in(ridges)
    ends = {f"{net}_value": 1e-15 for net in nets} | {f"{net}_lower": -1e-9 for net in nets}
    cells = [pl.when(at).then(v).otherwise(pl.col(c)).alias(c) for c, v in ends.items()]
    gone = pl.when(at).then(None).otherwise(pl.col("ratio")).alias("ratio")
    return table.with_columns(*cells, gone)


@pytest.mark.parametrize(
    ("ridges", "nets", "first", "second"),
    [
        ([], ("low",), [], []),
        ([0.0], ("low",), ["some may be 0:\nnot shown"], [SOME_RATIOS]),
        ([0.0, 0.1], ("low",), ["some may be 0:\nnot shown"], [NO_RATIO]),
        ([0.0, 0.1], ("low", "low_star"), ["may be 0:\nnot shown"], [NO_RATIO]),
    ],
)
def test_the_exact_kernel_of_singular_points(ridges, nets, first, second):
    figure = exact(singular(summarise_exact(exact_frame()).table, ridges, nets))
    figure.draw_without_rendering()
    smallest, ratio, _ = figure.axes
    assert (shown(smallest), shown(ratio)) == (first, second)
    drawn = [y for line in smallest.lines for y in line.get_ydata() if y > 0]
    assert all(y > 0.1 for y in drawn) and len(drawn) == 4 - len(ridges) * len(nets)


def test_settings_without_a_kernel_are_no_zeros():
    figure = exact(summarise_exact(exact_frame(refused=True)).table)
    assert [shown(ax) for ax in figure.axes] == [[], [], []]


def test_equal_kernels_are_said_to_be_equal_and_the_highest_mark_is_whole():
    table = summarise_exact(exact_frame()).table
    same = {f"{n}_star_{e}": pl.col(f"{n}_{e}") for n in ("low", "top") for e in ("value", "lower")}
    figure = exact(table.with_columns(**same))
    assert [shown(ax) for ax in figure.axes] == [[EQUAL], [], [EQUAL]]
    assert figure.axes[2].get_ylim()[1] > 1.05 * 4.0


def gains(smallest):
    rows = {"data": "own-mine", "clients": 2, "step": 1.5}
    parts = [
        {**rows, "samples": 2 + k, "smallest": value, "condition": value}
        for k, value in enumerate(smallest)
    ]
    return pl.DataFrame(parts, schema_overrides={"smallest": pl.Float64, "condition": pl.Float64})


@pytest.mark.parametrize(
    ("smallest", "words"),
    [
        ([2.0, 3.0], []),
        ([2.0, None], [SOME_RATIOS]),
        ([None, None], [NO_RATIO]),
    ],
)
def test_ratios_that_are_missing_are_said_to_be(smallest, words):
    figure = step_sizes(gains(smallest))
    figure.draw_without_rendering()
    assert shown(figure.axes[0]) == words
    one = gains([1.0, 1.0 + 1e-15]).with_columns(step=1.0)
    assert shown(step_sizes(one).axes[0]) == [EQUAL]


def test_eigenvalues_of_rounding_are_not_drawn():
    assert above_rounding(pl.Series([10.0, 1e-13, 1e-15, -1e-15]), 4).is_nan().to_list() == [
        False, False, True, True,
    ]  # fmt: skip
    table = spectra_of(["a", "b"]).with_columns(
        value=pl.when((pl.col("variant") == "G") & (pl.col("rank") > 2))
        .then(1e-16)
        .otherwise(pl.col("value"))
    )
    figure = draw_eigenvalues.spectra(table, ["a", "b"])
    figure.draw_without_rendering()
    whole = figure.axes[0]
    assert shown(whole) == ["some may be 0:\nnot shown"]
    assert sum(y > 0 for y in whole.lines[0].get_ydata()) == 2


def test_medians_that_may_be_zero_are_not_drawn_and_no_warning_comes():
    records = corollary(Records(), {(2, 4): [(1e-16, 1e-16)], (2, 8): [(1e-16, 2.0)]})
    found = summarise(*records.both)
    table = found.comparison.with_columns(
        min_certain=pl.lit(-1e-14), min_low_certain=pl.lit(-1e-14)
    )
    figure = draw_eigenvalues.smallest_eigenvalues(table, found.draws)
    figure.draw_without_rendering()
    assert all(not (y > 0) for y in figure.axes[1].lines[0].get_ydata())
    assert shown(figure.axes[1])


def test_a_regime_of_singular_points_leaves_the_other_panel_its_scale():
    rows = [
        {"data": data, "alpha": alpha, "variant": variant, "value": size, "low": size,
         "high": size, "certain": low, "low_certain": low, "draws": 1, "setting": "N = 2"}
        for data, size, low in (("gaussian", 1.0, 0.9), ("own-mine", 1e-15, -1e-12))
        for alpha in (1.0, 10.0)
        for variant in ("V", "Lambda", "G", "printed")
    ]  # fmt: skip
    none = pl.DataFrame(schema={"data": pl.String, "alpha": pl.Float64})
    nets = {"data": pl.String, "net": pl.String, "choice": pl.String, "width": pl.Int64}
    figure = draw_dynamics.regimes(pl.DataFrame(rows), none, pl.DataFrame(schema=nets))
    figure.draw_without_rendering()
    assert shown(figure.axes[1]) == ["may be 0:\nnot shown"]
    assert figure.axes[0].get_yscale() == "log" and labels(figure.axes[0])


@pytest.mark.parametrize(
    ("low", "high"), [(2.2, 8.7), (0.3, 0.9), (1.01, 1.05), (1.2e-7, 4e-7), (3e6, 8e6)]
)
def test_a_range_without_powers_of_ten_has_numbers(low, high):
    ax = Figure().subplots()
    ax.plot([1, 2], [low, high])
    ax.set(yscale="log")
    readable_ticks(ax)
    assert len(labels(ax)) > 1


def test_places_without_values_are_on_the_axis():
    ax = Figure().subplots()
    over(ax, pl.Series([8, 2]))
    assert ax.get_xlim()[0] < 2 and ax.get_xlim()[1] > 8
    ax.plot([2, 8], [1.86, 1.67])
    from_zero(ax)
    assert ax.get_ylim()[0] == 0 and ax.get_ylim()[1] > 1.9
