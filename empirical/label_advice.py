"""Whether to tell a user that clients differ in their classes, cheap where they do not."""

import numpy as np
import torch

from empirical.data.client import Client
from empirical.label_shift import LARGE, label_shift


def label_advice(clients: list[Client]) -> str | None:
    """The sentence of `label_shift` on these clients, None where it has nothing to say.

    The test, which may draw thousands of tables, is left out where no client's proportions are
    farther than 0.1 from the federation's, or where χ² is below its mean plus three standard
    deviations, where its p-value is above 0.001 whatever the degrees of freedom.
    """
    if len(clients) < 2 or len({client.name for client in clients}) < len(clients):
        return None
    known = max(client.train.classes for client in clients)
    labels = [torch.cat([client.train.labels, client.test.labels]) for client in clients]
    table = np.stack([torch.bincount(part, minlength=known).numpy() for part in labels])
    table = table[:, table.sum(0) > 0]
    shares, whole = table / table.sum(1, keepdims=True), table.sum(0) / table.sum()
    if 0.5 * np.abs(shares - whole).sum(1).max() <= LARGE:
        return None
    expected = np.outer(table.sum(1), whole)
    free = (len(table) - 1) * (table.shape[1] - 1)
    if ((table - expected) ** 2 / expected).sum() < free + 3 * np.sqrt(2 * free):
        return None
    return label_shift(clients).sentence
