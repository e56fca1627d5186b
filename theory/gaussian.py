"""Eq. (17): J_N(q) = E_{z~N} ℓ(q(z), q_t(z)) in closed form, squared loss, linear or two layers."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from theory import _loose
from theory._enclosure import Enclosure
from theory._loose import ArrayLike
from theory._pairs import gamma
from theory._validate import as_matrix, as_vector
from theory.laws import as_matrices

Array = np.ndarray

_EVALUATED = 2.0**-46  # of κ ≤ π from a cosine: fewer than 64 roundings of 2^-53, each at most π


@dataclass(frozen=True, eq=False)
class TwoLayer:
    """q(z) = 1/√m Σ_k c_k φ(w_k·z), Eq. (5) on features; φ is the ReLU.

    Attributes:
        inner: (m, d), one w_k per row.
        outer: (m,), the c_k.
    """

    inner: _loose.Array
    outer: _loose.Array

    def __post_init__(self) -> None:
        inner, outer = as_matrix(self.inner, "inner"), as_vector(self.outer, "outer")
        if len(inner) != len(outer):
            raise ValueError(
                f"inner has {len(inner)} rows and outer {len(outer)} entries: one each per neuron."
            )
        object.__setattr__(self, "inner", inner)
        object.__setattr__(self, "outer", outer)

    def __call__(self, z: ArrayLike) -> Float[Array, " n"]:
        """The values at points z, (n, d)."""
        hidden = np.maximum(as_matrix(z, "z") @ self.inner.T, 0.0)
        return hidden @ self.outer / math.sqrt(len(self.outer))


def gaussian_risk(
    q: "TwoLayer | ArrayLike",
    target: "TwoLayer | ArrayLike",
    covariance: "ArrayLike | None" = None,
) -> Enclosure:
    """Encloses E_{z~N(0,C)} (q(z) − q_t(z))²; C = I gives J_N(q), the common risk of Eq. (17).

    J_s(f) = E_{x~D^s} ℓ(f(x), g(x)) = E_z ℓ(q(z), q_t(z)) is a change of variables for each
    client. It is one number J_N for all only if z has one law, so C_i = I after full whitening,
    and if the labels are one function q_t of z: two conditions, which the caller vouches for.
    With C_i of `normalised_feature_covariance` it is the risk under per-unit BN, the client's own.

    q − q_t is one two-layer function Σ b_k φ(w_k·z) (a linear a·z being φ(a·z) − φ(−a·z)), and
    E φ(u)φ(v) = s_u s_v (sin θ + (π − θ) cos θ)/(2π) for Gaussian u, v with standard deviations s
    and correlation cos θ. So the risk is bᵀKb. Rounding is bounded through ∂K_kl/∂A_kl =
    P(u > 0, v > 0) ≤ ½ and ∂K_kl/∂A_kk ≤ s_l/(4πs_k), A = WCWᵀ.

    Args:
        q: `TwoLayer`, or a vector a for the linear function a·z.
        target: q_t, in the same form.
        covariance: (d, d) C of z, exact as given, or λ for λI; I when left out.

    Raises:
        TypeError, ValueError: functions of different dimensions; entries that are not finite; C
            that is no covariance; a risk beyond float64.
    """
    (w, b), (w_t, b_t) = _neurons(q, "q"), _neurons(target, "target")
    d = w.shape[1]
    if w_t.shape[1] != d:
        raise ValueError(f"q has dimension {d} and target {w_t.shape[1]}: give the same features.")
    w, b = np.vstack([w, w_t]), np.concatenate([b, -b_t])
    c = np.eye(d) if covariance is None else as_matrices(covariance, d, ("z",))[0]
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        kernel, error = _relu_kernel(w, c)
        pairs = b[:, None] * b
        terms = pairs * kernel
    if not (np.isfinite(terms).all() and np.isfinite(error).all()):
        raise ValueError("the risk is beyond the range of float64: rescale the functions.")
    value = math.fsum(terms.ravel())
    # Roundings of b, of two products and of the sum, all relative to the terms.
    slack = 1.01 * float((np.abs(pairs) * error).sum() + 2.0**-49 * np.abs(terms).sum())
    low, high = max(value - slack, 0.0), max(value, 0.0) + slack
    return Enclosure(low, high, "closed form of Gaussian ReLU products, rounding bounded")


def _neurons(function: object, name: str) -> tuple[Float[Array, "m d"], Float[Array, " m"]]:
    if isinstance(function, TwoLayer):
        return function.inner, function.outer / math.sqrt(len(function.outer))
    a = as_vector(function, f"{name} (as the vector of a linear function)")
    return np.vstack([a, -a]), np.array([1.0, -1.0])


def _relu_kernel(w: Array, c: Array) -> tuple[Float[Array, "m m"], Float[Array, "m m"]]:
    """E φ(w_k·z)φ(w_l·z) for z ~ N(0, C), and a bound of its error."""
    d = w.shape[1]
    a = w @ c @ w.T
    error = 1.01 * gamma(2 * d + 2) * (np.abs(w) @ np.abs(c) @ np.abs(w).T) + d * d * 2.0**-1000
    variance, doubt = np.maximum(a.diagonal(), 0.0), error.diagonal()
    scale = np.sqrt(variance)
    product = scale[:, None] * scale
    cosine = np.divide(a, product, out=np.zeros_like(a), where=product > 0)
    cosine = np.clip((cosine + cosine.T) / 2, -1.0, 1.0)
    np.fill_diagonal(cosine, 1.0)
    theta = np.arccos(cosine)
    kernel = product * (np.sin(theta) + (np.pi - theta) * cosine) / (2 * np.pi)
    known = variance > 8 * doubt
    relative = np.divide(doubt, variance, out=np.zeros_like(doubt), where=known)
    bound = 0.5 * error + product * (relative[:, None] + relative + _EVALUATED)
    # Where a neuron's variance drowns in rounding, K ≤ s_k s_l/2 is all that is known.
    most = np.sqrt(variance + doubt)
    both = known[:, None] & known
    return kernel, np.where(both, bound, kernel + 0.5 * most[:, None] * most)
