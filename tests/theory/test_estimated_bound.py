"""Bounds assembled from arrays: each term by hand, δ shared out, and the risk that they cover."""

import math
from fractions import Fraction

import numpy as np
import pytest

import theory
from theory.bounds import Term
from theory.capacity import divergence_capacity, risk_capacity
from theory.divergence import homogeneous_pair_divergence
from theory.estimated_bound import generalization_bound
from theory.estimated_terms import cross_losses_risk, oracle_ideal_error
from theory.estimates import Estimate
from theory.half_spaces import LabelledGaussian, half_space_risk, ideal_half_space_error

LOSSES = [[0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]]
SEEN = [np.arange(8.0).reshape(4, 2), np.arange(12.0).reshape(6, 2)]
UNSEEN = np.arange(40.0).reshape(20, 2)
D = 3
MEAN = Term("", 0.1, 0.2, "made up", weights=(0.9, 0.1))
IDEAL = Term("ideal joint error", 0.0, 0.1, "made up")


def bound(**changes):
    given = {"vc_dimension": D, "divergences": [0.2, 0.4], "ideal_error": 0.1} | changes
    return generalization_bound(
        given.pop("losses", LOSSES), given.pop("seen", SEEN), given.pop("unseen", UNSEEN), **given
    )


def test_the_corollary_by_hand():
    found = bound()
    assert found.source == "Corollary III.8, Eq. (16)" and found.kind == "bound"
    expected = {
        "empirical risk": 3 / 10,
        "half the divergence": (0.4 * 0.2 + 0.6 * 0.4) / 2,
        "ideal joint error": 0.1,
        "capacity of the divergence": divergence_capacity(D, 10, 0.025).upper,
        "capacity of the risk": risk_capacity(D, 10, 0.025).upper,
    }
    for name, value in expected.items():
        assert found.term(name).upper == pytest.approx(value, rel=1e-12)
    assert found.total.upper == pytest.approx(sum(expected.values()), rel=1e-12)
    assert found.delta == pytest.approx(0.05)
    risk = found.term("empirical risk")
    assert [part.upper for part in risk.parts] == pytest.approx([1 / 2, 1 / 6])
    assert risk.weights == pytest.approx((0.4, 0.6))


@pytest.mark.parametrize("statement", ["13", "16"])
def test_few_unlabelled_points_cost_the_divergence_but_not_the_risk(statement):
    divergences = 0.3 if statement == "13" else [0.2, 0.4]
    found = bound(unseen=UNSEEN[:7], statement=statement, divergences=divergences)
    assert found.term("capacity of the divergence").upper == divergence_capacity(D, 7, 0.025).upper
    assert found.term("capacity of the risk").upper == risk_capacity(D, 10, 0.025).upper


def test_weights_leave_the_risk_the_points_of_the_seen_clients():
    few, many = (bound(unseen=UNSEEN[:k], weights=[0.5, 0.5]) for k in (3, 20))
    name = "capacity of the risk"
    assert few.term(name) == many.term(name) and "n_eff = 9.6" in few.term(name).origin
    name = "capacity of the divergence"
    factor = math.sqrt(10 / 3)
    assert few.term(name).upper == pytest.approx(factor * divergence_capacity(D, 10, 0.025).upper)
    assert "n_eff = 3" in few.term(name).origin and "n_eff = 9.6" in many.term(name).origin


def test_the_theorem_pools_the_seen_clients():
    def pooled(a, b, delta):
        assert np.array_equal(a, np.concatenate(SEEN)) and np.array_equal(b, UNSEEN)
        assert delta == pytest.approx(0.025)
        return Term("", 0.1, 0.3, "made up", delta=delta)

    found = bound(statement="13", divergences=pooled)
    assert found.source == "Theorem III.7, Eq. (13)"
    half = found.term("half the divergence")
    assert (half.lower, half.upper) == (0.05, 0.15)
    assert found.delta == pytest.approx(0.05)
    assert bound(statement="13", divergences=0.3).term("half the divergence").upper == 0.15
    assert bound(statement="13", divergences=[0.3]).term("half the divergence").upper == 0.15


def test_delta_is_shared_by_what_is_estimated_and_added_for_what_is_given():
    shares = []

    def measure(a, b, delta):
        shares.append(delta)
        return Term("", 0.0, 1.0, "made up", delta=delta)

    found = bound(divergences=measure, delta=0.08)
    assert shares == pytest.approx([0.02, 0.02])
    assert found.delta == pytest.approx(0.08)
    capacity = found.term("capacity of the risk").upper
    assert capacity == risk_capacity(D, 10, 0.02).upper  # half of what the two capacities have
    own = [Term("", 0.0, 1.0, "", delta=0.01), Term("", 0.0, 1.0, "", delta=0.02)]
    oracle = Term("", 0.0, 0.5, "", delta=0.005)
    assert bound(divergences=own, ideal_error=oracle).delta == pytest.approx(0.085)


def test_from_arrays_alone_it_is_a_diagnostic_that_says_why():
    rng = np.random.default_rng(0)
    seen = [rng.standard_normal((60, 2)), rng.standard_normal((40, 2)) + 3.0]
    losses = [np.zeros(60), np.ones(40)]
    found = generalization_bound(losses, seen, rng.standard_normal((80, 2)), vc_dimension=3)
    assert found.kind == "diagnostic, not a bound" and found.total.upper is None
    assert found.title.endswith("diagnostic, not a bound")
    names = [reason.split(":")[0] for reason in found.reasons]
    assert names == ["half the divergence", "ideal joint error"]
    near, far = (part.lower for part in found.term("half the divergence").parts)
    assert near < 0.3 and 0.5 < far <= 1.0  # half of d_H, of which 3σ apart gives 1.73
    assert "held-out" in found.term("half the divergence").origin
    assert found.delta == pytest.approx(0.05)
    again = generalization_bound(losses, seen, rng.standard_normal((80, 2)), vc_dimension=3, seed=1)
    assert again.term("half the divergence") != found.term("half the divergence")


def test_weights_by_size_are_the_default_and_others_cost_points():
    assert bound(weights=[0.4, 0.6]).total.upper == pytest.approx(bound().total.upper, rel=1e-9)
    found = bound(weights=[0.8, 0.2])
    effective = 1 / (Fraction(8, 10) ** 2 / 4 + Fraction(2, 10) ** 2 / 6)
    factor = math.sqrt(10 / effective)
    for name in ("capacity of the divergence", "capacity of the risk"):
        assert found.term(name).upper == pytest.approx(factor * bound().term(name).upper)
        assert "n_eff = 6" in found.term(name).origin
    assert found.term("empirical risk").upper == pytest.approx(0.8 / 2 + 0.2 / 6)


def test_ideal_errors_of_clients_bound_it_from_below():
    found = bound(ideal_error=[0.1, 0.2])
    ideal = found.term("ideal joint error")
    assert ideal.upper is None and ideal.lower == pytest.approx(0.4 * 0.1 + 0.6 * 0.2)
    alone = bound(losses=LOSSES[:1], seen=SEEN[:1], divergences=[0.2], ideal_error=[0.1])
    assert alone.kind == "bound"  # of one client the mean is ε itself


def test_without_divergence_the_law_must_be_vouched_for():
    for law, kind in ((None, "diagnostic, not a bound"), (True, "bound")):
        found = generalization_bound(
            LOSSES, SEEN, vc_dimension=D, statement="18", ideal_error=0.1, common_law=law
        )
        assert found.kind == kind and found.term("half the divergence").lower == 0.0
        assert found.term("capacity of the risk").upper == risk_capacity(D, 10, 0.05).upper
        assert found.term("capacity of the divergence").upper == 0.0


CROSS = [np.array([[0.0, 0.2, 0.4, 0.2], [1.0, 1.0, 0.6, 1.0]]), np.full((2, 6), [[0.5], [0.1]])]


def test_both_right_sides_of_eq_15_come_from_losses():
    found = cross_losses_risk(CROSS, mixture=LOSSES, convex_loss=True)
    printed = 0.4 * 0.2 + 0.6 * 0.1
    convex = 0.16 * 0.2 + 0.24 * 0.9 + 0.24 * 0.5 + 0.36 * 0.1
    assert found.printed.upper == pytest.approx(printed)
    assert found.convex.upper == pytest.approx(convex)
    assert found.by_convexity.verdict == "certified"
    assert found.as_printed.verdict == "violated"
    assert bound(losses=found.convex).kind == "bound"
    assert bound(losses=found.printed).kind == "diagnostic, not a bound"
    assert bound(losses=found.convex).term("empirical risk").upper == pytest.approx(convex)


def test_under_one_law_each_client_pays_for_its_own_points():
    given = {"vc_dimension": D, "statement": "18", "ideal_error": 0.0, "common_law": True}
    risk = cross_losses_risk(CROSS, convex_loss=True, common_labels=True)
    found = generalization_bound(risk, SEEN, **given)
    assert found.kind == "bound"
    assert found.term("capacity of the risk").upper == risk_capacity(D, 4, 0.025).upper


def test_the_oracle_by_hand():
    found = oracle_ideal_error(LOSSES, [0.0, 0.5, 0.5, 0.0], delta=0.1)
    radius = math.sqrt(math.log(20) / 2)
    value = 0.3 + radius / math.sqrt(10) + 0.25 + radius / math.sqrt(4)
    assert found.upper == pytest.approx(value) and (found.lower, found.delta) == (0.0, 0.1)
    weighted = oracle_ideal_error(LOSSES, [0.0] * 10**6, weights=[0.5, 0.5], delta=0.1)
    spread = math.sqrt(0.25 / 4 + 0.25 / 6)
    second = radius / 1000
    assert weighted.upper == pytest.approx(0.25 + 0.25 / 3 + radius * spread + second)
    assert oracle_ideal_error([[1.0]], [1.0]).upper == 2.0


def test_the_oracle_is_above_the_ideal_error():
    rng = np.random.default_rng(1)
    seen = LabelledGaussian(np.diag([1.0, 3.0]), [1.0, 0.3])
    unseen = LabelledGaussian(np.eye(2), [1.0, -0.3])
    ideal = ideal_half_space_error([1.0], [seen], unseen)
    failed = 0
    for _ in range(200):
        losses = []
        for law in (seen, unseen):
            z = rng.multivariate_normal([0, 0], law.covariance, 500)
            losses.append(((z @ [1.0, 0.0] > 0) != (z @ law.target > 0)).astype(float))
        failed += oracle_ideal_error(losses[:1], losses[1], delta=0.2).upper < ideal.upper
    assert failed <= 40


def test_it_covers_the_risk_on_gaussian_clients_and_is_not_vacuous():
    rng = np.random.default_rng(2)
    laws = [LabelledGaussian(np.diag(s), [1.0, t]) for s, t in (((1, 2), 0.2), ((2, 1), 0.0))]
    unseen = LabelledGaussian(np.eye(2), [1.0, -0.1])
    divergences = [homogeneous_pair_divergence(w.covariance, unseen.covariance) for w in laws]
    for _ in range(20):
        a = np.array([1.0, rng.uniform(-0.5, 0.5)])
        z = [rng.multivariate_normal([0, 0], law.covariance, 20_000) for law in laws]
        losses = [
            ((x @ a > 0) != (x @ law.target > 0)).astype(float)
            for x, law in zip(z, laws, strict=True)
        ]
        fresh = [rng.multivariate_normal([0, 0], w.covariance, 5000) for w in (*laws, unseen)]
        h = [
            ((x @ [1.0, 0.0] > 0) != (x @ w.target > 0)).astype(float)
            for x, w in zip(fresh, (*laws, unseen), strict=True)
        ]
        found = generalization_bound(
            losses,
            z,
            rng.multivariate_normal([0, 0], np.eye(2), 40_000),
            vc_dimension=2,
            divergences=divergences,
            ideal_error=oracle_ideal_error(h[:2], h[2], delta=0.01),
        )
        assert found.kind == "bound" and found.vacuous is False
        assert half_space_risk(a, unseen).upper < found.total.upper


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"statement": "17"}, ValueError, "statement must be one of"),
        ({"losses": []}, ValueError, "losses is empty"),
        ({"losses": 0.3}, TypeError, "losses must be a list"),
        ({"losses": [[0.0] * 4]}, ValueError, "do not match features"),
        ({"losses": [[0.0] * 3 + [2.0], [0.0] * 6]}, ValueError, "outside"),
        ({"losses": [[0.0] * 3 + [math.nan], [0.0] * 6]}, ValueError, "NaN"),
        ({"seen": []}, ValueError, "seen is empty"),
        ({"seen": [SEEN[0], SEEN[1][:, :1]]}, ValueError, "different numbers of columns"),
        ({"unseen": None}, ValueError, "needs the features of the unseen"),
        ({"unseen": UNSEEN[0]}, ValueError, "two dimensions"),
        ({"weights": [1.0]}, ValueError, "1 weights for 2 seen"),
        ({"weights": [0.5, 0.6]}, ValueError, "sum to 1.1"),
        ({"weights": [0.5, 0.5], "statement": "13"}, ValueError, "one pooled sample"),
        ({"divergences": [0.2]}, ValueError, "1 divergences for 2 seen clients"),
        ({"divergences": [0.2, 2.5]}, ValueError, "outside"),
        ({"divergences": [0.2, 0.2], "statement": "13"}, ValueError, "2 divergences for 1 pooled"),
        ({"statement": "18"}, ValueError, "no divergence"),
        ({"common_law": True}, ValueError, "belongs to"),
        ({"ideal_error": [0.1]}, ValueError, "1 values of ε for 2"),
        ({"ideal_error": 3.0}, ValueError, "outside"),
        ({"vc_dimension": 0}, ValueError, "vc_dimension"),
        ({"delta": 1.0}, ValueError, "delta"),
        ({"seed": -1}, ValueError, "seed"),
        ({"losses": cross_losses_risk(CROSS, convex_loss=True)}, TypeError, "one right side"),
    ],
)
def test_bad_input_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        bound(**changes)


BY_SIZE = cross_losses_risk(CROSS, convex_loss=True)
OTHER = cross_losses_risk(CROSS, weights=[0.9, 0.1], convex_loss=True)
THREE = cross_losses_risk([np.full((3, 4), 0.5)] * 3, convex_loss=True)
FAR = Estimate(0.4, (0.2, 0.6), 0.2, 0.01, (9, 9), 0.05, "made up")
LAW = {"statement": "18", "divergences": None, "common_law": True}
POOLED = {"statement": "13", "divergences": 0.3}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (LAW | {"losses": THREE}, ValueError, "a mean over 3 clients, but seen has features of 2"),
        (LAW | {"losses": THREE.printed}, ValueError, "a mean over 3 clients"),
        ({"losses": THREE.convex}, ValueError, "a mean over 3 clients"),
        (POOLED | {"losses": THREE.convex}, ValueError, "a mean over 3 clients"),
        (LAW | {"losses": BY_SIZE, "weights": [0.9, 0.1]}, ValueError, "use the same ω_i"),
        (LAW | {"losses": OTHER}, ValueError, "n_i/n, as no weights are given"),
        ({"losses": BY_SIZE.convex, "weights": [0.9, 0.1]}, ValueError, "use the same ω_i"),
        (POOLED | {"losses": OTHER.convex}, ValueError, "n_i/n, as no weights are given"),
        (POOLED | {"ideal_error": MEAN}, ValueError, "ideal_error is a mean with the weights"),
        (POOLED | {"divergences": MEAN}, ValueError, "divergences is a mean with the weights"),
        ({"ideal_error": FAR}, TypeError, "ideal joint error was given the divergence"),
        (POOLED | {"ideal_error": FAR}, TypeError, "ideal joint error was given the divergence"),
        (LAW | {"ideal_error": FAR}, TypeError, "ideal joint error was given the divergence"),
        ({"ideal_error": [FAR, 0.1]}, TypeError, "ε of client 0 was given the divergence"),
        ({"ideal_error": FAR.term()}, TypeError, "ideal joint error was given the divergence"),
        ({"ideal_error": BY_SIZE.convex}, TypeError, "ideal joint error was given the risk"),
        ({"losses": FAR.term()}, TypeError, "empirical risk was given the divergence"),
        ({"losses": IDEAL}, TypeError, "empirical risk was given the ideal joint error"),
        ({"divergences": [IDEAL, 0.1]}, TypeError, "divergence of client 0 was given the ideal"),
        ({"divergences": [BY_SIZE.printed, 0.1]}, TypeError, "client 0 was given the risk"),
        (
            {"divergences": [FAR.term().scaled(0.5, "half the divergence"), 0.1]},
            TypeError,
            "the half",
        ),
        ({"vc_dimension": 10**308}, ValueError, "vc_dimension is above 10"),
        ({"vc_dimension": 10**400}, ValueError, "vc_dimension is above 10"),
    ],
)
def test_pieces_that_do_not_belong_together_are_refused(changes, error, message):
    with pytest.raises(error, match=message):
        bound(**changes)


def test_pieces_that_belong_together_are_taken():
    weights = {"weights": [0.9, 0.1]}
    for changes in (
        LAW | {"losses": OTHER, **weights},
        LAW | {"losses": OTHER.printed, **weights},
        {"losses": OTHER.convex, "ideal_error": MEAN, **weights},
        POOLED | {"losses": BY_SIZE.convex},
        LAW | {"losses": BY_SIZE, "weights": [0.4 + 1e-12, 0.6 - 1e-12]},
        {"losses": Term("of whatever", 0.1, 0.1, ""), "ideal_error": IDEAL, **weights},
    ):
        assert bound(**changes).term("ideal joint error").lower >= 0
    assert np.isfinite(bound(vc_dimension=10**300, weights=[0.9, 0.1]).total.upper)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cross_losses_risk([[[0.1]], [[0.1]]], convex_loss=True), "have 1 rows"),
        (lambda: cross_losses_risk([[[1.1]]], convex_loss=True), "outside"),
        (lambda: cross_losses_risk([[[1]]], mixture=[[1, 0]], convex_loss=True), "one loss per"),
        (lambda: oracle_ideal_error([[0.5]], [1.5]), "losses_unseen are outside"),
        (lambda: oracle_ideal_error([[0.5]], [0.5], weights=[0.5, 0.5]), "2 weights for 1"),
    ],
)
def test_bad_losses_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_it_is_exported():
    assert theory.generalization_bound is generalization_bound
