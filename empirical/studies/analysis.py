"""The plan of the section `analysis`: what FedAvg's two columns depend on."""

from collections.abc import Iterator

from empirical.bn_policy import BN_POLICIES
from empirical.methods import COMPARED
from empirical.serving import Serving
from empirical.studies.presets import Size
from empirical.studies.sections import BASIC
from empirical.studies.study import Setting, Study, served, unique


def analysis_plan(setting: Setting) -> list[Study]:
    """τ × n_t, local epochs, amount of data, clients per domain, the affine of batch norm.

    Runs whose value is the usual one are those of `internal` and `compatibility`.
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
    usual = setting.size("internal")
    for seed in setting.runs(size):
        for policy in COMPARED:
            for epochs in size.local_epochs:
                rounds = size.epochs // epochs
                other = {"rounds": rounds, "local_epochs": epochs, "measure_every": rounds}
                schedule = setting.schedule(size, seed, **other)
                yield setting.trained(setting.training("fedavg", policy, schedule))
            rounds = size.rounds
            whole = setting.schedule(size, seed, measure_every=usual.measure_every)
            ends = setting.schedule(size, seed, measure_every=rounds)
            yield setting.trained(setting.training("fedavg", policy, whole))
            for name, values in (("fraction", size.fractions), ("per_domain", size.per_domain)):
                for value in values:
                    if value != 1:
                        config = setting.training("fedavg", policy, ends, **{name: value})
                        yield setting.trained(config)
