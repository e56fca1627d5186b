"""Rounding of ‖v‖_S = √(vᵀSv), where the sum may cancel."""

import numpy as np
from jaxtyping import Float

from theory._pairs import UNIT_ROUNDOFF, gamma

LARGEST = 1 / 8
"""The largest relative error of a norm for which the bounds built on it are derived."""


def norm_error(
    size: Float[np.ndarray, "*k"], squared: Float[np.ndarray, "*k"], dimension: int
) -> Float[np.ndarray, "*k"]:
    """Bound of the relative error of the computed ‖v_k‖_S; infinite where it may exceed 1/8.

    A term v_a S_ab v_b passes at most 2d roundings, so that vᵀSv is wrong by
    e = γ_2d |v|ᵀ|S||v|, and the root of it relatively by at most e/(vᵀSv), and u. Two roundings
    and a hundredth are added for those of `size` and `squared`.

    Args:
        size: a bound of |v|ᵀ|S||v|.
        squared: the computed vᵀSv.
        dimension: d.
    """
    error = 1.01 * gamma(2 * dimension + 2) * size
    known = squared > error * (1 + 1 / LARGEST)
    out = np.full(np.shape(squared), np.inf)
    np.divide(error, squared - error, out=out, where=known)
    return out + 2 * UNIT_ROUNDOFF
