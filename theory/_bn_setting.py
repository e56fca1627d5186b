"""The validated setting of a BN kernel: scaled points, covariances, and the range they live in."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from theory._pairs import UNIT_ROUNDOFF, gamma
from theory._validate import Groups, as_groups, as_points, non_negative, positive
from theory.covariances import as_covariances

Array = np.ndarray
_MOST_BITS = 900  # |log2| of the largest entry of a kernel
_RANK = 16 * 2.0**-53  # times d: eigenvalues below that part of the largest are rounding


@dataclass(frozen=True)
class Group:
    """Points that share a covariance."""

    rows: Int[Array, " k"]
    points: Float[Array, "k d"]
    covariance: Float[Array, "d d"]

    @cached_property
    def spectrum(self) -> Float[Array, " d"]:
        """Eigenvalues of the covariance, ascending."""
        return np.linalg.eigvalsh(self.covariance)


@dataclass(frozen=True)
class Setting:
    """Everything checked and scaled by powers of two.

    Attributes:
        given: the points as they came.
        points: scaled, divided by √λ_i if isotropic, in the common range if S_i are singular.
        groups: clients and their rows.
        covariances: one per client, scaled; equal ones are the same object.
        isotropic: the λ_i if S_i = λ_i I and eps = 0, else None.
        eps: scaled.
        alpha: of the initialisation.
        component: "magnitude" or "direction".
        exponent: log2 of the factor of the kernel.
        factor: by which the range is left again: (d - 2)/(r - 2) for V, else 1.
        tilt: relative error of the points in the range.
        defect: error of a covariance in the range, in the 2-norm.
    """

    given: Float[Array, "n d"]
    points: Float[Array, "n r"]
    groups: Groups
    covariances: list
    originals: list
    isotropic: list[float] | None
    eps: float
    alpha: float
    component: str
    exponent: int
    factor: float = 1.0
    tilt: float = 0.0
    defect: float = 0.0

    def matrix_of(self, name: Hashable) -> Any:
        """A client's covariance as given."""
        return self.originals[self.groups.names.index(name)]

    def groups_by_covariance(self) -> list[Group]:
        """The points by covariance, clients with equal ones together."""
        seen: dict[int, list[Array]] = {}
        matrices = {}
        for rows, matrix in zip(self.groups.rows, self.covariances, strict=True):
            seen.setdefault(id(matrix), []).append(rows)
            matrices[id(matrix)] = matrix
        joined = {key: np.sort(np.concatenate(parts)) for key, parts in seen.items()}
        return [Group(rows, self.points[rows], matrices[key]) for key, rows in joined.items()]

    def rescaled(
        self, matrix: Float[Array, "n n"], error: float
    ) -> tuple[Float[Array, "n n"], float]:
        """The kernel and a bound of its error in the units of the points given.

        Raises:
            ValueError: the kernel would leave the range of float64.
        """
        largest = float(np.abs(matrix).max()) * self.factor
        size = math.frexp(largest)[1] + self.exponent
        if largest > 0 and abs(size) > _MOST_BITS:
            raise ValueError(
                f"the kernel has entries of 1e{size * math.log10(2):+.0f}, at the end of the range "
                "of float64: multiply x (or the covariances) by a power of ten and rescale it."
            )
        # Rows far smaller than the largest may have underflowed on the way.
        error = error * self.factor * (1 + 1e-12) + len(matrix) * 2.0**-1000
        with np.errstate(under="ignore"):
            out = np.ldexp(matrix if self.factor == 1 else matrix * self.factor, self.exponent)
        return out, max(math.ldexp(error, self.exponent), 2.0**-1060 * bool(largest))


def setting(  # noqa: PLR0913
    x: object,
    client: object,
    covariances: object,
    eps: object,
    alpha: object,
    component: object,
    apart: bool = False,
) -> Setting:
    """Checks the arguments of `bn_gram_matrix`; `apart` if no two clients are ever compared."""
    given = as_points(x)
    groups = as_groups(client, len(given))
    if not isinstance(component, str) or component not in ("magnitude", "direction"):
        raise ValueError(f'component must be "magnitude" or "direction", not {component!r}.')
    floor, scale = non_negative(eps, "eps"), positive(alpha, "alpha")
    originals = as_covariances(covariances, groups, given.shape[1])
    exponent, points = _scaled(given)
    sizes = [abs(s) if isinstance(s, float) else float(np.abs(s).max()) for s in originals]
    power = math.frexp(max(sizes))[1]
    if min(sizes) < 1e-100 * max(sizes):
        raise ValueError("the covariances differ by more than 100 decades: rescale the points.")
    distinct: dict[int, object] = {}
    scaled = []
    for matrix in originals:
        if isinstance(matrix, float):
            scaled.append(math.ldexp(matrix, -power))
        else:
            scaled.append(distinct.setdefault(id(matrix), np.ldexp(matrix, -power)))
    spectra = _spectra(groups, scaled)
    floor = _scaled_eps(floor, power, scale)
    values = _isotropic(scaled)
    reduction = _Reduction()
    if floor == 0 and values is not None:
        by_row = np.empty(len(points))
        for rows, value in zip(groups.rows, values, strict=True):
            by_row[rows] = math.sqrt(value)
        points = points / by_row[:, None]
    else:
        values = None
        eye = np.eye(given.shape[1])
        made: dict[float, Array] = {}
        scaled = [made.setdefault(s, s * eye) if isinstance(s, float) else s for s in scaled]
        if floor == 0 and not apart:
            points, scaled, reduction = _in_range(points, groups, scaled, spectra, component)
    return Setting(
        given,
        points,
        groups,
        scaled,
        originals,
        values,
        floor,
        scale,
        str(component),
        2 * exponent - power,
        reduction.factor,
        reduction.tilt,
        reduction.defect,
    )


def _scaled_eps(eps: float, power: int, alpha: float) -> float:
    """Checks eps in units of the covariances; refused where the integrals would overflow."""
    if eps == 0:
        return 0.0
    size = math.frexp(eps)[1] - power
    if not 1e-50 <= alpha <= 1e50 or size - 2 * math.log2(alpha) > 200:
        raise ValueError(
            f"eps = {eps:g} is more than 60 decades above α²vᵀSv at alpha = {alpha:g} (or alpha is "
            "out of all proportion): BN only divides by √eps there, and the kernel is "
            "gram_matrix(x, alpha)/eps."
        )
    return math.ldexp(eps, -power)


def _spectra(groups: Groups, covariances: list) -> dict[int, Array]:
    """Eigenvalues of every matrix, by its id; refuses what is no covariance, whatever eps is."""
    spectra: dict[int, Array] = {}
    for name, matrix in zip(groups.names, covariances, strict=True):
        if isinstance(matrix, float) or id(matrix) in spectra:
            continue
        s = spectra[id(matrix)] = np.linalg.eigvalsh(matrix)
        if s[0] < -_RANK * len(s) * s[-1]:
            raise ValueError(
                f"the covariance of client {name!r} has the eigenvalue {s[0] / s[-1]:.3g} times "
                "its largest: it is no covariance. Pass XᵀX/M of centred points."
            )
    return spectra


@dataclass(frozen=True)
class _Reduction:
    """What leaving out the null space of singular covariances costs."""

    factor: float = 1.0
    tilt: float = 0.0
    defect: float = 0.0


def _scaled(points: Float[Array, "n d"]) -> tuple[int, Float[Array, "n d"]]:
    exponent = math.frexp(float(np.abs(points).max()))[1]
    with np.errstate(under="ignore"):
        return exponent, np.ldexp(points, -exponent)


def _isotropic(covariances: list) -> list[float] | None:
    """The λ_i if every S_i = λ_i I exactly."""
    values = []
    for matrix in covariances:
        if isinstance(matrix, float):
            values.append(matrix)
            continue
        value = float(matrix[0, 0])
        if value <= 0 or not np.array_equal(matrix, value * np.eye(len(matrix))):
            return None
        values.append(value)
    return values


def _in_range(
    points: Float[Array, "n d"],
    groups: Groups,
    covariances: list,
    spectra: dict[int, Array],
    component: object,
) -> tuple[Float[Array, "n r"], list, _Reduction]:
    """Points and covariances in the common range of singular S_i; nothing happens if none is."""
    d = points.shape[1]
    distinct = {id(matrix): matrix for matrix in covariances}
    rank = {key: int((spectra[key] > _RANK * d * spectra[key][-1]).sum()) for key in distinct}
    if all(r == d for r in rank.values()):
        return points, covariances, _Reduction()
    name, lost_rank = groups.names[0], d - rank[id(covariances[0])]
    u = np.linalg.eigh(covariances[0])[1]  # ascending: the null space first
    basis, null = u[:, lost_rank:], u[:, :lost_rank]
    for other, matrix in zip(groups.names, covariances, strict=True):
        outside = float(np.abs(null.T @ matrix @ null).max(initial=0.0))
        size = float(spectra[id(matrix)][-1])
        if rank[id(matrix)] != basis.shape[1] or outside > 8 * _RANK * d * size:
            raise ValueError(
                f"the covariances of clients {name!r} (rank {basis.shape[1]}) and {other!r} (rank "
                f"{rank[id(matrix)]}) are singular in different directions, where ‖v‖_S of one "
                "vanishes and not of the other: give eps > 0, add a ridge "
                "(client_covariances(x, client, ridge=1e-3)) and state it, or reduce the dimension."
            )
    lost = np.abs(points @ null).max(axis=1)
    length = np.sqrt((points * points).sum(axis=1))
    bad = lost > 1e-12 * d * length
    if bad.any():
        row = int((lost - 1e-12 * d * length).argmax())
        raise ValueError(
            f"row {row} of x leaves the range of the singular covariance (by "
            f"{lost[row] / length[row]:.2g} of its length), where BN divides by zero: give "
            "eps > 0, add a ridge (client_covariances(x, client, ridge=1e-3)), or drop the row."
        )
    r, factor = basis.shape[1], 1.0
    if component == "direction":
        if r < 3:
            raise ValueError(
                f"V is infinite: the covariances have rank {r} < 3 in {d} dimensions. Reduce the "
                "dimension to the rank, add a ridge, or give eps > 0."
            )
        factor = (d - 2) / (r - 2)
    reduced = {k: basis.T @ m @ basis for k, m in distinct.items()}
    symmetric = {k: (m + m.T) / 2 for k, m in reduced.items()}
    # The orthogonality of LAPACK's vectors is within a few d u.
    tilt = float((lost / np.where(length > 0, length, 1)).max()) * math.sqrt(d)
    tilt += 1.01 * gamma(d + 2) * math.sqrt(d) + 8 * d * UNIT_ROUNDOFF
    defect = max(
        2 * float(np.linalg.norm(m @ null)) + 4 * gamma(d) * math.sqrt(d) * float(np.linalg.norm(m))
        for m in distinct.values()
    )
    reduction = _Reduction(factor, tilt, defect)
    return points @ basis, [symmetric[id(m)] for m in covariances], reduction
