"""Centring at the ends of float64 and of columns of unlike size."""

from fractions import Fraction

import numpy as np
import pytest

import theory


def exact(x):
    """Each entry minus its column's mean, in fractions."""
    columns = [[Fraction(value) for value in column] for column in np.asarray(x).T]
    return np.array([[float(v - sum(c) / len(c)) for v in c] for c in columns]).T


@pytest.mark.parametrize(
    "x",
    [
        [[1.7e308], [1.6e308], [1e308]],
        [[1.7e308, 1e-300], [-1.7e308, 3e-300], [1e3, 0.0]],
        [[1e-310, 1e300], [5e-310, 2e300]],
        [[1e20, 1.0], [1e20, -1.0]],
        [[1e20, 1.0, 7.0], [1e20, -1.0, 7.0], [1e20, 4.0, 7.0]],
    ],
)
def test_centring_at_any_scale_agrees_with_fractions(x):
    column = np.abs(x).max(axis=0)
    assert (np.abs(theory.centre(x, [0] * len(x)) - exact(x)) <= 4 * 2.0**-53 * column).all()


def test_differences_beyond_float64_are_refused():
    x = [[1.7e308], *[[-1.7e308]] * 9]
    with pytest.raises(ValueError, match="client 'a' leave the range of float64"):
        theory.centre(x, ["a"] * 10)
    with pytest.raises(ValueError, match="leave the range of float64"):
        theory.centre([[1.7e308]], [0], {0: [-1.7e308]})


def test_a_row_is_zero_only_if_every_column_is():
    with pytest.raises(ValueError, match=r"row 2 .* equals its client's mean"):
        theory.centre([[1e20, 1.0], [1e20, -1.0], [1e20, 0.0]], [0, 0, 0])
    # The mean of the second column is 0 but for its rounding, larger than the entry.
    with pytest.raises(ValueError, match=r"row 3 .* equals its client's mean"):
        theory.centre([[5, 0.1], [5, 0.2], [5, -0.3], [5, 1e-18]], [0, 0, 0, 0])
    given = {0: [1e20, 0.0]}
    assert theory.centre([[1e20, 1e-9]], [0], given).tolist() == [[0.0, 1e-9]]
    with pytest.raises(ValueError, match="row 0"):
        theory.centre([[1e20, 0.0]], [0], given)


@pytest.mark.parametrize("means", [5, [[1.0]], "abc", [(0, [1.0])]])
def test_means_must_be_a_mapping(means):
    with pytest.raises(TypeError, match="means must map every client to its mean"):
        theory.centre([[1.0], [2.0]], [0, 0], means)


@pytest.mark.parametrize("mean", [1.0, "a", [1j], [np.nan], [[1.0]], []])
def test_a_bad_mean_is_named(mean):
    with pytest.raises((TypeError, ValueError), match=r"^means\[0\] "):
        theory.centre([[1.0], [2.0]], [0, 0], {0: mean})
