"""Half-spaces through the origin on Gaussian features: risks and ideal joint errors as angles.

With labels sign(t·z), z ~ N(0, C), the hypothesis sign(a·z) errs with probability angle_C(a, t)/π:
(a·z, t·z) is Gaussian with correlation cos angle_C = aᵀCt/(‖a‖_C ‖t‖_C), and two such variables
differ in sign with probability arccos(correlation)/π (Sheppard 1899).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float
from scipy import optimize

from theory import _loose
from theory._enclosure import Enclosure
from theory._loose import Anything, ArrayLike, Whole
from theory._validate import as_vector
from theory.bounds import float_weights
from theory.divergence import homogeneous_pair_divergence
from theory.laws import as_matrices
from theory.network import at_least

__all__ = ["LabelledGaussian", "half_space_risk", "ideal_half_space_error"]

Array = np.ndarray

_UNITS = 2.0**-49  # relative: of two conversions, a root, an arctangent and a quotient by π
_LEAST = 2.0**-1071  # a few roundings of subnormal numbers
_TRIED, _KEPT = 128, 4  # directions looked at, and descended from: the joint error has many minima
_METHOD = "angle in the inner product of the covariance"


@dataclass(frozen=True, eq=False)
class LabelledGaussian:
    """Features z ~ N(0, C) of a client, with labels sign(t·z).

    Attributes:
        covariance: (d, d) C, positive definite; λ for λI.
        target: (d,) t, not zero.
    """

    covariance: _loose.Array
    target: _loose.Array

    def __post_init__(self) -> None:
        target = _direction(self.target, "target")
        matrix = as_matrices(self.covariance, len(target), ("the law",))[0]
        least, *_, most = (*np.linalg.eigvalsh(matrix), matrix.max())
        if least <= len(target) * np.finfo(np.float64).eps * most:
            raise ValueError(
                f"the covariance is not positive definite (smallest eigenvalue {least:.3g}): drop "
                "directions without variance."
            )
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "covariance", matrix)


def half_space_risk(normal: ArrayLike, law: "LabelledGaussian | Anything") -> Enclosure:
    """J(a) = P(sign a·z ≠ sign t·z) = angle_C(a, t)/π, enclosed, for the 0-1 loss of (13).

    The three inner products are exact fractions, and the angle is that of a plane vector with
    entries aᵀCt and √(aᵀCa tᵀCt − (aᵀCt)²): nothing cancels, near 0 or π either.

    Args:
        normal: (d,), a of the hypothesis sign(a·z), not zero.
        law: of the features, with the labels.

    Raises:
        TypeError, ValueError: another dimension, entries that are not finite, a = 0.
    """
    a, given = _direction(normal, "normal"), _as_law(law, "law")
    if len(a) != len(given.target):
        raise ValueError(f"normal has {len(a)} entries and the law {len(given.target)} features.")
    return _angle(a, given.target, given.covariance)


def ideal_half_space_error(
    weights: ArrayLike,
    seen: "Sequence[LabelledGaussian] | Anything",
    unseen: "LabelledGaussian | Anything",
    *,
    seed: Whole = 0,
) -> Enclosure:
    """ε = min_a Σ ω_i J_i(a) + J_u(a), enclosed: the ideal joint error of half-spaces.

    Lower end: for every a, J_i(a) + J_u(a) ≥ P_i(a ≠ t_i) + P_i(a ≠ t_u) − ½d_HΔH(C_i, C_u)
    ≥ angle_{C_i}(t_i, t_u)/π − ½d_HΔH, and likewise by the unseen law; ε is at least the mean of
    these. Upper end: the best a that is found, any a being a bound. Both meet if all C are equal:
    then angles are a metric and a = t_u attains Σ ω_i angle_C(t_i, t_u)/π, as does, of one seen
    client, every a on the geodesic from t_i to t_u.

    Args:
        weights: ω_i ≥ 0, one per seen client, summing to 1.
        seen: the laws of the seen clients.
        unseen: that of the unseen one.
        seed: of the directions from which the search starts, besides the labels.

    Raises:
        TypeError, ValueError: weights as for `mixture_divergence`; laws of different dimensions;
            a seed that is no integer ≥ 0.
    """
    omega = float_weights(weights)
    laws, target = _as_laws(seen, len(omega)), _as_law(unseen, "unseen")
    if len({len(law.target) for law in (*laws, target)}) > 1:
        raise ValueError("the laws have different dimensions: give the same features for all.")
    omega = omega / math.fsum(omega)
    pairs = zip(omega.tolist(), laws, strict=True)
    lower = math.fsum(w * _least(law, target) for w, law in pairs)
    start = at_least(seed, 0, "seed")
    upper = _joint(target.target, omega, laws, target)
    if upper - lower > 2.0**-40:
        upper = min(upper, _joint(_best(omega, [*laws, target], start), omega, laws, target))
    return Enclosure(
        min(lower * (1 - _UNITS), upper),
        upper,
        "between the labels' angle less ½d_HΔH and the best half-space found",
    )


def _angle(a: Array, t: Array, c: Array) -> Enclosure:
    matrix = [[Fraction(value) for value in row] for row in c.tolist()]
    left, right = ([Fraction(value) for value in v.tolist()] for v in (a, t))
    image = [sum(x * y for x, y in zip(row, right, strict=True)) for row in matrix]
    product = sum(x * y for x, y in zip(left, image, strict=True))
    own = sum(x * y for x, y in zip(right, image, strict=True))
    image = [sum(x * y for x, y in zip(row, left, strict=True)) for row in matrix]
    other = sum(x * y for x, y in zip(left, image, strict=True))
    # Scaled to [-1, 1], which float64 holds whatever the sizes were.
    squared = Fraction(product * product, own * other)
    area = max(1 - squared, Fraction(0))
    cosine = -_root(squared) if product < 0 else _root(squared)
    value = math.atan2(_root(area), cosine) / math.pi
    least = _LEAST if area else 0.0  # of an angle that is subnormal, or below that
    low, high = value * (1 - _UNITS) - least, value * (1 + _UNITS) + least
    return Enclosure(max(low, 0.0), min(high, 1.0), _METHOD)


def _root(value: Fraction) -> float:
    """√value of a fraction in [0, 1] that may be below the range of float64, but not its root."""
    power = max(value.denominator.bit_length() - value.numerator.bit_length(), 0) // 2
    return math.ldexp(math.sqrt(value * 4**power), -power)


def _scaled(law: LabelledGaussian) -> tuple[Array, Array]:
    """Covariance and target of entries about 1 at most; no angle depends on the scales."""
    with np.errstate(under="ignore"):
        found = [
            np.ldexp(a, -int(np.frexp(np.abs(a).max())[1])) for a in (law.covariance, law.target)
        ]
    return found[0], found[1]


def _least(law: LabelledGaussian, unseen: LabelledGaussian) -> float:
    """A lower bound of min_a J_i(a) + J_u(a)."""
    apart = [_angle(law.target, unseen.target, c) for c in (law.covariance, unseen.covariance)]
    half = homogeneous_pair_divergence(law.covariance, unseen.covariance).upper / 2
    return max(0.0, max(angle.lower for angle in apart) - half)


def _joint(
    a: Array, omega: Array, laws: Sequence[LabelledGaussian], unseen: LabelledGaussian
) -> float:
    """Upper end of Σ ω_i J_i(a) + J_u(a)."""
    ends = [half_space_risk(a, law).upper for law in laws]
    total = math.fsum([*(omega * ends), half_space_risk(a, unseen).upper])
    return total * (1 + _UNITS)


def _best(omega: Array, laws: Sequence[LabelledGaussian], seed: int) -> Float[Array, " d"]:
    """The best of the labels and of where BFGS ends from them and from many directions."""
    weights = np.append(omega, 1.0)
    covariances, targets = zip(*map(_scaled, laws), strict=True)
    roots = np.array([np.linalg.cholesky(c).T for c in covariances])
    units = np.einsum("kij,kj->ki", roots, targets)
    units /= np.linalg.norm(units, axis=1, keepdims=True)

    def objective(a: Array) -> tuple[float, Float[Array, " d"]]:
        images = roots @ a
        sizes = np.linalg.norm(images, axis=1, keepdims=True)
        along = np.sum(images * units, axis=1, keepdims=True) / sizes
        sines = np.linalg.norm(images / sizes - along * units, axis=1, keepdims=True)
        turned = (along * images / sizes - units) / (sizes * np.maximum(sines, 1e-12))
        slope = weights @ np.einsum("kij,ki->kj", roots, turned)
        return float(weights @ np.arctan2(sines, along)[:, 0]), slope

    labels = np.array([t / np.linalg.norm(t) for t in targets])
    tried = np.random.default_rng(seed).standard_normal((_TRIED, labels.shape[1]))
    values = np.array([objective(a)[0] for a in tried])
    starts = [*labels, labels.mean(axis=0), *tried[np.argsort(values)[:_KEPT]]]
    # Off the kinks that the joint error has at the labels, where it has no gradient.
    tilt = 0.01 * np.cos(np.arange(labels.shape[1]))
    ends = [optimize.minimize(objective, a + tilt, jac=True, method="BFGS").x for a in starts]
    sound = [a for a in ends if np.isfinite(a).all() and np.any(a)]
    return min([*labels, *sound], key=lambda a: objective(a)[0])


def _direction(value: object, name: str) -> Float[Array, " d"]:
    vector = as_vector(value, name)
    if not vector.any():
        raise ValueError(f"{name} is zero: a half-space needs a direction.")
    return vector


def _as_law(value: object, name: str) -> LabelledGaussian:
    if not isinstance(value, LabelledGaussian):
        raise TypeError(
            f"{name} must be a LabelledGaussian(covariance, target), not {type(value).__name__}."
        )
    return value


def _as_laws(values: object, count: int) -> list[LabelledGaussian]:
    if not isinstance(values, Sequence):
        raise TypeError("seen must be a list of LabelledGaussian, one per seen client.")
    if len(values) != count:
        raise ValueError(f"there are {len(values)} laws for {count} weights: give one each.")
    return [_as_law(value, f"law {i}") for i, value in enumerate(values)]
