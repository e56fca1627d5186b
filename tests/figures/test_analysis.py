"""The section `analysis` against values worked out by hand, and with parts missing."""

import polars as pl
import pytest
from synthetic import Records, student
from synthetic_analysis import (
    FOUR,
    POLICIES,
    adapted,
    alone,
    epochs,
    everything,
    made,
    policies,
    shown,
    trained,
    usual,
)
from synthetic_experiments import CLIENTS, OPTIONS, training_config
from written_files import in_order

from figures.analysis import content, panel_titles, present
from figures.analysis.draw_choice import choice_marks
from figures.analysis.draw_lines import Setting, lines
from figures.analysis.drawn import curves, differences, grid_cells
from figures.analysis.sweeps import by_domain
from figures.selection import of
from figures.style import look


def test_local_epochs_are_compared_at_the_same_number_in_total():
    records = Records()
    for seed in range(3):
        epochs(records, seed, {1: 0.02 + 0.01 * seed, 4: 0.05 + 0.01 * seed, 16: 0.1})
        usual(records, seed, 0.1, 0.2)  # 20 rounds, not 32: no part of it
    sweep = made(records).epochs
    assert sweep.values == [1.0, 4.0, 16.0]
    assert sweep.rounds == {1.0: 32, 4.0: 8, 16.0: 2}
    assert sweep.cells[1.0, "aggregated"].values == pytest.approx({0: 0.7, 1: 0.7, 2: 0.7})
    found = sweep.ahead[4.0].difference
    assert (found.mean, found.lower, found.upper) == pytest.approx(student([0.05, 0.06, 0.07]))
    # Equal differences in three seeds: the exact test cannot decide, and the family has three.
    assert sweep.ahead[16.0].verdict == "inconclusive"
    assert sweep.ahead[1.0].adjusted >= sweep.ahead[1.0].difference.p_value
    rows = shown(made(records), "epochs").select("value", "rounds", "aggregated").rows()
    assert rows == [("1", "32", "70.0 ± 0"), ("4", "8", "70.0 ± 0"), ("16", "2", "70.0 ± 0")]


def test_one_number_of_local_epochs_is_no_analysis():
    summary = made(usual(Records(), 0))
    assert summary.epochs.values == [] and not content(summary).drawings


def test_the_share_of_the_data_begins_with_the_usual_runs_and_local_training():
    records = Records()
    for seed in range(3):
        usual(records, seed, 0.70, 0.75)
        alone(records, seed, 0.6)
        usual(records, seed, 0.5, 0.52 + 0.01 * seed, fraction=0.1)
        alone(records, seed, 0.4 + 0.02 * seed, fraction=0.1)
        usual(records, seed, 0.9, 0.9, rounds=40)  # another schedule: no part of it
    summary = made(records)
    sweep = summary.data
    assert sweep.values == [0.1, 1.0]
    assert sweep.cells[1.0, "local"].values == pytest.approx({0: 0.6, 1: 0.6, 2: 0.6})
    assert sweep.ahead[0.1].difference.mean == pytest.approx(0.03)
    found = sweep.alone[0.1].difference
    assert (found.mean, found.lower, found.upper) == pytest.approx(student([0.12, 0.11, 0.10]))
    assert shown(summary, "data")["value"].to_list() == ["10 %", "100 %"]
    ids = {claim.id for claim in content(summary).claims}
    assert ids == {"data.10", "data.100", "data.local.10", "data.local.100"}


def test_clients_are_averaged_within_their_domain_first():
    key = {"run": "r", "algorithm": "fedavg", "bn_policy": "aggregated", "seed": 0}
    values = {"a/1": 0.2, "a/2": 0.4, "b/1": 0.9}
    rows = [{**key, "held_out": None, "per_domain": 2, "client": c, "value": v}
            for c, v in values.items()]  # fmt: skip
    # a has 0.3, b 0.9; the mean over the three clients were 0.5.
    assert by_domain(pl.DataFrame(rows))["value"].to_list() == pytest.approx([0.6])
    # Without `per_domain` a stroke is a part of the name.
    plain = [{**row, "per_domain": None} for row in rows]
    assert by_domain(pl.DataFrame(plain))["value"].to_list() == pytest.approx([0.5])


def test_clients_a_domain_begin_with_one_and_leave_local_training_out_unless_dealt():
    records = Records()
    for seed in range(2):
        usual(records, seed, 0.7, 0.8)
        alone(records, seed, 0.6)
        for policy, value in zip(POLICIES, (0.5, 0.55 + 0.02 * seed), strict=True):
            names = [f"{name}/{k}" for name in CLIENTS for k in (1, 2)]
            config = training_config("fedavg", policy, seed, per_domain=2)
            trained(records, config, value, names)
    summary = made(records)
    sweep = summary.domains
    assert sweep.values == [1.0, 2.0]
    assert {series for _, series in sweep.cells} == set(POLICIES)
    assert sweep.ahead[2.0].difference.mean == pytest.approx(0.06)
    assert {claim.id for claim in content(summary).claims} == {"domains.1", "domains.2"}


def test_local_training_is_compared_where_it_was_dealt_out_too():
    records = Records()
    names = [f"{name}/{k}" for name in CLIENTS for k in (1, 2)]
    for seed in range(3):
        usual(records, seed, 0.7, 0.8)
        alone(records, seed, 0.6)
        for algorithm, policy, value in (
            ("fedavg", "client_specific", 0.5 + 0.01 * seed),
            ("local", "client_specific", 0.4),
        ):
            trained(records, training_config(algorithm, policy, seed, per_domain=2), value, names)
    summary = made(records)
    found = summary.domains.alone[2.0].difference
    assert (found.mean, found.lower, found.upper) == pytest.approx(student([0.10, 0.11, 0.12]))
    ids = {claim.id for claim in content(summary).claims}
    assert ids == {"domains.1", "domains.local.1", "domains.local.2"}


def test_a_diverged_training_is_said_with_its_round_and_left_out():
    records = Records()
    for seed in range(3):
        epochs(records, seed, {1: 0.02, 16: 0.1}, diverged=1 if seed == 1 else None)
    summary = made(records)
    cell = summary.epochs.cells[16.0, "aggregated"]
    assert (set(cell.values), cell.diverged) == ({0, 2}, {1: 1})
    assert summary.epochs.ahead[16.0].difference.n == 2
    assert "round 1" in shown(summary, "epochs")["lost"][1]
    (note,) = content(summary).notes
    assert "in round 1" in note and "E = 16" in note


def test_the_grid_joins_the_batch_alone_and_tau_zero():
    records = Records()
    for seed in range(3):
        for fold, low in (("mnist-m", 0.5), ("synth-digits", 0.7)):
            adapted(records, seed, fold, {(0.9, 8): low + 0.1 + 0.01 * seed, (0.0, 8): low})
            adapted(records, seed, fold, {(0.0, 8): low, (0.0, 32): low}, variant="batch")
            adapted(records, seed, fold, {(0.9, 8): low - 0.2}, "sorted")
    grid = made(records).grid
    assert (grid.taus, grid.sizes, grid.orders) == ([0.0, 0.9], [8, 32], ["shuffled", "sorted"])
    assert grid.cells["shuffled", "mean", 0.0, 8].values == pytest.approx({0: 0.6, 1: 0.6, 2: 0.6})
    assert grid.cells["sorted", "client mnist-m", 0.9, 8].values[0] == pytest.approx(0.3)
    assert ("shuffled", "mean", 0.9, 32) not in grid.cells
    found = grid.momentum[8].difference
    assert (found.mean, found.lower, found.upper) == pytest.approx(student([0.10, 0.11, 0.12]))
    assert set(grid.momentum) == {8}
    table = of(grid_cells(grid), panel="shuffled mean", tau=0.9, samples=8)
    assert table["mean"].to_list() == pytest.approx([71.0])
    assert list(panel_titles(grid).values()) == [
        "MNIST-M held out",
        "Synth-Digits held out",
        "mean over the held-out clients",
        "mean, sorted by class",
    ]


def test_the_four_policies_are_averaged_over_folds():
    records = Records()
    for seed in range(3):
        for fold, add in (("mnist-m", 0.0), ("synth-digits", 0.1)):
            inside = dict(zip(FOUR, (0.5, 0.6 + 0.01 * seed, 0.55, 0.4), strict=True))
            inside = {name: value + add for name, value in inside.items()}
            outside = dict.fromkeys(FOUR, (0.3, 0.5 + 0.01 * seed + add, 0.35 + add))
            policies(records, seed, fold, inside, outside)
        usual(records, seed, 0.1, 0.1)  # the whole federation has two policies only
    choice = made(records).choice
    assert choice.policies == list(FOUR) and choice.folds == 2
    assert choice.cells["client_specific", "mean"].values == pytest.approx(
        {0: 0.65, 1: 0.66, 2: 0.67}
    )
    found = choice.inside["client_statistics"].difference
    assert (found.mean, found.lower, found.upper) == pytest.approx(student([0.05, 0.06, 0.07]))
    found = choice.outside["client_affine"].difference
    assert (found.mean, found.lower, found.upper) == pytest.approx(student([0.15, 0.16, 0.17]))
    ids = {claim.id for claim in content(made(records)).claims}
    assert ids == {"inside.client-statistics", "inside.client-affine", "outside.affine"}
    marks = of(choice_marks(choice), panel="outside", row="aggregated", series="identity")
    assert marks["mean"].to_list() == pytest.approx([40.0])


def test_two_policies_are_no_choice():
    records = Records()
    inside, outside = dict.fromkeys(POLICIES, 0.5), dict.fromkeys(POLICIES, (0.3, 0.4, 0.2))
    policies(records, 0, "mnist-m", inside, outside, POLICIES)
    assert made(records).choice.policies == []


def test_lines_draw_what_the_tables_hold():
    records = Records()
    for seed in range(3):
        usual(records, seed, 0.70, 0.75)
        usual(records, seed, 0.5, 0.52 + 0.01 * seed, fraction=0.1)
    sweep = made(records).data
    setting = Setting("share", sweep.values, percent=True)
    left, right = lines(curves(sweep), differences(sweep), setting).axes
    (line,) = [one for one in left.lines if one.get_color() == look("client_specific").colour]
    assert list(line.get_xdata()) == [0.1, 1.0]
    assert list(line.get_ydata()) == pytest.approx([53.0, 75.0])
    assert list(right.containers[0][0].get_ydata()) == pytest.approx([3.0, 5.0])
    labels = [text.get_text() for text in left.get_xticklabels()]
    assert labels == ["10 %", "100 %"]
    shown_ = [text.get_text() for text in left.get_legend().get_texts()]
    assert shown_ == [look(name).label for name in POLICIES]


def lone_share():
    return usual(Records(), 0, 0.5, 0.6, fraction=0.1)


def one_side():
    return trained(usual(Records(), 0), training_config("fedavg", "aggregated", 0, fraction=0.5), 1)


def diverged():
    records = Records()
    for policy in POLICIES:
        config = training_config("fedavg", policy, 0, fraction=0.1)
        trained(records, config, 0.5, diverged=0)
    return records


PARTS = {
    "nothing": (Records, set()),
    "the usual runs alone": (lambda: usual(Records(), 0), set()),
    "one share": (lone_share, {"data"}),
    "one policy at one share": (one_side, {"data"}),
    "all diverged": (diverged, set()),
    "two steps": (lambda: usual(usual(Records(), 0), 0, 0.8, 0.8, lr=0.1), {"steps"}),
    "two numbers of epochs": (lambda: epochs(Records(), 0, {1: 0.1, 2: 0.2}, 2), {"epochs"}),
    "one τ and one n_t": (lambda: adapted(Records(), 0, "mnist", {(0.9, 32): 0.5}), set()),
    "two τ": (lambda: adapted(Records(), 0, "mnist", {(0.9, 8): 0.5, (0.0, 8): 0.5}), {"momentum"}),
    "one order, not shuffled": (
        lambda: adapted(Records(), 0, "mnist", {(0.9, 8): 0.5, (0.0, 8): 0.5}, "sorted"),
        {"momentum"},
    ),
    "three policies": (
        lambda: policies(
            Records(),
            0,
            "mnist",
            dict.fromkeys(FOUR, 0.5),
            dict.fromkeys(FOUR, (0.3, 0.4, 0.2)),
            FOUR[:3],
        ),
        {"choice"},
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("part", PARTS)
def test_parts_that_are_missing_are_left_out(part, tmp_path):
    make, names = PARTS[part]
    product = present(*make().both, tmp_path, OPTIONS | {"section": "analysis"})
    assert {path.stem for path in product.figures} == names
    assert all(claim.verdict == "inconclusive" for claim in product.claims)  # one seed
    in_order(product, tmp_path)


@pytest.mark.usefixtures("coarse")
def test_the_whole_section_lies_on_disk(tmp_path):
    records = everything()
    for seed in range(3):
        usual(records, seed, 0.8, 0.81 + 0.001 * seed, lr=0.1)
    product = present(*records.both, tmp_path, OPTIONS | {"section": "analysis"})
    drawn = ["momentum", "steps", "epochs", "data", "domains", "choice"]
    assert [path.stem for path in product.figures] == drawn
    names = {path.stem for path in (tmp_path / "tables").glob("*.csv")}
    assert names == {*drawn, "ahead"}
    # Two steps, two numbers of E with the third in doubt, three shares twice, three numbers of
    # clients, two batches, two parts of BN, and the affine outside.
    assert len(product.claims) == 2 + 3 + 2 * 3 + 3 + 2 + 2 + 1
    in_order(product, tmp_path)
