"""Eq. (17): do BN features of Gaussian clients have one law? After full whitening, not per unit.

For x ~ N(0, S_i) the features Vx are N(0, Σ_i), Σ_i = VS_iVᵀ. Per-unit BN divides each by its own
standard deviation and leaves the correlations, v_kᵀS_iv_l/(‖v_k‖_{S_i} ‖v_l‖_{S_i}), which are the
client's. Full whitening, z = Σ_i^(−1/2) Vx, leaves the projector onto the range of Σ_i, which for
positive definite S_i is the range of V: one law for all, N(0, I) if V has full row rank.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from theory import _loose
from theory._certify import rounded
from theory._enclosure import Enclosure
from theory._loose import Anything, ArrayLike, Covariances
from theory._pairs import gamma
from theory._validate import Groups, as_label, as_matrix, as_real_array
from theory.covariances import as_covariances
from theory.spectrum import smallest_eigenvalue

Array = np.ndarray

TRANSFORMS = ("per-unit", "whitened")


@dataclass(frozen=True, eq=False)
class FeatureLaws:
    """Covariances of the features of Gaussian clients, and whether they are the same.

    Attributes:
        transform: "per-unit" or "whitened".
        clients: their names.
        covariances: (N, m, m) of z, computed in float64.
        pair: the two clients that differ most.
        units: the entry (k, l) at which they do.
        difference: |Cov_i(z_k, z_l) − Cov_j(z_k, z_l)| there, rounding included.
        common: True if all laws are proven equal, False if two are proven different, else None.
        reason: why.
    """

    transform: str
    clients: _loose.Names
    covariances: _loose.Array
    pair: _loose.Names
    units: tuple[int, int]
    difference: Enclosure
    common: bool | None
    reason: str


def normalised_feature_covariance(
    directions: ArrayLike, covariance: ArrayLike
) -> Float[Array, "m m"]:
    """Cov(z_k, z_l) = v_kᵀSv_l/(‖v_k‖_S ‖v_l‖_S) of z_k = v_k·x/‖v_k‖_S, per-unit BN of Eq. (6).

    Args:
        directions: (m, d), one v_k per row.
        covariance: (d, d) S of the client, or λ for λI.

    Raises:
        TypeError, ValueError: bad shapes or entries; S that is no covariance; a unit without
            variance, which BN cannot divide by.
    """
    v = as_matrix(directions, "directions")
    return _correlations(v, as_matrices(covariance, v.shape[1], ("S",))[0], "S")


def whitened_feature_covariance(
    directions: ArrayLike, covariance: ArrayLike
) -> Float[Array, "m m"]:
    """Cov(z) of z = Σ^(−1/2) Vx, Σ = VSVᵀ: I up to rounding, or a projector where Σ is singular.

    Arguments and errors as for `normalised_feature_covariance`; the root is that of the
    pseudo-inverse.
    """
    v = as_matrix(directions, "directions")
    return _whitened(v, as_matrices(covariance, v.shape[1], ("S",))[0], "S")


def feature_laws(
    directions: ArrayLike, covariances: Covariances, transform: str | Anything = "per-unit"
) -> FeatureLaws:
    """Whether Gaussian clients N(0, S_i) have features of one law, the hypothesis of Eq. (18).

    The difference is certified: each vᵀSv' carries its rounding bound γ_{2d+2} |v|ᵀ|S||v'|. That
    whitened laws agree is proven by λ_min(S_i) > 0, certified, for every client, with S_i exact as
    given. Clients that are not Gaussian, or not centred, are outside of what this decides: equal
    covariances are then no equal laws.

    Args:
        directions: (m, d), the v_k that all clients share.
        covariances: (N, d, d), or a mapping from client to (d, d) or to λ for λI; two at least,
            the unseen client among them.
        transform: "per-unit" or "whitened".

    Raises:
        TypeError, ValueError: as `normalised_feature_covariance`; fewer than two clients; another
            transform.
    """
    v = as_matrix(directions, "directions")
    names = _names(covariances)
    if not isinstance(transform, str) or transform not in TRANSFORMS:
        raise ValueError(f"transform must be one of {TRANSFORMS}, not {transform!r}.")
    matrices = as_matrices(covariances, v.shape[1], names)
    law = _correlations if transform == "per-unit" else _whitened
    laws = np.array([law(v, s, name) for s, name in zip(matrices, names, strict=True)])
    spread = np.ptp(laws, axis=0)
    k, other = (int(unit) for unit in np.unravel_index(int(spread.argmax()), spread.shape))
    i, j = int(laws[:, k, other].argmin()), int(laws[:, k, other].argmax())
    i, j = (i, j) if i != j else (0, 1)
    if all(_proportional(a, b) for a, b in pairwise(matrices)):
        gap, common = _ZERO, True
        reason = "the covariances are multiples of one another"
    elif transform == "whitened":
        gap, common, reason = _whitened_verdict(matrices, names)
    else:
        ends = [_correlation(v[k], v[other], matrices[c]) for c in (i, j)]
        gap, common, reason = _per_unit_verdict(ends, len(v))
    return FeatureLaws(
        transform, names, laws, (names[i], names[j]), (k, other), gap, common, reason
    )


_ZERO = Enclosure(0.0, 0.0, "exact: the laws are the same")


def _whitened_verdict(
    matrices: list[Array], names: tuple[Hashable, ...]
) -> tuple[Enclosure, bool | None, str]:
    for matrix, name in zip(matrices, names, strict=True):
        if smallest_eigenvalue(matrix).lower <= 0:
            reason = f"the covariance of client {name!r} is not certified positive definite"
            return Enclosure(0.0, 1.0, "not decided"), None, reason
    return _ZERO, True, "full whitening of positive definite covariances"


def _per_unit_verdict(
    ends: "list[tuple[Fraction, Fraction]]", units: int
) -> tuple[Enclosure, bool | None, str]:
    if units == 1:
        return _ZERO, True, "a single unit has no correlation"
    (a, b), (c, d) = ends
    low, high = max(a - d, c - b, Fraction(0)), max(b - c, d - a)
    gap = Enclosure(
        rounded(low, up=False), rounded(high, up=True), "float64 with its rounding bound"
    )
    if gap.lower > 0:
        return gap, False, "per-unit BN keeps correlations, and those of two clients differ"
    return gap, None, "the largest difference of correlations is not certified positive"


def _names(covariances: object) -> tuple[Hashable, ...]:
    if isinstance(covariances, Mapping):
        names = tuple(as_label(name, "name of a client") for name in covariances)
    else:
        array = as_real_array(covariances, "covariances")
        names = tuple(range(len(array))) if array.ndim == 3 else ()
    if len(names) < 2:
        raise ValueError(
            "covariances must hold two clients or more to compare: give (N, d, d) or a mapping "
            "from client to (d, d)."
        )
    return names


def as_matrices(given: object, dimension: int, names: tuple[Hashable, ...]) -> list[Array]:
    """One (d, d) covariance per name, refusing one that is clearly not positive semidefinite."""
    found = as_covariances(given, Groups(names, ()), dimension)
    matrices = [s if isinstance(s, np.ndarray) else s * np.eye(dimension) for s in found]
    for matrix, name in zip(matrices, names, strict=True):
        least, *_, most = np.linalg.eigvalsh(matrix) if dimension > 1 else (matrix[0, 0],) * 2
        if least < -1e-10 * most:
            raise ValueError(
                f"the covariance of {name!r} has the negative eigenvalue {least:.3g}: it is none. "
                "Estimate it anew, or add a ridge."
            )
    return matrices


def _feature_covariance(v: Array, s: Array, name: object) -> tuple[Float[Array, "m m"], Array]:
    with np.errstate(over="ignore", invalid="ignore"):
        matrix = v @ s @ v.T
    variance = matrix.diagonal()
    if not (np.isfinite(matrix).all() and (variance > 0).all()):
        k = int((~(variance > 0)).argmax())
        raise ValueError(
            f"unit {k} has no variance in float64 for client {name!r}: drop the direction or "
            "rescale it."
        )
    return (matrix + matrix.T) / 2, variance


def _correlations(v: Array, s: Array, name: object) -> Float[Array, "m m"]:
    matrix, variance = _feature_covariance(v, s, name)
    scale = np.sqrt(variance)
    out = np.clip(matrix / scale[:, None] / scale, -1.0, 1.0)
    np.fill_diagonal(out, 1.0)
    return out


def _whitened(v: Array, s: Array, name: object) -> Float[Array, "m m"]:
    matrix, _ = _feature_covariance(v, s, name)
    values, vectors = np.linalg.eigh(matrix)
    kept = values > len(matrix) * np.finfo(np.float64).eps * values[-1]
    root = vectors[:, kept] / np.sqrt(values[kept]) @ vectors[:, kept].T @ v
    return root @ s @ root.T


def _proportional(one: Array, other: Array) -> bool:
    """Whether two covariances are exactly multiples of one another."""
    with np.errstate(over="ignore", under="ignore"):
        near = np.allclose(one / np.abs(one).max(), other / np.abs(other).max(), 1e-9, 1e-12)
    if not near or np.array_equal(one, other):
        return near
    at = int(np.abs(one).argmax())
    a, b = ([Fraction(value) for value in m.ravel().tolist()] for m in (one, other))
    return all(x * b[at] == y * a[at] for x, y in zip(a, b, strict=True))


def _correlation(v: Array, w: Array, s: Array) -> tuple[Fraction, Fraction]:
    """Bounds of vᵀSw/(‖v‖_S ‖w‖_S)."""
    v, w, s = (np.ldexp(a, -int(np.frexp(np.abs(a).max())[1])) for a in (v, w, s))
    (low, high), (a, b), (c, d) = _form(v, s, w), _form(v, s, v), _form(w, s, w)
    if min(a, c) <= 0:
        return Fraction(-1), Fraction(1)
    # Relative errors of the product, its conversion and the root are below 2^-50.
    least = Fraction(float(a * c) ** 0.5) * (1 - Fraction(1, 2**50))
    most = Fraction(float(b * d) ** 0.5) * (1 + Fraction(1, 2**50))
    return (
        max(low / (most if low >= 0 else least), Fraction(-1)),
        min(high / (least if high >= 0 else most), Fraction(1)),
    )


def _form(v: Array, s: Array, w: Array) -> tuple[Fraction, Fraction]:
    """Bounds of vᵀSw for entries of size at most 1."""
    size = float(np.abs(v) @ (np.abs(s) @ np.abs(w)))
    error = Fraction(1.01 * gamma(2 * len(v) + 2) * size + len(v) ** 2 * 2.0**-1000)
    value = Fraction(float(v @ (s @ w)))
    return value - error, value + error
