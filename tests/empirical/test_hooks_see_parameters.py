"""No algorithm is given, keeps or sends a running statistic or a counter: asserted by role."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from toy import client

from empirical.algorithm import Algorithm, Backward, Local, Memory, Report, Server
from empirical.algorithms import ALGORITHMS, build_algorithm
from empirical.bn_policy import BN_POLICIES
from empirical.federate import federate
from empirical.models import MODELS, build_model
from empirical.schedule import Schedule
from empirical.weights import Role, Weights, label, take, tensors, weighted_mean

STEPS = {"compact_cnn": (2, 3), "digits_cnn": (1, 1)}  # by model, of each client in a round


class Watched:
    """An algorithm, and the names of all tensors that go into and come out of its hooks.

    Attributes:
        algorithm: does what the given one does.
        names: of tensors given, kept, sent or remembered; numbers that stand beside the
            parameters, such as FedNova's count of steps, are in `numbers`.
        calls: how often each hook was called.
    """

    def __init__(self, algorithm: Algorithm, roles: Mapping[str, Role]) -> None:
        self._inner, self._roles = algorithm, roles
        self.names: set[str] = set()
        self.numbers: set[str] = set()
        self.calls: Counter[str] = Counter()
        self.algorithm = replace(
            algorithm,
            gradient=self.gradient,
            correct_gradient=self.correct,
            report=self.report,
            aggregate=self.aggregate,
            serve=self.serve if algorithm.serve else None,
        )

    def _see(self, many: Iterable[Mapping[str, Tensor]]) -> None:
        for weights in many:
            for name, value in weights.items():
                is_number = name not in self._roles and value.ndim == 0
                (self.numbers if is_number else self.names).add(name)

    def _see_local(self, hook: str, local: Local) -> None:
        self.calls[hook] += 1
        held = (local.memory, local.broadcast, local.scratch)
        self._see((local.learned, local.received, local.trained))
        self._see(weights for purposes in held for weights in purposes.values())

    def gradient(self, local: Local, batches: Sequence[Backward]) -> None:
        self._inner.gradient(local, batches)
        self._see_local("gradient", local)

    def correct(self, local: Local) -> None:
        self._inner.correct_gradient(local)
        self._see_local("correct", local)

    def report(self, local: Local) -> tuple[Report, Memory]:
        sent, kept = self._inner.report(local)
        self._see_local("report", local)
        self._see((local.full_gradient(), *sent.values(), *kept.values()))
        return sent, kept

    def aggregate(self, server: Server, mean: Report, participation: float) -> Server:
        new = self._inner.aggregate(server, mean, participation)
        self.calls["aggregate"] += 1
        self._see((server.learned, new.learned, *mean.values()))
        self._see((*server.memory.values(), *new.memory.values()))
        return new

    def serve(self, weights: Weights, batch: Backward) -> None:
        assert self._inner.serve
        self.calls["serve"] += 1
        self._see((weights,))
        self._inner.serve(weights, batch)


@pytest.mark.parametrize("policy", BN_POLICIES.values(), ids=lambda p: p.name)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_what_the_loop_hands_out_is_parameters(name, model, policy) -> None:
    with torch.device("meta"):
        net = MODELS[model](10)
    roles = label(net)
    handed = policy.divide(roles, build_algorithm(name).personal).learned
    trained = [n for n, weight in net.named_parameters() if weight.requires_grad]
    assert {roles[n] for n in (*handed, *trained)} == {Role.WEIGHT, Role.AFFINE}
    assert {Role.STATISTIC, Role.COUNTER} <= set(roles.values())


@pytest.mark.parametrize("policy", BN_POLICIES.values(), ids=lambda p: p.name)
@pytest.mark.parametrize(
    "model", [pytest.param(m, marks=pytest.mark.slow if m == "digits_cnn" else ()) for m in MODELS]
)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_hooks_see_parameters_and_the_loop_averages_statistics(name, model, policy) -> None:
    net = build_model(model, seed=0, classes=2)
    roles = label(net)
    algorithm = build_algorithm(name)
    watched = Watched(algorithm, roles)
    statistics: dict[str, Weights] = {}
    live: Weights = {}  # not the run itself, which would hold itself and its large tensors

    def report(local: Local) -> tuple[Report, Memory]:
        statistics[local.client] = take(live, division.statistics)
        return watched.report(local)

    steps = STEPS[model]
    clients = [client(n, 2 * k, test=2, size=28) for n, k in zip("ab", steps, strict=True)]
    schedule = Schedule(rounds=2, batch_size=2, lr=0.01, measure_every=2)
    run = federate(replace(watched.algorithm, report=report), policy, net, clients, schedule)
    live.update(tensors(run._net))
    division = policy.divide(roles, algorithm.personal)
    assert list(run)
    assert run.state.status == "complete"

    assert {roles[n] for n in watched.names} <= {Role.WEIGHT, Role.AFFINE}
    assert watched.numbers <= {"effective"}  # FedNova's count of steps
    # Two rounds, so that what is kept comes back.
    taken = 2 * sum(-(-k // algorithm.batches_a_step) for k in steps)
    assert dict(watched.calls) == {
        "gradient": taken,
        "correct": taken,
        "report": 4,
        "aggregate": 2,
        **({"serve": 4} if algorithm.serve else {}),
    }
    # What no hook has seen reaches the server as the mean of what the clients' layers counted.
    if division.statistics:
        mean = weighted_mean(statistics, run.state.p)
        assert policy.variance == "mean"
        assert all(torch.equal(run.state.server[n], mean[n]) for n in division.statistics)
    counters = [n for n, role in roles.items() if role is Role.COUNTER]
    assert counters
    assert all(run.state.server[n] == 0 for n in counters)
