"""A bound of ‖ΔΛ‖₂, the distance of the computed Λ of Eq. (9) from that of the same network.

For neuron k and point p of client i let s = v_k·x_p, n = ‖v_k‖_S, K = |γ|/(√m n), and

    w = 1{γs > 0} K,   a = φ(±s)/n,   e = w a/n.

Up to signs Λ_pq = Σ_k ⟨w_p x_p − e_p S_i v, w_q x_q − e_q S_j v⟩ + a_p a_q/m, the latter masked
for f*. With z = ‖S_i v_k‖ and T = w‖x‖ + e z the absolute values of all that is summed in an entry
lie below (TTᵀ + aaᵀ/m)_pq. Two sources of error:

* The sums over m neurons and d features, at most m + 3d + 8 roundings a term: an entry errs by
  γ (TTᵀ + aaᵀ/m)_pq, and ‖TTᵀ‖₂ <= ‖T‖_F².
* w, a, e and S v are themselves computed, S v with the error γ_d‖|S||v|‖. If |Δ| <= D for T's
  entries, then the matrix errs by at most TDᵀ + DTᵀ + DDᵀ, a sum over neurons of matrices of norm
  <= 2‖T_k‖‖D_k‖ + ‖D_k‖². Let n be wrong by the factor 1 + η, η <= 1/8 (`norm_error`), and s by
  τ = γ_d |x|·|v|. As φ is Lipschitz and (1 + η)³ − 1 <= 4η, a is wrong by
  (4η + 16u)a + 1.25τ/n and e by (4η + 16u)e + 1.5Kτ/n²; w by (4η + 16u)w, but by up to 1.25K
  where |s| <= 2τ, as the neuron may be on the other side.

The factor 1.01 covers the evaluation of the bound itself. Over- and underflow are left out.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from theory._loose import Anything, ArrayLike
from theory._pairs import UNIT_ROUNDOFF, gamma
from theory._rounding import LARGEST, norm_error
from theory.finite_width import activation_of, image_of, metrics_of
from theory.network import Array, Inputs, Network, as_inputs

_CHUNK = 256  # neurons at a time: what belongs to them stays in the cache


def kernels_error(
    network: Network | Anything, x: ArrayLike, client: ArrayLike, covariances: ArrayLike
) -> float:
    """Bound of ‖ΔΛ‖₂ for Λ of `kernels` with the same arguments; derived in this module.

    Infinite where a covariance is so ill-conditioned that ‖v‖_S has no correct digit.
    Arguments and errors as for `predict`.
    """
    return kernels_error_of(network, as_inputs(network, x, client, covariances))


def kernels_error_of(network: Network, inputs: Inputs) -> float:
    """`kernels_error` on validated inputs."""
    m, d = network.v.shape
    squares = factors = 0.0
    for start in range(0, m, _CHUNK):
        some = slice(start, start + _CHUNK)
        part = replace(network, v=network.v[some], gamma=network.gamma[some], c=network.c[some])
        sizes, errors = _of_neurons(part, inputs)
        squares, factors = squares + sizes, factors + errors
    return 1.01 * (gamma(m + 3 * d + 16) * squares + factors) / m


def _of_neurons(network: Network, inputs: Inputs) -> tuple[float, float]:
    """m‖T‖_F² + ‖a‖_F², and m times the bound of what the errors of T and a do, of some neurons."""
    active, weight, norm = activation_of(network, inputs)
    image, blur, relative = _images(network, inputs)
    if not (relative <= LARGEST).all():
        return np.inf, np.inf
    active, relative = np.abs(active), 4 * relative + 16 * UNIT_ROUNDOFF
    lengths = np.linalg.norm(inputs.x, axis=1)[:, None]
    full = np.abs(weight) / norm
    doubt = 1.01 * gamma(network.dimension) * (np.abs(inputs.x) @ np.abs(network.v).T)
    edge = np.abs(inputs.x @ network.v.T) <= 2 * doubt
    doubt /= norm
    slope = (active != 0) * full
    shrink = slope * active / norm
    terms = lengths * slope + image * shrink
    wrong = lengths * np.where(edge, 1.25 * full, relative * slope)
    wrong_shrink = relative * shrink + 1.5 * full * doubt / norm
    wrong += image * wrong_shrink + blur * (shrink + wrong_shrink)
    factors = _product_error(terms, wrong) + _product_error(
        active, relative * active + 1.25 * doubt
    )
    return float((terms * terms).sum() + (active * active).sum()), factors


def _images(
    network: Network, inputs: Inputs
) -> tuple[Float[Array, "k m"], Float[Array, "k m"], Float[Array, "k m"]]:
    """‖S_i v_k‖, the error of S_i v_k and the relative one of ‖v_k‖_S, per point and neuron.

    One row serves all points for S_i = λI.
    """
    v, d, s = network.v, network.dimension, inputs.covariances
    size = np.empty((len(network.clients), network.width))
    blur, relative = np.empty_like(size), np.empty_like(size)
    for i in metrics_of(inputs):
        image = image_of(s, i, v)
        reach = image_of(np.abs(s), i, np.abs(v))
        size[i] = np.linalg.norm(image, axis=1)
        blur[i] = 1.01 * gamma(d) * np.linalg.norm(reach, axis=1)
        relative[i] = norm_error((reach * np.abs(v)).sum(axis=1), (image * v).sum(axis=1), d)
    rows = inputs.column if isinstance(s, np.ndarray) else np.zeros(1, dtype=np.intp)
    return size[rows], blur[rows], relative[rows]


def _product_error(terms: Float[Array, "n m"], wrong: Float[Array, "n m"]) -> float:
    """Bound of the norm of ΔT Tᵀ + T ΔTᵀ + ΔT ΔTᵀ where |ΔT| <= `wrong`."""
    size, error = np.linalg.norm(terms, axis=0), np.linalg.norm(wrong, axis=0)
    return float(((2 * size + error) * error).sum())
