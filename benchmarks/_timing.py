"""Times of two computations that alternate in one process, and a row of the table."""

import time
from collections.abc import Callable
from dataclasses import dataclass

Work = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """A measurement: ours over the peer's (or a limit) is to be at most the target.

    Attributes:
        what: what was measured.
        against: the peer or the limit.
        ours, peer: numbers, or None where there is no peer.
        unit: of both.
        target: of their ratio.
        note: what else is to be known.
        profile: where the time goes, shown if the target is missed.
    """

    what: str
    against: str
    ours: float
    peer: float | None
    unit: str
    target: float
    note: str = ""
    profile: tuple[str, ...] = ()

    @property
    def ratio(self) -> float | None:
        """Ours over the peer's."""
        return None if self.peer is None else self.ours / self.peer

    @property
    def missed(self) -> bool:
        """Whether the target is missed."""
        return self.ratio is not None and not self.ratio <= self.target

    def __str__(self) -> str:
        """A line of a Markdown table."""
        peer = "none" if self.peer is None else f"{self.peer:.3g} {self.unit}".rstrip()
        ratio = "none" if self.ratio is None else f"{self.ratio:.3g}"
        verdict = "" if self.ratio is None else ("**missed**" if self.missed else "met")
        ours = f"{self.ours:.3g} {self.unit}".rstrip()
        return (
            f"| {self.what} | {self.against} | {ours} | {peer} | {ratio} | "
            f"<= {self.target:g} | {verdict} |"
        )


def best(ours: Work, peer: Work, rounds: int) -> tuple[float, float]:
    """The shortest times of both in seconds: they alternate, so that other load meets both."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for work, into in zip((ours, peer), times, strict=True):
            into.append(seconds(work))
    return min(times[0]), min(times[1])


def seconds(work: Work) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
