"""What a run holds: the server's model and what stays with each client."""

from collections.abc import Mapping
from dataclasses import dataclass

from empirical.registry import find
from empirical.weights import Weights

STATUSES = ("running", "complete", "diverged")


@dataclass(frozen=True)
class FederationState:
    """A run after a finished round; its tensors are never changed in place.

    Attributes:
        status: one of `STATUSES`.
        round: rounds finished; of a diverged run, the round in which it diverged (the weights
            are those of the last finished round before that was measured or trained from).
        server: the server's whole model; its batch norm is the mean of the clients' that have
            trained, also where batch norm stays with the clients.
        clients: name -> what stays with that client; empty until it has trained.
        p: name -> its weight in the objective.
        notes: what a reader of the results should know, such as folded batches.
    """

    status: str
    round: int
    server: Weights
    clients: Mapping[str, Weights]
    p: Mapping[str, float]
    notes: tuple[str, ...] = ()

    def weights(self, client: str = "server") -> Weights:
        """The whole model that serves `client`: the server's, with what stays with the client.

        Raises:
            ValueError: no client of this name.
        """
        if client == "server":
            return dict(self.server)
        return {**self.server, **find(self.clients, client, "client")}
