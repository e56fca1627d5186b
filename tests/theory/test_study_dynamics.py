"""f and f* by gradient descent, held against the theorem, the linearisation and Hoeffding."""

from importlib import import_module

import numpy as np
import pytest

from theory.descent import Problem, linearised_losses
from theory.finite_width import kernels, predict
from theory.network import initialise
from theory.spectrum import Enclosure
from theory.studies import STUDIES
from theory.studies.points import unit_covariance_sample

# The package gives the function of this name the module's place.
dynamics = import_module("theory.studies.dynamics")

CONFIG = {"seed": 0, "data": "gaussian", "clients": 2, "samples": 3, "dimension": 4}
CONFIG |= {"alpha": 2.0, "width": 64, "steps": 40, "draw": 0}
VARIANTS = [f"{net}|{choice}" for net in ("f", "f*") for choice in ("common", "own")]


def generators(*purpose):
    """A stand-in for the seeds of `empirical`: every purpose has a stream of its own."""
    return np.random.default_rng([sum(map(ord, str(part))) for part in purpose])


def run(**changes):
    rows = STUDIES["dynamics"]({**CONFIG, **changes}, None, generators, lambda _: None)
    return list(rows)


def found(rows, metric, **where):
    return [r for r in rows if r["metric"] == metric and where.items() <= r.items()]


def single(rows, metric, **where):
    (row,) = found(rows, metric, **where)
    return row


def curve(rows, metric, variant):
    return {r["round"]: r["value"] for r in found(rows, metric, variant=variant)}


@pytest.fixture(scope="module")
def rows():
    return run()


def rebuilt(config=CONFIG):
    """The points, targets and networks that the study made, by its purposes."""
    x, client = unit_covariance_sample(config, None, generators, config["draw"])
    random = generators(config["seed"], "dynamics", config["data"], config["draw"])
    y = random.choice([-1.0, 1.0], size=len(x))
    shared = {"alpha": config["alpha"], "seed": int(random.integers(2**62))}
    nets = {
        net: initialise(config["width"], x.shape[1], [0, 1], client_specific=star, **shared)
        for net, star in (("f", False), ("f*", True))
    }
    return x, client, y, nets


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_bound_is_the_theorems(rows, variant):
    net = variant.split("|")[0]
    e0 = single(rows, "limit_smallest_eigenvalue", variant=net)
    eta = single(rows, "step_size", variant=variant)["value"]
    measured, bound = (curve(rows, m, variant) for m in ("squared_residual", "bound"))
    assert list(measured) == list(bound) == list(range(41))
    for step, row in enumerate(found(rows, "bound", variant=variant)):
        expected = (1 - eta * e0["value"] / 2) ** step * measured[0]
        # The rounding of the first residual widens the bound by a few 1e-13 of it.
        assert row["value"] == pytest.approx(expected, rel=1e-11)
        assert row["lower"] <= expected * (1 + 1e-14) and expected * (1 - 1e-14) <= row["upper"]
    slack = single(rows, "bound_slack_decades", variant=variant)
    gaps = {t: np.log10(bound[t] / measured[t]) for t in measured if t}
    assert slack["value"] == pytest.approx(min(gaps.values()), abs=1e-9)
    assert gaps[slack["round"]] == pytest.approx(slack["value"], abs=1e-9)
    assert slack["note"] == ("certified" if min(gaps.values()) > 0 else "violated")
    final = single(rows, "final_slack_decades", variant=variant)
    assert final["round"] == 40
    assert final["value"] == pytest.approx(gaps[40], abs=1e-9)
    factor = single(rows, "factor", variant=variant)["value"]
    assert factor == pytest.approx(1 - eta * e0["lower"] / 2, rel=1e-12)
    promised = single(rows, "steps_promised", variant=variant)["value"]
    assert factor**promised <= 1e-3 < factor ** (promised - 1)


@pytest.mark.parametrize("variant", VARIANTS)
def test_training_starts_as_its_linearisation_says_and_from_the_same_residual(rows, variant):
    x, client, y, nets = rebuilt()
    net = nets[variant.split("|")[0]]
    residual = predict(net, x, client, 1.0) - y
    eta = single(rows, "step_size", variant=variant)["value"]
    kernel = kernels(net, x, client, 1.0).Lambda
    expected = 2 * linearised_losses(kernel, residual, eta, 40)
    predicted = curve(rows, "linearised", variant)
    np.testing.assert_allclose(list(predicted.values()), expected, rtol=1e-12)
    assert predicted[0] == pytest.approx(residual @ residual, rel=1e-12)
    assert curve(rows, "squared_residual", variant)[0] == pytest.approx(predicted[0], rel=1e-12)


def test_the_common_step_is_the_smaller_of_the_two_largest(rows):
    x, client, _, nets = rebuilt()
    own = {}
    for net, network in nets.items():
        kernel = kernels(network, x, client, 1.0).Lambda
        values = np.linalg.eigvalsh(kernel)
        own[net] = single(rows, "step_size", variant=f"{net}|own")["value"]
        assert own[net] == pytest.approx(1 / values[-1], rel=1e-10) and own[net] * values[-1] < 1
        for metric, value in (("smallest", values[0]), ("largest", values[-1])):
            row = single(rows, f"{metric}_eigenvalue", variant=net)
            assert row["lower"] < value < row["upper"]
            # As wide as the rounding of the kernel itself asks for: (m + d)u tr Λ and more.
            assert row["upper"] - row["lower"] > 2 * 64 * 2.0**-53 * np.trace(kernel)
    for net in nets:
        assert single(rows, "step_size", variant=f"{net}|common")["value"] == min(own.values())


@pytest.mark.parametrize(("alpha", "dominates"), [(0.5, 0.0), (1.2, 0.0), (20.0, 1.0)])
def test_magnitude_dominates_where_the_limits_say_so(alpha, dominates):
    rows = run(alpha=alpha, steps=2)
    limit = {r["variant"]: r for r in found(rows, "limit_smallest_eigenvalue")}
    assert single(rows, "magnitude_dominates")["value"] == dominates
    assert dominates == (limit["V"]["upper"] < limit["f"]["lower"])
    assert limit["f*"]["upper"] >= limit["f"]["lower"]
    assert limit["printed"]["value"] == pytest.approx(alpha**2 * 4 * limit["f"]["value"], rel=1e-9)
    # The limits of f and f* are free of α.
    assert limit["f"] == single(run(steps=2), "limit_smallest_eigenvalue", variant="f")


def problem(n=6, d=3, seed=0):
    random = np.random.default_rng(seed)
    x = random.standard_normal((n, d))
    return Problem(x, np.ones(n), np.repeat([0, 1], n // 2), 1.0)


def gaps(width, seed, alpha=1.0, given=None, d=3):
    given = problem(d=d) if given is None else given
    net = initialise(width, d, 2, alpha=alpha, seed=seed, client_specific=False)
    return {r["variant"]: r["value"] for r in dynamics._entry_rows(net, given, alpha)}


def test_entry_gaps_are_distances_in_hoeffdings_radii():
    given = problem()
    x, m = np.asarray(given.x), 50
    net = initialise(m, 3, 2, alpha=1.7, seed=4, client_specific=False)
    size = np.linalg.norm(x, axis=1)
    acts = np.maximum(x @ net.v.T, 0) / np.linalg.norm(net.v, axis=1)
    # Means of m terms in [0, ‖x‖‖y‖]: P(|mean − μ| > t‖x‖‖y‖) ≤ 2 exp(−2mt²) each; the union over
    # 6·7/2 entries with a total of 1e-9 gives this t.
    t = np.sqrt(np.log(2 * 21 / 1e-9) / (2 * m))
    angle = np.arccos(np.clip(x @ x.T / np.outer(size, size), -1, 1))
    profile = (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)
    measured = (acts @ acts.T / m) / np.outer(size, size)
    found = gaps(m, 4, alpha=1.7)
    assert found["limit"] == pytest.approx(np.abs(measured - profile / 3).max() / t, rel=1e-6)
    assert found["printed"] == pytest.approx(
        np.abs(measured - 1.7**2 * profile).max() / t, rel=1e-6
    )


def test_the_right_limit_stays_within_the_radius_for_many_networks():
    worst = [gaps(64, seed)["limit"] for seed in range(300)]
    assert max(worst) <= 1
    assert max(worst) > 0.2  # the radius is no vacuous one
    # Neither radius nor distance depends on the lengths of the points.
    scaled = problem()
    longer = Problem(1e3 * np.asarray(scaled.x), scaled.y, scaled.client, 1.0)
    assert gaps(64, 7, given=longer)["limit"] == pytest.approx(gaps(64, 7)["limit"], rel=1e-9)


def test_a_wrong_kernel_is_excluded_once_the_network_is_wide(monkeypatch):
    right = dynamics.normalised_gram_matrix
    monkeypatch.setattr(dynamics, "normalised_gram_matrix", lambda x: 1.2 * right(x))
    assert gaps(100_000, 0, d=4)["limit"] > 1
    # Eq. (10) is excluded, but for the one α at which α²d = 1 and it is the limit.
    assert gaps(100_000, 0, alpha=1.0, d=4)["printed"] > 10
    assert gaps(100_000, 0, alpha=0.5, d=4)["printed"] <= 1


def test_a_run_that_diverges_says_when_and_writes_no_curve(monkeypatch):
    tiny = Enclosure(1e-9, 1e-9, "far too small")
    monkeypatch.setattr(dynamics, "largest_eigenvalue", lambda *_: tiny)
    rows = run()
    for variant in VARIANTS:
        kept = {r["metric"] for r in rows if r.get("variant") == variant}
        assert kept == {"step_size", "diverged_at"}
        assert 0 < single(rows, "diverged_at", variant=variant)["value"] <= 40
    assert all(np.isfinite(r["value"]) for r in rows)


def test_where_e0_may_be_zero_no_width_and_no_rate_is_promised(monkeypatch):
    x, client, _, _ = rebuilt()
    x[client == 1] = x[client == 0]  # duplicates across the clients: G∞ is singular, G*∞ is not
    monkeypatch.setattr(dynamics, "unit_covariance_sample", lambda *_: (x, client))
    rows = run(steps=5)
    assert single(rows, "limit_smallest_eigenvalue", variant="f")["lower"] <= 0
    assert [r["variant"] for r in found(rows, "required_width")] == ["f*"]
    for metric in ("factor", "steps_promised"):
        assert [r["variant"] for r in found(rows, metric)] == ["f*|common", "f*|own"]
    assert len(found(rows, "bound_slack_decades")) == 4


def test_the_same_config_gives_the_same_rows(rows):
    assert run() == rows
    assert run(draw=1) != rows
