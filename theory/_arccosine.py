"""The two angular functions behind every closed form, from c = cos θ and w = 1 - |c|.

With e = θ for c >= 0 and e = π - θ for c < 0, so that w = 1 - cos e,

    h(c) = (sin θ + (π - θ) cos θ) / 2π = max(c, 0)/2 + T(w),
    P0(c) = (π - θ) / 2π = 1/2 - F(w) for c >= 0, F(w) for c < 0,
    T = (sin e - e cos e) / 2π = w^1.5 Q(w),    F = e / 2π = w^0.5 R(w).

No cancellation is left: given a w of full relative accuracy, h is accurate at θ = 0 and at θ = π.
Q and R have Taylor series with positive coefficients and radius 2. Their Chebyshev series on [0, 1]
therefore has positive coefficients too, and the error of its truncation is largest at w = 1, where
it equals Q(1) - Q_16(1) = 7e-18 and R(1) - R_18(1) = 5e-18, with Q(1) = 1/2π and R(1) = 1/4. The
coefficients below are those truncations in powers of w; rounding in Horner's rule stays below 3u
relative to Q and R (tests compare with 50 digits).
"""

import numpy as np
from jaxtyping import Float

MAGNITUDE = (
    0.1500527193595177,
    0.007502635967973006,
    0.0012057807808390174,
    0.0002791159113106054,
    7.770860791249024e-05,
    2.4206815144375205e-05,
    8.15519128877611e-06,
    2.7908862888560056e-06,
    1.4467255990928844e-06,
    -6.527305972493161e-07,
    2.3603733074593664e-06,
    -3.299562520778589e-06,
    3.7816707770982994e-06,
    -2.9752637978233452e-06,
    1.6148686698754322e-06,
    -5.308404228527473e-07,
    8.433060569691008e-08,
)
ANGLE = (
    0.22507907903927651,
    0.018756589919937495,
    0.0042202327322480694,
    0.0012560216341915326,
    0.000427396556225818,
    0.00015735500743770825,
    6.107217734411269e-05,
    2.424417059661626e-05,
    1.1728177407807654e-05,
    -1.5904357003803732e-06,
    1.845315853025601e-05,
    -3.4874048671906944e-05,
    5.872851413652919e-05,
    -7.214516540647836e-05,
    6.682866491176743e-05,
    -4.459686116621646e-05,
    2.050084776430493e-05,
    -5.807364970064947e-06,
    7.832759065063282e-07,
)


def _polynomial(
    coefficients: tuple[float, ...], w: Float[np.ndarray, "*s"]
) -> Float[np.ndarray, "*s"]:
    value = np.multiply(w, coefficients[-1])
    for coefficient in coefficients[-2:0:-1]:
        value += coefficient
        value *= w
    value += coefficients[0]
    return value


def magnitude(c: Float[np.ndarray, "*s"], w: Float[np.ndarray, "*s"]) -> Float[np.ndarray, "*s"]:
    """Returns h(c) = κ₁ / (‖x‖‖y‖), given c and an accurate w = 1 - |c|.

    Error: |Δh| <= 1.6 u beyond that of c and w; relative error of T at most 5 u.
    """
    value = _polynomial(MAGNITUDE, w)
    value *= w
    root = np.sqrt(w)
    value *= root
    np.maximum(c, 0.0, out=root)
    root *= 0.5
    value += root
    return value


def half_plane(c: Float[np.ndarray, "*s"], w: Float[np.ndarray, "*s"]) -> Float[np.ndarray, "*s"]:
    """Returns P0, the probability that two half-planes at the angle θ both hold a direction."""
    p0 = _polynomial(ANGLE, w)
    p0 *= np.sqrt(w)
    np.copyto(p0, 0.5 - p0, where=c >= 0)
    return p0


def direction(
    c: Float[np.ndarray, "*s"], w: Float[np.ndarray, "*s"], dimension: int
) -> Float[np.ndarray, "*s"]:
    """Returns c P0 - h/d, the direction part for S = I over ‖x‖‖y‖.

    Error: |Δ| <= 5 u beyond that of c and w.
    """
    p0 = half_plane(c, w)
    p0 *= c
    h = magnitude(c, w)
    h /= dimension
    p0 -= h
    return p0
