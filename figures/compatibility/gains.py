"""What the external difference of Table I joins: how the client is served, how it was trained."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from figures.claims import Claim
from figures.compatibility.summary import AGGREGATED, SPECIFIC, Row, Summary
from figures.experiments.cells import Cell, difference
from figures.experiments.comparisons import Compared, compare
from figures.statistics import PairedDifference

SERVER, ADAPTED = "server", "adapted"
Corner = tuple[str, str]
CORNERS: tuple[Corner, ...] = (
    (AGGREGATED, SERVER),
    (AGGREGATED, ADAPTED),
    (SPECIFIC, SERVER),
    (SPECIFIC, ADAPTED),
)
"""Trained with which BN, served how; the first and the last are Table I's external columns."""

EFFECTS: dict[str, tuple[Corner, Corner]] = {
    "serving": ((AGGREGATED, ADAPTED), (AGGREGATED, SERVER)),
    "training": ((SPECIFIC, ADAPTED), (AGGREGATED, ADAPTED)),
}
"""Effect -> its two sides, the first minus the second; their sum is Table I's difference."""

SOURCE = "measured here; UniFed, Table I and Eqs. (3), (4)"
CLAIMS = {
    "serving": "Eqs. (3), (4) raise the external accuracy of the aggregated model, too",
    "training": "Client-specific training raises the external accuracy when both models are "
    "served by Eqs. (3), (4)",
}


@dataclass(frozen=True)
class Gain:
    """A method's external accuracy in the four corners, and the two effects, paired by seed."""

    method: str
    cells: Mapping[Corner, Cell]
    effects: Mapping[str, PairedDifference]


@dataclass(frozen=True)
class Gains:
    """The methods with an external run, and the mean over those with all four corners in a seed.

    Attributes:
        rows: the methods in Table I's order, without FedBN: it is FedAvg's client-specific side.
        mean: corner -> per seed the mean over the methods that have all four in that seed.
        effects: the judged effects of the mean, one family; empty without such a seed.
        methods: the fewest and the most methods behind a seed's mean; (0, 0) without any.
    """

    rows: list[Gain]
    mean: dict[Corner, Cell]
    effects: dict[str, Compared]
    methods: tuple[int, int]

    @property
    def counted(self) -> str:
        """How many methods are behind the mean, in words."""
        few, many = self.methods
        return f"{few} to {many} methods" if few < many else f"{many} method{'s' * (many != 1)}"

    @property
    def drawn(self) -> bool:
        """Whether a method has an effect to show."""
        return any(row.effects for row in self.rows)


def gains(summary: Summary) -> Gains:
    """Part the external difference of every method; judge both effects on the mean over them."""
    found = [_gain(summary, row) for row in summary.rows if not row.merged]
    rows = [gain for gain in found if any(c.values or c.diverged for c in gain.cells.values())]
    whole: dict[int, list[Gain]] = {}
    for gain in rows:
        for seed in set.intersection(*(set(cell.values) for cell in gain.cells.values())):
            whole.setdefault(seed, []).append(gain)
    seeds = sorted(whole)
    mean = {
        corner: Cell({s: _mean([g.cells[corner].values[s] for g in whole[s]]) for s in seeds})
        for corner in CORNERS
    }
    counts = [len(whole[seed]) for seed in seeds] or [0]
    judged = compare({name: (mean[one], mean[two]) for name, (one, two) in EFFECTS.items()})
    return Gains(rows, mean, judged, (min(counts), max(counts)))


def judge_gains(summary: Summary) -> Iterator[Claim]:
    """Judge the two effects; where runs that diverged leave no seed with both sides, say so."""
    found, figure = gains(summary), "figures/gains.pdf"
    for name, words in CLAIMS.items():
        identity = f"compatibility.gain.{name}"
        if name in found.effects:
            claim = found.effects[name].claim(identity, words, SOURCE, figure)
            yield replace(claim, measured=f"{claim.measured}; mean of {found.counted}")
        elif any(cell.diverged for row in found.rows for cell in row.cells.values()):
            why = "no seed has a method with all four cells: runs diverged"
            yield Claim(identity, words, SOURCE, why, None, "inconclusive", figure)


def _gain(summary: Summary, row: Row) -> Gain:
    cells = {}
    for policy, way in CORNERS:
        lost = Cell({}, row.external[policy].diverged)
        cells[policy, way] = summary.serving.get((row.method, policy, way), lost)
    found = {name: difference(cells[one], cells[two]) for name, (one, two) in EFFECTS.items()}
    return Gain(row.method, cells, {name: d for name, d in found.items() if d is not None})


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
