"""FedAvg: local SGD, then the weighted mean of the clients' parameters."""

from empirical.algorithm import Algorithm


def fedavg() -> Algorithm:
    """FedAvg (McMahan et al. 2017, Algorithm 1): w⁺ = Σ p_i y_i."""
    return Algorithm("fedavg", "McMahan et al. 2017, Algorithm 1")
