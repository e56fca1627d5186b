"""The proxy A-distance: coverage where d_H is known, refusals, what it must not depend on."""

import importlib
import math
import pickle
import warnings

import numpy as np
import pytest
from scipy import stats

from theory import Gaussian, half_space_divergence, held_out_divergence, proxy_a_distance
from theory._domain_classifier import CAPACITIES, Capacity, _balanced, balanced_error
from theory._splits import in_folds, two_parts

DELTA = 0.1
SIZE, DIMENSION = 30, 5


# --- coverage over simulated draws


def same_covariance(rng):
    """Laws (mean, covariance) of A and B, and d_H = 2(2Φ(Δ/2) − 1) at Mahalanobis distance Δ."""
    root = rng.normal(size=(DIMENSION, DIMENSION))
    covariance = root @ root.T + 0.1 * np.eye(DIMENSION)
    shift = 1.2 * np.linalg.cholesky(covariance)[:, 0]
    zero = np.zeros(DIMENSION)
    return (shift, covariance), (zero, covariance), 2 * (2 * stats.norm.cdf(0.6) - 1)


def same_mean(rng):
    """N(0, I) and N(0, diag(9, 1/4, 1, 1, 1)): d_H is that of the direction with the widest ratio.

    Along w the laws are N(0, 1) and N(0, σ²), σ in [1/2, 3]; 2 sup_c |Φ(c) − Φ(c/σ)| grows with
    |log σ|.
    """
    spread = np.diag([9.0, 0.25, 1.0, 1.0, 1.0])
    c = np.linspace(0, 6, 60001)
    d = 2 * np.abs(stats.norm.cdf(c) - stats.norm.cdf(c / 3)).max()
    zero = np.zeros(DIMENSION)
    return (zero, np.eye(DIMENSION)), (zero, spread), d


def same_law(rng):
    """One law for both: d_H = 0."""
    law = np.zeros(DIMENSION), np.eye(DIMENSION)
    return law, law, 0.0


@pytest.mark.parametrize("laws", [same_law, same_covariance, same_mean])
def test_the_truth_of_the_simulations_is_that_of_the_closed_forms(laws):
    p, q, d_h = laws(np.random.default_rng(0))
    found = half_space_divergence(Gaussian(*p), Gaussian(*q))
    assert found.lower - 1e-6 <= d_h <= found.upper + 1e-6  # the grid of thresholds


def half_space_rate(law, w, c):
    """P(w·x > c) of a Gaussian; 0 or 1 where w = 0."""
    deviation = math.sqrt(w @ law[1] @ w)
    if deviation == 0:
        return float(c < 0)
    return stats.norm.sf((c - w @ law[0]) / deviation)


def simulate(laws, draws, seed):
    """Estimates of many samples, the true d(h) of each, and d_H."""
    rng, out = np.random.default_rng(seed), []
    for draw in range(draws):
        p, q, d_h = laws(rng)
        a, b = (rng.multivariate_normal(*law, size=SIZE) for law in (p, q))
        found = proxy_a_distance(a, b, folds=2, seed=draw, delta=DELTA)
        w, c = found.classifier.half_space
        true = 2 * (half_space_rate(p, w, c) - half_space_rate(q, w, c))
        assert abs(true) <= d_h + 1e-6  # the grid of thresholds in `same_mean`
        out.append((found, true, d_h))
    return out


def wrong(events, rate):
    """Whether events that should happen at most at a rate happen too often, level 1e-4."""
    events = list(events)
    return sum(events) > stats.binom.isf(1e-4, len(events), rate)


def check(found):
    assert not wrong((e.lower > d_h for e, _, d_h in found), DELTA)
    assert not wrong((not e.interval[0] <= d <= e.interval[1] for e, d, _ in found), DELTA)
    errors = np.array([e.value - d for e, d, _ in found])
    # The value is an unbiased estimate of d(h): within four standard errors.
    assert abs(errors.mean()) < 4 * errors.std() / math.sqrt(len(found))


def check_null(found):
    for level in (0.01, 0.05, 0.2, 0.5):
        assert not wrong((e.p_value <= level for e, _, _ in found), level)
    values = np.array([e.value for e, _, _ in found])
    assert 0.3 < (values < 0).mean() < 0.6  # raw: nothing flipped, nothing clipped


@pytest.fixture
def short_path(monkeypatch):
    """Two strengths instead of seven: most of a small fit's cost is scikit-learn's own."""
    linear = CAPACITIES["linear"]
    monkeypatch.setitem(CAPACITIES, "linear", Capacity(linear.make, (1e-2, 1.0), linear.weighs))


def test_the_intervals_cover_in_500_draws(short_path):
    null = simulate(same_law, 260, seed=3)
    check_null(null)
    check(null + simulate(same_covariance, 120, seed=4) + simulate(same_mean, 120, seed=5))


@pytest.mark.slow
@pytest.mark.parametrize("laws", [same_law, same_covariance, same_mean])
def test_the_intervals_cover_with_all_strengths(laws):
    found = simulate(laws, 1500, seed=6)
    check(found)
    if laws is same_law:
        check_null(found)


def test_the_check_of_coverage_can_fail(short_path):
    # The same intervals from the fitted points, as if nothing had been chosen on them.
    missed = []
    for draw in range(60):
        a, b = np.random.default_rng(draw).normal(size=(2, SIZE, 20))
        h = proxy_a_distance(a, b, folds=2, seed=draw, held_out=0.1).classifier
        missed.append(held_out_divergence(h(a), h(b), delta=DELTA).lower > 0)
    assert wrong(missed, DELTA)


def test_a_large_sample_comes_close_to_d_h():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 4000, 10))
    found = proxy_a_distance(a + 0.5 / math.sqrt(10), b)
    exact = 2 * (2 * stats.norm.cdf(0.25) - 1)
    # 2000 held out: sd of the value 2√(2·0.24/2000) = 0.03; four of them.
    assert abs(found.value - exact) < 0.125 and found.lower <= exact
    assert found.p_value < 1e-6 and found.n == (2000, 2000)


# --- capacity


def rings(rng, n, inner, outer):
    radius = rng.uniform(inner, outer, n)
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


@pytest.mark.parametrize("capacity", ["rbf", "mlp"])
def test_richer_classes_see_what_half_spaces_cannot(capacity):
    rng = np.random.default_rng(0)
    a, b = rings(rng, 200, 0, 1), rings(rng, 120, 1.2, 2)
    assert proxy_a_distance(a, b).lower < 0.6
    found = proxy_a_distance(a, b, capacity=capacity)
    assert found.lower > 1.5 and found.capacity == capacity
    assert found.strength in CAPACITIES[capacity].strengths
    assert found.classifier.half_space is None


@pytest.mark.parametrize("capacity", list(CAPACITIES))
def test_unequal_sizes_do_not_push_the_classifier_to_the_larger_domain(capacity):
    rng, shift = np.random.default_rng(0), np.array([1.5, 0, 0])
    a, b = rng.normal(size=(600, 3)), rng.normal(size=(80, 3)) + shift
    h = proxy_a_distance(a, b, capacity=capacity).classifier
    fresh = rng.normal(size=(4000, 3))
    rates = h(fresh).mean(), 1 - h(fresh + shift).mean()
    # Weighed by size, h would be right on nearly all of A and on less than half of B.
    assert min(rates) > 0.6, rates


def test_the_half_space_is_the_classifier():
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(n, 4)) * [1e-3, 1, 1e6, 1] + [0, 5, 0, 0] for n in (60, 80))
    h = proxy_a_distance(a + np.array([0, 1, 0, 0]), b).classifier
    w, c = h.half_space
    x = np.concatenate([a, b])
    np.testing.assert_array_equal(h(x), x @ w > c)
    assert h(x).any() and not h(x).all()


def test_the_smaller_domain_is_repeated_evenly_where_no_weights_are_taken():
    z, of_a = np.arange(11.0)[:, None], np.arange(11) < 3
    x, labels = _balanced(CAPACITIES["mlp"], z, of_a, 0)
    assert labels.sum() == (~labels).sum() == 8
    counts = np.bincount(x[:, 0].astype(int), minlength=11)
    assert sorted(counts[:3]) == [2, 3, 3] and (counts[3:] == 1).all()
    np.testing.assert_array_equal(labels, x[:, 0] < 3)
    assert _balanced(CAPACITIES["linear"], z, of_a, 0)[0] is z


def test_a_large_seed_is_a_seed(pair):
    assert proxy_a_distance(*pair, capacity="mlp", seed=2**70).seed == 2**70


def test_an_estimate_travels_between_processes(pair):
    found = proxy_a_distance(*pair)
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    np.testing.assert_array_equal(again.classifier(pair[0]), found.classifier(pair[0]))


# --- what the result must not depend on


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(5)
    return rng.normal(size=(90, 6)), rng.normal(size=(70, 6)) + 0.8 * np.eye(6)[0]


@pytest.mark.parametrize("capacity", list(CAPACITIES))
def test_one_seed_one_result(pair, capacity):
    assert proxy_a_distance(*pair, capacity=capacity) == proxy_a_distance(*pair, capacity=capacity)


def test_other_seeds_split_otherwise(pair):
    assert len({proxy_a_distance(*pair, seed=seed).value for seed in range(6)}) > 2


@pytest.mark.parametrize("factor", [2.0**-1000, 2.0**40, 1e300])
def test_units_of_the_features_do_not_matter(pair, factor):
    scales = np.array([factor, 1, 1, 1, factor, 1])
    found = proxy_a_distance(pair[0] * scales, pair[1] * scales)
    assert found == proxy_a_distance(*pair)


def test_constant_features_do_not_matter(pair):
    wide = [np.column_stack([x, np.full(len(x), 7.3), np.zeros(len(x))]) for x in pair]
    assert proxy_a_distance(*wide) == proxy_a_distance(*pair)


def test_swapped_domains_have_the_same_divergence(pair):
    # The solver sums the points in another order; no point is within rounding of the boundary.
    assert proxy_a_distance(*pair).value == pytest.approx(proxy_a_distance(*pair[::-1]).value)


def test_lists_and_tensors_are_converted(pair):
    torch = pytest.importorskip("torch")
    wanted = proxy_a_distance(*pair)
    assert proxy_a_distance(pair[0].tolist(), torch.tensor(pair[1])) == wanted


def test_the_global_generator_is_left_alone(pair):
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    proxy_a_distance(*pair, capacity="mlp")
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("capacity", list(CAPACITIES))
def test_no_warning_of_a_solver_gets_out(pair, capacity, monkeypatch):
    from theory import _domain_classifier

    monkeypatch.setattr(_domain_classifier, "_TRIES", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        proxy_a_distance(*pair, capacity=capacity)


# --- one sample twice, copies


def test_one_sample_against_itself_has_no_divergence(pair):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # corresponding rows stay in one part: nothing leaks
        found = proxy_a_distance(pair[0], pair[0].copy())
    assert found.value == 0 and found.lower == 0 and found.p_value == 1


def test_copies_in_both_parts_are_warned_of(pair):
    doubled = np.concatenate([pair[0], pair[0]])
    with pytest.warns(UserWarning, match=r"\d+ distinct rows lie both in the fit and in the held"):
        proxy_a_distance(doubled, pair[1])
    groups = np.tile(np.arange(90), 2), 100 + np.arange(70)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert proxy_a_distance(doubled, pair[1], groups=groups).groups is not None


# --- groups


def test_groups_are_never_split(monkeypatch):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 12, 150), 20 + rng.integers(0, 9, 110)
    # The first feature is the group, so that the parts can be told from the points.
    a, b = (np.column_stack([g, rng.normal(size=(len(g), 2))]) for g in labels)
    seen = {}

    def spy(module, name):
        original = getattr(module, name)

        def wrapper(x, *rest):
            seen.setdefault(name, []).append((x, *rest))
            return original(x, *rest)

        monkeypatch.setattr(module, name, wrapper)

    proxy = importlib.import_module("theory.proxy")
    spy(proxy, "fit_classifier")
    found = proxy_a_distance(a, b, groups=labels)
    x, of_a, fold = seen["fit_classifier"][0][:3]
    fitted = set(x[:, 0])
    assert found.groups == (12 - len(fitted & set(labels[0])), 9 - len(fitted & set(labels[1])))
    assert found.n == tuple(int((~np.isin(g, list(fitted))).sum()) for g in labels)
    for group in fitted:
        assert len(set(fold[x[:, 0] == group])) == 1 and len(set(of_a[x[:, 0] == group])) == 1
    assert len(set(fold)) == 3


def test_patients_that_differ_are_not_a_divergence():
    # Each patient has a colour of its own and 30 images; the domains' patients have one law.
    # A split of points would know every held-out patient from the fit part.
    rng, split, whole = np.random.default_rng(0), [], []
    for _ in range(12):
        centres = rng.normal(size=(2, 12, 20))
        a, b = (np.repeat(c, 30, axis=0) + 0.3 * rng.normal(size=(360, 20)) for c in centres)
        groups = np.arange(360) // 30
        split.append(proxy_a_distance(a, b).lower)
        whole.append(proxy_a_distance(a, b, groups=(groups, 12 + groups)))
    assert np.median(split) > 1.0
    assert all(found.lower == 0 for found in whole)
    # p-values of 6 + 6 groups: uniform on a grid, the least of 12 below 1e-3 with odds 1:85.
    assert min(found.p_value for found in whole) > 1e-3


def test_parts_and_folds_of_groups():
    rng = np.random.default_rng(0)
    sizes = [1, 1, 2, 30, 3, 5, 8, 8, 13, 1]
    ends = np.cumsum(sizes)
    rows = [np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    for seed in range(20):
        fit, held = two_parts(rows, 0.5, seed)
        assert len(fit) >= 2 and len(held) >= 2
        assert sorted(np.concatenate(fit + held)) == list(range(ends[-1]))
        assert len(np.concatenate(held)) == pytest.approx(ends[-1] / 2, abs=15)  # half the largest
        fold = in_folds(rows, 3, seed)
        load = np.bincount(fold, sizes, minlength=3)
        assert load.min() > 0 and sorted(load)[1] - sorted(load)[0] <= 13  # 30 is one group
    single = [np.array([i]) for i in range(11)]
    assert sorted(np.bincount(in_folds(single, 3, int(rng.integers(99))))) == [3, 4, 4]


def test_the_balanced_error_by_hand():
    said, of_a = np.array([1, 1, 0, 1, 0, 0], bool), np.array([1, 1, 1, 1, 0, 0], bool)
    assert balanced_error(said, of_a) == pytest.approx(0.125)


# --- refusals

X = np.random.default_rng(0).normal(size=(20, 3))
Y = X + 1


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((X[:7], Y), {}, ValueError, "a has 7 points: at least 8"),
        ((X, Y[:1]), {}, ValueError, "b has 1 point: at least 8"),
        ((X, Y[:, :2]), {}, ValueError, "a has 3 features and b has 2"),
        ((X, Y * np.nan), {}, ValueError, "b has NaN or infinite entries, first in row 0"),
        ((X[0], Y), {}, ValueError, "a must have two dimensions"),
        ((X, [["a"] * 3] * 20), {}, TypeError, "b must hold real numbers"),
        ((X, None), {}, TypeError, "b must hold real numbers"),
        ((X, Y), {"capacity": "lnear"}, ValueError, "linear, rbf, mlp.*did you mean 'linear'"),
        ((X, Y), {"capacity": "forest"}, ValueError, "linear, rbf, mlp, not 'forest'"),
        ((X, Y), {"capacity": None}, ValueError, "capacity must be one of"),
        ((X, Y), {"capacity": ["linear"]}, ValueError, "capacity must be one of"),
        ((X, Y), {"folds": 1}, ValueError, "folds must be at least 2"),
        ((X, Y), {"folds": 2.5}, TypeError, "folds must be an integer"),
        ((X, Y), {"held_out": 1}, ValueError, r"held_out is a share of the points in \(0, 1\)"),
        ((X, Y), {"held_out": np.nan}, ValueError, "held_out is a share"),
        ((X, Y), {"delta": 1}, ValueError, "delta is a probability"),
        ((X, Y), {"seed": -1}, ValueError, "seed must be at least 0"),
        ((X, Y), {"groups": list(range(40))}, TypeError, "groups must be a pair"),
        ((X, Y), {"groups": ([1] * 20, [2] * 20)}, ValueError, "a has 1 group: at least 4"),
        (
            (X, Y),
            {"groups": (range(20), range(19, 39))},
            ValueError,
            "group 19 occurs in both domains",
        ),
        (
            (X, Y),
            {"groups": (range(20), range(20, 39))},
            ValueError,
            r"groups\[1\] has 19 labels for 20 points",
        ),
    ],
)
def test_bad_samples_are_refused(arguments, options, error, message):
    with pytest.raises(error, match=message):
        proxy_a_distance(*arguments, **options)


def test_the_smallest_samples_that_are_allowed():
    found = proxy_a_distance(X[:8], Y[:8] + 5)
    assert found.n == (4, 4) and found.p_value == pytest.approx(1 / 70)
    four = np.arange(20) // 5
    found = proxy_a_distance(X, Y + 5, groups=(four, 4 + four))
    assert found.groups == (2, 2) and found.p_value == pytest.approx(1 / 6)
