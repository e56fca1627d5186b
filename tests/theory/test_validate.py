"""What callers hand in: converted exactly, or refused with advice."""

import itertools
import math
import re
from collections import deque
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
import torch

from theory._validate import (
    as_groups,
    as_matrix,
    as_points,
    as_real_array,
    as_vector,
    non_negative,
    positive,
)


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
    [["b", "a", "b"], np.array(["b", "a", "b"]), ("b", "a", "b"), deque(["b", "a", "b"])],
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


TENSORS = {
    "float32": torch.tensor([[1.0, 2.0]]),
    "gradient": torch.tensor([[1.0, 2.0]], requires_grad=True),
    "float16": torch.tensor([[1.0, 2.0]], dtype=torch.float16),
}


@pytest.mark.parametrize("value", TENSORS.values(), ids=TENSORS)
def test_tensors_are_read_whether_or_not_they_record_gradients(value):
    assert as_points(value).tolist() == [[1.0, 2.0]]
    assert as_vector(value[0], "y").tolist() == [1.0, 2.0]


NO_TENSORS = {
    "conjugate": torch.ones(2, 2, dtype=torch.complex64).conj(),
    "bfloat16": torch.ones(2, 2, dtype=torch.bfloat16),
    "sparse": torch.ones(2, 2).to_sparse(),
    "meta": torch.ones(2, 2, device="meta"),
    "list": [torch.ones(2, requires_grad=True)] * 2,
    "masked rows": [np.ma.masked_array([1.0, 2.0], mask=[0, 1])] * 2,
    "huge": [[10**400]],
    "text": [["1.0"]],
    "object": [[Fraction(1, 2)]],
    "complex": [[1 + 2j]],
    "ragged": [[1.0], [1.0, 2.0]],
    "infinite": [[np.inf]],
}


@pytest.mark.parametrize("value", NO_TENSORS.values(), ids=NO_TENSORS)
@pytest.mark.parametrize("convert", [as_points, lambda v: as_real_array(v, "x")])
def test_what_is_no_array_of_real_numbers_is_refused_in_a_sentence(value, convert):
    with pytest.raises((TypeError, ValueError), match=r"^x [^\n]*: [^\n]*\.$"):
        convert(value)


def test_vectors_and_arrays_of_any_shape():
    assert as_real_array(3, "y").shape == () and as_real_array(np.ones((2, 1, 3)), "y").ndim == 3
    with pytest.raises(ValueError, match=r"y must have one dimension, not shape \(1, 2\)"):
        as_vector([[1, 2]], "y")
    with pytest.raises(ValueError, match="y is empty"):
        as_vector([], "y")
    with pytest.raises(ValueError, match="first at position 1, 0: "):
        as_real_array([[1.0, 2.0], [np.nan, np.nan]], "y")
    with pytest.raises(ValueError, match="not exact in float64"):
        as_vector([2**53 + 1], "y")


def test_labels_that_are_arrays_without_dimensions_count_by_value():
    for make in (torch.tensor, np.array):
        groups = as_groups([make(1), make(0), make(1)], 3)
        assert groups.names == (1, 0)
        assert as_groups([("s", make(1)), ("s", make(1))], 2).names == (("s", 1),)
    assert as_groups(torch.tensor([1, 0, 1]), 3).names == (1, 0)
    assert as_groups(pl.Series(["a", "b", "a"]), 3).names == ("a", "b")


COLLECTIONS = {
    "set": {"a", "b", "c"},
    "frozenset": frozenset("abc"),
    "keys": {"a": 0, "b": 1, "c": 2}.keys(),
    "values": {0: "a", 1: "b", 2: "c"}.values(),
    "generator": (name for name in "abc"),
    "iterator": iter("abc"),
    "endless": itertools.cycle("ab"),
    "frame": pl.DataFrame({"client": ["a", "b", "c"]}),
    "scalar": torch.tensor(1),
    "tensors": [torch.tensor([1]), torch.tensor([1]), torch.tensor([0])],
    "masked": [0, np.ma.masked, 1],
    "masked scalar": [0, np.ma.masked_array(0, mask=True), 1],
    "masked array": np.ma.masked_array([0, 1, 2], mask=[0, 1, 0]),
    "tuple with NaN": [("a", math.nan), ("a", 1), ("a", 2)],
    "NaT": [np.datetime64("NaT")] * 3,
    "tuple with list": [("a", [1])] * 3,
}


@pytest.mark.parametrize("client", COLLECTIONS.values(), ids=COLLECTIONS)
def test_what_is_no_sequence_of_labels_is_refused_in_a_sentence(client):
    with pytest.raises((TypeError, ValueError), match=r"^client [^\n]*\.$"):
        as_groups(client, 3)


def test_missing_values_and_frames_of_pandas_are_refused():
    pd = pytest.importorskip("pandas")
    for client in (
        ["a", pd.NA, "b"],
        ["a", pd.NaT, "b"],
        pd.Series(["a", None, "b"], dtype="string"),
    ):
        with pytest.raises(ValueError, match="label of row 1 is missing"):
            as_groups(client, 3)
    with pytest.raises(ValueError, match="one dimension"):
        as_groups(pd.DataFrame({"client": ["a", "b", "c"]}), 3)
    assert as_groups(pd.Series(["b", "a", "b"]), 3).names == ("b", "a")


@pytest.mark.parametrize(
    "value",
    [
        np.complex64(1),
        np.clongdouble(1),
        np.ma.masked,
        np.ma.masked_array(1.0, mask=True),
        np.timedelta64(1, "s"),
        np.datetime64("2020"),
        torch.tensor(True),
        torch.tensor(1 + 0j),
        torch.ones(1),
        torch.ones((), device="meta"),
        Decimal("sNaN"),
        np.array("1"),
    ],
    ids=repr,
)
def test_what_is_no_real_number_is_refused(value):
    for check in (positive, non_negative):
        with pytest.raises(TypeError, match="alpha must be one real number"):
            check(value, "alpha")


def test_numbers_beyond_float64_are_refused_and_others_converted():
    for huge in (10**400, 10**5000, Fraction(10**400)):
        with pytest.raises(ValueError, match="alpha is beyond the range of float64"):
            positive(huge, "alpha")
    for half in (Fraction(1, 2), Decimal("0.5"), torch.tensor(0.5), np.float16(0.5)):
        assert positive(half, "alpha") == 0.5
    assert positive(torch.tensor(0.5, requires_grad=True), "alpha") == 0.5


@pytest.mark.parametrize(("shape", "advice"), [((3,), "x.reshape(-1, 1)"), ((3, 2, 2), "len(x)")])
def test_points_of_another_shape_are_refused_with_the_shape_they_lack(shape, advice):
    with pytest.raises(ValueError, match=re.escape(advice)):
        as_matrix(np.zeros(shape), "x")
