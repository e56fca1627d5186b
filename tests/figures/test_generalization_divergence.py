"""Divergence by layer and by test batches, against values worked out by hand."""

import pytest
from synthetic import Records, student
from synthetic_generalization import distances, measured, run

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


def test_what_whitening_leaves_is_held_against_estimation_alone():
    records = Records()
    for seed in range(3):
        rows = distances({"mnist": 0.5 + 0.01 * seed}, "whitened")
        rows += distances({"mnist": 0.2}, "whitened", metric="divergence_floor")
        run(records, "client_specific", seed, rows)
    summary = made(records)
    assert summary.floor["client mnist-m", "layer 2"].values == {0: 0.2, 1: 0.2, 2: 0.2}
    found = claims(records)["divergence.whitened-floor"]
    assert found.interval == pytest.approx(student([0.3, 0.31, 0.32])[1:])
    assert found.verdict == "supported"
    marks = layer_marks(summary).filter(series="floor", panel="client mnist-m")
    assert marks.select("place", "mean").rows() == [(0.0, pytest.approx(0.2))]
    assert "one Gaussian law" in content(summary).drawings["layers"].caption
