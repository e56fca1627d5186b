"""Objects of the wrong kind, and numbers at the edge: a sentence that says what was given."""

import math

import numpy as np
import pytest

import theory
from theory._bn_setting import setting
from theory.capacity import capacity_order, divergence_capacity, risk_capacity
from theory.conditioning import quotient
from theory.crosscheck import crosscheck
from theory.kernel_error import kernels_error
from theory.laws import feature_laws
from theory.singular import as_angle

ONE = theory.Enclosure(1.0, 1.0, "")
START = theory.initialise(4, 2, ["a"], alpha=1.0, seed=0, client_specific=False)
TASK = theory.Problem(np.eye(2), [1.0, 2.0], ["a", "a"], 1.0)
DATA = TASK.x, TASK.client, TASK.covariances
WRONG = [None, 3, "a", [], {}, (1.0, 2.0), np.ones(2), object()]
RUN = dict(step_size=0.1)


@pytest.mark.parametrize("value", WRONG, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize(
    ("function", "name"),
    [
        (theory.step_sizes, "verdict must be what compare_smallest_eigenvalues"),
        (theory.best_factors, "condition must be an Enclosure"),
        (lambda v: theory.condition_number(v, ONE), "smallest must be an Enclosure"),
        (lambda v: theory.condition_number(ONE, v), "largest must be an Enclosure"),
        (lambda v: quotient(v, ONE, "it"), "numerator must be an Enclosure"),
        (lambda v: quotient(ONE, v, "it"), "denominator must be an Enclosure"),
        (lambda v: theory.federated_descent(v, TASK, rounds=1, **RUN), "network must be a Network"),
        (lambda v: theory.federated_descent(START, v, rounds=1, **RUN), "problem must be a Prob"),
        (lambda v: theory.gradient_descent(v, TASK, steps=1, **RUN), "network must be a Network"),
        (lambda v: theory.gradient_descent(START, v, steps=1, **RUN), "problem must be a Problem"),
        (lambda v: theory.kernel_drift(v, TASK, steps=1, **RUN), "network must be a Network"),
        (lambda v: theory.kernel_drift(START, v, steps=1, **RUN), "problem must be a Problem"),
        (lambda v: theory.kernel_limits(v, *DATA), "network must be a Network"),
        (lambda v: theory.predict(v, *DATA), "network must be a Network"),
        (lambda v: theory.jacobian(v, *DATA), "network must be a Network"),
        (lambda v: theory.kernels(v, *DATA), "network must be a Network"),
        (lambda v: kernels_error(v, *DATA), "network must be a Network"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_an_object_of_the_wrong_kind_is_named(function, name, value):
    with pytest.raises(TypeError, match=name):
        function(value)


@pytest.mark.parametrize("clients", [3, None, (name for name in "ab"), 1.5, object()])
def test_participants_are_drawn_from_a_sequence(clients):
    with pytest.raises(TypeError, match="clients must be a sequence with the name of every"):
        theory.sample_participants(clients, 0.5, 2, 0)


@pytest.mark.parametrize(
    "value", [np.array(["magnitude", "x"]), np.ones(2), None, 1, ["magnitude"]]
)
def test_a_choice_is_no_array(value):
    with pytest.raises(ValueError, match="component must be"):
        setting(np.eye(2), ["a", "a"], 1.0, 0.0, 1.0, value)
    with pytest.raises(ValueError, match="transform must be one of"):
        feature_laws(np.eye(2), np.stack([np.eye(2)] * 2), value)


@pytest.mark.parametrize("order", [np.array([0, 1]), None, "1", 2, 0.5, 1.0, True, [1]])
def test_an_order_is_zero_or_one(order):
    with pytest.raises(ValueError, match="order must be 1"):
        crosscheck(np.eye(2), order=order)


ABOVE_ONE = math.nextafter(1.0, 2.0)


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (lambda v: theory.sample_participants(["a", "b"], v, 1, 0), ABOVE_ONE),
        (lambda v: theory.empirical_risk([0.5, v]), ABOVE_ONE),
        (lambda v: theory.empirical_risk([0.5, v]), -5e-324),
        (lambda v: theory.empirical_risk([0.5], delta=v), ABOVE_ONE),
        (lambda v: theory.theorem_iii7(v, 0, 0, vc_dimension=1, n=9, delta=0.1), ABOVE_ONE),
        (
            lambda v: theory.theorem_iii7(
                0, theory.Enclosure(v, 3.0, ""), 0, vc_dimension=1, n=9, delta=0.1
            ),
            math.nextafter(2.0, 3.0),
        ),
        (lambda v: theory.mixture_divergence([1 - v, v], [0, 0]), -1e-13),
        (theory.pooled_threshold, math.nextafter(math.pi, 4)),
        (lambda v: theory.full_kernel_threshold(v, 2), math.nextafter(math.pi, 4)),
        (lambda v: theory.pooled_threshold(1.0, v), ABOVE_ONE),
        (as_angle, math.nextafter(0.1, 1)),
        (lambda v: theory.convergence_rate(0.1, 1.0, tolerance=v), ABOVE_ONE),
        (lambda v: theory.convergence_rate(0.1, 1.0, v), 1 + 1e-14),
        (
            lambda v: theory.bn_gram_matrix(np.eye(2), ["a", "a"], 1.0, tolerance=v),
            math.nextafter(0.01, 1),
        ),
    ],
)
def test_a_number_just_beyond_its_bound_is_shown_with_all_digits(function, value):
    with pytest.raises(ValueError, match=rf"{value!r}".replace(".", r"\.")):
        function(value)


def test_the_order_of_a_bound_shows_whole_numbers_in_full():
    with pytest.raises(ValueError, match="n = 1000001 points and VC dimension 1000002"):
        capacity_order(1000002, 1000001, 0.1)


@pytest.mark.parametrize("delta", [1e-300, 1e-307])
def test_tiny_deltas_have_finite_terms(delta):
    for capacity in (divergence_capacity, risk_capacity):
        term = capacity(3, 1000, delta)
        # log(1/δ) is 691 at 1e-300: the formula by hand.
        extra = math.log(2 if capacity is divergence_capacity else 4) - math.log(delta)
        growth = (
            6 * math.log(2000) if capacity is divergence_capacity else 3 * (1 + math.log(2000 / 3))
        )
        factor = 4 if capacity is divergence_capacity else 2
        wanted = factor * math.sqrt((growth + extra) / 1000)
        assert term.lower <= wanted * (1 + 1e-15) and wanted * (1 - 1e-15) <= term.upper
    assert theory.empirical_risk([0.0, 1.0] * 5000, delta=delta).population.upper < 1
    assert math.isfinite(theory.required_width(0.1, 100, 1.0, delta).width)


@pytest.mark.parametrize("delta", [1e-320, 5e-324, 2.2e-308])
def test_deltas_that_float64_holds_without_their_digits_are_refused(delta):
    sampling = dict(vc_dimension=3, n=100, delta=delta)
    for function in (
        lambda: divergence_capacity(**sampling),
        lambda: risk_capacity(**sampling),
        lambda: capacity_order(**sampling),
        lambda: theory.empirical_risk([0.5], delta=delta),
        lambda: theory.theorem_iii7(0.1, 0.2, 0.3, **sampling),
        lambda: theory.corollary_iii8(0.1, 0.2, 0.3, **sampling),
        lambda: theory.corollary_iii9(0.1, 0.3, common_law=True, **sampling),
        lambda: theory.required_width(0.1, 100, 1.0, delta),
    ):
        with pytest.raises(ValueError, match=rf"delta = {delta!r} is beyond float64"):
            function()


def test_a_delta_whose_shares_are_too_small_is_the_one_that_is_named():
    with pytest.raises(ValueError, match="delta = 3e-308 is beyond float64"):
        theory.theorem_iii7(0.1, 0.2, 0.3, vc_dimension=3, n=100, delta=3e-308)


@pytest.mark.parametrize("largest", [1.7e308, float(np.finfo(float).max)])
@pytest.mark.parametrize("n", [2, 5, 3000])
def test_losses_at_the_end_of_the_range_have_a_mean(largest, n):
    for weights in (None, np.full(n, 1 / n)):
        full = theory.empirical_risk([largest] * n, weights, largest_loss=largest)
        assert full.empirical.lower <= largest == full.empirical.upper
        assert full.empirical.lower > largest * (1 - 1e-14)
        assert 0 <= full.population.lower < full.population.upper <= largest
    half = theory.empirical_risk([largest, 0.0] * n, largest_loss=largest)
    assert half.empirical.lower <= largest / 2 <= half.empirical.upper


def test_losses_of_moderate_size_keep_every_bit():
    losses = np.random.default_rng(0).uniform(size=57)
    found = theory.empirical_risk(losses).empirical
    mean = math.fsum(losses) / 57
    assert (found.lower, found.upper) == (mean - mean * 2.0**-49, mean + mean * 2.0**-49)
