"""Factorisations in the matrix's own memory: same enclosures, bit by bit the same matrix after."""

import mmap
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import theory
from theory import _certify, _in_place, _strategy
from theory._progress import Meter

U = 2.0**-53
BOTH = (theory.smallest_eigenvalue, theory.largest_eigenvalue)


def gram(n, d, seed=0):
    return theory.gram_matrix(np.random.default_rng(seed).standard_normal((n, d)))


def bits(k):
    return np.array(k).view(np.int64)


def allowed(k, value):
    """What DESIGN.md allows an enclosure of an eigenvalue to measure."""
    return 1e-6 * abs(value) + 4 * (len(k) + 3) * U * np.trace(np.abs(k))


@pytest.fixture(params=[3, 7, 64])
def panel(request, monkeypatch):
    """Makes panels and tiles small, so that small matrices have many and ragged ones."""
    original = _in_place.InPlace.__init__

    def narrow(self, matrix, meter):
        original(self, matrix, meter)
        self._panel = request.param

    monkeypatch.setattr(_in_place.InPlace, "__init__", narrow)
    monkeypatch.setattr(_in_place, "_TILE", request.param + 2)


KINDS = {
    "gram": gram(40, 6),
    "singular": gram(40, 6)[np.ix_([0, 0, *range(2, 40)], [0, 0, *range(2, 40)])],
    "zero row": gram(40, 6) * np.outer(np.arange(40) != 7, np.arange(40) != 7),
    "indefinite": gram(40, 6) - 3 * np.eye(40),
    "negative": -gram(40, 6),
    "second differences": 2 * np.eye(65) - np.eye(65, k=1) - np.eye(65, k=-1),
    "signs of zero": np.diag(np.arange(1.0, 12.0)) * np.where(np.eye(11) > 0, 1.0, -1.0),
    "ones": np.ones((33, 33)),
    "two": np.array([[2.0, 1.0], [1.0, 2.0]]),
    "off-diagonal": np.array([[0.0, 1.0], [1.0, 0.0]]),
    "graded": gram(12, 12) * np.outer(10.0 ** -np.arange(12), 10.0 ** -np.arange(12)),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_in_place_encloses_what_copies_do_and_gives_the_matrix_back(name, order, panel):
    k = np.array(KINDS[name], order=order)
    before, values = bits(k), np.linalg.eigvalsh(k)
    noise = 20 * len(k) * U * np.abs(values).max()  # eigvalsh's own error
    for function, exact in zip(BOTH, (values[0], values[-1]), strict=True):
        there, here = function(k, in_place=False), function(k, in_place=True)
        assert np.array_equal(bits(k), before)
        assert max(there.lower, here.lower) <= min(there.upper, here.upper)
        assert here.lower - noise <= exact <= here.upper + noise
        assert here.cause == there.cause
        assert (here.method, there.method) == (_in_place.METHOD, _strategy.Copies.method)
        if name not in ("indefinite", "negative") or function is theory.largest_eigenvalue:
            assert here.width <= max(allowed(k, exact), 2 * there.width)


def test_a_matrix_singular_up_to_rounding_is_not_taken_for_indefinite(monkeypatch):
    # Factors at 0 fail for some of these; a shift by rounding then gives one.
    failed = []
    monkeypatch.setattr(_in_place.InPlace, "_indefinite", lambda *_: pytest.fail("indefinite"))
    factor = _in_place.InPlace._factor

    def noted(self, shift, sign):
        done = factor(self, shift, sign)
        failed.append(shift == 0.0 and not done)
        return done

    monkeypatch.setattr(_in_place.InPlace, "_factor", noted)
    for seed in range(10):
        b = np.random.default_rng(seed).standard_normal((20, 40))
        k = b.T @ b
        k = np.tril(k) + np.tril(k, -1).T
        found = theory.smallest_eigenvalue(k, in_place=True)
        assert found.lower <= 1e-12 and found.width <= allowed(k, 0.0)
    assert any(failed)


def test_rows_beyond_32_bit_indices_never_reach_lapack_whole(monkeypatch):
    k = gram(40, 6)
    monkeypatch.setattr(_strategy, "_INDEXED", 39)
    k.flags.writeable = False
    assert theory.smallest_eigenvalue(k, in_place=False).method == _in_place.METHOD


@pytest.mark.parametrize(("n", "d"), [(300, 20), (700, 400), (513, 3)])
def test_larger_gram_matrices_are_enclosed_tightly(n, d):
    k = gram(n, d)
    before, values = bits(k), np.linalg.eigvalsh(k)
    low, high = (function(k, in_place=True) for function in BOTH)
    noise = 4 * n * U * values[-1]
    assert low.lower - noise <= values[0] <= low.upper + noise
    assert high.lower - noise <= values[-1] <= high.upper + noise
    assert low.width <= allowed(k, values[0]) and high.width <= 1e-7 * high.upper
    assert np.array_equal(bits(k), before)


symmetric = (
    st.integers(2, 9)
    .flatmap(
        lambda n: hnp.arrays(
            np.float64, (n, n), elements=st.floats(-100, 100, allow_subnormal=False, width=32)
        )
    )
    .map(lambda a: np.tril(a) + np.tril(a, -1).T)
)


@settings(deadline=None, max_examples=100)
@given(symmetric, st.sampled_from(["C", "F"]))
def test_any_symmetric_matrix_survives_and_is_enclosed(k, order):
    k = np.array(np.where(np.eye(len(k)) > 0, k, np.triu(k, 1) + np.triu(k, 1).T), order=order)
    before, values = bits(k), np.linalg.eigvalsh(k)
    noise = 20 * len(k) * U * np.abs(values).max()
    if np.abs(k).max() > 2.0**-59 or not k.any():  # smaller ones are rescaled, in a copy
        low = theory.smallest_eigenvalue(k, in_place=True)
        high = theory.largest_eigenvalue(k, in_place=True)
        assert low.lower - noise <= values[0] <= low.upper + noise
        assert high.lower - noise <= values[-1] <= high.upper + noise
    assert np.array_equal(bits(k), before)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("n", [2, 5, 31, 128, 129, 300])
def test_a_factor_in_place_is_lapacks_and_is_charged_alike(n, sign):
    root = np.random.default_rng(n).standard_normal((n, 2 * n))
    k = np.asfortranarray(np.tril(root @ root.T) + np.tril(root @ root.T, -1).T)
    values = np.linalg.eigvalsh(k)
    shift = float(values[0] - 0.01) if sign > 0 else float(values[-1] + 0.01)
    expected = np.linalg.cholesky(sign * (k - shift * np.eye(n)))
    before = bits(k)
    with _in_place.InPlace(k, Meter(None)) as work:
        bound = work.shifted_bound(shift, sign)
        factor, vector = np.tril(k), np.arange(n) - n / 3
        product, solution = work.product(vector), work._solve(vector)
    assert np.array_equal(bits(k), before)
    # Factors differ by rounding times the condition number, below 1e7 here.
    assert np.allclose(factor, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
    assert bound == _certify.shifted_bound(k, shift, sign)
    assert np.allclose(product, k @ vector, rtol=1e-12, atol=1e-12 * np.abs(k @ vector).max())
    back = sign * (k @ solution - shift * solution)
    assert np.allclose(back, vector, atol=1e-8 * np.abs(solution).max() * np.abs(k).max())


def test_a_bound_in_place_never_exceeds_a_singular_matrix_eigenvalue(panel):
    # λ_min = 0 exactly; the factorisation may succeed for τ > 0 of rounding size, and does here.
    lucky = 0
    for seed in range(30):
        b = np.random.default_rng(seed).integers(-5, 6, (12, 13)).astype(float)
        k = np.asfortranarray(b.T @ b)
        for step in range(1, 9):
            with _in_place.InPlace(k, Meter(None)) as work:
                bound = work.shifted_bound(float(step * U * np.trace(k) / 64), 1)
            if bound is not None:
                lucky += 1
                assert bound <= 0
    assert lucky > 0


def test_the_product_is_within_the_bound_that_the_quotient_charges(panel):
    for n in (2, 9, 40, 130):
        rng = np.random.default_rng(n)
        k = rng.standard_normal((n, n))
        k = np.asfortranarray(np.tril(k) + np.tril(k, -1).T)
        v = rng.standard_normal(n)
        with _in_place.InPlace(k, Meter(None)) as work:
            image, (low, high) = work.product(v), work.rayleigh(v)
        exact = [
            sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(row, v, strict=True))
            for row in k
        ]
        most = (n + 2) * Fraction(U) / (1 - (n + 2) * Fraction(U))
        size = np.abs(k) @ np.abs(v) * (1 + 1e-10)
        for i in range(n):
            assert abs(Fraction(float(image[i])) - exact[i]) <= most * Fraction(float(size[i]))
        top = sum(Fraction(float(a)) * b for a, b in zip(v, exact, strict=True))
        quotient = top / sum(Fraction(float(a)) ** 2 for a in v)
        assert low <= quotient <= high


class Stop(BaseException):
    pass


@pytest.mark.parametrize("error", [KeyboardInterrupt, Stop, MemoryError, ValueError])
@pytest.mark.parametrize("at", [0.1, 0.3, 0.6, 0.9])
def test_an_interruption_at_any_moment_gives_the_matrix_back(error, at, panel):
    k = gram(90, 12)
    before = bits(k)

    def interrupt(fraction):
        if fraction > at:
            assert not np.array_equal(bits(k), before)  # it is lent at that moment
            raise error("enough")

    with pytest.raises(error, match="enough"):
        theory.smallest_eigenvalue(k, in_place=True, progress=interrupt)
    assert np.array_equal(bits(k), before)


@pytest.mark.parametrize("error", [KeyboardInterrupt, Stop, TimeoutError])
def test_an_interrupt_while_restoring_only_delays_it(monkeypatch, error):
    k = gram(60, 8)
    before, original, calls = bits(k), _in_place._restore, []

    def interrupted(matrix, diagonal):
        calls.append(1)
        if len(calls) < 3:
            matrix[40:, :40] = 0.0
            raise error
        original(matrix, diagonal)

    monkeypatch.setattr(_in_place, "_restore", interrupted)
    with pytest.raises(error):
        theory.smallest_eigenvalue(k, in_place=True)
    assert len(calls) == 3 and np.array_equal(bits(k), before)


@pytest.mark.parametrize("function", BOTH)
@pytest.mark.parametrize("n", [1000, 1500])
def test_nothing_of_the_matrix_size_is_allocated(function, n):
    k = gram(n, 30)
    tracemalloc.start()
    function(k, in_place=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Two subspaces of 150 vectors, two panels, the corners, a tile or two: 8·n·700 bytes and 2 MB.
    assert peak < 8 * n * 750 + 4e6 < 0.8 * 8 * n * n + 4e6


def mapped(tmp_path, k):
    np.save(tmp_path / "k.npy", k)
    return np.load(tmp_path / "k.npy", mmap_mode="r+")


def test_what_cannot_be_worked_in_is_copied_and_refused_only_if_asked_for(tmp_path, monkeypatch):
    k = gram(30, 6)
    fixed = k.copy()
    fixed.flags.writeable = False
    off = k.copy()
    off[3, 4] *= 1 + 2e-13
    zeros = np.eye(30)
    zeros[0, 1] = -0.0
    anonymous = np.frombuffer(mmap.mmap(-1, k.nbytes)).reshape(k.shape)
    anonymous[:] = k
    cases = {
        "read-only": fixed,
        "type is float32": k.astype(np.float32),
        "not contiguous": np.repeat(np.repeat(k, 2, 0), 2, 1)[::2, ::2],
        "up to rounding": off,
        "sign of zeros": zeros,
        "file mapped": mapped(tmp_path, k),
        "mapped into memory": anonymous,
        "rescaled": np.ldexp(k, 300),
        "no NumPy array but list": k.tolist(),
        "no NumPy array but Tensor": torch.tensor(k),
    }
    for why, value in cases.items():
        with pytest.raises(ValueError, match=f"K cannot be worked in, because .*{why}"):
            theory.smallest_eigenvalue(value, in_place=True)
    expected = {why: theory.smallest_eigenvalue(value) for why, value in cases.items()}
    monkeypatch.setattr(_strategy, "COPIES_UP_TO", 1)
    for why, value in cases.items():
        before = np.asarray(value).copy()

        def untouched(_, value=value, before=before):
            assert np.array_equal(np.asarray(value), before)

        found = theory.smallest_eigenvalue(value, progress=untouched)
        assert found.method == _in_place.METHOD, why
        assert np.array_equal(np.asarray(value), before)
        assert max(found.lower, expected[why].lower) <= min(found.upper, expected[why].upper)
        assert np.shape(value) == (30, 30) and found.cause == expected[why].cause


def test_the_strategy_follows_the_rows_and_the_memory(monkeypatch):
    k = gram(40, 6)
    copy, here = _strategy.Copies.method, _in_place.METHOD
    assert theory.smallest_eigenvalue(k).method == copy
    assert theory.smallest_eigenvalue(k, memory=8 * 40 * 40).method == copy
    assert theory.smallest_eigenvalue(k, memory=8 * 40 * 40 - 1).method == here
    assert theory.smallest_eigenvalue(k, in_place=True).method == here
    blocks = theory.diagonal_blocks(k, [0] * 10 + [1] * 30)
    assert theory.smallest_eigenvalue(blocks, memory=8 * 20 * 20).method == here
    before = [bits(block) for block in blocks.blocks]
    forced = theory.largest_eigenvalue(blocks, in_place=True)
    assert forced.method == here and forced.contains(np.linalg.eigvalsh(blocks.dense())[-1])
    assert all(map(np.array_equal, map(bits, blocks.blocks), before))
    monkeypatch.setattr(_strategy, "COPIES_UP_TO", 39)
    assert theory.smallest_eigenvalue(k).method == here
    assert theory.smallest_eigenvalue(k, in_place=False).method == copy


def test_too_little_memory_is_refused_with_advice():
    k = gram(40, 6)
    fixed = k.copy()
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match=r"40 rows and a copy takes .* allow in_place"):
        theory.smallest_eigenvalue(k, in_place=False, memory=100)
    with pytest.raises(ValueError, match=r"free memory or raise `memory`.*it is read-only"):
        theory.smallest_eigenvalue(fixed, memory=100)
    for value, why in (
        (k.astype(np.float32), "type is float32"),
        (np.repeat(k, 2, 0)[::2, :], "not contiguous"),
        (np.ldexp(k, 300), r"about 2\^30\d"),
    ):
        with pytest.raises(ValueError, match=f"has to be copied, because .*{why}"):
            theory.smallest_eigenvalue(value, memory=100)
    for bad in (0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="memory must be positive"):
            theory.smallest_eigenvalue(k, memory=bad)
    with pytest.raises(TypeError, match="in_place must be True, False or None, not 1"):
        theory.smallest_eigenvalue(k, in_place=1)
    with pytest.raises(TypeError, match="progress must be a function of the fraction done"):
        theory.smallest_eigenvalue(k, progress=7)


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("function", BOTH)
def test_progress_grows_to_one(function, in_place):
    k = gram(300, 20)
    for matrix in (k, theory.diagonal_blocks(k, np.arange(300) % 3)):
        seen = []
        function(matrix, in_place=in_place, progress=seen.append)
        assert seen[-1] == 1.0 and len(seen) > 1
        assert seen == sorted(set(seen)) and seen[0] >= 0


def test_an_error_of_the_matrix_widens_the_enclosure_in_place_too():
    k = gram(50, 9)
    plain = theory.smallest_eigenvalue(k, in_place=True)
    wide = theory.smallest_eigenvalue(k, 0.125, in_place=True)
    assert wide.lower == pytest.approx(plain.lower - 0.125, rel=1e-15)
    assert wide.upper == pytest.approx(plain.upper + 0.125, rel=1e-15)
    assert "error bound exceeds" in theory.smallest_eigenvalue(k, 9.0, in_place=True).cause


def test_one_row_is_exact_whatever_is_asked_for():
    for in_place in (None, True, False):
        assert theory.smallest_eigenvalue([[3.0]], in_place=in_place).method == "exact"
        assert theory.smallest_eigenvalue(np.zeros((4, 4)), in_place=in_place).upper == 0


@pytest.mark.slow
def test_nine_thousand_points_are_worked_in_by_default():
    k = gram(9000, 20)
    before = k.copy()
    found = theory.smallest_eigenvalue(k)
    assert found.method == _in_place.METHOD
    assert found.width <= allowed(k, found.upper)
    assert np.array_equal(k, before)
