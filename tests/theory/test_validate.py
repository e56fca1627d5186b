"""What callers hand in: converted exactly, or refused with advice."""

import numpy as np
import pytest

from theory._validate import as_groups, as_points, non_negative, positive


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (
            np.ones(3),
            ValueError,
            r"two dimensions, not shape \(3,\); one point is x.reshape\(1, -1\)",
        ),
        (np.ones((2, 2, 2)), ValueError, "two dimensions"),
        (5.0, ValueError, "two dimensions"),
        (np.ones((0, 3)), ValueError, "x is empty"),
        (np.ones((3, 0)), ValueError, "x is empty"),
        ([[1.0, 2.0], [3.0]], ValueError, "not a rectangular array"),
        (np.ones((2, 2)) * 1j, TypeError, "real numbers, not complex128"),
        ([["a"]], TypeError, "real numbers"),
        (np.array([[None]]), TypeError, "real numbers, not object"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), TypeError, "real numbers"),
        ([[1.0], [np.nan], [np.inf]], ValueError, "first in row 1"),
        (np.array([[2**53 + 1]]), ValueError, "not exact in float64"),
        (np.array([[2**64 - 1]], dtype=np.uint64), ValueError, "not exact in float64"),
        (np.array([[1]], dtype=np.longdouble) / 3, ValueError, "not exact in float64"),
        (np.ma.masked_array([[1.0, 2.0]], mask=[[0, 1]]), ValueError, "masked entries"),
    ],
)
def test_bad_points_are_refused(value, error, message):
    if (
        value is not None
        and getattr(value, "dtype", None) == np.longdouble != np.float64
        and (np.finfo(np.longdouble).nmant == 52)
    ):
        pytest.skip("long double is double here")
    with pytest.raises(error, match=message):
        as_points(value)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint64, bool])
def test_good_points_are_converted_exactly(dtype):
    value = np.array([[0, 1], [1, 0]], dtype=dtype)
    points = as_points(value)
    assert points.dtype == np.float64
    assert (points == value).all()


def test_the_callers_array_is_named_and_left_alone():
    with pytest.raises(ValueError, match="centres is empty"):
        as_points(np.ones((0, 1)), "centres")
    value = np.eye(2)
    as_points(value)
    assert (value == np.eye(2)).all()
    assert (as_points(np.array([[2**60]])) == 2.0**60).all()


@pytest.mark.parametrize(
    "client",
    [["b", "a", "b"], np.array(["b", "a", "b"]), ("b", "a", "b"), iter(["b", "a", "b"])],
)
def test_labels_are_grouped_in_order_of_first_appearance(client):
    groups = as_groups(client, 3)
    assert groups.names == ("b", "a")
    assert [rows.tolist() for rows in groups.rows] == [[0, 2], [1]]


def test_labels_keep_their_type():
    assert as_groups(np.array([3, 1, 3]), 3).names == (3, 1)
    assert type(as_groups(np.array([3]), 1).names[0]) is int
    assert as_groups([("site", 1), ("site", 2)], 2).names == (("site", 1), ("site", 2))


@pytest.mark.parametrize(
    ("client", "error", "message"),
    [
        (["a"], ValueError, "client has 1 labels, x has 3 rows"),
        ([0, 1, 2, 3], ValueError, "client has 4 labels, x has 3 rows"),
        ([0, np.nan, 1], ValueError, "label of row 1 is missing"),
        (np.array([0, 1, np.nan]), ValueError, "label of row 2 is missing"),
        ([0, None, 1], ValueError, "label of row 1 is missing"),
        (np.ones((3, 1)), ValueError, "one dimension"),
        ("abc", TypeError, "sequence with one label per row"),
        (3, TypeError, "sequence with one label per row"),
        ({0: "a", 1: "b", 2: "c"}, TypeError, "sequence with one label per row"),
        ([[0], [1], [2]], TypeError, "cannot be hashed"),
    ],
)
def test_bad_labels_are_refused(client, error, message):
    with pytest.raises(error, match=message):
        as_groups(client, 3)


def test_numbers():
    assert positive(np.float32(0.5), "alpha") == 0.5
    assert positive(np.array(2), "alpha") == 2.0
    assert non_negative(0, "error") == 0.0
    for bad in (0, -1, np.inf, np.nan):
        with pytest.raises(ValueError, match="alpha must be positive and finite"):
            positive(bad, "alpha")
    for bad in (-1e-300, np.inf, np.nan):
        with pytest.raises(ValueError, match="error must be finite and not negative"):
            non_negative(bad, "error")
    for bad in ("1", True, None, [1.0], np.ones(1), 1j):
        with pytest.raises(TypeError, match="alpha must be one real number"):
            positive(bad, "alpha")
