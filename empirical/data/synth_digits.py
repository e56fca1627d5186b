"""The client `synth-digits`: printed digits of many fonts, after Ganin et al.'s SYN NUMBERS."""

import math
from functools import cache, lru_cache

import numpy as np
from jaxtyping import Int64, UInt8
from PIL import Image, ImageDraw

from empirical.data.fonts import FONTS, font_of_height
from empirical.data.pixels import luminance

SIDE, SCALE = 28, 3  # drawn at three times the size, then reduced
CANVAS = SIDE * SCALE
HEIGHTS = (14, 22)  # of a digit, pixels of the reduced image
DEGREES, JITTER, BLUR = 8, 2, 0.8
CONTRAST = 90  # smallest difference in luminance
GAP = 1  # between neighbours, pixels of the reduced image
UNIT = 1 << 16  # fixed point: integers give the same pixels on every processor


def render(
    labels: Int64[np.ndarray, " n"], rng: np.random.Generator
) -> UInt8[np.ndarray, "n 3 28 28"]:
    """One image per label: that digit in the middle, with no, one or two neighbours."""
    return np.stack([_render_one(int(label), rng) for label in labels])


def _render_one(label: int, rng: np.random.Generator) -> UInt8[np.ndarray, "3 28 28"]:
    font = int(rng.integers(len(FONTS)))
    height = int(rng.integers(HEIGHTS[0] * SCALE, HEIGHTS[1] * SCALE + 1))
    left, right = _neighbours(rng)
    x, y = (CANVAS // 2 + rng.integers(-JITTER * SCALE, JITTER * SCALE + 1, size=2)).tolist()
    mask = _draw(left, label, right, font_key=(font, height), centre=(x, y))
    mask = _rotate(mask, float(rng.integers(-DEGREES * 10, DEGREES * 10 + 1)) / 10)
    mask = _blur(mask, int(rng.integers(0, round(BLUR * 10) + 1)))
    cells = mask.reshape(SIDE, SCALE, SIDE, SCALE).sum(axis=(1, 3))
    ink, paper = _colours(rng)
    full = 255 * SCALE * SCALE
    mixed = (paper * (full - cells[..., None]) + ink * cells[..., None] + full // 2) // full
    return mixed.astype(np.uint8).transpose(2, 0, 1)


def _neighbours(rng: np.random.Generator) -> tuple[str, str]:
    """None in .6 of the images, one (on either side) in .25, two in .15."""
    chance = int(rng.integers(40))
    left, right = (str(digit) for digit in rng.integers(10, size=2))
    return (left if chance < 11 else ""), (right if chance < 6 or 11 <= chance < 16 else "")


def _draw(
    left: str, label: int, right: str, font_key: tuple[int, int], centre: tuple[int, int]
) -> UInt8[np.ndarray, "84 84"]:
    canvas = Image.new("L", (CANVAS, CANVAS))
    pen = ImageDraw.Draw(canvas)
    font = font_of_height(*font_key)
    box = _ink(*font_key, str(label))
    x = centre[0] - (box[0] + box[2]) // 2
    y = centre[1] - (box[1] + box[3]) // 2
    pen.text((x, y), str(label), font=font, fill=255)
    if left:
        edge = _ink(*font_key, left)[2]
        pen.text((x + box[0] - GAP * SCALE - edge, y), left, font=font, fill=255)
    if right:
        edge = _ink(*font_key, right)[0]
        pen.text((x + box[2] + GAP * SCALE - edge, y), right, font=font, fill=255)
    return np.asarray(canvas)


@lru_cache(maxsize=4096)
def _ink(font: int, height: int, digit: str) -> tuple[int, int, int, int]:
    """Box of the black of a digit drawn at the origin; Pillow's own box counts the advance."""
    canvas = Image.new("L", (3 * CANVAS, 3 * CANVAS))
    at = (CANVAS, CANVAS)
    ImageDraw.Draw(canvas).text(at, digit, font=font_of_height(font, height), fill=255)
    left, top, right, bottom = canvas.getbbox() or (*at, *at)
    return left - CANVAS, top - CANVAS, right - CANVAS, bottom - CANVAS


def _rotate(mask: UInt8[np.ndarray, "s s"], degrees: float) -> Int64[np.ndarray, "s s"]:
    """Bilinear rotation about the middle, in fixed point."""
    cos = round(UNIT * math.cos(math.radians(degrees)))
    sin = round(UNIT * math.sin(math.radians(degrees)))
    size = len(mask)
    padded = np.zeros((size + 2, size + 2), dtype=np.int64)
    padded[1:-1, 1:-1] = mask
    # Twice the distance from the middle is a whole number; halved again by the shift below.
    far = 2 * np.arange(size) - (size - 1)
    x = (cos * far[None, :] - sin * far[:, None] + (size - 1) * UNIT) // 2 + UNIT
    y = (sin * far[None, :] + cos * far[:, None] + (size - 1) * UNIT) // 2 + UNIT
    x, y = x.clip(0, size * UNIT), y.clip(0, size * UNIT)
    column, row, right, down = x // UNIT, y // UNIT, x % UNIT, y % UNIT
    above = padded[row, column] * (UNIT - right) + padded[row, column + 1] * right
    below = padded[row + 1, column] * (UNIT - right) + padded[row + 1, column + 1] * right
    return (above // UNIT * (UNIT - down) + below // UNIT * down) // UNIT


def _blur(mask: Int64[np.ndarray, "s s"], tenths: int) -> Int64[np.ndarray, "s s"]:
    """Gaussian of `tenths` / 10 pixels of the reduced image, in fixed point."""
    if tenths == 0:
        return mask
    kernel = _kernel(tenths)
    reach, size = len(kernel) // 2, len(mask)
    for _ in range(2):
        padded = np.pad(mask, ((reach, reach), (0, 0)))
        windows = np.stack([w * padded[k : k + size] for k, w in enumerate(kernel)])
        mask = (windows.sum(axis=0) // UNIT).T
    return mask


@cache
def _kernel(tenths: int) -> tuple[int, ...]:
    sigma = SCALE * tenths / 10
    reach = math.ceil(3 * sigma)
    weights = [math.exp(-0.5 * (k / sigma) ** 2) for k in range(-reach, reach + 1)]
    fixed = [round(UNIT * weight / sum(weights)) for weight in weights]
    fixed[reach] += UNIT - sum(fixed)
    return tuple(fixed)


def _colours(
    rng: np.random.Generator,
) -> tuple[Int64[np.ndarray, " 3"], Int64[np.ndarray, " 3"]]:
    while True:
        pair = rng.integers(256, size=(2, 3))
        if abs(int(np.diff(luminance(pair.astype(np.uint8)))[0])) > CONTRAST:
            return pair[0], pair[1]
