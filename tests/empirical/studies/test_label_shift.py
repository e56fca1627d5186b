"""The study of label shift: its rows by another route, its control, its refusals."""

import numpy as np
import pytest
import torch
from federations import toy_federation

from empirical import (
    Client,
    DivergedError,
    FederationState,
    Split,
    adapt,
    build_model,
    load,
    stream,
)
from empirical.label_shift import skewed
from empirical.seeds import derive
from empirical.studies import Setting, label_shift_study, train_study

CLIENTS = toy_federation((24, 60, 24), test=120)
NAMES = tuple(client.name for client in CLIENTS)
OUT = NAMES[1]


def config(ratios=(1, 4, 20), draws=2, policy="client_specific"):
    setting = Setting("quick", "toy", NAMES, "0" * 64)
    schedule = setting.schedule(setting.size("external"), 0)
    training = setting.training("fedavg", policy, schedule, held_out=OUT)
    return {
        "study": "label_shift",
        "training": training,
        "held_out": OUT,
        "ratios": list(ratios),
        "draws": draws,
    }


@pytest.fixture(scope="module")
def state():
    return train_study(config()["training"], CLIENTS, lambda _: None, lambda _: None)


def study(state, given, clients=CLIENTS):
    rows, told = [], []
    notes = label_shift_study(given, clients, state, rows.extend, told.append)
    return rows, notes, told


@pytest.fixture(scope="module")
def found(state):
    return study(state, config())


def test_each_ratio_has_a_row_for_each_way_of_serving(found):
    rows, notes, told = found
    keys = [(row["parameter"], row["variant"]) for row in rows]
    assert keys == [(r, v) for r in (1, 4, 20) for v in ("adapted", "balanced", "server")]
    assert all(row["client"] == OUT and 0 <= row["value"] <= 1 for row in rows)
    # Of 12 images a class as many as the steepest ratio leaves, and no more than training has.
    assert {row["samples"] for row in rows} == {int(12 * sum(20 ** (-k / 9) for k in range(10)))}
    assert {row["note"] for row in rows} == {"mean of 2 draws"}
    assert notes == (
        f"label shift is drawn with {rows[0]['samples']} of the 120 test images at every ratio",
    )
    assert told == [0.5, 1.0]


def test_the_values_are_those_of_the_three_networks(state, found):
    net = build_model("compact_cnn", 0).eval()
    load(net, state.server)
    client, size = CLIENTS[1], found[0][0]["samples"]
    base = derive(0, "label_shift", OUT)
    expected = {}
    for draw in range(2):
        seed = derive(base, "draw", draw)
        other = skewed(client.train, 1, seed, size)
        assert np.ptp(other.labels.bincount().numpy()) <= 1
        for ratio in (1, 4, 20):
            served = skewed(client.test, ratio, seed, size)
            for variant, source in (("adapted", served), ("balanced", other), ("server", None)):
                used = adapt(net, stream(net, source, seed), 0.9).model if source else net
                with torch.no_grad():
                    right = (used(served.inputs()).argmax(1) == served.labels).double().mean()
                expected.setdefault((ratio, variant), []).append(right.item())
    for row in found[0]:
        mean = np.mean(expected[row["parameter"], row["variant"]])
        # The layout in memory may turn an image that is on the edge.
        assert row["value"] == pytest.approx(mean, abs=0.5 / size)


def test_ratios_that_the_images_do_not_allow_are_left_out_and_said(state):
    rows, notes, _ = study(state, config(ratios=(1e9, 1, 1000)))
    assert {row["parameter"] for row in rows} == {1.0}
    assert notes[1] == f"too few images of '{OUT}' for classes skewed by 1e+09, 1000"


def test_it_is_the_same_again(state, found):
    assert study(state, config())[0] == found[0]


def test_an_aggregated_training_can_be_studied_too():
    given = config(ratios=(2,), draws=1, policy="aggregated")
    trained = train_study(given["training"], CLIENTS, lambda _: None, lambda _: None)
    rows, _, _ = study(trained, given)
    assert [row["note"] for row in rows] == ["mean of 1 draw"] * 3


def test_what_cannot_be_studied_is_refused(state):
    def refused(given, words, clients=CLIENTS, of=state, kind=ValueError):
        with pytest.raises(kind, match=words):
            study(of, given, clients)

    refused(config(ratios=()), "any of the 0 ratios")
    refused(config(ratios=(0.5,)), "at least 1, got 0.5")
    refused(config(ratios=(1e9,)), "too few images of each class")
    refused(config(draws=0), "at least 1, got 0")
    lost = FederationState("diverged", 1, state.server, state.clients, state.p)
    refused(config(), "diverged", of=lost, kind=DivergedError)
    one = Split(CLIENTS[1].test.images, torch.zeros(120, dtype=torch.int64), 10)
    flat = [CLIENTS[0], Client(OUT, CLIENTS[1].train, one), CLIENTS[2]]
    refused(config(), "'toy-1' has test images of one class", clients=flat)
