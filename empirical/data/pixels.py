"""Arithmetic on pixels in integers, so that every processor gives the same bytes."""

import numpy as np
from jaxtyping import Int64, UInt8


def luminance(rgb: UInt8[np.ndarray, "*shape 3"]) -> Int64[np.ndarray, "*shape"]:
    """ITU-R 601 luminance, 0 … 255, rounded down."""
    return rgb.astype(np.int64) @ np.array([299, 587, 114]) // 1000


def three_channels(grey: UInt8[np.ndarray, "n h w"]) -> UInt8[np.ndarray, "n 3 h w"]:
    """The same grey in red, green and blue, as FedBN shows MNIST and USPS to its network."""
    return np.repeat(grey[:, None], 3, axis=1)


def first_of_equal(images: UInt8[np.ndarray, "n h w"]) -> Int64[np.ndarray, " k"]:
    """Indices of the images that equal no earlier one, in order."""
    first = np.unique(images.reshape(len(images), -1), axis=0, return_index=True)[1]
    return np.sort(first).astype(np.int64)
