"""Gram matrices against 50 digits, Monte Carlo and their own error bounds."""

import tracemalloc

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import theory
from theory import _arccosine
from theory._pairs import Recompute, cosines, gamma, norm_error, unit_rows

U = 2.0**-53
ANGLES = [0.5, 0.3, 0.1, 1e-2, 1e-3, 1e-5, 1e-8, 1e-10, 1e-12]


def angle(x, y):
    """θ to about 60 digits, with no cancellation at either end."""
    mp.mp.dps = 90
    x, y = [mp.mpf(float(v)) for v in x], [mp.mpf(float(v)) for v in y]
    nx, ny = mp.sqrt(mp.fsum(v * v for v in x)), mp.sqrt(mp.fsum(v * v for v in y))
    c = mp.fsum(a * b for a, b in zip(x, y, strict=True)) / (nx * ny)
    return nx, ny, mp.acos(max(mp.mpf(-1), min(mp.mpf(1), c)))


def kappa(x, y):
    nx, ny, t = angle(x, y)
    return nx * ny * (mp.sin(t) + (mp.pi - t) * mp.cos(t)) / (2 * mp.pi)


def direction(x, y):
    nx, ny, t = angle(x, y)
    return nx * ny * mp.cos(t) * (mp.pi - t) / (2 * mp.pi) - kappa(x, y) / len(x)


def differences(matrix, x, exact):
    n = len(x)
    return np.array(
        [
            [float(mp.mpf(float(matrix[p, q])) - exact(x[p], x[q])) for q in range(n)]
            for p in range(n)
        ]
    )


def pair(d, t, sign, rng, scale=1.0):
    """Two points at angle t from parallel (sign 1) or antiparallel (sign -1)."""
    x = rng.standard_normal(d)
    p = rng.standard_normal(d)
    p -= p @ x / (x @ x) * x
    p *= np.linalg.norm(x) / np.linalg.norm(p)
    return np.stack([x, scale * sign * (np.cos(t) * x + np.sin(t) * p)])


@pytest.mark.parametrize("d", [1, 2, 3, 20, 784])
@pytest.mark.parametrize("alpha", [1.0, 0.3, 7.0])
def test_entries_stay_within_the_absolute_bound(d, alpha):
    rng = np.random.default_rng(d)
    x = rng.standard_normal((8, d)) * np.exp(rng.standard_normal((8, 1)))
    error = np.abs(
        differences(theory.gram_matrix(x, alpha), x, lambda a, b: alpha**2 * kappa(a, b))
    )
    norms = np.linalg.norm(x, axis=1)
    assert (error <= (gamma(d) / 2 + 8 * U) * alpha**2 * np.outer(norms, norms)).all()


@pytest.mark.parametrize("d", [2, 20, 784])
@pytest.mark.parametrize("t", [0.0, *ANGLES])
@pytest.mark.parametrize("sign", [1, -1])
def test_relative_error_near_both_degenerate_angles(d, t, sign):
    rng = np.random.default_rng(17)
    for scale in (1.0, 3.7, 1e-3):
        x = pair(d, t, sign, rng, scale)
        value, exact = theory.gram_matrix(x)[0, 1], kappa(*x)
        nx, ny, theta = angle(*x)
        absolute = abs(mp.mpf(float(value)) - exact)
        assert absolute <= (gamma(d) / 2 + 8 * U) * nx * ny
        e = float(mp.pi - theta)
        if sign > 0:
            assert absolute <= 1e-14 * exact
        elif e >= 1e-3:
            assert absolute <= 1e-12 * exact
        elif e > 100 * U:
            assert absolute <= 10 * U / e * exact
        assert value >= 0


@pytest.mark.parametrize("d", [2, 20, 784])
def test_bulk_entries_have_twelve_digits_up_to_the_recomputed_pairs(d):
    # Sweeps across both thresholds: an off-by-one in either would leave a gap of lost digits.
    rng = np.random.default_rng(3)
    for t in np.geomspace(0.05, 1.5, 12):
        for sign in (1, -1):
            x = pair(d, t, sign, rng)
            assert abs(float(theory.gram_matrix(x)[0, 1] / kappa(*x) - 1)) <= 1e-12


@pytest.mark.parametrize("d", [1, 2, 20, 784])
@pytest.mark.parametrize("kind", ["printed", "normalised", "direction"])
def test_error_bounds_hold_and_are_what_their_docstrings_say(d, kind):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((6, d))
    # Nearly parallel, nearly antipodal, and duplicated rows are where a weak bound would fail.
    x[1] = x[0] + 1e-7 * rng.standard_normal(d)
    x[2] = -2 * x[0] + 1e-5 * rng.standard_normal(d)
    x[3] = 4 * x[0]
    squares = (x * x).sum()
    if kind == "printed":
        matrix, bound = theory.gram_matrix(x, 1.7), theory.gram_error(x, 1.7)
        error = differences(matrix, x, lambda a, b: mp.mpf(1.7) ** 2 * kappa(a, b))
        stated = (gamma(d) / 2 + 8 * U) * 1.7**2 * squares
    elif kind == "normalised":
        matrix, bound = theory.normalised_gram_matrix(x, 0.3), theory.normalised_gram_error(x, 0.3)
        error = differences(matrix, x, lambda a, b: kappa(a, b) / (d * mp.mpf(0.3)))
        stated = (gamma(d) / 2 + 11 * U) / (0.3 * d) * squares
    else:
        matrix, bound = theory.direction_gram_matrix(x, 0.3), theory.direction_gram_error(x, 0.3)
        error = differences(matrix, x, lambda a, b: direction(a, b) / mp.mpf(0.3))
        stated = (1.2 * gamma(d) + (4 * norm_error(d) + 16) * U) / 0.3 * squares
    assert np.linalg.norm(error, 2) <= bound
    assert bound == pytest.approx(stated, rel=1e-12)
    assert (matrix == matrix.T).all()


@pytest.mark.parametrize("d", [2, 20, 784])
@pytest.mark.parametrize("sign", [1, -1])
def test_direction_kernel_is_accurate_at_every_angle(d, sign):
    rng = np.random.default_rng(11)
    for t in [0.0, *ANGLES, 0.2, 0.25, 1.0]:
        x = pair(d, t, sign, rng)
        nx, ny, _ = angle(*x)
        error = abs(mp.mpf(float(theory.direction_gram_matrix(x)[0, 1])) - direction(*x))
        assert error <= (1.2 * gamma(d) + (4 * norm_error(d) + 16) * U) * nx * ny


def test_polynomials_are_truncated_chebyshev_series_of_the_stated_error():
    mp.mp.dps = 60

    def coefficient(k):
        return mp.sqrt(2) * mp.binomial(2 * k, k) / ((2 * k + 1) * mp.mpf(8) ** k) / (2 * mp.pi)

    def truncation(taylor, degree, limit):
        total = mp.mpf(0)
        for j in range(degree + 1):
            term = mp.fsum(
                taylor(k) * mp.binomial(2 * k, k - j) * mp.mpf(2) ** (1 - 2 * k)
                for k in range(j, 200)
            )
            total += term / 2 if j == 0 else term
        return limit - total

    integral = truncation(lambda k: coefficient(k) / (k + 1.5), 16, 1 / (2 * mp.pi))
    assert 6e-18 < integral < 7e-18
    assert 4e-18 < truncation(coefficient, 18, mp.mpf(1) / 4) < 5e-18
    assert len(_arccosine.MAGNITUDE) == 17
    assert len(_arccosine.ANGLE) == 19


def test_angular_functions_on_a_grid():
    mp.mp.dps = 120
    w = np.concatenate([np.linspace(0, 1, 700), np.geomspace(1e-30, 1, 200)])
    for c_sign in (1.0, -1.0):
        got_h = _arccosine.magnitude(c_sign * (1 - w), w)
        got_v = _arccosine.direction(c_sign * (1 - w), w, 3)
        for i, value in enumerate(w):
            exact = mp.mpf(float(value))
            e = mp.acos(1 - exact)
            tail = (mp.sin(e) - e * mp.cos(e)) / (2 * mp.pi)
            # c itself is rounded to u/2 in the call: u/4 more than the stated 1.6 u.
            h = (1 - exact if c_sign > 0 else 0) / 2 + tail
            assert abs(mp.mpf(float(got_h[i])) - h) <= 1.9 * U
            p0 = (mp.pi - e if c_sign > 0 else e) / (2 * mp.pi)
            assert abs(mp.mpf(float(got_v[i])) - (c_sign * (1 - exact) * p0 - h / 3)) <= 5 * U
            if c_sign < 0 and value > 0:
                assert abs(mp.mpf(float(got_h[i])) / tail - 1) <= 6 * U


@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_printed_kernel_is_the_expectation_of_equation_10(alpha):
    rng = np.random.default_rng(2)
    x, n = rng.standard_normal((5, 4)), 400_000
    phi = np.maximum(alpha * rng.standard_normal((n, 4)) @ x.T, 0)
    products = phi[:, :, None] * phi[:, None, :]
    z = (products.mean(0) - theory.gram_matrix(x, alpha)) / (products.std(0) / np.sqrt(n))
    assert np.abs(z).max() < 5


def test_normalised_and_direction_kernels_are_the_limits_of_the_networks_g_and_v():
    rng = np.random.default_rng(4)
    d, scale, n = 5, 2.5, 200_000
    x = rng.standard_normal((4, d))
    v = rng.standard_normal((n, d))
    norm = np.sqrt(scale) * np.linalg.norm(v, axis=1)  # ‖v‖_S
    phi = np.maximum(v @ x.T, 0) / norm[:, None]
    g = phi[:, :, None] * phi[:, None, :]
    z = (g.mean(0) - theory.normalised_gram_matrix(x, scale)) / (g.std(0) / np.sqrt(n))
    assert np.abs(z).max() < 5
    # V of the paper: E ‖v‖² / (‖v‖_S ‖v‖_S) <x_p^⊥, x_q^⊥> 1_p 1_q.
    unit = v / np.linalg.norm(v, axis=1)[:, None]
    inner = x @ x.T - (unit @ x.T)[:, :, None] * (unit @ x.T)[:, None, :]
    active = v @ x.T >= 0
    terms = inner / scale * active[:, :, None] * active[:, None, :]
    z = (terms.mean(0) - theory.direction_gram_matrix(x, scale)) / (terms.std(0) / np.sqrt(n))
    assert np.abs(z).max() < 5


def test_printed_kernel_is_larger_than_the_true_one_by_alpha_squared_d_scale():
    x = np.random.default_rng(0).standard_normal((6, 7))
    ratio = theory.gram_matrix(x, 3.0) / theory.normalised_gram_matrix(x, 0.2)
    assert ratio == pytest.approx(9 * 7 * 0.2, rel=1e-13)


points = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 9), st.integers(1, 6)),
    elements=st.floats(-8, 8, allow_subnormal=False).filter(lambda v: v == 0 or abs(v) > 1e-6),
)


@settings(deadline=None, max_examples=60)
@given(points)
def test_symmetric_nonnegative_and_positive_semidefinite_within_the_bound(x):
    k = theory.gram_matrix(x)
    assert (k == k.T).all()
    assert (k >= 0).all()
    slack = theory.gram_error(x) + 4 * len(x) * U * np.trace(k)  # eigvalsh's own error
    assert np.linalg.eigvalsh(k)[0] >= -slack


@settings(deadline=None, max_examples=40)
@given(points, st.integers(-200, 200))
def test_scaling_by_a_power_of_two_is_exact(x, power):
    k = theory.gram_matrix(x)
    assert (theory.gram_matrix(np.ldexp(x, power)) == np.ldexp(k, 2 * power)).all()
    assert (theory.gram_matrix(x, 2.0**power) == np.ldexp(k, 2 * power)).all()


@settings(deadline=None, max_examples=40)
@given(points)
def test_a_rotation_by_signs_and_permutation_of_features_moves_entries_within_the_bound(x):
    d = x.shape[1]
    moved = x[:, ::-1] * np.where(np.arange(d) % 2, -1.0, 1.0)
    norms = np.linalg.norm(x, axis=1)
    gap = np.abs(theory.gram_matrix(x) - theory.gram_matrix(moved))
    assert (gap <= 2 * (gamma(d) / 2 + 8 * U) * np.outer(norms, norms)).all()


@pytest.mark.parametrize("size", [1e-120, 1e-60, 1e60, 1e120])
def test_extreme_scales_are_right(size):
    x = np.random.default_rng(0).standard_normal((4, 6))
    ratio = theory.gram_matrix(x * size) / size / size / theory.gram_matrix(x)
    assert ratio == pytest.approx(1, abs=1e-14)


def test_rows_of_very_different_norms_are_right():
    x = np.random.default_rng(0).standard_normal((3, 6)) * [[1e-130], [1.0], [1e140]]
    k = theory.gram_matrix(x)
    for p in range(3):
        for q in range(3):
            assert abs(float(k[p, q] / kappa(x[p], x[q])) - 1) < 1e-13


@pytest.mark.parametrize(
    ("size", "alpha"), [(1e200, 1.0), (1e-200, 1.0), (1.0, 1e170), (1.0, 1e-160)]
)
def test_kernels_beyond_float64_are_refused(size, alpha):
    x = np.ones((2, 3))
    x[1] *= size
    with pytest.raises(ValueError, match=r"row \d of x has norm .* with alpha = .* bring both to"):
        theory.gram_matrix(x, alpha)


def test_zero_rows_give_zero_entries():
    k = theory.gram_matrix([[0.0, 0.0], [3.0, 4.0]])
    assert k.tolist() == [[0, 0], [0, 12.5]]


def test_one_point_and_exact_parallels():
    assert theory.gram_matrix([[3, 4]]).tolist() == [[12.5]]
    k = theory.gram_matrix([[1.0, 0.0], [2.0, 0.0], [-3.0, 0.0]])
    assert k.tolist() == [[0.5, 1, 0], [1, 2, 0], [0, 0, 4.5]]


@pytest.mark.parametrize("sign", [1, -1])
def test_recomputed_pairs_do_not_depend_on_the_rounding_of_the_product(sign):
    # BLAS mostly rounds far better than its bound: disturb the product as much as γ_d may.
    rng = np.random.default_rng(9)
    for t in (0.0, 1e-9, 1e-5, 1e-2):
        x = pair(50, t, sign, rng)
        unit = unit_rows(x).unit
        c = unit @ unit.T
        rough = c + rng.uniform(-1e-13, 1e-13, c.shape)
        w = cosines(unit, unit, rough, Recompute(1e-3, 1e-3))
        e = angle(*x)[2] if sign > 0 else mp.pi - angle(*x)[2]
        assert abs(mp.sqrt(2 * mp.mpf(float(w[0, 1]))) - 2 * mp.sin(e / 2)) <= 20 * U
        assert abs(rough[0, 1] - sign * (1 - w[0, 1])) <= U


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64, np.int8, np.uint8, bool])
def test_other_numeric_input_is_converted_exactly(dtype):
    x = np.random.default_rng(1).integers(0, 2, (5, 4)).astype(dtype)
    assert (theory.gram_matrix(x) == theory.gram_matrix(x.astype(np.float64))).all()


@pytest.mark.parametrize("function", [theory.gram_matrix, theory.gram_error])
@pytest.mark.parametrize("alpha", [0, -1, 0.0, np.nan, np.inf])
def test_alpha_must_be_positive(function, alpha):
    with pytest.raises(ValueError, match="alpha must be positive and finite"):
        function(np.ones((2, 2)), alpha)


@pytest.mark.parametrize(
    "function",
    [
        theory.normalised_gram_matrix,
        theory.normalised_gram_error,
        theory.direction_gram_matrix,
        theory.direction_gram_error,
    ],
)
def test_scale_must_be_positive(function):
    for scale in (0, -2.0, np.nan):
        with pytest.raises(ValueError, match="scale must be positive and finite"):
            function(np.ones((2, 2)), scale)
    with pytest.raises(ValueError, match="range of float64"):
        function(np.ones((2, 2)), 1e-310)


CLIENT = ["b", "a", "b", "a", "c", "b"]


def test_client_blocks_are_the_masked_matrix_within_the_bounds():
    x = np.random.default_rng(8).standard_normal((6, 40))
    for blocks, full in (
        (theory.client_gram_matrix(x, CLIENT, 2.0), theory.gram_matrix(x, 2.0)),
        (
            theory.normalised_client_gram_matrix(x, CLIENT, 2.0),
            theory.normalised_gram_matrix(x, 2.0),
        ),
    ):
        assert blocks.names == ("b", "a", "c")
        assert [rows.tolist() for rows in blocks.rows] == [[0, 2, 5], [1, 3], [4]]
        mask = np.array(CLIENT)[:, None] == np.array(CLIENT)
        gap = np.linalg.norm(blocks.dense() - np.where(mask, full, 0), 2)
        assert gap <= 2 * max(blocks.errors)
        assert blocks.trace() == pytest.approx(np.trace(full), rel=1e-14)
        assert blocks.shape == (6, 6)


def test_client_errors_are_those_of_each_clients_points():
    x = np.random.default_rng(8).standard_normal((6, 40))
    blocks = theory.client_gram_matrix(x, CLIENT, 2.0)
    for rows, error in zip(blocks.rows, blocks.errors, strict=True):
        assert error == theory.gram_error(x[rows], 2.0)


def test_diagonal_blocks_are_bitwise_those_of_the_dense_matrix():
    k = theory.gram_matrix(np.random.default_rng(8).standard_normal((6, 40)))
    mask = np.array(CLIENT)[:, None] == np.array(CLIENT)
    assert (theory.diagonal_blocks(k, CLIENT).dense() == np.where(mask, k, 0)).all()


def test_one_client_and_one_sample_per_client():
    x = np.random.default_rng(8).standard_normal((4, 3))
    assert theory.client_gram_matrix(x, [0] * 4).blocks[0] == pytest.approx(theory.gram_matrix(x))
    single = theory.client_gram_matrix(x, range(4))
    assert single.dense() == pytest.approx(np.diag((x * x).sum(1) / 2))


def test_client_matrix_never_allocates_the_full_one():
    x = np.random.default_rng(0).standard_normal((8000, 4))
    tracemalloc.start()
    theory.client_gram_matrix(x, np.repeat(np.arange(80), 100))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8000**2 * 8 / 20  # the blocks themselves are an 80th


def test_block_diagonal_refuses_inconsistent_parts():
    eye, rows = np.eye(2), np.array([0, 1])
    with pytest.raises(ValueError, match="one length"):
        theory.BlockDiagonal((), (), ())
    with pytest.raises(ValueError, match="make it square"):
        theory.BlockDiagonal(("a",), (np.ones((2, 3)),), (rows,))
    with pytest.raises(ValueError, match="exactly once"):
        theory.BlockDiagonal(("a", "b"), (eye, eye), (rows, rows))
    with pytest.raises(ValueError, match="errors"):
        theory.BlockDiagonal(("a",), (eye,), (rows,), (-1.0,))
    with pytest.raises(ValueError, match="square"):
        theory.diagonal_blocks(np.ones((2, 3)), [0, 0])


def test_centre_subtracts_each_clients_mean():
    rng = np.random.default_rng(0)
    x, client = rng.standard_normal((9, 3)) + 100, [0, 1, 2] * 3
    centred = theory.centre(x, client)
    for name in range(3):
        assert np.abs(centred[name::3].mean(0)).max() < 1e-14 * 100
    given = theory.centre(x, client, {name: np.full(3, 100.0 * name) for name in range(3)})
    assert given == pytest.approx(x - 100.0 * np.array(client)[:, None])


def test_centre_refuses_zero_rows_and_bad_means():
    with pytest.raises(ValueError, match="row 2 of client 'b' equals its client's mean"):
        theory.centre([[1.0, 2.0], [3.0, 1.0], [5.0, 5.0]], ["a", "a", "b"])
    # 0.1 + 0.1 + 0.1 is not 3 * 0.1: zero only up to rounding, and refused all the same.
    with pytest.raises(ValueError, match="3 in all"):
        theory.centre([[0.1, 0.7]] * 3, [0, 0, 0])
    with pytest.raises(ValueError, match="no entry for client 1"):
        theory.centre([[1.0], [2.0]], [0, 1], {0: [0.0]})
    with pytest.raises(ValueError, match="has 2 entries"):
        theory.centre([[1.0]], [0], {0: [0.0, 1.0]})
    with pytest.raises(ValueError, match="drop it"):
        theory.centre([[1.0]], [0], {0: [1.0]})
