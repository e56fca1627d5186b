"""Contact sheet of a federation: a panel for each client, a column for each class."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Int, UInt8
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from figures.style import DOUBLE, context, looks

GAP = 3  # white pixels between images


def summarise(
    images: Mapping[str, object], labels: Mapping[str, object], *, rows: int = 4, classes: int = 10
) -> dict[str, UInt8[np.ndarray, "h w 3"]]:
    """One mosaic per client: the first `rows` images of each class, a column for each class.

    Args:
        images: client name -> (n, 3, height, width) uint8.
        labels: client name -> (n,) integers in 0 … classes - 1.
        rows: images of each class; a class with fewer leaves its last cells white.
        classes: number of columns.

    Raises:
        ValueError: no client, clients that differ between the two arguments, or arrays of
            another shape, dtype or length.
    """
    if not images or set(images) != set(labels):
        raise ValueError(
            "images and labels must name the same clients, at least one; got "
            f"{sorted(images)} and {sorted(labels)}"
        )
    if rows < 1 or classes < 1:
        raise ValueError(f"rows and classes must be positive, got {rows} and {classes}")
    return {
        name: _mosaic(*_checked(name, images[name], labels[name], classes), rows, classes)
        for name in images
    }


def draw(fig: Figure, mosaics: Mapping[str, UInt8[np.ndarray, "h w 3"]], classes: int = 10) -> None:
    """Draws the mosaics two abreast, with the clients' names and the classes above."""
    across = min(len(mosaics), 2)
    panels = fig.subplots(-(-len(mosaics) // across), across, squeeze=False).ravel()
    for ax in panels[len(mosaics) :]:
        ax.remove()
    named = looks(mosaics)
    for ax, (name, mosaic) in zip(panels, mosaics.items(), strict=False):
        cell = (mosaic.shape[1] + GAP) / classes
        ax.imshow(mosaic, interpolation="nearest")
        ax.set_title(named[name].label, fontweight="bold", pad=3)
        ax.set_xticks(cell * np.arange(classes) + (cell - GAP - 1) / 2, range(classes))
        ax.tick_params(length=0, pad=1, labeltop=True, labelbottom=False)
        ax.set_yticks([])
        ax.spines[:].set_visible(False)
        ax.grid(False)


def contact_sheet(
    images: Mapping[str, object], labels: Mapping[str, object], *, rows: int = 4, classes: int = 10
) -> Figure:
    """The whole figure, 7 inches wide: `summarise`, then `draw`.

    The gallery's picture, with `clients = empirical.load_federation("digits")`:

        sheet = contact_sheet(
            {c.name: c.train.images.numpy() for c in clients},
            {c.name: c.train.labels.numpy() for c in clients},
        )
        sheet.savefig("figures/gallery/federation.png", dpi=200)
    """
    mosaics = summarise(images, labels, rows=rows, classes=classes)
    across = min(len(mosaics), 2)
    height, width = next(iter(mosaics.values())).shape[:2]
    panel = (DOUBLE / across) * height / width + 0.31  # inches, with the two lines above
    with context():
        layout = ConstrainedLayoutEngine(w_pad=0.07, h_pad=0.04)
        fig = Figure(figsize=(DOUBLE, panel * -(-len(mosaics) // across)), layout=layout)
        draw(fig, mosaics, classes)
    return fig


def _mosaic(
    images: UInt8[np.ndarray, "n 3 h w"], labels: Int[np.ndarray, " n"], rows: int, classes: int
) -> UInt8[np.ndarray, "H W 3"]:
    height, width = images.shape[2] + GAP, images.shape[3] + GAP
    sheet = np.full((rows * height, classes * width, 3), 255, dtype=np.uint8)
    for column in range(classes):
        for row, image in enumerate(images[labels == column][:rows]):
            y, x = row * height, column * width
            sheet[y : y + height - GAP, x : x + width - GAP] = image.transpose(1, 2, 0)
    return sheet[:-GAP, :-GAP]


def _checked(
    name: str, images: object, labels: object, classes: int
) -> tuple[UInt8[np.ndarray, "n 3 h w"], Int[np.ndarray, " n"]]:
    pixels, known = np.asarray(images), np.asarray(labels)
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[1] != 3:
        raise ValueError(
            f"client '{name}': images must be uint8 of the shape (n, 3, height, width), got "
            f"{pixels.dtype} {pixels.shape}"
        )
    if known.shape != pixels.shape[:1] or not np.issubdtype(known.dtype, np.integer):
        raise ValueError(
            f"client '{name}': {len(pixels)} images need {len(pixels)} integer labels, got "
            f"{known.dtype} {known.shape}"
        )
    if len(known) and (known.min() < 0 or known.max() >= classes):
        raise ValueError(f"client '{name}': labels must be in 0 … {classes - 1}")
    return pixels, known
