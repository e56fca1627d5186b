"""Clients of too few images are refused before anything is computed, for each kind of run."""

import numpy as np
import pytest
import torch
from federations import toy_federation

from empirical import Client, Split
from empirical.studies import Setting, causal_plan, check_clients, generalization_plan
from empirical.studies.fit import _of_one_class

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
    with pytest.raises(ValueError, match="'toy-2' has test images of one class alone, whose share"):
        check_clients(configs(causal_plan, "label_shift"), flat)
    flat = [*CLIENTS[:2], cut(CLIENTS[2], train=1)]
    with pytest.raises(ValueError, match="'toy-2' has training images of one class alone"):
        check_clients(configs(causal_plan, "label_shift"), flat)
    few = [*CLIENTS[:2], cut(CLIENTS[2], train=2)]
    with pytest.raises(ValueError, match="'toy-2' has too few images of each class"):
        check_clients(configs(causal_plan, "label_shift"), few)


def test_test_images_of_one_class_give_no_ideal_joint_error():
    plan = configs(generalization_plan, "divergence")
    flat = [cut(c, labels=[3] * 20) for c in CLIENTS]
    with pytest.raises(ValueError, match="the clients' 60 test images are all of one class"):
        check_clients(plan, flat)
    # One other image: it is among the fitted halves once in two draws.
    flat[1] = cut(CLIENTS[1], labels=[3] * 19 + [5])
    with pytest.raises(ValueError, match=r"nearly all of one class.*of more classes"):
        check_clients(plan, flat)
    check_clients(plan, [cut(c, labels=[k] * 20) for k, c in enumerate(CLIENTS)])
    check_clients(plan, [*CLIENTS[:2], cut(CLIENTS[2], labels=[3] * 20)])


@pytest.mark.parametrize("others", [1, 3])
def test_the_chance_of_halves_of_one_class_is_that_of_draws(others):
    flat = [cut(c, test=12, labels=[5] * others + [3] * (20 - others)) for c in CLIENTS[:2]]
    rng, draws = np.random.default_rng(0), 4000
    alone = [
        len({int(y) for c in flat for y in c.test.labels[rng.permutation(12)[:6]]}) == 1
        for _ in range(draws)
    ]
    chance = _of_one_class(flat)
    # Five standard deviations of a share of 4,000 draws.
    assert abs(np.mean(alone) - chance) < 5 * (chance * (1 - chance) / draws) ** 0.5
