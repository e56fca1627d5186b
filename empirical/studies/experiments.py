"""The two kinds of runs: a training, and serving from its checkpoint a client it left out."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from torch import nn

from empirical.algorithms import build_algorithm
from empirical.batch_checks import DivergedError
from empirical.bn_policy import BN_POLICIES
from empirical.data.client import Client, as_clients
from empirical.federate import federate
from empirical.models import build_model
from empirical.registry import find
from empirical.schedule import Schedule
from empirical.serving import Serving, serve_external
from empirical.state import FederationState
from empirical.studies.part import held_out, study_clients

Row = dict[str, Any]
Add = Callable[[Iterable[Row]], object]
Report = Callable[[float], object]


def train_study(
    config: Mapping[str, Any], clients: Iterable[Client], add: Add, report: Report
) -> FederationState:
    """Trains a federation as a config says.

    Args:
        config: of the run (see `Setting.training` and `study_clients`).
        clients: the whole federation, whatever part of it trains.
        add: takes the rows: round, client, split, metric, value.
        report: takes the fraction of the rounds done.

    Returns:
        The state after the last round, or after the one in which training diverged.

    Raises:
        ValueError: what the config names is not there, or a value is out of its range.
    """
    schedule, members = Schedule(**config["schedule"]), as_clients(clients)
    training = federate(
        build_algorithm(config["algorithm"], **config["settings"]),
        find(BN_POLICIES, config["bn_policy"], "batch-norm policy"),
        study_model(config, members),
        study_clients(config, members),
        schedule,
    )
    for measurement in training:
        add([asdict(measurement)])
        report(measurement.round / schedule.rounds)
    return training.state


def external_study(
    config: Mapping[str, Any],
    clients: Iterable[Client],
    state: FederationState,
    add: Add,
    report: Report,
) -> tuple[str, ...]:
    """Serves the client that a training left out, in each way that a config lists.

    Args:
        config: of the run: "training" (the config of that run) and "serving" (see `Serving`).
        clients: the whole federation.
        state: that the training left; not diverged.
        add: takes the rows: client, split, metric, value, variant, parameter (τ), samples (n_t),
            note (the order of the images).
        report: takes the fraction of the servings done.

    Returns:
        What a reader should know; a way that gives numbers that are not finite has no rows, and
        is named here.

    Raises:
        ValueError: what the config names is not there, or does not fit the state.
    """
    training, notes = config["training"], []
    members = as_clients(clients)
    model = study_model(training, members).to(training["schedule"]["device"])
    outside = held_out(config, members)
    for done, chosen in enumerate(config["serving"], start=1):
        serving = Serving(**chosen)
        try:
            served = serve_external(model, state, outside, serving, training["schedule"]["seed"])
        except DivergedError as error:
            notes.append(f"served by {serving.variant}, {outside.name} is left out: {error}")
            continue
        where = {"client": outside.name, "split": "test", "variant": serving.variant}
        where |= {"parameter": serving.momentum, "samples": serving.batch_size}
        where["note"] = serving.order
        values = {"loss": served.loss, "accuracy": served.accuracy}
        add([{"metric": name, "value": value, **where} for name, value in values.items()])
        notes += [note for note in served.notes if note not in notes]
        report(done / len(config["serving"]))
    return tuple(notes)


def study_model(config: Mapping[str, Any], clients: list[Client]) -> nn.Module:
    """The net of a training run at its start, for the classes that its clients know."""
    extra = {"projection": config["projection"]} if "projection" in config else {}
    classes = max(client.train.classes for client in clients)
    return build_model(config["model"], config["schedule"]["seed"], classes, **extra)
