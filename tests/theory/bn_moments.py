"""Integrand of the Laplace route to the BN kernels, for float64 and for mpmath alike.

With q^(-1/2) = ∫ s^(-1/2) e^(-sq) ds/√π for both factors and (s, t) = r(cos²φ, sin²φ),

    G = 2/π ∬ e^(-r eps) E[ab h e^(-r vᵀSv)] dr dφ,   S = cos²φ S_i + sin²φ S_j,
    a = v·x, b = v·y, h = 1{a > 0, b > 0},

and V alike with weights r cos²φ, ... for the higher powers of 1/q. The Gaussian factor turns
v ~ N(0, α²I) into det(A/α²)^(1/2) times N(0, A), A = (I/α² + 2rS)^(-1), diagonal in S's eigenbasis.

Moments under N(0, A), by conditioning on the plane of x and y: with an A-orthonormal frame
(x/|x|, ŷ) of that plane, v = A[x/|x|, ŷ](ρ cos ψ, ρ sin ψ) + e, where ρ² ~ χ²_2, ψ is uniform and
e ~ N(0, R) is independent, R = A - m₁m₁ᵀ - m₂m₂ᵀ, m₁ = Ax/|x|, m₂ = Aŷ. Everything is a
trigonometric polynomial of degree 6 in ψ, even, hence known from 7 angles; h is an arc of length
π - θ. Nothing divides by sin θ, so that parallel points need no special case.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import mpmath as mp
import numpy as np


@dataclass(frozen=True)
class Arithmetic:
    """Elementary functions on arrays of float64, or of mpf in object arrays."""

    exp: Callable
    log: Callable
    sqrt: Callable
    sin: Callable
    cos: Callable
    atan2: Callable
    cast: Callable
    pi: object

    @staticmethod
    def double():
        cast = partial(np.asarray, dtype=np.float64)
        return Arithmetic(np.exp, np.log, np.sqrt, np.sin, np.cos, np.arctan2, cast, np.pi)

    @staticmethod
    def multiple():
        functions = [np.frompyfunc(f, 1, 1) for f in (mp.exp, mp.log, mp.sqrt, mp.sin, mp.cos)]
        cast = np.frompyfunc(lambda value: mp.mpf(value), 1, 1)
        return Arithmetic(*functions, np.frompyfunc(mp.atan2, 2, 1), cast, +mp.pi)

    def eigh(self, matrix):
        if matrix.dtype != object:
            return np.linalg.eigh(matrix)
        values, vectors = mp.eigsy(mp.matrix(matrix.tolist()))
        return np.array(list(values), object), np.array(vectors.tolist(), object)


@dataclass(frozen=True)
class Pairs:
    """Points x_k of client i and y_k of client j, (P, d); y = |y|(sign x/|x| + gap)."""

    x: np.ndarray
    y: np.ndarray
    gap: np.ndarray
    sign: np.ndarray
    norm_x: np.ndarray
    norm_y: np.ndarray

    @staticmethod
    def of(x, y, how):
        x, y = how.cast(np.atleast_2d(x)), how.cast(np.atleast_2d(y))
        nx, ny = how.sqrt((x * x).sum(1)), how.sqrt((y * y).sum(1))
        sign = how.cast(np.where((x * y).sum(1) < 0, -1.0, 1.0))
        gap = y / ny[:, None] - (sign / nx)[:, None] * x
        return Pairs(x, y, gap, sign, nx, ny)


@dataclass(frozen=True)
class Frame:
    """The plane of x and y in the metric A: lengths, angle and m₁, m₂; leading axes (r, pair)."""

    length: np.ndarray  # |x|
    cosine: np.ndarray  # |y| cos θ
    sine: np.ndarray  # |y| sin θ
    theta: np.ndarray
    m: tuple


def frame_of(pairs, basis, a, how):
    x, gap = pairs.x @ basis, pairs.gap @ basis
    ax = a[:, None, :] * x
    length = how.sqrt((ax * x).sum(-1))
    along = (ax * gap).sum(-1) / length
    rest = gap - (along / length)[..., None] * x
    height = how.sqrt((a[:, None, :] * rest * rest).sum(-1))
    cosine = pairs.norm_y * (pairs.sign * length / pairs.norm_x + along)
    sine = pairs.norm_y * height
    safe = np.where(height > 0, height, height * 0 + 1)
    m = (ax / length[..., None], a[:, None, :] * rest / safe[..., None])
    return Frame(length, cosine, sine, how.atan2(sine, cosine), m)


def magnitude(frame, how):
    """E[ab h] = κ₁(x, y; A), and |x||y|, of which it is rounded."""
    arc = how.pi - frame.theta
    found = frame.length * (frame.sine + arc * frame.cosine) / (2 * how.pi)
    return found, frame.length * (frame.sine + abs(frame.cosine)) / 2


def arc_rule(frame, how):
    """Angles ψ_k and weights w_k: ∫ F over the arc = Σ w_k F(ψ_k), F even of degree <= 6 in ψ."""
    arc = how.pi - frame.theta
    for k in range(7):
        psi = k * how.pi / 7
        weight = arc
        for m in (1, 2, 3):
            # ∫ e^(2imψ) over the arc = sin(m(π - θ))/m e^(imθ), its middle being θ/2.
            weight = weight + how.sin(m * arc) * how.cos(m * (frame.theta - 2 * psi)) * 2 / m
        yield how.cos(psi), how.sin(psi), weight / 7


@dataclass(frozen=True)
class Residual:
    """What e ~ N(0, R) contributes: traces, and 2 x 2 forms in ν = (cos ψ, sin ψ)."""

    gram: tuple  # |ν|²
    c_form: tuple  # νᵀCν
    r_c_form: tuple  # νᵀRCν
    trace: np.ndarray  # tr R
    trace_c: np.ndarray  # tr CR
    trace_cr: np.ndarray  # tr CRR


def dot(u, v):
    return (u * v).sum(-1)


def form(coefficients, c, s):
    first, cross, last = coefficients
    return first * c * c + cross * c * s + last * s * s


def residual_of(frame, c_matrix, a):
    m1, m2 = frame.m
    g11, g12, g22 = dot(m1, m1), dot(m1, m2), dot(m2, m2)
    cm1, cm2 = m1 @ c_matrix, m2 @ c_matrix
    h11, h12, h22 = dot(m1, cm1), dot(m1, cm2), dot(m2, cm2)
    am1, am2 = a[:, None, :] * m1, a[:, None, :] * m2
    k11, k22 = dot(am1, cm1), dot(am2, cm2)
    # R = A - MMᵀ in each product; K = MᵀACM, H = MᵀCM, gram = MᵀM.
    cross = dot(am1, cm2) + dot(am2, cm1) - g12 * (h11 + h22) - h12 * (g11 + g22)
    r_c_form = (k11 - g11 * h11 - g12 * h12, cross, k22 - g12 * h12 - g22 * h22)
    diagonal = np.diagonal(c_matrix)
    trace_cr = ((a * a) @ diagonal)[:, None] - 2 * (k11 + k22)
    return Residual(
        (g11, 2 * g12, g22),
        (h11, 2 * h12, h22),
        r_c_form,
        a.sum(1)[:, None] - g11 - g22,
        (a @ diagonal)[:, None] - h11 - h22,
        trace_cr + h11 * g11 + 2 * h12 * g12 + h22 * g22,
    )


def line_of(frame, gram, w, a):
    """Coefficients in ν of ν·w and of νᵀRw."""
    m1, m2 = frame.m
    aw = a[:, None, :] * w
    u1, u2 = dot(m1, w), dot(m2, w)
    g11, g12, g22 = gram[0], gram[1] / 2, gram[2]
    return (u1, u2), (dot(m1, aw) - g11 * u1 - g12 * u2, dot(m2, aw) - g12 * u1 - g22 * u2)


def direction(frame, pairs, basis, a, metrics, powers, how):
    """E[‖v‖² h (x·y - k₁ a vᵀS_i y - k₂ b vᵀS_j x + k₃ ab vᵀS_iS_j v)] under N(0, A).

    And the sum of its terms' sizes, of which it is rounded.
    """
    s_i, s_j = metrics
    product = s_i @ s_j
    rest = residual_of(frame, basis.T @ ((product + product.T) / 2) @ basis, a)
    lines = [line_of(frame, rest.gram, w @ basis, a) for w in (pairs.y @ s_i, pairs.x @ s_j)]
    k1, k2, k3 = powers
    total, size = 0, 0
    for c, s, weight in arc_rule(frame, how):
        sides = (frame.length * c, frame.cosine * c + frame.sine * s)
        nn, ncn = form(rest.gram, c, s), form(rest.c_form, c, s)
        # E ρ² = 2, E ρ⁴ = 8, E ρ⁶ = 48.
        terms = [dot(pairs.x, pairs.y) * (2 * nn + rest.trace)]
        for power, side, (inner, outer) in zip((k1, k2), sides, lines, strict=True):
            along, across = (f[0] * c + f[1] * s for f in (inner, outer))
            terms.append(-power * side * (along * (8 * nn + 2 * rest.trace) + 4 * across))
        four = nn * rest.trace_c + 4 * form(rest.r_c_form, c, s) + rest.trace * ncn
        six = 48 * nn * ncn + 8 * four + 2 * (rest.trace * rest.trace_c + 2 * rest.trace_cr)
        terms.append(k3 * sides[0] * sides[1] * six)
        total = total + weight * sum(terms)
        size = size + sum(abs(term) for term in terms) / 7
    return total / (2 * how.pi), size / 2
