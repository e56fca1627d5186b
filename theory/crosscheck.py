"""An independent route to both arc-cosine kernels: neural-tangents, imported on call.

neural-tangents brings JAX and TensorFlow, takes seconds to import, and has no batch normalization:
it serves as a witness for κ₁ and P₀, of which the kernels for S = λI consist. Nothing else in the
package needs it.

In Dense(W_std = α√d), ReLU, Dense the pre-activation is v·x with v ~ N(0, α²I), v = αω and ω the
parameter. Hence nngp = E φ(v·x)φ(v·y) = α²κ₁, and the ntk adds the derivative by ω:

    ntk - nngp = α²(x·y) E 1{v·x > 0} 1{v·y > 0} = α²(x·y)P₀.

Its angle is arctan2(√(pq - r²), r), wrong by about u/sin θ: near θ = 0 and π it has half the
digits. κ₁ does not feel that (dκ₁/dθ ~ sin θ), P₀ = (π - θ)/2π does: those pairs are reported
apart.
"""

import contextlib
import importlib
import importlib.metadata
import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from jaxtyping import Float

from theory._loose import ArrayLike, Real, Whole
from theory._validate import as_points, positive
from theory.gram import direction_gram_matrix, gram_matrix

_NEAR = 0.1  # radians from parallel below which pairs of order 0 are reported apart


@dataclass(frozen=True)
class Agreement:
    """How far two routes to one matrix are apart.

    Attributes:
        largest_difference: max |K_pq − K'_pq| / √(K_pp K_qq), so that 1 is the size of an entry;
            for order 0 over the pairs at least 0.1 rad from parallel and antiparallel.
        version: of neural-tangents.
        n: number of points.
        order: 1 for κ₁, Eq. (10); 0 for (x·y)P₀.
        nearly_parallel: for order 0, the same maximum over the other pairs, the diagonal included.
    """

    largest_difference: float
    version: str
    n: int
    order: int = 1
    nearly_parallel: float = 0.0

    def __str__(self) -> str:
        """A sentence for a report."""
        subject = "Eq. (10)" if self.order else "(x·y)P₀, the first term of V∞,"
        sentence = (
            f"{subject} agrees with neural-tangents {self.version} to "
            f"{self.largest_difference:.0e} of an entry's size on {self.n} points"
        )
        if self.order:
            return sentence
        return (
            f"{sentence}, and to {self.nearly_parallel:.0e} at nearly parallel pairs and the "
            "diagonal, where its angles have half the digits"
        )


def installed() -> bool:
    """Whether neural-tangents is there; imports nothing."""
    return importlib.util.find_spec("neural_tangents") is not None


def neural_tangents_gram_matrix(x: ArrayLike, alpha: Real = 1.0) -> Float[np.ndarray, "n n"]:
    """Eq. (10) by neural-tangents in float64: the NNGP kernel of Dense(W_std = α√d), ReLU, Dense.

    Its dense layer scales by 1/√d, hence W_std = α√d for weights v ~ N(0, α²I).

    Args:
        x: (n, d) points.
        alpha: scale of the initialisation.

    Raises:
        ModuleNotFoundError: neural-tangents is not installed.
        ValueError, TypeError: bad points or alpha.
    """
    return _kernels(x, alpha)[0]


def neural_tangents_slope_matrix(x: ArrayLike, alpha: Real = 1.0) -> Float[np.ndarray, "n n"]:
    """α²(x·y)P₀ by neural-tangents in float64: ntk − nngp of the same network.

    Arguments and errors as for `neural_tangents_gram_matrix`.
    """
    magnitude, tangent = _kernels(x, alpha)
    return tangent - magnitude


def _kernels(
    x: ArrayLike, alpha: Real
) -> tuple[Float[np.ndarray, "n n"], Float[np.ndarray, "n n"]]:
    """The nngp and the ntk of Dense(W_std = α√d), ReLU, Dense."""
    points, scale = as_points(x), positive(alpha, "alpha")
    if not installed():
        raise ModuleNotFoundError(
            'the cross-check needs neural-tangents: install it with pip install -e ".[ntk]" '
            "(Python 3.11 to 3.13)"
        )
    with _muted():
        stax: Any = importlib.import_module("neural_tangents.stax")
        x64: Any = importlib.import_module("jax.experimental").enable_x64
    with x64():
        _, _, kernel = stax.serial(
            stax.Dense(1, W_std=scale * np.sqrt(points.shape[1]), b_std=None),
            stax.Relu(),
            stax.Dense(1, W_std=1.0, b_std=None),
        )
        # Without x2 the diagonal of κ₁ stays exact.
        found = kernel(points, None, ("nngp", "ntk"))
        nngp, ntk = (np.asarray(part, dtype=np.float64) for part in (found.nngp, found.ntk))
        return nngp, ntk


@contextlib.contextmanager
def _muted() -> Iterator[None]:
    """Silence the greetings of TensorFlow's native code; what fails raises all the same."""
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def crosscheck(x: ArrayLike, alpha: Real = 1.0, order: Whole = 1) -> Agreement:
    """Compare an arc-cosine kernel of ours with that of neural-tangents.

    Order 1 compares `gram_matrix`, α²κ₁. Order 0 compares α²(x·y)P₀, ours as
    α²(`direction_gram_matrix` + κ₁/d), since V = (x·y)P₀ − κ₁/d for S = I.

    Args:
        x: (n, d) points; a row of zeros agrees with anything.
        alpha: scale of the initialisation.
        order: 1 or 0.

    Raises:
        ModuleNotFoundError: neural-tangents is not installed.
        ValueError, TypeError: bad points, alpha or order.
    """
    if isinstance(order, bool) or not isinstance(order, Integral) or order not in (0, 1):
        raise ValueError(f"order must be 1 (for κ₁) or 0 (for P₀), not {order!r}.")
    magnitude = gram_matrix(x, alpha)
    version_of = importlib.metadata.version
    if order == 1:
        gap = _relative(neural_tangents_gram_matrix(x, alpha), magnitude)
        return Agreement(float(gap.max()), version_of("neural-tangents"), len(gap))
    points = as_points(x)
    ours = float(alpha) ** 2 * direction_gram_matrix(x) + magnitude / points.shape[1]
    gap = _relative(neural_tangents_slope_matrix(x, alpha), ours)
    size = np.linalg.norm(points, axis=1)
    near = np.abs(points @ points.T) >= np.cos(_NEAR) * size[:, None] * size[None, :]
    return Agreement(
        float(gap[~near].max(initial=0.0)),
        version_of("neural-tangents"),
        len(gap),
        order=0,
        nearly_parallel=float(gap[near].max(initial=0.0)),
    )


def _relative(
    theirs: Float[np.ndarray, "n n"], ours: Float[np.ndarray, "n n"]
) -> Float[np.ndarray, "n n"]:
    """|K_pq − K'_pq| / √(K_pp K_qq), 0 where a point is zero."""
    size = np.sqrt(np.diagonal(ours))
    outer = size[:, None] * size[None, :]
    return np.abs(theirs - ours) / np.where(outer > 0, outer, 1.0)
