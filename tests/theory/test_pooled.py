import math

import hypothesis.strategies as st
import mpmath
import numpy as np
import pytest
from exact_kernels import ends, exact, inside, masked
from hypothesis import given, settings

from theory.pooled import pooled_comparison, pooled_threshold


def pair(angle, length=1.0, d=2):
    x = np.zeros((2, d))
    x[0, 0], x[1, :2] = 1.0, (length * math.cos(angle), length * math.sin(angle))
    return x


def triangle(radius, degrees):
    angles = np.radians([degrees, degrees + 120, degrees + 240])
    return radius * np.column_stack([np.cos(angles), np.sin(angles)])


def test_two_orthogonal_unit_vectors_by_hand():
    found = pooled_comparison(np.eye(2), ["a", "b"], {"a": 1.0, "b": 0.1})
    assert found.inequality.verdict == "violated"
    # Half of 1/d for client a; (1 − g)/2d over the mean variance 0.55, g = 1/π, for both.
    assert found.client_specific.contains(0.25) and found.client == "a"
    assert found.aggregated.contains((1 - 1 / math.pi) / 4 / 0.55)
    assert found.aggregated.width < 1e-13
    assert found.loss == pytest.approx(1 / 0.55) and found.remains.verdict == "certified"
    assert "fails, certified" in str(found) and "client 'a'" in str(found)


def test_clients_whose_covariances_are_their_own():
    x = np.concatenate([triangle(4, 0), triangle(1, 50), triangle(1, 80)])
    client = list("aaaaaabbb")
    for name, variance in (("a", 4.25), ("b", 0.5)):
        own = x[[c == name for c in client]]
        np.testing.assert_allclose(own.mean(axis=0), 0, atol=1e-15)
        np.testing.assert_allclose(own.T @ own / len(own), variance * np.eye(2), atol=1e-14)
    found = pooled_comparison(x, client, {"a": 4.25, "b": 0.5})
    assert found.inequality.verdict == "violated"
    assert found.aggregated.midpoint == pytest.approx(1.92134e-4, rel=1e-5)
    assert found.client_specific.midpoint == pytest.approx(1.36405e-4, rel=1e-5)
    assert found.loss == pytest.approx(4.25 / 3)


@pytest.mark.parametrize("seed", range(3))
def test_enclosures_hold_the_eigenvalues_at_fifty_digits(seed):
    random = np.random.default_rng(seed)
    x, client = random.standard_normal((6, 3)), list("abbaca")
    variances = dict(zip("abc", random.uniform(0.1, 9.0, 3).tolist(), strict=True))
    found = pooled_comparison(x, client, variances)
    with mpmath.workdps(50):
        g, pooled, _ = exact(x, client, variances)
        low, high = ends(pooled)
        low_star, high_star = ends(masked(g, client))
        assert inside(low, found.aggregated) and inside(high, found.largest_aggregated)
        assert inside(low_star, found.client_specific)
        assert inside(high_star, found.largest_client_specific)


@pytest.mark.parametrize("length", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("weight", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("angle", [0.5, 1.2, math.pi / 2, 2.2, 3.0])
def test_the_threshold_is_where_the_sign_changes(angle, weight, length):
    limit = pooled_threshold(angle, weight, length)
    x, weights = pair(angle, length), {0: weight, 1: 1 - weight}
    verdicts = {}
    for side in (1 - 1e-6, 1 + 1e-6):
        ratio = limit.midpoint * side if limit.lower > 0 else 10.0**-6
        if ratio < 1:
            found = pooled_comparison(x, [0, 1], [1.0, ratio], weights=weights)
            verdicts[side] = found.inequality.verdict
    if limit.lower > 0:
        wanted = {1 - 1e-6: "violated", 1 + 1e-6: "certified"}
        assert verdicts == {side: wanted[side] for side in verdicts} and verdicts
    else:
        assert limit.upper < 0 and set(verdicts.values()) == {"certified"}


@pytest.mark.parametrize("length", [1e-8, 0.4, 1.0, 1e8])
@pytest.mark.parametrize("angle", [1e-3, math.pi / 2, 3.1, math.pi])
def test_the_threshold_at_ninety_digits(angle, length):
    found = pooled_threshold(angle, 0.3, length)
    with mpmath.workdps(90):
        theta, size, p = mpmath.mpf(angle), mpmath.mpf(length), mpmath.mpf(0.3)
        g = (mpmath.sin(theta) + (mpmath.pi - theta) * mpmath.cos(theta)) / mpmath.pi
        square = size**2
        root = mpmath.sqrt(((1 - square) / 2) ** 2 + square * g**2)
        wanted = ((1 + square) / 2 - root - p) / (1 - p)
        assert inside(wanted, found)
    assert found.width < 4e-16 * max(1, abs(found.midpoint))


def test_orthogonal_points_have_a_threshold_that_can_be_written_down():
    assert pooled_threshold(math.pi / 2).contains(1 - 2 / math.pi)
    assert pooled_threshold(math.pi, 0.5).midpoint == pytest.approx(1.0, abs=1e-15)


def covariances_and_points(draw):
    n, d, clients = draw(st.integers(2, 7)), draw(st.integers(2, 5)), draw(st.integers(1, 3))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    client = [k % clients for k in range(n)]
    spread = draw(st.sampled_from([1.0, 1e2, 1e5]))
    names = sorted(set(client))
    variances = {name: float(spread ** random.uniform(-1, 1)) for name in names}
    weights = {name: float(random.uniform(0.05, 1)) for name in names}
    return random.standard_normal((n, d)), client, variances, weights


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.composite(covariances_and_points)())
def test_what_remains_is_never_violated(case):
    x, client, variances, weights = case
    found = pooled_comparison(x, client, variances, weights=weights)
    assert found.remains.verdict != "violated"
    total = sum(weights.values())
    mean = sum(weights[name] * variances[name] for name in variances) / total
    assert found.loss == pytest.approx(max(variances.values()) / mean, rel=1e-12)
    assert 1 <= found.loss <= total / min(weights.values()) * (1 + 1e-15)


def test_the_loss_is_the_best_constant():
    found = pooled_comparison(pair(math.pi - 1e-3), [0, 1], [1.0, 1e-9])
    ratio = found.aggregated.midpoint / found.client_specific.midpoint
    assert ratio == pytest.approx(2, abs=1e-6) and found.loss == pytest.approx(2, abs=1e-6)


def test_equal_covariances_are_the_corollary():
    x = np.random.default_rng(0).standard_normal((8, 4))
    for covariances in (2.0, [2.0, 2.0], np.eye(4) * 2):
        found = pooled_comparison(x, [0, 1] * 4, covariances)
        assert found.inequality.verdict == "certified" and found.loss == 1.0


@pytest.mark.parametrize(
    ("weights", "words"),
    [({0: 1.0}, "every client"), ({0: 1.0, 1: 0.0}, "weight of 1 must be"), ([1, 1], "every")],
)
def test_weights_that_cannot_be_used_are_refused(weights, words):
    with pytest.raises(ValueError, match=words):
        pooled_comparison(np.eye(2), [0, 1], [1.0, 2.0], weights=weights)


@pytest.mark.parametrize(("weight", "length"), [(1.0, 1.0), (0.0, 1.0), (0.5, 0.0), (0.5, -1.0)])
def test_a_threshold_needs_a_weight_below_one_and_a_length(weight, length):
    with pytest.raises(ValueError, match="must"):
        pooled_threshold(1.0, weight, length)


def test_covariances_of_the_points_themselves_are_the_default():
    x = np.concatenate([triangle(4, 0), triangle(1, 50), triangle(1, 80)])
    client = list("aaaaaabbb")
    found = pooled_comparison(x, client)  # by quadrature: rounding keeps S_i from being λ_i I
    exact = pooled_comparison(x, client, {"a": 4.25, "b": 0.5})
    assert found.inequality.verdict == "violated" and found.method.startswith("quadrature")
    for side in ("aggregated", "client_specific", "largest_aggregated", "largest_client_specific"):
        quadrature, closed = getattr(found, side), getattr(exact, side)
        # S_i differ by their rounding, 1e-15 of them.
        assert quadrature.widened(1e-13).lower <= closed.upper
        assert quadrature.widened(1e-13).upper >= closed.lower
        assert quadrature.width < 1e-10
    assert found.loss == pytest.approx(4.25 / 3, rel=1e-8)


def test_the_loss_of_general_covariances_is_certified_and_near_the_best():
    random = np.random.default_rng(0)
    roots = random.standard_normal((3, 4, 4))
    covariances = {k: root @ root.T + 0.1 * np.eye(4) for k, root in enumerate(roots)}
    x, client = random.standard_normal((9, 4)), [0, 1, 2] * 3
    found = pooled_comparison(x, client, covariances)
    mean = sum(covariances.values()) / 3
    best = max(np.linalg.eigvals(np.linalg.solve(mean, s)).real.max() for s in covariances.values())
    assert best <= found.loss < best * (1 + 1e-8) < 3
    assert found.remains.verdict == "certified"


def test_a_singular_covariance_leaves_the_plain_bound():
    plane = np.diag([1.0, 1.0, 0.0])
    x = np.array([[1.0, 0.2, 0.0], [0.3, 1.0, 0.0], [-1.0, 0.5, 0.0], [0.1, -1.0, 0.0]])
    found = pooled_comparison(x, [0, 0, 1, 1], {0: plane, 1: 4 * plane})
    assert found.loss == pytest.approx(2.0) and found.remains.verdict == "certified"
