"""The client `mnist-m`: MNIST digits over photographs, after Ganin et al. (2016)."""

import numpy as np
from jaxtyping import UInt8

from empirical.data.pixels import luminance
from empirical.data.sources import PHOTOGRAPHS, photograph

SIDE = 28
TILE = 84  # photographs are a chequerboard of tiles: one colour for training, one for test
DARK = 48  # a luminance below this counts as black …
DARK_SHARE = 4  # … and a patch may have at most one such pixel in this many
VISIBLE = 48  # mean change, in grey levels, that the stroke must make to the patch
TRIES = 1000


def blend(
    digits: UInt8[np.ndarray, "n 28 28"], test: bool, rng: np.random.Generator
) -> UInt8[np.ndarray, "n 3 28 28"]:
    """|patch − digit| per channel on random patches, none of which straddles the two splits.

    A patch is drawn again when it is mostly black (the result would be plain MNIST) or of such a
    middle grey that the digit vanishes: |128 − 255| = 127.
    """
    tiles = _tiles(test)
    return np.stack([_blend_one(digit, tiles, rng) for digit in digits])


def _tiles(test: bool) -> list[UInt8[np.ndarray, "h w 3"]]:
    tiles = []
    for name in PHOTOGRAPHS:
        image = photograph(name)
        for row in range(image.shape[0] // TILE):
            for column in range(image.shape[1] // TILE):
                if (row + column) % 2 == int(test):
                    y, x = row * TILE, column * TILE
                    tiles.append(image[y : y + TILE, x : x + TILE])
    return tiles


def _blend_one(
    digit: UInt8[np.ndarray, "28 28"],
    tiles: list[UInt8[np.ndarray, "h w 3"]],
    rng: np.random.Generator,
) -> UInt8[np.ndarray, "3 28 28"]:
    ink = digit.astype(np.int64)[..., None]
    stroke = digit > 127
    for _ in range(TRIES):
        tile = tiles[rng.integers(len(tiles))]
        y, x = rng.integers(TILE - SIDE + 1, size=2)
        patch = tile[y : y + SIDE, x : x + SIDE]
        mixed = np.abs(patch.astype(np.int64) - ink)
        dark = (luminance(patch) < DARK).sum() * DARK_SHARE > SIDE * SIDE
        if not dark and np.abs(mixed - patch)[stroke].mean() >= VISIBLE:
            return mixed.astype(np.uint8).transpose(2, 0, 1)
    raise ValueError(f"no photograph patch shows a digit after {TRIES} tries; check the packages")
