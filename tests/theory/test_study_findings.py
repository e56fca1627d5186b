"""The studies of where the corollary stops: what they record, against NumPy and by hand."""

import json
import math
from collections import Counter

import numpy as np
import pytest

from theory.studies import STUDIES, convergence_plan
from theory.studies.counterexamples import DIMENSIONS, WEIGHTS, pair, triangle
from theory.studies.points import gaussian_clients
from theory.studies.readings import isotropic_variances

PROOFS = {"study": "counterexamples", "data": "gaussian", "samples": 8, "draws": 3}
PROOFS |= {"seed": 0, "dimension": 20}
READ = {"study": "readings", "data": "gaussian", "clients": 2, "samples": 4, "dimension": 3}
READ |= {"seed": 0, "draws": 2, "alphas": [0.5, 5.0], "covariances": "isotropic"}


def generators(*purpose):
    """A stand-in for the seeds of `empirical`: every purpose has a stream of its own."""
    return np.random.default_rng([sum(map(ord, str(part))) for part in purpose])


def rows_of(config, data=None):
    told = []
    rows = list(STUDIES[config["study"]](config, data, generators, told.append))
    assert told == sorted(told) and told[-1] == 1.0
    json.dumps(rows, allow_nan=False)
    return rows


def found(rows, metric, **where):
    return [r for r in rows if r["metric"] == metric and where.items() <= r.items()]


@pytest.fixture(scope="module")
def proofs():
    return rows_of(PROOFS)


def test_every_counterexample_is_certified_and_gaussian_draws_are_told_apart(proofs):
    named = {r["split"]: r["note"] for r in found(proofs, "example") if "draw" not in r}
    assert named == dict.fromkeys(
        ("pooled.orthogonal", "pooled.own", "full.orthogonal", "full.obtuse"), "violated"
    )
    drawn = found(proofs, "example", split="pooled.gaussian")
    assert [r["draw"] for r in drawn] == [0, 1, 2]
    for draw in drawn:
        whole, own = (
            found(proofs, "example_smallest", split="pooled.gaussian", draw=draw["draw"], variant=v)
            for v in ("aggregated", "client_specific")
        )
        assert (draw["note"] == "violated") == (own[0]["upper"] < whole[0]["lower"])
    assert {r["note"] for r in found(proofs, "remains")} == {"certified"}


def test_the_sign_is_certified_on_both_sides_of_every_threshold(proofs):
    for metric in ("pooled_sides", "full_sides"):
        sides = found(proofs, metric)
        assert len(sides) >= 5 and {r["note"] for r in sides} == {"certified"}


def test_the_curves_are_those_of_the_formulas(proofs):
    pooled, full = found(proofs, "pooled_threshold"), found(proofs, "full_threshold")
    assert {r["variant"] for r in pooled} == {f"{w:g}" for w in WEIGHTS}
    assert {r["variant"] for r in full} == {str(d) for d in DIMENSIONS}
    for r in pooled:
        theta, p = math.radians(r["parameter"]), float(r["variant"])
        g = (math.sin(theta) + (math.pi - theta) * math.cos(theta)) / math.pi
        assert r["value"] == pytest.approx((1 - g - p) / (1 - p), abs=1e-12)
    for r in full:
        e, d = math.pi - math.radians(r["parameter"]), int(r["variant"])
        square = 2 + 2 * d * e / (math.tan(e) - e)
        # Near its zero α*² is what cancels, and near 180° e.
        assert r["value"] ** 2 == pytest.approx(square, rel=1e-9, abs=1e-9 * d)


def test_the_pair_over_alpha_crosses_at_its_threshold(proofs):
    whole, own = (
        {r["parameter"]: r["value"] for r in found(proofs, "over_alpha", variant=v)}
        for v in ("aggregated", "client_specific")
    )
    for alpha, value in whole.items():
        assert (own[alpha] > value) == (alpha > 5.70803489)


def test_points_of_the_examples():
    x = triangle(2.0, 30.0)
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(x.T @ x / 3, 2 * np.eye(2), atol=1e-15)
    a, b = pair(120.0, 5)
    assert a @ b == pytest.approx(-0.5) and np.linalg.norm(b) == pytest.approx(1)


@pytest.mark.parametrize("kind", ["isotropic", "own"])
def test_readings_record_both_sides_of_every_inequality(kind):
    config = {**READ, "covariances": kind, "pool": 6}
    rows = rows_of(config)
    # Masked and pooled once a draw, the full kernel at both α: three inequalities each.
    assert Counter(r["metric"] for r in rows) == {
        "remains": 2,
        "reading": 24,
        "reading_left": 24,
        "reading_right": 24,
    }
    for r in found(rows, "reading"):
        keys = {k: r[k] for k in ("variant", "split", "draw", "parameter") if k in r}
        (left,), (right,) = (found(rows, f"reading_{s}", **keys) for s in ("left", "right"))
        certain = left["upper"] <= right["lower"]
        failed = left["lower"] > right["upper"]
        assert r["note"] == ("certified" if certain else "violated" if failed else "consistent")
        if r["variant"] == "masked":
            assert r["note"] == "certified"
    assert {r.get("parameter") for r in found(rows, "reading", variant="full")} == {0.5, 5.0}


def test_readings_of_given_points_centre_them_first():
    x, _ = gaussian_clients(np.random.default_rng(1), 1, 60, 3)
    client = np.repeat(["b", "a"], 30)
    plain, moved = (rows_of(READ, (x + shift, client)) for shift in (0.0, 7.0))
    for one, other in zip(plain, moved, strict=True):
        assert one["value"] == pytest.approx(other["value"], rel=1e-9)


def test_isotropic_variances_keep_the_trace():
    x, client = np.array([[3.0, 1.0], [-3.0, -1.0], [1.0, 0.0]]), np.array(["a", "a", "b"])
    assert isotropic_variances(x, client) == {"a": 5.0, "b": 0.5}


def test_the_plan_tries_the_clients_own_covariances_beyond_the_quick_preset():
    for preset, kinds in (("quick", {"isotropic"}), ("default", {"isotropic", "own"})):
        plan = [s.config for s in convergence_plan(preset, "digits")]
        read = [c for c in plan if c["study"] == "readings"]
        assert {c["covariances"] for c in read} == kinds
        assert {c["data"] for c in read} == {"gaussian", "digits"}
        assert sum(c["study"] == "counterexamples" for c in plan) == 1
