"""Studies of the theory: each is a generator of records from a config and points."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from theory.crosscheck import installed
from theory.studies.corollary import Generators, Points, Progress, corollary, spectrum
from theory.studies.counterexamples import counterexamples
from theory.studies.drift import drift
from theory.studies.dynamics import dynamics
from theory.studies.exact import exact
from theory.studies.gaussian_bounds import gaussian_bounds
from theory.studies.graphs import graphs
from theory.studies.layers import divergence_rows
from theory.studies.local_steps import local_steps
from theory.studies.plans import causal_plan, generalization_plan
from theory.studies.points import principal
from theory.studies.readings import readings
from theory.studies.regime import regime
from theory.studies.sizes import Described, describe, own_comparisons, own_sample, possible_draws
from theory.studies.structural import structural, structural_data
from theory.studies.study import Study
from theory.studies.witness import witness

__all__ = [
    "ALPHAS",
    "DIMENSION",
    "STUDIES",
    "Described",
    "Study",
    "causal_plan",
    "convergence_plan",
    "describe",
    "divergence_rows",
    "generalization_plan",
    "principal",
    "structural_data",
]

STUDIES: dict[
    str,
    Callable[[Mapping[str, Any], Points | None, Generators, Progress], Iterator[dict[str, Any]]],
] = {
    "corollary": corollary,
    "spectrum": spectrum,
    "regime": regime,
    "dynamics": dynamics,
    "drift": drift,
    "local_steps": local_steps,
    "witness": witness,
    "counterexamples": counterexamples,
    "readings": readings,
    "exact": exact,
    "gaussian_bounds": gaussian_bounds,
    "graphs": graphs,
    "structural": structural,
}

DIMENSION = 20
"""Dimension of Gaussian clients, and of real images where the decay of f is to be seen."""

ALPHAS = (0.5, 2.0, 10.0, 20.0)
"""Scales of the initialisation at which f and f* are trained."""


READING_ALPHAS = (0.5, 2.0, 10.0, 50.0)
"""Scales of the initialisation at which the reading of the full kernel is tried."""


def convergence_plan(preset: str, data: str, given: Described | None = None) -> list[Study]:
    """List the studies of the section `convergence`, on Gaussian clients and on `data`.

    Args:
        preset: quick, default or paper.
        data: a federation, or the source of a user's points.
        given: a user's points as `describe` describes them, which set the sizes.

    Raises:
        KeyError: an unknown preset.
    """
    quick = {"quick": True, "default": False, "paper": False}[preset]
    gaussian_sizes = [(2, 16), (4, 16), (8, 16), (4, 4), (4, 32)]
    real_sizes = [(2, 50), (3, 50), (4, 50), (4, 10), (4, 25)]
    if not quick:
        gaussian_sizes += [(16, 16), (4, 8), (4, 64)]
        real_sizes += [(4, 100), (4, 200)]
    common = {"seed": 0, "dimension": DIMENSION}
    draws = {"draws": 20, **common}
    compared = ((data, real_sizes, 5.0), ("gaussian", gaussian_sizes, 3.0))
    plan = [
        Study(
            f"corollary III.6, {source}",
            {"study": "corollary", "data": source, "sizes": sizes, **draws},
            seconds,
        )
        for source, sizes, seconds in compared[given is not None :]
    ]
    if given is None:
        config = {"study": "spectrum", "data": data, "seed": 0}
        plan.append(Study("spectra, all points", config, 10.0))
    else:
        plan[:0] = [Study(*study) for study in own_comparisons(given, quick)]
    config = {"study": "counterexamples", "data": "gaussian", "samples": 8, "draws": 20, **common}
    plan.append(Study("where the corollary stops", config, 1.0))
    if installed() and not quick:
        config = {"study": "witness", "data": "gaussian", "clients": 4, "samples": 50, **common}
        plan.append(Study("cross-check with neural-tangents", config, 8.0))
    if given is None or given.dimension:
        plan += _exact(data, quick, given)
    for source in ("gaussian", data):
        small, different = {"clients": 4, "samples": 8, **common}, 20
        if given is not None and source == data:
            if not given.dimension:
                continue
            small |= own_sample(given)
            different = possible_draws(given.counts, small["clients"], small["samples"])
        plan += _small_studies(source, quick, small, different)
        plan += _readings(source, quick, small, given)
        if not quick or source == data:  # under a minute in all
            plan += _beyond(source, quick, small)
    return plan


def _small_studies(
    source: str, quick: bool, common: dict[str, Any], draws: int = 20
) -> list[Study]:
    """List what runs on few points in few dimensions: the regimes, and f and f* themselves."""
    alphas = sorted({*ALPHAS, *(round(10 ** (k / 8), 6) for k in range(-6, 15))})
    config = {"study": "regime", "data": source, "draws": draws, "alphas": alphas, **common}
    plan = [Study(f"regimes of α, {source}", config, 2.0)]
    for draw in range(1 if quick else 3):
        for width in (512, 4096) if quick else (512, 2048, 8192):
            for alpha in ALPHAS:
                config = {"study": "dynamics", "data": source, "draw": draw, "alpha": alpha}
                config |= {"width": width, "steps": 200 if quick else 500, **common}
                label = f"f and f*, {source}, α = {alpha:g}, m = {width}, draw {draw}"
                plan.append(Study(label, config, 0.2 + width / 4096))
    return plan


def _readings(
    source: str, quick: bool, common: dict[str, Any], given: Described | None
) -> list[Study]:
    """List which readings of the corollary to try: on larger draws, for none is whitened."""
    samples, pool, draws = 50 if quick else 100, 100, 5 if quick else 10
    if given is not None and source == given.source:
        samples, pool = min(samples, min(given.counts)), min(pool, min(given.counts))
        draws = min(draws, possible_draws(given.counts, common["clients"], samples))
    config = {"study": "readings", "data": source, "alphas": list(READING_ALPHAS), **common}
    isotropic = {"covariances": "isotropic", "samples": samples, "draws": draws}
    n = common["clients"] * samples
    label = f"readings, {source}, S_i = λ_i I"
    plan = [Study(label, {**config, **isotropic}, 0.2 + draws * 1.5e-6 * n**2)]
    if not quick:
        own = {"covariances": "own", "samples": max(2, pool // 2), "pool": pool, "draws": draws}
        plan.append(Study(f"readings, {source}, S_i", {**config, **own}, 6.0))
    return plan


def _exact(data: str, quick: bool, given: Described | None) -> list[Study]:
    """List what the exact kernel of BN says, over the dimension kept and the ridge."""
    kept, ridges, clients, samples = [20, 60, 200], [0.0, 1e-3, 1e-2, 1e-1], 4, 25
    dimension = DIMENSION
    if quick:
        kept, ridges = [20], [0.0, 1e-3, 1e-1]
    if given is not None:
        most = min(given.features, sum(given.counts) - 1)
        kept, dimension = sorted({min(k, most) for k in kept}), min(dimension, given.features)
        clients, samples = min(clients, len(given.counts)), min(samples, min(given.counts))
    config = {"study": "exact", "data": data, "kept": kept, "ridges": ridges, "seed": 0}
    config |= {"clients": clients, "samples": samples, "dimension": dimension}
    seconds = 1.0 if quick else 14.0
    return [Study(f"the exact kernel of BN, {data}", config, seconds)]


def _beyond(source: str, quick: bool, common: dict[str, Any]) -> list[Study]:
    """List what looks behind and beyond the theorem: drift of the kernels, E > 1, sampled clients.

    The drift's widths lie a factor of at least two apart, so that a slope over them is well known.
    """
    plan = []
    alphas = (10.0,) if quick else (2.0, 10.0)
    for alpha in alphas:
        for width in (256, 1024, 4096) if quick else (256, 512, 1024, 2048, 4096, 8192):
            config = {"study": "drift", "data": source, "alpha": alpha, "width": width}
            config |= {"draws": 3 if quick else 8, "starts": 24}
            config |= {"steps": 60 if quick else 100, **common}
            label = f"drift of the kernels, {source}, α = {alpha:g}, m = {width}"
            plan.append(Study(label, config, 0.1 + width / (9000 if quick else 3000)))
        for draw in range(1 if quick else 3):
            config = {"study": "local_steps", "data": source, "alpha": alpha, "draw": draw}
            # Half of one client is that client.
            fractions = [1.0, 0.5] if common["clients"] > 1 else [1.0]
            config |= {"local_steps": [1, 2, 4, 8], "fractions": fractions}
            config |= {"width": 512 if quick else 1024, "rounds": 60 if quick else 80, **common}
            label = f"local steps, {source}, α = {alpha:g}, draw {draw}"
            plan.append(Study(label, config, 1.1 if quick else 2.3))
    return plan
