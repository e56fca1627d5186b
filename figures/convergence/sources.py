"""What a source of points is called in texts: Gaussian clients, a federation, a user's points."""

from functools import cache

from matplotlib.font_manager import FontProperties, findfont, get_font

OWN = "own-"
"""What the names of a user's own points begin with in configs; `theory.data` gives it."""

_LONGEST = 24


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


def client_label(name: str) -> str:
    r"""A client's name as a figure can show it: no mathematics, no letters the fonts lack.

    Those are written as \uXXXX; long names are cut.
    """
    known = _drawn()
    short = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    letters = (c if ord(c) in known else _escaped(c) for c in short)
    return "".join(letters).replace("$", r"\$")


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape" if letter < " " else "ascii", "backslashreplace").decode()


@cache
def _drawn() -> frozenset[int]:
    # The font that fills in for others has to have a letter, whichever comes first.
    return frozenset(get_font(findfont(FontProperties(family="DejaVu Serif"))).get_charmap())
