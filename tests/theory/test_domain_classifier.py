"""Domain classifiers: calls of users, global state and threads, features at the edge of float64."""

import sys
import threading
import warnings

import numpy as np
import pytest

from theory import _domain_classifier, pair_divergence, proxy_a_distance
from theory._domain_classifier import CAPACITIES

WAYS = {name: {"capacity": name} for name in CAPACITIES} | {"pair": {}}


def points(scale=1.0):
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 3)) * scale, (rng.normal(size=(50, 3)) + 1) * scale


def estimate(way, a, b, **other):
    if way == "pair":
        return pair_divergence(a, b, width=2, starts=1, steps=3, **other)
    return proxy_a_distance(a, b, capacity=way, **other)


@pytest.fixture(scope="module", params=list(WAYS))
def classifier(request):
    return estimate(request.param, *points()).classifier


# --- calls

X = np.zeros((5, 3))


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (X[0], ValueError, r"x must have two dimensions, not shape \(3,\); one point is x.reshape"),
        (0.0, ValueError, "x must have two dimensions"),
        (X[:0], ValueError, "x is empty"),
        (X[:, :2], ValueError, "x must have 3 features, as the fitted points have, not 2: give"),
        (np.zeros((5, 4)), ValueError, "x must have 3 features, as the fitted points have, not 4"),
        (
            np.array([[0.0] * 3] * 2 + [[np.nan] * 3]),
            ValueError,
            "x has NaN or infinite .* in row 2",
        ),
        (X - np.inf, ValueError, "x has NaN or infinite entries"),
        (
            X + np.array([0, 0, 1e300]),
            ValueError,
            "x has entries over 3e.120 times .* row 0, feature 2",
        ),
        (X + 1j, TypeError, "x must hold real numbers"),
        ([["a"] * 3], TypeError, "x must hold real numbers"),
        ([[0.0] * 3, [0.0] * 2], ValueError, "x is not a rectangular array"),
        (None, TypeError, "x must hold real numbers"),
    ],
)
def test_bad_points_are_refused(classifier, x, error, message):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(error, match=message):
            classifier(x)


def test_lists_and_tensors_are_points(classifier):
    torch = pytest.importorskip("torch")
    x = points()[0]
    said = classifier(x)
    assert said.shape == (40,) and said.dtype == bool
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for given in (x.tolist(), torch.tensor(x), torch.tensor(x, requires_grad=True)):
            np.testing.assert_array_equal(classifier(given), said)
        assert len(classifier(x + 1e100)) == 40  # far, but no overflow


# --- features at the edge of float64


@pytest.mark.parametrize("scale", [1e-310, 1e-307, 1e300])
def test_the_half_space_is_finite(scale):
    a, b = points(scale)
    a[:, 1] *= 1e-3
    b[:, 1] = a[:10].repeat(5, axis=0)[:, 1] * 1.001  # hard to tell, so that weights are large
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        h = proxy_a_distance(a, b).classifier
        w, c = h.half_space
        assert np.isfinite([*w, c]).all() and w.any()
        x = np.concatenate([a, b])
        np.testing.assert_array_equal(h(x), x @ w > c)


def test_weights_that_overflow_are_divided_by_one_power_of_two():
    units = _domain_classifier.standardise(points(1e-310)[0])
    w, b = np.array([[3.0, 0.0, 700.0], [0.0, -5.0, 2e4]]), np.array([7.0, -11.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, offset = units.in_units_of_x(w, b)
    assert np.isfinite(found).all() and np.abs(found).max() > 1e300
    x = points(1e-310)[0]
    factor = (x @ found.T + offset) / (units(x) @ w.T + b)
    # Points of 1e-310 have 47 bits; offsets have terms up to 1e4 times the values.
    np.testing.assert_allclose(factor, factor[0, 0], rtol=1e-6)
    assert 0 < factor[0, 0] < 1
    plain = _domain_classifier.standardise(points()[0])
    x, (found, offset) = points()[1], plain.in_units_of_x(w, b)
    np.testing.assert_allclose(x @ found.T + offset, plain(x) @ w.T + b, rtol=0, atol=1e-9)


# --- state of the process


@pytest.mark.parametrize("way", list(WAYS))
def test_global_generators_are_left_alone(way):
    np.random.seed(0)  # noqa: NPY002

    def state():
        name, key, *rest = np.random.get_state()  # noqa: NPY002
        return name, np.asarray(key).tobytes(), rest

    before = state()
    estimate(way, *points())
    estimate(way, *points(), seed=2**70)
    assert state() == before


@pytest.mark.parametrize("way", list(WAYS))
def test_global_generators_decide_nothing(way):
    found = []
    for seed in (0, 1):
        np.random.seed(seed)  # noqa: NPY002
        found.append(estimate(way, *points()))
    assert found[0] == found[1]


def test_threads_leave_the_filters_of_warnings_as_they_were(monkeypatch):
    monkeypatch.setattr(_domain_classifier, "_TRIES", 1)  # every solver would warn
    alone, found = estimate("mlp", *points()), []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            before = list(warnings.filters)
            threads = [
                threading.Thread(target=lambda: found.append(estimate("mlp", *points())))
                for _ in range(8)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert warnings.filters == before
    finally:
        sys.setswitchinterval(interval)
    assert not told and found == [alone] * 8
