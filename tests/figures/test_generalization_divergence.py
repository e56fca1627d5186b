"""Divergence by layer and by test batches, against values worked out by hand."""

import pytest
from synthetic import Records, student
from synthetic_generalization import distances, measured, run, trained

from figures.generalization import content, summarise
from figures.generalization.draw_layers import batch_marks, layer_marks
from figures.generalization.names import layer_order


def made(records):
    return summarise(*records.both)


def claims(records):
    return {claim.id: claim for claim in content(made(records)).claims}


def table(summary, name):
    (found,) = [t for t in content(summary).tables if t.name == name]
    return found


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
        rows += distances({"mnist": 0.7}, "per_unit")
        rows += distances({"mnist": 0.4 + 0.05 * seed}, "whitened")
        run(records, "client_specific", seed, rows)
    summary = made(records)
    found = summary.differences["client-specific", "client mnist-m", "layer 2"].difference
    expected = student([-0.8, -0.7, -0.6])
    assert (found.mean, found.lower, found.upper) == pytest.approx(expected)
    claim = claims(records)["divergence.client-specific"]
    assert claim.interval == pytest.approx(expected[1:]) and claim.verdict == "supported"
    for name, mean in {"whitened": -0.25, "fresh": -1.1, "stale": -0.4}.items():
        found = summary.differences[name, "client mnist-m", "layer 2"].difference
        assert found.mean == pytest.approx(mean)
    found = claims(records)
    assert found["divergence.fresh"].measured.startswith("−1.1")
    assert found["divergence.whitened-half-spaces"].interval == pytest.approx(
        student([-0.3, -0.25, -0.2])[1:]
    )
    # One client held out: the mean over held-out clients says it all.
    assert not [name for name in claims(records) if name.startswith("divergence.client.")]


def test_more_divergence_with_client_specific_bn_contradicts():
    records = Records()
    for seed in range(3):
        run(records, "aggregated", seed, distances({"mnist": 0.5}, "aggregated"))
        rows = distances({"mnist": 0.9 + 0.01 * seed}, "client_specific")
        run(records, "client_specific", seed, rows)
    assert claims(records)["divergence.client-specific"].verdict == "contradicted"


def test_layers_before_the_last_are_judged_by_themselves():
    records = Records()
    for seed in range(3):
        rows = distances({"mnist": 1.6}, "aggregated", "layer 1")
        rows += distances({"mnist": 1.9}, "aggregated", "layer 2")
        run(records, "aggregated", seed, rows)
        rows = distances({"mnist": 1.9 + 0.01 * seed}, "client_specific", "layer 1")
        rows += distances({"mnist": 1.2 + 0.01 * seed}, "client_specific", "layer 2")
        run(records, "client_specific", seed, rows)
    found = claims(records)
    first = found["divergence.layer-1"]
    assert first.verdict == "contradicted" and "in layer 1 between" in first.claim
    assert first.interval == pytest.approx(student([0.3, 0.31, 0.32])[1:])
    assert "divergence.layer-2" not in found
    assert "in layer 2 between" in found["divergence.client-specific"].claim


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
    names = {"layers", "last_layer", "terms", "batches", "scatter"}
    assert set(content(summary).drawings) == names
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
        rows += distances({"mnist": 0.1}, "per_unit", metric="divergence_floor")
        for t, value in ((1, 1.5 + 0.1 * seed), (8, 1.0)):
            for less, name in ((0, "client_specific"), (0.2 / t, "per_unit")):
                at = {"metric": "divergence_after", "samples": t}
                rows += distances({"mnist": value - less}, name, **at)
        run(records, "client_specific", seed, rows)
    summary = made(records)
    marks = batch_marks(summary).filter(panel="client mnist-m").sort("series", "place")
    found = marks.select("series", "place", "mean").rows()
    assert found == [
        ("aggregated", 0.0, pytest.approx(1.9)),
        ("client_specific", 1.0, pytest.approx(1.55)),
        ("client_specific", 8.0, pytest.approx(1.0)),
        ("floor", 0.0, pytest.approx(0.1)),
        ("per_unit", 1.0, pytest.approx(1.35)),
        ("per_unit", 8.0, pytest.approx(0.975)),
    ]
    assert summary.claimed["batches"].difference.mean == pytest.approx(-0.375)
    # At the most batches both sides have the same features of the client held out.
    assert summary.claimed["stale"].difference.mean == pytest.approx(0.025)
    assert "after 8 it is smaller than after 1" in claims(records)["divergence.batches"].claim


@pytest.mark.parametrize(
    ("variant", "identity"), [("whitened", "whitened-floor"), ("per_unit", "per-unit-floor")]
)
def test_what_known_statistics_leave_is_held_against_estimation_alone(variant, identity):
    records = Records()
    for seed in range(3):
        rows = distances({"mnist": 0.5 + 0.01 * seed}, variant)
        rows += distances({"mnist": 0.2}, variant, metric="divergence_floor")
        rows += distances({"mnist": 0.9 + 0.01 * seed}, variant, metric="pair_divergence")
        rows += distances({"mnist": 1.2}, variant, metric="pair_divergence_floor")
        run(records, "client_specific", seed, rows)
    summary = made(records)
    floor = summary.floor["client mnist-m", variant, "layer 2"]
    assert floor.values == {0: 0.2, 1: 0.2, 2: 0.2}
    found = claims(records)[f"divergence.{identity}"]
    assert found.interval == pytest.approx(student([0.3, 0.31, 0.32])[1:])
    assert found.verdict == "supported"
    pairs = claims(records)[f"divergence.{identity}-pairs"]
    assert pairs.interval == pytest.approx(student([-0.3, -0.29, -0.28])[1:])
    assert pairs.verdict == "contradicted"
    marks = layer_marks(summary).filter(series=f"{variant} floor", panel="client mnist-m")
    assert marks.select("place", "mean").rows() == [(0.0, pytest.approx(0.2))]
    assert "one Gaussian law" in content(summary).drawings["layers"].caption


def test_the_figure_of_pairs_is_announced_only_where_there_is_one():
    pairs = distances({"mnist": 0.9}, "whitened", metric="pair_divergence")
    for more in ([], pairs):
        rows = distances({"mnist": 0.5}, "whitened") + more
        rows += distances({"mnist": 0.2}, "whitened", metric="divergence_floor")
        run(records := Records(), "client_specific", 0, rows)
        drawings = content(made(records)).drawings
        assert ("last_layer" in drawings) == bool(more)
        assert ("the next figure" in drawings["layers"].caption) == bool(more)


def test_full_whitening_is_held_against_the_diagonal_one_by_pairs():
    """Half-spaces may see nothing of correlations; then pairs alone decide."""
    records = Records()
    for seed in range(3):
        rows = distances({"mnist": 0.3}, "client_specific")
        for name, value in (("per_unit", 1.1 + 0.01 * seed), ("whitened", 0.5)):
            rows += distances({"mnist": 0.2 - 0.01 * (seed - 1)}, name)
            rows += distances({"mnist": value}, name, metric="pair_divergence")
        run(records, "client_specific", seed, rows)
    found = claims(records)
    assert found["divergence.whitened"].interval == pytest.approx(student([-0.6, -0.61, -0.62])[1:])
    assert found["divergence.whitened"].verdict == "supported"
    assert "d_HΔH" in found["divergence.whitened"].claim
    assert found["divergence.whitened-half-spaces"].verdict == "inconclusive"


def test_all_planned_claims_are_one_family():
    summary = made(trained())
    names = {"client-specific", "fresh", "stale", "whitened pairs", "whitened", "batches"}
    names |= {f"{name} {of}" for name in ("whitened", "per_unit") for of in ("floor", "pair floor")}
    assert summary.claimed.keys() == names | {"terms", "gap"}
    raw = min(one.difference.p_value for one in summary.claimed.values())
    least = min(one.adjusted for one in summary.claimed.values())
    assert least == pytest.approx(12 * raw)


def test_features_after_scale_and_shift_are_in_the_csv_alone():
    summary = made(trained(seeds=1))
    assert "affine" not in set(layer_marks(summary)["series"])
    found = table(summary, "divergences")
    assert "affine" in set(found.frame["features"]) and "affine" not in found.layout.columns
