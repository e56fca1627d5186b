"""The two kinds of runs: what a training hands over, and what serving from it does."""

import pytest
import torch
from federations import toy_federation

from empirical.studies import Setting, compatibility_plan, external_study, train_study
from empirical.studies.experiments import study_model

CLIENTS = toy_federation((24, 24, 24), test=20)
SETTING = Setting("quick", "toy", tuple(c.name for c in CLIENTS), "0" * 64, seeds=1, folds=1)


def config(algorithm="fedavg", study="training"):
    plan = [s.config for s in compatibility_plan(SETTING) if s.config["study"] == study]
    return next(c for c in plan if c.get("training", c)["algorithm"] == algorithm)


@pytest.fixture(scope="module")
def trained():
    rows, told = [], []
    state = train_study(config(), CLIENTS, rows.extend, told.append)
    return state, rows, told


def test_a_training_hands_over_rows_progress_and_state(trained):
    state, rows, told = trained
    assert state.status == "complete" and set(state.p) == {"toy-0", "toy-1"}
    assert {row["client"] for row in rows} == {"toy-0", "toy-1", "server"}
    assert set(rows[0]) == {"round", "client", "split", "metric", "value"}
    assert told == sorted(told) and told[-1] == 1.0


def test_moon_trains_with_its_projection_head():
    wanted = config("moon")
    assert wanted["projection"] == 256
    sizes = [
        m.in_features
        for m in study_model(wanted, CLIENTS).modules()
        if isinstance(m, torch.nn.Linear)
    ]
    assert sizes[-1] == 256 and 256 not in [
        m.in_features
        for m in study_model(config(), CLIENTS).modules()
        if isinstance(m, torch.nn.Linear)
    ]


def test_serving_gives_two_rows_for_each_way(trained):
    rows, told, wanted = [], [], config(study="external")
    notes = external_study(wanted, CLIENTS, trained[0], rows.extend, told.append)
    assert len(rows) == 2 * len(wanted["serving"]) and told[-1] == 1.0
    assert all(0 <= row["value"] <= 1 for row in rows if row["metric"] == "accuracy")
    assert notes == ("the last batch has 20",)


def test_a_way_that_gives_no_numbers_is_left_out_and_said(trained):
    from dataclasses import replace

    state = trained[0]
    # A negative variance: the server's model gives NaN, and what does not use it does not.
    broken = {
        n: -torch.ones_like(t) if n.endswith("running_var") else t for n, t in state.server.items()
    }
    rows, wanted = [], config(study="external")
    notes = external_study(
        wanted, CLIENTS, replace(state, server=broken), rows.extend, lambda _: None
    )
    left = {row["variant"] for row in rows}
    assert "server" not in left and {"adapted", "batch"} <= left
    assert any(note.startswith("served by server, toy-2 is left out: ") for note in notes)
    assert all(row["value"] == row["value"] for row in rows)


def test_another_classifier_is_built_for_more_classes():
    more = toy_federation((24, 24, 24), classes=12, test=20)
    *_, last = (m for m in study_model(config(), more).modules() if isinstance(m, torch.nn.Linear))
    assert last.out_features == 12
