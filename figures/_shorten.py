"""Long names cut in the middle, so that what a common beginning hides at the end stays."""

from collections.abc import Sequence


def shortened(text: str | Sequence[str], longest: int) -> str:
    """At most `longest` letters: the beginning, an ellipsis and the end.

    A sequence is taken as pieces that are never cut themselves, such as escapes.
    """
    if sum(map(len, text)) <= longest:
        return "".join(text)
    room = longest - 1
    end = _fitting(text[::-1], room // 2)[::-1]
    return "".join((*_fitting(text, room - sum(map(len, end))), "…", *end))


def _fitting(pieces: Sequence[str], room: int) -> list[str]:
    kept: list[str] = []
    for piece in pieces:
        room -= len(piece)
        if room < 0:
            break
        kept.append(piece)
    return kept
