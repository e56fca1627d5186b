"""Files that installed packages carry: digits, photographs, fonts. Nothing is downloaded."""

import gzip
import importlib.metadata
import importlib.util
import platform
from pathlib import Path

import numpy as np
from jaxtyping import Int64, UInt8
from PIL import Image, features

PHOTOGRAPHS = {
    # Only those inside the packages; rocket and hubble are so dark that a digit on them is MNIST.
    "astronaut": ("skimage", "data/astronaut.png"),
    "chelsea": ("skimage", "data/chelsea.png"),
    "coffee": ("skimage", "data/coffee.png"),
    "motorcycle": ("skimage", "data/motorcycle_left.png"),
    "china": ("sklearn", "datasets/images/china.jpg"),
    "flower": ("sklearn", "datasets/images/flower.jpg"),
}
# Everything whose version can change a pixel: what carries the sources, and what computes.
PACKAGES = (
    "font-amatic-sc",
    "font-caladea",
    "font-hanken-grotesk",
    "font-roboto",
    "font-source-sans-pro",
    "matplotlib",
    "mlxtend",
    "numpy",
    "pillow",
    "scikit-image",
    "scikit-learn",
)


def versions() -> dict[str, str]:
    """What can change a pixel of `digits`: package versions, FreeType, JPEG, the processor.

    Raises:
        ValueError: one of the packages is missing.
    """
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            raise ValueError(_missing(package, "it is not installed")) from None
    found["freetype"] = features.version("freetype2") or "none"
    # JPEG decoders use the processor's own instructions, and may round differently on another.
    found["machine"] = platform.machine().lower().replace("amd64", "x86_64")
    found["jpeg"] = features.version("libjpeg_turbo") or features.version("jpg") or "none"
    return found


def package_file(module: str, path: str) -> Path:
    """A file inside an installed package, found without importing the package.

    Raises:
        ValueError: the package or the file is missing.
    """
    spec = importlib.util.find_spec(module)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (file := Path(folder) / path).is_file():
            return file
    raise ValueError(_missing(module, f"{path} was not found in it"))


def mnist_5k() -> tuple[UInt8[np.ndarray, "5000 28 28"], Int64[np.ndarray, " 5000"]]:
    """The 5,000 MNIST digits of mlxtend, 500 a class, in the file's order (sorted by class)."""
    with gzip.open(package_file("mlxtend", "data/data/mnist_5k.csv.gz"), "rt") as text:
        table = np.loadtxt(text, delimiter=",")
    return table[:, :-1].astype(np.uint8).reshape(-1, 28, 28), table[:, -1].astype(np.int64)


def optdigits() -> tuple[UInt8[np.ndarray, "n 28 28"], Int64[np.ndarray, " n"]]:
    """scikit-learn's 1,797 digits of 8×8 (0 … 16), to 0 … 255 and bilinearly to 28×28."""
    with gzip.open(package_file("sklearn", "datasets/data/digits.csv.gz"), "rt") as text:
        table = np.loadtxt(text, delimiter=",").astype(np.int64)
    small = (table[:, :-1] * 255 // 16).astype(np.uint8).reshape(-1, 8, 8)
    size = (28, 28)
    large = [
        np.asarray(Image.fromarray(digit).resize(size, Image.Resampling.BILINEAR))
        for digit in small
    ]
    return np.stack(large), table[:, -1]


def photograph(name: str) -> UInt8[np.ndarray, "h w 3"]:
    """One of `PHOTOGRAPHS` as RGB, at its own resolution."""
    with Image.open(package_file(*PHOTOGRAPHS[name])) as image:
        return np.asarray(image.convert("RGB"))


def _missing(package: str, what: str) -> str:
    return (
        f"the federation 'digits' needs the package {package}, but {what}; "
        f"reinstall it: pip install --force-reinstall {package}"
    )
