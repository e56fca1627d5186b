"""Quadrature of 1/ρ^k for ρ = ωᵀSω on the unit sphere, with a bound of its relative error.

∫_0^1 u^{a-1}(1 - u)^{k-1} (u + (1 - u)z)^{-(a+k)} du = B(a, k) z^{-k} for z > 0. Nodes u_l with
weights w_l of the density a u^{a-1} therefore give, with Pochhammer's (a + 1)_{k-1},

    z^{-k} ≈ Σ_l w_l (a + 1)_{k-1}/(k - 1)! (1 - u_l)^{k-1} (u_l + (1 - u_l)z)^{-(a+k)},

and with z = ωᵀSω/λ each term is the density of a Gaussian direction with covariance
B_l = (u_l I + (1 - u_l)S/λ)^{-1}: a + k = (d + deg)/2 for a polynomial of degree deg in ω,
so that a = d/2 for G (k = 1, deg = 2) and a = d/2 - 1 for V (deg = 2(k - 1)).
All weights are positive, and the relative error e_k(z) is a function of one variable.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import linalg

from theory import _analytic
from theory._analytic import Pieces
from theory._pairs import UNIT_ROUNDOFF

_GAUSS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48)
_TRAPEZOID = (48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 512)


@dataclass(frozen=True)
class Rule:
    """Nodes of the u-integral.

    Attributes:
        a: the exponent of its density a u^{a-1}.
        scale: λ, by which the eigenvalues of S are divided.
        u, v: nodes and 1 - nodes, both accurate.
        log_weight: logarithms of the weights.
    """

    a: float
    scale: float
    u: Float[np.ndarray, " l"]
    v: Float[np.ndarray, " l"]
    log_weight: Float[np.ndarray, " l"]

    def factor(self, k: int) -> float:
        """(a + 1)_{k-1}/(k - 1)!."""
        return math.prod(((self.a + j) / j for j in range(1, k)), start=1.0)

    def sums(self, k: int, zeta: Float[np.ndarray, " s"]) -> Float[np.ndarray, " s"]:
        """z^k times the approximation of z^{-k}, which should be 1, at z = e^ζ."""
        total, power = np.zeros_like(zeta), self.a + k
        z = np.exp(zeta)
        with np.errstate(divide="ignore"):
            logs = self.log_weight + (k - 1) * np.log(self.v) if k > 1 else self.log_weight
        for u, v, log in zip(self.u, self.v, logs, strict=True):
            if log > -np.inf:
                total += np.exp(log + k * zeta - power * np.log(u + v * z))
        return self.factor(k) * total

    def error(self, k: int, low: float, high: float) -> Pieces:
        """Bounds |e_k| over low <= z <= high."""
        power = self.a + k
        size = max(abs(math.log(low)), abs(math.log(high)), 1.0) + float(
            np.abs(self.log_weight[np.isfinite(self.log_weight)]).max(initial=0.0)
        )
        rounding = (4 * power + 4 * size + 40) * 2 * UNIT_ROUNDOFF
        return _analytic.suprema(
            lambda zeta: self.sums(k, zeta), math.log(low), math.log(high), power, rounding
        )


def candidates(a: float, low: float, high: float) -> list[tuple[str, int]]:
    """Rules to try, cheapest first: the kind and the number of nodes."""
    if a == 0:
        return [("gauss", 1)]
    if high <= low * (1 + 1e-13):
        return [("gauss", 1), ("gauss", 2)]
    return [("gauss", nodes) for nodes in _GAUSS] + [("trapezoid", nodes) for nodes in _TRAPEZOID]


def scales(a: float, s: Float[np.ndarray, " d"]) -> tuple[float, ...]:
    """Values of λ worth a trial for Gauss rules: the mean serves where ωᵀSω concentrates."""
    low, high, mean = float(s.min()), float(s.max()), float(s.mean())
    geometric = math.sqrt(low * high)
    return (mean, geometric) if a > 0 and mean > 1.5 * geometric else (mean,)


def rule(kind: str, a: float, scale: float, nodes: int, low: float) -> Rule:
    """Builds a rule; `low` is the least eigenvalue that it is to serve."""
    if a == 0:  # the density degenerates to a point mass
        return Rule(a, scale, np.zeros(1), np.ones(1), np.zeros(1))
    if kind == "gauss":
        u, v, log_weight = _gauss(a, nodes)
    else:
        u, v, log_weight = _trapezoid(a, low / scale, nodes)
    return Rule(a, scale, u, v, log_weight)


def _gauss(a: float, nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gauss-Jacobi for a u^{a-1} on [0, 1]: Golub-Welsch nodes, weights by Christoffel's sum.

    The three-term recurrence of shifted Jacobi polynomials with exponents a - 1 at 0 and 0 at 1.
    """
    k = np.arange(nodes, dtype=np.float64)
    s = 2 * k + a - 1
    with np.errstate(invalid="ignore", divide="ignore"):
        diagonal = 0.5 * (1 + (a - 1) ** 2 / (s * (s + 2)))
    diagonal[0] = a / (a + 1)
    j = k[1:]
    t = 2 * j + a - 1
    squared = j * j * (j + a - 1) ** 2 / (t * t * (t + 1) * (t - 1))
    beta = np.sqrt(squared)
    u = diagonal[:1]
    if nodes > 1:
        u = np.asarray(linalg.eigvalsh_tridiagonal(diagonal, beta))
    # Orthonormal polynomials at the nodes, scaled on the way: their squares may overflow.
    before, now = np.zeros(nodes), np.ones(nodes)
    total, exponent = np.ones(nodes), np.zeros(nodes)
    for i in range(nodes - 1):
        previous = beta[i - 1] if i else 0.0
        before, now = now, ((u - diagonal[i]) * now - previous * before) / beta[i]
        total = total + now * now
        shift = 0.5 * np.log2(total).round()
        before, now, total = before * 2.0**-shift, now * 2.0**-shift, total * 4.0**-shift
        exponent += shift
    return u, 1 - u, -np.log(total) - 2 * exponent * math.log(2)


def _trapezoid(a: float, low: float, nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Equal steps of ξ with u/(1 - u) = a exp(e^{-ξ} - ξ), which decays doubly on one side."""
    left, right = -3.75, max(1.0, math.log(max(a, 1e-3) / low) + 40 / a)
    xi = np.linspace(left, right, nodes)
    y = math.log(a) + np.exp(-xi) - xi
    step = (right - left) / (nodes - 1)
    log_u, log_v = -np.logaddexp(0, -y), -np.logaddexp(0, y)
    log_weight = math.log(a * step) + a * log_u + log_v + np.log1p(np.exp(-xi))
    return np.exp(log_u), np.exp(log_v), log_weight
