"""Risks of the answers: closed forms, quadrature and simulation against one another."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from theory import Domain, StructuralModel, structural_model, structural_risk
from theory.structural_answers import ANSWERS, behind
from theory.structural_risk import _quadrature, relevant, simulated_errors

CASES = [("shift", 1.0), ("label shift", 0.4), ("confounded", 1.5), ("feature scales", 0.6)]
CONTENT = (1.1, -0.4)
UNEVEN = StructuralModel(
    CONTENT,
    (
        Domain(0.3, (0.5, 1.5, 1.0), (1.0, -1.0, 0.3), 0.8),
        Domain(0.6, (1.2, 0.7, 2.0), (-0.5, 0.2, 0.0), 0.2),
    ),
    Domain(0.8, (1.4, 0.6, 1.1), (1.5, 0.5, 0.7), -0.9),
    (0.3, 0.7),
)


def z_of(model, answer, risk, n, batch_size=None):
    """How many standard errors the simulated risk lies from the exact one."""
    random = np.random.default_rng([n, len(answer), batch_size or 0])
    wrong = simulated_errors(model, answer, n, random, batch_size)
    return (wrong / n - risk.value) / math.sqrt(risk.value * (1 - risk.value) / n)


@pytest.mark.parametrize("case", [*CASES, None], ids=lambda c: c[0] if c else "uneven")
@pytest.mark.parametrize("answer", ANSWERS)
def test_the_exact_risk_is_the_simulated_one(case, answer):
    model = UNEVEN if case is None else structural_model(*case)
    risk = structural_risk(model, answer)
    assert risk.lower <= risk.value <= risk.upper and risk.error < 1e-3
    assert abs(z_of(model, answer, risk, 50_000)) < 5


@pytest.mark.parametrize("case", [*CASES, None], ids=lambda c: c[0] if c else "uneven")
@pytest.mark.parametrize("n", [2, 3, 8, 40])
def test_the_exact_risk_with_a_batch_s_statistics_is_the_simulated_one(case, n):
    model = UNEVEN if case is None else structural_model(*case)
    risk = structural_risk(model, "do_s", n)
    assert risk.error < 1e-3 and risk.route == "quadrature"
    assert abs(z_of(model, "do_s", risk, 6_000, n)) < 5


@pytest.mark.parametrize("separation", [0.5, 1.5, 3.0])
def test_do_f_and_bayes_have_their_textbook_risks(separation):
    model = structural_model("label shift", 0.3, separation=separation)
    assert structural_risk(model, "do_f").value == pytest.approx(norm.cdf(-separation), rel=1e-12)
    # Unequal labels: the threshold moves by log odds/(2δ) (Fisher's rule).
    move = math.log(0.8 / 0.2) / (2 * separation)
    wanted = 0.8 * norm.cdf(-separation - move) + 0.2 * norm.cdf(-separation + move)
    assert structural_risk(model, "bayes").value == pytest.approx(wanted, rel=1e-12)
    confounded = structural_model("confounded", 2.0, separation=separation)
    wanted = norm.cdf(-math.hypot(separation, 2.0))
    assert structural_risk(confounded, "bayes").value == pytest.approx(wanted, rel=1e-11)


def test_one_training_domain_that_is_confounded_errs_as_a_linear_rule_does():
    train, unseen = Domain(nuisance=1.0), Domain(nuisance=-2.0)
    model = StructuralModel((1.5, 0.0), (train,), unseen)
    wanted = norm.cdf(-(1.5**2 - 2.0) / math.hypot(1.5, 1.0))
    for answer in ("observational", "backdoor"):
        risk = structural_risk(model, answer)
        assert risk.route == "closed form" and risk.value == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("answer", ["observational", "backdoor"])
def test_the_quadrature_gives_the_closed_form_where_there_is_one(answer):
    model = StructuralModel(CONTENT, UNEVEN.domains[:1], UNEVEN.unseen)
    exact = structural_risk(model, answer)
    assert exact.route == "closed form"
    assert _quadrature(model, answer, (1, 2), 0.5) == pytest.approx(exact.value, abs=1e-12)


def test_features_that_are_left_out_would_change_nothing():
    model = structural_model("confounded", 1.0)
    assert relevant(model, "observational") == (1,)
    whole = _quadrature(model, "observational", (1, 2), 0.5)
    assert structural_risk(model, "observational").value == pytest.approx(whole, abs=1e-12)
    assert relevant(structural_model("shift", 1.0), "observational") == (1, 2)
    assert relevant(structural_model("shift", 1.0), "backdoor") == ()
    normalised = behind(structural_model("shift", 1.0), "do_s")
    assert relevant(normalised, "observational") == ()


@pytest.mark.parametrize("strength", [2.0, 4.0])
def test_the_stated_error_covers_what_a_finer_rule_finds(strength):
    model = structural_model("shift", strength)
    risk = structural_risk(model, "observational")
    finer = _quadrature(model, "observational", (1, 2), 0.17)
    assert abs(finer - risk.value) <= risk.error < 1e-4


def test_a_training_domain_that_is_narrow_is_seen():
    model = StructuralModel(
        (1.5, 0.0), (Domain(scale=(0.1, 1, 1)), Domain(shift=(0.5, 0, 0))), Domain()
    )
    risk = structural_risk(model, "observational")
    assert abs(z_of(model, "observational", risk, 200_000)) < 5


@pytest.mark.parametrize("n", [2, 3, 5, 32, 129])
def test_statistics_of_a_batch_cost_what_the_shifted_mean_says(n):
    """With one threshold in the middle only the batch's mean matters: a sum over its labels."""
    k = np.arange(n)
    u = 1.5 * (1 - (2 * k - n + 1) / (n - 1)) * math.sqrt((n - 1) / n)
    wanted = float(binom.pmf(k, n - 1, 0.5) @ norm.cdf(-u))
    risk = structural_risk(structural_model("shift", 2.0), "do_s", n)
    assert risk.value == pytest.approx(wanted, abs=1e-11)
    assert abs(risk.value - wanted) <= risk.error + 1e-13


def test_two_points_err_as_often_as_their_order_does():
    """n_t = 2 by hand: half of the pairs share a label, where the order is a coin."""
    wanted = 0.5 * 0.5 + 0.5 * norm.cdf(-2 * 1.5 / math.sqrt(2))
    risk = structural_risk(structural_model("shift", 1.0), "do_s", 2)
    assert risk.value == pytest.approx(wanted, abs=1e-12)


def test_features_that_say_nothing_leave_the_likelier_label():
    def model(rate):
        return StructuralModel((0.0, 1.0), (Domain(rate, nuisance=-1.0),), Domain(0.7))

    for answer in ("observational", "backdoor", "do_s"):
        assert structural_risk(model(0.6), answer).value == pytest.approx(0.3, abs=1e-12)
        assert structural_risk(model(0.4), answer).value == pytest.approx(0.7, abs=1e-12)
        assert structural_risk(model(0.5), answer).value == pytest.approx(0.7, abs=1e-12)
    assert structural_risk(model(0.6), "do_s", 4).value == pytest.approx(0.3, abs=1e-12)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
def test_many_points_give_the_population_s_risk(case):
    model = structural_model(*case)
    limit = structural_risk(model, "do_s").value
    few, many = (structural_risk(model, "do_s", n).value for n in (64, 256))
    # The excess falls like 1/n.
    assert abs(many - limit) < 1.5e-3
    assert (few - limit) / (many - limit) == pytest.approx(4.0, rel=0.15)


def test_normalising_by_a_batch_undoes_scale_and_shift_exactly():
    moved = Domain(0.8, (9.0, 0.1, 2.0), (-4.0, 3.0, 0.0), -0.9)
    other = StructuralModel(CONTENT, UNEVEN.domains, moved, UNEVEN.weights)
    for n in (None, 3, 16):
        a, b = structural_risk(UNEVEN, "do_s", n), structural_risk(other, "do_s", n)
        assert a.value == pytest.approx(b.value, abs=1e-12)


def test_swapping_the_labels_changes_no_risk():
    def mirrored(d):
        return Domain(1 - d.label_rate, d.scale, -d.shift, d.nuisance)

    mirror = StructuralModel(
        CONTENT, tuple(map(mirrored, UNEVEN.domains)), mirrored(UNEVEN.unseen), UNEVEN.weights
    )
    for answer in ANSWERS:
        a, b = structural_risk(UNEVEN, answer), structural_risk(mirror, answer)
        assert a.value == pytest.approx(b.value, abs=a.error + b.error)
    a, b = structural_risk(UNEVEN, "do_s", 5), structural_risk(mirror, "do_s", 5)
    assert a.value == pytest.approx(b.value, abs=a.error + b.error + 1e-9)


def test_nothing_errs_less_often_than_bayes():
    for case in CASES:
        model = structural_model(*case)
        best = structural_risk(model, "bayes").value
        assert all(structural_risk(model, answer).upper >= best for answer in ANSWERS)


def test_what_the_argument_says_and_where_it_stops():
    """The numbers of the docs: normalising is intervening under shift, and nowhere else."""
    shift = structural_model("shift", 4.0)
    assert structural_risk(shift, "do_s").value == structural_risk(shift, "do_f").value
    assert structural_risk(shift, "backdoor").value > 0.48
    skewed = structural_model("label shift", 0.45)
    assert structural_risk(skewed, "do_s").value == pytest.approx(0.418, abs=1e-3)
    assert structural_risk(skewed, "observational").value == pytest.approx(0.0668, abs=1e-4)
    confounded = structural_model("confounded", 2.0)
    assert structural_risk(confounded, "do_s").value > 0.6


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: structural_risk(UNEVEN, "do_x"), ValueError, "unknown answer"),
        (lambda: structural_risk("model", "do_s"), TypeError, "must be a StructuralModel"),
        (lambda: structural_risk(UNEVEN, "do_f", 8), ValueError, "leave it out"),
        (lambda: structural_risk(UNEVEN, "do_s", 1), ValueError, "one point has no variance"),
        (lambda: structural_risk(UNEVEN, "do_s", 2.0), ValueError, "whole number"),
        (lambda: structural_risk(UNEVEN, "do_s", True), ValueError, "whole number"),
        (lambda: structural_risk(UNEVEN, "do_s", 10**6), ValueError, "2 … 4096"),
        (
            lambda: structural_risk(structural_model("confounded", 40.0), "do_s"),
            ValueError,
            "standard deviations apart",
        ),
        (
            lambda: structural_risk(structural_model("feature scales", 6.0), "observational"),
            ValueError,
            "far narrower",
        ),
    ],
)
def test_what_has_no_risk_is_refused_with_advice(make, error, words):
    with pytest.raises(error, match=words):
        make()
