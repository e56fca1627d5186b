"""The comparison with the authors' code: its arithmetic, its criterion, and what it reads."""

import importlib
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


def module(name):
    """A module of the benchmarks, which no installation carries."""
    sys.path.insert(0, str(ROOT))
    try:
        return importlib.import_module(f"benchmarks.{name}")
    finally:
        sys.path.remove(str(ROOT))


agreement, reference = module("_agreement"), module("fedbn_reference")
Comparison, Criterion = agreement.Comparison, agreement.Criterion
STORED = json.loads((ROOT / "benchmarks" / "fedbn_reference.json").read_text("utf-8"))


def test_difference_and_standard_error_are_those_worked_by_hand():
    # Means 3 and 2; sample variances 1 and 4 (n - 1), so the error is √(1/3 + 4/3) = √(5/3).
    row = Comparison("a", (2.0, 3.0, 4.0), (0.0, 2.0, 4.0), Criterion(3, 0.5))
    assert row.difference == 1
    assert row.error == pytest.approx(math.sqrt(5 / 3), rel=1e-12)
    assert row.allowance == pytest.approx(3 * math.sqrt(5 / 3) + 0.5, rel=1e-12)
    assert row.agrees
    # Other numbers of seeds: variances 1 and 2 over 3 and 2 seeds, √(1/3 + 1).
    uneven = Comparison("a", (2.0, 3.0, 4.0), (1.0, 3.0), Criterion(3, 0.5))
    assert uneven.error == pytest.approx(math.sqrt(4 / 3), rel=1e-12)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_allowance_is_a_limit_on_both_sides(sign):
    # No spread at all: the margin alone counts. Halves are exact in binary.
    at = Comparison("a", (10.0, 10.0), (10.0 + 0.5 * sign,) * 2, Criterion(3, 0.5))
    assert at.agrees and abs(at.difference) == at.allowance == 0.5
    assert not Comparison("a", (10.0, 10.0), (10.0 + 0.625 * sign,) * 2, Criterion(3, 0.5)).agrees
    # Spread: error √(2/2 + 2/2) = √2 of two seeds each, so 3√2 + 0.5 = 4.743.
    for far, agrees in ((4.7, True), (4.8, False)):
        theirs = [9.0 + far * sign, 11.0 + far * sign]
        assert Comparison("a", (9.0, 11.0), theirs, Criterion(3, 0.5)).agrees is agrees


def test_what_is_no_number_never_agrees():
    row = Comparison("a", (math.nan, 1.0), (1.0, 1.1), Criterion(3, 0.5))
    assert not row.agrees and "**outside**" in row.row(2)


def test_one_seed_gives_no_standard_error():
    with pytest.raises(ValueError, match="two seeds at least"):
        Comparison("a", (1.0,), (1.0, 2.0), Criterion(3, 0.5))


def test_the_criterion_is_the_one_that_was_set():
    assert Criterion(3, 0.5) == agreement.MEAN
    assert Criterion(4, 1.5) == agreement.CLIENT
    assert Criterion(3, 0.005) == agreement.LOSS


def test_clients_their_mean_and_the_loss_are_compared_each_by_its_criterion():
    ours = {"a": (10.0, 20.0), "loss": (1.0, 1.5), "b": (30.0, 60.0)}
    rows = agreement.compared(ours, {"a": (1.0, 2.0), "b": (3.0, 4.0), "loss": (2.0, 3.0)}, "loss")
    assert [row.what for row in rows] == ["mean over clients", "a", "b", "loss"]
    # The mean is taken within each seed: (10 + 30) / 2 and (20 + 60) / 2.
    assert list(rows[0].ours) == [20, 40] and list(rows[0].theirs) == [2, 3]
    assert [row.criterion for row in rows] == [
        agreement.MEAN,
        agreement.CLIENT,
        agreement.CLIENT,
        agreement.LOSS,
    ]
    assert list(rows[3].ours) == [1.0, 1.5]
    with pytest.raises(ValueError, match="ours has"):
        agreement.compared(ours, {"a": (1.0, 2.0), "loss": (2.0, 3.0)}, "loss")


def test_the_stored_reference_is_whole():
    assert list(STORED["rounds"]) == ["5", "10", "20"]
    for modes in STORED["rounds"].values():
        assert list(modes) == list(reference.POLICIES)
        for values in modes.values():
            assert list(values) == [*reference.fedbn_digits.CLIENTS, reference.LOSS]
            assert all(len(seeds) == len(STORED["source"]["seeds"]) for seeds in values.values())
    # The reference's own summary of round 20: means 80.66 (sd 0.99) and 84.10 (0.61), two digits.
    for mode, mean, spread in (("fedavg", 80.66, 0.99), ("fedbn", 84.10, 0.61)):
        values = STORED["rounds"]["20"][mode]
        seeds = np.mean([values[name] for name in reference.fedbn_digits.CLIENTS], axis=0)
        assert seeds.mean() == pytest.approx(mean, abs=0.005)
        assert seeds.std(ddof=1) == pytest.approx(spread, abs=0.005)


def run(seed, shift=0.0):
    """A finished run whose numbers are those of the reference, shifted."""
    rows = []
    for mode, round_ in [("fedavg", r) for r in (5, 10, 15, 20)]:
        theirs = STORED["rounds"][str(5 if round_ == 15 else round_)][mode]
        for name in reference.fedbn_digits.CLIENTS:
            for split, metric, value in (
                ("test", "accuracy", (theirs[name][seed] + shift) / 100),
                ("train", "loss", theirs[reference.LOSS][seed]),
                ("test", "loss", 9.0),
                ("train", "accuracy", 0.0),
            ):
                row = {"round": round_, "client": name, "split": split}
                rows.append(row | {"metric": metric, "value": value})
        other = {"round": round_, "client": "server", "split": "test", "metric": "accuracy"}
        rows.append(other | {"value": 0.0})
    return {"rows": rows, "seconds": 40.0}


def test_test_accuracy_and_training_loss_are_what_is_compared():
    values = reference.values([run(0), run(1)], 10)
    assert values["SVHN"] == pytest.approx([59.6, 57.4])
    assert values[reference.LOSS] == pytest.approx([0.5429, 0.5364])


def test_a_number_outside_its_allowance_is_said_first_and_decides():
    one_mode = {round_: {"fedavg": modes["fedavg"]} for round_, modes in STORED["rounds"].items()}
    theirs = {"source": STORED["source"], "rounds": one_mode}
    text, agrees = reference.report({"fedavg": [run(seed) for seed in range(3)]}, theirs)
    assert agrees and "All 21 numbers lie within" in text and "outside**" not in text
    assert "2.0 to 2.0 s a round" in text  # 40 s over 20 rounds
    # Ten points: more than 4 √(2/3) s + 1.5 for every client whose s over seeds is below 2.6.
    text, agrees = reference.report({"fedavg": [run(seed, 10.0) for seed in range(3)]}, theirs)
    assert not agrees and "numbers lie outside their allowance" in text
    assert text.count("**outside**") >= 3


def test_a_run_is_taken_from_disk_only_with_the_same_settings_and_data(tmp_path):
    schedule = reference.Schedule(rounds=20, weights="uniform", seed=1, measure_every=5)
    task = reference.Task(tmp_path, "fedbn", schedule, tmp_path)
    data = {"MNIST": {"train_images": "0"}}
    assert reference.stored(task, data) is None
    task.file.write_text(json.dumps({**task.settings, "data": data, "rows": []}))
    assert reference.stored(task, data)["rows"] == []
    assert reference.stored(task, {}) is None
    other = reference.Schedule(rounds=20, weights="size", seed=1, measure_every=5)
    assert reference.stored(reference.Task(tmp_path, "fedbn", other, tmp_path), data) is None
