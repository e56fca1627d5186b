"""Every table of the section against values worked out by hand."""

import math
from statistics import median

import pytest
from synthetic import Records, corollary, descent, enclosed, everything, regime, spectrum

from figures.convergence import summarise, theory_tables
from figures.convergence.frame import joined
from figures.selection import of


def made(records):
    return summarise(*records.both)


def one(frame, **where):
    (row,) = of(frame, **where).iter_rows(named=True)
    return row


def test_every_comparison_is_one_row_with_both_enclosures():
    draws = {(2, 8): [(1.0, 2.0), (1.0, 3.0)], (4, 8): [(2.0, 2.005)]}
    table = made(corollary(corollary(Records(), draws), {(2, 8): [(5.0, 6.0)]}, "digits")).draws
    assert table.height == 4
    row = one(table, data="gaussian", clients=2, draw=1)
    assert (row["min_lower"], row["min"], row["min_upper"]) == (0.99, 1.0, 1.01)
    assert (row["min_star_lower"], row["min_star_upper"]) == (2.99, 3.01)
    assert (row["max"], row["max_star"], row["max_star_upper"]) == (10.0, 5.0, 5.01)
    assert (row["verdict"], row["client"], row["cause"]) == ("certified", "mnist", "a pair")
    assert (row["study"], row["samples"], row["points"]) == ("corollary", 8, 16)
    # An interval of the ratio that the enclosures allow, a rounding wider.
    assert row["ratio"] == 3.0
    assert 2.99 / 1.01 * (1 - 1e-15) < row["ratio_lower"] < 2.99 / 1.01
    assert 3.01 / 0.99 < row["ratio_upper"] < 3.01 / 0.99 * (1 + 1e-15)
    assert one(table, clients=4)["verdict"] == "consistent"


def test_no_ratio_where_a_smallest_eigenvalue_may_be_zero():
    pairs = [(0.005, 2.0), (-0.001, 0.002), (1.0, 2.0)]
    table = made(corollary(Records(), {(2, 8): pairs}))
    for name in ("ratio", "ratio_lower", "ratio_upper"):
        assert [value is None for value in table.draws[name]] == [True, True, False]
    assert one(table.comparison)["ratio_high"] == 2.0


def test_a_comparison_counts_the_points_of_unequal_clients():
    assert one(made(spectrum(Records())).draws, study="spectrum")["points"] == 5


def test_comparison_summary_is_median_and_range_over_draws():
    pairs = [(1.0, 2.0), (2.0, 9.0), (4.0, 4.01), (8.0, 7.0)]
    row = one(made(corollary(Records(), {(2, 8): pairs})).comparison)
    assert row["draws"] == 4
    assert (row["certified"], row["consistent"], row["violated"]) == (2, 1, 1)
    assert (row["min"], row["min_low"], row["min_high"]) == (3.0, 1.0, 8.0)
    assert (row["min_star"], row["min_star_low"], row["min_star_high"]) == (5.505, 2.0, 9.0)
    assert row["ratio"] == pytest.approx(median([2.0, 4.5, 4.01 / 4, 7 / 8]))
    assert row["relative_width"] == pytest.approx(0.02 / 1.0)
    assert row["driving_client"] == "mnist"


def test_spectra_rank_from_the_largest_over_all_blocks():
    table = made(spectrum(Records())).spectra
    assert of(table, variant="G")["value"].to_list() == [10.0, 9.0, 3.0, 2.0, 1.0]
    star = of(table, variant="G*")
    assert star["value"].to_list() == [5.0, 4.5, 4.0, 3.0, 2.0]
    assert star["rank"].to_list() == [1, 2, 3, 4, 5]
    assert star["client"].to_list() == ["mnist", "my-own", "mnist", "my-own", "mnist"]


def test_regimes_hold_the_same_g_at_every_alpha():
    table = made(regime(Records(), [(1.0, 9.0), (3.0, 16.0), (2.0, 4.0)])).regimes
    assert table.height == 2 * 5
    for alpha in (0.5, 2.0):
        row = one(table, variant="G", alpha=alpha)
        assert (row["value"], row["low"], row["high"], row["draws"]) == (2.0, 1.0, 3.0, 3)
    row = one(table, variant="V", alpha=2.0)
    assert (row["value"], row["low"], row["high"]) == (2.25, 1.0, 4.0)
    assert one(table, variant="Lambda", alpha=0.5)["high"] == 67.0


def test_the_threshold_is_the_root_of_v_by_g_and_enclosed():
    records = regime(Records(), [(1.0, 9.0), (4.0, 1.0), (1.0, 1.44)], (0.5, 1.5, 2.0))
    table = made(records).thresholds
    for draw, exact in enumerate((3.0, 0.5, 1.2)):
        row = one(table, draw=draw)
        assert row["alpha"] == pytest.approx(exact, rel=1e-12)
        assert row["alpha_lower"] < exact < row["alpha_upper"]
        assert row["alpha_upper"] - row["alpha_lower"] < 1e-5
    # 1.2 lies above 1, but no α of the grid lies between: the records prove nothing of it.
    assert table["above_one_certified"].to_list() == [True, False, False]


def test_no_threshold_where_g_may_be_singular():
    table = made(regime(Records(), [(1e-9, 9.0), (1.0, 9.0)])).thresholds
    assert [value is None for value in table["alpha"]] == [True, False]


def test_curves_are_relative_to_their_own_start():
    records = descent(descent(Records(), start=8.0), draw=1, start=5.0)
    table = made(records).curves
    assert table.height == 2 * 4 * 9  # draws, runs, three metrics at three steps
    for draw in (0, 1):
        at = {"draw": draw, "variant": "f*|own"}
        measured = of(table, metric="squared_residual", **at)["relative"].to_list()
        assert measured == pytest.approx([1.0, 0.1, 0.001])
        assert of(table, metric="bound", **at)["relative"].to_list() == pytest.approx(
            [1.0, 0.99**10, 0.99**20]
        )
        assert of(table, metric="linearised", **at)["relative"].to_list() == pytest.approx(
            [1.0, 0.2, 0.003]
        )


def test_distances_are_the_worst_decades_from_the_linearisation():
    table = made(descent(descent(Records()), draw=1)).distances
    row = one(table)  # f has none, f* is wrong by 2 at step 10 and by 3 at step 20
    assert row["value"] == pytest.approx(math.log10(3.0))
    tiny = made(descent(Records(), start=8.0))
    small = tiny.curves.with_columns(relative=tiny.curves["relative"] * 1e-18)
    kept = one(theory_tables.distances(small))  # step 20 is rounding now: step 10 counts
    assert kept["value"] == pytest.approx(math.log10(2.0))


def test_descents_have_one_row_a_run_whatever_else_is_there():
    records = everything()
    table = made(records).descents
    keys = ["data", "alpha", "width", "draw", "net", "choice"]
    assert table.height == 2 * 2 * 2 * 2 * 4 == table.select(keys).unique().height
    assert table.null_count().select(*keys, "e0", "lambda_min", "factor").row(0) == (0,) * 9
    at = {"data": "digits", "alpha": 2.0, "width": 512, "draw": 1}
    row = one(table, net="f*", choice="own", **at)
    assert row["step_size"] == 1.1 and row["e0"] == 1.0 and row["lambda_min"] == 2.0
    assert row["e0_lower"] == 0.99 and row["e0_printed_lower"] == 99.99
    assert row["lambda_min_upper"] == 2.01 and row["required_width"] == 1e9 + 1
    assert row["g_dominated"] is True and row["diverged_at"] is None
    assert row["final_slack_decades"] == 6.0
    assert row["bound_slack_decades"] == 1.5 and row["bound_slack_decades_verdict"] == "certified"
    assert one(table, net="f", choice="own", **at)["e0"] == 0.5


def test_descents_keep_apart_what_sources_and_widths_share():
    records = descent(Records(), width=512, e0=0.5)
    descent(records, width=2048, e0=0.25)
    descent(records, width=512, e0=0.125, data="digits", dominated=False)
    table = made(records).descents
    found = of(table, net="f", choice="own").select("data", "width", "e0", "g_dominated").rows()
    assert found == [
        ("gaussian", 512, 0.5, True),
        ("gaussian", 2048, 0.25, True),
        ("digits", 512, 0.125, False),
    ]


def test_a_diverged_run_keeps_its_row():
    summary = made(descent(Records(), lost=("f*|own",)))
    row = one(summary.descents, net="f*", choice="own")
    assert row["diverged_at"] == 7.0 and row["bound_slack_decades"] is None
    assert summary.descents["diverged_at"].null_count() == 3
    assert "f*|own" not in summary.curves["variant"]


def test_slacks_are_the_smallest_ratio_per_alpha_and_width():
    records = descent(descent(Records(), ratio=3.0), draw=1, ratio=2.5)
    descent(records, width=2048, ratio=1.5)
    table = made(records).slacks
    assert table.select("width", "value").rows() == [(512, 2.5), (2048, 1.5)]


def test_slacks_are_computed_ratios_where_nothing_can_be_certified():
    # A neuron on the edge of its half-space: the certified lower end is −2505, the eigenvalue 9.
    records, run = Records(), {"study": "dynamics", "data": "gaussian", "draw": 0}
    where = {"variant": "f|common"}
    records.add(
        {**run, "alpha": 0.5, "width": 512},
        [
            {"metric": "step_size", "value": 0.1, **where},
            {"metric": "eigenvalue_over_half_e0", "value": -2505.0, "note": "consistent", **where},
            {"metric": "smallest_eigenvalue_during", "value": 9.0, "round": 250, **where},
            enclosed("limit_smallest_eigenvalue", 0.5, 0.01, variant="f"),
        ],
    )
    assert made(records).slacks["value"].to_list() == [36.0]


def test_entry_gaps_are_one_row_a_run():
    records = descent(descent(Records(), gaps=(0.25, 4.0)), width=2048, gaps=(0.5, 8.0))
    table = made(records).gaps.select("width", "gap_limit", "gap_printed", "note").rows()
    assert table == [(512, 0.25, 4.0, "Hoeffding"), (2048, 0.5, 8.0, "Hoeffding")]


def test_joining_settings_neither_loses_nor_doubles_rows():
    rows, manifests = everything().both
    frame = joined(rows, manifests)
    assert frame.height == rows.height
    assert frame["study"].null_count() == 0 and frame["data"].null_count() == 0
    assert set(of(frame, study="dynamics")["draw"]) == {0, 1}  # a setting of the run
    assert set(of(frame, study="training")["seed"]) == {0, 1, 2, 7}
    assert set(of(frame, study="training")["data"]) == {"digits"}
