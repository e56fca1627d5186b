import io
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from figures.federation import GAP, contact_sheet, draw, summarise


def client(n=40, classes=10, size=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(256, size=(n, 3, size, size), dtype=np.uint8), np.arange(n) % classes


def federation(count=4):
    images, labels = {}, {}
    for k in range(count):
        images[f"c{k}"], labels[f"c{k}"] = client(seed=k)
    return images, labels


def cell(mosaic, row, column, size=6):
    y, x = row * (size + GAP), column * (size + GAP)
    return mosaic[y : y + size, x : x + size]


def test_each_column_holds_the_first_images_of_its_class():
    images, labels = client()
    order = np.random.default_rng(1).permutation(len(labels))
    images, labels = images[order], labels[order]
    mosaic = summarise({"a": images}, {"a": labels}, rows=3)["a"]
    assert mosaic.shape == (3 * (6 + GAP) - GAP, 10 * (6 + GAP) - GAP, 3)
    for column in range(10):
        for row, image in enumerate(images[labels == column][:3]):
            assert (cell(mosaic, row, column) == image.transpose(1, 2, 0)).all()
    assert (mosaic[6 : 6 + GAP] == 255).all()


def test_a_class_with_too_few_images_leaves_white_cells():
    images, labels = client(n=11)
    mosaic = summarise({"a": images}, {"a": labels}, rows=2)["a"]
    assert (cell(mosaic, 1, 0) == images[10].transpose(1, 2, 0)).all()
    assert (cell(mosaic, 1, 1) == 255).all()


def test_the_sheet_names_every_client_and_class_without_overlap():
    fig = contact_sheet(*federation())
    fig.canvas.draw()
    assert [ax.get_title(loc="left") for ax in fig.axes] == ["c0", "c1", "c2", "c3"]
    for ax in fig.axes:
        assert [tick.get_text() for tick in ax.get_xticklabels()] == [str(k) for k in range(10)]
        # A class label stands over the middle of its column.
        assert ax.get_xticks() == pytest.approx([k * (6 + GAP) + 2.5 for k in range(10)])
    boxes = [ax.get_tightbbox() for ax in fig.axes]
    for k, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:k])
        assert box.x0 >= 0 and box.y0 >= 0
        assert box.x1 <= fig.bbox.x1 and box.y1 <= fig.bbox.y1
        title = fig.axes[k]._left_title.get_window_extent()
        assert not any(t.get_window_extent().overlaps(title) for t in fig.axes[k].get_xticklabels())


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_any_number_of_clients_fits(count):
    fig = contact_sheet(*federation(count))
    assert len(fig.axes) == count


def test_known_clients_have_their_display_names():
    images, labels = client()
    fig = contact_sheet({"mnist-m": images}, {"mnist-m": labels})
    assert fig.axes[0].get_title(loc="left") == "MNIST-M"


def test_drawing_shows_the_mosaic_unchanged():
    mosaics = summarise(*federation(1), rows=2)
    fig = Figure()
    draw(fig, mosaics)
    assert (fig.axes[0].images[0].get_array() == mosaics["c0"]).all()


def test_the_same_sheet_gives_the_same_file():
    files = []
    for _ in range(2):
        buffer = io.BytesIO()
        contact_sheet(*federation(2)).savefig(buffer, format="png", dpi=60)
        files.append(buffer.getvalue())
    assert files[0] == files[1]


@pytest.mark.parametrize(
    ("images", "labels", "says"),
    [
        ({}, {}, "at least one"),
        ({"a": client()[0]}, {"b": client()[1]}, "same clients"),
        ({"a": client()[0].astype(float)}, {"a": client()[1]}, "'a': images must be uint8"),
        ({"a": client()[0][:, :1]}, {"a": client()[1]}, "'a': images must be uint8"),
        ({"a": client()[0]}, {"a": client()[1][:-1]}, "'a': 40 images need 40 integer labels"),
        ({"a": client()[0]}, {"a": client()[1] / 1}, "integer labels, got float64"),
        ({"a": client()[0]}, {"a": client()[1] + 1}, r"labels must be in 0 … 9"),
    ],
)
def test_bad_input_is_refused(images, labels, says):
    with pytest.raises(ValueError, match=says):
        contact_sheet(images, labels)


@pytest.mark.parametrize("size", [{"rows": 0}, {"classes": 0}])
def test_rows_and_classes_are_positive(size):
    with pytest.raises(ValueError, match="must be positive"):
        contact_sheet(*federation(1), **size)


def test_the_figure_needs_no_torch():
    code = "import sys, figures.federation; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
