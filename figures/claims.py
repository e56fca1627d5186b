"""Claims of a section with what was measured and the verdict; claims.json."""

import json
import math
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from figures._files import explained, shown, to_json, write_atomically

MATHEMATICS = ("certified", "consistent", "violated")
EXPERIMENTS = ("supported", "inconclusive", "contradicted")


@dataclass(frozen=True)
class Claim:
    """A statement that we expect to hold, and what came of it.

    `measured` is a number or a short phrase. `interval` holds bounds of it, or None: an enclosure,
    a confidence interval, or the range over runs where `measured` speaks of several. `figure` is
    the file that shows it, relative to the section's folder, or None.

    Raises:
        ValueError, TypeError: a field that a reader of claims.json could not rely on.
    """

    id: str
    claim: str
    source: str
    measured: Any
    interval: Any
    verdict: str
    figure: str | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]+([._-][a-z0-9]+)*", self.id):
            raise ValueError(f"a claim's id is lower-case words joined by - . _, not {self.id!r}")
        for name in ("claim", "source"):
            if not getattr(self, name).strip():
                raise ValueError(f"claim {self.id!r} lacks its {name}")
        if self.verdict not in MATHEMATICS + EXPERIMENTS:
            raise ValueError(
                f"claim {self.id!r} has the verdict {self.verdict!r}: mathematics is "
                f"{', '.join(MATHEMATICS)}; experiments are {', '.join(EXPERIMENTS)}"
            )
        if not (isinstance(self.measured, str) and self.measured.strip()):
            object.__setattr__(self, "measured", self._finite(self.measured, "measured"))
        if self.interval is not None:
            object.__setattr__(self, "interval", self._bounds())

    @property
    def kind(self) -> str:
        """`mathematics` or `experiment`, which the verdict's word tells."""
        return "mathematics" if self.verdict in MATHEMATICS else "experiment"

    def _finite(self, value: Any, what: str) -> float | int:
        if isinstance(value, (bool, str, bytes)) or value is None:
            raise TypeError(f"claim {self.id!r}: {what} is {value!r}, not a number or a phrase")
        try:
            number = float(value)
        except (TypeError, ValueError) as error:
            raise TypeError(f"claim {self.id!r}: {what} is {value!r}, not a number") from error
        if not math.isfinite(number):
            raise ValueError(f"claim {self.id!r}: {what} is {number}; say in words what happened")
        return value if type(value) is int else number

    def _bounds(self) -> tuple[float, float]:
        if not isinstance(self.interval, (tuple, list)) or len(self.interval) != 2:
            raise TypeError(f"claim {self.id!r}: interval is (lower, upper), not {self.interval!r}")
        lower, upper = (self._finite(bound, "a bound") for bound in self.interval)
        if lower > upper:
            raise ValueError(f"claim {self.id!r}: lower {lower} exceeds upper {upper}")
        return float(lower), float(upper)


def write_claims(path: str | Path, claims: Iterable[Claim]) -> Path:
    """Writes claims.json in the order given; the same claims give the same bytes.

    Raises:
        ValueError: two claims share an id.
        OutputError: the file cannot be written.
    """
    rows = [asdict(claim) for claim in claims]
    ids = [row["id"] for row in rows]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise ValueError(f"claims share the ids {twice}: each claim needs its own")
    return write_atomically(Path(path), to_json(rows, "claims.json"))


def read_claims(path: str | Path) -> list[Claim]:
    """The claims of a file, each checked as when it was made.

    Raises:
        ValueError: no claims file; the message names it.
    """
    path = Path(path)
    with explained("read", path):
        text = path.read_bytes()
    names = [field.name for field in fields(Claim)]
    try:
        rows = json.loads(text)
        if not isinstance(rows, list) or any(
            not isinstance(row, dict) or list(row) != names for row in rows
        ):
            raise ValueError(f"it must be a list of objects with the keys {names}")
        return [Claim(**row) for row in rows]
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{shown(path)} is no claims file ({error}); run the section again to write it anew"
        ) from error
