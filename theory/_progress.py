"""Reports of how much of a long computation is done."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Progress = Callable[[float], object]
else:
    # Checked by hand: see `_loose`.
    Progress = object


class Meter:
    """Tells fractions in [0, 1] to a callable, never decreasing; silent without one."""

    def __init__(self, report: object, start: float = 0.0, stop: float = 1.0) -> None:
        """Maps fractions to [start, stop].

        Raises:
            TypeError: `report` is neither None nor callable.
        """
        if report is not None and not callable(report):
            raise TypeError(
                "progress must be a function of the fraction done, or None, "
                f"not {type(report).__name__}."
            )
        self._report = report
        self._start, self._stop, self._last = start, stop, -1.0

    def __call__(self, fraction: float) -> None:
        """Reports a fraction, unless as much was reported before."""
        value = self._start + (self._stop - self._start) * min(max(fraction, 0.0), 1.0)
        if self._report is not None and value > self._last:
            self._last = value
            self._report(value)

    def part(self, start: float, stop: float) -> "Meter":
        """Returns a meter for the part of the work from `start` to `stop`."""
        return Meter(None if self._report is None else self, start, stop)
