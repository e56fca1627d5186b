"""The rules behind the BN kernels: their stated errors against direct evaluation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from theory import _analytic, _elliptic, _radial, _scales
from theory._eigenbasis import eigenbasis
from theory._nodes import Metric, Nodes, chosen, tailed

HALVES = [0.5, 1.0, 1.5, 4.0, 12.0, 60.0, 392.0, 1500.0]


def exact_error(rule, k, z):
    """e_k(z) of a rule with 40 digits."""
    with mp.workdps(40):
        total = mpf(0)
        for u, v, log in zip(rule.u, rule.v, rule.log_weight, strict=True):
            if log > -np.inf and (v > 0 or k == 1):
                base = mpf(float(u)) + mpf(float(v)) * mpf(z)
                power = mpf(rule.a) + k
                total += mp.exp(mpf(float(log))) * mpf(float(v)) ** (k - 1) * base**-power
        return float(abs(total * rule.factor(k) * mpf(z) ** k - 1))


@pytest.mark.parametrize("a", HALVES)
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize(("kind", "nodes"), [("gauss", 3), ("gauss", 12), ("trapezoid", 96)])
def test_no_error_of_a_radial_rule_exceeds_its_bound_anywhere(a, k, kind, nodes):
    low, high = 0.05, 3.0
    rule = _radial.rule(kind, a, 1.0, nodes, low)
    pieces = rule.error(k, low, high)
    rng = np.random.default_rng(nodes)
    for z in [low, high, *np.exp(rng.uniform(math.log(low), math.log(high), 12))]:
        place = int(np.searchsorted(pieces.right, math.log(z)))
        place = min(place, len(pieces.right) - 1)
        assert exact_error(rule, k, float(z)) <= pieces.bound[place]


@pytest.mark.parametrize("a", [1.5, 12.0, 392.0])
def test_the_bound_is_not_far_above_the_error(a):
    # A factor of 2 for sampling, else it would cost nodes: loose bounds are a fault too.
    rule = _radial.rule("gauss", a, 1.0, 4, 0.3)
    pieces = rule.error(1, 0.3, 2.0)
    found = [exact_error(rule, 1, float(z)) for z in np.geomspace(0.3, 2.0, 33)]
    assert pieces.bound.max() <= 2 * max(found)


@pytest.mark.parametrize("a", HALVES)
def test_gauss_weights_sum_to_one_and_integrate_powers_exactly(a):
    u, v, log_weight = _radial._gauss(a, 6)
    weights = np.exp(log_weight)
    assert np.allclose(u + v, 1)
    for power in range(12):  # exact to degree 2·6 - 1: rounding of six terms
        assert weights @ u**power == pytest.approx(a / (a + power), rel=1e-11)


def test_weights_of_thousands_of_dimensions_stay_finite():
    u, _, log_weight = _radial._gauss(5000.0, 48)
    assert np.isfinite(log_weight).all() and (u > 0).all() and (u < 1).all()
    assert np.exp(log_weight).sum() == pytest.approx(1, rel=1e-10)


@pytest.mark.parametrize("change", ["weight", "node"])
def test_a_wrong_weight_or_node_is_noticed(change):
    rule = _radial.rule("gauss", 10.0, 1.0, 20, 0.5)
    before = rule.error(1, 0.5, 2.0).bound.max()
    place = int(rule.log_weight.argmax())
    if change == "weight":
        rule.log_weight[place] += 1e-6
    else:
        rule.u[place] -= 1e-6
        rule.v[place] += 1e-6
    assert before < 1e-9
    assert rule.error(1, 0.5, 2.0).bound.max() > 1e-8


@given(st.floats(0.1, 3.0), st.floats(0.0, 40.0))
@settings(max_examples=30, deadline=None)
def test_suprema_hold_between_the_samples(shift, amplitude):
    # A sum of two terms of the kind that is allowed.
    def sums(zeta):
        z = np.exp(zeta)
        first = 6 * z / (0.5 + 0.5 * z) ** 7
        return first + amplitude * shift * z**2 / (0.1 + 0.9 * z) ** 7

    pieces = _analytic.suprema(sums, -2.0, 1.0, 7.0, 1e-15)
    fine = np.linspace(-2.0, 1.0, 4001)
    values = np.abs(sums(fine) - 1)
    place = np.minimum(np.searchsorted(pieces.right, fine), len(pieces.right) - 1)
    assert (values <= pieces.bound[place]).all()
    assert pieces.bound.max() <= 2 * values.max() + 1e-9


@pytest.mark.parametrize("d", [9, 40, 200])
@pytest.mark.parametrize("degree", [0, 2])
def test_tails_bound_the_mean_error_over_directions(d, degree):
    rng = np.random.default_rng(d)
    s = np.geomspace(1e-3, 1.0, d)
    share = rng.dirichlet(np.ones(d))
    metric = Metric(s, share)
    a = d / 2 - 1 + degree / 2
    nodes = Nodes(_radial.rule("gauss", a, float(s.mean()), 6, 1e-3), metric)
    pieces = nodes.error(1)
    omega = rng.standard_normal((100_000, d))
    omega /= np.linalg.norm(omega, axis=1)[:, None]
    rho = (omega**2) @ s
    weight = np.ones(len(rho)) if degree == 0 else (omega**2) @ share
    error = np.abs(nodes.rule.sums(1, np.log(rho / nodes.rule.scale)) - 1)
    mean = float((weight / rho).mean())
    sampled = weight * error / rho
    found = tailed(pieces, 1, metric, degree, mean, 0.0)
    # Five standard errors below the sample's mean would be a violation beyond doubt.
    assert found >= sampled.mean() - 5 * sampled.std() / math.sqrt(len(rho))
    assert found <= pieces.bound.max() * mean * (1 + 1e-8)
    if d == 200:
        assert found < 0.1 * pieces.bound.max() * mean  # the core is what counts


@pytest.mark.parametrize("d", [3, 10, 64])
def test_moments_are_means_over_directions(d):
    rng = np.random.default_rng(d)
    s, share = rng.uniform(0.5, 2.0, d), rng.dirichlet(np.ones(d))
    metric = Metric(s, share)
    omega = rng.standard_normal((200_000, d))
    omega /= np.linalg.norm(omega, axis=1)[:, None]
    rho, weight = (omega**2) @ s, (omega**2) @ share
    for a, k, degree in ((d / 2, 1, 2), (d / 2, 2, 2), (d / 2 - 1, 1, 0), (d / 2 - 1, 2, 0)):
        nodes = Nodes(_radial.rule("gauss", a, float(s.mean()), 20, 0.5), metric)
        sample = (weight if degree else np.ones(len(rho))) / rho**k
        z = (nodes.moment(k, degree) - sample.mean()) / (sample.std() / math.sqrt(len(rho)))
        assert abs(z) < 5
    for k, degree in ((2, 2), (3, 2)):
        nodes = Nodes(_radial.rule("gauss", d / 2 - 1, float(s.mean()), 20, 0.5), metric)
        sample = weight / rho**k
        z = (nodes.moment(k, degree) - sample.mean()) / (sample.std() / math.sqrt(len(rho)))
        assert abs(z) < 5


@pytest.mark.parametrize("count", [4, 6, 20])
@pytest.mark.parametrize("d", [3, 10, 64])
def test_a_coarse_rule_still_bounds_moments_from_above(d, count):
    rng = np.random.default_rng(d)
    s, share = rng.uniform(0.5, 2.0, d), rng.dirichlet(np.ones(d))
    omega = rng.standard_normal((200_000, d))
    omega /= np.linalg.norm(omega, axis=1)[:, None]
    rho, weight = (omega**2) @ s, (omega**2) @ share
    rule = _radial.rule("gauss", d / 2 - 1, float(s.mean()), count, 0.5)
    nodes = Nodes(rule, Metric(s, share))
    axis = omega[:, int(s.argmin())] ** 2
    for found, sample in (
        (nodes.most(1, 0), 1 / rho),
        (nodes.most(2, 2), weight / rho**2),
        (nodes.most(3, 2), weight / rho**3),
        (nodes.largest(2), axis / rho**2),
    ):
        assert found >= sample.mean() - 5 * sample.std() / math.sqrt(len(rho))
        if count == 20:
            assert found <= 1.05 * sample.mean()  # sampling errs by less than a twentieth
    if d < 64:  # where sampling tells the axes apart
        every = [((omega[:, c] ** 2) / rho**2).mean() for c in range(d)]
        assert int(np.argmax(every)) == int(s.argmin())


def test_a_rule_that_knows_nothing_of_a_moment_says_so():
    metric = Metric(np.geomspace(1e-6, 1, 4), np.full(4, 0.25))
    nodes = Nodes(_radial.rule("gauss", 1.0, 0.3, 2, 1e-6), metric)
    assert nodes.most(2, 2) == math.inf


def test_the_rule_chosen_meets_the_tolerance_with_no_node_to_spare():
    metric = Metric(np.geomspace(0.1, 1, 10), np.full(10, 0.1))

    def judge(nodes):
        mean = nodes.moment(1, 2)
        return tailed(nodes.error(1), 1, nodes.metric, 2, mean, 0.0), mean

    counts = []
    for tolerance in (1e-3, 1e-6, 1e-9):
        found = {hint: chosen(5.0, metric, judge, tolerance, hint) for hint in (0, 9, 40)}
        sizes = {len(nodes.b) for nodes, _ in found.values()}
        assert len(sizes) == 1  # wherever the search begins
        nodes = found[0][0]
        assert nodes.quadrature <= tolerance * nodes.moment(1, 2)
        counts.append(sizes.pop())
    assert counts == sorted(counts) and counts[0] < counts[-1]


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (0.5, 3.0), (1e-3, 1e2), (1e-6, 1e6)])
@pytest.mark.parametrize("count", [1, 4, 12, 40, "equal"])
def test_no_error_of_the_rules_for_pairs_exceeds_its_bound(low, high, count):
    if count == "equal":
        rule = _elliptic._trapezoid(low, high, 0.4, 4)
    else:
        rule = _elliptic._midpoint(low, high, count, 4)
    # With q_j = 1 and q_i = z the four integrals are powers of z.
    for z in np.geomspace(low, high, 23):
        q = z + rule.squares
        found = [
            (rule.weights / q).sum() * z**0.5,
            2 * (rule.weights / q**2).sum() * z**1.5,
            2 * (rule.weights * rule.squares / q**2).sum() * z**0.5,
            8 * (rule.weights * rule.squares / q**3).sum() * z**1.5,
        ]
        for value, bound in zip(found, rule.errors, strict=True):
            assert abs(value - 1) <= bound


@pytest.mark.parametrize("tolerance", [1e-4, 1e-8, 5e-12])
@pytest.mark.parametrize("ratio", [1.0, 1e2, 1e6, 1e8, 1e12])
def test_the_pair_rule_meets_its_tolerance_at_both_ends(tolerance, ratio):
    rule = _elliptic.pair_rule(1 / ratio, ratio, 4, tolerance)
    assert max(rule.errors) <= tolerance
    for z in (1 / ratio, 1.0, ratio):
        assert abs((rule.weights / (z + rule.squares)).sum() * z**0.5 - 1) <= rule.errors[0]


@pytest.mark.parametrize("dimension", [1, 2, 7, 784])
@pytest.mark.parametrize("k", [1, 3])
def test_the_rule_over_scales_is_as_accurate_as_it_says(dimension, k):
    rule = _scales.scale_rule(dimension, 1.7, k, 1e-9)
    a = mpf(dimension) / 2
    for c in (1e-6, 1e-2, 1.0, 1e3):
        with mp.workdps(25):

            def density(tau, c=c):
                t = 2 * mpf(1.7) ** 2 * mp.exp(tau)
                return mp.exp(a * tau - mp.exp(tau) - mp.loggamma(a)) * (t / (t + c)) ** k

            centre = math.log(dimension / 2 + 1)
            ends = [centre - 60 / dimension - 12, *np.linspace(centre - 3, centre + 4, 15)]
            exact = mp.quad(density, ends)
        found = float(rule.weights @ (rule.t / (rule.t + c)) ** k)
        assert abs(found / float(exact) - 1) <= rule.error <= 2e-9


@pytest.mark.parametrize("d", [2, 5, 30])
@pytest.mark.parametrize("condition", [1.0, 1e6])
def test_the_defect_of_an_eigenbasis_bounds_what_is_left_off_the_diagonal(d, condition):
    rng = np.random.default_rng(d)
    q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    matrix = (q * np.geomspace(1, 1 / condition, d)) @ q.T
    matrix = (matrix + matrix.T) / 2
    basis = eigenbasis(matrix)
    with mp.workdps(40):
        u, s = mp.matrix(basis.u.tolist()), mp.matrix(matrix.tolist())
        gram = u.T * u
        root = mp.sqrtm(gram)
        polar = u * root**-1
        left = polar.T * s * polar - mp.diag([mpf(float(x)) for x in basis.s])
        off = float(mp.norm(left, 2) if d < 3 else mp.sqrt(sum(abs(x) ** 2 for x in left)))
    assert off <= basis.defect * math.sqrt(d)
    assert basis.defect <= 1e-12  # measured, not a worst case of d²u


def test_eigenvalues_below_their_doubt_are_raised_and_charged():
    rng = np.random.default_rng(0)
    half = rng.standard_normal((6, 3))
    basis = eigenbasis(half @ half.T)
    assert (basis.s > 0).all()
    assert basis.defect >= basis.s.min()
