"""A small network, trained and served by the real pipeline on draws of a structural model."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64, UInt8
from torch import Tensor, nn

from empirical.algorithms import build_algorithm
from empirical.bn_policy import AGGREGATED, BN_POLICIES
from empirical.data.client import Client, Split
from empirical.external import adapt
from empirical.federate import federate
from empirical.registry import find
from empirical.schedule import Schedule
from empirical.seeds import derive, forked
from empirical.state import FederationState
from empirical.stream import stream
from empirical.studies.experiments import Add, Report
from empirical.studies.study import Setting, Study
from empirical.weights import load

LIMIT = 16.0
"""Features beyond −16 … 16 are clipped to it; within, 256 levels lie 32/255 = 0.125 apart."""

STRENGTHS: dict[str, tuple[float, ...]] = {
    "shift": (0.0, 1.0, 2.0, 4.0),
    "label shift": (0.0, 0.2, 0.4, 0.45),
    "confounded": (0.0, 0.5, 1.0, 2.0),
    "feature scales": (0.0, 0.2, 0.4, 0.8),
}
BATCH_SIZES = (2, 4, 8, 32, 128)

_POLICIES = ("aggregated", "client_specific")
_SERVED = 1024  # points at once with the server's statistics


def as_pixels(x: object) -> UInt8[Tensor, "n 3 1 1"]:
    """Points as images of one pixel: level = round(255 (x + 16)/32), clipped to 0 … 255.

    `Split.inputs` gives a network x/16, off by at most 1/255 (in x: by at most 16/255 = 0.063, with
    a standard deviation of 0.036) within the range.

    Raises:
        ValueError: x is no finite float64 array (n, 3) with n ≥ 1.
    """
    if not (isinstance(x, np.ndarray) and x.dtype == np.float64 and x.ndim == 2):
        raise ValueError("points must be a float64 array of shape (n, 3): convert them")
    if x.shape[1] != 3 or not len(x) or not np.isfinite(x).all():
        raise ValueError(f"points must be finite and of shape (n, 3), n ≥ 1, not {x.shape}")
    levels = np.rint(255 * (np.clip(x, -LIMIT, LIMIT) + LIMIT) / (2 * LIMIT))
    return torch.from_numpy(levels.astype(np.uint8)[:, :, None, None].copy())


def pixel_net(hidden: int, seed: int) -> nn.Sequential:
    """Linear(3, hidden), batch norm, ReLU, Linear(hidden, 2) on images of one pixel."""
    with forked(seed, "model", "pixel_net"):
        return nn.Sequential(
            nn.Flatten(),
            nn.Linear(3, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, 2),
        )


def structural_study(
    config: Mapping[str, Any], data: Mapping[str, Any], add: Add, report: Report
) -> FederationState:
    """Trains a network on the model's training domains and serves it to the unseen one.

    FedAvg with the config's batch-norm policy. Then every point of the unseen domain is answered:
    after "aggregated" training with the server's statistics, after "client_specific" training with
    those of Eqs. (3), (4) at τ = `momentum`, for each n_t, and at τ = 0, where each batch has its
    own, as do(S) with n_t points in theory.

    Args:
        config: `scenario`, `strength`, `bn_policy`, `rounds`, `local_epochs`, `batch_size`, `lr`,
            `hidden`, `batch_sizes` (the n_t), `momentum`, `seed`.
        data: "train": client -> (x (n, 3), y (n,)); "unseen": (x, y); "answers": name ->
            P(Y = 1 | x), (n,), at the unseen points.
        add: takes the rows: metric "risk" (0-1 error), "distance" (mean |p_net − p_answer|, `note`
            names the answer), and for τ = 0 "batch_risk", "batch_distance"; split is the scenario,
            variant the policy, parameter the strength, samples n_t (None: the server's statistics).
        report: takes the fraction done.

    Returns:
        The state after the last round; where training diverged there are no rows.

    Raises:
        ValueError: a value out of its range, points or labels that do not fit together.
    """
    policy = find(BN_POLICIES, config["bn_policy"], "batch-norm policy")
    members = [_client(name, *given) for name, given in data["train"].items()]
    outside = _client("unseen", *data["unseen"])
    names = ("rounds", "local_epochs", "batch_size", "lr", "seed")
    schedule = Schedule(**{n: config[n] for n in names}, measure_every=config["rounds"])
    net = pixel_net(config["hidden"], schedule.seed)
    run = federate(build_algorithm("fedavg"), policy, net, members, schedule)
    for measured in run:
        report(0.5 * measured.round / schedule.rounds)
    if run.state.status == "diverged":
        return run.state
    load(net, run.state.server)
    ways = [("", None, 0.0)]
    if policy is not AGGREGATED:
        sizes = config["batch_sizes"]
        ways = [(p, n, t) for p, t in (("", config["momentum"]), ("batch_", 0.0)) for n in sizes]
    for done, (prefix, n, momentum) in enumerate(ways, start=1):
        p = _answers(net.eval(), outside.test, schedule.seed, n, momentum)
        add(_rows(config, prefix, n, p, data))
        report(0.5 + 0.5 * done / len(ways))
    return run.state


def _client(name: str, x: object, y: object) -> Client:
    """A client whose points are its training and its test split: only unseen ones are recorded."""
    if not (isinstance(y, np.ndarray) and y.dtype.kind in "iu"):
        raise ValueError(f"the labels of '{name}' must be an array of integers in 0, 1")
    split = Split(as_pixels(x), torch.from_numpy(y.astype(np.int64)), 2)
    return Client(name, split, split)


def _answers(
    net: nn.Module, split: Split, seed: int, n: int | None, momentum: float
) -> Float64[np.ndarray, " n"]:
    """P(Y = 1) of a net at the points, in their order; n None keeps its statistics."""
    arriving = stream(net, split, derive(seed, "external", "unseen"), batch_size=n or _SERVED)
    if n is None:
        with torch.inference_mode():
            logits = torch.cat([net(batch) for batch in arriving])
    else:
        logits = adapt(net, arriving, momentum).predictions
    return arriving.restore(logits).double().softmax(1)[:, 1].numpy()


def _rows(
    config: Mapping[str, Any], prefix: str, n: int | None, p: np.ndarray, data: Mapping[str, Any]
) -> list[dict[str, Any]]:
    at = {"variant": config["bn_policy"], "split": config["scenario"], "samples": n}
    at |= {"parameter": config["strength"]}
    wrong = float(np.mean((p > 0.5) != data["unseen"][1]))
    rows = [{"metric": f"{prefix}risk", "value": wrong, **at}]
    for name, answer in data["answers"].items():
        apart = float(np.mean(np.abs(p - answer)))
        rows.append({"metric": f"{prefix}distance", "value": apart, "note": name, **at})
    return rows


def structural_trainings(setting: Setting) -> list[Study]:
    """The trainings on the structural model: scenarios, strengths, both policies, seeds.

    Args:
        setting: its preset says how many, its seeds how often; the federation does not matter.
    """
    quick = setting.preset == "quick"
    seeds = {"quick": 3, "default": 3, "paper": 10}[setting.preset]
    plan = []
    for scenario, strengths in STRENGTHS.items():
        for strength in (strengths[0], strengths[-1]) if quick else strengths:
            for policy in _POLICIES:
                for seed in range(setting.seeds or seeds):
                    config = structural_training(scenario, strength, policy, seed, quick=quick)
                    words = f"{scenario} {strength:g}, {policy.replace('_', '-')} BN, seed {seed}"
                    seconds = _seconds(config)
                    plan.append(Study(f"structural model, {words}", config, seconds))
    return plan


def structural_training(
    scenario: str, strength: float, policy: str, seed: int, *, quick: bool = False
) -> dict[str, Any]:
    """The config of one training on the structural model."""
    return {
        "study": "structural_training",
        "data": "gaussian",
        "scenario": scenario,
        "strength": strength,
        "bn_policy": policy,
        "clients": 4,
        "separation": 1.5,
        "samples": 500,
        "outside": 1000 if quick else 2000,
        "hidden": 16,
        "rounds": 15 if quick else 30,
        "local_epochs": 1,
        "batch_size": 32,
        "lr": 0.1,
        "batch_sizes": [8, 32] if quick else list(BATCH_SIZES),
        "momentum": 0.9,
        "seed": seed,
    }


def _seconds(config: Mapping[str, Any]) -> float:
    steps = config["clients"] * config["rounds"] * config["samples"] / config["batch_size"]
    batches = 0.0
    if config["bn_policy"] != "aggregated":
        batches = 2 * config["outside"] * sum(1 / n for n in config["batch_sizes"])
    return 4e-4 * (steps + batches)
