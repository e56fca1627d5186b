"""Parameters, initialisation and validated inputs of the networks f and f* of Eqs. (5)-(8)."""

from collections.abc import Hashable, Iterable, MappingView, Set
from dataclasses import dataclass
from itertools import islice
from numbers import Integral

import numpy as np
from jaxtyping import Float, Int

from theory import _loose
from theory._loose import Anything, ArrayLike, Flag, Names, Real, Whole
from theory._representable import Sizes, refuse_extremes, refuse_out_of_range
from theory._validate import as_groups, as_label, as_points, as_real_array, flag, positive

Array = np.ndarray

_MOST_CLIENTS = 10**7


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

    v: _loose.Array
    gamma: _loose.Array
    c: _loose.Array
    clients: Names
    alpha: Real
    client_specific: Flag

    def __post_init__(self) -> None:
        """Refuses parameters whose shapes do not fit one another or the BN policy.

        Raises:
            TypeError: v, gamma or c is no real array, or client_specific no boolean.
            ValueError: a shape is not as stated above, or alpha is not positive.
        """
        object.__setattr__(self, "client_specific", flag(self.client_specific, "client_specific"))
        for name, axes in (("v", 2), ("gamma", 2), ("c", 1)):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
                raise TypeError(f"{name} must be a NumPy array of float64, not {_kind(array)}.")
            if array.ndim != axes or 0 in array.shape:
                raise ValueError(
                    f"{name} has shape {array.shape}; it needs {axes} axes, none empty."
                )
        if not len(self.v) == len(self.gamma) == len(self.c):
            raise ValueError(
                f"v, gamma and c have {len(self.v)}, {len(self.gamma)} and {len(self.c)} rows; "
                "each needs one per neuron."
            )
        if not (np.abs(self.c) == 1).all():
            raise ValueError("c must hold the signs 1 and -1 only.")
        positive(self.alpha, "alpha")
        if not isinstance(self.clients, tuple):
            object.__setattr__(self, "clients", _client_names(self.clients))
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
    client_specific: Flag,
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
    refuse_out_of_range("alpha", scale, "choose one of moderate size")
    specific = flag(client_specific, "client_specific")
    rng = np.random.default_rng(at_least(seed, 0, "seed"))
    columns = len(names) if specific else 1
    try:
        direction = rng.standard_normal((m, d))
        signs = rng.choice(np.array([-1.0, 1.0]), size=m)
        gamma = np.repeat(np.linalg.norm(direction, axis=1)[:, None], columns, axis=1)
        v = scale * direction
    except (MemoryError, OverflowError, ValueError):
        raise ValueError(
            f"the parameters of {len(names)} clients do not fit in memory at this width and "
            "dimension: choose a smaller width."
        ) from None
    return Network(v, gamma, signs, names, scale, specific)


def as_inputs(
    network: Network | Anything, x: ArrayLike, client: ArrayLike, covariances: ArrayLike
) -> Inputs:
    """Validates points, labels and covariances against a network; see `predict`."""
    if not isinstance(network, Network):
        raise TypeError(
            f"network must be a Network, such as initialise gives, not {_kind(network)}."
        )
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
    metric = _as_covariances(covariances, len(place), points.shape[1])
    _refuse_no_parameters(network)
    refuse_extremes(Sizes(network.v, network.gamma, network.alpha), points, metric)
    return Inputs(points, column, metric)


def at_least(value: object, least: int, name: str) -> int:
    """An integer not below `least`, or a ValueError/TypeError with advice."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, not {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}.")
    return int(value)


def _client_names(clients: object) -> tuple[Hashable, ...]:
    if isinstance(clients, Integral) and not isinstance(clients, bool):
        count = at_least(clients, 1, "clients")
        given: object = range(min(count, _MOST_CLIENTS + 1))
    else:
        given = clients.tolist() if isinstance(clients, np.ndarray) else clients
    unordered = isinstance(given, Set) and not isinstance(given, MappingView)
    single = isinstance(given, str | bytes) or getattr(given, "ndim", 1) == 0
    if unordered or single or not isinstance(given, Iterable):
        raise TypeError(
            "clients must be a number or a sequence of names in the order of the covariances, "
            f"not {_kind(clients)}."
        )
    listed = list(islice(given, _MOST_CLIENTS + 1))
    if len(listed) > _MOST_CLIENTS:
        raise ValueError(f"clients are more than {_MOST_CLIENTS}: each takes a column of gamma.")
    names = tuple(as_label(name, f"name {i} in clients") for i, name in enumerate(listed))
    if not names or len(set(names)) < len(names):
        raise ValueError("clients must name every client once, and at least one client.")
    return names


def _refuse_no_parameters(network: Network) -> None:
    for name in ("v", "gamma"):
        if not np.isfinite(getattr(network, name)).all():
            raise ValueError(f"{name} of the network holds NaN or infinity: start from another.")
    zero = ~network.v.any(axis=1)
    if zero.any():
        raise ValueError(
            f"row {int(zero.argmax())} of v is zero: its neuron has no direction, drop it."
        )


def _kind(value: object) -> str:
    return f"{value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__


def _as_covariances(
    covariances: object, clients: int, dimension: int
) -> Float[Array, "N d d"] | float:
    """(N, d, d) symmetric positive definite matrices, or a positive scale."""
    if getattr(covariances, "ndim", int(isinstance(covariances, list | tuple))) == 0:
        scale = positive(covariances, "covariances (as a scale λ of S_i = λI)")
        refuse_out_of_range("covariances", scale, "rescale them")
        return scale
    matrices = as_real_array(covariances, "covariances")
    if matrices.shape != (clients, dimension, dimension):
        raise ValueError(
            f"covariances has shape {matrices.shape}; give ({clients}, {dimension}, {dimension}), "
            "one matrix per client in the network's order, or one number λ for S_i = λI."
        )
    for i, matrix in enumerate(matrices):
        size = np.abs(matrix).max()
        if size > 0:
            refuse_out_of_range(f"covariances[{i}]", float(size), "rescale them")
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
