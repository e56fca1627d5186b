"""What second implementations as plain loops need: whole copies of `bn_net`, averaged by name.

And a spy, which sees what an algorithm's clients keep and its server remembers.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from empirical.algorithm import Algorithm, Local, Memory, Report, Server
from empirical.batches import steps
from empirical.data.client import Client
from empirical.schedule import Schedule
from empirical.weights import Weights

# Policy -> beginnings or ends of the names of `bn_net` that stay with a client.
OWN = {
    "aggregated": ("num_batches_tracked",),
    "client_specific": ("1.", "5."),
    "client_statistics": ("running_mean", "running_var", "num_batches_tracked"),
    "client_affine": ("1.weight", "1.bias", "5.weight", "5.bias", "num_batches_tracked"),
}


class Copies:
    """The server's model and one whole model per client."""

    def __init__(self, model: nn.Module, clients: Iterable[Client], policy: str) -> None:
        self.own = OWN[policy]
        self.data = {c.name: c for c in clients}
        self.server = copy.deepcopy(model)
        self.nets = {name: copy.deepcopy(model) for name in self.data}
        total = sum(len(c.train) for c in self.data.values())
        self.p = {name: len(c.train) / total for name, c in self.data.items()}
        self.seen: set[str] = set()
        self.keys = [key for key, _ in model.named_parameters() if self.shared(key)]

    def shared(self, key: str) -> bool:
        return not (key.startswith(self.own) or key.endswith(self.own))

    def zeros(self) -> Weights:
        return {key: torch.zeros_like(self.server.state_dict()[key]) for key in self.keys}

    def receive(self, name: str) -> nn.Module:
        """The client's model as it begins a round; a newcomer's is the server's, whole."""
        sent = self.server.state_dict()
        takes = {k: v for k, v in sent.items() if self.shared(k) or name not in self.seen}
        self.nets[name].load_state_dict(takes, strict=False)
        return self.nets[name].train()

    def steps(self, name: str, schedule: Schedule, round_: int) -> Iterator[dict[str, Tensor]]:
        """The gradient of each batch; the caller takes the steps of the parameters in `keys`."""
        net, train = self.nets[name], self.data[name].train
        x, y = train.inputs().double(), train.labels
        named = dict(net.named_parameters())
        for (rows,) in steps(name, len(y), schedule, round_):
            loss = functional.cross_entropy(net(x[rows]), y[rows])
            grads = dict(zip(named, torch.autograd.grad(loss, list(named.values())), strict=True))
            yield grads
            for key, weight in named.items():
                if not self.shared(key):
                    weight.data -= schedule.lr * grads[key]

    def mean(self, values: Mapping[str, Weights], names: Iterable[str]) -> Weights:
        """Σ p_i x_i with p made to sum to one over `names`."""
        names = list(names)
        total = sum(self.p[name] for name in names)
        keys = values[names[0]]
        return {k: sum(self.p[n] / total * values[n][k] for n in names) for k in keys}  # type: ignore[misc]

    def finish(self, chosen: list[str], learned: Weights) -> None:
        """The server takes `learned`, and the means of everything else that holds numbers."""
        self.seen |= set(chosen)
        states = {name: net.state_dict() for name, net in self.nets.items()}
        for key, value in self.server.state_dict().items():
            if value.is_floating_point():
                who = chosen if self.shared(key) else sorted(self.seen)
                mean = self.mean({n: {key: states[n][key]} for n in who}, who)
                value.copy_(learned.get(key, mean[key]))


class Spy:
    """An algorithm that also writes down what passes through its hooks.

    Attributes:
        algorithm: does what the given one does.
        kept: client -> what it kept last.
        rounds: (a copy of `kept`, the server's memory) after every round.
    """

    def __init__(self, algorithm: Algorithm) -> None:
        self.kept: dict[str, Memory] = {}
        self.rounds: list[tuple[dict[str, Memory], Memory]] = []
        self._first: list[tuple[Tensor, Tensor]] = []

        def report(local: Local) -> tuple[Report, Memory]:
            sent, kept = algorithm.report(local)
            self.kept[local.client] = kept
            self._remember(kept)
            return sent, kept

        def aggregate(server: Server, mean: Report, participation: float) -> Server:
            new = algorithm.aggregate(server, mean, participation)
            self.rounds.append((dict(self.kept), new.memory))
            self._remember(new.memory)
            return new

        self.algorithm = replace(algorithm, report=report, aggregate=aggregate)

    def _remember(self, memory: Memory) -> None:
        tensors = [tensor for weights in memory.values() for tensor in weights.values()]
        self._first += [(tensor, tensor.clone()) for tensor in tensors]

    def nothing_moved(self) -> bool:
        """Whether every tensor ever kept still holds what it did at first."""
        return all(torch.equal(now, then) for now, then in self._first)
