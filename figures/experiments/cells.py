"""Cells of a table: a value per seed, the seeds that diverged, and how people read them."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from figures.selection import of
from figures.statistics import Interval, PairedDifference, mean_interval, paired_difference
from figures.tables import number, with_interval

NONE = "–"
SIGNS = {"supported": "△", "contradicted": "▽", "inconclusive": "○"}
"""What stands for a verdict in a table: the client-specific side is ahead, behind, undecided."""


@dataclass(frozen=True)
class Cell:
    """Seed -> value of what finished; seed -> round of what diverged (None: not recorded)."""

    values: Mapping[int, float] = field(default_factory=dict)
    diverged: Mapping[int, int | None] = field(default_factory=dict)

    @property
    def interval(self) -> Interval | None:
        """The mean over the seeds that finished with its 95 % interval; None without any."""
        return mean_interval([self.values[s] for s in sorted(self.values)]) if self.values else None

    @property
    def lost(self) -> str:
        """Which seeds diverged and when, in words; empty where none did."""
        if not self.diverged:
            return ""
        n, whole = len(self.diverged), len(self.diverged) + len(self.values)
        rounds = sorted({r for r in self.diverged.values() if r is not None})
        when = f" (round{'s' * (len(rounds) > 1)} {' to '.join(_ends(rounds))})" if rounds else ""
        seeds = f"{n} of {whole} seeds" if n < whole else f"all {n} seeds" if n > 1 else ""
        return f"diverged{when}{', ' * bool(seeds)}{seeds}"

    @property
    def lost_lines(self) -> list[str]:
        """`lost` in lines for a narrow place: when, and how many seeds."""
        return self.lost.replace("), ", ")\n").split("\n") if self.lost else []

    def text(self, scale: float = 100.0, of: int = 0, mark: str = "") -> str:
        """The cell for people: `85.1 ± 0.4`, then `mark`; what diverged on lines of its own.

        n is said where fewer than `of` seeds are behind the mean and did not diverge.
        """
        lost = "\n".join(self.lost_lines)
        found = self.interval
        if found is None:
            return lost or NONE
        value = _shown(found.mean, found.lower, found.upper, scale)
        count = f", n = {found.n}" if found.n + len(self.diverged) < of else ""
        return f"{value}{count}{mark}" + f"\n{lost}" * bool(lost)

    def columns(self, name: str) -> dict[str, Any]:
        """The cell's numbers as columns of a CSV: mean, bounds, n, seeds diverged and their round.

        Nothing is NaN: what is not known is null.
        """
        found = self.interval
        rounds = [r for r in self.diverged.values() if r is not None]
        return {
            name: None if found is None else found.mean,
            f"{name}_lower": None if found is None else found.lower,
            f"{name}_upper": None if found is None else found.upper,
            f"{name}_n": len(self.values),
            f"{name}_diverged": len(self.diverged),
            f"{name}_diverged_in_round": min(rounds, default=None),
        }


def column_types(name: str) -> dict[str, Any]:
    """Polars types of `Cell.columns`."""
    whole = (f"{name}_n", f"{name}_diverged", f"{name}_diverged_in_round")
    return {
        **dict.fromkeys((name, f"{name}_lower", f"{name}_upper"), pl.Float64),
        **dict.fromkeys(whole, pl.Int64),
    }


def cells(
    values: pl.DataFrame, runs: pl.DataFrame, by: Sequence[str], within: Sequence[str] = ()
) -> dict[tuple[Any, ...], Cell]:
    """One cell per group: per seed the mean over the folds, only where all folds finished.

    Args:
        values: a row per run (and `within`) with `value` (see `measures`).
        runs: the runs behind them, those that diverged too (see `frame.runs`).
        by: columns of `runs` that make a cell; with "held_out" among them each fold stands alone.
        within: columns of `values` alone that also do: client, variant, parameter, …

    Returns:
        (*by, *within) -> cell; groups in the order of the runs.
    """
    folds = {} if "held_out" in by else set(runs["held_out"])
    inner = values.select(within).unique(maintain_order=True).rows() if within else [()]
    found = {}
    for group in runs.select(by).unique(maintain_order=True).rows():
        own = _matching(runs, by, group)
        lost: dict[int, int | None] = {}
        for seed, round_ in of(own, status="diverged")["seed", "diverged_in_round"].rows():
            known = [r for r in (lost.get(seed), round_) if r is not None]
            lost[seed] = min(known, default=None)
        rows = _matching(values, by, group)
        for key in inner:
            table = _matching(rows, within, key)
            # Sorted: sums of floats must not depend on the order in which runs come.
            means = {
                seed: part["value"].mean()
                for (seed,), part in table.sort("seed", "held_out").group_by(
                    "seed", maintain_order=True
                )
                if seed not in lost and (not folds or set(part["held_out"]) == folds)
            }
            found[(*group, *key)] = Cell(means, lost)  # pyright: ignore[reportArgumentType]
    return found


def difference(one: Cell, other: Cell) -> PairedDifference | None:
    """The mean of one − other, paired by seed; None without a seed in common."""
    if not set(one.values) & set(other.values):
        return None
    with warnings.catch_warnings():
        # The tables show how many seeds are behind a number.
        warnings.filterwarnings("ignore", "seeds .* are on one side only", UserWarning)
        return paired_difference(one.values, other.values)


def difference_text(found: PairedDifference | None, scale: float = 100.0, of: int = 0) -> str:
    """A difference for people, with its sign: `+1.2 ± 0.4`; below it n where fewer than `of`."""
    if found is None:
        return NONE
    text = _shown(found.mean, found.lower, found.upper, scale)
    return ("+" if found.mean > 0 else "") + text + (f"\nn = {found.n}" if found.n < of else "")


def difference_columns(name: str, found: PairedDifference | None) -> dict[str, Any]:
    """The numbers of a difference as columns of a CSV; null where there is none."""
    names = ("mean", "lower", "upper", "n", "p_value", "method")
    values = {part: None if found is None else getattr(found, part) for part in names}
    return {name if part == "mean" else f"{name}_{part}": v for part, v in values.items()}


def difference_types(name: str) -> dict[str, Any]:
    """Polars types of `difference_columns`."""
    floats = (name, f"{name}_lower", f"{name}_upper", f"{name}_p_value")
    return {
        **dict.fromkeys(floats, pl.Float64),
        f"{name}_n": pl.Int64,
        f"{name}_method": pl.String,
    }


def measured(found: PairedDifference, adjusted: float, unit: str = "points") -> str:
    """What a claim says was measured: the difference, seeds, Holm's p, seeds without a pair."""
    alone = len(found.unpaired)
    left_out = f", {alone} seed{'s' * (alone > 1)} without a pair left out" if alone else ""
    mean = f"{100 * found.mean:.1f}" if unit == "points" else number(found.mean)
    words = f"{'+' * (found.mean > 0)}{mean.replace('-', '−')}{' ' * bool(unit)}{unit}"
    if found.n == 1:
        return f"{words}, one seed: no interval{left_out}"
    return f"{words} over {found.n} seeds, Holm-adjusted p = {number(adjusted, 2)}{left_out}"


def _shown(mean: float, lower: float | None, upper: float | None, scale: float) -> str:
    """A mean with its interval; per cent and points always have a digit after the point."""
    low, high = (None if bound is None else scale * bound for bound in (lower, upper))
    if scale == 100 and (low is None or high is None):
        return f"{scale * mean:.1f}".replace("-", "−")
    return with_interval(scale * mean, low, high, least=int(scale == 100))


def _matching(table: pl.DataFrame, names: Sequence[str], key: Sequence[Any]) -> pl.DataFrame:
    for name, value in zip(names, key, strict=True):
        table = table.filter(pl.col(name).eq_missing(pl.lit(value)))
    return table


def _ends(rounds: Sequence[int]) -> list[str]:
    return [str(r) for r in ((rounds[0], rounds[-1]) if len(rounds) > 1 else rounds)]
