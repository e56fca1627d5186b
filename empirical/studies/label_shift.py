"""What test-time batch norm makes of a client outside whose classes are not those of the others."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from torch import nn

from empirical.checks import is_whole
from empirical.data.client import Client, Split
from empirical.external import adapt
from empirical.label_shift import largest_skewed, skewed
from empirical.seeds import derive
from empirical.state import FederationState
from empirical.stream import stream
from empirical.studies.networks import BATCH_SIZE, MOMENTUM, Networks, answers

Ratio = float | int
VARIANTS = ("adapted", "balanced", "server")

Add = Callable[[Iterable[dict[str, Any]]], object]
Report = Callable[[float], object]


def label_shift_study(
    config: Mapping[str, Any],
    clients: Iterable[Client],
    state: FederationState,
    add: Add,
    report: Report,
) -> tuple[str, ...]:
    """Serves the client that a training left out from streams whose classes are ever more skewed.

    For every ratio of the commonest to the rarest class, images are drawn from its test split
    (`skewed`), all ratios the same number, and classified by three networks that differ in their
    batch-norm statistics alone: "adapted", Eqs. (3), (4) over the skewed stream itself;
    "balanced", the same over as many images, of all classes alike, of its training split, which
    nobody trained on; "server", the server's. Statistics are those after the whole stream, for
    every image, so that at ratio 1 the first two have no more than chance between them. Accuracy
    is the mean over draws, each with its own order of the classes.

    Args:
        config: of the run: "training" (the config of that run), "held_out", "ratios", "draws".
        clients: the whole federation.
        state: that the training left; not diverged.
        add: takes the rows: metric "accuracy", client, split, variant, parameter (ratio), samples
            (images scored in a draw), value, note.
        report: takes the fraction done.

    Returns:
        What a reader should know, such as ratios left out because images are too few.

    Raises:
        ValueError: what the config names is not there or does not fit the state; no draw, or a
            ratio below 1; a client whose images allow none of the ratios.
        DivergedError: a ValueError; what the model computes is not finite.
    """
    nets, seeds = Networks(config, clients, state), draw_seeds(config)
    ratios, size = possible_ratios(nets.unseen, config["ratios"], seeds)
    drawn = []
    for done, seed in enumerate(seeds, start=1):
        drawn.append(_accuracies(nets, ratios, seed, size))
        report(done / len(seeds))
    add(
        {
            "metric": "accuracy",
            "client": nets.unseen.name,
            "split": "test",
            "variant": variant,
            "parameter": float(ratio),
            "samples": size,
            "value": sum(found[ratio, variant] for found in drawn) / len(seeds),
            "note": f"mean of {len(seeds)} draw{'s' * (len(seeds) > 1)}",
        }
        for ratio in ratios
        for variant in VARIANTS
    )
    whole = len(nets.unseen.test)
    notes = [f"label shift is drawn with {size} of the {whole} test images at every ratio"]
    if len(ratios) < len(config["ratios"]):
        left = ", ".join(f"{ratio:g}" for ratio in config["ratios"] if ratio not in ratios)
        notes.append(f"too few images of '{nets.unseen.name}' for classes skewed by {left}")
    return tuple(notes)


def draw_seeds(config: Mapping[str, Any]) -> list[int]:
    """A seed for each draw of a run.

    Raises:
        ValueError: a number of draws that is not positive.
    """
    draws = config["draws"]
    if not (is_whole(draws) and draws >= 1):
        raise ValueError(f"draws must be a whole number of at least 1, got {draws!r}")
    base = derive(config["training"]["schedule"]["seed"], "label_shift", config["held_out"])
    return [derive(base, "draw", draw) for draw in range(draws)]


def possible_ratios(
    client: Client, ratios: Sequence[Ratio], seeds: Sequence[int]
) -> tuple[list[Ratio], int]:
    """The ratios for which there are images, and how many every draw of them allows.

    Raises:
        ValueError: none; or a split of one class.
    """
    for kind, split in (("test", client.test), ("training", client.train)):
        if len(split.labels.unique()) < 2:
            raise ValueError(
                f"client '{client.name}' has {kind} images of one class alone, whose share cannot "
                "be skewed: give images of two or more classes, or leave it out"
            )
    left = sorted(ratios)
    while left:
        sizes = [largest_skewed(client.test, ratio, seed) for ratio in left for seed in seeds]
        size = min(*sizes, *(largest_skewed(client.train, 1, seed) for seed in seeds))
        if size >= 2 and all(
            _leaves_all(client, ratio, seed, size) for ratio in left for seed in seeds
        ):
            return left, size
        left.pop()
    raise ValueError(
        f"client '{client.name}' has too few images of each class to skew them by any of the "
        f"{len(ratios)} ratios: give more images, or ratios from 1"
    )


def _leaves_all(client: Client, ratio: Ratio, seed: int, size: int) -> bool:
    """Whether so many images hold one of the rarest class, in both splits."""
    try:
        skewed(client.test, ratio, seed, size)
        skewed(client.train, 1, seed, size)
    except ValueError:
        return False
    return True


def _accuracies(
    nets: Networks, ratios: Sequence[Ratio], seed: int, size: int
) -> dict[tuple[Ratio, str], float]:
    """(ratio, variant) -> accuracy on one draw."""
    balanced = _moved(nets, skewed(nets.unseen.train, 1, seed, size), seed)
    found = {}
    for ratio in ratios:
        served = skewed(nets.unseen.test, ratio, seed, size)
        ways = (_moved(nets, served, seed), balanced, nets.server())
        images, labels = nets.inputs(served), served.labels.to(nets.device)
        for variant, net in zip(VARIANTS, ways, strict=True):
            right = answers(net, images).argmax(1) == labels
            found[ratio, variant] = right.double().mean().item()
    return found


def _moved(nets: Networks, source: Split, seed: int) -> nn.Module:
    """The server's net with the statistics of these images after their stream."""
    arriving = stream(nets.server(), source, seed, batch_size=BATCH_SIZE)
    return adapt(nets.server(), arriving, MOMENTUM).model
