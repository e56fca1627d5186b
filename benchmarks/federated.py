"""Speed of a federated round, as ratios within one run: `python benchmarks/federated.py --help`.

CPU time of one thread, the least of several repeats taken in turn, so that a busy machine
disturbs all of them alike.

overhead      a round's training over the SGD steps it contains, done bare on one net
evaluation    a round's measurements over the forward passes they contain
conventional  a round as research scripts write it (a stand-in after the description of
              med-air/FedBN's in reference notes, none of its code): a net per client, default
              memory layout, a DataLoader that converts image by image, batches of 32 in
              evaluation too, every split measured once, no server model
"""

import argparse
import copy
import json
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from empirical import Client, Schedule, Split, build_algorithm, build_model, federate, run_tasks
from empirical.batches import steps
from empirical.bn_policy import CLIENT_SPECIFIC
from empirical.evaluate import BATCH


def clients(train: int, test: int) -> list[Client]:
    """Four clients of noise: speed does not depend on what the images show."""
    draws = torch.Generator().manual_seed(0)

    def split(n: int) -> Split:
        images = torch.randint(0, 256, (n, 3, 28, 28), generator=draws, dtype=torch.uint8)
        return Split(images, torch.randint(0, 10, (n,), generator=draws))

    return [Client(f"site {k}", split(train), split(test)) for k in range(4)]


def seconds(work: Callable[[], object]) -> float:
    """CPU time of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def ours(name: str, federation: list[Client]) -> tuple[float, float]:
    """CPU time of a round's training and of a round's measurements."""
    schedule = Schedule(rounds=3, measure_every=3)
    run = federate(
        build_algorithm("fedavg"), CLIENT_SPECIFIC, build_model(name, 0), federation, schedule
    )
    marks: dict[int, float] = {}
    for row in run:  # rounds 1 and 2 train only; round 3 trains and measures
        marks.setdefault(row.round, time.process_time())
    training = min(marks[1] - marks[0], marks[2] - marks[1])
    return training, marks[3] - marks[2] - training


def bare_steps(name: str, federation: list[Client]) -> float:
    """CPU time of the same SGD steps on one net, data ready."""
    net = build_model(name, 0).to(memory_format=torch.channels_last).train()  # type: ignore
    layout = torch.channels_last
    data = [
        (c.train.inputs().contiguous(memory_format=layout), c.train.labels, c.name)
        for c in federation
    ]
    weights = list(net.parameters())

    def work() -> None:
        for x, y, client in data:
            for (rows,) in steps(client, len(y), Schedule(1), 1):
                loss = functional.cross_entropy(net(x[rows]), y[rows])
                grads = torch.autograd.grad(loss, weights)
                with torch.no_grad():
                    torch._foreach_add_(weights, grads, alpha=-0.01)  # type: ignore

    return seconds(work)


def bare_forward(name: str, federation: list[Client]) -> float:
    """CPU time of the forward passes measured: train, test, and test by the server's model."""
    net = build_model(name, 0).to(memory_format=torch.channels_last).eval()  # type: ignore
    layout = torch.channels_last
    data = [
        split.inputs().contiguous(memory_format=layout)
        for c in federation
        for split in (c.train, c.test, c.test)
    ]

    @torch.inference_mode()
    def work() -> None:
        for x in data:
            for batch in x.split(BATCH):
                net(batch)

    return seconds(work)


class Images(Dataset):
    """Image by image, as transforms do it."""

    def __init__(self, split: Split) -> None:
        self.images = split.images.numpy()
        self.labels = split.labels.tolist()

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int) -> tuple[torch.Tensor, int]:
        image = torch.from_numpy(self.images[row]).to(torch.float32).div(255)
        return image.sub(0.5).div(0.5), self.labels[row]


def conventional(name: str, federation: list[Client]) -> float:
    """CPU time of a round of the conventional loop, training and evaluation."""
    server = build_model(name, 0)
    nets = [copy.deepcopy(server) for _ in federation]
    loaders = [
        (DataLoader(Images(c.train), 32, shuffle=True), DataLoader(Images(c.test), 32))
        for c in federation
    ]

    def step(net: nn.Module, loader: DataLoader) -> None:
        optimiser = torch.optim.SGD(net.parameters(), lr=0.01)
        net.train()
        for x, y in loader:
            optimiser.zero_grad()
            functional.cross_entropy(net(x), y).backward()
            optimiser.step()

    @torch.no_grad()
    def test(net: nn.Module, loader: DataLoader) -> None:
        net.eval()
        for x, y in loader:
            logits = net(x)
            functional.cross_entropy(logits, y).item()
            (logits.argmax(1) == y).sum().item()

    def work() -> None:
        for net, (train, _) in zip(nets, loaders, strict=True):
            step(net, train)
        with torch.no_grad():
            for key, value in server.state_dict().items():
                value.copy_(sum(net.state_dict()[key] / len(nets) for net in nets))
                for net in nets:
                    net.state_dict()[key].copy_(value)
        for net, (train, held_out) in zip(nets, loaders, strict=True):
            test(net, train)
            test(net, held_out)

    return seconds(work)


def toolkit(arguments: tuple[str, int, int], _: Callable[[float], None]) -> dict[str, float]:
    """Times of the toolkit and of the bare arithmetic, taken where the toolkit trains: a worker."""
    name, train, test = arguments
    federation = clients(train, test)
    training, evaluation = ours(name, federation)
    return {
        "training": training,
        "evaluation": evaluation,
        "bare steps": bare_steps(name, federation),
        "bare forward": bare_forward(name, federation),
    }


def main() -> None:
    """Prints the times and ratios as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default="compact_cnn")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--train", type=int, default=743)
    parser.add_argument("--test", type=int, default=1000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    size = (arguments.model, arguments.train, arguments.test)
    best: dict[str, float] = {}
    for _ in range(arguments.repeats):
        (found,) = (e.value for e in run_tasks(toolkit, {"round": size}, workers=1))
        found["conventional"] = conventional(arguments.model, clients(*size[1:]))
        best = {key: min(value, best.get(key, value)) for key, value in found.items()}
    # The conventional round measures no server model: leave its share out of ours.
    images = arguments.train + arguments.test
    alike = best["evaluation"] * images / (images + arguments.test)
    ratios = {
        "overhead of training": best["training"] / best["bare steps"] - 1,
        "overhead of evaluation": best["evaluation"] / best["bare forward"] - 1,
        "conventional / ours": best["conventional"] / (best["training"] + best["evaluation"]),
        "conventional / ours, same measurements": best["conventional"] / (best["training"] + alike),
    }
    print(json.dumps({"model": arguments.model, "seconds": best, "ratios": ratios}, indent=1))


if __name__ == "__main__":
    main()
