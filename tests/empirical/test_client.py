import pickle

import numpy as np
import pytest
import torch
from toy import unchecked

from empirical.data.client import Client, Split, fingerprint


def images(n=4, channels=3, height=28, width=28, dtype=torch.uint8):
    values = torch.arange(n * channels * height * width) % 251
    return values.reshape(n, channels, height, width).to(dtype)


def split(n=4, **shape):
    return Split(images(n, **shape), torch.arange(n) % 10)


def test_a_split_keeps_what_it_was_given():
    given = split(12)
    assert len(given) == 12
    assert torch.equal(given.images, images(12))
    assert given.labels.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]


def test_a_strided_view_becomes_contiguous():
    view = images(8)[::2].transpose(2, 3)
    labels = torch.arange(8)[::2]
    made = Split(view, labels)
    assert made.images.is_contiguous() and made.labels.is_contiguous()
    assert torch.equal(made.images, view)


def test_inputs_map_black_and_white_to_minus_one_and_one():
    pixels = torch.zeros(1, 3, 2, 2, dtype=torch.uint8)
    pixels[0, 0, 0, 0], pixels[0, 1, 1, 1] = 255, 51
    seen = Split(pixels, torch.tensor([0])).inputs()
    assert seen.dtype == torch.float32
    assert seen[0, 0, 0, 0] == 1 and seen[0, 2, 0, 1] == -1
    assert seen[0, 1, 1, 1].item() == pytest.approx(-0.6, abs=1e-7)  # a float32's rounding
    assert pixels.sum() == 306  # the stored images are left as they were


def test_one_class_only_is_fine():
    assert len(Split(images(3), torch.full((3,), 7))) == 3


@pytest.mark.parametrize(
    ("pixels", "labels", "error", "says"),
    [
        (images(0), torch.arange(0), ValueError, "at least one image"),
        (images(2, channels=1), torch.arange(2), ValueError, r"\(n, 3, height, width\)"),
        (images(2)[0], torch.arange(3), ValueError, r"\(n, 3, height, width\)"),
        (images(2, dtype=torch.float32), torch.arange(2), TypeError, "uint8"),
        (torch.full((2, 3, 28, 28), torch.nan), torch.arange(2), TypeError, "NaN"),
        (images(2, dtype=torch.int64), torch.arange(2), TypeError, "uint8"),
        (images(2).numpy(), torch.arange(2), TypeError, "from_numpy"),
        (images(2), [0, 1], TypeError, "from_numpy"),
        (images(2), torch.arange(2).float(), TypeError, "int64"),
        (images(2), torch.arange(2, dtype=torch.int32), TypeError, "int64"),
        (images(2), torch.eye(2, dtype=torch.int64), ValueError, "one-hot"),
        (images(2), torch.arange(3), ValueError, "2 images but 3 labels"),
        (images(2), torch.tensor([0, 10]), ValueError, "label 10 of image 1 is outside 0 … 9"),
        (images(2), torch.tensor([-1, 0]), ValueError, "label -1 of image 0"),
    ],
)
def test_a_bad_split_is_refused_with_advice(pixels, labels, error, says):
    with pytest.raises(error, match=says):
        Split(pixels, labels)


@pytest.mark.parametrize("classes", [0, -1, True, 2.5])
def test_the_number_of_classes_is_a_positive_integer(classes):
    with pytest.raises(ValueError, match="positive integer"):
        Split(images(1), torch.tensor([0]), classes=classes)


def test_more_classes_admit_larger_labels():
    assert Split(images(1), torch.tensor([64]), classes=65).classes == 65


@pytest.mark.parametrize(
    ("name", "train", "test", "error", "says"),
    [
        ("", split(), split(), ValueError, "not empty"),
        (3, split(), split(), TypeError, "string"),
        ("a", (images(), torch.arange(4)), split(), TypeError, "wrap the tensors"),
        ("a", split(), split(height=32), ValueError, "28×28, test images 32×28"),
        ("a", split(), Split(images(), torch.arange(4), 7), ValueError, "10 classes, test 7"),
    ],
)
def test_a_bad_client_is_refused(name, train, test, error, says):
    with pytest.raises(error, match=says):
        Client(name, train, test)


def test_a_client_goes_to_another_process_whole():
    client = Client("a", split(), split(6))
    back = pickle.loads(pickle.dumps(client))
    assert back.name == "a" and torch.equal(back.test.images, client.test.images)


def test_the_fingerprint_sees_one_changed_pixel_label_and_shape():
    client = Client("a", split(), split())
    print_ = fingerprint([client])["a"]
    assert set(print_) == {"train_images", "train_labels", "test_images", "test_labels"}
    assert print_["train_images"] == print_["test_images"]  # the same pixels, wherever they lie
    changed = images()
    changed[3, 2, 27, 27] ^= 1
    other = Client("a", Split(changed, client.train.labels.flip(0)), client.test)
    after = fingerprint([other])["a"]
    assert after["train_images"] != print_["train_images"]
    assert after["train_labels"] != print_["train_labels"]
    assert after["test_images"] == print_["test_images"]
    reshaped = Split(client.train.images.reshape(4, 3, 14, 56), client.train.labels)
    assert (
        fingerprint([Client("a", reshaped, reshaped)])["a"]["train_images"]
        != (print_["train_images"])
    )


def test_the_fingerprint_is_one_that_anyone_can_compute():
    import hashlib

    client = Client("a", split(2), split(2))
    expected = hashlib.sha256(b"<i8 (2,)" + np.arange(2, dtype="<i8").tobytes()).hexdigest()
    assert fingerprint([client])["a"]["train_labels"] == expected


def test_two_clients_of_one_name_are_refused():
    client = Client("a", split(), split())
    with pytest.raises(ValueError, match="two clients are called 'a'"):
        fingerprint([client, client])


@pytest.mark.parametrize(
    ("clients", "message"),
    [
        ([1], "this holds int: make each one with Client"),
        (1, "a list of Client, got int"),
        ("ab", "a list of Client, got str"),
        ({}, "a list of Client, got dict"),
        (None, "a list of Client, got NoneType"),
    ],
)
def test_what_is_no_list_of_clients_has_no_fingerprint(clients, message):
    with pytest.raises(TypeError, match=message):
        unchecked(fingerprint)(clients)
