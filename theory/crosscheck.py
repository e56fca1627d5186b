"""An independent route to Eq. (10): the arc-cosine kernel of neural-tangents, imported on call.

neural-tangents brings JAX and TensorFlow, takes seconds to import, and has no batch normalization:
it serves as a witness for κ₁ alone. Nothing else in the package needs it.
"""

import contextlib
import importlib
import importlib.metadata
import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from theory._loose import ArrayLike, Real
from theory._validate import as_points, positive
from theory.gram import gram_matrix


@dataclass(frozen=True)
class Agreement:
    """How far two routes to one matrix are apart.

    Attributes:
        largest_difference: max |K_pq − K'_pq| / √(K_pp K_qq), so that 1 is the size of an entry.
        version: of neural-tangents.
        n: number of points.
    """

    largest_difference: float
    version: str
    n: int

    def __str__(self) -> str:
        """A sentence for a report."""
        return (
            f"agrees with neural-tangents {self.version} to {self.largest_difference:.0e} "
            f"of an entry's size on {self.n} points"
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
        # Without x2 the diagonal stays exact.
        return np.asarray(kernel(points, None, "nngp"), dtype=np.float64)


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


def crosscheck(x: ArrayLike, alpha: Real = 1.0) -> Agreement:
    """Compare `gram_matrix` with neural-tangents; arguments and errors as above."""
    theirs, ours = neural_tangents_gram_matrix(x, alpha), gram_matrix(x, alpha)
    size = np.sqrt(np.diagonal(ours))
    gap = np.abs(theirs - ours) / (size[:, None] * size[None, :])
    return Agreement(float(gap.max()), importlib.metadata.version("neural-tangents"), len(ours))
