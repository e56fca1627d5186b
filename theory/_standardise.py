"""Features in standard units of the fit part, whatever their scale."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int


@dataclass(frozen=True, eq=False)
class Standardise:
    """x ↦ (x/2^exponent − mean)/scale, feature by feature.

    Attributes:
        exponents: features are divided by 2^exponent first, which is exact and lets none overflow.
        scaler: scikit-learn's StandardScaler, which leaves a constant feature at 0.
    """

    exponents: Int[np.ndarray, " d"]
    scaler: Any

    def __call__(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        """Points in standard units."""
        return np.asarray(self.scaler.transform(np.ldexp(x, -self.exponents)))

    def in_units_of_x(
        self, w: Float[np.ndarray, "*_ d"], b: Float[np.ndarray, "*_"]
    ) -> tuple[Float[np.ndarray, "*_ d"], Float[np.ndarray, "*_"]]:
        """(w', b') such that w'·x + b' = w·z + b for the standardised z of x.

        Where w' would overflow (x near 1e-310) all of w' and b' are divided by one power of two.
        """
        direction = w / self.scaler.scale_
        large = np.where(direction == 0, 0, np.frexp(direction)[1] - self.exponents).max()
        shift = min(0, 1023 - int(large))
        offset = b - direction @ self.scaler.mean_
        return np.ldexp(direction, shift - self.exponents), np.ldexp(offset, shift)


def standardise(x: Float[np.ndarray, "n d"]) -> Standardise:
    """The units of a sample."""
    from sklearn.preprocessing import StandardScaler

    exponents = np.frexp(np.abs(x).max(axis=0))[1]
    return Standardise(exponents, StandardScaler().fit(np.ldexp(x, -exponents)))
