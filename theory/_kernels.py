"""The two kernels of a comparison, as printed and normalised, whole or by tiles."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float

from theory import _arccosine, gram
from theory._loose import Real
from theory._pairs import UNIT_ROUNDOFF, UnitRows, cosines, gamma
from theory._validate import positive

_TILE = 128  # entries of a tile stay in the cache


@dataclass(frozen=True)
class Kernel:
    """One of the kernels with its parameter.

    Attributes:
        name: "printed" or "normalised".
        matrix: points -> Gram matrix.
        error: points -> bound of ‖ΔK‖₂.
        scaled: points -> unit rows and the factors s of K_pq = s_p s_q h(cos θ_pq).
        roundings: the constant of the entries' error: |ΔK_pq| <= (γ_d/2 + roundings·u) s_p s_q.
    """

    name: str
    matrix: Callable[[np.ndarray], np.ndarray]
    error: Callable[[np.ndarray], float]
    scaled: Callable[[np.ndarray], tuple[UnitRows, np.ndarray]]
    roundings: int

    def entry_error(self, dimension: int) -> float:
        """The constant of the entries' error, derived in `theory.gram`; that of s included."""
        constant = gamma(dimension) / 2 + self.roundings * UNIT_ROUNDOFF
        return constant * (1 + 256 * UNIT_ROUNDOFF)


def as_kernel(kernel: object, alpha: Real, scale: Real) -> Kernel:
    """Checks the choice of a kernel and its parameter.

    Raises:
        TypeError: kernel no string, or parameters that are no real numbers.
        ValueError: another name, a parameter that is not positive, or other than 1 for the kernel
            that does not have it.
    """
    if not isinstance(kernel, str):
        raise TypeError(f'kernel must be "printed" or "normalised", not {type(kernel).__name__}.')
    given = {"alpha": positive(alpha, "alpha"), "scale": positive(scale, "scale")}
    if kernel == "printed":
        name, idle = "alpha", "scale"
    elif kernel == "normalised":
        name, idle = "scale", "alpha"
    else:
        raise ValueError(f'kernel must be "printed" or "normalised", not {kernel!r}.')
    if given[idle] != 1:
        raise ValueError(
            f"{idle} = {given[idle]:g} has no effect on the {kernel} kernel, which takes {name} "
            f"only: leave {idle} out, or choose the other kernel."
        )
    if kernel == "printed":
        alpha = given["alpha"]
        return Kernel(
            kernel,
            partial(gram.gram_matrix, alpha=alpha),
            partial(gram.gram_error, alpha=alpha),
            partial(gram.scaled_rows, alpha=alpha),
            gram.ROUNDINGS,
        )
    scale = given["scale"]
    return Kernel(
        kernel,
        partial(gram.normalised_gram_matrix, scale=scale),
        partial(gram.normalised_gram_error, scale=scale),
        partial(gram.normalised_scaled_rows, scale=scale),
        gram.NORMALISED_ROUNDINGS,
    )


def rectangle(
    rows: Float[np.ndarray, "k d"], columns: Float[np.ndarray, "l d"]
) -> Float[np.ndarray, "k l"]:
    """h(cos θ_pq) of unit rows, with the roundings of `gram_matrix` before its scaling."""
    result, anew = rows @ columns.T, gram.recompute(rows.shape[1])
    for top in range(0, len(rows), _TILE):
        for left in range(0, len(columns), 2 * _TILE):
            i, j = slice(top, top + _TILE), slice(left, left + 2 * _TILE)
            c = result[i, j].copy()
            w = cosines(rows[i], columns[j], c, anew)
            result[i, j] = _arccosine.magnitude(c, w)
    return result
