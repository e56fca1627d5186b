"""Whether to tell a user that clients differ in their classes, cheap where they do not."""

import math

import numpy as np

from empirical.data.client import Client
from empirical.label_shift import LARGE, chi_square, class_shares, label_shift, variation


def label_advice(clients: list[Client]) -> str | None:
    """The sentence of `label_shift` on these clients, None where it has nothing to say.

    The test, which may draw thousands of tables, is left out where no client's proportions are
    farther than 0.1 from the federation's, or where χ² is below its mean plus three standard
    deviations, where its p-value is above 0.001 whatever the degrees of freedom.
    """
    if len(clients) < 2 or len({client.name for client in clients}) < len(clients):
        return None
    table, shares, whole = class_shares(clients)
    if max(variation(share, whole) for share in shares) <= LARGE:
        return None
    free = (len(table) - 1) * (table.shape[1] - 1)
    if chi_square(table, np.outer(table.sum(1), whole)) < free + 3 * math.sqrt(2 * free):
        return None
    return label_shift(clients).sentence
