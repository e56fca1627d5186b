"""Pinned SHA-256 of the federation `digits`, per set of package versions (digits.json)."""

import json
from functools import lru_cache
from importlib import resources

from empirical.checks import warn
from empirical.data.client import Client, fingerprint

Prints = dict[str, dict[str, str]]


@lru_cache(maxsize=1)
def pinned() -> list[dict]:
    """Entries of {"sha256": a fingerprint, "versions": the sets of versions that give it}."""
    return json.loads((resources.files("empirical.data") / "digits.json").read_text("utf-8"))


def expected(versions: dict[str, str]) -> Prints | None:
    """The fingerprint that these versions must give, or None where nobody has pinned it."""
    for entry in pinned():
        if versions in entry["versions"]:
            return entry["sha256"]
    return None


def check(clients: list[Client], versions: dict[str, str]) -> None:
    """Compares freshly built clients with the pins.

    Versions that nobody pinned are fine, without a word when they give pixels that some pinned
    set gives too, and with a warning that holds the new hashes when they do not.

    Raises:
        ValueError: pinned versions give other pixels, so an installed package is damaged.
    """
    found, known = fingerprint(clients), expected(versions)
    if known is not None and found != known:
        wrong = [
            f"{name}/{array}"
            for name, arrays in found.items()
            for array, digest in arrays.items()
            if known.get(name, {}).get(array) != digest
        ]
        raise ValueError(
            f"the federation 'digits' came out different in {', '.join(wrong)} although these "
            "package versions are known; a package's files are damaged: reinstall "
            "mlxtend, scikit-learn, scikit-image, matplotlib, pillow, numpy and the font-* packages"
        )
    if known is None and all(found != entry["sha256"] for entry in pinned()):
        new = json.dumps({"sha256": found, "versions": [versions]}, sort_keys=True)
        warn(
            "the federation 'digits' was built with package versions that give new pixels; "
            "counts, labels and leaks are checked and in order, but results may differ slightly "
            f"from those of other versions: {new}"
        )
