"""The section `generalization` as a whole, with parts missing and with trouble."""

import polars as pl
import pytest
from synthetic import Records
from synthetic_generalization import (
    OPTIONS,
    distances,
    everything,
    measured,
    run,
    trained,
)
from synthetic_spreads import gaussian
from written_files import in_order

from figures.generalization import content, present, summarise
from figures.generalization.draw_layers import layer_marks
from figures.generalization.names import between


def made(records):
    return summarise(*records.both)


def claims(records):
    return {claim.id: claim for claim in content(made(records)).claims}


def table(summary, name):
    (found,) = [t for t in content(summary).tables if t.name == name]
    return found


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
        "last_layer",
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
    # 12 trainings of either policy, 3 seen clients and their mixture, 3 layers and the input.
    counts = dict(rows["metric"].value_counts().rows())
    assert counts["divergence"] == counts["divergence_lower"] == 12 * 4 * (1 + 3 + 1 + 12)
    assert counts["divergence_after"] == 12 * 4 * 5 * 2
    assert counts["divergence_floor"] == counts["pair_divergence_floor"] == 12 * 3 * 2
    # The input with either policy, the last layer with one and with three kinds of features.
    assert counts["pair_divergence"] == 12 * 3 * (2 + 1 + 3)
    crossed = pl.read_csv(tmp_path / "tables" / "all_cross.csv")
    assert set(crossed["metric"]) == {
        f"cross_{name}{how}" for name in ("risk", "error") for how in ("", "_on_inputs")
    }


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
    assert {c.id for c in product.claims} == {
        "gaussian.bound",
        "gaussian.whitened-zero",
        "gaussian.per-unit-residual",
    }


def test_what_is_measured_is_told_to_its_end():
    """Readers of claims.json see a range in words, where no difference is judged."""
    found = {claim.id: claim for claim in content(summarise(*everything().both)).claims}
    told = [name for name in found if name.startswith(("eq15.", "gaussian.per-unit-"))]
    told = [name for name in [*told, "terms.vacuous"] if found[name].interval is not None]
    assert len(told) >= 5
    for name in told:
        assert found[name].measured.endswith(between(found[name].interval)), name
