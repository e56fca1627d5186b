"""The registry of algorithms, one file each."""

import inspect
from collections.abc import Callable

from empirical.algorithm import Algorithm
from empirical.algorithms.fedavg import fedavg
from empirical.algorithms.fedavgm import fedavgm
from empirical.algorithms.feddc import feddc
from empirical.algorithms.fednova import fednova
from empirical.algorithms.fedopt import fedadagrad, fedadam, fedyogi
from empirical.algorithms.fedprox import fedprox
from empirical.algorithms.local import local_only
from empirical.algorithms.moon import moon
from empirical.algorithms.perfedavg import perfedavg
from empirical.algorithms.scaffold import scaffold
from empirical.registry import find

ALGORITHMS: dict[str, Callable[..., Algorithm]] = {
    "fedavg": fedavg,
    "fedprox": fedprox,
    "fednova": fednova,
    "scaffold": scaffold,
    "feddc": feddc,
    "fedavgm": fedavgm,
    "fedadam": fedadam,
    "fedyogi": fedyogi,
    "fedadagrad": fedadagrad,
    "local": local_only,
    "moon": moon,
    "perfedavg": perfedavg,
}

POLICY_OF = {"fedbn": ("fedavg", "client_specific")}
"""Methods that are a registered algorithm under one batch-norm policy: (algorithm, policy)."""


def build_algorithm(name: str, **settings: float | int) -> Algorithm:
    """The registered algorithm of this name with its hyper-parameters.

    Raises:
        ValueError: unknown name (the nearest are offered), a method that is a batch-norm policy
            ("fedbn"), or a setting that it does not have.
    """
    if isinstance(name, str) and name in POLICY_OF:
        algorithm, policy = POLICY_OF[name]
        raise ValueError(
            f"'{name}' is the algorithm '{algorithm}' under a batch-norm policy: give federate "
            f"build_algorithm('{algorithm}') and BN_POLICIES['{policy}']"
        )
    factory = find(ALGORITHMS, name, "algorithm")
    known = inspect.signature(factory).parameters
    for setting in settings:
        if setting not in known:
            has = f"its settings are {', '.join(known)}" if known else "it has none"
            raise ValueError(f"algorithm '{name}' has no setting '{setting}': {has}")
    return factory(**settings)
