"""The bound's terms, accuracy against divergence, and Eq. (15), worked out by hand."""

import polars as pl
import pytest
from synthetic import Records, student
from synthetic_generalization import OPTIONS, distances, run, statement, trained

from figures.generalization import content, present, summarise
from figures.generalization.draw_terms import bars
from figures.generalization.term_layouts import FUNCTIONS, PAIRS, computed_by
from figures.selection import of


def made(records):
    return summarise(*records.both)


def claims(records):
    return {claim.id: claim for claim in content(made(records)).claims}


def table(summary, name):
    (found,) = [t for t in content(summary).tables if t.name == name]
    return found


def test_terms_are_means_over_seeds_and_open_where_a_seed_is():
    records = Records()
    for seed, upper in ((0, 0.9), (1, None)):
        values = {
            "empirical risk": 0.1 + 0.1 * seed,
            "half the divergence": (0.4 + 0.2 * seed, 0.4, upper),
            "ideal joint error": (0.2, 0.1, 0.3),
            "capacity of the divergence": 300.0,
            "capacity of the risk": 200.0,
        }
        run(records, "aggregated", seed, statement("mnist-m", "16", values))
    summary = made(records)
    rows = {row["split"]: row for row in summary.terms.iter_rows(named=True)}
    assert list(rows) == [*values, "total"]
    assert rows["empirical risk"]["value"] == pytest.approx(0.15)
    half = rows["half the divergence"]
    assert (half["value"], half["lower"], half["upper"]) == (pytest.approx(0.5), 0.4, None)
    assert (rows["ideal joint error"]["lower"], rows["ideal joint error"]["upper"]) == (0.1, 0.3)
    assert {row["kind"] for row in rows.values()} == {0.0}
    sums = summary.sums["aggregated", "client mnist-m", "16"]
    # Without capacities, the ideal error from above: 0.1 + 0.4 + 0.3 and 0.2 + 0.6 + 0.3.
    assert sums.values == pytest.approx({0: 0.8, 1: 1.1})
    assert rows["ideal joint error"]["drawn"] == pytest.approx(0.3)
    shown = table(summary, "terms").shown
    assert shown["half the divergence"][0] == "≥ 0.400"
    assert shown["ideal joint error"][0] == "0.100 to 0.300"
    assert shown["kind"][0] == "diagnostic"
    assert "diagnostic, not a bound" in content(summary).drawings["terms"].title


def test_capacities_above_one_make_a_statement_vacuous():
    for capacity, verdict in ((0.6, "consistent"), (0.4, "inconclusive")):
        values = {"capacity of the divergence": capacity, "capacity of the risk": 0.5}
        run(records := Records(), "aggregated", 0, statement("mnist-m", "16", values))
        found = claims(records)["terms.vacuous"]
        # The VC dimension is known from above only, and so are the capacities.
        assert found.verdict == verdict and "bound of the VC dimension" in found.claim
        assert found.interval == pytest.approx((capacity + 0.5, capacity + 0.5))


def test_a_capacity_is_shown_at_its_upper_end():
    values = {"capacity of the divergence": (100.0, 0.0, 200.0)}
    run(records := Records(), "aggregated", 0, statement("mnist-m", "16", values))
    summary = made(records)
    assert bars(summary)["drawn"].to_list() == [200.0]
    assert table(summary, "terms").shown["capacity of the divergence"].to_list() == ["≤ 200"]


def totals(upper, half=(0.4, 0.4, None)):
    values = {
        "empirical risk": 0.1,
        "half the divergence": 0.4,
        "ideal joint error": (0.2, 0.0, 0.3),
        "capacity of the divergence": 300.0,
        "capacity of the risk": 0.0,
    }
    rows = statement("mnist-m", "16", values)
    of_split = {row["split"]: row for row in rows if "split" in row}
    of_split["half the divergence"] |= dict(zip(("value", "lower", "upper"), half, strict=True))
    of_split["total"] |= {"value": 300.5, "lower": 300.5, "upper": upper, "note": "sum"}
    run(records := Records(), "aggregated", 0, rows)
    return made(records)


@pytest.mark.parametrize(
    ("upper", "half", "ends", "shown"),
    [
        # 0.1 + 0.4 + 0: what the VC dimension bounds from above adds nothing for sure.
        (None, (0.4, 0.4, None), (0.5, 0.5, None), "≥ 0.500"),
        (300.8, (0.4, 0.4, 0.4), (300.8, 0.5, 300.8), "0.500 to 301"),
        (300.8, (0.4, None, 0.4), (300.8, None, 300.8), "≤ 301"),
        (None, (0.4, None, None), (None, None, None), "–"),
    ],
)
def test_a_total_is_at_least_the_sum_without_capacities(upper, half, ends, shown):
    summary = totals(upper, half)
    for frame in (summary.terms, summary.whole["terms"]):
        rows = {row["split"]: row for row in frame.iter_rows(named=True) if row["split"]}
        found = rows["total"]
        assert (found["value"], found["lower"], found["upper"]) == pytest.approx(ends)
        assert found["note"].startswith("sum, without the capacities" if not upper else "sum")
        capacity, none = rows["capacity of the divergence"], rows["capacity of the risk"]
        assert (capacity["value"], capacity["lower"], capacity["upper"]) == (300.0, None, 300.0)
        assert (none["lower"], none["upper"]) == (0.0, 0.0)
    assert table(summary, "terms").shown["total"].to_list() == [shown]


def test_the_risk_at_home_is_held_against_the_same_risk_outside():
    records = Records()
    for seed in range(3):
        rows = statement("mnist-m", "18", {"empirical risk": 0.1})
        where = {"client": "mnist-m", "variant": "averaged"}
        rows.append({"metric": "external_risk", "value": 0.4 + 0.01 * seed, **where})
        where |= {"variant": "adapted"}
        rows.append({"metric": "external_error", "value": 0.05, **where})
        run(records, "client_specific", seed, rows)
    found = claims(records)["terms.home-risk"]
    assert found.interval == pytest.approx(student([0.3, 0.31, 0.32])[1:])
    assert found.verdict == "supported"


def test_every_term_says_which_function_computes_it():
    frame = table(made(trained(seeds=1)), "terms").frame
    assert not frame.filter(pl.col("computed_by") == "").height
    named = frame.select("variant", "split", "computed_by").unique()
    eighteen = of(named, variant="18", split="half the divergence")["computed_by"].to_list()
    assert eighteen == ["theory.corollary_iii9"]
    routes = table(made(trained(seeds=1)), "routes").frame
    assert routes["route"].str.starts_with("how ").sum() == 25  # five statements, five terms


def test_a_divergence_of_pairs_names_their_search():
    note = "Σ ω_i of 3 clients: held-out classifier, lower bound of d_HΔH: Clopper–Pearson"
    assert computed_by("16", "half the divergence", note) == "theory.pair_divergence"
    assert computed_by("16", "half the divergence", None) == "theory.proxy_a_distance"
    assert computed_by("16", "total", note) == "theory.generalization_bound"


def test_functions_that_tables_name_are_there():
    theory = pytest.importorskip("theory")
    for name in (*FUNCTIONS.values(), PAIRS, "theory.corollary_iii9"):
        found = theory
        for part in name.split(".")[1:]:
            found = getattr(found, part)


def test_a_statement_of_another_kind_is_left_out_of_the_figure_and_kept_in_the_csv():
    records = Records()
    values = {"empirical risk": 0.1, "half the divergence": 0.4, "ideal joint error": 0.0}
    rows = statement("mnist-m", "16", values) + statement("mnist-m", "99", values)
    run(records, "aggregated", 0, rows)
    summary = made(records)
    assert set(bars(summary)["variant"]) == {"16"}
    assert set(summary.whole["terms"]["variant"].drop_nulls()) == {"16", "99"}


def test_the_error_beside_a_bar_is_that_of_its_own_run():
    summary = made(trained(seeds=2))
    rows = bars(summary).filter(held_out="mnist", split="empirical risk")
    for row in rows.iter_rows(named=True):
        variant = "server" if row["bn_policy"] == "aggregated" else "adapted"
        cell = summary.errors[row["bn_policy"], "client mnist", variant]
        assert row["error"] == pytest.approx(cell.interval.mean)
        assert row["error_lower"] == pytest.approx(cell.interval.lower)
        cell = summary.risks[row["bn_policy"], "client mnist"]
        assert row["risk"] == pytest.approx(cell.interval.mean)
        assert row["risk"] - row["error"] == pytest.approx(0.05)


def test_one_seed_shows_the_interval_that_its_images_give():
    summary = made(trained(seeds=1))
    row = bars(summary).row(0, named=True)
    assert row["error_upper"] - row["error"] == pytest.approx(0.03)
    assert row["risk_upper"] - row["risk"] == pytest.approx(0.04)
    assert "Hoeffding" in content(summary).drawings["terms"].caption


def test_points_hold_reduction_and_gain_per_client_and_seed():
    records = Records()
    for seed in range(2):
        for fold in ("mnist", "mnist-m"):
            error = {"client": fold, "variant": "server"}
            rows = distances({"optdigits": 1.8}, "aggregated")
            rows.append({"metric": "external_error", "value": 0.5, **error})
            run(records, "aggregated", seed, rows, fold)
            rows = distances({"optdigits": 1.0 - 0.1 * seed}, "client_specific")
            rows += distances({"optdigits": 0.5 + 0.1 * seed}, "per_unit")
            error |= {"variant": "adapted"}
            rows.append({"metric": "external_error", "value": 0.4 - 0.05 * seed, **error})
            run(records, "client_specific", seed, rows, fold)
    summary = made(records)
    assert summary.points.select("held_out", "seed", "reduction", "gain").rows() == [
        (fold, seed, pytest.approx(0.8 + 0.1 * seed), pytest.approx(0.1 + 0.05 * seed))
        for fold in ("mnist", "mnist-m")
        for seed in range(2)
    ]
    assert (summary.rank.n, summary.rank.groups, summary.rank.value) == (4, 2, 1.0)
    shown = table(summary, "ranks").shown
    assert shown.select("features", "rank").rows() == [
        ("client-specific, as deployed", "1.00"),
        ("per-unit BN", "−1.00"),
    ]
    claim = claims(records)["gain.rank"]
    assert claim.verdict == "inconclusive" and "below four" in claim.measured
    assert "not independent" in content(summary).drawings["scatter"].caption


def test_both_intervals_of_the_rank_correlation_are_told():
    summary = made(trained(seeds=3))
    found = claims(trained(seeds=3))["gain.rank"]
    points = summary.rank_of_points
    assert found.interval == (summary.rank.lower, summary.rank.upper)
    assert summary.rank.lower < points.lower < points.upper < summary.rank.upper
    said = f"[{points.lower:.2f}, {points.upper:.2f}] if those of one client".replace("-", "−")
    assert said in found.measured and said in content(summary).drawings["scatter"].caption


def test_the_rank_correlation_of_equal_points_is_said_to_be_none():
    records = trained(seeds=1, folds=("mnist",))
    claim = claims(records)["gain.rank"]
    assert "no correlation" in claim.measured and claim.interval is None


def test_eq15_as_printed_fails_where_models_are_right_at_home_only():
    records = Records()
    sides = {"measured": 25.0, "printed": 0.0, "convex": 25.0}
    rows = [{"metric": "mixture_risk", "value": v, "variant": k} for k, v in sides.items()]
    near = sides | {"measured": 5e-6}
    near = [{"metric": "mixture_risk_on_inputs", "value": v, "variant": k} for k, v in near.items()]
    run(records, "client_specific", 0, rows + near)
    found = claims(records)
    # What rounding may do certifies nothing.
    assert found["eq15.printed-fails-on-inputs"].verdict == "consistent"
    shown = table(made(records), "mixtures").shown
    assert shown["reading"].to_list() == ["features", "inputs"]
    assert found["eq15.printed-fails"].verdict == "certified"
    assert found["eq15.printed-fails"].interval == (25.0, 25.0)
    assert found["eq15.convex"].verdict == "consistent"


def test_eq15_that_holds_here_is_said_to_fail_elsewhere():
    found = claims(trained(seeds=1, fails=False))["eq15.printed-fails"]
    assert found.verdict == "consistent" and "which these are not" in found.claim


def test_a_convex_side_below_the_left_one_is_a_bug(tmp_path, coarse):
    records = Records()
    sides = {"measured": 0.5, "printed": 0.1, "convex": 0.4}
    rows = [{"metric": "mixture_risk", "value": v, "variant": k} for k, v in sides.items()]
    run(records, "client_specific", 0, rows)
    product = present(*records.both, tmp_path, OPTIONS)
    assert not product.proven_hold
