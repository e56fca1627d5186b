"""Proxy A-distance of two samples: a domain classifier, chosen on one part, judged on another."""

import warnings
from dataclasses import replace

import numpy as np

from theory._domain_classifier import as_capacity, fit_classifier
from theory._grouping import Rows
from theory._loose import Anything, ArrayLike, Real, Whole
from theory._splits import Domain, as_domains, in_folds, two_parts
from theory._validate import real
from theory.estimates import Estimate, held_out_divergence
from theory.network import at_least
from theory.rates import as_risk

__all__ = ["proxy_a_distance"]


def proxy_a_distance(  # noqa: PLR0913 - the samples, and every choice of the recipe
    a: ArrayLike,
    b: ArrayLike,
    *,
    groups: "tuple[object, object] | Anything | None" = None,
    capacity: str | Anything = "linear",
    folds: Whole = 3,
    held_out: Real = 0.5,
    seed: Whole = 0,
    delta: Real = 0.05,
) -> Estimate:
    """Proxy A-distance 2(1 − 2ε) of two samples (Ben-David et al. 2007), with what it proves.

    A classifier is fitted to tell a from b on one part of the points; ε is its balanced error on
    the other part, so that 2(1 − 2ε) = d(h) = 2(P̂_A(h) − P̂_B(h)) of a fixed h, whose interval and
    lower bound of d_H `held_out_divergence` gives. Nothing is chosen on the held-out part and no
    sign is flipped: under d_H = 0 the value is centred at 0, not above it. Regularisation is chosen
    by cross-validation within the fit part, features are standardised by it, and both domains
    weigh the same whatever their sizes. The estimate is low where the fit part is too small to
    find the best h: it bounds d_H from below, never from above.

    Both domains are split by one seeded permutation, so that rows which correspond (an image before
    and after a change) stay together: the interval holds for them too, the p-value is for samples
    that are independent of each other. Rows that occur in both the fit and the held-out part are
    warned of: they are fine if values repeat by chance, and a leak if they are copies.

    Args:
        a: (n_a, d) points of A, at least 8; lists and tensors are converted.
        b: (n_b, d) points of B, with the same features.
        groups: a pair of sequences, the group (patient, writer) of each point of a and of b, if
            points of a group are dependent; at least 4 groups in each domain. Groups are never
            split. What is estimated then is d(h) of the laws "draw a group, then a point of it",
            and `lower` bounds d_H between these, not between the laws of the points, where groups
            count by their size; the p-value is one of equal laws if all groups have one size, else
            of d(h) ≤ 0 (see `held_out_divergence`).
        capacity: H: "linear" (half-spaces, by logistic regression), "rbf" (support vectors with
            a Gaussian kernel), "mlp" (two-layer ReLU networks of width 32).
        folds: of the cross-validation, at least 2.
        held_out: share of the points, or of the groups, that is held out, in (0, 1).
        seed: of the split, the network's start and the relabelling.
        delta: probability with which the interval may fail, and with which the lower bound may.

    Raises:
        TypeError, ValueError: points that are not real and finite, of different numbers of
            features, too few; groups that are no pair, incomplete, too few, or in both domains; an
            unknown capacity; folds < 2; held_out or delta outside (0, 1).
    """
    kind, count = as_capacity(capacity), at_least(folds, 2, "folds")
    share, start, risk = real(held_out, "held_out"), at_least(seed, 0, "seed"), as_risk(delta, 4)
    if not 0 < share < 1:
        raise ValueError(f"held_out is a share of the points in (0, 1), not {share!r}.")
    domains = as_domains(a, b, groups)
    parts = [two_parts(domain.rows, share, start) for domain in domains]
    warn_of_copies(domains, parts)
    fit, fold = [part[0] for part in parts], []
    count = min(count, *(len(rows) for rows in fit))
    for rows in fit:
        sizes = [len(group) for group in rows]
        fold.append(np.repeat(in_folds(rows, count, start + 1), sizes))
    x, of_a = stacked(domains, fit)
    classifier = fit_classifier(x, of_a, np.concatenate(fold), kind, start)
    found = judged(classifier, domains, [part[1] for part in parts], risk, start)
    return replace(found, capacity=kind, strength=classifier.strength)


def stacked(domains: tuple[Domain, Domain], rows: list[Rows]) -> tuple[np.ndarray, np.ndarray]:
    """Points of both domains in the order of their groups, and which of them are of A."""
    taken = [d.x[np.concatenate(part)] for d, part in zip(domains, rows, strict=True)]
    return np.concatenate(taken), np.repeat([True, False], [len(x) for x in taken])


def judged(
    classifier: object, domains: tuple[Domain, Domain], rows: list[Rows], delta: float, seed: int
) -> Estimate:
    """What a fixed classifier's decisions on held-out groups say."""
    said, labels, first = [], [], 0
    for domain, part in zip(domains, rows, strict=True):
        said.append(classifier(domain.x[np.concatenate(part)]))  # type: ignore[operator]
        labels.append(first + np.repeat(np.arange(len(part)), [len(group) for group in part]))
        first += len(part)
    a, b = labels if domains[0].grouped else (None, None)
    found = held_out_divergence(*said, groups_a=a, groups_b=b, delta=delta, seed=seed)
    return replace(found, classifier=classifier)


def warn_of_copies(domains: tuple[Domain, Domain], parts: list[tuple[Rows, Rows]]) -> None:
    """Warns, in a sentence, of held-out points that were also fitted."""
    fit, held = ({*_keys(domains, [part[i] for part in parts])} for i in (0, 1))
    copies = len(fit & held)
    if copies:
        warnings.warn(
            f"{copies} distinct rows lie both in the fit and in the held-out part: if they are "
            "copies (augmented or resampled), drop them or give copies one group, else they leak; "
            "if values repeat by chance, ignore this.",
            stacklevel=3,
        )


def _keys(domains: tuple[Domain, Domain], rows: list[Rows]) -> list[bytes]:
    taken = stacked(domains, rows)[0] + 0.0  # −0 and 0 are one value, two bit patterns
    return [row.tobytes() for row in taken]
