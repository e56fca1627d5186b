"""λ_max without the matrix: against exact arithmetic, closed forms and the stored matrix."""

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
import threadpoolctl
from hypothesis import given, settings
from hypothesis import strategies as st

from theory import _row_sums
from theory._kernels import as_kernel, rectangle
from theory._pairs import unit_rows
from theory._progress import Meter
from theory.gram import gram_matrix

KERNELS = {
    "printed": as_kernel("printed", 1.7, 1.0),
    "normalised": as_kernel("normalised", 1.0, 0.3),
}


def bound(x, kernel="printed"):
    return _row_sums.largest_by_tiles(np.asarray(x, float), KERNELS[kernel], Meter(None))


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 10**6),
    st.integers(1, 50),
    st.integers(1, 8),
    st.sampled_from(sorted(KERNELS)),
    st.booleans(),
)
def test_the_largest_eigenvalue_is_enclosed(seed, n, d, kernel, degenerate):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 2, (n, 1))
    if degenerate:
        x = x[rng.integers(0, n, n)] * rng.choice([-2.0, 1.0, 3.0], (n, 1))
    found = bound(x, kernel)
    value = np.linalg.eigvalsh(KERNELS[kernel].matrix(x))[-1]
    assert found.lower <= value * (1 + 1e-13) and found.upper >= value * (1 - 1e-13)


@pytest.mark.parametrize(("n", "d", "width"), [(300, 5, 0.02), (900, 12, 0.1), (900, 400, 0.02)])
def test_the_two_ends_are_close_and_tiles_and_threads_do_not_matter(n, d, width, monkeypatch):
    x = np.random.default_rng(0).standard_normal((n, d))
    found = bound(x)
    assert found.width < width * found.upper
    assert found.lower <= np.linalg.eigvalsh(KERNELS["printed"].matrix(x))[-1] <= found.upper
    monkeypatch.setattr(_row_sums, "_WIDE", 70)
    small = bound(x)
    assert (small.lower, small.upper) == pytest.approx((found.lower, found.upper), rel=1e-12)
    with threadpoolctl.threadpool_limits(4, user_api="blas"):
        assert bound(x) == small


@pytest.mark.parametrize("n", [1, 2, 40, 300, 700])
def test_the_product_is_that_of_the_stored_matrix(n, monkeypatch):
    monkeypatch.setattr(_row_sums, "_WIDE", 111)
    x = np.random.default_rng(n).standard_normal((n, 6))
    unit, vector = unit_rows(x), np.random.default_rng(1).uniform(0, 1, n)
    image = _row_sums._product(unit.unit, unit.norm, vector, Meter(None))
    stored = gram_matrix(np.ldexp(x, -unit.exponent[:, None]))
    assert np.allclose(image, stored @ vector, rtol=1e-13)


def test_closed_forms():
    # n copies of one point: λ_max = n α²‖x‖²/2, exactly.
    for n in (1, 3, 500):
        exact = n * Fraction(17, 10) ** 2 * 25 / 2
        found = bound(np.tile([3.0, 4.0], (n, 1)))
        assert found.lower <= exact * (1 + 1e-15) and found.upper >= exact * (1 - 1e-15)
        assert found.width < 1e-11 * found.upper
    # One point and its antipode: both entries of the diagonal, none beside it.
    pair = bound([[3.0, 4.0], [-3.0, -4.0]])
    assert pair.contains(1.7**2 * 12.5) or pair.width < 1e-13
    # n directions at equal angles in the plane: circulant, λ_max the sum of a row.
    mp.mp.dps = 30
    n = 24
    angles = [2 * mp.pi * k / n for k in range(n)]
    exact = sum(
        (mp.sin(a) + (mp.pi - a) * mp.cos(a)) / (2 * mp.pi)
        for a in (min(a, 2 * mp.pi - a) for a in angles)
    )
    x = [[float(mp.cos(a)), float(mp.sin(a))] for a in angles]
    found = _row_sums.largest_by_tiles(np.array(x), as_kernel("printed", 1.0, 1.0), Meter(None))
    assert abs(found.midpoint / float(exact) - 1) < 1e-14 and found.width < 1e-12 * found.upper


@pytest.mark.parametrize("power", [-450, 450])
def test_scales_far_from_one_change_nothing(power):
    x = np.random.default_rng(0).standard_normal((60, 4))
    plain, moved = bound(x), bound(np.ldexp(x, power))
    assert moved.lower == pytest.approx(np.ldexp(plain.lower, 2 * power), rel=1e-14)
    assert moved.upper == pytest.approx(np.ldexp(plain.upper, 2 * power), rel=1e-14)


def test_all_rounding_is_charged():
    """Exact rational bounds of the quotient and of the row sums for given tiles and errors."""
    rng = np.random.default_rng(3)
    n, entry = 9, 1e-9
    s, vector = rng.uniform(0.1, 1, n), rng.uniform(0.1, 1, n)
    k = rng.uniform(0, 1, (n, n))
    k = (k + k.T) * np.outer(s, s)
    low, high = _row_sums._bounds(s, vector, k @ vector, entry)
    exact = [sum(Fraction(a) * Fraction(b) for a, b in zip(r, vector, strict=True)) for r in k]
    wrong = Fraction(entry) * sum(Fraction(a) * Fraction(b) for a, b in zip(s, vector, strict=True))
    most = [
        (e + Fraction(a) * wrong) / Fraction(b) for e, a, b in zip(exact, s, vector, strict=True)
    ]
    least = [e - Fraction(a) * wrong for e, a in zip(exact, s, strict=True)]
    squared = sum(Fraction(b) ** 2 for b in vector)
    quotient = sum(a * Fraction(b) for a, b in zip(least, vector, strict=True)) / squared
    assert max(most) <= high <= max(most) * (1 + Fraction(1, 10**13))
    assert quotient * (1 - Fraction(1, 10**13)) <= low <= quotient
    # Without an error of the entries, the roundings of a sum of n products are what is left.
    unit = Fraction(1, 2**53)
    image = np.array([float(e) for e in exact])
    low, high = _row_sums._bounds(s, vector, image, 0.0)
    most = max(Fraction(a) / Fraction(b) for a, b in zip(image, vector, strict=True))
    quotient = sum(Fraction(a) * Fraction(b) for a, b in zip(image, vector, strict=True)) / squared
    assert high >= most * (1 + (n + 2) * unit) and low <= quotient * (1 - (n + 2) * unit)


@pytest.mark.parametrize("d", [3, 200])
def test_a_rectangle_holds_the_entries_of_the_gram_matrix(d):
    x = np.random.default_rng(d).standard_normal((50, d))
    x[7], x[40] = 3 * x[21], -2 * x[20]
    unit = unit_rows(x).unit
    h = rectangle(unit[:30], unit[20:])
    norm = np.linalg.norm(x, axis=1)
    stored = gram_matrix(x)[:30, 20:] / np.outer(norm[:30], norm[20:])
    assert np.allclose(h, stored, rtol=1e-11, atol=1e-300)
