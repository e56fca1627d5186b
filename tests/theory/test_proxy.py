"""The proxy A-distance: capacities, groups, refusals, what it must not depend on."""

import importlib
import pickle
import warnings

import numpy as np
import pytest

from theory import proxy_a_distance
from theory._domain_classifier import CAPACITIES, _balanced, balanced_error
from theory._splits import in_folds, two_parts

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
        assert len(held) == 5
        fold = in_folds(rows, 3, seed)
        load = np.bincount(fold, sizes, minlength=3)
        assert load.min() > 0 and sorted(load)[1] - sorted(load)[0] <= 13  # 30 is one group
    single = [np.array([i]) for i in range(11)]
    assert sorted(np.bincount(in_folds(single, 3, int(rng.integers(99))))) == [3, 4, 4]


def test_every_group_is_held_out_equally_often_whatever_its_size():
    # Two large groups of which all points are in h, 18 small ones of which none is.
    rows = [np.arange(i * 50, i * 50 + (50 if i < 2 else 1)) for i in range(20)]
    draws, times, means = 2000, np.zeros(20), []
    for seed in range(draws):
        held = [int(part[0]) // 50 for part in two_parts(rows, 0.5, seed)[1]]
        times[held] += 1
        means.append(np.mean([i < 2 for i in held]))
    # Five standard deviations of a binomial of 2000 trials, and of the mean.
    assert abs(times - draws / 2).max() < 5 * np.sqrt(draws / 4)
    assert abs(np.mean(means) - 0.1) < 5 * np.std(means) / np.sqrt(draws)


@pytest.mark.parametrize("share", [1e-9, 0.2, 0.5, 0.7, 1 - 1e-9])
def test_single_points_are_parted_as_ever(share):
    for n in (8, 9, 101):
        rows = [np.array([i]) for i in range(n)]
        fit, held = two_parts(rows, share, 3)
        order = np.random.default_rng(3).permutation(n)
        cut = min(max(int(np.ceil(share * n - 0.5)), 2), n - 2)  # nearest, half down
        assert np.concatenate(held).tolist() == order[:cut].tolist()
        assert np.concatenate(fit).tolist() == order[cut:].tolist()


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
