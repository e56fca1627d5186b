"""Parts of a federation's data: one client left out, fewer images, domains dealt out, validation.

All draws are stratified by class and fixed by the run's seed and the client's name.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64

from empirical.checks import is_real, is_whole
from empirical.data.client import Client, Split, as_clients
from empirical.data.strata import in_proportion
from empirical.registry import find
from empirical.seeds import numpy_generator

VALIDATION = 0.2
"""Share of each client's training images on which hyper-parameters are chosen."""


def study_clients(config: Mapping[str, Any], clients: Iterable[Client]) -> list[Client]:
    """The clients that a training run trains, from those of its federation.

    Args:
        config: of the run. "held_out" leaves one client out; "fraction" keeps a share of each
            one's training images; "per_domain" deals each one's to k clients "<name>/1" …
            "<name>/k", each measured on the whole test split; "validation" keeps 80 % for
            training and makes the rest the test split.
        clients: the whole federation.

    Raises:
        ValueError: an unknown client, a value out of range, or a client with too few images.
    """
    members = as_clients(clients)
    seed = config["schedule"]["seed"]
    if "held_out" in config:
        outside = held_out(config, members)
        members = [client for client in members if client is not outside]
    if config.get("validation"):
        members = [validated(client, seed) for client in members]
    if "fraction" in config:
        members = [fewer(client, config["fraction"], seed) for client in members]
    if "per_domain" in config:
        members = [part for c in members for part in dealt(c, config["per_domain"], seed)]
    return members


def held_out(config: Mapping[str, Any], clients: Iterable[Client]) -> Client:
    """The client that a run leaves out.

    Raises:
        ValueError: no client of this name.
    """
    return find(
        {client.name: client for client in as_clients(clients)}, config["held_out"], "client"
    )


def validated(client: Client, seed: int) -> Client:
    """The client with 80 % of its training images, and the other 20 % in place of its test split.

    Raises:
        ValueError: fewer than three images, of which two must be left to train.
    """
    order = _order(client, seed, "validation")
    aside = max(1, round(VALIDATION * len(order)))
    if len(order) - aside < 2:
        raise ValueError(
            f"client '{client.name}' has {len(order)} training images, too few to set a fifth "
            "aside for validation: give it at least 3"
        )
    return Client(
        client.name, _rows(client.train, order[aside:]), _rows(client.train, order[:aside])
    )


def fewer(client: Client, fraction: float, seed: int) -> Client:
    """The client with a share of its training images, at least two; a smaller share is a subset.

    Raises:
        ValueError: a fraction outside (0, 1].
    """
    if not (is_real(fraction) and 0 < fraction <= 1):
        raise ValueError(f"fraction is a share of the images in (0, 1], got {fraction!r}")
    order = _order(client, seed, "fraction")
    return Client(
        client.name, _rows(client.train, order[: max(2, round(fraction * len(order)))]), client.test
    )


def dealt(client: Client, parts: int, seed: int) -> list[Client]:
    """The client's training images dealt to `parts` clients, each class evenly.

    Raises:
        ValueError: no part, or too few images for two each.
    """
    n = len(client.train)
    if not (is_whole(parts) and 1 <= parts <= n // 2):
        raise ValueError(
            f"client '{client.name}' has {n} training images, at least two for each of its parts: "
            f"per_domain is 1 … {n // 2}, got {parts!r}"
        )
    order = _order(client, seed, "per_domain")
    # Sorted by class, so that each class goes round; the order within it stays drawn.
    order = order[np.argsort(client.train.labels.numpy()[order], kind="stable")]
    return [
        Client(f"{client.name}/{k + 1}", _rows(client.train, order[k::parts]), client.test)
        for k in range(parts)
    ]


def _order(client: Client, seed: int, purpose: str) -> Int64[np.ndarray, " n"]:
    rng = numpy_generator(seed, "study", purpose, client.name)
    return in_proportion(client.train.labels.numpy(), rng)


def _rows(split: Split, rows: Int64[np.ndarray, " k"]) -> Split:
    kept = torch.from_numpy(np.sort(rows))
    return Split(split.images[kept], split.labels[kept], split.classes)
