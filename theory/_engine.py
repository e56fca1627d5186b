"""One gradient step of f or f* by fused matrix products."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from theory._pairs import gamma
from theory._rounding import norm_error
from theory.network import Array, Inputs, Network

# A diverging run overflows; the caller sees it in the loss.
_quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")


class Engine:
    """Mutable state of one run, neurons along the last (contiguous) axis, rows sorted by client.

    Rows that share γ and S form a group: a single one for S = λI with aggregated BN. Then one
    row of coefficients serves all points and the work is two matrix products a step.
    """

    def __init__(self, network: Network, inputs: Inputs, targets: Float[Array, " n"]) -> None:
        order = np.argsort(inputs.column, kind="stable")
        self.template = network
        self.x, self.y = inputs.x[order], targets[order]
        self.v = np.array(network.v.T, order="C")
        self.gamma = np.array(network.gamma.T, order="C")
        self.signs = network.c / np.sqrt(network.width)
        self.scale = inputs.covariances if isinstance(inputs.covariances, float) else None
        used, starts = np.unique(inputs.column[order], return_index=True)
        if self.scale is not None and not network.client_specific:
            used, starts = used[:1], starts[:1]
        bounds = [*starts.tolist(), len(self.y)]
        self.groups = [slice(a, b) for a, b in pairwise(bounds)]
        # The row of gamma that each group trains.
        self.rows = used if network.client_specific else np.zeros_like(used)
        self.matrices = None if self.scale is not None else np.asarray(inputs.covariances)[used]
        self.lengths = np.linalg.norm(self.x, axis=1)
        if self.matrices is not None:
            # ‖|S|‖₂; the percent covers the rounding of the singular values.
            self.spread = 1.01 * np.linalg.norm(np.abs(self.matrices), 2, axis=(1, 2))
        self.active = np.empty((len(self.y), network.width))
        self.mask = np.empty_like(self.active)
        self.residual = np.empty(len(self.y))

    @_quiet
    def forward(self) -> float:
        """The loss; leaves the residual and what `step` needs."""
        np.matmul(self.x, self.v, out=self.active)
        self.squares = np.einsum("dm,dm->m", self.v, self.v)
        if self.matrices is not None:
            self.image = self.matrices @ self.v
            self.norm2 = np.einsum("dm,gdm->gm", self.v, self.image)
        else:
            self.norm2 = self.scale * self.squares[None]
        if not np.isfinite(self.norm2).all():
            return np.inf  # an overflow would pass for f = 0 below
        self.signs_by_norm = self.signs / np.sqrt(self.norm2)
        gamma = self.gamma[self.rows]
        self.slope = gamma * self.signs_by_norm
        self._rectify(gamma)
        for group, slope in zip(self.groups, self.slope, strict=True):
            self.residual[group] = self.active[group] @ slope - self.y[group]
        return 0.5 * float(self.residual @ self.residual)

    @_quiet
    def step(self, eta: float, eta_gamma: float | None = None) -> None:
        """One gradient step on V and γ from the last `forward`; γ may have its own step size."""
        np.not_equal(self.active, 0.0, out=self.mask)
        shared = len(self.groups) == 1
        pull = np.empty_like(self.slope)
        for i, group in enumerate(self.groups):
            pull[i] = self.residual[group] @ self.active[group]
            if not shared:
                self.mask[group] *= self.slope[i]
        gradient = (self.x * self.residual[:, None]).T @ self.mask
        if shared:
            gradient *= self.slope
        radial = self.slope * pull
        if self.matrices is not None:
            gradient -= np.einsum("gm,gdm->dm", radial / self.norm2, self.image)
        else:
            gradient -= (radial.sum(axis=0) / self.squares) * self.v
        self.v -= eta * gradient
        rate = eta if eta_gamma is None else eta_gamma
        np.subtract.at(self.gamma, self.rows, rate * self.signs_by_norm * pull)

    @_quiet
    def loss_of_zero(self) -> float:
        """The loss ½‖y‖² of f = 0."""
        return 0.5 * float(self.y @ self.y)

    @_quiet
    def rounding(self) -> float:
        """Bound of the error of √(2L) as ‖f − y‖₂ at the present parameters, after `forward`.

        A term of f(x_p) passes d roundings in v·x, m in the sum over neurons, one in the
        difference to y, and in its coefficient γ (c/√m)/‖v‖_S five beside those of ‖v‖_S²:
        for S = λI these are d + 1, halved by the root. φ is Lipschitz, so that f(x_p) errs by
        γ_{m + 3d/2 + 8} Σ_k |coefficient| ‖v_k‖ ‖x_p‖. For general S, vᵀSv may cancel:
        `norm_error`, with |v|ᵀ|S||v| <= ‖|S|‖‖v‖², takes the place of d/2. The norm of n residuals
        adds γ_{n + 2} of itself. The thousandth covers the evaluation of the bound.
        """
        d, m = self.v.shape
        if self.matrices is None:
            relative = gamma(m + d + (d + 1) // 2 + 8)
            each = np.full_like(self.slope, relative)
        else:
            relative = gamma(m + d + 8)
            size = self.spread[:, None] * self.squares
            each = relative + norm_error(size, self.norm2, d)
        reach = (np.abs(self.slope) * each) @ np.sqrt(self.squares)
        sizes = relative * np.abs(self.y)
        for group, bound in zip(self.groups, reach, strict=True):
            sizes[group] += bound * self.lengths[group]
        own = gamma(len(self.y) + 2) * np.linalg.norm(self.residual)
        return float(1.001 * (np.linalg.norm(sizes) + own))

    def network(self) -> Network:
        """A copy of the present parameters."""
        return replace(
            self.template,
            v=np.array(self.v.T, order="C"),
            gamma=np.array(self.gamma.T, order="C"),
        )

    def _rectify(self, gamma: Float[Array, "g m"]) -> None:
        """Turns v·x into 1{γ v·x > 0} v·x in place."""
        turned = not (gamma > 0).all()
        for group, row in zip(self.groups, np.sign(gamma), strict=True):
            part = self.active[group]
            if turned:
                part *= row
            np.maximum(part, 0.0, out=part)
            if turned:
                part *= row
