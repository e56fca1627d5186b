"""Whether a federation's clients have the images that a plan needs, before anything is computed."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from empirical.data.client import Client, as_clients
from empirical.serving import Serving, takes_one
from empirical.studies.label_shift import draw_seeds, possible_ratios
from empirical.studies.part import held_out, study_clients

COMPARED_IMAGES = 12
"""Test images of each client that the theory's estimates of divergence need at the least."""

_CHANCE = 1e-6  # of halves of the test images that hold one class: no run should be lost to it

_PARTS = ("held_out", "validation", "fraction", "per_domain")


def check_clients(configs: Iterable[Mapping[str, Any]], clients: Iterable[Client]) -> None:
    """Refuses clients of too few images for the runs of a plan, all of whose nets have batch norm.

    Args:
        configs: of the runs; those that ask nothing of these clients are passed over.
        clients: the whole federation.

    Raises:
        ValueError: a client that trains has one training image, or too few to be divided; one
            that is served in batches has one test image; one whose features are compared has
            fewer than 12; one that is served skewed classes has too few of each; clients whose
            features are compared have test images of one class, or nearly.
    """
    members, seen = as_clients(clients), []
    asked = {"external": _check_served, "divergence": _check_compared, "label_shift": _check_skewed}
    for config in configs:
        if config["study"] in asked:
            asked[config["study"]](config, members)
        parts = {name: config[name] for name in _PARTS if name in config}
        if config["study"] != "training" or parts in seen:
            continue
        seen.append(parts)
        for client in study_clients({**parts, "schedule": {"seed": 0}}, members):
            if len(client.train) == 1:
                raise ValueError(
                    f"client '{client.name}' has one training image, which has no batch "
                    "statistics: give it at least 2, or leave it out"
                )


def _check_served(config: Mapping[str, Any], members: list[Client]) -> None:
    outside = held_out(config, members)
    ways = [Serving(**chosen) for chosen in config["serving"]]
    if len(outside.test) == 1 and not all(map(takes_one, ways)):
        raise ValueError(
            f"client '{outside.name}' has one test image, which has no variance by which it could "
            "be served outside the federation: give it at least 2, or leave it out"
        )


def _check_compared(config: Mapping[str, Any], members: list[Client]) -> None:
    for client in members:
        if (count := len(client.test)) < COMPARED_IMAGES:
            images = "one test image" if count == 1 else f"{count} test images"
            raise ValueError(
                f"client '{client.name}' has {images}, too few to tell its "
                f"features from those of others: give it at least {COMPARED_IMAGES}, and a few "
                "hundred for an interval that says something"
            )
    outside = held_out(config, members)
    if len(outside.train) == 1:
        raise ValueError(
            f"client '{outside.name}' has one training image, which has no covariance that could "
            "whiten its features: give it at least 2, or leave it out"
        )
    if (chance := _of_one_class(members)) > _CHANCE:
        images = sum(len(client.test) for client in members)
        raise ValueError(
            f"the clients' {images} test images are {'' if chance == 1 else 'nearly '}all of one "
            "class, and a classifier fitted on half of them, whose error bounds the ideal joint "
            "error, needs two: give test images of more classes"
        )


def _of_one_class(members: list[Client]) -> float:
    """Probability that halves of each client's test images, drawn at random, hold one class."""
    labels = [client.test.labels for client in members]
    shares = {
        label: math.prod(_half_has_only(label, part) for part in labels)
        for label in torch.cat(labels).unique().tolist()
    }
    return sum(shares.values())


def _half_has_only(label: int, labels: Tensor) -> float:
    half, count = len(labels) // 2, int((labels == label).sum())
    return math.comb(count, half) / math.comb(len(labels), half) if count >= half else 0.0


def _check_skewed(config: Mapping[str, Any], members: list[Client]) -> None:
    possible_ratios(held_out(config, members), config["ratios"], draw_seeds(config))
