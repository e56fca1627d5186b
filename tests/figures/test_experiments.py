"""What the experiments share: runs, measures and cells, against values worked out by hand."""

import pytest
from synthetic import Records, student
from synthetic_experiments import LOSSES, pair, served, trained, training_config

from figures.experiments import measures
from figures.experiments.cells import (
    Cell,
    cells,
    column_types,
    difference,
    difference_columns,
    difference_text,
    difference_types,
    measured,
)
from figures.experiments.frame import RUN, joined, runs
from figures.experiments.measures import with_fedbn
from figures.selection import of

KEY = ["algorithm", "bn_policy"]


def made(records):
    rows, manifests = records.both
    return joined(rows, manifests), runs(manifests)


def test_every_run_has_its_settings_beside_it():
    config = training_config(
        "moon",
        "aggregated",
        2,
        "mnist-m",
        settings={"mu": 5, "a": 1},
        projection=256,
        rounds=40,
        lr=0.3,
    )
    records = served(
        trained(Records(), config, 0.5, chosen="given", at_edge=["a", "mu"]),
        config,
        {"server": 0.4},
    )
    frame, every = made(records)
    assert list(every.columns) == list(RUN)
    first, second = every.rows(named=True)
    expected = {
        "study": "training",
        "algorithm": "moon",
        "bn_policy": "aggregated",
        "seed": 2,
        "held_out": "mnist-m",
        "settings": '{"a": 1, "mu": 5}',
        "chosen": "given",
        "at_edge": "a, mu",
        "model": "compact_cnn",
        "federation": "digits",
        "last_round": 40,
        "local_epochs": 1,
        "lr": 0.3,
        "weights": "size",
        "fraction": None,
        "per_domain": None,
        "projection": 256,
        "validation": None,
        "status": "complete",
        "diverged_in_round": None,
    }
    assert first == {"run": "0" * 16, **expected}
    # The external run has the columns of its training; nobody said where its settings come from.
    untold = {"chosen": None, "at_edge": None}
    assert second == {"run": f"{1:016x}", **expected, "study": "external", **untold}
    assert frame.height == records.both[0].height
    assert of(frame, study="external")["held_out"].unique().to_list() == ["mnist-m"]


def test_runs_without_rows_are_there_and_diverged():
    config = training_config("fedavg", "aggregated", 0, "mnist-m")
    records = trained(Records(), config, 0.5, diverged=3, losses={0: 2.0, 5: 1.0})
    frame, every = made(served(records, config, {"server": 0.4}, diverged=3))
    assert every["status"].to_list() == ["diverged", "diverged"]
    assert every["diverged_in_round"].to_list() == [3, 3]
    assert set(frame["round"]) == {0} and measures.external(frame).is_empty()


def test_internal_and_worst_are_of_the_training_clients_after_the_last_round():
    config = training_config("fedavg", "aggregated", 0, "mnist")
    accuracies = {"optdigits": 0.9, "mnist-m": 0.3, "synth-digits": 0.6}
    frame, _ = made(trained(Records(), config, accuracies))
    assert measures.internal(frame)["value"].to_list() == pytest.approx([(0.9 + 0.3 + 0.6) / 3])
    worst = measures.worst(frame)
    assert worst.select("value", "client").rows() == [(0.3, "mnist-m")]
    # Losses 1.2, 0.8, 0.6, 0.5 after the start, the same for every client.
    assert measures.mean_curve(frame, "loss", "train")["value"].to_list() == pytest.approx([0.775])
    curve = measures.curve(frame, "loss", "train")
    assert dict(curve["round", "value"].rows()) == pytest.approx(LOSSES)


def test_each_run_has_its_own_last_round():
    records = Records()
    for seed, losses in enumerate(({0: 2.0, 20: 1.0}, {0: 2.0, 40: 0.5})):
        config = training_config("fedavg", "aggregated", seed)
        trained(records, config, 0.5 + 0.1 * seed, losses)
    assert measures.internal(made(records)[0])["value"].to_list() == pytest.approx([0.5, 0.6])


def test_external_keeps_the_default_service_and_each_once():
    records, config = Records(), training_config("fedavg", "client_specific", 0, "mnist-m")
    served(records, config, {"server": 0.1, "adapted": 0.6, "batch": 0.4})
    served(records, config, {"adapted": 0.6})
    served(records, config, {"adapted": 0.7}, tau=0.5)
    served(records, config, {"adapted": 0.8}, samples=8)
    served(records, config, {"adapted": 0.2, "batch": 0.3}, order="sorted")
    frame, _ = made(records)
    found = measures.external(frame)
    assert dict(found["variant", "value"].rows()) == {"server": 0.1, "adapted": 0.6, "batch": 0.4}
    assert found.height == 3
    assert of(measures.external(frame, tau=None), variant="adapted").height == 2
    assert of(measures.external(frame, order=None), variant="adapted").height == 2
    every = measures.external(frame, tau=None, samples=None, order=None, metric="loss")
    assert every.height == 7


def test_fedbn_is_fedavg_with_client_specific_bn_unless_it_has_runs_of_its_own():
    records = Records()
    for policy in ("aggregated", "client_specific"):
        trained(records, training_config("fedavg", policy), 0.5)
    frame, every = made(records)
    assert of(with_fedbn(every), algorithm="fedbn")["bn_policy"].to_list() == ["client_specific"]
    assert with_fedbn(frame).height == frame.height * 3 // 2
    assert measures.internal(with_fedbn(frame)).height == 3
    trained(records, training_config("fedbn", "client_specific", 7), 0.5)
    _, every = made(records)
    assert of(with_fedbn(every), algorithm="fedbn")["seed"].to_list() == [7]


def test_a_seed_counts_with_all_its_folds_and_is_lost_where_one_diverged():
    records = Records()
    values = {0: (0.5, 0.7), 1: (0.6, 0.9), 2: (0.8, None), 3: (0.7, 7)}
    for seed, pair_of_folds in values.items():
        for fold, value in zip(("mnist-m", "synth-digits"), pair_of_folds, strict=True):
            config = training_config("fedavg", "aggregated", seed, fold)
            if isinstance(value, int):
                trained(records, config, 0.0, diverged=value)
            elif value is not None:
                trained(records, config, value)
    frame, every = made(records)
    cell = cells(measures.internal(frame), every, KEY)["fedavg", "aggregated"]
    assert cell.values == pytest.approx({0: 0.6, 1: 0.75})
    assert cell.diverged == {3: 7}
    alone = cells(measures.internal(frame), every, [*KEY, "held_out"])
    assert list(alone["fedavg", "aggregated", "mnist-m"].values) == [0, 1, 2, 3]
    assert alone["fedavg", "aggregated", "synth-digits"].diverged == {3: 7}


def test_cells_within_the_values_are_there_for_runs_that_all_diverged():
    records = pair(Records(), "fedavg", 0, (0.5, 0.4), 9)
    frame, every = made(records)
    found = cells(measures.external(frame), every, KEY, ["variant"])
    assert found["fedavg", "client_specific", "adapted"] == Cell({}, {0: 9})
    assert found["fedavg", "aggregated", "server"].values == pytest.approx({0: 0.4})


def test_the_first_round_of_divergence_counts_and_an_unknown_one_is_no_number():
    records = Records()
    for fold, gone in (("a", 9), ("b", 4)):
        trained(records, training_config("fedavg", "aggregated", 0, fold), 0.5, diverged=gone)
    _, every = made(records)
    empty = measures.internal(made(records)[0])
    assert cells(empty, every, KEY)["fedavg", "aggregated"].diverged == {0: 4}
    unknown = Cell({1: 0.5}, {0: None})
    assert unknown.text() == "50.0\ndiverged, 1 of 2 seeds"
    assert unknown.columns("x")["x_diverged_in_round"] is None


THREE = {0: 0.50, 1: 0.52, 2: 0.54}


@pytest.mark.parametrize(
    ("cell", "of", "text"),
    [
        # sd 0.02, half-width 4.3027 × 0.02 / √3 = 0.0497
        (Cell(THREE), 3, "52.0 ± 5.0"),
        (Cell(THREE), 5, "52.0 ± 5.0, n = 3"),
        (Cell({0: 0.5}), 1, "50.0"),
        (Cell(THREE, {3: 7}), 4, "52.0 ± 5.0\ndiverged (round 7)\n1 of 4 seeds"),
        (Cell(THREE, {3: 7, 4: 2}), 6, "52.0 ± 5.0, n = 3\ndiverged (rounds 2 to 7)\n2 of 5 seeds"),
        (Cell({}, {0: 7}), 3, "diverged (round 7)"),
        (Cell({}, {0: 7, 1: 7}), 3, "diverged (round 7)\nall 2 seeds"),
        (Cell(), 3, "–"),
    ],
)
def test_cells_for_people(cell, of, text):
    assert cell.text(of=of) == text


def test_marks_stand_behind_the_number_and_losses_have_their_own_digits():
    assert Cell(THREE, {3: 7}).text(mark="†").startswith("52.0 ± 5.0†\n")
    assert Cell({}, {0: 7}).text(mark="†") == "diverged (round 7)"
    assert Cell({0: 0.1234, 1: 0.1236}).text(1.0) == "0.1235 ± 0.0013"
    assert Cell({0: 0.12345}).text(1.0) == "0.123"


def test_columns_are_numbers_or_null_and_have_their_types():
    columns = Cell(THREE, {3: 7, 4: 2}).columns("x")
    mean, lower, upper = student(list(THREE.values()))
    assert columns == {
        "x": pytest.approx(mean),
        "x_lower": pytest.approx(lower),
        "x_upper": pytest.approx(upper),
        "x_n": 3,
        "x_diverged": 2,
        "x_diverged_in_round": 2,
    }
    assert Cell().columns("x") == dict.fromkeys(columns) | {"x_n": 0, "x_diverged": 0}
    assert list(column_types("x")) == list(columns)
    assert set(difference_types("d")) == set(difference_columns("d", None))


def test_differences_are_paired_by_seed_and_say_how_many():
    one, other = Cell({2: 0.9, 0: 0.5, 1: 0.6}), Cell({0: 0.4, 1: 0.5, 2: 0.7, 3: 0.1})
    found = difference(one, other)
    assert found is not None and found.n == 3 and found.unpaired == (3,)
    assert (found.mean, found.lower, found.upper) == pytest.approx(student([0.1, 0.1, 0.2]))
    # 13.33 points; half-width 4.3027 × 5.77 / √3 = 14.34
    assert difference_text(found, of=3) == "+13.3 ± 14.3"
    assert difference_text(found, of=4) == "+13.3 ± 14.3\nn = 3"
    assert difference_text(difference(other, one)).startswith("−13.3 ± ")
    text = "+13.3 points over 3 seeds, Holm-adjusted p = 0.20, 1 seed without a pair left out"
    assert measured(found, 0.2) == text
    assert difference(one, Cell({9: 0.5})) is None and difference_text(None) == "–"
    assert set(difference_columns("d", None).values()) == {None}


def test_one_seed_has_a_difference_and_no_interval():
    found = difference(Cell({0: 0.5}), Cell({0: 0.6}))
    assert found is not None and difference_text(found, of=1) == "−10.0"
    assert measured(found, 1.0, "") == "−0.100, one seed: no interval"
