"""Theorem III.4 and Corollaries III.5, III.6: both sides of every inequality, on a measured run."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from theory._decay import decades, decay_bound, with_rounding, worst_step
from theory._loose import ArrayLike, Real
from theory._validate import as_real_array, positive
from theory.assumption import Assumption, check_assumption
from theory.comparison import Verdict, compare_smallest_eigenvalues
from theory.descent import KernelSpectra, Trajectory
from theory.inequality import Inequality, Judgement
from theory.network import Array
from theory.rates import (
    Rate,
    RequiredWidth,
    as_risk,
    convergence_rate,
    positive_e0,
    required_width,
)
from theory.spectrum import Enclosure

__all__ = [
    "Assumption",
    "DecayCheck",
    "Hypotheses",
    "Inequality",
    "Judgement",
    "Rate",
    "RequiredWidth",
    "Verdict",
    "check_assumption",
    "compare_smallest_eigenvalues",
    "convergence_rate",
    "corollary_iii5",
    "corollary_iii6",
    "required_width",
    "theorem_iii4",
]


@dataclass(frozen=True)
class Hypotheses:
    """Which hypotheses of Theorem III.4 a run meets; None where the run does not tell.

    Attributes:
        alpha_above_one: α > 1, the paper's condition.
        g_dominated: λ_min(V)/α² < λ_min(G) at every recorded step, what the condition stands for.
        step_size_admissible: η ≤ 1/λ_max(Λ(t)) at every recorded step.
        wide_enough: m ≥ the theorem's width with constant 1; false for any network one can run.
        kernel_known: S = λI, so that G∞ has the closed form `normalised_gram_matrix(x, λ)`; where
            false, that e0 belongs to the covariances of the run is the caller's word alone.
    """

    alpha_above_one: bool | None = None
    g_dominated: bool | None = None
    step_size_admissible: bool | None = None
    wide_enough: bool | None = None
    kernel_known: bool | None = None


@dataclass(frozen=True)
class DecayCheck:
    """Both sides of ‖f(t) − y‖² ≤ (1 − ηe₀/2)^t ‖f(0) − y‖² at every step of a run.

    Attributes:
        source: "Theorem III.4" or "Corollary III.5".
        measured: the left side, t = 0, 1, ….
        bound: (t, 2), lower and upper end of the right side.
        slack_decades: log₁₀(bound/measured) at each step; 0 at t = 0, ∞ where the measured value
            is 0, −∞ where only the bound has underflowed to 0.
        worst_step: the step t ≥ 1 at which the decay is closest to its bound, or breaks it most.
        decay: the inequality at that step; certified only if it is at every step.
        eigenvalue: e₀/2 ≤ λ_min(Λ(t)) at the recorded step where it is tightest; None if no step
            was recorded or the rounding of one has no bound.
        hypotheses: which of the theorem's hypotheses the run meets.
    """

    source: str
    measured: Float[Array, " t"]
    bound: Float[Array, "t 2"]
    slack_decades: Float[Array, " t"]
    worst_step: int
    decay: Inequality
    eigenvalue: Inequality | None
    hypotheses: Hypotheses

    @property
    def worst_slack_decades(self) -> float:
        """The certain part of log₁₀(bound/measured) at `worst_step`; negative if it breaks."""
        return self.decay.slack_decades


def theorem_iii4(
    run: Trajectory | ArrayLike,
    e0: Enclosure | Real,
    *,
    step_size: Real | None = None,
    delta: Real = 0.05,
) -> DecayCheck:
    """Theorem III.4 on a measured run of f (aggregated BN).

    The inequality is checked for the iterates as they were computed, with the rounding of ‖f − y‖
    at each; how far these have drifted from those of exact arithmetic is not part of it.

    Args:
        run: a `Trajectory`, or a bare curve of ‖f(t) − y‖² (or any fixed multiple, such as the
            loss) from t = 0 on.
        e0: λ_min(G∞) of the kernel that the network has. For S = λI that is the smallest
            eigenvalue of `normalised_gram_matrix(x, λ)`. For other covariances there is no closed
            form and it is the caller's duty to bring the e0 of these very covariances, not that of
            S = I: only an impossible one is refused, and `hypotheses.kernel_known` is False.
        step_size: η of a bare curve; a trajectory knows its own.
        delta: probability with which the theorem may fail; it enters the width only.

    Raises:
        ValueError, TypeError: a curve of fewer than two steps, not finite, negative or starting
            at 0; e0 not positive, or larger than the covariances of the run allow; η missing or
            given twice; 1 − ηe₀/2 ≤ 0; a run of f*, or one whose rounding cannot be bounded.
    """
    return _decay_check("Theorem III.4", run, e0, step_size, delta)


def corollary_iii5(
    run: Trajectory | ArrayLike,
    e0: Enclosure | Real,
    *,
    step_size: Real | None = None,
    delta: Real = 0.05,
) -> DecayCheck:
    """Corollary III.5 on a measured run of f* (client-specific BN); e0 is λ_min(G*∞).

    Arguments and errors as for `theorem_iii4`.
    """
    return _decay_check("Corollary III.5", run, e0, step_size, delta)


def corollary_iii6(
    aggregated: "Enclosure | object", client_specific: "Enclosure | object"
) -> Inequality:
    """Corollary III.6: λ_min(G∞) ≤ λ_min(G*∞), where both have literally the same blocks.

    It does not extend to Λ: V is not masked, and λ_min(Λ*) < λ_min(Λ) occurs.

    Raises:
        TypeError: an argument is no `Enclosure`.
    """
    if not isinstance(aggregated, Enclosure) or not isinstance(client_specific, Enclosure):
        raise TypeError(
            "both arguments must be enclosures, as of smallest_eigenvalue(K, error): a bare number "
            "says nothing about its rounding."
        )
    return Inequality("λ_min(G∞) ≤ λ_min(G*∞)", "Corollary III.6", aggregated, client_specific)


def _decay_check(
    source: str,
    run: Trajectory | ArrayLike,
    e0: Enclosure | Real,
    step_size: Real | None,
    delta: Real,
) -> DecayCheck:
    high, risk = positive_e0(e0, upper=True), as_risk(delta)
    low = max(0.0, e0.lower) if isinstance(e0, Enclosure) else high
    if isinstance(run, Trajectory):
        _check_run(source, run, low, step_size)
        eta, rounding, curve = run.step_size, run.rounding, run.squared_residuals
        eigenvalue = _eigenvalue(source, run.spectra, low, high)
        hypotheses = _hypotheses(run, low, risk)
    else:
        if step_size is None:
            raise ValueError("A bare curve needs its step size: pass step_size=η.")
        eta, rounding, curve = (
            positive(step_size, "step_size"),
            None,
            as_real_array(run, "The curve"),
        )
        eigenvalue, hypotheses = None, Hypotheses()
    _check_curve(curve)
    measured = with_rounding(curve, rounding)
    bound = decay_bound(measured[0], high, low, eta, len(curve))
    worst = worst_step(measured, bound)
    decay = Inequality(
        f"‖f(t) − y‖² ≤ (1 − ηe0/2)^t ‖f(0) − y‖² at t = {worst}",
        source,
        _enclosure(measured[worst, 0], measured[worst, 1], "measured, with its rounding bound"),
        _enclosure(bound[worst, 0], bound[worst, 1], "from the enclosure of e0"),
    )
    slack = decades(bound[:, 0], curve)
    slack[0] = 0.0
    return DecayCheck(source, curve, bound, slack, worst, decay, eigenvalue, hypotheses)


def _check_run(source: str, run: Trajectory, e0: float, step_size: Real | None) -> None:
    if step_size is not None:
        raise ValueError("A trajectory knows its step size; leave step_size out.")
    if run.network.client_specific != (source == "Corollary III.5"):
        raise ValueError(
            "Theorem III.4 speaks of f (aggregated BN) and Corollary III.5 of f* "
            "(client-specific BN); this run is of the other network."
        )
    if e0 > run.e0_limit:
        raise ValueError(
            f"e0 = {e0!r} belongs to another kernel: with the covariances S of this run "
            f"λ_min(G∞) cannot exceed {run.e0_limit!r}, the smallest xᵀS⁻¹x/2. Bring the e0 of "
            "these covariances."
        )
    if not np.isfinite(run.rounding).all():
        raise ValueError(
            f"The rounding of ‖f − y‖ at step {int(np.isfinite(run.rounding).argmin())} cannot be "
            "bounded: a covariance is too ill-conditioned; add a ridge such as 0.01·tr(S)/d·I."
        )


def _eigenvalue(source: str, spectra: KernelSpectra, low: float, high: float) -> Inequality | None:
    errors = spectra.rounding[:, 0]
    if len(errors) == 0 or not np.isfinite(errors).all():
        return None
    i = int((spectra.Lambda[:, 0] - errors).argmin())
    value, error = float(spectra.Lambda[i, 0]), float(errors[i])
    ends = math.nextafter(value - error, -math.inf), math.nextafter(value + error, math.inf)
    return Inequality(
        f"e0/2 ≤ λ_min(Λ(t)) at t = {spectra.steps[i]}",
        source,
        _enclosure(low / 2, high / 2, "half of e0"),
        _enclosure(*ends, "eigenvalues of the run, with their rounding"),
    )


def _hypotheses(run: Trajectory, e0: float, delta: Real) -> Hypotheses:
    network, spectra = run.network, run.spectra
    dominated = admissible = None
    if len(spectra.steps):
        dominated = bool((spectra.V[:, 0] / network.alpha**2 < spectra.G[:, 0]).all())
        # A step of exactly 1/λ_max, recomputed, may exceed it by a rounding.
        tops = spectra.Lambda[:, 1] - spectra.rounding[:, 1]
        admissible = bool((run.step_size * tops <= 1).all())
    wide = e0 > 0 and network.width >= required_width(e0, run.samples, network.alpha, delta).width
    known = run.scale is not None
    return Hypotheses(network.alpha > 1, dominated, admissible, bool(wide), known)


def _check_curve(curve: Array) -> None:
    if curve.ndim != 1 or len(curve) < 2:
        raise ValueError(
            f"The curve has shape {curve.shape}; give one value per step, t = 0 and at least one "
            "more (a run that diverged at once has none)."
        )
    if not np.isfinite(curve).all() or (curve < 0).any():
        raise ValueError("The curve holds NaN, infinite or negative values; cut it where it ends.")
    if curve[0] == 0:
        raise ValueError("The curve starts at 0: nothing is left to converge.")


def _enclosure(lower: float, upper: float, method: str) -> Enclosure:
    return Enclosure(lower=float(lower), upper=float(upper), method=method)
