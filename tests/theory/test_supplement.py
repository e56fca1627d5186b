import math
from decimal import Decimal

import mpmath
import numpy as np
import pytest

from theory._supplement import SLACK, coupling, digits, enclosed, slope, supplement

ANGLES = [1e-9, 0.3, 1.0, 1.5, math.pi / 2, 2.0, 2.5, 3.1, math.pi - 1e-5, 3.1415926535, math.pi]


@pytest.mark.parametrize("angle", ANGLES)
def test_both_functions_agree_with_the_plain_formulas_at_ninety_digits(angle):
    with digits(), mpmath.workdps(90):
        e = supplement(angle)
        theta = mpmath.mpf(angle)
        rest = mpmath.pi - theta
        h = (mpmath.sin(theta) + rest * mpmath.cos(theta)) / (2 * mpmath.pi)
        for found, exact in (
            (coupling(e), 2 * h),
            (slope(e), mpmath.cos(theta) * rest / (2 * mpmath.pi) / h),
        ):
            gap = abs(mpmath.mpf(str(found)) - exact)
            # A billionth of the slack that results are widened by.
            assert gap < mpmath.mpf(str(SLACK)) * 1e-9 * (1 + abs(exact))


def test_the_coupling_falls_from_one_to_zero():
    with digits():
        values = [coupling(supplement(angle)) for angle in np.linspace(1e-6, math.pi, 60)]
    assert values == sorted(values, reverse=True)
    assert values[0] < 1 and values[-1] > 0 and values[-1] < Decimal("1e-40")


@pytest.mark.parametrize("angle", [0.0, -1.0, math.nextafter(math.pi, 4), math.inf, math.nan])
def test_parallel_points_are_refused(angle):
    with pytest.raises(ValueError, match="between 0 and π"):
        supplement(angle)


@pytest.mark.parametrize("angle", ["1", None, 1j, [1.0]])
def test_what_is_no_number_is_refused(angle):
    with pytest.raises(TypeError, match="angle must be one real number"):
        supplement(angle)


def test_ends_are_rounded_outwards():
    third = Decimal(1) / Decimal(3)
    found = enclosed(third, third, "here")
    assert found.lower < 1 / 3 < found.upper and found.width < 4e-16 and found.method == "here"
