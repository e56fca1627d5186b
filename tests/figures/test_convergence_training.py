"""The tables of the training against values worked out by hand."""

import warnings

import pytest
from synthetic import Records, student, training

from figures.convergence import judge, summarise
from figures.selection import of

# A client's loss is the number given, the other's half of it: their mean is three quarters.
MEAN = 0.75


def made(records):
    return summarise(*records.both)


def both(aggregated, specific, **more):
    records = Records()
    for seed, losses in aggregated.items():
        training(records, "aggregated", seed, losses, **more)
    for seed, losses in specific.items():
        training(records, "client_specific", seed, losses, **more)
    return records


def one(frame, **where):
    (row,) = of(frame, **where).iter_rows(named=True)
    return row


def test_curves_are_means_over_clients_then_seeds_without_the_server():
    records = both({0: [4.0, 2.0], 1: [4.0, 1.0], 2: [4.0, 1.2]}, {0: [4.0, 1.0]})
    table = made(records).training
    assert table.height == 2 * 2 * 2 * 2  # policies, splits, metrics, rounds
    row = one(table, bn_policy="aggregated", split="train", metric="loss", round=1)
    assert (row["mean"], row["lower"], row["upper"]) == pytest.approx(
        student([2.0 * MEAN, 1.0 * MEAN, 1.2 * MEAN])
    )
    assert row["n"] == 3
    single = one(table, bn_policy="client_specific", split="test", metric="accuracy", round=1)
    assert (single["mean"], single["lower"], single["n"]) == (pytest.approx(0.75), None, 1)


def test_clients_are_shown_after_the_last_round():
    records = Records()
    for seed, accuracy in enumerate((0.6, 0.7, 0.8)):
        training(records, "aggregated", seed, [4.0, 2.0, 1.0], accuracy)
    table = made(records).clients
    row = one(table, client="my-own")
    assert (row["mean"], row["lower"], row["upper"]) == pytest.approx(student([0.5, 0.6, 0.7]))
    assert table["client"].to_list() == ["mnist", "my-own", "server"]


def test_differences_are_paired_by_seed_not_by_order():
    records = both(
        {0: [4.0, 2.0, 1.0], 1: [4.0, 3.0, 2.0], 2: [4.0, 4.0, 3.0]},
        {2: [4.0, 3.0, 2.5], 1: [4.0, 2.5, 1.6], 0: [4.0, 1.5, 0.7]},
    )
    found = made(records).differences
    assert list(found) == [
        "train loss, last round",
        "train loss, mean over rounds",
        "test accuracy, last round",
        "test accuracy, mean over rounds",
    ]
    last = found["train loss, last round"]
    expected = student([-0.3 * MEAN, -0.4 * MEAN, -0.5 * MEAN])
    assert (last.mean, last.lower, last.upper) == pytest.approx(expected)
    # Round 0 is before training and counts for nothing.
    whole = found["train loss, mean over rounds"]
    expected = student([-0.4 * MEAN, -0.45 * MEAN, -0.75 * MEAN])
    assert (whole.mean, whole.lower, whole.upper) == pytest.approx(expected)
    accuracy = found["test accuracy, last round"]
    assert (accuracy.mean, accuracy.p_value) == (0.0, 1.0)


def test_paired_curves_are_differences_per_round():
    records = both(
        {0: [4.0, 2.0], 1: [4.0, 3.0], 2: [4.0, 9.0]}, {1: [4.0, 2.5], 0: [4.0, 1.0], 7: [4.0, 0.0]}
    )
    table = made(records).paired
    rows = of(table, split="train", metric="loss").sort("round")
    assert rows["mean"].to_list() == pytest.approx([0.0, -0.75 * MEAN])
    assert rows["n"].to_list() == [2, 2]


def test_a_diverged_seed_is_named_and_left_out_of_means():
    records = both({0: [4.0, 2.0, 1.0], 1: [4.0, 3.0, 1.0]}, {0: [4.0, 1.0, 0.5]})
    training(records, "client_specific", 1, [4.0, 50.0], status="diverged")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the claims say it, not a line on standard error
        summary = made(records)
    assert summary.diverged == ["client-specific BN, seed 1"]
    assert one(
        summary.training, bn_policy="client_specific", split="train", metric="loss", round=1
    )["mean"] == pytest.approx(1.0 * MEAN)
    assert summary.differences["train loss, last round"].n == 1
    assert summary.paired["n"].max() == 1
    claims = [claim for claim in judge(summary) if claim.id.startswith("cnn.")]
    assert len(claims) == 4
    assert all(c.measured.endswith(", 1 seed without a pair left out") for c in claims)


def test_claims_count_the_seeds_without_a_pair_and_say_nothing_where_all_are_paired():
    paired = {seed: [4.0, 2.0 + 0.1 * seed] for seed in range(3)}
    more = {**paired, 7: [4.0, 1.0], 8: [4.0, 1.0]}
    for one, other, said in ((paired, paired, False), (more, paired, True), (paired, more, True)):
        claims = [c for c in judge(made(both(one, other))) if c.id.startswith("cnn.")]
        assert claims and all("over 3 seeds" in str(c.measured) for c in claims)
        ends = {str(c.measured).endswith(", 2 seeds without a pair left out") for c in claims}
        assert ends == {said}


def test_no_seed_in_common_leaves_nothing_to_pair():
    summary = made(both({0: [4.0, 2.0]}, {1: [4.0, 1.0]}))
    assert summary.differences == {} and summary.paired.is_empty()
    assert summary.training.height == 16


def test_rounds_to_a_target_are_censored_and_a_diverged_seed_never_arrives():
    records = both(
        {0: [4.0, 1.0, 0.2], 1: [4.0, 3.0, 1.0], 2: [4.0, 4.0, 4.0]}, {0: [4.0, 0.1, 0.1]}
    )
    training(records, "client_specific", 1, [4.0, 9.0], status="diverged")
    training(records, "client_specific", 2, [4.0, 9.0], status="diverged")
    table = made(records).rounds
    text = {(row["bn_policy"], row["target"]): row["rounds"] for row in table.rows(named=True)}
    # Means over clients: .75, .15 for seed 0; 2.25, .75 for seed 1; 3, 3 for seed 2.
    assert text["aggregated", 1.0] == "2 (1 to >2), 2 of 3 seeds reached"
    assert text["aggregated", 0.5] == ">2 (2 to >2), 1 of 3 seeds reached"
    assert text["client_specific", 1.0] == ">2 (1 to >2), 1 of 3 seeds reached"


def test_one_policy_alone_has_curves_and_no_differences():
    summary = made(both({0: [4.0, 2.0], 1: [4.0, 1.0]}, {}))
    assert summary.differences == {} and summary.paired.is_empty()
    assert set(summary.rounds["bn_policy"]) == {"aggregated"}
