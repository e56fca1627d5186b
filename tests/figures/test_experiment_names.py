"""What methods and clients are called, and the phrases that captions share."""

import pytest
from synthetic import Records
from synthetic_experiments import trained, training_config

from figures.experiments.cells import Cell
from figures.experiments.comparisons import averaged, compare, complete, differences_of, pooled
from figures.experiments.frame import runs
from figures.experiments.names import cell_label, client_titles, method_order, slugs
from figures.experiments.wide import headings, left_out
from figures.experiments.words import (
    equal,
    hollow,
    in_rounds,
    lost,
    means,
    over_seeds,
    what_diverged,
)


def test_methods_stand_as_in_table_one_and_others_behind_them():
    assert method_order(["mine", "moon", "fedavg", "moon"]) == ["fedavg", "moon", "mine"]
    assert cell_label("fedavg", "client_specific") == "FedBN"
    assert cell_label("fedavg", "aggregated") == "FedAvg"


def test_ids_of_claims_are_words_each_its_own():
    found = slugs(["Hôpital 1", "hôpital-1", "mnist-m", "→"])
    assert list(found.values()) == ["h-pital-1", "h-pital-1-2", "mnist-m", "client"]
    many = [f"site {k}" for k in range(60)]
    assert len(set(client_titles(many).values())) == 60


def test_a_page_holds_eight_clients_and_says_how_many_more_there_are():
    many = [f"site {k}" for k in range(10)]
    assert len(headings(many, mean="mean")) == 9
    assert left_out(many) == " The CSV has 2 more clients." and left_out(many[:8]) == ""


def test_captions_say_which_intervals_there_are():
    assert means([1, 1]) == means([]) == "one seed, so no intervals"
    assert means([3]) == "mean over 3 seeds; bars: 95 % Student t intervals"
    assert means([10], "bands") == "mean over 10 seeds; bands: 95 % BCa bootstrap intervals"
    assert means([2, 3]) == "mean over 2 to 3 seeds; bars: 95 % Student t intervals"
    assert means([2, 1]) == (
        "mean over 1 to 2 seeds; bars: 95 % Student t intervals, none of one seed"
    )
    assert "Student t or BCa bootstrap intervals" in means([9, 10])
    assert over_seeds([1]) == "one seed" and over_seeds([3, 3]) == "mean over 3 seeds"


def test_captions_name_what_diverged():
    cells = {"a": Cell({0: 0.5}, {1: 7}), "b": Cell({0: 0.5, 1: 0.5}), "c": Cell({}, {0: 2, 1: 3})}
    assert what_diverged(cells) == (
        " Left out: a: diverged (round 7), 1 of 2 seeds; c: diverged (rounds 2 to 3), all 2 seeds."
    )
    assert what_diverged({"b": cells["b"]}) == ""
    assert hollow(cells.values()) == "; hollow marks lack seeds that diverged"
    # Where no mark is there, none is hollow.
    assert hollow([cells["b"], cells["c"]]) == ""


def test_a_difference_without_an_interval_is_explained():
    same, other = Cell({0: 0.5, 1: 0.6}), Cell({0: 0.4, 1: 0.5})
    spread = compare({"a": (same, Cell({0: 0.4, 1: 0.4}))})
    assert equal(differences_of(spread)) == ""
    # Of one seed there is none either, which captions say by the number of seeds.
    assert equal(differences_of(compare({"a": (Cell({0: 0.5}), Cell({0: 0.4}))}))) == ""
    bare = compare({"b": (same, other)}) | spread
    assert equal(differences_of(bare)) == " (no interval where all differences are equal)"


def test_one_round_is_no_rounds():
    assert in_rounds([1, 1]) == "1 round" and in_rounds([20]) == "20 rounds"
    assert in_rounds([4, 1, 4]) == "4, 1 rounds"


def test_what_diverged_is_said_once_with_what_it_was():
    config = training_config("fedavg", "aggregated", 2, "mnist", fraction=0.5)
    records = trained(trained(Records(), config, 0.5, diverged=5), config, 0.5, diverged=5)
    (sentence,) = lost(runs(records.both[1]))
    assert sentence == (
        "This training diverged in round 5 and is left out: fedavg, aggregated BN, seed 2, E = 1, "
        "share 0.5, without mnist."
    )


def test_what_diverged_is_said_with_its_step_where_there_are_several():
    records = Records()
    for lr in (0.01, 0.1, 1.0):
        config = training_config("fedavg", "aggregated", 0, lr=lr)
        trained(records, config, 0.5, diverged=None if lr == 0.01 else 2)
    ends = [sentence.partition("E = 1")[2] for sentence in lost(runs(records.both[1]))]
    assert ends == [", lr = 0.1.", ", lr = 1."]


def test_a_mean_over_methods_takes_those_with_every_seed():
    table = {
        ("a", "aggregated", "mean"): Cell({0: 0.1, 1: 0.2}),
        ("a", "client_specific", "mean"): Cell({0: 0.3, 1: 0.5}),
        ("b", "aggregated", "mean"): Cell({0: 0.3, 1: 0.4}),
        ("b", "client_specific", "mean"): Cell({0: 0.5, 1: 0.7}),
        ("c", "aggregated", "mean"): Cell({0: 0.9}, {1: 7}),
        ("c", "client_specific", "mean"): Cell({0: 0.9, 1: 0.9}),
    }
    full = complete(table, ["a", "b", "c"], "mean")
    assert full == ["a", "b"]
    specific, aggregated = averaged(table, full, "mean")
    assert specific.values == pytest.approx({0: 0.4, 1: 0.6})
    assert aggregated.values == pytest.approx({0: 0.2, 1: 0.3})
    assert pooled([Cell({0: 1.0, 1: 1.0}), Cell({1: 3.0})]).values == {1: 2.0}
    assert pooled([]).values == {} and complete({}, [], "mean") == []


def test_pairs_without_a_common_seed_are_no_comparison():
    pairs = {"no": (Cell({0: 0.1}), Cell({1: 0.1})), "none": (None, Cell({0: 0.1}))}
    pairs["yes"] = (Cell({0: 0.3, 1: 0.5, 2: 0.6}), Cell({0: 0.1, 1: 0.2, 2: 0.2}))
    found = compare(pairs)
    assert list(found) == ["yes"]
    # A family of one: Holm's correction changes nothing.
    assert found["yes"].adjusted == found["yes"].difference.p_value
    assert compare({}) == {}
