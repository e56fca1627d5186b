"""The networks of a federation that left one client out, as they serve each client."""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor, nn

from empirical.architecture import Layer, architecture
from empirical.batch_checks import DivergedError
from empirical.data.client import Client, Split, as_clients
from empirical.evaluate import BATCH
from empirical.external import Adapted, adapt
from empirical.seeds import derive, repeatable
from empirical.sites import channels_last
from empirical.state import FederationState
from empirical.stream import stream
from empirical.studies.experiments import study_model
from empirical.studies.part import held_out, study_clients
from empirical.weights import Role, label, load

POLICIES = ("aggregated", "client_specific")

MOMENTUM, BATCH_SIZE = 0.9, 32
"""τ and n_t by which the unseen client's statistics move, as `Serving("adapted")` has them."""


class Networks:
    """One net, into which the weights that serve a client are loaded when they are asked for.

    Attributes:
        seen: the clients that trained, as they trained, in the federation's order.
        unseen: the one held out.
        specific: whether batch norm is client-specific, else it is aggregated.
        net: the net; whose weights it holds is that of the last call.
        device: its device.
        arriving: the unseen client's test images, batch by batch.
    """

    def __init__(
        self, config: Mapping[str, Any], clients: Iterable[Client], state: FederationState
    ) -> None:
        """Checks that the config of the run ("training", "held_out") and the state fit.

        Raises:
            ValueError: an unknown client or policy, a client held out that was trained with, or
                one that was not though the config says so.
            DivergedError: a ValueError; the training diverged.
        """
        training, members = config["training"], as_clients(clients)
        if state.status == "diverged":
            raise DivergedError(f"the federation diverged in round {state.round}: nothing to see")
        if training["bn_policy"] not in POLICIES:
            raise ValueError(
                f"the training has the policy '{training['bn_policy']}': features are compared "
                f"under {' and '.join(POLICIES)}"
            )
        self.unseen = held_out(config, members)
        self.seen = study_clients(training, members)
        trained = {client.name for client in self.seen}
        if self.unseen.name in trained or trained != set(state.p):
            raise ValueError(
                f"the federation trained with {', '.join(sorted(state.p))}, not with "
                f"{', '.join(sorted(trained))} and without '{self.unseen.name}': give the "
                "checkpoint of that training"
            )
        self._state = state
        self.specific = training["bn_policy"] == "client_specific"
        self.device = torch.device(training["schedule"]["device"])
        net = study_model(training, members).to(self.device).eval()
        layout = torch.channels_last if channels_last(net) else torch.contiguous_format
        self.net: nn.Module = net.to(memory_format=layout)  # pyright: ignore[reportCallIssue]
        load(self.net, state.server)
        seed = derive(training["schedule"]["seed"], "external", self.unseen.name)
        self.arriving = stream(self.net, self.unseen.test, seed, batch_size=BATCH_SIZE)
        self._adapted: Adapted | None = None

    @property
    def clients(self) -> list[Client]:
        """The seen clients and then the unseen one."""
        return [*self.seen, self.unseen]

    def inputs(self, split: Split) -> Tensor:
        """The images of a split as the net takes them."""
        like = next(self.net.parameters())
        x = split.inputs(self.device).to(like.dtype)
        layout = torch.channels_last if channels_last(self.net) else torch.contiguous_format
        return x.contiguous(memory_format=layout)

    def weights(self) -> Float64[np.ndarray, " clients"]:
        """The objective's weights of the seen clients, summing to 1."""
        p = np.array([self._state.p[client.name] for client in self.seen], dtype=np.float64)
        return p / p.sum()

    def architecture(self) -> list[Layer]:
        """The net's layers, with the γ and β of every seen client that has its own."""
        norms = len(self.seen) if self.specific else 1
        return architecture(self.net, self.inputs(self.unseen.test)[:1], norms)

    def serving(self, client: str) -> nn.Module:
        """The net that serves a client; of the unseen one the net after its whole stream."""
        if client != self.unseen.name:
            load(self.net, self._state.weights(client))
            return self.net
        return self._moved().model if self.specific else self.server()

    def server(self) -> nn.Module:
        """The server's net with the server's statistics."""
        load(self.net, self._state.server)
        return self.net

    def after(self, batches: int) -> nn.Module:
        """The server's net once so many test batches have moved its statistics."""
        return adapt(self.server(), islice(self.arriving, batches), MOMENTUM).model

    def on_features(self, client: Client) -> Float64[np.ndarray, "models n classes"]:
        """What every seen client's γ and β make of a client's own normalised features.

        Statistics are those that serve the client. Its images: a seen one's training images, the
        unseen one's test images.
        """
        x = self.inputs(client.test if client.name == self.unseen.name else client.train)
        return self._by_model(lambda model: answers(self._mixed(client.name, model), x))

    def on_inputs(self, client: Client) -> Float64[np.ndarray, "models n classes"]:
        """What every seen client's model, statistics and all, answers to its training images."""
        x = self.inputs(client.train)
        return self._by_model(lambda model: answers(self.serving(model), x))

    def _by_model(self, answer: Callable[[str], Tensor]) -> Float64[np.ndarray, "models n classes"]:
        """One for each seen client; of an aggregated run all are the same."""
        asked = self.seen if self.specific else self.seen[:1]
        found = np.stack([probabilities(answer(model.name)) for model in asked])
        return found if self.specific else found.repeat(len(self.seen), axis=0)

    def _mixed(self, client: str, model: str) -> nn.Module:
        """The net that serves a client, with γ and β of another."""
        served, other = self.serving(client).state_dict(), self._state.weights(model)
        affine = [name for name, role in label(self.net).items() if role is Role.AFFINE]
        load(self.net, served | {name: other[name] for name in affine})
        return self.net

    def served(self) -> dict[str, Float64[np.ndarray, "n classes"]]:
        """What serves the unseen client -> what it answers to its test images, in their order."""
        moved = self.arriving.restore(self._moved().predictions)
        plain = answers(self.server(), self.inputs(self.unseen.test))
        return {"server": probabilities(plain), "adapted": probabilities(moved)}

    def _moved(self) -> Adapted:
        if self._adapted is None:
            self._adapted = adapt(self.server(), self.arriving, MOMENTUM)
        return self._adapted


@torch.inference_mode(False)
@torch.no_grad()
def answers(net: nn.Module, inputs: Tensor) -> Tensor:
    """The net's logits in eval mode."""
    net.eval()
    with repeatable(inputs.device):
        return torch.cat([net(x) for x in inputs.split(BATCH)])


def probabilities(logits: Tensor) -> Float64[np.ndarray, "n classes"]:
    """Softmax in float64.

    Raises:
        DivergedError: logits that are not finite.
    """
    if not bool(logits.isfinite().all()):
        raise DivergedError("the model's answers are not finite: it diverged")
    return logits.double().softmax(1).cpu().numpy()
