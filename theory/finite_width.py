"""Outputs, Jacobian and kernels of f and f*, Eqs. (5)-(9), at width m.

For a point x of client i,

    f(x) = 1/√m Σ_k c_k φ(γ_{k,i} v_k·x / ‖v_k‖_{S_i}),   ‖v‖_S = √(vᵀ S v),   φ(s) = max(s, 0).

Aggregated BN (f) ties γ over the clients; client-specific BN (f*) does not. v is shared by both.
The kernels of gradient flow on (V, γ), c fixed, are Λ = V/α² + G with V/α² = J_v J_vᵀ and
G = J_γ J_γᵀ. Everything is float64 and built from matrix products: no (n, m, d) array but in
`jacobian`.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from theory._loose import Anything, ArrayLike
from theory.network import Array, Inputs, Network, as_inputs, initialise

__all__ = ["Jacobian", "Kernels", "Network", "initialise", "jacobian", "kernels", "predict"]


@dataclass(frozen=True)
class Kernels:
    """Direction part V, magnitude part G and Λ = V/α² + G of Eq. (9), each (n, n)."""

    V: Float[Array, "n n"]
    G: Float[Array, "n n"]
    Lambda: Float[Array, "n n"]


@dataclass(frozen=True)
class Jacobian:
    """Derivatives of the n outputs.

    Attributes:
        v: (n, m·d), the derivative by v in row-major order; v vᵀ = V/α².
        gamma: (n, m·columns), by gamma in row-major order; gamma gammaᵀ = G (or G*).
    """

    v: Float[Array, "n md"]
    gamma: Float[Array, "n mg"]


def predict(
    network: Network | Anything, x: ArrayLike, client: ArrayLike, covariances: ArrayLike
) -> Float[Array, " n"]:
    """Outputs of f or f*, Eq. (7).

    Args:
        network: the parameters.
        x: (n, d) points, centred by their client's mean beforehand (`theory.centre`).
        client: n labels, each one of `network.clients`.
        covariances: (N, d, d) in the order of `network.clients`, or a number λ for S_i = λI.

    Raises:
        ValueError: shapes do not fit, a label is unknown, or a covariance is not positive definite.
    """
    inputs = as_inputs(network, x, client, covariances)
    activation, gamma, _ = activation_of(network, inputs)
    return (activation * gamma) @ network.c / np.sqrt(network.width)


def jacobian(
    network: Network | Anything, x: ArrayLike, client: ArrayLike, covariances: ArrayLike
) -> Jacobian:
    """Explicit Jacobian of f or f* by v and gamma: n·m·(d + columns) numbers, for small problems.

    The derivative of φ at 0 is taken as 0. Arguments and errors as for `predict`.
    """
    inputs = as_inputs(network, x, client, covariances)
    activation, slope, shrink = weights_of(network, inputs)
    by_v = slope[:, :, None] * inputs.x[:, None, :]
    for i in np.unique(inputs.column):
        rows = inputs.column == i
        by_v[rows] -= shrink[rows][:, :, None] * image_of(inputs.covariances, int(i), network.v)
    by_gamma = np.zeros((len(inputs.x), network.width, network.gamma.shape[1]))
    signed = activation * network.c / np.sqrt(network.width)
    np.put_along_axis(
        by_gamma, gamma_rows(network, inputs)[:, None, None], signed[:, :, None], axis=2
    )
    n = len(inputs.x)
    return Jacobian(by_v.reshape(n, -1), by_gamma.reshape(n, -1))


def kernels(
    network: Network | Anything, x: ArrayLike, client: ArrayLike, covariances: ArrayLike
) -> Kernels:
    """V(t), G(t) (or G*(t)) and Λ(t) = V/α² + G of Eq. (9) at the network's parameters.

    Arguments and errors as for `predict`. The work is O(n² m) for S_i = λI and
    O(N n d m + n² m) otherwise.
    """
    return kernels_of(network, as_inputs(network, x, client, covariances))


def kernels_of(network: Network, inputs: Inputs) -> Kernels:
    """`kernels` on validated inputs."""
    activation, slope, shrink = weights_of(network, inputs)
    magnitude = activation @ activation.T / network.width
    if network.client_specific:
        magnitude *= inputs.column[:, None] == inputs.column[None, :]
    direction = (inputs.x @ inputs.x.T) * (slope @ slope.T)
    if isinstance(inputs.covariances, float):
        # S = λI: the three corrections below collapse into one.
        reach = shrink * np.linalg.norm(network.v, axis=1) * inputs.covariances
        direction -= reach @ reach.T
    else:
        direction += _anisotropic_correction(network, inputs, slope, shrink)
    direction = (direction + direction.T) / 2
    return Kernels(network.alpha**2 * direction, magnitude, direction + magnitude)


def gamma_rows(network: Network, inputs: Inputs) -> Int[Array, " n"]:
    """The column of gamma that each point uses."""
    return inputs.column if network.client_specific else np.zeros_like(inputs.column)


def metrics_of(inputs: Inputs) -> list[int]:
    """The clients whose covariances differ: those that have points, or one for S_i = λI."""
    return np.unique(inputs.column).tolist() if isinstance(inputs.covariances, np.ndarray) else [0]


def image_of(
    covariances: Float[Array, "N d d"] | float, i: int, v: Float[Array, "m d"]
) -> Float[Array, "m d"]:
    """S_i v_k for every neuron."""
    return v @ covariances[i] if isinstance(covariances, np.ndarray) else covariances * v


def activation_of(
    network: Network, inputs: Inputs
) -> tuple[Float[Array, "n m"], Float[Array, "n m"], Float[Array, "n m"]]:
    """(φ', γ, ‖v‖_S) per point and neuron; φ' = 1{γ v·x > 0} v·x/‖v‖_S, so f = Σ cγφ'/√m.

    Training can drive a γ below zero; then φ' is negative and γφ' still equals φ(γ v·x/‖v‖_S).
    """
    norms = np.empty((len(network.clients), network.width))
    for i in metrics_of(inputs):
        norms[i] = np.sqrt((image_of(inputs.covariances, i, network.v) * network.v).sum(axis=1))
    shared = not isinstance(inputs.covariances, np.ndarray)
    norm = norms[np.zeros_like(inputs.column) if shared else inputs.column]
    gamma = network.gamma.T[gamma_rows(network, inputs)]
    product = inputs.x @ network.v.T
    return np.where(product * gamma > 0, product, 0.0) / norm, gamma, norm


def weights_of(
    network: Network, inputs: Inputs
) -> tuple[Float[Array, "n m"], Float[Array, "n m"], Float[Array, "n m"]]:
    """(φ', w, e) with ∂f_p/∂v_k = w_pk x_p − e_pk S v_k and ∂f_p/∂γ_k = c_k φ'_pk/√m."""
    activation, gamma, norm = activation_of(network, inputs)
    slope = (activation != 0) * gamma * network.c / (np.sqrt(network.width) * norm)
    return activation, slope, slope * activation / norm


def _anisotropic_correction(
    network: Network,
    inputs: Inputs,
    slope: Float[Array, "n m"],
    shrink: Float[Array, "n m"],
) -> Float[Array, "n n"]:
    """The terms −⟨x_p, e S v⟩ − ⟨e S v, x_q⟩ + ⟨e S_i v, e S_j v⟩ of J_v J_vᵀ."""
    clients = [int(i) for i in np.unique(inputs.column)]
    rows = {i: np.flatnonzero(inputs.column == i) for i in clients}
    image = {i: image_of(inputs.covariances, i, network.v) for i in clients}
    out = np.zeros((len(inputs.x),) * 2)
    for i in clients:
        cross = shrink[rows[i]] @ (slope * (inputs.x @ image[i].T)).T
        out[rows[i]] -= cross
        out[:, rows[i]] -= cross.T
        for j in clients:
            weight = (image[i] * image[j]).sum(axis=1)
            out[np.ix_(rows[i], rows[j])] += (shrink[rows[i]] * weight) @ shrink[rows[j]].T
    return out
