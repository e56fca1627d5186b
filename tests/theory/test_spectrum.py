"""Enclosures against exact rational arithmetic, 50 digits and closed forms."""

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import linalg

import theory
from theory import _certify, _extreme, _symmetric

U = 2.0**-53


def negative_pivots(matrix, shift):
    """Eigenvalues below the shift, counted exactly (Sylvester); None at a zero pivot."""
    n = len(matrix)
    a = [
        [Fraction(float(matrix[i, j])) - (shift if i == j else 0) for j in range(n)]
        for i in range(n)
    ]
    count = 0
    for k in range(n):
        if a[k][k] == 0:
            return None
        count += a[k][k] < 0
        for i in range(k + 1, n):
            f = a[i][k] / a[k][k]
            for j in range(k + 1, n):
                a[i][j] -= f * a[k][j]
    return count


def assert_encloses(matrix, smallest, largest):
    """Exact: no eigenvalue below `lower`, one not above `upper`, and likewise at the top."""
    n = len(matrix)
    nudge = Fraction(1, 2**1200)  # steps off the pivots that vanish exactly at an eigenvalue
    assert negative_pivots(matrix, Fraction(smallest.lower) - nudge) == 0
    assert negative_pivots(matrix, Fraction(smallest.upper) + nudge) >= 1
    assert negative_pivots(matrix, Fraction(largest.upper) + nudge) == n
    assert negative_pivots(matrix, Fraction(largest.lower) - nudge) <= n - 1


def tight(k, enclosure):
    n = len(k)
    value = max(enclosure.upper, 0.0)
    return enclosure.width <= 1e-6 * value + 4 * (n + 3) * U * np.trace(k)


def gram(n, d, seed=0):
    return theory.gram_matrix(np.random.default_rng(seed).standard_normal((n, d)))


def graded(n):
    d = 10.0 ** -np.arange(n)
    return gram(n, n) * np.outer(d, d)


def wilkinson(n):
    return np.diag(np.abs(np.arange(n) - n // 2) + 0.0) + np.eye(n, k=1) + np.eye(n, k=-1)


def duplicated(n):
    x = np.random.default_rng(1).standard_normal((n, 3))
    x[n - 1] = 7 * x[0]
    return theory.gram_matrix(x)


ADVERSARIAL = {
    "hilbert 6": linalg.hilbert(6),
    "hilbert 9": linalg.hilbert(9),
    "hilbert 13": linalg.hilbert(13),
    "graded": graded(9),
    "graded reversed": graded(9)[::-1, ::-1],
    "near duplicate": theory.gram_matrix([[1, 0], [1, 1e-7], [0.3, 2]]),
    "duplicate": duplicated(7),
    "ones": np.ones((6, 6)),
    "identity": np.eye(5),
    "diagonal": np.diag([3.0, 1e-20, 5e10]),
    "zero row": np.diag([3.0, 0.0, 5.0]),
    "wilkinson": wilkinson(9),
    "indefinite": np.array([[0.0, 1.0], [1.0, 0.0]]),
    "negative": -gram(6, 4),
    "tiny off-diagonal": np.array([[1.0, 1e-300], [1e-300, 1e-300]]),
    "rounding-size eigenvalue": np.array([[1.0, 1 - 2 * U], [1 - 2 * U, 1.0]]),
    "two by two": np.array([[2.0, 1.0], [1.0, 2.0]]),
}


@pytest.mark.parametrize("name", ADVERSARIAL)
@pytest.mark.parametrize("power", [0, 498, -498, 900, -900])
def test_adversarial_matrices_at_every_scale(name, power):
    k = np.ldexp(ADVERSARIAL[name], power)
    if name == "tiny off-diagonal" and power == -900:
        k = np.diag(np.diag(k))  # 1e-300 underflows here: to zero, consistently
    low, high = theory.smallest_eigenvalue(k), theory.largest_eigenvalue(k)
    assert_encloses(k, low, high)
    if name not in ("indefinite", "negative", "wilkinson"):
        assert tight(np.ldexp(k, -power), low.scaled(2.0**-power))


symmetric = (
    st.integers(1, 7)
    .flatmap(
        lambda n: hnp.arrays(
            np.float64, (n, n), elements=st.floats(-100, 100, allow_subnormal=False, width=32)
        )
    )
    .map(lambda a: np.tril(a) + np.tril(a, -1).T)
)


@settings(deadline=None, max_examples=150)
@given(symmetric)
def test_any_symmetric_matrix_is_enclosed(k):
    assert_encloses(k, theory.smallest_eigenvalue(k), theory.largest_eigenvalue(k))


integers = st.integers(2, 7).flatmap(
    lambda n: hnp.arrays(
        np.int64, st.tuples(st.integers(1, n - 1), st.just(n)), elements=st.integers(-9, 9)
    )
)


@settings(deadline=None, max_examples=100)
@given(integers)
def test_exactly_singular_matrices_are_recognised(b):
    k = b.T @ b
    found = theory.smallest_eigenvalue(k)
    assert found.lower <= 0 <= found.upper
    assert found.cause
    assert found.width <= 4 * (len(k) + 3) * U * np.trace(k) + 1e-300


@settings(deadline=None, max_examples=60)
@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(2, 8), st.integers(1, 4)),
        elements=st.floats(-4, 4, allow_subnormal=False).filter(lambda v: v == 0 or abs(v) > 1e-3),
    ),
    st.integers(0, 255),
)
def test_interlacing_is_never_contradicted(x, mask):
    k = theory.gram_matrix(x)
    client = [(mask >> row) & 1 for row in range(len(x))]
    full, masked = (
        theory.smallest_eigenvalue(k),
        theory.smallest_eigenvalue(theory.diagonal_blocks(k, client)),
    )
    assert masked.upper >= full.lower
    top, masked_top = (
        theory.largest_eigenvalue(k),
        theory.largest_eigenvalue(theory.diagonal_blocks(k, client)),
    )
    assert masked_top.lower <= top.upper


@pytest.mark.parametrize("seed", range(3))
def test_small_gram_matrices_against_fifty_digits(seed):
    mp.mp.dps = 50
    k = gram(9, 4, seed)
    values = mp.eigsy(mp.matrix(k.tolist()), eigvals_only=True)
    low, high = theory.smallest_eigenvalue(k), theory.largest_eigenvalue(k)
    assert mp.mpf(low.lower) <= values[0] <= mp.mpf(low.upper)
    assert mp.mpf(high.lower) <= values[8] <= mp.mpf(high.upper)
    assert tight(k, low)
    assert high.width <= 1e-12 * high.upper


def toeplitz(n, diagonal):
    return diagonal * np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1)


@pytest.mark.parametrize("n", [40, 300, 700])
@pytest.mark.parametrize("diagonal", [2, 3, 0, -1])
def test_second_differences_have_a_closed_form_at_every_size(n, diagonal):
    # Small gaps at both ends, definite and indefinite; n > 256 takes the iterative path.
    mp.mp.dps = 40
    k = toeplitz(n, diagonal)
    exact = diagonal - 2 * mp.cos(mp.pi / (n + 1)), diagonal + 2 * mp.cos(mp.pi / (n + 1))
    low, high = theory.smallest_eigenvalue(k), theory.largest_eigenvalue(k)
    assert mp.mpf(low.lower) <= exact[0] <= mp.mpf(low.upper)
    assert mp.mpf(high.lower) <= exact[1] <= mp.mpf(high.upper)
    if diagonal >= 2:
        assert tight(k, low)
    assert (
        high.width <= 1e-4 * 4
    )  # the Krylov path may stop at its last step: a close pair at the top


@pytest.mark.parametrize("n", [300, 500])
def test_singular_matrices_on_the_iterative_path(n):
    path = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    path[0, 0] = path[-1, -1] = 1  # Laplacian of a path: λ_min = 0
    x = np.random.default_rng(0).standard_normal((n, 30))
    x[n - 5] = 2.5 * x[17]
    y = np.random.default_rng(1).standard_normal((n // 2, 5))
    for k, cause in (
        (path, "null vector"),
        (np.ones((n, n)), "duplicates"),
        (theory.gram_matrix(x), f"rows 17 and {n - 5} are duplicates"),
        (theory.gram_matrix(np.r_[y, -y]), "null vector"),
    ):
        found = theory.smallest_eigenvalue(k)
        assert found.lower <= 0
        assert found.upper >= -n * U * np.trace(k)
        assert found.width <= 4 * (n + 3) * U * np.trace(k)
        assert cause in found.cause


@pytest.mark.parametrize(("n", "d"), [(60, 10), (257, 20), (600, 20), (600, 300)])
@pytest.mark.parametrize("power", [0, -300, 300])
def test_gram_matrices_are_enclosed_tightly_on_both_paths(n, d, power):
    k = gram(n, d)
    exact = np.linalg.eigvalsh(k)
    low = theory.smallest_eigenvalue(np.ldexp(k, power))
    high = theory.largest_eigenvalue(np.ldexp(k, power))
    low, high = low.scaled(2.0**-power), high.scaled(2.0**-power)
    noise = 4 * n * U * exact[-1]  # eigvalsh's own error
    assert low.lower - noise <= exact[0] <= low.upper + noise
    assert high.lower - noise <= exact[-1] <= high.upper + noise
    assert tight(k, low)
    assert high.width <= 1e-7 * high.upper


@pytest.mark.slow
@pytest.mark.parametrize("d", [20, 784])
def test_four_thousand_points(d):
    k = gram(4000, d)
    low = theory.smallest_eigenvalue(k)
    exact = linalg.eigvalsh(k, subset_by_index=[0, 0])[0]
    assert low.lower - 1e-9 <= exact <= low.upper + 1e-9
    assert tight(k, low)


@pytest.mark.slow
def test_fifty_clients_of_a_thousand_samples():
    x = np.random.default_rng(0).standard_normal((50_000, 12))
    k = theory.client_gram_matrix(x, np.repeat(np.arange(50), 1000))
    found = theory.smallest_eigenvalue(k, error=k.errors)
    assert found.lower > 0
    own = theory.smallest_eigenvalue(k.blocks[found.block], error=k.errors[found.block])
    assert (own.lower, own.upper) == (found.lower, found.upper)


def test_a_certificate_never_exceeds_the_eigenvalue_even_where_cholesky_is_lucky():
    # λ_min = 0 exactly; Cholesky of K - τI may succeed for τ > 0 of rounding size, and does here.
    lucky = 0
    for seed in range(30):
        b = np.random.default_rng(seed).integers(-5, 6, (12, 13)).astype(float)
        k = np.asfortranarray(b.T @ b)
        for step in range(1, 9):
            shift = float(step * U * np.trace(k) / 64)
            bound = _certify.shifted_bound(k, shift, 1)
            if bound is not None:
                lucky += 1
                assert bound <= 0
    assert lucky > 0


def exact_radius(diagonal):
    """Σ γ_{i+3}/(1 − γ_{i+3}) a'_ii in rational arithmetic, i from 1."""
    total, unit = Fraction(0), Fraction(1, 2**53)
    for i, entry in enumerate(diagonal.tolist(), start=1):
        constant = (i + 3) * unit / (1 - (i + 3) * unit)
        total += constant / (1 - constant) * Fraction(entry)
    return total


@pytest.mark.parametrize("n", [1, 2, 7, 60, 400])
def test_the_radius_of_a_factorisation_is_rumps_sum(n):
    rng = np.random.default_rng(n)
    for diagonal in (np.ones(n), rng.uniform(0, 1, n), 10.0 ** rng.uniform(-30, 30, n)):
        exact = exact_radius(diagonal)
        # Never below, and above by no more than the rounding of the sum.
        assert exact <= _certify.cholesky_radius(diagonal) <= exact * (1 + Fraction(1, 10**14))


@pytest.mark.parametrize("n", [1, 2, 7, 60])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_certificate_charges_the_factorisation_and_the_rounding_of_the_shift(n, sign):
    rng = np.random.default_rng(n)
    root = rng.standard_normal((n, 2 * n))
    k = np.asfortranarray(root @ root.T)
    values = np.linalg.eigvalsh(k)
    shift = float(values[0] - 0.01) if sign > 0 else float(values[-1] + 0.01)
    bound = _certify.shifted_bound(k, shift, sign)
    diagonal = sign * (k.diagonal() - shift)
    due = exact_radius(diagonal) + Fraction(float(diagonal.max())) / 2**53
    charged = sign * (Fraction(shift) - bound)
    assert due <= charged <= due * (1 + Fraction(1, 10**14))


def test_the_rounding_of_the_shift_alone_can_break_a_certificate():
    # n = 1, a - τ rounded up to the diagonal: only the charge of it keeps the bound below a.
    for a, shift in ((1.0, -(2.0**53) - 2.0), (3.0, -(2.0**54) - 4.0)):
        k = np.array([[a]], order="F")
        assert _certify.shifted_bound(k, shift, 1) <= a


@settings(deadline=None, max_examples=60)
@given(symmetric, st.integers(0, 10**6))
def test_rayleigh_bounds_hold_the_exact_quotient(k, seed):
    v = np.random.default_rng(seed).standard_normal(len(k))
    exact = [Fraction(float(a)) for a in v]
    top = sum(
        exact[i] * exact[j] * Fraction(float(k[i, j])) for i in range(len(k)) for j in range(len(k))
    )
    quotient = top / sum(a * a for a in exact)
    low, high = _certify.rayleigh(np.asfortranarray(k), v, _certify.frobenius(k))
    assert low <= quotient <= high


def test_a_poor_vector_widens_the_enclosure_but_keeps_it_valid(monkeypatch):
    # The certificate must not trust the eigensolver.
    k = gram(30, 10)
    exact = np.linalg.eigvalsh(k)
    for vector in (np.linalg.eigh(k)[1][:, 4], np.ones(30) / np.sqrt(30)):
        wrong = _extreme.Approximation(vector, 0.0, 0.0)
        monkeypatch.setattr(_extreme, "smallest", lambda _, wrong=wrong: wrong)
        found = theory.smallest_eigenvalue(k)
        assert found.contains(exact[0])
        assert found.lower > -np.linalg.norm(k)


def test_error_widens_both_sides():
    k = gram(8, 5)
    plain, wide = theory.smallest_eigenvalue(k), theory.smallest_eigenvalue(k, error=0.125)
    assert wide.lower == pytest.approx(plain.lower - 0.125, rel=1e-15)
    assert wide.upper == pytest.approx(plain.upper + 0.125, rel=1e-15)
    assert theory.largest_eigenvalue(k, 0.125).upper == pytest.approx(
        theory.largest_eigenvalue(k).upper + 0.125, rel=1e-15
    )
    moved = k + 0.125 * np.eye(8)
    assert wide.contains(np.linalg.eigvalsh(moved)[0] - 1e-9)


def test_one_by_one_is_exact():
    assert theory.smallest_eigenvalue([[3]]).width == 0
    assert theory.smallest_eigenvalue([[3.5]]).contains(3.5)
    assert theory.smallest_eigenvalue([[-2.0]]).cause.startswith("the matrix is indefinite")
    assert theory.smallest_eigenvalue([[0.0]]).cause == "row 0 is zero."


def test_other_numeric_types_are_exact():
    k = np.array([[2, 1], [1, 2]])
    expected = theory.smallest_eigenvalue(k.astype(float))
    for dtype in (np.int32, np.float32, np.float16):
        assert theory.smallest_eigenvalue(k.astype(dtype)) == expected
    assert expected.contains(1.0)
    assert theory.smallest_eigenvalue(k.astype(float)[:, ::-1][:, ::-1]) == expected


@pytest.mark.parametrize("function", [theory.smallest_eigenvalue, theory.largest_eigenvalue])
def test_bad_matrices_are_refused(function):
    with pytest.raises(ValueError, match="must be square"):
        function(np.ones((2, 3)))
    with pytest.raises(ValueError, match="empty"):
        function(np.ones((0, 0)))
    with pytest.raises(ValueError, match="two dimensions"):
        function(np.ones(3))
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="NaN or infinite entries, first in row 1"):
            function([[1.0, 0.0], [0.0, bad]])
    with pytest.raises(TypeError, match="real numbers"):
        function(np.eye(2) * 1j)
    with pytest.raises(TypeError, match="real numbers"):
        function([["a", "b"], ["c", "d"]])
    with pytest.raises(ValueError, match=r"entries \(0, 1\) and \(1, 0\) differ by 0.5; pass"):
        function([[1.0, 0.5], [0.0, 1.0]])
    with pytest.raises(ValueError, match="error must be finite and not negative"):
        function(np.eye(2), -1.0)
    with pytest.raises(TypeError, match="error must be one real number"):
        function(np.eye(2), "small")
    with pytest.raises(ValueError, match="beyond the range"):
        sign = 1 if function is theory.largest_eigenvalue else -1
        function(sign * np.full((4, 4), 1.7e308))


@pytest.mark.parametrize("n", [5, 300])
def test_rounding_asymmetry_is_charged_to_the_symmetric_part(n):
    k = gram(n, n) / n
    k[1, 3] *= 1 + 2e-13
    k[n - 1, 0] *= 1 - 3e-13
    found = theory.smallest_eigenvalue(k)
    assert found.contains(np.linalg.eigvalsh((k + k.T) / 2)[0])
    allowed = 1e-6 * found.upper + 4 * (n + 3) * U * np.trace(k) + 2e-12 * k.max()
    assert found.width <= allowed


@pytest.mark.parametrize("power", [0, 200])
def test_the_symmetric_part_is_enclosed_whichever_triangle_is_larger(power):
    # At n = 2 rounding is far smaller than the asymmetry, so that its charge shows.
    for a, b in ((0.5, 0.5 + 4e-13), (0.5 + 4e-13, 0.5)):
        k = np.ldexp(np.array([[1.0, a], [b, 1.0]]), power)
        exact = (1 - (Fraction(a) + Fraction(b)) / 2) * 2**power
        found = theory.smallest_eigenvalue(k)
        assert Fraction(found.lower) <= exact <= Fraction(found.upper)
        assert found.width <= 1e-12 * 2.0**power


@pytest.mark.parametrize("n", [2, 300])
@pytest.mark.parametrize("size", [1e-13, 1e-160, 1e-170, 1e-290, 5e-324])
def test_asymmetry_of_any_size_is_charged(n, size):
    k = np.eye(n)
    k[n - 1, 0] = size
    defect = _symmetric.as_symmetric(k, "K").defect
    # ‖K − Kᵀ‖_F/2 = size/√2, never below the half of it that the 2-norm needs.
    assert Fraction(size) / 2 <= defect <= Fraction(size) * 2
    many = np.eye(n) + np.triu(np.full((n, n), size), 1)
    exact = np.sqrt(n * (n - 1) / 2) * (size / 1e-323 if size < 1e-300 else 1.0)
    unit = 1e-323 if size < 1e-300 else size
    assert float(_symmetric.as_symmetric(many, "K").defect) / unit >= exact / np.sqrt(2) * 0.49


def test_blocks_take_the_minimum_and_name_it():
    x = np.random.default_rng(3).standard_normal((40, 6))
    client = np.array(["u", "v", "w", "w"] * 10)
    k = theory.client_gram_matrix(x, client)
    found = theory.smallest_eigenvalue(k, error=k.errors)
    dense = np.linalg.eigvalsh(k.dense())
    assert found.contains(dense[0])
    assert found.block == "w"
    assert set(found.rows) <= set(np.flatnonzero(client == "w").tolist())
    assert theory.largest_eigenvalue(k, error=max(k.errors)).contains(dense[-1])
    assert theory.largest_eigenvalue(k).block == "w"
    with pytest.raises(ValueError, match="2 entries, K has 3 blocks"):
        theory.smallest_eigenvalue(k, error=[0.0, 0.0])
    with pytest.raises(ValueError, match="not negative"):
        theory.smallest_eigenvalue(k, error=[0.0, 0.0, -1.0])


def test_one_client_and_one_sample_per_client():
    x = np.random.default_rng(3).standard_normal((6, 4))
    k = theory.gram_matrix(x)
    one = theory.smallest_eigenvalue(theory.diagonal_blocks(k, [0] * 6))
    assert (one.lower, one.upper) == (lambda e: (e.lower, e.upper))(theory.smallest_eigenvalue(k))
    each = theory.smallest_eigenvalue(theory.diagonal_blocks(k, range(6)))
    assert each.lower == each.upper == np.diag(k).min()
    assert each.rows == (int(np.diag(k).argmin()),)


def test_causes_in_a_block_carry_the_original_row_numbers():
    x = np.random.default_rng(3).standard_normal((10, 4))
    x[8] = 2 * x[2]
    found = theory.smallest_eigenvalue(theory.client_gram_matrix(x, [0, 1] * 5))
    assert found.block == 0
    assert found.rows == (2, 8)
    assert found.cause == "rows 2 and 8 are duplicates: positively parallel up to rounding."


def test_causes_of_a_singular_matrix_are_told_apart():
    rng = np.random.default_rng(5)
    x = rng.standard_normal((12, 4))

    def cause(points):
        found = theory.smallest_eigenvalue(theory.gram_matrix(points))
        return found.cause, found.rows

    assert cause(x)[0] is None
    zero = x.copy()
    zero[[3, 7]] = 0
    assert cause(zero) == ("rows 3 and 7 are zero.", (3, 7))
    small = x.copy()
    small[4] *= 1e-9
    assert "row 4 is below the rounding" in cause(small)[0]
    close = x.copy()
    close[9] = 3 * close[1]
    assert cause(close) == (
        "rows 1 and 9 are duplicates: positively parallel up to rounding.",
        (1, 9),
    )
    opposite = x.copy()
    opposite[9] = -3 * opposite[1]
    assert cause(opposite)[0] is None
    many = np.r_[x[:5], -x[:5]]
    assert "antipodal pairs" in cause(many)[0]
    assert set(cause(many)[1]) <= set(range(10))


def test_an_error_larger_than_the_eigenvalue_is_named_as_the_cause():
    found = theory.smallest_eigenvalue(gram(6, 4), error=100.0)
    assert found.lower < 0
    assert "error bound exceeds" in found.cause


def test_enclosure_invariants():
    e = theory.Enclosure(1.0, 3.0, "given")
    assert (e.width, e.midpoint, e.contains(3.0), e.contains(3.1)) == (2, 2, True, False)
    assert e.widened(0.0) is e
    assert (e.widened(0.5).lower, e.widened(0.5).upper) == (0.5, 3.5)
    third = theory.Enclosure(1.0, 1.0, "given").scaled(1 / 3).scaled(3)
    assert third.contains(1.0)
    thin = theory.Enclosure(1.0, 1.0, "given").widened(1e-30)
    assert thin.lower < 1 < thin.upper
    for lower, upper in ((2.0, 1.0), (np.nan, 1.0), (0.0, np.inf)):
        with pytest.raises(ValueError, match="enclosure"):
            theory.Enclosure(lower, upper, "given")
    with pytest.raises(ValueError, match="factor"):
        e.scaled(-1.0)
    with pytest.raises(ValueError, match="error"):
        e.widened(-1.0)


def test_diagnose_finds_nothing_among_generic_points():
    assert theory.diagnose(np.random.default_rng(0).standard_normal((300, 3))) is None
    assert theory.diagnose([[1.0, 2.0]]) is None


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 10**6),
    st.floats(1e-30, 1e30),
    st.sampled_from([1, -1]),
    st.integers(1, 300),
)
def test_diagnose_finds_a_rescaled_row(seed, factor, sign, d):
    x = np.random.default_rng(seed).standard_normal((5, d))
    assume(d > 1)
    x[3] = sign * factor * x[1]
    found = theory.diagnose(x)
    assert found.rows == (1, 3)
    assert found.singular == (sign > 0)
    assert found.duplicates == (((1, 3),) if sign > 0 else ())
    assert found.antipodal == (((1, 3),) if sign < 0 else ())
    says = "duplicates" if sign > 0 else "does not make the Gram matrix singular"
    assert says in found.cause


def test_diagnose_counts_dependent_antipodal_directions_not_pairs():
    rng = np.random.default_rng(2)
    general = rng.standard_normal((3, 5))
    plane = rng.standard_normal((3, 2)) @ rng.standard_normal((2, 5))
    for y, singular in ((general, False), (plane, True)):
        x = np.r_[y, -2 * y]
        found = theory.diagnose(x)
        assert found.singular == singular
        assert found.antipodal == ((0, 3), (1, 4), (2, 5))
        assert found.rank == (2 if singular else 3)
        low = theory.smallest_eigenvalue(theory.gram_matrix(x), theory.gram_error(x))
        assert (low.lower > 0) != singular
    many = theory.diagnose(np.r_[plane[:, :2], -plane[:, :2]])
    assert "3 antipodal pairs" in many.cause
    assert "span only 2 dimensions" in many.cause


def test_diagnose_says_everything_it_finds():
    x = np.array([[1.0, 0], [0, 0], [2, 0], [0, 1], [0, -4], [-3, 0], [1, 1]])
    found = theory.diagnose(x)
    assert found.zero == (1,)
    assert found.duplicates == ((0, 2),)
    assert found.antipodal == ((0, 5), (3, 4))
    assert found.singular
    assert found.rows == (0, 1, 2)
    assert found.cause.startswith("Row 1 is zero. Rows 0 and 2 are positively parallel")
    assert "does not make" in found.cause
    line = theory.diagnose([[1.0], [-2.0], [3.0]])
    assert (line.singular, line.duplicates, line.antipodal) == (True, ((0, 2),), ((0, 1),))


@pytest.mark.parametrize("d", [2, 50, 784])
def test_diagnose_tells_close_from_parallel(d):
    rng = np.random.default_rng(d)
    x = rng.standard_normal((4, d))
    x[2] = 5 * x[0] + 1e-12 * rng.standard_normal(d)
    assert theory.diagnose(x) is None or d > 700  # 32 u is an angle of 4e-15
    assert theory.diagnose(x, tolerance=1e-9).duplicates == ((0, 2),)
    assert theory.diagnose(x, tolerance=1e-14) is None
    with pytest.raises(ValueError, match="tolerance must be positive"):
        theory.diagnose(x, 0.0)


def test_diagnose_handles_many_duplicates_and_extreme_scales():
    rng = np.random.default_rng(0)
    x = np.repeat(rng.standard_normal((2, 6)), 1500, axis=0) * 10.0 ** rng.uniform(
        -250, 250, (3000, 1)
    )
    found = theory.diagnose(x)
    assert [len(group) for group in found.duplicates] == [1500, 1500]
    assert "and 1496 more" in found.cause


@settings(deadline=None, max_examples=40)
@given(
    hnp.arrays(
        np.int64, st.tuples(st.integers(2, 7), st.integers(1, 3)), elements=st.integers(-2, 2)
    )
)
def test_diagnosis_and_spectrum_agree_on_singularity(x):
    # Small integers make every kind of degeneracy, alone and mixed; the criterion is exact.
    found = theory.diagnose(x)
    low = theory.smallest_eigenvalue(theory.gram_matrix(x), theory.gram_error(x))
    assert (low.lower <= 0) == (found is not None and found.singular)
