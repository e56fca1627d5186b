"""What a source of points is called in texts: Gaussian clients, a federation, a user's points."""

from collections.abc import Iterable, Mapping
from functools import cache

from matplotlib.font_manager import FontProperties, findfont, get_font

from figures._shorten import shortened

OWN = "own-"
"""What the names of a user's own points begin with in configs; `theory.data` gives it."""

_LONGEST = 30


def is_own(name: str) -> bool:
    """Whether a source is a user's own points."""
    return name.startswith(OWN)


def data_name(name: str) -> str:
    """Name a source of points as a reader would."""
    if is_own(name):
        return f"points of {name.removeprefix(OWN)}"
    return "Gaussian clients" if name == "gaussian" else f"{name} images"


def plain(name: str) -> str:
    """Name a source where the sentence says already that it is one of points."""
    return name.removeprefix(OWN)


def items(name: str) -> str:
    """What a source consists of."""
    return "points" if is_own(name) else "training images"


def client_labels(names: Iterable[str], known: Mapping[str, str] | None = None) -> dict[str, str]:
    r"""Clients' names as a figure can show them: no mathematics, no letters the fonts lack.

    Those are written as \uXXXX; long names are cut in the middle. No two names get one label:
    where they would, they are numbered in their order. `known` names are shown as given there.
    """
    given = known or {}
    labels: dict[str, str] = {}
    for name in dict.fromkeys(names):
        label = given[name] if name in given else _label(name, _LONGEST)
        k = 1
        while label in labels.values():
            k += 1
            label = f"{_label(given.get(name, name), _LONGEST - 5)} ({k})"
        labels[name] = label
    return labels


def _label(name: str, longest: int) -> str:
    # As long as it is drawn: an escape takes six letters, or ten.
    pieces = [c if ord(c) in _drawn() else _escaped(c) for c in name[:longest]]
    if len(name) > longest:
        pieces += [c if ord(c) in _drawn() else _escaped(c) for c in name[-longest:]]
    return shortened(pieces, longest).replace("$", r"\$")


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape" if letter < " " else "ascii", "backslashreplace").decode()


@cache
def _drawn() -> frozenset[int]:
    # The font that fills in for others has to have a letter, whichever comes first.
    return frozenset(get_font(findfont(FontProperties(family="DejaVu Serif"))).get_charmap())
