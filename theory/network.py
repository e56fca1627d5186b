"""Parameters, initialisation and validated inputs of the networks f and f* of Eqs. (5)-(8)."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from jaxtyping import Float, Int

from theory._loose import ArrayLike, Real, Whole
from theory._validate import as_groups, as_points, positive

Array = np.ndarray


@dataclass(frozen=True)
class Network:
    """Parameters of f (aggregated BN) or f* (client-specific BN), Eq. (7).

    Attributes:
        v: (m, d) directions, shared by all clients.
        gamma: (m, 1) for aggregated BN, (m, N) for client-specific BN.
        c: (m,) signs ±1 of the top layer, never trained.
        clients: the N client names; `gamma`'s columns and the covariances follow this order.
        alpha: scale of the initialisation, Eq. (8); it weighs V in Λ = V/α² + G.
        client_specific: False for f, True for f*.
    """

    v: Float[Array, "m d"]
    gamma: Float[Array, "m g"]
    c: Float[Array, " m"]
    clients: tuple[Hashable, ...]
    alpha: float
    client_specific: bool

    def __post_init__(self) -> None:
        """Refuses a gamma whose columns do not fit the BN policy.

        Raises:
            ValueError: gamma has not one column (f) or one per client (f*).
        """
        columns = len(self.clients) if self.client_specific else 1
        if self.gamma.shape[1] != columns:
            raise ValueError(
                f"gamma has {self.gamma.shape[1]} columns where {columns} are needed: one per "
                "client for client-specific BN, one in all for aggregated BN."
            )

    @property
    def width(self) -> int:
        """Number m of hidden neurons."""
        return self.v.shape[0]

    @property
    def dimension(self) -> int:
        """Number d of input features."""
        return self.v.shape[1]


@dataclass(frozen=True)
class Inputs:
    """Validated points: each row's client column, and S_i as (N, d, d) or as λ for S_i = λI."""

    x: Float[Array, "n d"]
    column: Int[Array, " n"]
    covariances: Float[Array, "N d d"] | float


def initialise(
    width: Whole,
    dimension: Whole,
    clients: Whole | Iterable[Hashable],
    *,
    alpha: Real,
    seed: Whole,
    client_specific: bool,
) -> Network:
    """Draws a network as Eq. (8): v_k ~ N(0, α²I), c_k uniform on ±1, γ_{k,i} = ‖v_k‖₂/α.

    The same seed gives f and f* the same v, c and γ, so that they agree at t = 0.

    Args:
        width: number m of hidden neurons, at least 1.
        dimension: number d of input features, at least 1.
        clients: the client names in the order of the covariances, or their number N (names 0..N-1).
        alpha: scale of v at the start, positive.
        seed: non-negative integer.
        client_specific: False draws f, True draws f*.

    Raises:
        ValueError, TypeError: an argument is outside the range stated above.
    """
    m = at_least(width, 1, "width")
    d = at_least(dimension, 1, "dimension")
    names = _client_names(clients)
    scale = positive(alpha, "alpha")
    rng = np.random.default_rng(at_least(seed, 0, "seed"))
    direction = rng.standard_normal((m, d))
    signs = rng.choice(np.array([-1.0, 1.0]), size=m)
    columns = len(names) if client_specific else 1
    gamma = np.repeat(np.linalg.norm(direction, axis=1)[:, None], columns, axis=1)
    return Network(scale * direction, gamma, signs, names, scale, bool(client_specific))


def as_inputs(network: Network, x: ArrayLike, client: ArrayLike, covariances: ArrayLike) -> Inputs:
    """Validates points, labels and covariances against a network; see `predict`."""
    points = as_points(x)
    if points.shape[1] != network.dimension:
        raise ValueError(
            f"x has {points.shape[1]} features and the network {network.dimension}; "
            "initialise the network with dimension = x.shape[1]."
        )
    groups = as_groups(client, len(points))
    place = {name: i for i, name in enumerate(network.clients)}
    column = np.empty(len(points), dtype=np.intp)
    for name, rows in zip(groups.names, groups.rows, strict=True):
        if name not in place:
            raise ValueError(
                f"Client {name!r} is not one of the network's clients "
                f"({', '.join(map(repr, network.clients[:8]))}{', …' * (len(place) > 8)}); "
                "name every client in initialise(clients=…)."
            )
        column[rows] = place[name]
    return Inputs(points, column, _as_covariances(covariances, len(place), points.shape[1]))


def at_least(value: object, least: int, name: str) -> int:
    """An integer not below `least`, or a ValueError/TypeError with advice."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, not {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}.")
    return int(value)


def _client_names(clients: object) -> tuple[Hashable, ...]:
    if isinstance(clients, Integral) and not isinstance(clients, bool):
        return tuple(range(at_least(clients, 1, "clients")))
    if isinstance(clients, str | bytes) or not isinstance(clients, Iterable):
        raise TypeError(f"clients must be a number or a sequence of names, not {clients!r}.")
    names = tuple(clients.tolist() if isinstance(clients, np.ndarray) else clients)
    if not names or len(set(names)) < len(names):
        raise ValueError("clients must name every client once, and at least one client.")
    return names


def _as_covariances(
    covariances: object, clients: int, dimension: int
) -> Float[Array, "N d d"] | float:
    """(N, d, d) symmetric positive definite matrices, or a positive scale."""
    if np.ndim(covariances) == 0:  # pyright: ignore[reportArgumentType]
        return positive(covariances, "covariances (as a scale λ of S_i = λI)")
    matrices = np.array(covariances, dtype=np.float64)
    if matrices.shape != (clients, dimension, dimension):
        raise ValueError(
            f"covariances has shape {matrices.shape}; give ({clients}, {dimension}, {dimension}), "
            "one matrix per client in the network's order, or one number λ for S_i = λI."
        )
    if not np.isfinite(matrices).all():
        raise ValueError("covariances holds NaN or infinity; remove or repair those entries.")
    for i, matrix in enumerate(matrices):
        size = np.abs(matrix).max()
        if np.abs(matrix - matrix.T).max() > 1e-12 * size:
            raise ValueError(f"covariances[{i}] is not symmetric; pass (S + S.T) / 2.")
        spectrum = np.linalg.eigvalsh(matrix)
        if spectrum[0] <= dimension * np.finfo(float).eps * spectrum[-1]:
            raise ValueError(
                f"covariances[{i}] is not positive definite (smallest eigenvalue "
                f"{spectrum[0]:.3g}, largest {spectrum[-1]:.3g}); add a ridge such as "
                "0.01·tr(S)/d·I and report it, or reduce the dimension."
            )
    return (matrices + matrices.transpose(0, 2, 1)) / 2
