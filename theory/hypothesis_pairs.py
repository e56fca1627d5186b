"""d_HΔH from samples: a search over pairs of two-layer ReLU networks, judged on held-out points."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from theory._domain_classifier import as_judged, fit_classifier
from theory._loose import Anything, ArrayLike, Real, Whole
from theory._memory import as_memory
from theory._pair_search import Networks, best_pair, subspace
from theory._splits import Domain, as_domains, in_folds, two_parts
from theory._standardise import Standardise, standardise
from theory.estimates import Estimate
from theory.network import at_least
from theory.proxy import judged, stacked, warn_of_copies
from theory.rates import as_risk

__all__ = ["PairClassifier", "pair_divergence"]

_HELD_OUT = 1 / 3
_COPIES = 4  # held at once: values, gradients, and what L-BFGS remembers
_VALIDATION = 1 / 4  # of the rest


@dataclass(frozen=True, eq=False)
class PairClassifier:
    """Says A where two hypotheses agree: the complement of a set of HΔH.

    Attributes:
        units: in which the networks take their input.
        basis: (k, d), rows that standardised points are projected on; None for all of them.
        searched: f and f' as functions of the projected points.
    """

    units: Standardise
    basis: Float[np.ndarray, "k d"] | None
    searched: Networks

    def __call__(self, x: ArrayLike) -> Bool[np.ndarray, " n"]:
        """Whether h(x) = h'(x) at each row of x (n, d), h being 1 where f > 0.

        Raises:
            TypeError, ValueError: points that are not real and finite, of other features than those
                that were fitted, or too far from them.
        """
        z = self.units(as_judged(x, self.units))
        return self.searched.agree(projected(z, self.basis))

    @property
    def networks(self) -> Networks:
        """The same f and f', up to a positive factor, as functions of x: two-layer networks."""
        w = self.searched.w if self.basis is None else self.searched.w @ self.basis
        return Networks(*self.units.in_units_of_x(w, self.searched.b), self.searched.c)


def pair_divergence(  # noqa: PLR0913 - the samples, and every choice of the search
    a: ArrayLike,
    b: ArrayLike,
    *,
    groups: "tuple[object, object] | Anything | None" = None,
    width: Whole = 16,
    starts: Whole = 2,
    steps: Whole = 150,
    seed: Whole = 0,
    delta: Real = 0.05,
) -> Estimate:
    """A lower bound of d_HΔH = 2 sup_{h,h'} |P_A(h ≠ h') − P_B(h ≠ h')| (Ben-David et al. 2010).

    H are the signs of f(x) = Σ_k c_k φ(w_k·x + b_k), the networks of the paper with biases. With
    s = ±1 for h, P(h ≠ h') = ½(1 − E[ss']), so that the difference is ½|E_A[ss'] − E_B[ss']|: the
    search maximises E_A[tanh f tanh f'] − E_B[tanh f tanh f'] by L-BFGS from several starts, with
    several weight decays. Starts: a linear classifier with f' ≡ 1, since HΔH contains H where H
    contains the constants; pairs of parallel hyperplanes around directions in which the spread
    differs, since a slab is the set on which two half-spaces disagree; random ones. A validation
    part chooses among the starts and what became of them; a held-out part, touched by nothing
    before, gives d of the pair, its interval and the lower bound by `held_out_divergence`.

    Half of the points (of the groups, where there are any) are fitted, a sixth validate, a third
    are held out. With more than 200 features the networks see the 128 leading principal directions
    and the linear classifier's own, a subset of H. It is a search, not a maximum: another pair may
    be better.

    Args:
        a: (n_a, d) points of A, at least 12; lists and tensors are converted.
        b: (n_b, d) points of B, with the same features.
        groups: as for `proxy_a_distance`, laws and p-value included; at least 6 groups in each
            domain.
        width: hidden units of each network, at least 2.
        starts: number of random starts besides the others.
        steps: iterations of L-BFGS from each start.
        seed: of the split, the starts and the relabelling.
        delta: probability with which the interval may fail, and with which the lower bound may.

    Returns:
        An `Estimate` whose `divergence` is "d_HΔH", `strength` the weight decay (0 for a start that
        no search improved), and `classifier` a `PairClassifier`.

    Raises:
        TypeError, ValueError: points or groups as `proxy_a_distance` refuses them; width, starts,
            steps or seed no integer or too small; a width beyond the memory; delta outside (0, 1).
    """
    units_each, extra = at_least(width, 2, "width"), at_least(starts, 0, "starts")
    most, start, risk = at_least(steps, 1, "steps"), at_least(seed, 0, "seed"), as_risk(delta, 4)
    domains = as_domains(a, b, groups, parts=3)
    _check_memory(units_each, domains)
    outer = [two_parts(domain.rows, _HELD_OUT, start) for domain in domains]
    warn_of_copies(domains, outer)
    inner = [two_parts(rest, _VALIDATION, start + 1) for rest, _ in outer]
    fit, validation = (stacked(domains, [part[i] for part in inner]) for i in (0, 1))
    fold = np.concatenate(
        [np.repeat(in_folds(rows, 2, start), [len(g) for g in rows]) for rows, _ in inner]
    )
    units = standardise(fit[0])
    z, seen = units(fit[0]), units(validation[0])
    linear = fit_classifier(z, fit[1], fold, "linear", start).half_space
    assert linear is not None
    basis = subspace(z, linear[0], start)
    if basis is not None:
        linear = np.eye(len(basis))[-1] * np.linalg.norm(linear[0]), linear[1]
    nets, decay = best_pair(
        (projected(z, basis), fit[1]),
        (projected(seen, basis), validation[1]),
        linear,
        (units_each, extra, most),
        np.random.default_rng(start),
    )
    found = judged(PairClassifier(units, basis, nets), domains, [p[1] for p in outer], risk, start)
    name = f"pairs of two-layer ReLU networks of width {units_each}"
    return replace(found, divergence="d_HΔH", capacity=name, strength=decay)


def _check_memory(width: int, domains: tuple[Domain, Domain]) -> None:
    """Refuses networks whose activations and weights, with their gradients, do not fit."""
    n, d = sum(len(domain.x) for domain in domains), domains[0].x.shape[1]
    if 8 * 2 * _COPIES * width * (n + d) > as_memory(None):
        raise ValueError(f"width = {width} needs more memory than there is: a few dozen will do.")


def projected(
    z: Float[np.ndarray, "n d"], basis: Float[np.ndarray, "k d"] | None
) -> Float[np.ndarray, "n _"]:
    """Coordinates of points along the rows of a basis."""
    return z if basis is None else z @ basis.T
