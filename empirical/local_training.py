"""A client's share of a round: local epochs of plain SGD, and single passes without one."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Int64
from torch import Tensor, nn
from torch.nn import functional

from empirical.algorithm import Algorithm, Backward, Local
from empirical.batches import batch_sizes, steps
from empirical.contrast import Contrast, with_representation
from empirical.schedule import Schedule
from empirical.seeds import forked, generator
from empirical.sites import Site
from empirical.weights import Role, Weights, label, load, take, tensors


class Trainer:
    """One network on one site: passes that fill `.grad`, and the loss they have seen.

    Attributes:
        net: the network.
        site: whose training images it sees.
        seen: images that went through `backward` so far.
    """

    def __init__(
        self, net: nn.Module, site: Site, algorithm: Algorithm, contrast: Contrast | None = None
    ) -> None:
        self.net, self.site, self._contrast = net, site, contrast
        self._feature_loss = algorithm.feature_loss
        self._total = torch.zeros((), dtype=torch.float64, device=site.train.labels.device)
        self.seen = 0

    def backward(self, rows: Int64[Tensor, " batch"]) -> Backward:
        """A pass over these rows that is made when it is called."""

        def make() -> None:
            place = rows.to(self.site.train.labels.device)
            inputs, labels = self.site.train.inputs[place], self.site.train.labels[place]
            self.net.zero_grad()
            loss, added = self._losses(inputs, labels, place)
            self._total += loss.detach() * len(rows)
            self.seen += len(rows)
            (loss if added is None else loss + added).backward()

        return make

    def _losses(
        self, inputs: Tensor, labels: Tensor, rows: Int64[Tensor, " batch"]
    ) -> tuple[Tensor, Tensor | None]:
        """Mean cross-entropy, and what the algorithm adds to it."""
        if self._contrast is None or self._feature_loss is None:
            return functional.cross_entropy(self.net(inputs), labels), None
        logits, z = with_representation(self.net, inputs)
        added = self._feature_loss(self._contrast.features(z, rows))
        return functional.cross_entropy(logits, labels), added

    def mean_loss(self) -> float:
        """Mean cross-entropy over the images seen, without what the algorithm adds."""
        return self._total.item() / self.seen


def train(
    trainer: Trainer, algorithm: Algorithm, local: Local, schedule: Schedule, round_: int
) -> float:
    """Local epochs with a fresh optimiser, in place; counts `local.steps`.

    Returns:
        The mean mini-batch cross-entropy over the images seen, without what the algorithm adds;
        not finite where training diverged.
    """
    net, site = trainer.net, trainer.site
    net.train()
    # On a CPU foreach saves a few per cent of a step of a small net, and costs a large one nothing.
    optimiser = torch.optim.SGD(net.parameters(), lr=local.lr, foreach=True)
    with forked(schedule.seed, "layers", site.name, round_, device=site.train.labels.device):
        images, each = len(site.train), algorithm.batches_a_step
        for step in steps(site.name, images, schedule, round_, each):
            algorithm.gradient(local, [trainer.backward(rows) for rows in step])
            algorithm.correct_gradient(local)
            optimiser.step()
            local.steps += 1
    return trainer.mean_loss()


def full_gradient(
    net: nn.Module, site: Site, names: Iterable[str], schedule: Schedule, round_: int
) -> Weights:
    """The gradient of the mean training loss over all the site's images, for these parameters.

    In training mode, in shuffled batches of the schedule's size (batch statistics are those of
    batches as trained on); running statistics, counters, `.grad` and random draws stay.
    """
    live = tensors(net)
    wanted = {name: live[name] for name in names if live[name].requires_grad}
    total = {name: torch.zeros_like(weight) for name, weight in wanted.items()}
    if not wanted:
        return total
    images, place = len(site.train), site.train.labels.device
    order = torch.randperm(
        images, generator=generator(schedule.seed, "full gradient", site.name, round_)
    )
    drawn = order.split(batch_sizes(images, schedule.batch_size))
    with undisturbed(net), forked(schedule.seed, "full gradient", site.name, round_, device=place):
        net.train()
        for rows in drawn:
            rows = rows.to(place)
            loss = functional.cross_entropy(net(site.train.inputs[rows]), site.train.labels[rows])
            found = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True)
            for name, gradient in zip(wanted, found, strict=True):
                if gradient is not None:
                    total[name].add_(gradient, alpha=len(rows) / images)
    return total


def adapt_before_measuring(
    net: nn.Module, site: Site, algorithm: Algorithm, schedule: Schedule, round_: int
) -> None:
    """Lets the algorithm change the client's model on one seeded training batch, if it does."""
    if algorithm.serve is None:
        return
    draws = generator(schedule.seed, "adaptation", site.name, round_)
    rows = torch.randperm(len(site.train), generator=draws)[: schedule.batch_size]
    place = site.train.labels.device
    with undisturbed(net), forked(schedule.seed, "adaptation", site.name, round_, device=place):
        net.train()
        backward = Trainer(net, site, algorithm).backward(rows)
        algorithm.serve(dict(net.named_parameters()), backward)


@contextmanager
def undisturbed(net: nn.Module) -> Iterator[None]:
    """Puts running statistics, counters and the mode back as they were, after one block."""
    moving = [n for n, role in label(net).items() if role in (Role.STATISTIC, Role.COUNTER)]
    before, training = take(tensors(net), moving), net.training
    try:
        yield
    finally:
        load(net, before)
        net.train(training)
