"""Which runs of a plan are still to be computed, in two waves, and which came from elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from figures._environment import environment
from figures.records import DamagedRun, MissingRun, RunStore, config_hash

CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True)
class Pending:
    """What of a plan is still to be computed.

    Attributes:
        waves: names of the runs: first those that need no other, then those that need one.
        again: those of them whose finished run, if there is one, is to give way.
        sentences: why runs that are there are computed again.
    """

    waves: tuple[tuple[str, ...], tuple[str, ...]]
    again: frozenset[str]
    sentences: tuple[str, ...] = ()


def needed(config: Mapping[str, Any]) -> str | None:
    """The name of the training run whose checkpoint a run starts from; None where it needs none."""
    training = config.get("training")
    return training and config_hash({**training, "version": config["version"]})


def pending(
    store: RunStore, configs: Mapping[str, Mapping[str, Any]], *, fresh: bool = False
) -> Pending:
    """Find what of a plan is missing.

    A run from a checkpoint is kept only where its training run is there. That run is computed
    again, and what starts from it too, where its checkpoint is missing or damaged.

    Args:
        store: where the runs are.
        configs: of the plan: name of the run -> its config.
        fresh: everything is to be computed again.
    """
    missing = {name for name in configs if fresh or not store.has(name)}
    again = set(configs) if fresh else set()
    sources = {name: source for name, config in configs.items() if (source := needed(config))}
    sentences = []
    for source in dict.fromkeys(sources[name] for name in configs if name in missing & {*sources}):
        if source in missing:
            continue
        try:
            store.file(source, CHECKPOINT)
        except (DamagedRun, MissingRun) as trouble:
            missing.add(source)
            again.add(source)
            what = getattr(trouble, "what", None) or str(trouble).rstrip(".")
            sentences.append(f"{what}: that training is computed again.")
    for name, source in sources.items():
        if source in missing:
            missing.add(name)
            again.add(name)
    order = [name for name in configs if name in missing]
    first, second = (tuple(n for n in order if (n in sources) is late) for late in (False, True))
    return Pending((first, second), frozenset(again), tuple(sentences))


def from_elsewhere(manifests: Mapping[str, Mapping[str, Any]]) -> int:
    """How many runs another version or commit, or another machine, computed."""
    now, parts = environment(), ("versions", "git", "platform")
    return sum(any(m.get(part) != now.get(part) for part in parts) for m in manifests.values())
