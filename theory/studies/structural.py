"""The structural model: the risk of each answer on the unseen domain, and data to train on."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy.special import betaincinv

from theory.scenarios import SCENARIOS, structural_model
from theory.structural import StructuralModel, structural_sample
from theory.structural_answers import ANSWERS, structural_answer
from theory.structural_risk import simulated_errors, structural_risk
from theory.studies.corollary import Generators, Points, Progress
from theory.studies.rows import row

STRENGTHS: dict[str, tuple[float, ...]] = {
    "shift": (0.0, 0.5, 1.0, 2.0, 3.0, 4.0),
    "label shift": (0.0, 0.1, 0.2, 0.3, 0.4, 0.45),
    "confounded": (0.0, 0.25, 0.5, 1.0, 1.5, 2.0),
    "feature scales": (0.0, 0.2, 0.4, 0.6, 0.8),
}
"""Strengths at which the risks are computed, which hold those that networks are trained at."""

BATCH_SIZES = (2, 4, 8, 32, 128)

_PER_BATCH = 2**18  # points drawn for one risk with estimated statistics, at most


def structural(
    config: Mapping[str, Any], data: Points | None, generators: Generators, progress: Progress
) -> Iterator[dict[str, Any]]:
    """Record the risk of every answer, exactly and by simulation, over the strengths.

    Rows "risk" hold the exact value and its numerical error as the interval, "risk_simulated" the
    fraction of wrong answers with its 95 % Clopper-Pearson interval. `split` is the scenario,
    `variant` the answer, `parameter` the strength, `samples` n_t where statistics are estimated.

    Args:
        config: `scenario`, `strengths`, `batch_sizes`, `simulations` (points per risk; fewer with
            large batches), `clients`, `separation`, `seed`.
        data: nothing.
        generators: gives a generator for (seed, purpose...).
        progress: told the fraction done.
    """
    del data
    scenario, strengths = config["scenario"], config["strengths"]
    for done, strength in enumerate(strengths, start=1):
        model = structural_model(scenario, strength, config["clients"], config["separation"])
        ways = [(answer, None) for answer in ANSWERS]
        ways += [("do_s", n) for n in config["batch_sizes"]]
        for answer, n in ways:
            at = {"variant": answer, "split": scenario, "parameter": strength, "samples": n}
            risk = structural_risk(model, answer, n)
            ends = {"lower": risk.lower, "upper": risk.upper}
            yield row("risk", risk.value, **ends, note=risk.route, **at)
            count = config["simulations"]
            if n is not None:
                count = max(1, min(count, _PER_BATCH // n))
            purpose = "structural", scenario, repr(float(strength)), answer, n or 0
            wrong = simulated_errors(model, answer, count, generators(config["seed"], *purpose), n)
            lower, upper = _interval(wrong, count)
            note = f"{count} points"
            yield row("risk_simulated", wrong / count, lower=lower, upper=upper, note=note, **at)
        progress(done / len(strengths))


def _interval(wrong: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Clopper-Pearson."""
    tail = (1 - level) / 2
    lower = 0.0 if wrong == 0 else float(betaincinv(wrong, n - wrong + 1, tail))
    upper = 1.0 if wrong == n else float(betaincinv(wrong + 1, n - wrong, 1 - tail))
    return lower, upper


def structural_data(config: Mapping[str, Any], generators: Generators) -> dict[str, Any]:
    """Draws what a federation is trained and served on, with the answers at the served points.

    Noise and the uniform variables behind the labels depend on seed and domain alone: scenarios,
    strengths and policies of one seed are compared on the same draws.

    Args:
        config: `scenario`, `strength`, `clients`, `separation`, `samples` (of each training
            domain), `outside` (points of the unseen domain), `seed`.
        generators: gives a generator for (seed, purpose...).

    Returns:
        "train": client -> (x (n, 3), y (n,)); "unseen": (x, y); "answers": answer -> P(Y = 1),
        (n,), at the unseen points.
    """
    model = structural_model(
        config["scenario"], config["strength"], config["clients"], config["separation"]
    )

    def drawn(domain: Any, name: str, n: int) -> tuple[np.ndarray, np.ndarray]:
        generator = generators(config["seed"], "structural data", name)
        return structural_sample(domain, model.content, n, generator)

    train = {
        name: drawn(domain, name, config["samples"])
        for name, domain in zip(_names(model), model.domains, strict=True)
    }
    x, y = drawn(model.unseen, "unseen", config["outside"])
    answers = {answer: structural_answer(model, answer, x) for answer in ANSWERS}
    return {"train": train, "unseen": (x, y), "answers": answers}


def _names(model: StructuralModel) -> list[str]:
    return [f"domain {k + 1}" for k in range(len(model.domains))]


def structural_studies(quick: bool) -> list[tuple[str, dict[str, Any], float]]:
    """List label, config and seconds of the studies of the structural model."""
    plan = []
    for scenario in SCENARIOS:
        strengths = STRENGTHS[scenario]
        if quick:
            strengths = (strengths[0], strengths[len(strengths) // 2], strengths[-1])
        config = {
            "study": "structural",
            "data": "gaussian",
            "scenario": scenario,
            "strengths": list(strengths),
            "batch_sizes": list(BATCH_SIZES),
            "simulations": 20_000 if quick else 200_000,
            "clients": 4,
            "separation": 1.5,
            "seed": 0,
        }
        seconds = len(strengths) * (0.3 if quick else 0.8)
        plan.append((f"structural model, {scenario}", config, seconds))
    return plan
