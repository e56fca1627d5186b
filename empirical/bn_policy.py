"""Which batch-norm tensors are shared: the policy is a value, independent of the algorithm."""

from collections.abc import Mapping, Set
from dataclasses import dataclass

from torch import nn

from empirical.weights import Role, Weights, variance_partners, weighted_mean

_BN = frozenset({Role.AFFINE, Role.STATISTIC})


@dataclass(frozen=True)
class BNPolicy:
    """What of batch norm is averaged over the clients; the rest stays with each client.

    Counters stay whatever the policy.

    Attributes:
        name: the name in `BN_POLICIES`.
        source: the paper that proposed it.
        shared: AFFINE (γ, β), STATISTIC (running mean, variance), both or none.
        variance: "mean" averages the variances, Σ p σ²; "pooled" gives the variance of the
            mixture, Σ p (σ² + μ²) − (Σ p μ)².

    Raises:
        ValueError: a role that is not batch norm's, or an unknown kind of variance.
    """

    name: str
    source: str
    shared: frozenset[Role]
    variance: str = "mean"

    def __post_init__(self) -> None:
        if not (isinstance(self.shared, Set) and self.shared <= _BN):
            raise ValueError(
                "a batch-norm policy shares a set of Role.AFFINE, Role.STATISTIC, both or none, "
                f"got {self.shared!r}"
            )
        if self.variance not in ("mean", "pooled"):
            raise ValueError(f"variance is 'mean' or 'pooled', not {self.variance!r}")

    def divide(self, roles: Mapping[str, Role], personal: frozenset[Role]) -> "Division":
        """Sorts a model's tensors by what happens to them; `personal` is the algorithm's."""
        stays = personal | (_BN - self.shared) | {Role.COUNTER}
        learned = {Role.WEIGHT, Role.AFFINE} - stays
        return Division(
            learned=tuple(n for n, role in roles.items() if role in learned),
            statistics=tuple(
                n for n, role in roles.items() if role is Role.STATISTIC and role not in stays
            ),
            private=tuple(n for n, role in roles.items() if role in stays - {Role.CONSTANT}),
            mirrored=tuple(n for n, role in roles.items() if role in _BN & stays - personal),
        )

    def mean(
        self, states: Mapping[str, Weights], p: Mapping[str, float], model: nn.Module
    ) -> Weights:
        """The clients' batch norm as one: Σ p_i of γ, β and means, and `variance`.

        Args:
            states: client -> its batch-norm tensors; both statistics of a layer or neither.
            p: weights of the clients, made to sum to one over those in `states`.
            model: says which variance belongs to which mean.
        """
        mean = weighted_mean(states, p)
        if self.variance == "pooled":
            # Σ p (σ² + μ²) − μ̄² = Σ p σ² + Σ p (μ − μ̄)², which cannot cancel to below zero.
            partner = {v: m for v, m in variance_partners(model).items() if v in mean}
            between = weighted_mean(
                {
                    client: {
                        v: (state[m].double() - mean[m].double()).square()
                        for v, m in partner.items()
                    }
                    for client, state in states.items()
                },
                p,
            )
            mean |= {v: (mean[v] + between[v]).to(mean[v].dtype) for v in partner}
        return mean


@dataclass(frozen=True)
class Division:
    """Names of a model's tensors by what a federation does with them.

    Attributes:
        learned: shared parameters, which pass through the algorithm.
        statistics: shared running statistics, averaged and never seen by the algorithm.
        private: what stays with each client.
        mirrored: the part of `private` of which the server keeps the clients' mean, for clients
            outside or not yet sampled.
    """

    learned: tuple[str, ...]
    statistics: tuple[str, ...]
    private: tuple[str, ...]
    mirrored: tuple[str, ...]


AGGREGATED = BNPolicy("aggregated", "McMahan et al. 2017 with every tensor averaged", _BN)
CLIENT_SPECIFIC = BNPolicy("client_specific", "FedBN, Li et al. 2021", frozenset())
CLIENT_STATISTICS = BNPolicy(
    "client_statistics", "SiloBN, Andreux et al. 2020", frozenset({Role.AFFINE})
)
CLIENT_AFFINE = BNPolicy("client_affine", "the converse of SiloBN", frozenset({Role.STATISTIC}))

BN_POLICIES: dict[str, BNPolicy] = {
    policy.name: policy
    for policy in (AGGREGATED, CLIENT_SPECIFIC, CLIENT_STATISTICS, CLIENT_AFFINE)
}
