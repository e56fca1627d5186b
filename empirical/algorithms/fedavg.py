"""FedAvg: local SGD, then the weighted mean of the clients' parameters."""

from empirical.algorithm import Algorithm


def fedavg() -> Algorithm:
    """FedAvg (McMahan et al. 2017, Algorithm 1): w⁺ = Σ_{i∈S} p̃_i y_i.

    p̃ is p made to sum to one over the participants, who are drawn uniformly. Where sizes are
    unequal and not all take part, the mean step is therefore not that of Σ p_i J_i but leans
    towards the plain mean: with one participant a round every client counts alike. Methods that
    keep a sum over all clients (SCAFFOLD, FedDC) do not lean.
    """
    return Algorithm("fedavg", "McMahan et al. 2017, Algorithm 1")
