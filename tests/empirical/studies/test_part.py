"""Parts of a federation's data: nothing twice, nothing lost, classes kept, draws by seed."""

import numpy as np
import pytest
import torch
from federations import toy_federation
from hypothesis import given, settings
from hypothesis import strategies as st

from empirical.data.strata import in_proportion
from empirical.seeds import numpy_generator
from empirical.studies import study_clients
from empirical.studies.part import dealt, fewer, validated

FEDERATION = toy_federation((60, 83, 41))


def config(seed=0, **extra):
    return {"schedule": {"seed": seed}, **extra}


def images(split):
    """Each image as a value of its own: the noise makes them all differ."""
    return [image.numpy().tobytes() for image in split.images]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 25), min_size=5, max_size=5).filter(any), st.integers(0, 3))
def test_every_beginning_holds_each_class_in_proportion(counts, seed):
    labels = numpy_generator(seed, "labels").permutation(np.repeat(np.arange(5), counts))
    order = in_proportion(labels, numpy_generator(seed, "test"))
    assert sorted(order) == list(range(len(labels)))
    for m in range(1, len(labels) + 1):
        taken = np.bincount(labels[order[:m]], minlength=5)
        # Half an image of its own rounding, and half of what the other classes' rounding moves.
        assert np.all(np.abs(taken - m * np.array(counts) / len(labels)) < 1.5)


def test_the_order_within_a_class_is_drawn():
    labels = np.zeros(50, dtype=np.int64)
    orders = [in_proportion(labels, numpy_generator(seed, "test")).tolist() for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2] and orders[0] != list(range(50))


def test_a_smaller_fraction_is_a_subset_of_a_larger_one():
    client = FEDERATION[1]
    kept = {f: images(fewer(client, f, 0).train) for f in (0.1, 0.2, 0.5, 1.0)}
    assert [len(part) for part in kept.values()] == [8, 17, 42, 83]
    for one, other in ((0.1, 0.2), (0.2, 0.5), (0.5, 1.0)):
        assert set(kept[one]) < set(kept[other])
    assert kept[1.0] == images(client.train)
    assert images(fewer(client, 0.2, 1).train) != kept[0.2]
    assert images(fewer(client, 0.2, 0).test) == images(client.test)


def test_a_fraction_keeps_the_classes_and_at_least_two_images():
    counts = np.bincount(fewer(FEDERATION[0], 0.5, 0).train.labels, minlength=10)
    assert set(counts) == {3}
    assert len(fewer(FEDERATION[2], 1e-9, 0).train) == 2


@pytest.mark.parametrize("parts", [1, 2, 4, 7])
def test_dealing_gives_every_image_to_one_client(parts):
    client = FEDERATION[1]
    hands = dealt(client, parts, 0)
    assert [hand.name for hand in hands] == [f"toy-1/{k + 1}" for k in range(parts)]
    every = [image for hand in hands for image in images(hand.train)]
    assert len(set(every)) == len(every) and sorted(every) == sorted(images(client.train))
    counts = np.array([np.bincount(hand.train.labels, minlength=10) for hand in hands])
    assert np.all(counts.max(0) - counts.min(0) <= 1)
    assert np.ptp(counts.sum(1)) <= 1
    assert all(images(hand.test) == images(client.test) for hand in hands)


def test_pairs_of_images_and_labels_stay_together():
    client = FEDERATION[0]
    known = dict(zip(images(client.train), client.train.labels.tolist(), strict=True))
    for part in (fewer(client, 0.3, 0), validated(client, 0), *dealt(client, 3, 0)):
        for image, label in zip(images(part.train), part.train.labels.tolist(), strict=True):
            assert known[image] == label


def test_validation_is_a_fifth_that_is_not_trained_on():
    client = FEDERATION[1]
    split = validated(client, 1000)
    fit, aside = set(images(split.train)), set(images(split.test))
    assert len(aside) == 17 and not fit & aside
    assert fit | aside == set(images(client.train))
    assert not aside & set(images(client.test)), "nothing is chosen on test data"
    counts = np.bincount(split.test.labels, minlength=10)
    assert counts.max() - counts.min() <= 1
    again, other = validated(client, 1000), validated(client, 1001)
    assert torch.equal(again.test.images, split.test.images)
    assert images(other.test) != images(split.test)


def test_a_config_says_which_clients_train():
    assert study_clients(config(), FEDERATION) == FEDERATION
    left = study_clients(config(held_out="toy-1"), iter(FEDERATION))
    assert left == [FEDERATION[0], FEDERATION[2]]
    assert [len(c.train) for c in study_clients(config(fraction=0.5), FEDERATION)] == [30, 42, 20]
    names = [c.name for c in study_clients(config(per_domain=2), FEDERATION)]
    assert names == [f"toy-{k}/{part}" for k in range(3) for part in (1, 2)]
    assert [len(c.test) for c in study_clients(config(validation=True), FEDERATION)] == [12, 17, 8]


def test_the_draw_depends_on_the_client_and_not_on_its_place():
    for extra in ({"fraction": 0.2}, {"per_domain": 2}, {"validation": True}):
        whole = study_clients(config(**extra), FEDERATION)
        alone = study_clients(config(**extra), [FEDERATION[2]])
        assert images(whole[-1].train) == images(alone[-1].train)
    first, second = (fewer(c, 0.5, 0) for c in toy_federation((60, 60)))
    assert first.train.labels.tolist() != second.train.labels.tolist()


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"held_out": "toy-9"}, "unknown client 'toy-9'.*did you mean"),
        ({"fraction": 0.0}, r"in \(0, 1\], got 0.0"),
        ({"fraction": 1.1}, "got 1.1"),
        ({"fraction": float("nan")}, "got nan"),
        ({"per_domain": 0}, "got 0"),
        ({"per_domain": 21}, "'toy-2' has 41 training images.*1 … 20, got 21"),
    ],
)
def test_what_cannot_be_parted_is_refused(extra, words):
    with pytest.raises(ValueError, match=words):
        study_clients(config(**extra), FEDERATION)


def test_too_few_images_for_validation_are_refused():
    with pytest.raises(ValueError, match="has 2 training images, too few"):
        validated(toy_federation((2,))[0], 0)
    assert len(validated(toy_federation((3,))[0], 0).train) == 2
