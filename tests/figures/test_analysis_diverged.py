"""What the section `analysis` says and draws where seeds diverged."""

import numpy as np
import pytest
from synthetic import Records
from synthetic_analysis import FOUR, POLICIES, adapted, epochs, made, policies, trained, usual
from synthetic_experiments import training_config

from figures.analysis import content, panel_titles
from figures.analysis.draw_choice import choice_marks
from figures.analysis.draw_grid import grid
from figures.analysis.draw_lines import Setting, lines
from figures.analysis.drawn import curves, differences, grid_cells
from figures.selection import of
from figures.style import context

TWO = "mean over 1 to 2 seeds"
HOLLOW = "hollow marks lack seeds that diverged"


@pytest.fixture(autouse=True)
def _styled():
    with context():
        yield


def captions(summary):
    return {name: one.caption for name, one in content(summary).drawings.items()}


def of_sweeps(gone):
    """Two seeds of each sweep; the second of aggregated BN diverged at the largest value."""
    records = Records()
    for seed in range(2):
        lost = 1 if gone and seed == 1 else None
        epochs(records, seed, {1: 0.02, 16: 0.1}, diverged=lost)
        usual(records, seed)
        for more in ({"lr": 0.1}, {"fraction": 0.5}, {"per_domain": 2}):
            for policy, value in zip(POLICIES, (0.4, 0.5), strict=True):
                config = training_config("fedavg", policy, seed, **more)
                trained(records, config, value, diverged=lost if policy == POLICIES[0] else None)
    return made(records)


VALUES = {"steps": "lr = 0.1", "epochs": "E = 16", "data": "share = 50 %"}


@pytest.mark.parametrize(("name", "value"), [*VALUES.items(), ("domains", "clients = 2")])
def test_captions_of_the_sweeps_name_what_diverged(name, value):
    caption = captions(of_sweeps(gone=True))[name]
    assert f"{TWO}; bands: 95 % Student t intervals, none of one seed; {HOLLOW}" in caption
    lost = f" Left out: aggregated BN (f), {value}: diverged (round 1), 1 of 2 seeds."
    assert caption.endswith(lost)
    whole = captions(of_sweeps(gone=False))[name]
    assert "mean over 2 seeds" in whole and "hollow" not in whole and "Left out" not in whole


def test_lines_are_hollow_where_seeds_lack():
    sweep = of_sweeps(gone=True).epochs
    figure = lines(curves(sweep), differences(sweep), Setting("E", sweep.values))
    found = [
        [
            np.asarray(line.get_xydata()).tolist()
            for line in ax.lines
            if line.get_markerfacecolor() == "white"
        ]
        for ax in figure.axes
    ]
    for ax in figure.axes:
        filled = [line for line in ax.lines if line.get_markerfacecolor() != "white"]
        assert all(line.get_zorder() < 2.2 for line in filled)
    # The accuracy of aggregated BN, and the difference that has it on one side.
    assert found == [[[[16.0, pytest.approx(70.0)]]], [[[16.0, pytest.approx(10.0)]]]]


def of_grid(gone):
    records = Records()
    for seed in range(2):
        for fold in ("mnist-m", "optdigits"):
            if gone and (seed, fold) == (1, "mnist-m"):
                config = training_config("fedavg", "client_specific", seed, fold)
                full = {"study": "external", "training": config, "held_out": fold, "serving": []}
                records.add(full, [], "diverged")
                list(records.manifests.values())[-1]["diverged_in_round"] = 3
            else:
                adapted(records, seed, fold, {(0.9, 8): 0.4, (0.0, 8): 0.3})
    return made(records)


def drawn_cells(summary):
    figure = grid(grid_cells(summary.grid), panel_titles(summary.grid), (0.9, 32))
    return {ax.get_title(loc="left")[4:]: {t.get_text() for t in ax.texts} for ax in figure.axes}


def test_cells_of_the_grid_say_how_many_seeds_are_left():
    words = drawn_cells(of_grid(gone=True))
    assert words["MNIST-M held out"] == {"40.0\nn = 1", "30.0\nn = 1"}
    assert words["Optdigits held out"] == {"40.0", "30.0"}
    assert words["mean over the held-out clients"] == {"40.0\nn = 1", "30.0\nn = 1"}
    caption = captions(of_grid(gone=True))["momentum"]
    assert f"{TWO} (the table has the intervals, n: fewer, where seeds diverged)" in caption
    assert caption.endswith(" Left out: MNIST-M held out: diverged (round 3), 1 of 2 seeds.")


def test_cells_of_the_grid_that_lack_nothing_are_plain():
    assert drawn_cells(of_grid(gone=False))["MNIST-M held out"] == {"40.0", "30.0"}
    caption = captions(of_grid(gone=False))["momentum"]
    assert "mean over 2 seeds (the table has the intervals)" in caption
    assert "diverged" not in caption


def test_the_policies_say_what_diverged():
    records = Records()
    for seed in range(2):
        inside, outside = dict.fromkeys(FOUR, 0.5), dict.fromkeys(FOUR, (0.3, 0.4, 0.2))
        names = [name for name in FOUR if seed == 0 or name != "client_affine"]
        policies(records, seed, "mnist", inside, outside, names)
    trained(records, training_config("fedavg", "client_affine", 1, "mnist"), 0.5, diverged=6)
    summary = made(records)
    caption = captions(summary)["choice"]
    assert "after the last round, one client held out." in caption
    assert TWO in caption and HOLLOW in caption
    lost = " Left out: client affine only: diverged (round 6), 1 of 2 seeds."
    assert caption.endswith(lost)
    table = of(choice_marks(summary.choice), panel="mean")
    assert [row for row, lacking in table["row", "hollow"].rows() if lacking] == ["client_affine"]
