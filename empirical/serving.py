"""Every way to serve a client outside the federation, measured on its whole test split."""

import copy
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from empirical.batch_checks import DivergedError, checked_answer
from empirical.data.client import Client
from empirical.evaluate import BATCH
from empirical.external import adapt
from empirical.registry import find
from empirical.running_norm import checked_options
from empirical.seeds import derive, repeatable
from empirical.sites import channels_last
from empirical.state import FederationState
from empirical.stream import Stream, check_arrival, stream
from empirical.weights import all_finite, load, take, tensors, variance_partners

VARIANTS: dict[str, dict[str, Any]] = {
    "server": {},
    "adapted": {},
    "batch": {"momentum": 0.0},
    "source": {"first": "source"},
    "identity": {"affine": "identity"},
    "total": {"variance": "total"},
}
"""How a client is served -> what of `adapt` that fixes. "server" is not adapted at all: the
server's model as it is, with the server's statistics."""


@dataclass(frozen=True)
class Serving:
    """One way to serve a client outside the federation.

    Attributes:
        variant: one of `VARIANTS`.
        momentum: τ; 0.9 unless given, always 0 for "batch", None for "server".
        batch_size: n_t; 32 unless given, None for "server". At least 2, for "total" 1.
        order: of the stream, "shuffled", "sorted" or "drifting" (see `stream`).
        last: a short last batch is "kept", or "joined" to the one before it.
        prediction: "after" or "before" the update (see `adapt`).
        batch_variance: "biased" or "unbiased" σ_b².

    Raises:
        ValueError: an unknown variant, or a value that it does not have.
    """

    variant: str = "adapted"
    momentum: float | None = None
    batch_size: int | None = None
    order: str = "shuffled"
    last: str = "kept"
    prediction: str = "after"
    batch_variance: str = "biased"

    def __post_init__(self) -> None:
        fixed = find(VARIANTS, self.variant, "variant")
        if self.variant == "server":
            self._check_server()
            return
        for name, usual in {"momentum": 0.9, "batch_size": 32, **fixed}.items():
            if name in ("momentum", "batch_size") and getattr(self, name) is None:
                object.__setattr__(self, name, usual)
        options = self.options()
        check_arrival(self.batch_size, self.order, self.last)
        if options["momentum"] != self.momentum:
            raise ValueError(
                f"variant '{self.variant}' has the momentum {options['momentum']}, got "
                f"{self.momentum!r}: use 'adapted' for other momenta"
            )
        object.__setattr__(self, "momentum", options["momentum"])  # a float, for the config's hash
        if self.batch_size == 1 and not _takes_one(options):
            raise ValueError(
                f"variant '{self.variant}' with {self.batch_variance} variance needs a batch_size "
                "of at least 2, since one image has no variance at a dense layer: use variant "
                "'total', biased, for batches of one"
            )

    def options(self) -> dict[str, float | str]:
        """The options of `adapt`; none for "server"."""
        if self.variant == "server":
            return {}
        chosen = {"variance": "within", "affine": "given", "first": "batch"}
        chosen |= {"prediction": self.prediction, "batch_variance": self.batch_variance}
        return checked_options(**{**chosen, "momentum": self.momentum, **VARIANTS[self.variant]})

    def _check_server(self) -> None:
        check_arrival(1, self.order, self.last)
        defaults = (None, None, "kept", "after", "biased")
        own = (self.momentum, self.batch_size, self.last, self.prediction, self.batch_variance)
        if own != defaults:
            raise ValueError(
                "variant 'server' adapts nothing: give it an order alone, neither momentum, "
                "batch_size, last, prediction nor batch_variance"
            )


def takes_one(serving: Serving) -> bool:
    """Whether a client of one test image can be served so."""
    return serving.variant == "server" or _takes_one(serving.options())


def _takes_one(options: Mapping[str, float | str]) -> bool:
    """Whether a batch of one image has the variance that these options ask for."""
    return options["variance"] == "total" and options["batch_variance"] == "biased"


@dataclass(frozen=True)
class Served:
    """How well a client outside the federation was served.

    Attributes:
        accuracy: fraction of its test images.
        loss: mean cross-entropy over its test images.
        batches: number of batches that came.
        options: every choice, for a manifest.
        notes: what a reader should know, such as a folded last batch.
    """

    accuracy: float
    loss: float
    batches: int
    options: Mapping[str, float | int | str | None]
    notes: tuple[str, ...]


def serve_external(
    model: nn.Module, state: FederationState, client: Client, serving: Serving, seed: int
) -> Served:
    """Serves a client outside a federation with its server's model, and measures that.

    The images of the client's test split come in an order that the seed and the client's name
    fix, the same for every variant, τ, n_t, policy and algorithm, so that results of one seed
    are paired. Device, dtype and memory layout are the model's.

    Args:
        model: the net of the federation; copied, its weights do not matter.
        state: the trained federation, such as `load_checkpoint(path)`.
        client: one that had no part in it.
        serving: how to serve it.
        seed: fixes the order of the images.

    Returns:
        Accuracy and loss over the whole test split.

    Raises:
        TypeError: an argument that is not a value of its class.
        ValueError: a client that was trained with, weights that do not fit the model, a model
            without batch norm (but for "server") or one that cannot take the images.
        DivergedError: a ValueError; training diverged, or what the model computes is not finite.
    """
    for value, kind, how in (
        (model, nn.Module, "build_model(name, seed)"),
        (state, FederationState, "load_checkpoint(path), or the state of a Run"),
        (client, Client, "Client(name, train, test)"),
        (serving, Serving, "Serving('adapted')"),
    ):
        if not isinstance(value, kind):
            raise TypeError(f"{value!r} is no {kind.__name__}: use {how}")
    if state.status == "diverged":
        raise DivergedError(f"the federation diverged in round {state.round}: it serves nobody")
    if client.name in state.p:
        raise ValueError(
            f"client '{client.name}' was trained with: serve one outside, or load "
            "state.weights(name) to serve it with its own batch norm"
        )
    net = _servers(model, state)
    arriving = stream(
        net,
        client.test,
        derive(seed, "external", client.name),
        batch_size=serving.batch_size or BATCH,
        order=serving.order,
        last=serving.last,
    )
    answers, notes = _answers(net, arriving, serving)
    loss, accuracy = _scores(answers, arriving.labels, client.test.classes)
    _check_finite(net, serving)
    return Served(accuracy, loss, len(arriving), {**asdict(serving), **serving.options()}, notes)


def _servers(model: nn.Module, state: FederationState) -> nn.Module:
    """A copy of the model with the server's weights, in the layout in which it was trained."""
    net = copy.deepcopy(model).eval()
    lacking = sorted(tensors(net).keys() - state.server.keys())
    if lacking:
        raise ValueError(
            f"the federation has no weights for '{lacking[0]}': build the model that was trained"
        )
    load(net, state.server)
    if channels_last(net):
        net = net.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    return net


def _answers(net: nn.Module, arriving: Stream, serving: Serving) -> tuple[Tensor, tuple[str, ...]]:
    """The model's answers in the order of arrival, and what to note."""
    options: dict[str, Any] = serving.options()
    if not options:
        return _plain(net, arriving), ()
    if arriving.sizes == (1,) and not _takes_one(options):
        raise ValueError(
            "the client has one test image, which has no variance at a dense layer: use variant "
            "'server', or 'total', biased"
        )
    adapted = adapt(net, arriving, **options)
    idle = tuple(f"no image comes to batch-norm layer '{name}'" for name in adapted.unreached)
    return adapted.predictions, arriving.notes + idle


def _check_finite(net: nn.Module, serving: Serving) -> None:
    """Refuses what finite answers hide: an infinite variance makes its layer answer zero."""
    parts = {name: weight for name, weight in net.named_parameters() if weight.requires_grad}
    if serving.variant == "server":  # `adapt` looks at its own statistics
        moving = [name for pair in variance_partners(net).items() for name in pair]
        parts |= take(tensors(net), moving)
    for name, part in parts.items():
        if not all_finite([part]):
            raise DivergedError(f"'{name}' of the server's model is not finite: it diverged")


@torch.inference_mode(False)
@torch.no_grad()
def _plain(net: nn.Module, batches: Stream) -> Tensor:
    """What the model answers with the statistics that it has."""
    answers = []
    for number, x in enumerate(batches):
        try:
            with repeatable(x.device):
                answer = net(x)
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, TypeError, IndexError) as error:
            raise ValueError(
                f"the model cannot take images of shape {tuple(x.shape[1:])}: {error}"
            ) from error
        answers.append(checked_answer(answer, len(x), number))
    return torch.cat(answers)


def _scores(answers: Tensor, labels: Tensor, classes: int) -> tuple[float, float]:
    """Mean cross-entropy, in float64, and accuracy."""
    if answers.ndim != 2 or answers.shape[1] < classes:
        raise ValueError(
            f"the model answers {tuple(answers.shape[1:])} to one image; the client's {classes} "
            f"classes need ({classes},)"
        )
    loss = functional.cross_entropy(answers.double(), labels).item()
    if not math.isfinite(loss):
        raise DivergedError(
            "the loss is not finite: the model diverged, or its dtype is too narrow"
        )
    return loss, (answers.argmax(1) == labels).double().mean().item()
