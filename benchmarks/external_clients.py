"""Accuracy at a client outside the federation: every way to serve it, over τ, n_t and the order.

    python -m benchmarks.external_clients [--held-out NAME] [--rounds N] [--seed N]

Trains FedAvg without one client of the federation `digits` (compact_cnn, 10 rounds) and prints the
tables of docs/external_clients.md, about a minute on one core.
"""

import argparse
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn

from empirical import (
    BN_POLICIES,
    VARIANTS,
    Client,
    FederationState,
    Schedule,
    Serving,
    build_algorithm,
    build_model,
    federate,
    load_federation,
    serve_external,
)
from empirical.stream import ORDERS

MOMENTA = (0.0, 0.5, 0.9, 0.99)
SIZES = (2, 8, 32, 128)

_OWN = "client_specific"
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "aggregated BN: `server`": ("aggregated", {"variant": "server"}),
    "aggregated BN: `adapted`": ("aggregated", {"variant": "adapted"}),
    **{f"`{variant}`": (_OWN, {"variant": variant}) for variant in VARIANTS},
    '`adapted`, prediction="before"': (_OWN, {"prediction": "before"}),
    '`adapted`, batch_variance="unbiased"': (_OWN, {"batch_variance": "unbiased"}),
    '`adapted`, last="joined"': (_OWN, {"last": "joined"}),
    "`source`, τ = 0.99": (_OWN, {"variant": "source", "momentum": 0.99}),
    "`total`, n_t = 1": (_OWN, {"variant": "total", "batch_size": 1}),
    "`total`, n_t = 1, τ = 0.99": (_OWN, {"variant": "total", "batch_size": 1, "momentum": 0.99}),
}


def train(clients: list[Client], policy: str, rounds: int, seed: int) -> FederationState:
    """FedAvg under a batch-norm policy."""
    schedule = Schedule(rounds=rounds, seed=seed, measure_every=rounds)
    net = build_model("compact_cnn", seed)
    run = federate(build_algorithm("fedavg"), BN_POLICIES[policy], net, clients, schedule)
    for _ in run:
        pass
    return run.state


def table(head: Iterable[object], rows: Iterable[tuple[object, Iterable[float]]]) -> Iterator[str]:
    """Lines of a table in Markdown, accuracies in per cent."""
    head = list(head)
    yield f"| {' | '.join(map(str, head))} |"
    yield f"|{'---|' * len(head)}"
    for name, values in rows:
        yield f"| {name} | {' | '.join(f'{100 * value:.1f}' for value in values)} |"


def tables(client: Client, clients: list[Client], rounds: int, seed: int) -> Iterator[str]:
    """The lines of the page."""
    net: nn.Module = build_model("compact_cnn", seed)
    states = {policy: train(clients, policy, rounds, seed) for policy in ("aggregated", _OWN)}

    def accuracy(serving: Serving, policy: str = _OWN) -> float:
        return serve_external(net, states[policy], client, serving, seed).accuracy

    yield from table(
        ["served", *ORDERS],
        (
            (name, [accuracy(Serving(order=order, **how), policy) for order in ORDERS])
            for name, (policy, how) in WAYS.items()
        ),
    )
    for order in ORDERS:
        yield ""
        yield from table(
            [f"`adapted`, {order}", *(f"τ = {momentum:g}" for momentum in MOMENTA)],
            (
                (f"n_t = {n}", [accuracy(Serving("adapted", m, n, order)) for m in MOMENTA])
                for n in SIZES
            ),
        )


def main() -> None:
    """Prints the tables."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--held-out", default="mnist-m")
    options.add_argument("--rounds", type=int, default=10)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    torch.set_num_threads(1)
    clients = {client.name: client for client in load_federation("digits")}
    outside = clients.pop(chosen.held_out)
    for line in tables(outside, list(clients.values()), chosen.rounds, chosen.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
