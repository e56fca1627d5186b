"""The plan of the section `analysis`: what FedAvg's two columns depend on."""

from collections.abc import Iterator
from typing import Any

from empirical.bn_policy import BN_POLICIES
from empirical.methods import COMPARED
from empirical.schedule import Schedule
from empirical.serving import Serving
from empirical.studies.presets import Size
from empirical.studies.sections import BASIC
from empirical.studies.study import Setting, Study, served, unique


def analysis_plan(setting: Setting) -> list[Study]:
    """τ × n_t, step size, local epochs, amount of data, clients per domain, affine of batch norm.

    Runs whose value is the usual one are those of `internal` and `compatibility`. Where data are
    varied, clients that train alone are the baseline.
    """
    size = setting.size("analysis")
    studies = [*_outside(setting, size), *_inside(setting, size)]
    return unique(iter(studies))


def momenta_and_sizes(size: Size) -> tuple[Serving, ...]:
    """Eqs. (3), (4) for each τ and n_t, in each order of images."""
    return tuple(
        Serving("adapted", momentum=momentum, batch_size=batch_size, order=order)
        for order in size.orders
        for batch_size in size.batch_sizes
        for momentum in size.momenta
    )


def _outside(setting: Setting, size: Size) -> Iterator[Study]:
    """All four policies inside, given or identity affine outside; for FedBN τ × n_t too."""
    ways = (*BASIC, Serving("identity"))
    for seed in setting.runs(size):
        for left_out in setting.held_out(size):
            for policy in BN_POLICIES:
                schedule = setting.schedule(size, seed)
                config = setting.training("fedavg", policy, schedule, held_out=left_out)
                yield setting.trained(config)
                swept = momenta_and_sizes(size) if policy == "client_specific" else ()
                yield served(config, tuple(dict.fromkeys((*ways, *swept))))


def _inside(setting: Setting, size: Size) -> Iterator[Study]:
    for seed in setting.runs(size):
        for policy in COMPARED:
            usual = _usual(setting, size, seed)
            yield setting.trained(setting.training("fedavg", policy, usual))
            for lr in size.lrs:
                if lr != Schedule.lr:
                    ends = setting.schedule(size, seed, measure_every=size.rounds, lr=lr)
                    yield setting.trained(setting.training("fedavg", policy, ends))
            for epochs in size.local_epochs:
                schedule = _epochs(setting, size, seed, epochs)
                yield setting.trained(setting.training("fedavg", policy, schedule))
            yield from _data(setting, size, seed, ("fedavg", policy))
        # Alone, no client shares anything: both policies are one.
        ends = setting.schedule(size, seed, measure_every=size.rounds)
        yield setting.trained(setting.training("local", COMPARED[1], ends))
        yield from _data(setting, size, seed, ("local", COMPARED[1]))


def _usual(setting: Setting, size: Size, seed: int) -> dict[str, Any]:
    """The schedule of `internal`, whose runs are the usual ones."""
    return setting.schedule(size, seed, measure_every=setting.size("internal").measure_every)


def _epochs(setting: Setting, size: Size, seed: int, epochs: int) -> dict[str, Any]:
    """So many local epochs a round, and always the same number in total."""
    rounds = size.epochs // epochs
    if (epochs, rounds) == (1, size.rounds):
        return _usual(setting, size, seed)
    other = {"rounds": rounds, "local_epochs": epochs, "measure_every": rounds}
    return setting.schedule(size, seed, **other)


def _data(setting: Setting, size: Size, seed: int, cell: tuple[str, str]) -> Iterator[Study]:
    """Fewer images for each client, and more clients for each domain's images."""
    ends = setting.schedule(size, seed, measure_every=size.rounds)
    for name, values in (("fraction", size.fractions), ("per_domain", size.per_domain)):
        for value in values:
            if value != 1:
                yield setting.trained(setting.training(*cell, ends, **{name: value}))
