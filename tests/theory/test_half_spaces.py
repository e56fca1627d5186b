"""Angles as risks against simulation, and ideal joint errors against grids and geodesics."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theory.half_spaces import LabelledGaussian, half_space_risk, ideal_half_space_error


def covariance(rng, d, spread=4.0):
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    matrix = basis * spread ** rng.uniform(-1, 1, d) @ basis.T
    return (matrix + matrix.T) / 2


def laws(seed, clients, d, spread=4.0):
    rng = np.random.default_rng(seed)
    made = [
        LabelledGaussian(covariance(rng, d, spread), rng.standard_normal(d))
        for _ in range(clients + 1)
    ]
    weights = rng.uniform(0.2, 1.0, clients)
    return weights / weights.sum(), made[:-1], made[-1]


def joint(a, weights, seen, unseen):
    """Σ ω_i J_i(a) + J_u(a) by arccos, in plain NumPy."""

    def risk(law):
        u, v, c = a, law.target, law.covariance
        return math.acos(np.clip(u @ c @ v / math.sqrt((u @ c @ u) * (v @ c @ v)), -1, 1)) / math.pi

    return sum(w * risk(law) for w, law in zip(weights, seen, strict=True)) + risk(unseen)


def test_risks_by_hand():
    plane = LabelledGaussian(np.eye(2), [1.0, 0.0])
    for degrees in (0, 30, 90, 150, 180):
        a = [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]
        found = half_space_risk(a, plane)
        # The cosine and sine of the test are rounded themselves.
        assert found.midpoint == pytest.approx(degrees / 180, abs=1e-14 if degrees else 0.0)
        assert found.width < 1e-14
    # diag(1, 9) turns the diagonal to slope 3.
    stretched = LabelledGaussian(np.diag([1.0, 9.0]), [1.0, 0.0])
    assert half_space_risk([1.0, 1.0], stretched).contains(math.atan(3.0) / math.pi)


def test_small_angles_keep_their_digits():
    tiny = half_space_risk([1.0, 1e-12], LabelledGaussian(np.eye(2), [1.0, 0.0]))
    assert tiny.midpoint == pytest.approx(1e-12 / math.pi, rel=1e-14)
    assert half_space_risk([3.0, 6.0], LabelledGaussian(np.eye(2), [1.0, 2.0])).upper == 0.0
    large = half_space_risk([-1e200, 0.0], LabelledGaussian(np.eye(2), [1e-200, 0.0]))
    assert large.lower > 1 - 1e-14 and large.upper == 1.0


SIZES = [1e-307, 1e-200, 1e-100, 1.0, 1e100, 1e200, 1e307]


@pytest.mark.parametrize("variance", SIZES)
@pytest.mark.parametrize("length", SIZES)
def test_no_size_changes_an_angle(variance, length):
    # Not powers of two: relative to the unit the inputs are rounded.
    law = LabelledGaussian(np.diag([1.0, 2.0]) * variance, np.array([1.0, 1.0]) * length)
    for normal in ([1.0, -1.0], [-3.0, 1.0], [1.0, 1.0]):
        reference = half_space_risk(normal, LabelledGaussian(np.diag([1.0, 2.0]), [1.0, 1.0]))
        found = half_space_risk(np.array(normal) / length, law)
        assert found.midpoint == pytest.approx(reference.midpoint, abs=1e-14)
    ends = [half_space_risk(np.array([2.0**-1074, 2.0**k]), law) for k in (-1074, 1000)]
    assert all(0 <= end.lower <= end.upper <= 1 for end in ends)


@pytest.mark.parametrize("power", [10, 100, 153, 154, 155, 170, 200, 300, 307])
def test_tiny_angles_are_enclosed(power):
    tiny = Fraction(float(f"1e-{power}"))
    upright = LabelledGaussian(1.0, [1.0, 0.0])
    found = half_space_risk([1.0, float(tiny)], upright)
    # arctan x is x up to x³/3, of which π to 40 digits is enough.
    pi = Fraction("3.141592653589793238462643383279502884197")
    assert found.lower <= tiny / pi and (tiny - tiny**3 / 3) / pi <= found.upper
    assert found.lower > 0 and found.width < 1e-14 * found.upper
    blunt = half_space_risk([-1.0, float(tiny)], upright)
    assert blunt.lower <= 1 - (tiny - tiny**3 / 3) / pi and 1 - tiny / pi <= blunt.upper <= 1


def test_angles_below_float64_are_not_called_zero():
    upright = LabelledGaussian(1.0, [1.0, 0.0])
    for normal in ([1e200, 1e-170], [1e308, 5e-324], [1.0, 5e-324]):
        found = half_space_risk(normal, upright)
        assert found.lower == 0 < found.upper < 1e-320
    assert half_space_risk([1e308, 0.0], upright).upper == 0


@pytest.mark.parametrize("seed", range(4))
def test_risks_against_simulation(seed):
    _, _, law = laws(seed, 1, 4)
    rng = np.random.default_rng(seed + 100)
    a = rng.standard_normal(4)
    z = rng.multivariate_normal(np.zeros(4), law.covariance, 200_000)
    wrong = np.mean((z @ a > 0) != (z @ law.target > 0))
    risk = half_space_risk(a, law).midpoint
    assert abs(wrong - risk) < 5 * math.sqrt(risk * (1 - risk) / len(z))


@pytest.mark.parametrize("clients", [1, 3])
def test_under_one_law_the_ideal_error_is_the_labels_angle(clients):
    rng = np.random.default_rng(clients)
    c = covariance(rng, 3)
    targets = rng.standard_normal((clients + 1, 3))
    seen = [LabelledGaussian(c, t) for t in targets[:-1]]
    weights = np.full(clients, 1 / clients)
    unseen = LabelledGaussian(c, targets[-1])
    found = ideal_half_space_error(weights, seen, unseen)
    angles = [half_space_risk(unseen.target, law).midpoint for law in seen]
    assert found.width < 1e-12  # the two ends meet up to rounding
    assert found.midpoint == pytest.approx(np.mean(angles), abs=1e-12)
    if clients == 1:
        u, v = (law.target / math.sqrt(law.target @ c @ law.target) for law in (seen[0], unseen))
        for share in (0.0, 0.3, 0.8, 1.0):  # cone combinations are the geodesic
            between = (1 - share) * u + share * v
            assert joint(between, weights, seen, unseen) == pytest.approx(found.midpoint, abs=1e-7)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([1.0, 2.0, 6.0]))
def test_the_ideal_error_in_the_plane_against_a_grid(seed, clients, spread):
    weights, seen, unseen = laws(seed, clients, 2, spread)
    found = ideal_half_space_error(weights, seen, unseen)
    angles = np.linspace(0, 2 * math.pi, 721)
    grid = [joint(np.array([math.cos(t), math.sin(t)]), weights, seen, unseen) for t in angles]
    # The lower end is below every hypothesis, the upper end is the best of them.
    assert found.lower <= min(grid) + 1e-9
    assert found.upper <= min(grid) + 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_random_hypotheses_find_nothing_better(seed):
    weights, seen, unseen = laws(seed, 3, 5)
    found = ideal_half_space_error(weights, seen, unseen)
    rng = np.random.default_rng(seed + 1000)
    best = min(joint(rng.standard_normal(5), weights, seen, unseen) for _ in range(2000))
    assert found.lower <= found.upper < best


@pytest.mark.parametrize("power", [100, 150, 300])
def test_no_size_changes_the_ideal_error(power):
    size = 2.0 ** (3 * power)  # a power of two changes no digit

    def error(scale):
        return ideal_half_space_error(
            [0.4, 0.6],
            [
                LabelledGaussian(np.diag([1.0, 2.0]) / scale, np.array([1.0, 1.0]) / scale),
                LabelledGaussian(np.diag([2.0, 1.0]) * scale, np.array([1.0, 3.0])),
            ],
            LabelledGaussian(np.diag([3.0, 1.0]) * scale, np.array([1.0, -1.0]) * scale),
        )

    found, expected = error(size), error(1.0)
    assert found.upper == pytest.approx(expected.upper, abs=1e-12)
    assert found.lower == pytest.approx(expected.lower, abs=1e-12)
    assert 0 < found.lower <= found.upper < 1


def test_one_rule_for_all_has_no_ideal_error():
    rng = np.random.default_rng(0)
    t = rng.standard_normal(3)
    seen = [LabelledGaussian(covariance(rng, 3), t) for _ in range(2)]
    found = ideal_half_space_error([0.5, 0.5], seen, LabelledGaussian(covariance(rng, 3), t))
    assert (found.lower, found.upper) == (0.0, 0.0)


def test_nearly_equal_laws_have_a_lower_end_above_zero():
    seen = LabelledGaussian(np.diag([1.0, 1.1]), [1.0, 0.0])
    found = ideal_half_space_error([1.0], [seen], LabelledGaussian(np.eye(2), [0.0, 1.0]))
    assert 0.48 < found.lower < found.upper <= 0.5 + 1e-12


LAW = LabelledGaussian(np.eye(2), [1.0, 0.0])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: half_space_risk([0.0, 0.0], LAW), ValueError, "normal is zero"),
        (lambda: half_space_risk([1.0], LAW), ValueError, "1 entries and the law 2"),
        (lambda: half_space_risk([1.0, math.nan], LAW), ValueError, "NaN"),
        (lambda: half_space_risk([1.0, 0.0], np.eye(2)), TypeError, "must be a LabelledGaussian"),
        (lambda: LabelledGaussian(np.eye(2), [0.0, 0.0]), ValueError, "target is zero"),
        (lambda: LabelledGaussian(np.diag([1.0, 0.0]), [1.0, 0.0]), ValueError, "definite"),
        (lambda: ideal_half_space_error([1.0], [], LAW), ValueError, "0 laws for 1 weights"),
        (lambda: ideal_half_space_error([1.0], LAW, LAW), TypeError, "seen must be a list"),
        (lambda: ideal_half_space_error([0.5], [LAW], LAW), ValueError, "sum to 0.5"),
        (
            lambda: ideal_half_space_error([1.0], [LabelledGaussian(1.0, [1.0])], LAW),
            ValueError,
            "different dimensions",
        ),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
