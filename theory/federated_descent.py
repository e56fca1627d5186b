"""Federated training of f and f*: E local steps and partial participation, beyond Theorem III.4.

The theorem is about full-batch gradient descent on L = ½ Σ_p (f(x_p) − y_p)². Write F_i for client
i's part of that sum, n_i for its number of points, p_i = n_i/n, and L_i = F_i/p_i for its own loss,
so that L = Σ_i p_i L_i. A round from the server's parameters w:

1. each sampled client takes E full-batch steps of size η on L_i, starting from w;
2. the server averages what is shared with the weights p_i, renormalised over the sampled clients.

Shared are V and, for aggregated BN, γ. For client-specific BN γ_{k,i} stays on client i, which
steps on it with η on F_i (that is p_iη on L_i): nobody averages it, and the average is what
multiplies a step on L_i by p_i. With E = 1 and everyone a round is then one step of
`gradient_descent` of size η:

    Σ_i p_i (w − η ∇L_i) = w − η ∇L,    γ_{k,i} − η ∂F_i/∂γ_{k,i} = γ_{k,i} − η ∂L/∂γ_{k,i},

since no other F_j depends on γ_{k,i}. A single client with E steps does E of them. For E > 1 or
with some clients left out Theorem III.4 and Corollary III.5 say nothing: neither a rate nor
convergence is promised.
"""

import math
from collections.abc import Collection, Hashable, Iterable, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float

from theory._engine import Engine
from theory._loose import Anything, Names, Real, Rounds, Whole
from theory._validate import as_groups, positive, real
from theory.descent import Problem, as_task, loss_limit
from theory.network import Array, Inputs, Network, at_least


@dataclass(frozen=True)
class FederatedTrajectory:
    """What federated training did; outside Theorem III.4 unless E = 1 and everyone took part.

    Attributes:
        losses: L = ½‖f − y‖² over all clients' points after 0, 1, … rounds, every client with its
            own γ; all finite, shorter than asked if training diverged.
        status: "finished" or "diverged".
        diverged_at: the first round whose loss is not finite or has grown beyond 1e12 times the
            start, or None.
        network: the parameters after the last round of `losses`.
        step_size: η of the shared parameters on L_i.
        local_steps: E.
        participants: the clients of every round, in the order of the network's.
        weights: p_i of every client that has points, in the same order; they sum to 1.
        inside_theorem: whether E = 1 and everyone took part in every round.
    """

    losses: Float[Array, " t"]
    status: Literal["finished", "diverged"]
    diverged_at: int | None
    network: Network
    step_size: float
    local_steps: int
    participants: tuple[Names, ...]
    weights: dict[Hashable, float]
    inside_theorem: bool

    @property
    def squared_residuals(self) -> Float[Array, " t"]:
        """‖f − y‖² after every round."""
        return 2.0 * self.losses


def federated_descent(
    network: Network | Anything,
    problem: Problem | Anything,
    *,
    step_size: Real,
    rounds: Whole,
    local_steps: Whole = 1,
    participants: Rounds | None = None,
) -> FederatedTrajectory:
    """Trains f or f* by rounds of local full-batch steps and averaging; see this module.

    Args:
        network: f or f* at the start, the same on server and clients. It is not changed.
        problem: points, targets, clients and covariances. Clients that the network names and that
            have no points take no part.
        step_size: η > 0.
        rounds: number of rounds, 0 or more.
        local_steps: E, 1 or more.
        participants: the names of the clients of every round, as `sample_participants` draws
            them; None for everyone always.

    Returns:
        The loss after every round. Divergence, on a client too, is a status, never a NaN.

    Raises:
        ValueError, TypeError: bad points, targets, labels, covariances, step size or numbers; a
            round without a client, with one twice or with one that has no points; a number of
            rounds that `participants` does not match.
    """
    inputs, targets = as_task(network, problem)
    eta, total = positive(step_size, "step_size"), at_least(rounds, 0, "rounds")
    steps = at_least(local_steps, 1, "local_steps")
    server = _Server(network, inputs, targets)
    chosen = _as_rounds(participants, total, server.names)
    losses: list[float] = []
    limit, last = np.inf, network
    for t in range(total + 1):
        loss = server.loss()
        if t == 0:
            limit = loss_limit(server.whole, loss)
        if not math.isfinite(loss) or loss > limit:
            break
        losses.append(loss)
        last = server.whole.network()
        if t < total:
            server.round(chosen[t], eta, steps)
    finished = len(losses) == total + 1
    return FederatedTrajectory(
        np.array(losses),
        "finished" if finished else "diverged",
        None if finished else len(losses),
        last,
        eta,
        steps,
        tuple(tuple(server.names[i] for i in some) for some in chosen),
        dict(zip(server.names, server.weights, strict=True)),
        steps == 1 and all(len(some) == len(server.names) for some in chosen),
    )


def sample_participants(
    clients: Sequence[Hashable] | Anything, fraction: Real, rounds: Whole, seed: Whole
) -> tuple[Names, ...]:
    """Draws the clients of every round: round(fraction · N) of them without replacement.

    Args:
        clients: the names to draw from.
        fraction: of the clients that takes part, in (0, 1].
        rounds: number of rounds, 0 or more.
        seed: non-negative integer.

    Returns:
        A tuple of names for every round, in the order of `clients`.

    Raises:
        ValueError, TypeError: no clients or one twice, a fraction outside (0, 1] or so small that
            nobody is left, a number of rounds or a seed that is none.
    """
    if not isinstance(clients, Sized):
        raise TypeError(
            "clients must be a sequence with the name of every client, such as a list, not "
            f"{type(clients).__name__}."
        )
    names = as_groups(clients, len(clients)).names
    if not names or len(names) < len(clients):
        raise ValueError("clients must name every client once, and at least one client.")
    share = real(fraction, "fraction")
    if not 0 < share <= 1:
        raise ValueError(f"fraction must be in (0, 1], not {share!r}.")
    count = math.floor(share * len(names) + 0.5)
    if count == 0:
        raise ValueError(
            f"a fraction of {share!r} of {len(names)} clients is nobody: take at least "
            f"{1 / len(names):.3g}."
        )
    rng, total = np.random.default_rng(at_least(seed, 0, "seed")), at_least(rounds, 0, "rounds")
    drawn = (sorted(rng.choice(len(names), count, replace=False)) for _ in range(total))
    return tuple(tuple(names[i] for i in some) for some in drawn)


class _Server:
    """Shared parameters, the clients' own γ, and an engine for each client's points."""

    def __init__(self, network: Network, inputs: Inputs, targets: Float[Array, " n"]) -> None:
        self.whole = Engine(network, inputs, targets)
        self.columns = np.unique(inputs.column).tolist()
        self.names = tuple(network.clients[i] for i in self.columns)
        own = [np.flatnonzero(inputs.column == i) for i in self.columns]
        self.weights = [len(rows) / len(targets) for rows in own]
        self.clients = [
            Engine(
                network,
                replace(inputs, x=inputs.x[rows], column=inputs.column[rows]),
                targets[rows],
            )
            for rows in own
        ]
        self.specific = network.client_specific

    def loss(self) -> float:
        """L of the server's shared parameters and each client's own γ."""
        return self.whole.forward()

    def round(self, chosen: Sequence[int], eta: float, steps: int) -> None:
        """One round: local steps of the chosen clients, then the average."""
        total = math.fsum(self.weights[i] for i in chosen)
        v, gamma = np.zeros_like(self.whole.v), np.zeros_like(self.whole.gamma)
        if self.specific:
            gamma[:] = self.whole.gamma
        for i in chosen:
            client, own = self.clients[i], eta / self.weights[i]
            client.v[:], client.gamma[:] = self.whole.v, self.whole.gamma
            for _ in range(steps):
                if not math.isfinite(client.forward()):
                    self.whole.v[:] = np.inf  # the loss tells
                    return
                client.step(own, eta if self.specific else own)
            share = self.weights[i] / total
            with np.errstate(over="ignore", invalid="ignore"):
                v += share * client.v
                if self.specific:
                    gamma[self.columns[i]] = client.gamma[self.columns[i]]
                else:
                    gamma += share * client.gamma
        self.whole.v[:], self.whole.gamma[:] = v, gamma


def _as_rounds(participants: Rounds | None, total: int, names: Names) -> list[list[int]]:
    """Positions in `names` of the clients of every round."""
    if participants is None:
        return [list(range(len(names)))] * total
    if isinstance(participants, str | bytes) or not isinstance(participants, Iterable):
        raise TypeError("participants must be a sequence of the names of every round, or None.")
    given, place = list(participants), {name: i for i, name in enumerate(names)}
    if len(given) != total:
        raise ValueError(f"participants are given for {len(given)} rounds of {total}.")
    return [_as_round(some, t, place) for t, some in enumerate(given)]


def _as_round(some: object, t: int, place: dict[Hashable, int]) -> list[int]:
    if isinstance(some, str | bytes) or not isinstance(some, Collection):
        raise TypeError(f"the participants of round {t} must be a collection of names.")
    found = []
    for name in some:
        if not isinstance(name, Hashable) or name not in place:
            raise ValueError(
                f"{name!r}, a participant of round {t}, is no client with points; these are "
                f"{', '.join(map(repr, list(place)[:8]))}{', …' * (len(place) > 8)}."
            )
        found.append(place[name])
    if not found or len(set(found)) < len(found):
        raise ValueError(f"round {t} needs at least one participant, and each only once.")
    return sorted(found)
