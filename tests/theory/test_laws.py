"""Eq. (17): laws of BN features, and risks under them."""

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest

from theory import (
    TwoLayer,
    feature_laws,
    gaussian_risk,
    gram_matrix,
    normalised_feature_covariance,
    whitened_feature_covariance,
)

RNG = np.random.default_rng(7)
DIMENSION, UNITS = 6, 4
DIRECTIONS = RNG.normal(size=(UNITS, DIMENSION))
ROOTS = RNG.normal(size=(3, DIMENSION, DIMENSION))
COVARIANCES = ROOTS @ ROOTS.transpose(0, 2, 1) / DIMENSION + 0.1 * np.eye(DIMENSION)
Q = TwoLayer(RNG.normal(size=(5, UNITS)), RNG.choice([-1.0, 1.0], 5))
TARGET = TwoLayer(RNG.normal(size=(3, UNITS)), RNG.normal(size=3))


def test_correlations_by_hand():
    s = np.diag([1.0, 4.0])
    found = normalised_feature_covariance([[1.0, 1.0], [1.0, -1.0]], s)
    np.testing.assert_allclose(found, [[1, -0.6], [-0.6, 1]], rtol=1e-15)
    np.testing.assert_allclose(normalised_feature_covariance(np.eye(2), s), np.eye(2))


def test_sampled_features_have_these_covariances():
    n = 200_000
    x = RNG.multivariate_normal(np.zeros(DIMENSION), COVARIANCES[0], n) @ DIRECTIONS.T
    sigma = DIRECTIONS @ COVARIANCES[0] @ DIRECTIONS.T
    z = x / np.sqrt(sigma.diagonal())
    exact = normalised_feature_covariance(DIRECTIONS, COVARIANCES[0])
    # Var(z_k z_l) = 1 + ρ² ≤ 2 for Gaussians.
    assert (np.abs(z.T @ z / n - exact) < 5 * math.sqrt(2 / n)).all()
    values, vectors = np.linalg.eigh(sigma)
    w = x @ (vectors / np.sqrt(values) @ vectors.T)
    whitened = whitened_feature_covariance(DIRECTIONS, COVARIANCES[0])
    assert (np.abs(w.T @ w / n - whitened) < 5 * math.sqrt(2 / n)).all()


def test_per_unit_scaling_leaves_the_client_in_the_law_and_whitening_does_not():
    per_unit = feature_laws(DIRECTIONS, COVARIANCES)
    assert per_unit.common is False and per_unit.difference.lower > 0
    k, other = per_unit.units
    i, j = per_unit.pair
    with mpmath.workdps(40):
        exact = abs(_correlation(k, other, i) - _correlation(k, other, j))
        assert per_unit.difference.lower <= exact <= per_unit.difference.upper
    assert per_unit.difference.width < 1e-12
    assert per_unit.difference.midpoint == pytest.approx(np.ptp(per_unit.covariances, axis=0).max())
    whitened = feature_laws(DIRECTIONS, COVARIANCES, "whitened")
    assert whitened.common is True and whitened.difference.upper == 0
    # Rounding of an inverse root with condition number below 1e3.
    assert np.abs(whitened.covariances - np.eye(UNITS)).max() < 1e-11


def _correlation(k, other, client):
    v, w = (mpmath.matrix(DIRECTIONS[u].tolist()) for u in (k, other))
    s = mpmath.matrix(COVARIANCES[client].tolist())

    def form(a, b):
        return (a.T * s * b)[0]

    return form(v, w) / mpmath.sqrt(form(v, v) * form(w, w))


def _nearly_null(seed):
    """Directions that a covariance of condition 1e10 nearly annihilates: all cancels."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    s = basis * np.logspace(0, -10, 8) @ basis.T
    directions = basis[:, -2:].T + 1e-6 * rng.normal(size=(2, 8))
    return directions, (s + s.T) / 2


def test_the_certificate_counts_cancellation():
    for seed in range(20):
        directions, s = _nearly_null(seed)
        found = feature_laws(directions, [s, np.eye(8)])
        v, m = mpmath.matrix(directions.tolist()), mpmath.matrix(s.tolist())
        with mpmath.workdps(40):
            form, plain = v * m * v.T, v * v.T
            ends = [a[0, 1] / mpmath.sqrt(a[0, 0] * a[1, 1]) for a in (form, plain)]
            assert found.difference.lower <= abs(ends[0] - ends[1]) <= found.difference.upper


def test_a_variance_that_drowns_in_rounding_certifies_nothing():
    s = np.full((3, 3), 1 / 3) + 2.0**-53 * np.diag([0.0, 0.0, 1.0])
    directions = [[1.0, -1.0, 2.0**-26], [1.0, 0.0, 0.0]]
    found = feature_laws(directions, [s, np.diag([1.0, 2.0, 3.0])])
    assert found.common is None and found.difference.lower == 0


def test_covariances_that_are_multiples_but_for_rounding_stay_undecided():
    tripled = 3 * COVARIANCES[0] / 7
    laws = feature_laws(DIRECTIONS, [COVARIANCES[0], tripled])
    assert laws.common is None and laws.difference.upper < 1e-12
    nudged = COVARIANCES[0] * (1 + 1e-6 * np.eye(DIMENSION))
    assert feature_laws(DIRECTIONS, [COVARIANCES[0], nudged]).common is False


def test_more_units_than_inputs_whiten_to_one_projector():
    directions = RNG.normal(size=(9, DIMENSION))
    laws = feature_laws(directions, COVARIANCES, "whitened")
    basis = np.linalg.qr(directions)[0]
    assert laws.common is True
    assert np.abs(laws.covariances - basis @ basis.T).max() < 1e-11


def test_singular_clients_need_not_whiten_to_one_law():
    covariances = {"a": np.diag([1.0, 0.0]), "b": np.diag([0.0, 1.0])}
    laws = feature_laws([[1.0, 1.0], [1.0, -1.0]], covariances, "whitened")
    assert laws.common is None and "'a'" in laws.reason
    assert np.ptp(laws.covariances, axis=0).max() == pytest.approx(1.0)


@pytest.mark.parametrize("transform", ["per-unit", "whitened"])
def test_multiples_of_one_covariance_share_the_law(transform):
    laws = feature_laws(DIRECTIONS, [COVARIANCES[0], 4 * COVARIANCES[0]], transform)
    assert laws.common is True and laws.difference.upper == 0
    isotropic = feature_laws(DIRECTIONS, {"a": 1.0, "b": 3.0}, transform)
    assert isotropic.common is True and isotropic.clients == ("a", "b")


def test_a_single_unit_has_no_correlation_to_keep():
    assert feature_laws(DIRECTIONS[:1], COVARIANCES).common is True


def test_equal_laws_that_are_not_proven_equal_stay_undecided():
    # Orthogonal directions and diagonal covariances: all correlations are 0, up to rounding.
    laws = feature_laws(np.eye(2), [np.diag([1.0, 2.0]), np.diag([3.0, 1.0])])
    assert laws.common is None and laws.difference.lower == 0 <= laws.difference.upper < 1e-14


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_the_certificate_does_not_depend_on_the_scale(scale):
    plain, scaled = (feature_laws(DIRECTIONS, c * COVARIANCES) for c in (1.0, scale))
    assert scaled.difference.lower == pytest.approx(plain.difference.lower, rel=1e-10)


@pytest.mark.parametrize(
    ("covariances", "transform", "message"),
    [
        (np.eye(2), "per-unit", "two clients or more"),
        ([np.eye(2)], "per-unit", "two clients or more"),
        ([np.eye(2), np.eye(2)], "zca", "transform must be one of"),
        ([np.eye(3), np.eye(3)], "per-unit", "shape"),
        ({"a": np.eye(2), "b": [[1.0, 2.0], [2.0, 1.0]]}, "per-unit", "'b' has the negative"),
        ([np.diag([1.0, 0.0]), np.eye(2)], "per-unit", "unit 1 has no variance .* client 0"),
    ],
)
def test_bad_laws_are_refused(covariances, transform, message):
    with pytest.raises(ValueError, match=message):
        feature_laws(np.eye(2), covariances, transform)


# Risks


def test_the_risk_of_linear_functions_by_hand():
    found = gaussian_risk([1.0, 2.0], [0.0, 0.0])
    assert found.contains(5.0) and found.width < 1e-12
    assert gaussian_risk([1.0, 2.0], [1.0, 2.0]).upper < 1e-11
    assert gaussian_risk([1.0, 2.0], [0.0, 0.0], np.diag([3.0, 0.25])).contains(4.0)
    # E φ(z)² = ½, and E (φ(z) − z)² = E φ(−z)².
    assert gaussian_risk(TwoLayer([[1.0]], [1.0]), [0.0]).contains(0.5)
    assert gaussian_risk(TwoLayer([[1.0]], [1.0]), [1.0]).contains(0.5)


def test_the_risk_agrees_with_the_gram_matrix_of_eq_10():
    weights = np.concatenate([Q.outer / math.sqrt(5), -TARGET.outer / math.sqrt(3)])
    kernel = gram_matrix(np.vstack([Q.inner, TARGET.inner]))
    expected = weights @ kernel @ weights
    assert gaussian_risk(Q, TARGET).midpoint == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("target", [TARGET, np.arange(UNITS) - 1.0])
def test_the_risk_agrees_with_sampling(target):
    c = normalised_feature_covariance(DIRECTIONS, COVARIANCES[1])
    n = 200_000
    z = RNG.multivariate_normal(np.zeros(UNITS), c, n)
    labels = target(z) if isinstance(target, TwoLayer) else z @ target
    losses = (Q(z) - labels) ** 2
    score = (losses.mean() - gaussian_risk(Q, target, c).midpoint) / (losses.std() / math.sqrt(n))
    assert abs(score) < 5


def test_the_risk_is_one_number_after_whitening_and_the_clients_own_per_unit():
    common = gaussian_risk(Q, TARGET)
    per_unit = []
    for s in COVARIANCES:
        sigma = DIRECTIONS @ s @ DIRECTIONS.T
        values, vectors = np.linalg.eigh(sigma)
        white = vectors / np.sqrt(values) @ vectors.T @ DIRECTIONS
        own = _risk_on_inputs(white, s)
        # The root is rounded: condition number below 1e3.
        assert own.midpoint == pytest.approx(common.midpoint, rel=1e-11)
        scaled = DIRECTIONS / np.sqrt(sigma.diagonal())[:, None]
        per_unit.append(_risk_on_inputs(scaled, s))
        law = normalised_feature_covariance(DIRECTIONS, s)
        assert gaussian_risk(Q, TARGET, law).midpoint == pytest.approx(
            per_unit[-1].midpoint, rel=1e-11
        )
    ends = [(risk.lower, risk.upper) for risk in [common, *per_unit]]
    ends.sort()
    assert all(a[1] < b[0] for a, b in pairwise(ends))


def _risk_on_inputs(features, covariance):
    """E_{x~N(0,S)} (q(Fx) − q_t(Fx))², in the space of inputs."""
    q, target = (TwoLayer(f.inner @ features, f.outer) for f in (Q, TARGET))
    return gaussian_risk(q, target, covariance)


def test_the_enclosure_holds_the_exact_value():
    rng = np.random.default_rng(3)
    for scale in (1.0, 1e-8, 1e6):
        inner = scale * rng.normal(size=(4, 3))
        inner[1] = inner[0] * (1 + 1e-9)  # nearly parallel: the angle is all rounding
        outer, root = rng.normal(size=4), rng.normal(size=(3, 3))
        c = root @ root.T
        c = (c + c.T) / 2
        found = gaussian_risk(TwoLayer(inner, outer), np.zeros(3), c)
        with mpmath.workdps(50):
            exact = _exact_risk(inner, outer, c)
            assert found.lower <= exact <= found.upper
            assert found.width < 1e-10 * float(exact) + 1e-300


def test_the_enclosure_counts_cancellation():
    for seed in range(20):
        directions, s = _nearly_null(seed)
        found = gaussian_risk(TwoLayer(directions, [1.0, 1.0]), np.zeros(8), s)
        with mpmath.workdps(50):
            exact = _exact_risk(directions, np.ones(2), s)
            assert found.lower <= exact <= found.upper


def _exact_risk(inner, outer, c):
    w, c = mpmath.matrix(inner.tolist()), mpmath.matrix(c.tolist())
    a = w * c * w.T
    total = mpmath.mpf(0)
    for k in range(len(outer)):
        for j in range(len(outer)):
            size = mpmath.sqrt(a[k, k] * a[j, j])
            theta = mpmath.acos(min(a[k, j] / size, 1))
            value = mpmath.sin(theta) + (mpmath.pi - theta) * mpmath.cos(theta)
            total += mpmath.mpf(outer[k]) * mpmath.mpf(outer[j]) * size * value
    return total / (2 * mpmath.pi * len(outer))


def test_a_variance_of_one_under_products_of_size_2_to_the_78_is_not_lost():
    rng = np.random.default_rng(1)
    lost = 0
    for _ in range(20):
        p, q = (2 * int(v) + 1 for v in rng.integers(2**24, 2**25, 2))
        if math.gcd(p, q) > 1:
            continue
        x = pow(p, -1, q)
        y = (1 - p * x) // q  # px + qy = 1, so that w·z has variance 1 exactly
        w, c = np.array([x, y], dtype=float), np.array([[p * p, p * q], [p * q, q * q]], float)
        assert gaussian_risk(TwoLayer([w], [1.0]), np.zeros(2), c).contains(0.5)
        lost += float(w @ c @ w) <= 0
    assert lost  # else nothing was tested


def test_a_neuron_whose_variance_drowns_in_rounding_is_still_bounded():
    v = np.array([1.0, 1.0])
    null = np.array([[1.0, -1.0], [-1.0, 1.0]]) * (1 / 3)  # S v = 0 up to rounding of 1/3
    found = gaussian_risk(TwoLayer([v, [1.0, 0.0]], [1.0, 1.0]), np.zeros(2), null)
    assert found.contains(1 / 3 / 4) and found.width < 1e-6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [1.0, 2.0]), "q has dimension 1 and target 2"),
        (([1.0, 2.0], [1.0, 2.0], np.eye(3)), "shape"),
        (([1.0, 2.0], [0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]), "negative eigenvalue"),
        (([1e200], [0.0]), "beyond the range of float64"),
        (([math.nan], [0.0]), "NaN"),
    ],
)
def test_bad_risks_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        gaussian_risk(*arguments)


def test_a_two_layer_function_needs_one_outer_weight_per_neuron():
    with pytest.raises(ValueError, match="2 rows and outer 1"):
        TwoLayer(np.eye(2), [1.0])
