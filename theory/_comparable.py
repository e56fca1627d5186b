"""What the readings of Corollary III.6 take: points, clients and S_i that float64 can square."""

import math
from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from theory._client_kernels import Covariances, as_covariances
from theory._validate import Groups, as_groups, as_points, positive
from theory.covariances import client_covariances

_DECADES = 130  # squares of such sizes, and their quotients, stay well within float64


def comparable(
    x: object, client: object, covariances: object
) -> tuple[Float[np.ndarray, "n d"], Groups, Covariances]:
    """Checks points, labels and covariances; None takes the covariance of each client's points.

    Raises:
        TypeError, ValueError: as `as_covariances`; a row of zeros; sizes whose kernel would leave
            the range of float64.
    """
    points = as_points(x)
    groups = as_groups(client, len(points))
    refuse_zero_rows(points)
    sizes = np.abs(points).max(axis=1)
    least, most = int(sizes.argmin()), int(sizes.argmax())
    for row in (least, most):
        _refuse(f"row {row} of x", math.log10(sizes[row]), "multiply x by a power of ten")
    if covariances is None:
        covariances = client_covariances(points, client)  # type: ignore[arg-type]
    found = as_covariances(covariances, groups, points.shape[1])
    # S is of the size of the larger S_i, or pooled of one between.
    roots = {name: math.log10(float(np.abs(s).max())) / 2 for name, s in found.items()}
    for name, root in roots.items():
        advice = "multiply the covariances, and x by the square root, by a power of ten"
        _refuse(f"a standard deviation of client {name!r}", root, advice)
        for row in (least, most):
            _refuse(
                f"row {row} of x over a standard deviation of client {name!r}",
                math.log10(sizes[row]) - root,
                "bring x and the covariances to sizes that go together",
            )
    return points, groups, found


def refuse_zero_rows(points: Float[np.ndarray, "n d"]) -> None:
    """Raises ValueError where a point is zero."""
    zero = ~points.any(axis=1)
    if zero.any():
        raise ValueError(
            f"row {int(zero.argmax())} of x is zero ({int(zero.sum())} in all): it makes both "
            "kernels singular and lies on every line; drop it."
        )


def as_alpha(alpha: object) -> float:
    """A scale of the initialisation whose square float64 can divide by."""
    scale = positive(alpha, "alpha")
    if abs(math.log10(scale)) > _DECADES:
        raise ValueError(f"V/α² leaves float64 at alpha = {scale!r}: choose one of moderate size.")
    return scale


def as_alphas(alphas: object) -> list[float]:
    """Several of them."""
    if isinstance(alphas, str | bytes) or not isinstance(alphas, Iterable):
        raise TypeError(f"alphas must be a sequence of numbers, such as (1.0,), not {alphas!r}.")
    return [as_alpha(alpha) for alpha in alphas]


def _refuse(name: str, decades: float, advice: str) -> None:
    if abs(decades) > _DECADES:
        raise ValueError(
            f"{name} is about 1e{decades:+.0f}, where kernels leave the range of float64: {advice}."
        )
