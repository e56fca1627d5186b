"""How much each preset trains for each section, and about how long that takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Size:
    """How much is trained for a section.

    Attributes:
        rounds: communication rounds.
        seeds: how many, counted from 0.
        measure_every: rounds between measurements; the start and the end are always measured.
        folds: how many clients are held out in turn, the last ones, or "all".
        methods: rows of the table; none for all.
        epochs: local epochs in total, where their number in a round varies.
        lrs, local_epochs, fractions, per_domain, momenta, batch_sizes: what the analysis varies.
        orders: of the images of an external client.
        layers, pairs, test_batches: what of the divergence is estimated (see `divergence_data`).
        ratios, draws: of label shift (see `label_shift_study`).
    """

    rounds: int
    seeds: int
    measure_every: int = 1
    folds: int | str = 2
    methods: tuple[str, ...] = ()
    epochs: int = 0
    lrs: tuple[float, ...] = ()
    local_epochs: tuple[int, ...] = ()
    fractions: tuple[float, ...] = ()
    per_domain: tuple[int, ...] = ()
    momenta: tuple[float, ...] = ()
    batch_sizes: tuple[int, ...] = ()
    orders: tuple[str, ...] = ("shuffled", "sorted", "drifting")
    layers: str = "all"
    pairs: bool = True
    test_batches: tuple[int, ...] = (1, 2, 4, 8, 15)
    ratios: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
    draws: int = 5


@dataclass(frozen=True)
class Preset:
    """The net, the clients' weights p, and the sizes of the sections."""

    model: str
    weights: str
    sizes: Mapping[str, Size]


_MOMENTA, _BATCH_SIZES = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99), (4, 8, 32, 128)
_WHOLE: dict[str, Any] = {
    "epochs": 32,
    "lrs": (0.01, 0.03, 0.1),
    "local_epochs": (1, 4, 8, 16),
    "fractions": (1.0, 0.5, 0.2, 0.1),
    "per_domain": (1, 2, 4, 8),
    "momenta": _MOMENTA,
    "batch_sizes": _BATCH_SIZES,
}
_BRIEF: dict[str, Any] = {
    "epochs": 2,
    "lrs": (0.01, 0.1),
    "local_epochs": (1, 2),
    "fractions": (1.0, 0.2),
    "per_domain": (1, 2),
    "momenta": (0.0, 0.9),
    "batch_sizes": (8, 32),
}

PRESETS: dict[str, Preset] = {
    "quick": Preset(
        "compact_cnn",
        "size",
        {
            "convergence": Size(rounds=5, seeds=3),
            "compatibility": Size(rounds=1, seeds=2, folds=1, orders=("shuffled",)),
            "internal": Size(rounds=5, seeds=2, methods=("fedavg", "fedprox", "fedbn")),
            "external": Size(rounds=1, seeds=2, methods=("fedavg", "fedprox", "fedbn")),
            "analysis": Size(rounds=1, seeds=2, folds=1, **_BRIEF),
            "generalization": Size(
                rounds=1, seeds=1, folds=1, layers="last", pairs=False, test_batches=(1, 15)
            ),
            "causal": Size(rounds=1, seeds=1, folds=1, ratios=(1.0, 10.0, 50.0), draws=2),
            "tuning": Size(rounds=1, seeds=1),
        },
    ),
    "default": Preset(
        "compact_cnn",
        "size",
        {
            "convergence": Size(rounds=20, seeds=5),
            "compatibility": Size(rounds=20, seeds=3, measure_every=5),
            "internal": Size(rounds=20, seeds=3),
            "external": Size(rounds=20, seeds=3, measure_every=5, folds="all"),
            "analysis": Size(rounds=20, seeds=3, measure_every=5, **_WHOLE),
            "generalization": Size(rounds=20, seeds=3, measure_every=5, folds="all"),
            "causal": Size(rounds=20, seeds=3, measure_every=5),
            "tuning": Size(rounds=20, seeds=1, measure_every=20),
        },
    ),
    # FedBN's published setting for digits (Li et al. 2021).
    "paper": Preset(
        "digits_cnn",
        "uniform",
        {
            "convergence": Size(rounds=100, seeds=5),
            "compatibility": Size(rounds=100, seeds=5, measure_every=5, folds="all"),
            "internal": Size(rounds=100, seeds=5),
            "external": Size(rounds=100, seeds=5, measure_every=5, folds="all"),
            "analysis": Size(rounds=100, seeds=5, measure_every=5, folds="all", **_WHOLE),
            "generalization": Size(rounds=100, seeds=5, measure_every=5, folds="all"),
            "causal": Size(rounds=100, seeds=5, measure_every=5, folds="all"),
            "tuning": Size(rounds=20, seeds=1, measure_every=20),
        },
    ),
}

# Of one client of the digits, on one core: an epoch of 743 images, and 1,743 images measured.
_EPOCH = {"compact_cnn": 0.16, "digits_cnn": 2.6}
_MEASURED = {"compact_cnn": 0.14, "digits_cnn": 1.1}
_SERVED = {"compact_cnn": 0.4, "digits_cnn": 2.5}
# Of one variant of features: all hidden layers; as much again for pairs at the last one.
_ESTIMATED = {"compact_cnn": 2.4, "digits_cnn": 30.0}
# How much longer a method's epoch takes than FedAvg's.
_LONGER = {"scaffold": 1.1, "moon": 2.2, "feddc": 1.1, "perfedavg": 2.0}


def seconds_of_training(config: Mapping[str, Any], clients: int) -> float:
    """About how long a training run takes on one core."""
    schedule, model = config["schedule"], config["model"]
    present = clients - ("held_out" in config)
    epochs = schedule["rounds"] * schedule["local_epochs"] * config.get("fraction", 1.0)
    measured = 1 + schedule["rounds"] / schedule["measure_every"]
    measured *= config.get("per_domain", 1)
    train = epochs * _LONGER.get(config["algorithm"], 1.0) * _EPOCH[model]
    return present * (train + measured * _MEASURED[model])


def seconds_of_serving(model: str) -> float:
    """About how long serving 1,000 images once takes on one core."""
    return _SERVED[model]


def seconds_of_divergence(training: Mapping[str, Any], size: Size) -> float:
    """About how long features and the estimates on them take on one core."""
    variants = 4 if training["bn_policy"] == "client_specific" else 1
    layers = 1.0 if size.layers == "all" else 0.6
    return (layers + size.pairs) * (1 + variants) * _ESTIMATED[training["model"]]


def seconds_of_label_shift(model: str, size: Size) -> float:
    """About how long serving skewed streams takes on one core; each has some 300 images."""
    return 0.6 * size.draws * (len(size.ratios) + 1) * _SERVED[model]
