"""Block-diagonal matrices from what callers hand in."""

import numpy as np
import pytest

import theory

EYE, ROWS = np.eye(2), np.array([0, 1])
GOOD = dict(names=("a", "b"), blocks=(EYE, EYE), rows=(ROWS, ROWS + 2), errors=(0.1, 0.2))


@pytest.mark.parametrize(
    "change",
    [
        dict(names=["a", "b"], blocks=[[[1, 0], [0, 1]]] * 2, rows=[[0, 1], [2, 3]]),
        dict(names=np.array(["a", "b"]), blocks=np.stack([EYE] * 2), errors=np.array([0.1, 0.2])),
        dict(blocks=(EYE.astype(np.float32), EYE.astype(int)), rows=np.array([[0, 1], [2, 3]])),
        dict(rows=(ROWS.astype(np.uint8), ROWS.astype(np.int32) + 2)),
    ],
)
def test_lists_and_other_numbers_are_converted(change):
    plain, given = theory.BlockDiagonal(**GOOD), theory.BlockDiagonal(**(GOOD | change))
    assert given.names == plain.names and given.errors == plain.errors
    assert all(block.dtype == np.float64 for block in given.blocks)
    np.testing.assert_array_equal(given.dense(), plain.dense())
    assert theory.smallest_eigenvalue(given, given.errors).lower == pytest.approx(0.8)


def test_blocks_of_float64_are_not_copied():
    assert theory.BlockDiagonal(**GOOD).blocks[0] is EYE
    assert theory.BlockDiagonal(("a",), (EYE,), (ROWS,)).errors == (0.0,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(names=("a", "a")), "names must hold every client once"),
        (dict(names="ab"), "names must be a sequence"),
        (dict(names={"a", "b"}), "names must be a sequence"),
        (dict(names=(None, "b")), "name 0 in names is missing"),
        (dict(blocks=5), "blocks must be a sequence"),
        (dict(blocks=(EYE, EYE * 1j)), "block 'b' must hold real numbers"),
        (dict(blocks=(EYE, EYE * np.nan)), "block 'b' has NaN"),
        (dict(blocks=(EYE, [[1.0], [1.0, 2.0]])), "block 'b' is not a rectangular"),
        (dict(rows=(ROWS, ROWS + 2.0)), "integer indices"),
        (dict(rows=(ROWS, [True, False])), "integer indices"),
        (dict(rows=(ROWS, [[2, 3]])), "integer indices"),
        (dict(rows=(ROWS, [2, [3]])), "integer indices"),
        (dict(rows=5), "rows must be a sequence"),
        (dict(rows=(ROWS, ROWS)), "exactly once"),
        (dict(errors="ab"), "errors must be a sequence"),
        (dict(errors=0.1), "errors must be a sequence"),
        (dict(errors=("a", "b")), "each of errors must be one real number"),
        (dict(errors=(0.1, float("nan"))), "one number >= 0 per block"),
        (dict(errors=(0.1,)), "one number >= 0 per block"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change, message):
    with pytest.raises((TypeError, ValueError), match=message):
        theory.BlockDiagonal(**(GOOD | change))


@pytest.mark.parametrize("tolerance", [0.1, 1.0, 4.0])
def test_a_tolerance_that_is_no_small_angle_is_refused(tolerance):
    with pytest.raises(ValueError, match=r"angle in radians below 0\.1"):
        theory.diagnose([[1.0, 0.0], [0.0, 1.0]], tolerance)
    assert theory.diagnose([[1.0, 0.0], [0.0, 1.0]], 0.09) is None
