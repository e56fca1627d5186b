"""The bounds on Gaussian clients: terms against simulation and formulas, the bound never broken."""

import json
import math
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from figures.records import SCHEMA, RunStore
from theory.bounds import Bound, Term
from theory.studies import STUDIES

study = import_module("theory.studies.gaussian_bounds")  # whose name the function has, too


CONFIG = {
    "study": "gaussian_bounds",
    "data": "gaussian",
    "teacher": "input",
    "clients": 3,
    "dimension": 3,
    "samples": 4000,
    "spreads": [1.0, 2.5],
    "draws": 1,
    "delta": 0.05,
    "seed": 0,
}
TERMS = (
    "empirical risk",
    "half the divergence",
    "ideal joint error",
    "capacity of the divergence",
    "capacity of the risk",
)


def generators(*purpose):
    return np.random.default_rng([sum(map(ord, str(part))) for part in purpose])


def rows_of(**changes):
    return list(STUDIES["gaussian_bounds"](CONFIG | changes, None, generators, lambda _: None))


def single(rows, metric, **where):
    (row,) = (r for r in rows if r["metric"] == metric and where.items() <= r.items())
    return row


@pytest.fixture(scope="module", params=study.TEACHERS)
def taught(request):
    return request.param, rows_of(teacher=request.param)


def test_every_row_fits_the_schema_and_comes_back(tmp_path):
    config = CONFIG | {"samples": 200, "teacher": "whitened"}
    told = []
    rows = list(STUDIES["gaussian_bounds"](config, None, generators, told.append))
    assert told == [0.5, 1.0]
    with RunStore(tmp_path).writing(config) as run:
        run.add(rows)
    back = RunStore(tmp_path).read(run.hash)
    assert back.columns == [*SCHEMA, "run"] and back.height == len(rows) == 2 * 3 * 11
    again = json.loads(json.dumps(config))
    assert list(STUDIES["gaussian_bounds"](again, None, generators, lambda _: None)) == rows


def test_the_terms_add_up_to_the_total(taught):
    _, rows = taught
    for variant in study.FEATURES:
        for spread in CONFIG["spreads"]:
            at = {"variant": variant, "parameter": spread}
            terms = [single(rows, "term", split=name, **at) for name in TERMS]
            total = single(rows, "term", split="total", **at)
            for end in ("value", "lower", "upper"):
                assert math.fsum(t[end] for t in terms) == pytest.approx(total[end], abs=1e-12)
            assert total["note"].endswith(": bound")
            assert ("(18)" if variant == "whitened" else "(16)") in total["note"]


def test_whitening_takes_the_divergence_and_puts_the_labels_into_the_ideal_error(taught):
    teacher, rows = taught
    ends = {
        (variant, name): single(rows, "term", variant=variant, split=name, parameter=2.5)
        for variant in study.FEATURES
        for name in TERMS
    }
    divergence, ideal = "half the divergence", "ideal joint error"
    assert ends["whitened", divergence]["upper"] == 0.0 < 0.05 < ends["raw", divergence]["lower"]
    assert ends["per_unit", divergence]["lower"] > 0.05  # correlations stay
    if teacher == "input":
        assert ends["raw", ideal]["upper"] < 1e-7 < 0.02 < ends["whitened", ideal]["lower"]
    else:
        assert ends["whitened", ideal]["upper"] < 1e-7 < 0.02 < ends["raw", ideal]["upper"]
    # Nothing is estimated of the divergence; what that would cost is said beside.
    assert ends["raw", "capacity of the divergence"]["upper"] == 0.0
    assert single(rows, "spare_capacity", variant="raw", parameter=2.5)["value"] > 0.2


def test_equal_clients_have_neither_divergence_nor_ideal_error(taught):
    _, rows = taught
    for variant in study.FEATURES:
        at = {"variant": variant, "parameter": 1.0}
        for name in ("half the divergence", "ideal joint error"):
            assert single(rows, "term", split=name, **at)["upper"] < 1e-7
        assert single(rows, "external_risk", **at)["value"] < 0.02


def features(drawn, spread, variant, covariance):
    """z of x by SciPy's roots, another way than the study's."""
    sigma = drawn.directions @ covariance @ drawn.directions.T
    if variant == "raw":
        return np.eye(len(sigma))
    if variant == "per_unit":
        return np.diag(sigma.diagonal() ** -0.5) @ drawn.directions
    return np.linalg.inv(scipy.linalg.sqrtm(sigma).real) @ drawn.directions


def covariances(drawn, spread):
    pairs = zip(drawn.left, drawn.exponents, strict=True)
    return [basis @ np.diag(spread**e) @ basis.T for basis, e in pairs]


@pytest.mark.parametrize("variant", study.FEATURES)
def test_risks_divergences_and_ideal_errors_by_simulation(taught, variant):
    teacher, rows = taught
    spread, at = 2.5, {"variant": variant, "parameter": 2.5}
    drawn = study._drawn(generators(CONFIG["seed"], "gaussian_bounds", 0), CONFIG)
    laws = covariances(drawn, spread)
    maps = [features(drawn, spread, variant, s) for s in laws]
    whitening = [features(drawn, spread, "whitened", s) for s in laws]
    clients = study._clients(drawn, spread, variant, teacher)
    a = study._fitted(clients.z, clients.y)

    rng = np.random.default_rng(1)
    n = 200_000
    x = rng.multivariate_normal(np.zeros(3), laws[-1], n)
    label = drawn.rule if teacher == "input" else whitening[-1].T @ drawn.rule
    wrong = np.mean((x @ maps[-1].T @ a > 0) != (x @ label > 0))
    risk = single(rows, "external_risk", **at)["value"]
    assert abs(wrong - risk) < 5 * math.sqrt(max(risk, 1e-4) / n)

    halves = []
    for s, to in zip(laws[:-1], maps[:-1], strict=True):
        values = scipy.linalg.eigh(maps[-1] @ laws[-1] @ maps[-1].T, to @ s @ to.T)[0]
        root = (values[-1] / values[0]) ** 0.25
        halves.append(8 / math.pi * math.atan(root) - 2)
    pair = single(rows, "pair_divergence", **at)
    assert pair["lower"] - 1e-7 <= np.mean(halves) <= pair["upper"] + 1e-7

    # Labels are rules of the same z under the whitened law, which simulation compares.
    if variant == "whitened":
        z = rng.standard_normal((n, 3))
        rules = [drawn.rule] * len(laws)
        if teacher == "input":
            rules = [np.linalg.inv(to).T @ drawn.rule for to in maps]
        apart = np.mean([(z @ r > 0) != (z @ rules[-1] > 0) for r in rules[:-1]])
        ideal = single(rows, "term", split="ideal joint error", **at)["value"]
        assert abs(apart - ideal) < 5 * math.sqrt(max(ideal, 1e-4) / n)


@settings(max_examples=12, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(study.TEACHERS),
    st.sampled_from(study.DIRECTIONS),
    st.sampled_from([1.0, 1.5, 4.0, 12.0]),
)
def test_the_bound_is_never_broken(seed, teacher, directions, spread):
    changes = {"samples": 600, "seed": seed, "teacher": teacher, "directions": directions}
    for row in rows_of(**changes, spreads=[spread]):
        if row["metric"] == "holds":
            assert row["note"] in ("certified", "consistent"), row


def test_a_broken_bound_would_be_seen():
    risk = study.Enclosure(0.3, 0.3, "")
    small = Bound("", (Term("a", 0.0, 0.1, ""), Term("ideal joint error", 0.25, 0.26, "")), 0.05)
    holds, without = (
        r for r in study._bound_rows(small, risk, {}) if r["metric"].startswith("holds")
    )
    assert (holds["note"], without["note"]) == ("consistent", "violated")
    low = replace(small, terms=small.terms[:1])
    notes = [r["note"] for r in study._bound_rows(low, risk, {}) if r["metric"] == "holds"]
    assert notes == ["violated"]


def test_per_unit_scaling_removes_little_even_along_orthogonal_directions():
    raw, per_unit = (
        np.mean([r["value"] for r in rows if r.get("variant") == variant])
        for rows in [
            [
                r
                for r in rows_of(directions="orthogonal", draws=10, samples=100, spreads=[2.5])
                if r["metric"] == "pair_divergence"
            ]
        ]
        for variant in ("raw", "per_unit")
    )
    assert 0.6 * raw < per_unit < raw


def test_without_the_ideal_error_the_bound_can_fail():
    # Where clients differ much, labels of x are so many rules of z that (18) needs ε.
    rows = rows_of(teacher="input", clients=2, samples=20_000, spreads=[30.0], draws=8)
    notes = {
        metric: [
            r["note"] for r in rows if r["metric"] == metric and r.get("variant") == "whitened"
        ]
        for metric in ("holds", "holds_without_ideal_error")
    }
    assert set(notes["holds"]) == {"certified"}
    assert "violated" in notes["holds_without_ideal_error"]


@pytest.mark.parametrize(
    ("change", "message"),
    [({"teacher": "none"}, "teacher must be"), ({"directions": "any"}, "directions must be")],
)
def test_unknown_settings_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        rows_of(**change)


@pytest.mark.parametrize("directions", study.DIRECTIONS)
def test_per_unit_bn_undoes_scales_of_its_units_and_nothing_else(directions):
    for shift in study.SHIFTS:
        rows = rows_of(shift=shift, directions=directions, samples=200, spreads=[1.0, 4.0])
        left = {(r["variant"], r["parameter"]): r for r in rows if r["metric"] == "pair_divergence"}
        assert left["raw", 4.0]["lower"] > 0.1
        # A divergence of features that agree but for rounding is 2^-26 at most.
        scales_alone = left["per_unit", 4.0]["upper"] < 1e-7
        assert scales_alone == (shift == "scale")
        assert left["whitened", 4.0]["upper"] == 0
        assert all(row["upper"] < 1e-7 for (_, spread), row in left.items() if spread == 1)


def test_a_shift_of_scales_has_one_correlation_matrix():
    drawn = study._drawn(generators(0), CONFIG | {"shift": "scale"})
    clients = study._clients(drawn, 4.0, "per_unit", "input")
    first, *others = (law.covariance for law in clients.laws)
    for law in others:
        np.testing.assert_allclose(law, first, rtol=0, atol=1e-10)  # roundings × cond(V)²
    assert np.abs(first - np.eye(3)).max() > 0.05


def test_an_unknown_shift_is_refused():
    with pytest.raises(ValueError, match="shift must be one of"):
        rows_of(shift="mean")
