"""The BN kernels in one dimension, where v has two directions only."""

import numpy as np
from jaxtyping import Float

from theory._bn_metric import Tally
from theory._bn_setting import Group, Setting
from theory._pairs import UNIT_ROUNDOFF, gamma
from theory._scales import ScaleRule

Array = np.ndarray


def on_line(
    given: Setting, first: Group, second: Group | None, scales: ScaleRule
) -> tuple[Float[Array, "n m"], Tally]:
    """G = ½ E xy/√(Q_i Q_j) for xy > 0, else 0; V the same times (1 - S_i/Q_i)(1 - S_j/Q_j).

    Q_i = S_i + eps/t, so that 1 - S_i/Q_i = eps/(tS_i + eps), which is 0 without eps: a scalar v
    has no direction to learn.
    """
    other = first if second is None else second
    s, r = float(first.covariance[0, 0]), float(other.covariance[0, 0])
    # t/(tS + eps) = 1/S without eps, where t counts as infinite.
    with np.errstate(invalid="ignore"):
        over = [np.where(np.isinf(scales.t), 1 / q, 1 / (q + given.eps / scales.t)) for q in (s, r)]
    value = np.sqrt(over[0] * over[1])
    if given.component == "direction":
        shares = [given.eps / scales.t * part for part in over]
        value = value * shares[0] * shares[1]
    mean = float(scales.weights @ value)
    product = np.outer(first.points[:, 0], other.points[:, 0])
    out = np.where(product > 0, product, 0.0) * (mean / 2)
    size = float(np.linalg.norm(out))
    rounding = gamma(len(scales.t) + 4) + 16 * UNIT_ROUNDOFF
    # V is a sum of four terms, the largest x y/√(Q_i Q_j): their errors do not cancel.
    plain = float(scales.weights @ np.sqrt(over[0] * over[1])) / 2
    terms = 1.0 if given.component == "magnitude" else 4.0
    whole = terms * plain * float(np.linalg.norm(np.maximum(product, 0.0)))
    error = scales.error * 1.01 * whole + rounding * size
    return out, Tally(error=error, size=size, nodes=len(scales.t), bases=0)
