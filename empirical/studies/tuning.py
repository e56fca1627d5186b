"""Choosing hyper-parameters on validation images: the runs, their scores, the choice."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from empirical.methods import COMPARED
from empirical.studies.grid import GRID, registered
from empirical.studies.study import Setting, Study
from empirical.tuned import choices, record

SEED = 1000
"""Apart from the seeds of every reported run, which are counted from 0."""

CRITERION = (
    "mean validation accuracy over the clients after the last round, mean over both batch-norm "
    "policies; ties: the authors' default, else the smaller"
)

CHOSEN, AUTHORS = "chosen on validation images", "the authors' defaults"


@dataclass
class Candidate:
    """Settings that were tried, and how well they did.

    Attributes:
        settings: the values tried.
        accuracy: policy -> mean validation accuracy; None where training diverged.
    """

    settings: Mapping[str, float]
    accuracy: dict[str, float | None] = field(default_factory=dict)

    @property
    def score(self) -> float | None:
        """The mean over the policies; None where any of them diverged."""
        known = [value for value in self.accuracy.values() if value is not None]
        return sum(known) / len(known) if known and len(known) == len(self.accuracy) else None


def tuning_plan(setting: Setting) -> list[Study]:
    """Each candidate of each grid with each policy, all clients taking part, on validation."""
    size = setting.size("tuning")
    schedule = setting.schedule(size, SEED)
    return [
        setting.trained(
            setting.training(method.name, policy, schedule, settings=settings, validation=True)
        )
        for method in registered(tuple(GRID))
        for settings in GRID[method.name].candidates()
        for policy in COMPARED
    ]


def validation_accuracy(rows: Iterable[Mapping[str, Any]]) -> float:
    """The mean over the clients of the accuracy on validation after the last round.

    Args:
        rows: of a finished run that did not diverge.

    Raises:
        ValueError: no such rows.
    """
    measured = [
        row
        for row in rows
        if row["metric"] == "accuracy" and row["split"] == "test" and row["client"] != "server"
    ]
    if not measured:
        raise ValueError("the run holds no accuracy on validation images")
    last = max(row["round"] for row in measured)
    values = [row["value"] for row in measured if row["round"] == last]
    return sum(values) / len(values)


def tried(
    configs: Sequence[Mapping[str, Any]], found: Sequence[float | None]
) -> dict[str, list[Candidate]]:
    """Algorithm -> its candidates in the order of the plan.

    Args:
        configs: of the runs of `tuning_plan`.
        found: the validation accuracy of each, None where it diverged.
    """
    table: dict[str, list[Candidate]] = {}
    for config, accuracy in zip(configs, found, strict=True):
        method, rows = config["algorithm"], table.setdefault(config["algorithm"], [])
        settings = {name: config["settings"][name] for name in GRID[method].values}
        match = next((c for c in rows if c.settings == settings), None)
        if match is None:
            match = Candidate(settings)
            rows.append(match)
        match.accuracy[config["bn_policy"]] = accuracy
    return table


def choose(method: str, candidates: Sequence[Candidate]) -> Mapping[str, float]:
    """The candidate of the highest score; ties: the authors' default, else the smaller.

    One that diverged under either policy is never chosen, unless all did: then the authors'.
    """
    authors = GRID[method].authors
    finished = [c for c in candidates if c.score is not None]
    if not finished:
        return authors
    best = max(c.score for c in finished if c.score is not None)
    # Scores are counts of images over their number: equal ones differ in the last bit at most.
    tied = [c.settings for c in finished if c.score is not None and c.score > best - 1e-9]
    return min(tied, key=lambda s: (s != authors, *s.values()))


def origin(config: Mapping[str, Any]) -> str:
    """Where the settings of a training run come from, for its manifest."""
    grid, settings = GRID.get(config["algorithm"]), config["settings"]
    if grid is None:
        return "nothing to choose"
    chosen = choices(*_data_and_net(config)).get(config["algorithm"])
    for values, source in ((chosen, CHOSEN), (grid.authors, AUTHORS)):
        if values and all(settings[name] == value for name, value in values.items()):
            return source
    return "given"


def at_edge(config: Mapping[str, Any]) -> list[str]:
    """The chosen settings of a training run that lie at an edge of the grid they come from.

    For its manifest: a wider grid might have given others.
    """
    if origin(config) != CHOSEN:
        return []
    grid = record(*_data_and_net(config))["grid"][config["algorithm"]]
    settings = config["settings"]
    return [name for name, v in grid.items() if settings[name] in (min(v), max(v))]


def untuned(configs: Iterable[Mapping[str, Any]]) -> list[str]:
    """The methods that train with their authors' defaults, though settings could be chosen.

    Args:
        configs: of any runs; trainings for the choice itself are left out.
    """
    trainings = [c for c in configs if c["study"] == "training" and not c.get("validation")]
    found = {
        config["algorithm"]
        for config in trainings
        if config["algorithm"] not in choices(*_data_and_net(config))
    }
    return [method for method in GRID if method in found]


def _data_and_net(config: Mapping[str, Any]) -> tuple[str, str, str]:
    return config["federation"], config["data_sha256"], config["model"]


def tuning_record(
    configs: Sequence[Mapping[str, Any]], found: Sequence[float | None]
) -> dict[str, Any]:
    """What is committed: the grid, every score, the choice, and how the runs were made.

    Args:
        configs: of the runs of `tuning_plan`.
        found: the validation accuracy of each, None where it diverged.
    """
    table, first = tried(configs, found), configs[0]
    return {
        "federation": first["federation"],
        "data_sha256": first["data_sha256"],
        "model": first["model"],
        "criterion": CRITERION,
        "policies": list(COMPARED),
        "grid": {m: {n: list(v) for n, v in GRID[m].values.items()} for m in table},
        "authors": {method: dict(GRID[method].authors) for method in table},
        "scores": {
            method: [
                {"settings": dict(c.settings), "score": c.score, "accuracy": c.accuracy}
                for c in candidates
            ]
            for method, candidates in table.items()
        },
        "choice": {method: dict(choose(method, rows)) for method, rows in table.items()},
        "runs": {"schedule": dict(first["schedule"]), "validation": True},
    }


def tuning_rows(record: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """The candidates as rows for people: method, settings, each policy, mean, whether chosen."""
    for method, candidates in record["scores"].items():
        for tried in candidates:
            values = [*(tried["accuracy"][p] for p in record["policies"]), tried["score"]]
            words = ", ".join(f"{name} = {value:g}" for name, value in tried["settings"].items())
            cells = ["diverged" if value is None else f"{value:.2%}" for value in values]
            yield method, words, *cells, tried["settings"] == record["choice"][method]
