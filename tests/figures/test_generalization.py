"""The section `generalization` against values worked out by hand, and with parts missing."""

import polars as pl
import pytest
from synthetic import Records, student
from synthetic_experiments import training_config
from synthetic_generalization import (
    LAYERS,
    OPTIONS,
    estimate,
    everything,
    gaussian,
    measured,
    statement,
    trained,
)
from written_files import in_order

from figures.generalization import content, present, summarise
from figures.generalization.draw_layers import batch_marks, layer_marks
from figures.generalization.draw_terms import bars
from figures.generalization.names import layer_order
from figures.selection import of


def run(records, policy, seed, rows, fold="mnist-m", status="complete", **manifest):
    """A run of the study "divergence" with these rows."""
    training = training_config("fedavg", policy, seed, fold)
    records.add({"study": "divergence", "training": training, "held_out": fold}, rows, status)
    list(records.manifests.values())[-1].update(manifest)
    return records


def distances(values, variant, layer="layer 2", metric="divergence", **more):
    """Values: seen client -> d(h)."""
    where = {"split": layer, "variant": variant, **more}
    return [estimate(metric, v, client=c, **where) for c, v in values.items()]


def made(records):
    return summarise(*records.both)


def claims(records):
    return {claim.id: claim for claim in content(made(records)).claims}


def table(summary, name):
    (found,) = [t for t in content(summary).tables if t.name == name]
    return found


# ---- divergence


def test_divergence_is_the_mean_over_seen_clients_without_their_mixture():
    records = Records()
    for seed in range(2):
        values = {"mnist": 1.0 + 0.1 * seed, "optdigits": 0.6, "mixture": 2.0}
        run(records, "aggregated", seed, distances(values, "aggregated"))
    cell = made(records).divergence["client mnist-m", "aggregated", "layer 2"]
    assert cell.values == pytest.approx({0: 0.8, 1: 0.85})


def test_differences_are_paired_by_seed_and_negative_where_divergence_shrinks():
    records = Records()
    for seed in range(3):
        run(records, "aggregated", seed, distances({"mnist": 1.8}, "aggregated"))
        rows = distances({"mnist": 1.0 + 0.1 * seed}, "client_specific")
        rows += distances({"mnist": 0.4 + 0.05 * seed}, "whitened")
        run(records, "client_specific", seed, rows)
    summary = made(records)
    found = summary.differences["client-specific", "client mnist-m", "layer 2"].difference
    expected = student([-0.8, -0.7, -0.6])
    assert (found.mean, found.lower, found.upper) == pytest.approx(expected)
    claim = claims(records)["divergence.client-specific"]
    assert claim.interval == pytest.approx(expected[1:]) and claim.verdict == "supported"
    found = summary.differences["whitened", "client mnist-m", "layer 2"].difference
    assert found.mean == pytest.approx(-0.65)
    # One client held out: the mean over held-out clients says it all.
    assert not [name for name in claims(records) if name.startswith("divergence.client.")]


def test_more_divergence_with_client_specific_bn_contradicts():
    records = Records()
    for seed in range(3):
        run(records, "aggregated", seed, distances({"mnist": 0.5}, "aggregated"))
        rows = distances({"mnist": 0.9 + 0.01 * seed}, "client_specific")
        run(records, "client_specific", seed, rows)
    assert claims(records)["divergence.client-specific"].verdict == "contradicted"


def test_raw_inputs_serve_from_either_training():
    records = Records()
    raw = distances({"mnist": 1.7}, "raw", "input")
    run(records, "aggregated", 0, raw)
    run(records, "client_specific", 0, raw)
    run(records, "client_specific", 1, raw)
    cell = made(records).divergence["client mnist-m", "raw", "input"]
    assert cell.values == pytest.approx({0: 1.7, 1: 1.7})


def test_layers_come_in_the_order_of_the_network():
    assert layer_order(["layer 10", "layer 2", "input", "odd", "layer 2"]) == [
        "input",
        "layer 2",
        "layer 10",
        "odd",
    ]


def test_the_last_layer_alone_is_enough():
    records = Records()
    for seed in range(2):
        for policy in ("aggregated", "client_specific"):
            measured(records, policy, "mnist-m", seed, layers=("layer 7",))
    summary = made(records)
    assert summary.layers == ["input", "layer 7"] and summary.last == "layer 7"
    assert set(content(summary).drawings) == {"layers", "terms", "batches", "scatter"}
    assert "layer 7" in claims(records)["divergence.whitened"].claim


def test_negative_divergence_is_not_clipped():
    records = Records()
    run(records, "client_specific", 0, distances({"mnist": -0.1, "optdigits": -0.2}, "whitened"))
    marks = layer_marks(made(records))
    assert marks["mean"].to_list() == pytest.approx([-0.15])
    assert "−0.150" in table(made(records), "divergences").shown["whitened"][0]


def test_divergence_by_batches_is_held_against_aggregated_bn():
    records = Records()
    for seed in range(2):
        run(records, "aggregated", seed, distances({"mnist": 1.9}, "aggregated"))
        rows = distances({"mnist": 0.9}, "client_specific")
        for t, value in ((1, 1.5 + 0.1 * seed), (8, 1.0)):
            after = distances(
                {"mnist": value}, "client_specific", metric="divergence_after", samples=t
            )
            rows += after
        run(records, "client_specific", seed, rows)
    summary = made(records)
    marks = batch_marks(summary).filter(panel="client mnist-m").sort("series", "place")
    found = marks.select("series", "place", "mean").rows()
    assert found == [
        ("aggregated", 0.0, pytest.approx(1.9)),
        ("client_specific", 0.0, pytest.approx(0.9)),
        ("client_specific", 1.0, pytest.approx(1.55)),
        ("client_specific", 8.0, pytest.approx(1.0)),
    ]
    assert summary.claimed["batches"].difference.mean == pytest.approx(-0.55)
    assert "after 8 it is smaller than after 1" in claims(records)["divergence.batches"].claim


# ---- terms


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
    # Without capacities: 0.1 + 0.4 + 0.2 and 0.2 + 0.6 + 0.2.
    assert sums.values == pytest.approx({0: 0.7, 1: 1.0})
    shown = table(summary, "terms").shown
    assert shown["half the divergence"][0] == "≥ 0.400"
    assert shown["ideal joint error"][0] == "0.100 to 0.300"
    assert shown["kind"][0] == "diagnostic"
    assert "diagnostic, not a bound" in content(summary).drawings["terms"].title


def test_every_term_says_which_function_computes_it():
    frame = table(made(trained(seeds=1)), "terms").frame
    assert not frame.filter(pl.col("computed_by") == "").height
    named = frame.select("variant", "split", "computed_by").unique()
    eighteen = of(named, variant="18", split="half the divergence")["computed_by"].to_list()
    assert eighteen == ["theory.corollary_iii9"]
    routes = table(made(trained(seeds=1)), "routes").frame
    assert routes["route"].str.starts_with("how ").sum() == 20  # four statements, five terms


def test_functions_that_tables_name_are_there():
    theory = pytest.importorskip("theory")
    from figures.generalization.term_layouts import FUNCTIONS

    for name in FUNCTIONS.values():
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


def test_one_seed_shows_the_clopper_pearson_interval_of_its_error():
    summary = made(trained(seeds=1))
    row = bars(summary).row(0, named=True)
    assert row["error_upper"] - row["error"] == pytest.approx(0.03)
    assert "Clopper-Pearson" in content(summary).drawings["terms"].caption


# ---- divergence and accuracy


def test_points_hold_reduction_and_gain_per_client_and_seed():
    records = Records()
    for seed in range(2):
        for fold in ("mnist", "mnist-m"):
            error = {"client": fold, "variant": "server"}
            rows = distances({"optdigits": 1.8}, "aggregated")
            rows.append({"metric": "external_error", "value": 0.5, **error})
            run(records, "aggregated", seed, rows, fold)
            rows = distances({"optdigits": 1.0 - 0.1 * seed}, "client_specific")
            error |= {"variant": "adapted"}
            rows.append({"metric": "external_error", "value": 0.4 - 0.05 * seed, **error})
            run(records, "client_specific", seed, rows, fold)
    summary = made(records)
    assert summary.points.rows() == [
        (fold, seed, pytest.approx(0.8 + 0.1 * seed), pytest.approx(0.1 + 0.05 * seed))
        for fold in ("mnist", "mnist-m")
        for seed in range(2)
    ]
    assert (summary.rank.n, summary.rank.groups, summary.rank.value) == (4, 2, 1.0)
    claim = claims(records)["gain.rank"]
    assert claim.verdict == "inconclusive" and "below four" in claim.measured
    assert "not independent" in content(summary).drawings["scatter"].caption


def test_the_rank_correlation_of_equal_points_is_said_to_be_none():
    records = trained(seeds=1, folds=("mnist",))
    claim = claims(records)["gain.rank"]
    assert "no correlation" in claim.measured and claim.interval is None


# ---- Eq. (15)


def test_eq15_as_printed_fails_where_models_are_right_at_home_only():
    records = Records()
    sides = {"measured": 25.0, "printed": 0.0, "convex": 25.0}
    rows = [{"metric": "mixture_risk", "value": v, "variant": k} for k, v in sides.items()]
    run(records, "client_specific", 0, rows)
    found = claims(records)
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


# ---- trouble


def test_a_diverged_training_is_named_and_its_seed_left_out():
    records = Records()
    for seed in range(3):
        gone = 4 if seed == 1 else None
        measured(records, "aggregated", "mnist-m", seed, diverged=gone)
        measured(records, "client_specific", "mnist-m", seed)
    summary = made(records)
    cell = summary.divergence["client mnist-m", "aggregated", "layer 3"]
    assert (set(cell.values), cell.diverged) == ({0, 2}, {1: 4})
    (note,) = content(summary).notes
    assert "in round 4" in note and "without mnist-m" in note
    assert "hollow marks lack seeds that diverged" in content(summary).drawings["layers"].caption
    assert set(layer_marks(summary).filter(series="aggregated")["hollow"]) == {True}
    assert summary.points["seed"].to_list() == [0, 2]


def test_where_everything_diverged_there_is_nothing_to_draw(tmp_path, coarse):
    records = Records()
    for policy in ("aggregated", "client_specific"):
        measured(records, policy, "mnist-m", 0, diverged=2)
    summary = made(records)
    assert content(summary).drawings == {} and len(summary.diverged) == 2
    in_order(present(*records.both, tmp_path, OPTIONS), tmp_path)


@pytest.mark.parametrize(
    "policy",
    ["aggregated", "client_specific"],
)
def test_one_policy_alone_shows_what_it_can(policy, tmp_path, coarse):
    records = Records()
    measured(records, policy, "mnist-m", 0)
    product = present(*records.both, tmp_path, OPTIONS)
    in_order(product, tmp_path)
    assert not [c for c in product.claims if c.id == "divergence.client-specific"]
    assert "scatter" not in {path.stem for path in product.figures}


def test_missing_features_leave_gaps():
    records = Records()
    for seed in range(2):
        run(records, "aggregated", seed, distances({"mnist": 1.8}, "aggregated"))
        run(records, "client_specific", seed, distances({"mnist": 1.0}, "client_specific"))
    summary = made(records)
    assert list(table(summary, "divergences").layout.columns) == [
        "client",
        "layer",
        "aggregated",
        "client_specific",
    ]
    assert "divergence.whitened" not in claims(records)


def test_nothing_at_all_is_no_failure(tmp_path):
    product = present(*Records().both, tmp_path, OPTIONS)
    assert product.claims == [] and product.figures == []


def test_more_clients_than_a_page_holds_are_in_the_csv():
    records = Records()
    for k in range(10):
        run(records, "aggregated", 0, distances({"mnist": 1.0}, "aggregated"), f"c{k}")
    summary = made(records)
    found = table(summary, "divergences")
    assert len(set(found.frame["held_out"])) == 11 and len(set(found.shown["client"])) == 9
    assert "2 more clients" in found.layout.caption
    assert "tables have more clients" in content(summary).drawings["layers"].caption


def test_the_whole_section_is_in_order(tmp_path, coarse):
    product = present(*everything().both, tmp_path, OPTIONS)
    in_order(product, tmp_path)
    assert product.proven_hold
    assert [path.stem for path in product.figures] == [
        "layers",
        "terms",
        "batches",
        "scatter",
        "gaussian_terms",
        "residual",
    ]
    names = {path.name for path in product.written}
    for name in ("divergences", "cross", "terms", "mixtures", "points", "gaussian_draws"):
        assert f"all_{name}.csv" in names
    rows = pl.read_csv(tmp_path / "tables" / "all_divergences.csv")
    assert rows.height == of(everything().both[0], metric="divergence").height * 2 + (
        of(everything().both[0], metric=["divergence_after", "pair_divergence"])
        .filter(pl.col("draw").is_null())
        .height
    )


def test_sides_stay_the_same_whatever_the_order_of_the_runs():
    records = trained(seeds=2)
    rows, manifests = records.both
    turned = summarise(rows.reverse(), dict(reversed(manifests.items())))
    there = summarise(rows, manifests)
    assert turned.divergence.keys() == there.divergence.keys()
    for key, cell in there.divergence.items():
        assert turned.divergence[key].interval.mean == pytest.approx(cell.interval.mean, abs=1e-12)
    assert turned.rank.value == there.rank.value


def test_gaussian_clients_alone_make_a_section(tmp_path, coarse):
    product = present(*gaussian().both, tmp_path, OPTIONS)
    in_order(product, tmp_path)
    assert {path.stem for path in product.figures} == {"gaussian_terms", "residual"}
    assert LAYERS and {c.id for c in product.claims} == {
        "gaussian.bound",
        "gaussian.whitened-zero",
        "gaussian.per-unit-residual",
    }
