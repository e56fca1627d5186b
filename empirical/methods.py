"""Methods as studies compare them: an algorithm and the batch-norm policies that it runs under."""

from dataclasses import dataclass

from empirical.algorithms import ALGORITHMS, POLICY_OF

COMPARED = ("aggregated", "client_specific")


@dataclass(frozen=True)
class Method:
    """One row of the paper's Table I.

    Attributes:
        name: such as "fedprox" or "fedbn".
        algorithm: what trains it, a name in `ALGORITHMS`.
        bn_policies: names in `BN_POLICIES`; one alone where the policy is the method.
    """

    name: str
    algorithm: str
    bn_policies: tuple[str, ...] = COMPARED


def methods() -> dict[str, Method]:
    """Every registered algorithm, and FedBN (Li et al. 2021): FedAvg under client-specific BN."""
    rows = {name: Method(name, name) for name in ALGORITHMS}
    return rows | {
        name: Method(name, algorithm, (policy,)) for name, (algorithm, policy) in POLICY_OF.items()
    }
