"""The batches that `adapt` gets: their order, sizes, pixels, dtype and layout."""

import pytest
import torch
from torch import Tensor, nn
from toy import bn_net, client, plain_net, unchecked

from empirical import Split, build_model, stream
from empirical.stream import drifted


def split(n: int, classes: int = 3) -> Split:
    """2×2 images, of which each names its row in its first pixel."""
    images = torch.arange(n, dtype=torch.uint8).view(-1, 1, 1, 1).repeat(1, 3, 2, 2)
    images[:, :, 1] = 255
    return Split(images, torch.arange(n) * 7 % classes, classes)


def rows_of(batch: Tensor) -> list[int]:
    """The rows that a batch's pixels name."""
    return ((batch[:, 0, 0, 0] + 1) / 2 * 255).round().long().tolist()


def test_batches_hold_the_rows_and_labels_that_the_stream_names() -> None:
    source = split(11)
    arriving = stream(bn_net(), source, 5, batch_size=4)
    came = [row for batch in arriving for row in rows_of(batch)]
    assert came == arriving.rows.tolist() and came != sorted(came)
    assert sorted(came) == list(range(11))
    assert arriving.labels.tolist() == [source.labels[row].item() for row in came]
    assert [len(batch) for batch in arriving] == list(arriving.sizes) == [4, 4, 3]
    assert len(arriving) == 3
    assert all(map(torch.equal, arriving, arriving))  # once more


def test_pixels_are_normalised_as_in_training() -> None:
    source = client("a", 3, 9).test
    arriving = stream(build_model("compact_cnn", 0), source, 0, batch_size=4)
    assert torch.equal(torch.cat(list(arriving)), source.inputs()[arriving.rows])


@pytest.mark.parametrize("order", ["shuffled", "sorted", "drifting"])
def test_neither_the_batch_size_nor_the_model_moves_the_order(order: str) -> None:
    rows = [
        stream(net, split(40), 3, batch_size=size, order=order, last=last).rows.tolist()
        for net, size, last in (
            (bn_net(), 2, "kept"),
            (plain_net(), 7, "joined"),
            (bn_net(1), 1, "kept"),
        )
    ]
    assert rows[0] == rows[1] == rows[2]
    assert rows[0] != stream(bn_net(), split(40), 4, order=order).rows.tolist()


def test_sorted_is_by_label_and_as_shuffled_within_each() -> None:
    source = split(40)
    shuffled = stream(bn_net(), source, 3).rows.tolist()
    expected = [row for k in range(3) for row in shuffled if source.labels[row] == k]
    arriving = stream(bn_net(), source, 3, order="sorted")
    assert arriving.rows.tolist() == expected
    assert arriving.labels.tolist() == sorted(source.labels.tolist())


def test_the_global_generator_plays_no_part() -> None:
    torch.manual_seed(0)
    one, before = stream(bn_net(), split(20), 0).rows, torch.get_rng_state()
    torch.manual_seed(1)
    assert torch.equal(one, stream(bn_net(), split(20), 0).rows)
    torch.manual_seed(0)
    assert torch.equal(before, torch.get_rng_state())


def test_drift_by_hand() -> None:
    # Five places t = 0, 1/4, …, 1. At t = 1/2 contrast is 3/4 and brightness 32:
    # 0 -> 127.5 − 95.625 + 32 = 63.875, 200 -> 127.5 + 54.375 + 32 = 213.875, 255 -> 255.1.
    # At t = 1, 1/2 and 64: 0 -> 127.75, 200 -> 227.75, 255 -> 255.25.
    levels = torch.tensor([0, 200, 255], dtype=torch.uint8).expand(5, 3)
    moved = drifted(levels, 0, 5)
    assert moved.dtype == torch.uint8
    assert moved[0].tolist() == [0, 200, 255]
    assert moved[2].tolist() == [64, 214, 255]
    assert moved[4].tolist() == [128, 228, 255]
    assert torch.equal(drifted(levels[:2], 3, 5), moved[3:])
    assert drifted(levels[:1], 0, 1).tolist() == [[0, 200, 255]]


def test_a_drifting_stream_is_the_shuffled_one_changed_by_place() -> None:
    source = client("a", 3, 23).test
    plain, moved = (
        stream(bn_net(), source, 1, batch_size=5, order=o) for o in ("shuffled", "drifting")
    )
    assert torch.equal(plain.rows, moved.rows) and torch.equal(plain.labels, moved.labels)
    for place, (x, y) in enumerate(zip(torch.cat([*plain]), torch.cat([*moved]), strict=True)):
        level = ((x + 1) / 2 * 255).round()  # bytes again
        t = place / 22
        level = (127.5 + (1 - t / 2) * (level - 127.5) + 64 * t).round().clamp(0, 255)
        torch.testing.assert_close(y, (level / 255 - 0.5) / 0.5, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("images", "batch_size", "last", "sizes", "note"),
    [
        (8, 4, "kept", [4, 4], None),
        (8, 4, "joined", [4, 4], None),
        (11, 4, "kept", [4, 4, 3], "the last batch has 3"),
        (11, 4, "joined", [4, 7], "joined to the one before it, which has 7"),
        (9, 4, "kept", [4, 5], "the last batch of one image is folded into the one before it: 5"),
        (9, 4, "joined", [4, 5], "folded into the one before it: 5"),
        (3, 4, "kept", [3], "the last batch has 3"),
        (3, 4, "joined", [3], "the last batch has 3"),
        (1, 4, "kept", [1], "the last batch has 1"),
        (3, 1, "kept", [1, 1, 1], None),
        (3, 2, "joined", [3], "folded into the one before it: 3"),
    ],
)
def test_the_last_batch(
    images: int, batch_size: int, last: str, sizes: list[int], note: str | None
) -> None:
    arriving = stream(bn_net(), split(images), 0, batch_size=batch_size, last=last)
    assert list(arriving.sizes) == [len(batch) for batch in arriving] == sizes
    assert len(arriving.notes) == (note is not None)
    assert note is None or note in arriving.notes[0]


def test_answers_come_back_in_the_order_of_the_images() -> None:
    arriving = stream(bn_net(), split(11), 0, batch_size=4)
    answers = torch.cat([batch[:, :, 0, 0] for batch in arriving])
    assert rows_of(arriving.restore(answers)[:, :, None, None]) == list(range(11))
    with pytest.raises(ValueError, match="4 answers to 11 images"):
        arriving.restore(answers[:4])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_dtype_and_layout_are_the_models(dtype: torch.dtype) -> None:
    source = client("a", 3, 9).test
    convolutions, dense = bn_net().to(dtype), plain_net().to(dtype)
    for net in (convolutions, dense):
        x = next(iter(stream(net, source, 0)))
        assert x.dtype is dtype and x.device.type == "cpu"
        last = net is convolutions and dtype is torch.float32
        assert x.is_contiguous(memory_format=torch.channels_last) == last
        assert x.is_contiguous() != last
    assert next(iter(stream(nn.Identity(), source, 0))).dtype is torch.float32


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, got 0"),
        ({"batch_size": 2.0}, "got 2.0"),
        ({"batch_size": True}, "got True"),
        ({"order": "random"}, "order is 'shuffled' or 'sorted' or 'drifting', not 'random'"),
        ({"last": "dropped"}, "last is 'kept' or 'joined', not 'dropped'"),
        ({"seed": -1}, "must not be negative"),
    ],
)
def test_what_no_stream_has_is_refused(choices: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unchecked(stream)(bn_net(), split(9), **{"seed": 0, **choices})


@pytest.mark.parametrize(
    ("model", "images", "message"),
    [
        ("compact_cnn", split(9), "is no Module"),
        (bn_net(), split(9).images, r"got Tensor: give client\.test, or Split\(images, labels\)"),
        (bn_net(), client("a", 3), "got Client"),
    ],
)
def test_other_kinds_are_refused(model: object, images: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        unchecked(stream)(model, images, 0)
