"""Covariances S_i of clients: from points, or as given in one of several forms."""

from collections.abc import Hashable, Mapping

import numpy as np
from jaxtyping import Float

from theory._loose import ArrayLike, Real
from theory._validate import Groups, as_groups, as_points, as_real_array, non_negative, positive

Array = np.ndarray


def client_covariances(
    x: ArrayLike, client: ArrayLike, ridge: Real = 0.0
) -> dict[Hashable, Float[Array, "d d"]]:
    """S_i of Assumption III.1: the covariance of each client's points, with a ridge if asked for.

    S_i = (1/M_i) Σ_p (x_p - x̄)(x_p - x̄)ᵀ over the client's points. With fewer than d + 1 points it
    is singular; a ridge ρ adds ρ (tr S_i/d) I, which moves every ‖v‖²_S by ρ times its mean over
    directions, and is to be stated with the result.

    Args:
        x: (n, d) points, centred or not.
        client: n labels.
        ridge: ρ >= 0.

    Returns:
        For every client, in order of first appearance, its (d, d) covariance.

    Raises:
        TypeError: points or ridge that are no real numbers.
        ValueError: bad points, labels or ridge; a client whose points are all the same.
    """
    points = as_points(x)
    groups, amount = as_groups(client, len(points)), non_negative(ridge, "ridge")
    out: dict[Hashable, Array] = {}
    for name, rows in zip(groups.names, groups.rows, strict=True):
        own = points[rows]
        own = own - own.mean(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            matrix = own.T @ own / len(rows)
        trace = float(np.trace(matrix))
        if not (np.isfinite(matrix).all() and trace >= 1e-280):  # below, squares lose digits
            what = "too large" if trace > 1 or np.isnan(trace) else "too small"
            why = (
                f"are {what} to square in float64: rescale x"
                if own.any()
                else ("are all the same: drop the client, or give it more points")
            )
            raise ValueError(f"client {name!r} has no covariance: its points {why}.")
        matrix[np.diag_indices_from(matrix)] += amount * trace / len(matrix)
        out[name] = matrix
    return out


def as_covariances(
    covariances: object, groups: Groups, dimension: int
) -> list[float] | list[Float[Array, "d d"]]:
    """One covariance per client in the groups' order: numbers λ_i for λ_i I, or matrices.

    The same array object serves all clients where one is given.

    Raises:
        TypeError: no real numbers.
        ValueError: a wrong shape, a client without a covariance, not symmetric, a zero matrix, or
            one that is clearly not positive semidefinite.
    """
    if hasattr(covariances, "index") and hasattr(covariances, "to_dict"):
        raise TypeError(
            "covariances is a table with an index, which is read neither by position nor by name: "
            "pass a mapping from client to covariance (a Series' .to_dict()) or an array."
        )
    if isinstance(covariances, Mapping):
        missing = [name for name in groups.names if name not in covariances]
        if missing:
            raise ValueError(f"covariances has no entry for client {missing[0]!r}: add it.")
        given = [covariances[name] for name in groups.names]
        if all(map(_is_number, given)):
            pairs = zip(groups.names, given, strict=True)
            return [positive(value, f"covariances[{name!r}]") for name, value in pairs]
        return _distinct(
            [
                _matrix(v, dimension, f"covariances[{n!r}]")
                for n, v in zip(groups.names, given, strict=True)
            ]
        )
    array = as_real_array(covariances, "covariances")
    if array.ndim == 0:
        return [positive(covariances, "covariances (as a scale λ of S_i = λI)")] * len(groups.names)
    if array.shape == (dimension, dimension):
        return [_matrix(array, dimension, "covariances")] * len(groups.names)
    if array.shape != (len(groups.names), dimension, dimension):
        raise ValueError(
            f"covariances has shape {array.shape}; give one number λ for S_i = λI, one "
            f"({dimension}, {dimension}) matrix for all clients, ({len(groups.names)}, "
            f"{dimension}, {dimension}) in the order in which clients first appear, or a mapping "
            "from client to matrix."
        )
    return _distinct([_matrix(m, dimension, f"covariances[{i}]") for i, m in enumerate(array)])


def _is_number(value: object) -> bool:
    """Whether it has no axes; rows of different lengths have some, which NumPy cannot tell."""
    try:
        return np.ndim(value) == 0  # type: ignore[arg-type]
    except ValueError:
        return False


def _distinct(matrices: list[Array]) -> list[Array]:
    """Makes equal matrices the same object."""
    out: list[Array] = []
    for matrix in matrices:
        out.append(next((m for m in out if np.array_equal(m, matrix)), matrix))
    return out


def _matrix(value: object, dimension: int, name: str) -> Float[Array, "d d"]:
    matrix = as_real_array(value, name)
    if matrix.shape != (dimension, dimension):
        raise ValueError(
            f"{name} has shape {matrix.shape}; ({dimension}, {dimension}) is needed, as x has "
            f"{dimension} columns."
        )
    size = float(np.abs(matrix).max())
    if size == 0:
        raise ValueError(f"{name} is zero: BN cannot divide by it; drop the client.")
    if float(np.abs(matrix - matrix.T).max()) > 1e-12 * size:
        raise ValueError(f"{name} is not symmetric; pass (S + S.T) / 2.")
    if not (matrix.diagonal() >= -1e-12 * size).all():
        raise ValueError(f"{name} has a negative variance on its diagonal: it is no covariance.")
    return matrix / 2 + matrix.T / 2  # the sum may overflow
