"""The one training loop: every algorithm and every batch-norm policy runs through it."""

import copy
import functools
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

import torch
from torch import nn

from empirical.algorithm import Algorithm, Local, Memory, Server
from empirical.batches import batch_sizes
from empirical.bn_policy import BNPolicy
from empirical.checks import warn
from empirical.contrast import Contrast
from empirical.data.client import Client, as_clients
from empirical.evaluate import Measurement, measure
from empirical.label_advice import label_advice
from empirical.local_training import (
    Trainer,
    adapt_before_measuring,
    full_gradient,
    train,
)
from empirical.schedule import Schedule, available, participants
from empirical.seeds import repeatable
from empirical.sites import Site, channels_last, prepare
from empirical.state import FederationState
from empirical.weights import (
    Role,
    RunningMean,
    Weights,
    all_finite,
    label,
    load,
    shares,
    take,
    tensors,
)


def federate(
    algorithm: Algorithm,
    bn_policy: BNPolicy,
    model: nn.Module,
    clients: Iterable[Client],
    schedule: Schedule,
) -> "Run":
    """Trains a federation and measures it, round by round.

    Each round: participants are sampled; each starts from the server's shared tensors and its
    own private ones, and trains E local epochs; the server takes the mean of what they report
    with p over the participants. Every client, sampled or not, is then measured with the shared
    weights and the batch norm that the policy gives it (a client that has never trained: the
    server's). Order of `clients` changes nothing: seeds and sums go by name.

    Args:
        algorithm: such as `fedavg()`, or `build_algorithm("fedprox", mu=0.1)`.
        bn_policy: such as `CLIENT_SPECIFIC`, or `BN_POLICIES["client_specific"]`.
        model: the common start, copied and left as it is.
        clients: `load_federation(...)`, or your own.
        schedule: rounds, step size, sampling, device.

    Returns:
        An iterator of `Measurement`. Training happens as it is consumed; `.state` holds the
        weights at any time. Input is checked before the first of them.

    Raises:
        TypeError: an argument that is not a value of its class.
        ValueError: clients or a model that cannot be trained (see `prepare` and `label`).

    Warns:
        UserWarning: the model has no batch norm, so that every policy gives the same result; or
            the policy keeps statistics on clients that differ in their classes (`label_shift`).
    """
    for value, kind, how in (
        (algorithm, Algorithm, "build_algorithm(name)"),
        (bn_policy, BNPolicy, "BN_POLICIES[name]"),
        (model, nn.Module, "build_model(name, seed)"),
        (schedule, Schedule, "Schedule(rounds=10)"),
    ):
        if not isinstance(value, kind):
            raise TypeError(f"{value!r} is no {kind.__name__}: use {how}")
    if not {Role.AFFINE, Role.STATISTIC} & set(label(model).values()):
        warn("the model has no batch-norm layer: all batch-norm policies give the same result")
    members = as_clients(clients)
    if Role.STATISTIC not in bn_policy.shared and (advice := label_advice(members)):
        warn(advice)
    return Run(algorithm, bn_policy, model, members, schedule)


class Run(Iterator[Measurement]):
    """A federation in training: an iterator of `Measurement`, made by `federate`.

    One round's measurements appear together, clients in the order of their names: "batch_loss"
    of the participants, then "loss" and "accuracy" of every client on "train" and "test", then
    those of the server's model on "test" under the client name "server", the unweighted mean
    over the clients' test splits (none where the algorithm shares nothing). A loss, a learned
    parameter or a running statistic that is not finite after a round ends the run: nothing of
    that round is yielded and `state.status` is "diverged".

    Attributes:
        state: the `FederationState` after the last finished round.
    """

    state: FederationState

    @torch.inference_mode(False)
    def __init__(
        self,
        algorithm: Algorithm,
        bn_policy: BNPolicy,
        model: nn.Module,
        clients: Iterable[Client],
        schedule: Schedule,
    ) -> None:
        """Checks everything and prepares the data; trains nothing yet."""
        device = available(schedule.device)
        roles = label(model)
        net = copy.deepcopy(model).to(device)
        if channels_last(net):
            net = net.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        self._sites = prepare(clients, net, device, schedule.batch_size)
        self._algorithm, self._policy = algorithm, bn_policy
        self._schedule, self._net = schedule, net
        self._division = bn_policy.divide(roles, algorithm.personal)
        moving = [n for n, r in roles.items() if r not in (Role.COUNTER, Role.CONSTANT)]
        start = tensors(net)  # a running maximum may start from -inf, and no batch come to it
        self._finite = frozenset(n for n in moving if all_finite([start[n]]))
        sizes = {
            site.name: float(len(site.train)) if schedule.weights == "size" else 1.0
            for site in self._sites
        }
        self._server_memory: Memory = {}
        self._memories: dict[str, Memory] = {}
        example = self._sites[0].train.inputs[:1]
        self._contrast = Contrast(net, example) if algorithm.feature_loss else None
        self._last: dict[str, Weights] = {}  # whole models, for the contrast alone
        self.state = FederationState(
            status="running",
            round=0,
            server=take(tensors(net), roles),
            clients={site.name: {} for site in self._sites},
            p=shares(sizes, sizes),
            notes=_folded(self._sites, schedule.batch_size) + _served(algorithm),
        )
        self._measurements = self._rounds()

    def __next__(self) -> Measurement:
        return next(self._measurements)

    def _rounds(self) -> Iterator[Measurement]:
        last = self._schedule.rounds
        for round_ in range(last + 1):
            # Whatever the caller's own mode, such as `torch.no_grad()`, is when it asks for more.
            with torch.inference_mode(False), repeatable(self._schedule.device):
                state, rows = self._train(round_) if round_ else (self.state, [])
                finite = self._stayed_finite(state)
                if finite and (round_ in (0, last) or round_ % self._schedule.measure_every == 0):
                    rows += self._measure(state, round_)
            if not (finite and all(math.isfinite(row.value) for row in rows)):
                self.state = replace(self.state, status="diverged", round=round_)
                return
            self.state = replace(state, status="complete" if round_ == last else "running")
            yield from rows

    def _stayed_finite(self, state: FederationState) -> bool:
        """Whether the server's model, and what stays with the participants, is finite.

        Finite losses do not say so: an infinite running variance makes its layer answer zero.
        """
        former = self.state.clients
        if state is self.state:
            return True
        moved = [w for name, w in state.clients.items() if w is not former[name]]
        models = [state.server, *moved]
        return all_finite(model[name] for model in models for name in self._finite & model.keys())

    def _measure(self, state: FederationState, round_: int) -> list[Measurement]:
        algorithm, schedule = self._algorithm, self._schedule
        before = None
        if algorithm.serve:
            before = functools.partial(
                adapt_before_measuring, algorithm=algorithm, schedule=schedule, round_=round_
            )
        return measure(self._net, self._sites, state, self._division, round_, before)

    def _train(self, round_: int) -> tuple[FederationState, list[Measurement]]:
        """One round; the state is not the run's until its losses are known to be finite."""
        names = participants([site.name for site in self._sites], self._schedule, round_)
        p = shares(self.state.p, names)
        sums: dict[str, RunningMean] = {}
        statistics: dict[str, Weights] = {}
        private = dict(self.state.clients)
        rows = []
        for site in self._sites:
            if site.name not in p:
                continue
            local, loss = self._train_client(site, round_)
            rows.append(Measurement(round_, site.name, "train", "batch_loss", loss))
            if not math.isfinite(loss):
                return self.state, rows
            report, self._memories[site.name] = self._algorithm.report(local)
            for purpose, weights in report.items():
                sums.setdefault(purpose, RunningMean()).add(weights, p[site.name])
            live = tensors(self._net)
            statistics[site.name] = take(live, self._division.statistics)
            private[site.name] = take(live, self._division.private)
            if self._contrast:
                self._last[site.name] = take(live, live)
        means = {purpose: total.value() for purpose, total in sums.items()}
        weights = self._aggregate(means, statistics, private)
        return replace(self.state, round=round_, server=weights, clients=private), rows

    def _train_client(self, site: Site, round_: int) -> tuple[Local, float]:
        """Local epochs of one participant on the one resident model."""
        net, schedule = self._net, self._schedule
        received = self.state.weights(site.name)
        load(net, received)
        live = tensors(net)
        local = Local(
            client=site.name,
            learned={name: live[name] for name in self._division.learned},
            received={name: self.state.server[name] for name in self._division.learned},
            memory=self._memories.get(site.name, {}),
            broadcast=self._server_memory,
            lr=self._algorithm.local_lr or schedule.lr,
            trained={n: weight for n, weight in net.named_parameters() if weight.requires_grad},
            full_gradient=lambda: full_gradient(
                net, site, self._division.learned, schedule, round_
            ),
        )
        if self._contrast:
            self._contrast.begin(received, self._last.get(site.name), site.train.inputs)
        trainer = Trainer(net, site, self._algorithm, self._contrast)
        return local, train(trainer, self._algorithm, local, schedule, round_)

    def _aggregate(
        self,
        means: dict[str, Weights],
        statistics: dict[str, Weights],
        private: dict[str, Weights],
    ) -> Weights:
        """The server's new model; statistics and the mirror of private tensors bypass the hook."""
        p, server = self.state.p, self.state.server
        learned = {name: server[name] for name in self._division.learned}
        participation = math.fsum(p[name] for name in statistics)
        new = self._algorithm.aggregate(Server(learned, self._server_memory), means, participation)
        self._server_memory = new.memory
        weights = {**server, **new.learned, **self._policy.mean(statistics, p, self._net)}
        if self._division.mirrored:
            trained = {
                name: take(own, self._division.mirrored) for name, own in private.items() if own
            }
            weights |= self._policy.mean(trained, p, self._net)
        return weights


def _folded(sites: list[Site], batch_size: int) -> tuple[str, ...]:
    return tuple(
        f"client '{site.name}': the last batch of one image is folded into the one before it, "
        f"which has {batch_size + 1}"
        for site in sites
        if batch_sizes(len(site.train), batch_size)[-1] > batch_size
    )


def _served(algorithm: Algorithm) -> tuple[str, ...]:
    if algorithm.serve is None:
        return ()
    return (
        f"{algorithm.name}: each client is measured after the method's adaptation on one batch of "
        "its training images; the server's model is measured as it is",
    )
