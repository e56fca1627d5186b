"""The plans of the sections, but for `analysis`: their trainings and what follows from these.

Every plan names its runs by config alone, so that sections share those whose configs agree.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from empirical.methods import COMPARED
from empirical.serving import Serving
from empirical.studies.grid import registered
from empirical.studies.presets import Size
from empirical.studies.structural import structural_trainings
from empirical.studies.study import Setting, Study, diverging, served, shifted, unique

BASIC = (Serving("server"), Serving("adapted"))
"""How every method serves the client outside: the server's statistics, and Eqs. (3), (4)."""


def every_way(orders: tuple[str, ...]) -> tuple[Serving, ...]:
    """How FedAvg serves it: each choice that the equations leave open, in each order of images."""
    shuffled = [Serving(name) for name in ("batch", "source", "identity", "total")]
    others = [
        Serving(name, order=order)
        for order in orders
        if order != "shuffled"
        for name in ("server", "adapted", "batch", "source")
    ]
    return (*BASIC, *shuffled, *others)


def convergence_trainings(setting: Setting) -> list[Study]:
    """FedAvg with each of the two policies, all clients taking part."""
    size = setting.size("convergence")
    return [
        setting.trained(setting.training("fedavg", policy, setting.schedule(size, seed)))
        for seed in setting.runs(size)
        for policy in COMPARED
    ]


def compatibility_plan(setting: Setting) -> list[Study]:
    """Every method with each policy, one client held out in turn and then served (Table I)."""
    return _held_out(setting, setting.size("compatibility"))


def external_plan(setting: Setting) -> list[Study]:
    """The same with more clients held out in turn: leave one client out."""
    return _held_out(setting, setting.size("external"))


def internal_plan(setting: Setting) -> list[Study]:
    """Every method with each policy, all clients taking part; FedAvg's are `convergence`'s runs."""
    size = setting.size("internal")
    return unique(
        setting.trained(setting.training(method.algorithm, policy, setting.schedule(size, seed)))
        for method in registered(size.methods)
        for seed in setting.runs(size)
        for policy in method.bn_policies
    )


def generalization_plan(setting: Setting) -> list[Study]:
    """FedAvg with each policy, one client held out in turn: divergences, terms of the bounds."""
    size = setting.size("generalization")
    return unique(_followed(setting, size, COMPARED, diverging))


def causal_plan(setting: Setting) -> list[Study]:
    """FedAvg with client-specific BN, one client held out in turn, then served with skewed classes.

    After these the trainings on draws of the structural model.
    """
    outside = unique(_followed(setting, setting.size("causal"), COMPARED[1:], shifted))
    return [*outside, *structural_trainings(setting)]


def _followed(
    setting: Setting,
    size: Size,
    policies: Sequence[str],
    follow: Callable[[Mapping[str, Any], Size], Study],
) -> Iterator[Study]:
    for seed in setting.runs(size):
        for left_out in setting.held_out(size):
            for policy in policies:
                schedule = setting.schedule(size, seed)
                config = setting.training("fedavg", policy, schedule, held_out=left_out)
                yield setting.trained(config)
                yield follow(config, size)


def _held_out(setting: Setting, size: Size) -> list[Study]:
    return unique(_with_external(setting, size))


def _with_external(setting: Setting, size: Size) -> Iterator[Study]:
    for method in registered(size.methods):
        for seed in setting.runs(size):
            for left_out in setting.held_out(size):
                for policy in method.bn_policies:
                    schedule = setting.schedule(size, seed)
                    name = method.algorithm
                    config = setting.training(name, policy, schedule, held_out=left_out)
                    yield setting.trained(config)
                    ways = every_way(size.orders) if name == "fedavg" else BASIC
                    yield served(config, ways)
