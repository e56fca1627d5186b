"""FedBN's digits are read from synthetic files of its layout, as its own code shows them to a net.

The real files are tried where they are, and nowhere asked for.
"""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from toy import unchecked

from empirical.data import FEDERATIONS, fedbn_digits, load_federation

SHAPES = {
    "MNIST": (28, 28),
    "SVHN": (32, 32, 3),
    "USPS": (16, 16),
    "SynthDigits": (32, 32, 3),
    "MNIST_M": (28, 28, 3),
}
REAL = Path(__file__).parents[2] / "../shared/data/fedbn_digits"


def part(domain, number, n):
    draws = np.random.default_rng([len(domain), number])
    images = draws.integers(0, 256, (n, *SHAPES[domain]), dtype=np.uint8)
    return images, draws.integers(0, 10, n)


def save(file, value):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(pickle.dumps(value))


@pytest.fixture
def folder(tmp_path):
    for domain in SHAPES:
        for number in range(3):
            file = tmp_path / domain / "partitions" / f"train_part{number}.pkl"
            save(file, part(domain, number, 3 + number))
        save(tmp_path / domain / "test.pkl", part(domain, 9, 2))
    return tmp_path


def test_five_clients_of_28_by_28_in_three_channels(folder):
    clients = load_federation("fedbn_digits", data=folder)
    assert tuple(client.name for client in clients) == tuple(SHAPES)
    for client in clients:
        assert client.train.images.shape == (3, 3, 28, 28)
        assert client.test.images.shape == (2, 3, 28, 28)
        assert client.train.labels.tolist() == part(client.name, 0, 3)[1].tolist()
        assert client.test.labels.tolist() == part(client.name, 9, 2)[1].tolist()
        assert client.train.classes == 10


def as_the_authors_do(image):
    """Their transforms, one by one: Resize([28, 28]) of the image, then Grayscale(3) of mode L."""
    picture = Image.fromarray(image)
    if picture.size != (28, 28):
        picture = picture.resize((28, 28), Image.Resampling.BILINEAR)
    if picture.mode == "L":
        picture = Image.merge("RGB", (picture, picture, picture))
    return np.asarray(picture).transpose(2, 0, 1)


def test_pixels_are_those_of_the_authors_transforms(folder):
    for client in load_federation("fedbn_digits", data=folder):
        for split, (number, n) in ((client.train, (0, 3)), (client.test, (9, 2))):
            for mine, image in zip(split.images, part(client.name, number, n)[0], strict=True):
                assert mine.numpy().tolist() == as_the_authors_do(image).tolist()
    # ToTensor and Normalize(0.5, 0.5).
    black_and_white = torch.tensor([0, 255], dtype=torch.uint8).reshape(1, 1, 1, 2)
    split = fedbn_digits.Split(black_and_white.expand(1, 3, 1, 2), torch.tensor([0]))
    assert split.inputs().unique().tolist() == [-1, 1]


def test_a_16_by_16_edge_is_enlarged_between_its_neighbours():
    # Black up to column 7, white from 8. Columns 13 and 14 of 28 lie at 13.5 · 16/28 - 0.5 =
    # 7 + 3/14 and 7 + 11/14: those shares of white. The others lie between equals.
    image = np.zeros((1, 16, 16), dtype=np.uint8)
    image[:, :, 8:] = 255
    row = fedbn_digits.resized(image)[0, 0, 0].tolist()
    assert row[:13] == [0] * 13 and row[15:] == [255] * 13
    assert row[13:15] == [round(255 * 3 / 14), round(255 * 11 / 14)]


def test_parts_are_concatenated_in_order(folder):
    clients = fedbn_digits.load(folder, parts=3)
    for client in clients:
        labels = np.concatenate([part(client.name, k, 3 + k)[1] for k in range(3)])
        assert client.train.labels.tolist() == labels.tolist()
        assert len(client.train.images) == 12 and len(client.test) == 2
    for parts in (0, 11, 1.5, True, "2"):
        with pytest.raises(ValueError, match="parts must be a whole number from 1 to 10"):
            unchecked(fedbn_digits.load)(folder, parts=parts)
    with pytest.raises(ValueError, match=r"MNIST/partitions/train_part3\.pkl cannot be read"):
        fedbn_digits.load(folder, parts=4)


def test_labels_may_be_of_any_integer_dtype_in_a_column_and_svhn_may_call_zero_ten(folder):
    images = part("SVHN", 9, 4)[0]
    for dtype in (np.uint8, np.int32, ">i8"):
        for shape in ((4,), (4, 1)):
            labels = np.array([10, 9, 1, 0], dtype=dtype).reshape(shape)
            save(folder / "SVHN" / "test.pkl", (images, labels))
            client = load_federation("fedbn_digits", data=folder)[1]
            assert client.test.labels.tolist() == [0, 9, 1, 0]


def test_progress_ends_at_one(folder):
    said = []
    load_federation("fedbn_digits", data=folder, progress=said.append)
    assert said == sorted(said) and said[0] == 0 and said[-1] == 1


# refusals


def refuse(folder, why, domain="USPS", value=None):
    file = folder / domain / "test.pkl"
    save(file, value)
    with pytest.raises(ValueError, match=why) as refused:
        load_federation("fedbn_digits", data=folder)
    assert str(file) in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("images", "labels", "why"),
    [
        (np.zeros((2, 28, 28), np.uint8), [1, 2], r"USPS has uint8 and \(n, 16, 16\)"),
        (np.zeros((2, 16, 16, 3), np.uint8), [1, 2], r"\(2, 16, 16, 3\), where USPS"),
        (np.zeros((2, 16, 16), np.int64), [1, 2], "images of int64"),
        (np.zeros((0, 16, 16), np.uint8), np.zeros(0, np.int64), "n ≥ 1"),
        (np.zeros((2, 16, 16), np.uint8), [1, 2, 3], r"2 images, but labels of the shape \(3,\)"),
        (np.zeros((2, 16, 16), np.uint8), np.eye(2, 10, dtype=np.int64), "each image needs one"),
        (np.zeros((2, 16, 16), np.uint8), [3, 10], "label 10 of image 1 is no digit 0 … 9"),
        (np.zeros((2, 16, 16), np.uint8), [-1, 3], "label -1 of image 0"),
        (np.zeros((2, 16, 16), np.float32), [1, 2], "dtype 'f4'"),
        (np.zeros((2, 16, 16), np.uint8), [1.0, 2.0], "dtype 'f8'"),
    ],
)
def test_files_of_another_layout_are_refused_by_name(folder, images, labels, why):
    refuse(folder, why, value=(images, np.asarray(labels)))


def test_only_svhn_may_call_zero_ten(folder):
    refuse(folder, "label 11 of image 0", "SVHN", (part("SVHN", 9, 1)[0], np.array([11])))
    for domain in ("MNIST", "SynthDigits", "MNIST_M"):
        save(folder / "SVHN" / "test.pkl", part("SVHN", 9, 2))
        refuse(folder, "label 10", domain, (part(domain, 9, 1)[0], np.array([10])))
        save(folder / domain / "test.pkl", part(domain, 9, 2))


def test_a_malicious_file_is_refused_and_does_not_run(folder):
    mark = folder / "it_ran"

    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {mark}",)

    refuse(folder, r"wants \w+\.system; nothing of it was run", value=(Evil(), np.array([1])))
    assert not mark.exists()


def test_a_missing_partition_and_a_cut_file_are_named(folder):
    file = folder / "SVHN" / "partitions" / "train_part0.pkl"
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"train_part0\.pkl is damaged or cut short"):
        load_federation("fedbn_digits", data=folder)
    file.unlink()
    with pytest.raises(
        ValueError, match=r"SVHN/partitions/train_part0\.pkl cannot be read .*No su"
    ):
        load_federation("fedbn_digits", data=folder)


def test_a_folder_is_asked_for_and_missing_domains_are_named(folder):
    with pytest.raises(ValueError, match=r"'fedbn_digits' is read from a folder.*--data"):
        load_federation("fedbn_digits")
    (folder / "USPS").rename(folder / "usps2")
    with pytest.raises(ValueError, match=r"lacks the folder USPS of 'fedbn_digits'.*unpacks to"):
        load_federation("fedbn_digits", data=folder)
    with pytest.raises(ValueError, match="lacks the folders MNIST, SVHN, USPS, SynthDigits, MNIST"):
        load_federation("fedbn_digits", data=folder / "none")


# a folder in place of a name


def test_the_folder_itself_can_be_loaded(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("HOME", str(folder.parent))
    named = load_federation("fedbn_digits", data=folder)
    for path in (folder, str(folder), f"./{folder.name}", folder.name, f"~/{folder.name}"):
        for mine, other in zip(load_federation(path), named, strict=True):
            assert mine.name == other.name
            assert torch.equal(mine.train.images, other.train.images)


def test_a_folder_with_a_data_folder_or_without_a_domain_is_refused(folder):
    with pytest.raises(ValueError, match="folder of a federation already: leave out"):
        load_federation(folder, data=folder)
    with pytest.raises(ValueError, match=r"'digits' comes installed.*name .* 'fedbn_digits'"):
        load_federation("digits", data=folder)
    (folder / "SVHN").rename(folder / "svhn")
    with pytest.raises(ValueError, match=r"is a path.*\(MNIST, SVHN, .*by name: digits, fedbn"):
        load_federation(folder)


def test_the_registry_describes_what_it_loads(folder):
    entry = FEDERATIONS["fedbn_digits"]
    clients = load_federation("fedbn_digits", data=folder)
    assert entry.reads_data and entry.clients == tuple(client.name for client in clients)
    assert entry.image == tuple(clients[0].train.images.shape[1:]) and entry.classes == 10


@pytest.mark.skipif(not REAL.is_dir(), reason="the real files are not here")
def test_the_real_files_are_743_images_a_client():
    clients = load_federation(REAL)
    assert [len(client.train) for client in clients] == [743] * 5
    assert [len(client.test) for client in clients] == [999, 1000, 1000, 1000, 1000]
    for client in clients:
        assert torch.bincount(client.train.labels).min() >= 30  # every digit is there
    assert [len(c.train) for c in fedbn_digits.load(REAL, parts=3)] == [2229] * 5
