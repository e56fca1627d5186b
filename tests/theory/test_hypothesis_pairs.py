"""Pairs of networks for d_HΔH: gradients against autograd, laws whose divergence is known."""

import importlib
import math
import warnings

import numpy as np
import pytest
from scipy import stats

from theory import pair_divergence, proxy_a_distance
from theory._pair_search import Networks, linear_start, loss, random_start, slabs, subspace

SMALL = {"width": 4, "starts": 1, "steps": 40}


def by_hand(nets, x):
    """f and f' by loops, the definition."""
    out = np.zeros((len(x), 2))
    for p, point in enumerate(x):
        for k in range(2):
            for unit in range(nets.c.shape[1]):
                active = max(0.0, math.fsum(nets.w[k, unit] * point) + nets.b[k, unit])
                out[p, k] += nets.c[k, unit] * active
    return out


@pytest.fixture
def nets():
    rng = np.random.default_rng(0)
    return Networks(rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 5)), rng.normal(size=(2, 5)))


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    return rng.normal(size=(11, 3)), np.where(np.arange(11) < 4, 1 / 4, -1 / 7)


def test_networks_are_what_they_are_called(nets, data):
    f = by_hand(nets, data[0])
    np.testing.assert_allclose(nets(data[0]), f, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(nets.agree(data[0]), (f[:, 0] > 0) == (f[:, 1] > 0))
    again = nets.like(nets.flat())
    for new, old in zip(again.parts, nets.parts, strict=True):
        np.testing.assert_array_equal(new, old)


def test_the_gradient_is_that_of_autograd(nets, data):
    torch = pytest.importorskip("torch")
    w, b, c = (torch.tensor(part, requires_grad=True) for part in nets.parts)
    x, weight = map(torch.tensor, data)
    hidden = torch.relu(torch.einsum("nd,kmd->nkm", x, w) + b)
    t = torch.tanh((hidden * c).sum(2))
    value = -(weight * t[:, 0] * t[:, 1]).sum() + 0.05 * sum((p**2).sum() for p in (w, b, c))
    value.backward()
    wanted = torch.cat([p.grad.reshape(-1) for p in (w, b, c)]).numpy()
    found, gradient = loss(nets, *data, 0.1)
    assert found == pytest.approx(value.item(), abs=1e-13)
    np.testing.assert_allclose(gradient, wanted, rtol=0, atol=1e-13)


def test_a_linear_start_is_linear_up_to_its_spare_units():
    rng = np.random.default_rng(0)
    w, b, x = rng.normal(size=(2, 4)), rng.normal(size=2), rng.normal(size=(50, 4))
    two = linear_start(w, b, 2, rng)
    np.testing.assert_allclose(two(x), x @ w.T + b, rtol=0, atol=1e-12)
    many = linear_start(w, b, 16, rng)
    assert 0 < np.abs(many(x) - two(x)).max() < 0.3


def test_slabs_lie_across_the_directions_whose_spread_differs():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 2000, 5)) + 10
    b[:, 1] = 10 + 4 * (b[:, 1] - 10)
    b[:, 3] = 10 + 0.25 * (b[:, 3] - 10)
    found = [(w / np.linalg.norm(w[0]), w, bias) for w, bias in slabs(a, b)]
    along = [int(np.abs(w[0]).argmax()) for w, _, _ in found]
    assert sorted(along) == [1, 3]
    for unit, w, bias in found:
        assert abs(unit[0, along[0]] * unit[0, along[1]]) < 0.2
        agree = [np.prod(np.sign(x @ w.T + bias), axis=1) > 0 for x in (a, b)]
        # 2 max_c |P(|z| < c) − P(|z| < c/4)| is 1.18; 2000 points each, 0.04 = three deviations.
        c = np.linspace(0, 8, 8001)
        best = 4 * np.abs(stats.norm.cdf(c) - stats.norm.cdf(c / 4)).max()
        assert 2 * (agree[0].mean() - agree[1].mean()) == pytest.approx(best, abs=0.1)


def test_wide_data_are_searched_in_a_subspace():
    rng = np.random.default_rng(0)
    z, w = rng.normal(size=(150, 300)) * np.geomspace(10, 0.1, 300), rng.normal(size=300)
    basis = subspace(z, w, 0)
    assert basis.shape == (129, 300) and subspace(z[:, :200], w[:200], 0) is None
    np.testing.assert_allclose(basis[-1], w / np.linalg.norm(w))
    gram = basis[:-1] @ basis[:-1].T
    np.testing.assert_allclose(gram, gram[0, 0] * np.eye(128), atol=1e-10)
    assert (z @ basis[:-1].T).std() == pytest.approx(1)


# --- what the estimate is


def spread(rng, n):
    """N(0, I) and N(0, diag(9, 1/9)), which no half-space through the origin tells apart."""
    return rng.normal(size=(n, 2)), rng.normal(size=(n, 2)) * [3, 1 / 3]


def crossed(rng, n):
    """Four clusters: A at (1, 1) and (−1, −1), B at (1, −1) and (−1, 1)."""
    sign = rng.choice([-1, 1], size=(2, n, 1))
    noise = 0.25 * rng.normal(size=(2, n, 2))
    return sign[0] * [1, 1] + noise[0], sign[1] * [1, -1] + noise[1]


def test_disagreement_sees_what_half_spaces_do_not():
    a, b = crossed(np.random.default_rng(0), 250)
    found = pair_divergence(a, b, **SMALL)
    assert found.lower > 1.7 and found.divergence == "d_HΔH" and found.upper is None
    # Of half-spaces 2 P(half of a cluster pair): about 1 at best.
    assert proxy_a_distance(a, b).interval[1] < 1.7
    assert "d_HΔH ≥" in str(found) and "width 4" in str(found)
    assert "d_HΔH" in found.term().origin


def test_equal_means_with_unequal_covariances():
    a, b = spread(np.random.default_rng(0), 900)
    found = pair_divergence(a, b, **SMALL)
    # The best pair of half-spaces through the origin has (8/π) arctan √9 − 2 = 1.18, which no set
    # exceeds: the likelihood ratio is 1 on two lines. Here the total variation by a grid.
    homogeneous = 8 / math.pi * math.atan(3) - 2
    t = np.linspace(-20, 20, 2001)
    p = stats.norm.pdf(t)[:, None] * stats.norm.pdf(t)
    q = stats.norm.pdf(t, scale=3)[:, None] * stats.norm.pdf(t, scale=1 / 3)
    variation = float(np.abs(p - q).sum() * (t[1] - t[0]) ** 2)
    assert variation == pytest.approx(homogeneous, abs=1e-3)
    # 300 held out: sd at most 2√(2·¼/300) = 0.08, three of them.
    assert abs(found.value - homogeneous) < 0.25 and found.lower <= homogeneous


def test_a_shift_is_found_with_one_constant_hypothesis():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 600, 8))
    found = pair_divergence(a + 0.6, b, **SMALL)
    # d_H of half-spaces at Mahalanobis distance 0.6√8; 200 held out: four deviations of 0.07.
    exact = 2 * (2 * stats.norm.cdf(0.3 * math.sqrt(8)) - 1)
    assert found.value > exact - 0.28 and found.lower > 0.5


DELTA = 0.1


def test_the_lower_bound_and_the_p_value_hold_under_one_law():
    draws, wrong, small, negative = 80, 0, 0, 0
    for draw in range(draws):
        a, b = np.random.default_rng(draw).normal(size=(2, 36, 2))
        found = pair_divergence(a, b, width=2, starts=0, steps=5, seed=draw, delta=DELTA)
        wrong += found.lower > 0
        small += found.p_value <= DELTA
        negative += found.value < 0
    limit = stats.binom.isf(1e-4, draws, DELTA)
    assert wrong <= limit and small <= limit
    assert negative > 0.25 * draws  # 24 held-out points: a tie at 0 is common, bias is not


def test_the_parts_are_apart(monkeypatch):
    module, seen = importlib.import_module("theory.hypothesis_pairs"), {}
    original = module.best_pair

    def spy(fit, validation, *rest):
        seen.update(fit=fit, validation=validation)
        return original(fit, validation, *rest)

    monkeypatch.setattr(module, "best_pair", spy)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(120, 3)), rng.normal(size=(60, 3))
    found = pair_divergence(a, b, **SMALL)
    assert found.n == (40, 20)
    assert [int(x.sum()) for _, x in seen.values()] == [60, 20]
    assert [int((~x).sum()) for _, x in seen.values()] == [30, 10]
    units = found.classifier.units
    held = np.concatenate([units(a), units(b)])
    used = {row.tobytes() for x, _ in seen.values() for row in x}
    assert len(used) == 120 and sum(row.tobytes() not in used for row in held) == 60


@pytest.mark.parametrize("d", [3, 230])
def test_the_pair_is_in_the_class_as_functions_of_x(d):
    rng = np.random.default_rng(0)
    scale, shift = np.geomspace(1e-3, 1e6, d), np.linspace(-1, 1, d)
    a, b = rng.normal(size=(2, 40, d)) * scale + shift * scale
    b = b + 2 * scale
    found = pair_divergence(a, b, **SMALL)
    nets = found.classifier.networks
    assert nets.w.shape == (2, 4, d) and nets.c.shape == (2, 4)
    x = np.concatenate([a, b])
    f = by_hand(nets, x)
    np.testing.assert_array_equal((f[:, 0] > 0) == (f[:, 1] > 0), found.classifier(x))
    assert found.value > 0.5


def test_one_seed_one_result_and_nothing_leaks_out():
    a, b = spread(np.random.default_rng(0), 60)
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = pair_divergence(a, b, **SMALL)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    assert found == pair_divergence(a.tolist(), b, **SMALL)
    assert len({pair_divergence(a, b, seed=s, **SMALL).value for s in range(4)}) > 1


def test_one_sample_against_itself_and_constant_features():
    x = np.random.default_rng(0).normal(size=(40, 3))
    assert pair_divergence(x, x.copy(), **SMALL).value == 0
    a, b = np.zeros((20, 2)), np.zeros((20, 2))
    with pytest.warns(UserWarning, match="distinct rows lie both"):
        assert pair_divergence(a, b, **SMALL).value == 0


def test_groups_are_whole():
    rng = np.random.default_rng(0)
    groups = np.arange(60) // 6, 10 + np.arange(60) // 6
    centres = np.repeat(rng.normal(size=(2, 10, 4)), 6, axis=1)
    a, b = centres + 0.1 * rng.normal(size=(2, 60, 4))
    found = pair_divergence(a, b, groups=groups, **SMALL)
    assert found.groups == (3, 3) and found.n == (18, 18) and found.lower == 0


X = np.random.default_rng(0).normal(size=(20, 3))
Y = X + 1


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((X[:11], Y), {}, ValueError, "a has 11 points: at least 12"),
        ((X, Y[:, :2]), {}, ValueError, "a has 3 features and b has 2"),
        ((X, Y * np.inf), {}, ValueError, "b has NaN or infinite"),
        ((X, Y), {"width": 1}, ValueError, "width must be at least 2"),
        ((X, Y), {"width": 2.0}, TypeError, "width must be an integer"),
        ((X, Y), {"width": 10**12}, ValueError, "needs more memory than there is"),
        ((X, Y), {"starts": -1}, ValueError, "starts must be at least 0"),
        ((X, Y), {"steps": 0}, ValueError, "steps must be at least 1"),
        ((X, Y), {"seed": None}, TypeError, "seed must be an integer"),
        ((X, Y), {"delta": 0.0}, ValueError, "delta must be positive"),
        (
            (X, Y),
            {"groups": (np.arange(20) // 4, 5 + np.arange(20) // 2)},
            ValueError,
            "a has 5 groups: at least 6",
        ),
    ],
)
def test_bad_samples_are_refused(arguments, options, error, message):
    with pytest.raises(error, match=message):
        pair_divergence(*arguments, **options)


def test_a_random_start_has_activations_of_order_one():
    rng = np.random.default_rng(0)
    f = random_start(64, 16, rng)(rng.normal(size=(500, 64)))
    assert 0.3 < f.std() < 5
