"""Names to values: the nearest names are offered when one is unknown."""

import difflib
from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


def find(table: Mapping[str, T], name: object, kind: str) -> T:
    """The entry of `table` called `name`.

    Args:
        table: a registry such as `ALGORITHMS`.
        name: what the user asked for.
        kind: what the table holds, in the singular, for the message ("algorithm").

    Raises:
        ValueError: no such entry; the message offers the nearest names and lists them all.
    """
    if isinstance(name, str) and name in table:
        return table[name]
    near = difflib.get_close_matches(str(name), table, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise ValueError(f"unknown {kind} {name!r}: {hint}choose from {', '.join(sorted(table))}")
