"""Clients of too few images are refused before anything is computed, for each kind of run."""

import pytest
import torch
from federations import toy_federation

from empirical import Client, Split
from empirical.studies import Setting, causal_plan, check_clients, generalization_plan

CLIENTS = toy_federation((24, 24, 24), test=20)


def configs(plan, study):
    setting = Setting("quick", "toy", tuple(c.name for c in CLIENTS), "0" * 64)
    return [s.config for s in plan(setting) if s.config["study"] == study]


def cut(client, train=None, test=None, labels=None):
    """The client with its first images alone, or with other labels of its test images."""

    def part(split, n, other=None):
        known = split.labels if other is None else torch.tensor(other)
        return Split(split.images[:n], known[:n], split.classes)

    return Client(client.name, part(client.train, train), part(client.test, test, labels))


def test_enough_images_pass():
    for plan, study in ((generalization_plan, "divergence"), (causal_plan, "label_shift")):
        assert configs(plan, study)
        check_clients(configs(plan, study), CLIENTS)


def test_runs_that_ask_nothing_of_the_clients_are_passed_over():
    check_clients(configs(causal_plan, "structural_training"), [])


@pytest.mark.parametrize("place", [0, 2])
def test_features_of_few_images_cannot_be_compared(place):
    few = [cut(c, test=11) if k == place else c for k, c in enumerate(CLIENTS)]
    with pytest.raises(ValueError, match=f"'toy-{place}' has 11 test images, too few to tell"):
        check_clients(configs(generalization_plan, "divergence"), few)
    check_clients(configs(generalization_plan, "divergence"), [cut(c, test=12) for c in CLIENTS])


def test_one_training_image_of_the_client_outside_whitens_nothing():
    few = [*CLIENTS[:2], cut(CLIENTS[2], train=1)]
    with pytest.raises(ValueError, match="'toy-2' has one training image, which has no covariance"):
        check_clients(configs(generalization_plan, "divergence"), few)


def test_classes_that_cannot_be_skewed_are_refused():
    flat = [*CLIENTS[:2], cut(CLIENTS[2], labels=[3] * 20)]
    with pytest.raises(ValueError, match="one class, whose share cannot be skewed"):
        check_clients(configs(causal_plan, "label_shift"), flat)
    few = [*CLIENTS[:2], cut(CLIENTS[2], train=2)]
    with pytest.raises(ValueError, match="'toy-2' has too few images of each class"):
        check_clients(configs(causal_plan, "label_shift"), few)
