"""Gaussian laws, and coordinates in which two of them are both uncorrelated."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from theory import _loose
from theory._generalised import as_covariance, congruent, diagonalising, dropped_remark
from theory._loose import Anything
from theory._validate import as_real_array, as_vector

Array = np.ndarray

_STRAY = 2.0**-40  # of the means' gap: less of it in a null space is rounding
_ROUNDED = 2.0**-48  # of the means: what their difference may lack
_FAR = 2.0**10  # standard deviations, or half of them: beyond, laws are apart in float64


@dataclass(frozen=True, eq=False)
class Gaussian:
    """The normal law N(μ, S), such as a client's features have in Eq. (17).

    Attributes:
        mean: (d,) μ, or a number for d = 1.
        covariance: (d, d) S, positive semidefinite, or λ ≥ 0 for λI. Where it is singular the law
            lives on a plane, and S = 0 is a point.

    Raises:
        TypeError, ValueError: entries that are no finite real numbers; shapes that do not fit; S
            that is not symmetric or clearly not positive semidefinite.
    """

    mean: _loose.Array
    covariance: _loose.Array

    def __post_init__(self) -> None:
        mean = as_real_array(self.mean, "mean")
        mean = as_vector(mean.reshape(1) if mean.ndim == 0 else mean, "mean")
        covariance = as_covariance(self.covariance, len(mean), "covariance")
        for name, array in (("mean", mean), ("covariance", covariance)):
            array = array.copy()
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def dimension(self) -> int:
        """The d of the space it lives in."""
        return len(self.mean)


@dataclass(frozen=True, eq=False)
class Shared:
    """Two laws in coordinates x ↦ Vᵀx in which both covariances are diagonal and sum to I.

    Attributes:
        gap: (e,) μ_q − μ_p in units of powers of two, as p and q below.
        p: (e, e) S_p there; coordinates in which neither law varies are gone.
        q: (e, e) S_q there.
        v: (e, r) V.
        delta: (r,) Vᵀ gap.
        shares: (r,) variances of p; those of q are 1 − shares.
        doubt: (r,) rounding of the shares.
        apart: a direction in which neither law varies and the means differ, or None.
        certain: whether `apart` is exact, not only up to rounding.
        dropped: dimension of a null space left out as rounding.
    """

    gap: Float[Array, " e"]
    p: Float[Array, "e e"]
    q: Float[Array, "e e"]
    v: Float[Array, "e r"]
    delta: Float[Array, " r"]
    shares: Float[Array, " r"]
    doubt: Float[Array, " r"]
    apart: Float[Array, " e"] | None
    certain: bool
    dropped: int

    @property
    def remark(self) -> str:
        """What a method has to add."""
        return dropped_remark(self.dropped)


def share(p: Gaussian | Anything, q: Gaussian | Anything) -> Shared | None:
    """Brings two laws to common coordinates; None where they are the same.

    Raises:
        TypeError: no Gaussian.
        ValueError: other dimensions.
    """
    for law, name in ((p, "p"), (q, "q")):
        if not isinstance(law, Gaussian):
            raise TypeError(f"{name} must be a Gaussian(mean, covariance), not {law!r:.60}.")
    if p.dimension != q.dimension:
        raise ValueError(f"p has dimension {p.dimension} and q {q.dimension}: give the same.")
    if np.array_equal(p.mean, q.mean) and np.array_equal(p.covariance, q.covariance):
        return None
    gap, variances = q.mean / 2 - p.mean / 2, [s.covariance.diagonal() for s in (p, q)]
    alive = np.flatnonzero(np.maximum(*variances) > 0)
    stuck = bool(np.delete(p.mean != q.mean, alive).any())
    own = np.ix_(alive, alive)
    scales = -(np.frexp(np.maximum(*variances)[alive])[1] // 2)
    exponents = scales[:, None] + scales
    with np.errstate(under="ignore", over="ignore"):
        one, other = (np.ldexp(s.covariance[own], exponents) for s in (p, q))
        gap = np.clip(np.ldexp(gap[alive], scales + 1), -_FAR, _FAR)
        sizes = (np.ldexp(np.abs(law.mean[alive]), scales).max(initial=0.0) for law in (p, q))
        rounding = _ROUNDED * max(map(float, sizes))
    if stuck or not len(alive):
        none = np.zeros(0)
        empty = np.zeros((len(alive), 0))
        return Shared(gap, one, other, empty, none, none, none, gap, True, 0)
    v, null = diagonalising(one, other)
    (m_p, e_p), (m_q, e_q) = congruent(v, one), congruent(v, other)
    sizes = m_p.diagonal() + m_q.diagonal()
    off = [np.abs(m).sum(axis=1) - np.abs(m.diagonal()) for m in (m_p, m_q)]
    doubt = (off[0] + off[1] + e_p.sum(axis=1) + e_q.sum(axis=1)) / sizes
    v = v / np.sqrt(sizes)
    rest = null @ (null.T @ gap)
    stray = float(np.abs(rest).max()) > _STRAY * float(np.abs(gap).max()) + rounding
    return Shared(
        gap,
        one,
        other,
        v,
        v.T @ gap,
        np.clip(m_p.diagonal() / sizes, 0.0, 1.0),
        doubt,
        rest if stray else None,
        False,
        null.shape[1],
    )
