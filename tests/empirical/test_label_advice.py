"""The advice on clients unlike in their classes: that of the test, and where it is given."""

import warnings

import numpy as np
import pytest
import torch
from federations import toy_federation

from empirical import (
    BN_POLICIES,
    Client,
    Schedule,
    Split,
    build_algorithm,
    build_model,
    federate,
    label_shift,
)
from empirical.label_advice import label_advice


def dealt(rng, sizes, concentration):
    """Give clients whose class proportions are drawn; images do not matter."""

    def split(n, shares):
        labels = torch.from_numpy(rng.choice(4, size=n, p=shares))
        return Split(torch.zeros(n, 3, 2, 2, dtype=torch.uint8), labels, 4)

    shares = rng.dirichlet(np.full(4, concentration), size=len(sizes))
    return [
        Client(f"c{i}", split(n, share), split(n, share))
        for i, (n, share) in enumerate(zip(sizes, shares, strict=True))
    ]


@pytest.mark.parametrize("concentration", [0.5, 5.0, 50.0, 1e6])
def test_it_is_the_sentence_of_the_test_itself(concentration):
    rng = np.random.default_rng(3)
    for sizes in ((5, 5), (40, 40, 40), (400, 30), (3, 200, 60, 9)):
        clients = dealt(rng, sizes, concentration)
        assert label_advice(clients) == label_shift(clients).sentence


def test_one_client_or_two_of_one_name_have_none():
    (client,) = dealt(np.random.default_rng(0), (30,), 1.0)
    assert label_advice([client]) is None and label_advice([client, client]) is None


def unlike():
    def relabelled(split, first):
        labels = first + torch.arange(len(split)) % 5
        return Split(split.images, labels, split.classes)

    return [
        Client(c.name, *(relabelled(split, 5 * (k > 0)) for split in (c.train, c.test)))
        for k, c in enumerate(toy_federation((24, 24, 24), test=20))
    ]


@pytest.mark.parametrize("policy", ["client_specific", "client_statistics"])
def test_training_with_statistics_of_each_client_says_so(policy):
    start = build_model("compact_cnn", 0), unlike(), Schedule(rounds=1)
    with pytest.warns(UserWarning, match="classes differ"):
        federate(build_algorithm("fedavg"), BN_POLICIES[policy], *start)


@pytest.mark.parametrize("policy", ["aggregated", "client_specific"])
def test_nothing_is_said_of_shared_statistics_or_of_like_clients(policy):
    clients = unlike() if policy == "aggregated" else toy_federation((24, 24, 24), test=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        start = build_model("compact_cnn", 0), clients, Schedule(rounds=1)
        federate(build_algorithm("fedavg"), BN_POLICIES[policy], *start)
