"""Local-only training, the baseline without a federation (FedBN's SingleSet)."""

from empirical.algorithm import Algorithm
from empirical.weights import Role


def local_only() -> Algorithm:
    """Each client trains alone from the common start; nothing is shared, batch norm included."""
    return Algorithm("local", "SingleSet of Li et al. 2021 (FedBN)", personal=frozenset(Role))
