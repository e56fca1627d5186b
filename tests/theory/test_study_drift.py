"""The studies of drift and of local steps against the functions they call, and at their edges."""

import json
from importlib import import_module

import numpy as np
import pytest

from figures.records import SCHEMA, RunStore
from theory import (
    Problem,
    affordable_width,
    federated_descent,
    initialise,
    kernel_drift,
    kernels,
    normalised_client_gram_matrix,
    normalised_gram_matrix,
    required_width,
    sample_participants,
    smallest_eigenvalue,
)
from theory.spectrum import Enclosure
from theory.studies import STUDIES, convergence_plan
from theory.studies.points import unit_covariance_sample

SMALL = {"seed": 0, "data": "gaussian", "clients": 2, "samples": 3, "dimension": 4, "alpha": 2.0}
DRIFT = {**SMALL, "width": 64, "steps": 12, "draws": 2, "starts": 3}
LOCAL = {**SMALL, "width": 48, "rounds": 9, "draw": 1}
LOCAL |= {"local_steps": [1, 3], "fractions": [1.0, 0.5]}
NETS = {"f": False, "f*": True}


def generators(*purpose):
    """A stand-in for the seeds of `empirical`: every purpose has a stream of its own."""
    return np.random.default_rng([sum(map(ord, str(part))) for part in purpose])


def run(study, config):
    told = []
    rows = list(STUDIES[study](config, None, generators, told.append))
    assert told == sorted(told) and told[-1] == 1.0
    return rows


def found(rows, metric, **where):
    return [r for r in rows if r["metric"] == metric and where.items() <= r.items()]


def single(rows, metric, **where):
    (row,) = found(rows, metric, **where)
    return row


@pytest.fixture(scope="module")
def drifted():
    return run("drift", DRIFT)


@pytest.fixture(scope="module")
def local():
    return run("local_steps", LOCAL)


def task(purpose, draw, *more):
    """Points, targets and the seed of the networks, by the studies' purposes."""
    x, client = unit_covariance_sample(SMALL, None, generators, draw)
    random = generators(0, purpose, "gaussian", *more, draw)
    y = random.choice([-1.0, 1.0], size=len(x))
    return Problem(x, y, client, 1.0), int(random.integers(2**62)), random


def network(given, seed, star, width):
    return initialise(width, 4, (0, 1), alpha=2.0, seed=seed, client_specific=star)


def test_every_row_fits_the_schema_of_the_records(tmp_path, drifted, local):
    for study, config, rows in (("drift", DRIFT, drifted), ("local_steps", LOCAL, local)):
        store = RunStore(tmp_path)
        with store.writing({"study": study, **config}) as kept:
            kept.add(rows)
        back = store.read(kept.hash)
        assert back.columns == [*SCHEMA, "run"] and back.height == len(rows) > 0
        # A config that came back from a manifest gives the same rows.
        assert run(study, json.loads(json.dumps(config))) == rows


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("draw", [0, 1, 2])
def test_drift_rows_are_relative_distances_at_one_step_size(drifted, net, draw):
    given, seed, _ = task("drift", draw, 64)
    start = network(given, seed, NETS[net], 64)
    kernel = kernels(start, given.x, given.client, 1.0).Lambda
    eta = 1 / np.linalg.eigvalsh(kernel)[-1]
    steps = 12 if draw < 2 else 0  # the third draw is looked at, not trained
    expected = kernel_drift(
        start, given, step_size=eta, steps=steps, kernels_at=range(0, steps + 1, 2)
    )
    for k, step in enumerate(expected.steps.tolist()):
        for j, part in enumerate(("V", "G", "Lambda")):
            where = {"variant": f"{net}|{part}", "draw": draw, "round": step}
            for metric, field in (("from_limit",) * 2, ("by_training", "from_start")):
                value = getattr(expected, field)[k, j] / expected.limit_norms[j]
                row = single(drifted, f"drift_{metric}", **where)
                assert row["value"] == pytest.approx(value, rel=1e-7, abs=1e-14)
        row = single(drifted, "smallest_eigenvalue_during", variant=net, draw=draw, round=step)
        assert row["value"] == pytest.approx(expected.smallest_eigenvalue[k], rel=1e-8)
    here = found(drifted, "smallest_eigenvalue_during", variant=net, draw=draw)
    assert len(here) == len(expected.steps)


def test_the_width_asked_for_is_the_theorems_and_the_other_one_fits(drifted):
    kernel = {"f": lambda x, _: normalised_gram_matrix(x), "f*": normalised_client_gram_matrix}
    for draw in range(2):
        x, client = unit_covariance_sample(SMALL, None, generators, draw)
        for net, matrix in kernel.items():
            e0 = smallest_eigenvalue(matrix(x, client))
            limit = single(drifted, "limit_smallest_eigenvalue", variant=net, draw=draw)
            assert limit["lower"] <= e0.midpoint <= limit["upper"]
            asked = single(drifted, "required_width", variant=net, draw=draw)["value"]
            assert asked == pytest.approx(required_width(e0, 6, 2.0).width, rel=1e-9)
    held = single(drifted, "affordable_width")
    assert held["value"] == affordable_width(6, 4, 2, 8 * 2**30) and held["note"] == "8 GiB"
    assert len(found(drifted, "required_width")) == 4  # trained draws alone


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize(
    ("choice", "fraction", "steps"),
    [("client", 1.0, 1), ("client", 1.0, 3), ("client", 0.5, 3), ("server", 1.0, 3)],
)
def test_local_rows_are_those_of_federated_descent(local, net, choice, fraction, steps):
    given, seed, random = task("local steps", 1)
    sampling = int(random.integers(2**62))
    start = network(given, seed, NETS[net], 48)
    kernel = kernels(start, given.x, given.client, 1.0).Lambda
    whole = np.linalg.eigvalsh(kernel)[-1]
    parts = [
        2 * np.linalg.eigvalsh(kernel[np.ix_(own, own)])[-1]
        for own in (np.flatnonzero(given.client == i) for i in (0, 1))
    ]
    assert max(parts) >= whole  # so that the clients' step is the shorter one
    eta = 1 / (whole if choice == "server" else max(parts))
    named = single(local, "step_size", variant=f"{net}|{choice}")["value"]
    assert named == pytest.approx(eta, rel=1e-9)
    expected = federated_descent(
        start,
        given,
        step_size=named,
        rounds=9,
        local_steps=steps,
        participants=sample_participants((0, 1), fraction, 9, sampling),
    )
    variant = f"{net}|{choice}|{fraction:g}|{steps}"
    rows = found(local, "relative_residual", variant=variant)
    assert [row["round"] for row in rows] == list(range(10))
    relative = expected.losses / expected.losses[0]
    np.testing.assert_allclose([row["value"] for row in rows], relative, rtol=1e-12)
    rate = single(local, "decades_a_round", variant=variant)
    assert rate["value"] == pytest.approx(-np.log10(relative[-1]) / 9, rel=1e-10)
    inside = fraction == 1 and steps == 1
    assert rate["note"] == ("inside the theorem" if inside else "outside the theorem")
    assert single(local, "finished", variant=variant)["note"] == rate["note"]


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("choice", ["client", "server"])
def test_what_is_promised_is_the_theorems_bound(local, net, choice):
    e0 = single(local, "limit_smallest_eigenvalue", variant=net)["lower"]
    eta = single(local, "step_size", variant=f"{net}|{choice}")["value"]
    for row in found(local, "promised", variant=f"{net}|{choice}"):
        assert row["value"] == pytest.approx((1 - eta * e0 / 2) ** row["round"], rel=1e-12)
        assert row["note"] == "E = 1, everyone"
    decades = single(local, "promised_decades", variant=f"{net}|{choice}")["value"]
    assert decades == pytest.approx(-np.log10(1 - eta * e0 / 2), rel=1e-9)


def test_f_and_its_client_specific_twin_share_the_clients_step(local):
    sizes = [single(local, "step_size", variant=f"{net}|client")["value"] for net in NETS]
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-12)


@pytest.mark.parametrize("study", ["drift", "local_steps"])
@pytest.mark.parametrize(
    "changes",
    [
        {"clients": 1, "samples": 3},
        {"clients": 3, "samples": 1},
        {"clients": 1, "samples": 1},
        {"width": 1},
        {"alpha": 1e-3},
        {"alpha": 1e3},
        {"rounds": 0, "steps": 0},
        {"rounds": 1, "steps": 1, "dimension": 1, "samples": 1},
    ],
)
def test_the_edges_finish_with_numbers(study, changes):
    config = {**(DRIFT if study == "drift" else LOCAL), **changes}
    rows = run(study, config)
    for row in rows:
        ends = [row[name] for name in ("value", "lower", "upper") if name in row]
        assert np.isfinite(ends).all(), row


@pytest.mark.parametrize("study", ["drift", "local_steps"])
def test_a_step_that_is_too_long_is_a_finished_study_that_says_diverged(study, monkeypatch):
    module = import_module(f"theory.studies.{study}")
    tiny = Enclosure(1e-9, 1e-9, "far too small")
    monkeypatch.setattr(module, "largest_eigenvalue", lambda *_: tiny)
    monkeypatch.setattr(module, "log_factor", lambda *_: -1.0, raising=False)
    rows = run(study, DRIFT if study == "drift" else LOCAL)
    assert found(rows, "diverged_at") and all(np.isfinite(r["value"]) for r in rows)
    if study == "local_steps":
        lost = [row["variant"] for row in found(rows, "diverged")]
        assert len(lost) == 2 * 6 and not found(rows, "decades_a_round")
    else:
        assert {row["variant"] for row in found(rows, "diverged_at")} == set(NETS)
        assert {row["round"] for row in found(rows, "smallest_eigenvalue_during")} >= {0}


def test_where_e0_may_be_zero_nothing_is_asked_and_nothing_promised(monkeypatch):
    x, client = unit_covariance_sample(SMALL, None, generators, 0)
    x[client == 1] = x[client == 0]  # duplicates across the clients: G∞ is singular, G*∞ is not
    for study, config in (("drift", DRIFT), ("local_steps", LOCAL)):
        module = import_module(f"theory.studies.{study}")
        monkeypatch.setattr(module, "unit_covariance_sample", lambda *_: (x, client))
        rows = run(study, config)
        assert {r["variant"][:2] for r in found(rows, "required_width")} <= {"f*"}
        assert {r["variant"][:2] for r in found(rows, "promised")} <= {"f*"}
        assert found(rows, "required_width") or found(rows, "promised")


@pytest.mark.parametrize(("preset", "limit"), [("quick", 6.0), ("default", 62.0)])
def test_the_plan_keeps_to_its_share_of_the_time(preset, limit):
    new = [s for s in convergence_plan(preset, "digits") if s.config["study"] in STUDIES]
    new = [s for s in new if s.config["study"] in ("drift", "local_steps")]
    assert sum(study.seconds for study in new) < limit
    assert max(study.seconds for study in new) < 15
    sources = {"digits"} if preset == "quick" else {"gaussian", "digits"}
    assert {study.config["data"] for study in new} == sources
    widths = {s.config["width"] for s in new if s.config["study"] == "drift"}
    assert len(widths) >= 3 and max(widths) >= 16 * min(widths)
    for study in new:
        if study.config["study"] == "local_steps":
            assert study.config["local_steps"] == [1, 2, 4, 8]
            assert study.config["fractions"] == [1.0, 0.5]
