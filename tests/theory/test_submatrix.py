"""Nearest pairs against all pairs; submatrices against the whole matrix."""

import numpy as np
import pytest
import threadpoolctl
from hypothesis import given, settings
from hypothesis import strategies as st

from theory import submatrix
from theory._kernels import as_kernel
from theory._pairs import unit_rows
from theory._progress import Meter
from theory._strategy import Resources
from theory.gram import gram_matrix

PRINTED = as_kernel("printed", 1.0, 1.0)


def cloud(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def use(report=None):
    return Resources(None, 1e9, Meter(report))


def by_hand(x, weight, count):
    """All pairs in the order of the same measure, with angles by arctan of half differences."""
    unit = x / np.linalg.norm(x, axis=1)[:, None]
    p, q = np.triu_indices(len(x), 1)
    plus = np.linalg.norm(unit[p] - unit[q], axis=1)
    minus = np.linalg.norm(unit[p] + unit[q], axis=1)
    angle = 2 * np.arctan2(np.minimum(plus, minus), np.maximum(plus, minus))
    score = np.sin(angle / 2) ** 2 / (1 / weight[p] ** 2 + 1 / weight[q] ** 2)
    order = np.argsort(score, kind="stable")[:count]
    return set(zip(p[order].tolist(), q[order].tolist(), strict=True)), order


@pytest.mark.parametrize(("n", "d"), [(2, 2), (9, 3), (150, 4), (700, 30)])
@pytest.mark.parametrize("count", [1, 10, 60])
def test_the_nearest_pairs_are_those_of_a_search_over_all(n, d, count, monkeypatch):
    monkeypatch.setattr(submatrix, "_WIDE", 40)  # several tiles
    x, weight = cloud(n, d), np.random.default_rng(1).uniform(0.5, 1, n)
    found = submatrix.nearest_pairs(unit_rows(x), weight, count, Meter(None))
    expected, _ = by_hand(x, weight, count)
    assert found.shape[1] == min(count, n * (n - 1) // 2)
    assert set(map(tuple, found.T.tolist())) == expected
    assert (found[0] < found[1]).all()


def test_tiny_angles_and_antipodes_are_ordered_without_cancellation():
    x = cloud(400, 10)
    planted = {}
    for i, (angle, sign) in enumerate(
        [(1e-9, 1), (2e-9, -1), (3e-9, 1), (1e-7, -1), (1e-5, 1), (1e-3, -1)]
    ):
        p, q = 7 + 30 * i, 22 + 31 * i
        side = x[q] - (x[q] @ x[p]) / (x[p] @ x[p]) * x[p]
        side *= np.linalg.norm(x[p]) / np.linalg.norm(side)
        x[q] = sign * (np.cos(angle) * x[p] + np.sin(angle) * side)
        planted[(p, q)] = angle
    found = submatrix.nearest_pairs(unit_rows(x), np.ones(400), 6, Meter(None))
    assert list(map(tuple, found.T.tolist())) == list(planted)


def test_many_duplicates_and_many_threads_give_one_answer():
    x = np.repeat(cloud(60, 5), 10, axis=0)
    found = []
    for threads in (1, 4):
        with threadpoolctl.threadpool_limits(threads, user_api="blas"):
            pairs = submatrix.nearest_pairs(unit_rows(x), np.ones(600), 100, Meter(None))
            found.append(pairs)
    assert np.array_equal(*found) and found[0].shape == (2, 100)
    assert (found[0][0] // 10 == found[0][1] // 10).all()


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 6), st.integers(2, 40), st.booleans()
)
def test_any_submatrix_bounds_the_whole_from_above(seed, n, d, size, degenerate):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-3, 3, (n, 1))
    if degenerate:
        x = x[rng.integers(0, n, n)] * rng.choice([-2.0, 1.0, 3.0], (n, 1))
    part = submatrix.lowest_submatrix(x, PRINTED, size, use())
    assert 1 <= len(part.rows) <= max(size, 1)
    assert (np.diff(part.rows) > 0).all() and part.rows[-1] < n
    assert np.array_equal(part.matrix, gram_matrix(x[part.rows]))
    values = np.linalg.eigvalsh(gram_matrix(x))
    noise = 20 * n * 2.0**-53 * values[-1]
    assert values[0] <= part.low.upper + noise
    own = np.linalg.eigvalsh(part.matrix)[0]
    assert part.low.lower - noise <= own <= part.low.upper + noise
    assert set(part.low.rows) <= set(part.rows.tolist())


@pytest.mark.parametrize(("d", "most"), [(5, 2.5), (12, 1.8), (50, 5.0), (400, 1.7)])
def test_few_rows_come_near_the_eigenvalue_of_all(d, most):
    # 200 of 1,500 rows; as many at random are 3 to 20 times off where the pairs matter (d = 5).
    x = cloud(1500, d)
    exact = np.linalg.eigvalsh(gram_matrix(x))[0]
    part = submatrix.lowest_submatrix(x, PRINTED, 200, use())
    assert 1.0 <= part.low.upper / exact < most
    if d == 5:
        some = np.random.default_rng(1).choice(1500, 200, replace=False)
        assert np.linalg.eigvalsh(gram_matrix(x[some]))[0] > 3 * part.low.upper


def test_planted_pairs_antipodes_and_short_points_are_found():
    x = cloud(900, 20)
    x[800] = 1.5 * x[13]
    part = submatrix.lowest_submatrix(x, PRINTED, 40, use())
    assert part.low.upper < 1e-11 and part.low.lower <= 0
    assert part.low.cause == "rows 13 and 800 are duplicates: positively parallel up to rounding."
    short = cloud(900, 20)
    short[77] *= 1e-4
    part = submatrix.lowest_submatrix(short, PRINTED, 40, use())
    assert 77 in part.rows and part.low.upper < 1e-6
    # Nine lines with both directions in eight dimensions: singular, though no pair is.
    lines = np.concatenate([cloud(600, 8), -cloud(9, 8)])
    part = submatrix.lowest_submatrix(lines, PRINTED, 60, use())
    assert part.low.upper < 1e-10 and {*range(9), *range(600, 609)} <= set(part.rows.tolist())


def test_scales_far_from_one_change_nothing():
    x = cloud(300, 6)
    plain = submatrix.lowest_submatrix(x, PRINTED, 50, use())
    for power in (-400, 400):
        moved = submatrix.lowest_submatrix(np.ldexp(x, power), PRINTED, 50, use())
        assert np.array_equal(moved.rows, plain.rows)
        assert moved.low.upper == pytest.approx(np.ldexp(plain.low.upper, 2 * power), rel=1e-6)


def test_progress_reaches_one():
    for size in (50, 400):
        seen = []
        submatrix.lowest_submatrix(cloud(300, 6), PRINTED, size, use(seen.append))
        assert seen == sorted(set(seen)) and seen[-1] == 1.0
