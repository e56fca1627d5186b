"""p-values by relabelling held-out data: who belongs to which domain is drawn anew."""

import math
from itertools import chain, combinations

import numpy as np
from jaxtyping import Float

_LISTED = 20_000  # labellings that are all looked at; of more, a sample
_DRAWN = 9_999
_CELLS = 2**21  # numbers held together
_TIE = 1e-9  # sums of group means that differ by less are ties, and ties count as extreme


def points_p_value(said_a: tuple[int, int], n: tuple[int, int]) -> float:
    """P(X ≥ x) of the hypergeometric X: of all points said to be of A, those that domain A gets."""
    from scipy.stats import hypergeom

    tail = hypergeom.sf(said_a[0] - 1, sum(n), sum(said_a), n[0])
    return min(max(float(tail), 0.0), 1.0)


def groups_p_value(
    means_a: Float[np.ndarray, " _"], means_b: Float[np.ndarray, " _"], seed: int
) -> float:
    """Share of the labellings of whole groups with a difference of means at least the seen one.

    Valid where the groups of both domains have one law: groups of unlike sizes have not, even if
    their points have, since the mean of a small group varies more (the problem of Behrens and
    Fisher). For those see `_betting.difference_p_value`.

    All labellings if there are few, else (1 + c)/(1 + B) with c of B drawn ones, which is valid for
    every B since the seen labelling is one more draw.
    """
    means, taken = np.concatenate([means_a, means_b]), len(means_a)
    # The sum over A decides: that over B is the rest, and the counts do not change.
    threshold = means_a.sum() - _TIE
    if math.comb(len(means), taken) <= _LISTED:
        picks = chain.from_iterable(combinations(range(len(means)), taken))
        sums = means[np.fromiter(picks, int).reshape(-1, taken)].sum(axis=1)
        return float((sums >= threshold).mean())
    rng, extreme, left = np.random.default_rng(seed), 1, _DRAWN
    while left:
        block = min(left, max(1, _CELLS // len(means)))
        drawn = rng.permuted(np.broadcast_to(means, (block, len(means))), axis=1)
        extreme += int((drawn[:, :taken].sum(axis=1) >= threshold).sum())
        left -= block
    return extreme / (1 + _DRAWN)
