"""Rates and widths at the ends of float64."""

import math
from fractions import Fraction

import pytest

from theory import convergence_rate, required_width


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1e-310, 1.0), r"too small for a rate .* more rounds"),
        ((5e-324, 1.0), r"too small for a rate .* more rounds"),
        ((0.5, 1.0, 1e-320), r"too small for a rate .* more rounds"),
        ((5e-324, 1.0, 5e-324), r"too small for a rate .* more rounds"),
        ((5e-324, 1e-310), "beyond float64: rescale the kernel"),
        ((10**400, 1.0), "e0 is beyond the range of float64"),
        ((1.0, Fraction(10**400)), "largest_eigenvalue is beyond the range"),
    ],
)
def test_rates_beyond_float64_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        convergence_rate(*arguments)


@pytest.mark.parametrize("e0", [1e-300, 1e-17, 1e-10])
def test_rounds_come_from_the_exact_factor_where_it_rounds_to_one(e0):
    rate = convergence_rate(e0, 1.0)
    assert (rate.factor == 1.0) == (e0 < 1e-16) and 0 < rate.factor <= 1
    # log(1 - z) = -z(1 + z/2 + ...): the last term is below the tolerance.
    assert rate.rounds == pytest.approx(-math.log(1e-3) / (e0 / 2), rel=1e-9)


def test_a_number_of_points_beyond_float64_is_refused():
    with pytest.raises(ValueError, match="n is beyond the range of float64"):
        required_width(0.1, 10**400, 1.0)
    assert required_width(0.1, 10**200, 1.0).width == math.inf
