"""A planned run, what every plan starts from, and the configs that name the runs."""

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from empirical.algorithms import ALGORITHMS
from empirical.checks import is_whole
from empirical.registry import find
from empirical.schedule import Schedule
from empirical.serving import Serving
from empirical.studies.presets import (
    PRESETS,
    Size,
    seconds_of_divergence,
    seconds_of_label_shift,
    seconds_of_serving,
    seconds_of_training,
)
from empirical.tuned import choices

PROJECTION = 256
"""Width of MOON's projection head (Li, He & Song 2021)."""


@dataclass(frozen=True)
class Study:
    """One run of a plan: what to call it, its config, about how many seconds on one core."""

    label: str
    config: dict[str, Any]
    seconds: float


@dataclass(frozen=True)
class Setting:
    """What every plan of the experiments starts from.

    Attributes:
        preset: quick, default or paper.
        federation: its name.
        clients: the names of its clients, in the federation's order.
        data_sha256: the hash of its arrays.
        device: where to train.
        seeds: how many, counted from 0; None for the preset's own number.
        folds: how many clients are held out in turn, the last ones in the federation's order;
            "all", or None for the preset's own number.

    Raises:
        ValueError: an unknown preset, or a number of seeds or folds that there is not.
    """

    preset: str
    federation: str
    clients: tuple[str, ...]
    data_sha256: str
    device: str = "cpu"
    seeds: int | None = None
    folds: int | str | None = None

    def __post_init__(self) -> None:
        find(PRESETS, self.preset, "preset")
        if self.seeds is not None and not (is_whole(self.seeds) and self.seeds >= 1):
            raise ValueError(f"seeds must be a whole number of at least 1, got {self.seeds!r}")
        n = len(self.clients)
        if self.folds in (None, "all"):
            return
        if not (is_whole(self.folds) and 1 <= self.folds <= n):
            raise ValueError(
                f"folds hold out each of so many clients in turn: give 1 … {n} or 'all', since "
                f"the federation '{self.federation}' has {n}, not {self.folds!r}"
            )

    def size(self, section: str) -> Size:
        """How much the preset trains for a section."""
        return PRESETS[self.preset].sizes[section]

    def runs(self, size: Size) -> range:
        """The seeds: those asked for, else the preset's."""
        return range(size.seeds if self.seeds is None else self.seeds)

    def held_out(self, size: Size) -> tuple[str, ...]:
        """The clients that are left out in turn, in the federation's order.

        Raises:
            ValueError: fewer than three clients, of whom two must be left to train.
        """
        if len(self.clients) < 3:
            given = "one client" if len(self.clients) == 1 else f"{len(self.clients)} clients"
            raise ValueError(
                f"the federation '{self.federation}' has {given}, and holding "
                "one out leaves no federation: this section needs at least 3"
            )
        folds = size.folds if self.folds is None else self.folds
        return self.clients if folds == "all" else self.clients[-int(folds) :]

    def schedule(self, size: Size, seed: int, **other: Any) -> dict[str, Any]:
        """The schedule of a run, all its values stated."""
        chosen = {"rounds": size.rounds, "measure_every": size.measure_every, **other}
        weights = PRESETS[self.preset].weights
        return asdict(Schedule(**chosen, weights=weights, seed=seed, device=self.device))

    def training(
        self, algorithm: str, policy: str, schedule: Mapping[str, Any], **more: Any
    ) -> dict[str, Any]:
        """The config of a training run; `more` are `settings` other than usual, and extras.

        Extras are "held_out", "fraction", "per_domain" and "validation" (see `study_clients`).
        """
        model = PRESETS[self.preset].model
        chosen = choices(self.federation, self.data_sha256, model).get(algorithm, {})
        extras = {"projection": PROJECTION} if algorithm == "moon" else {}
        extras |= {name: value for name, value in more.items() if name != "settings"}
        return {
            "study": "training",
            "algorithm": algorithm,
            "settings": all_settings(algorithm) | chosen | more.get("settings", {}),
            "bn_policy": policy,
            "model": model,
            "schedule": dict(schedule),
            "federation": self.federation,
            "data_sha256": self.data_sha256,
            **extras,
        }

    def trained(self, config: dict[str, Any]) -> Study:
        """A training run as a study."""
        return Study(said(config), config, seconds_of_training(config, len(self.clients)))


def served(training: Mapping[str, Any], servings: Sequence[Serving]) -> Study:
    """The run that serves the client which a training left out, from its checkpoint."""
    config = {"study": "external", "training": dict(training), "held_out": training["held_out"]}
    config["serving"] = [asdict(serving) for serving in servings]
    label = f"outside: {said(training)}"
    return Study(label, config, len(servings) * seconds_of_serving(training["model"]))


def diverging(training: Mapping[str, Any], size: Size) -> Study:
    """The run that estimates divergences and bounds from a training's checkpoint."""
    config = {"study": "divergence", "training": dict(training), "held_out": training["held_out"]}
    config |= {"batches": list(size.test_batches), "capacity": "linear", "delta": 0.05}
    config |= {"layers": size.layers, "pairs": size.pairs, "reading": "features"}
    return Study(f"divergence: {said(training)}", config, seconds_of_divergence(training, size))


def shifted(training: Mapping[str, Any], size: Size) -> Study:
    """The run that serves the client left out from streams with skewed classes."""
    config = {"study": "label_shift", "training": dict(training), "held_out": training["held_out"]}
    config |= {"ratios": list(size.ratios), "draws": size.draws}
    seconds = seconds_of_label_shift(training["model"], size)
    return Study(f"label shift: {said(training)}", config, seconds)


def all_settings(algorithm: str) -> dict[str, Any]:
    """Every hyper-parameter of an algorithm with its default, which is its authors'."""
    parameters = inspect.signature(find(ALGORITHMS, algorithm, "algorithm")).parameters
    return {name: parameter.default for name, parameter in parameters.items()}


def unique(studies: Iterator[Study]) -> list[Study]:
    """The studies in their order, each config once."""
    kept: dict[str, Study] = {}
    for study in studies:
        kept.setdefault(json.dumps(study.config, sort_keys=True), study)
    return list(kept.values())


def said(config: Mapping[str, Any]) -> str:
    """A training run in words: whatever tells the runs of one plan apart."""
    schedule = config["schedule"]
    words = [config["algorithm"]]
    if config.get("validation"):
        words += [f"{name} {value:g}" for name, value in config["settings"].items()]
    words.append(f"{config['bn_policy'].replace('_', '-')} BN")
    epochs = f" of E = {schedule['local_epochs']}" if schedule["local_epochs"] > 1 else ""
    words.append(f"{schedule['rounds']} round{'s' * (schedule['rounds'] != 1)}{epochs}")
    if schedule["lr"] != Schedule.lr:
        words.append(f"step {schedule['lr']:g}")
    if "fraction" in config:
        words.append(f"{config['fraction']:.0%} of the images")
    if "per_domain" in config:
        words.append(f"{config['per_domain']} clients a domain")
    words.append(f"seed {schedule['seed']}")
    if "held_out" in config:
        words.append(f"without {config['held_out']}")
    return ", ".join(words)
