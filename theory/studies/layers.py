"""Divergence of a trained federation's features, layer by layer, and the terms of its bounds.

The networks stay outside: this study gets arrays by name (see `divergence_rows`).
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from theory.estimates import Estimate
from theory.hypothesis_pairs import pair_divergence
from theory.proxy import proxy_a_distance
from theory.studies.corollary import Generators, Progress
from theory.studies.rows import row
from theory.studies.terms import Layer, bound_rows, risk_rows, share

Rows = Iterator[dict[str, Any]]
Array = np.ndarray

MIXTURE = "mixture"
"""The seen clients pooled, where a row names a client."""

NORMALISED = ("per_unit", "whitened")
"""By the diagonal of a client's covariance, by all of it."""

SEARCH: dict[str, Any] = {"width": 16, "starts": 1, "steps": 100}
"""Of the search over pairs of networks; about half as long as its defaults."""

_FLOOR_DRAWS, _PAIR_FLOOR_DRAWS = 6, 3


def divergence_rows(
    config: Mapping[str, Any], data: Mapping[str, Any], generators: Generators, progress: Progress
) -> Rows:
    """Estimate the divergence between seen and unseen clients at every layer, and the bounds.

    Of one training run. All estimates split the images alike, so that variants, layers and
    numbers of test batches are compared on the same held-out images. "divergence_floor" is what
    the proxy A-distance finds, at the last layer, between two samples of one and the same Gaussian
    law, as many points as the clients have, each whitened, or scaled per unit, by as many other
    draws: what is left when nothing but the estimation of means and covariances divides them.
    "pair_divergence_floor" is the same of the search for d_HΔH. "divergence_after" holds each seen
    client, normalised by the statistics that serve it or per unit by those of its training images,
    against the same features of the unseen one.

    Args:
        config: "held_out"; "capacity" of the domain classifier; "delta"; "pairs", whether d_HΔH is
            searched for at the last layer (and at the input, in aggregated runs alone, since
            inputs know no policy); "training", with the seed in its "schedule".
        data: "seen", "unseen": names; "weights": ω of the seen ones; "features": layer -> variant
            -> client -> (n, d); "after": t -> (m, d) of the unseen client; "probabilities": seen
            client -> (N, n, classes) of every local model at its training images, as functions of
            their features; "on_inputs": the same, as functions of the images; "external": (N, n,
            classes), of features, and "served": variant -> (n, classes), at the unseen client's
            test images; "train_labels", "test_labels": client -> (n,); "architecture": layers for
            `vc_dimension`; "whitened_by": client -> number of images that whiten it.
        generators: gives a generator for (seed, purpose...).
        progress: told the fraction done.

    Returns:
        Records of the metrics "divergence", "divergence_lower", "divergence_floor",
        "divergence_after", "pair_divergence", "pair_divergence_floor", "cross_risk",
        "cross_error", "mixture_risk" and these three "…_on_inputs", "external_risk",
        "external_error", "term", "kind".

    Raises:
        TypeError, ValueError: features as `proxy_a_distance` refuses them, such as too few images.
    """
    seed = config["training"]["schedule"]["seed"]
    draws = generators(seed, "divergence", data["unseen"])
    study = _Study(config, data, int(draws.integers(2**31)))
    layers = list(data["features"])
    for done, layer in enumerate(layers, start=1):
        for variant in data["features"][layer]:
            yield from study.proxies(layer, variant)
        progress(done / (len(layers) + 4))
    yield from study.after(layers[-1])
    yield from study.floor(layers[-1], draws)
    progress((len(layers) + 1) / (len(layers) + 4))
    pairs: dict[str, list[Estimate]] = {}
    if config["pairs"]:
        for layer, variant in study.searched(layers):
            yield from study.pairs(layer, variant, pairs)
        yield from study.pair_floor(layers[-1], draws)
    progress((len(layers) + 3) / (len(layers) + 4))
    yield from risk_rows(data, config["delta"])
    for variant in study.bounded(layers[-1]):
        last = Layer(variant, data["features"][layers[-1]][variant], pairs.get(variant), study.seed)
        yield from bound_rows(config, data, last)
    progress(1.0)


@dataclass(frozen=True)
class _Study:
    """What all estimates of one run share."""

    config: Mapping[str, Any]
    data: Mapping[str, Any]
    seed: int

    def proxies(self, layer: str, variant: str) -> Rows:
        """Proxy A-distance of each seen client, and of their mixture, to the unseen one."""
        clients = self.data["features"][layer][variant]
        for name, features in self._seen(clients):
            found = self._proxy(features, clients[self.data["unseen"]])
            where = {"client": name, "split": layer, "variant": variant}
            yield _row("divergence", found, **where)
            low = {"samples": min(found.n), "parameter": found.p_value}
            yield row("divergence_lower", found.lower, **where, **low)

    def after(self, layer: str) -> Rows:
        """Of each seen client, once t test batches have moved the unseen one's statistics."""
        for variant in ("client_specific", "per_unit") if self.data["after"] else ():
            clients = self.data["features"][layer][variant]
            for name in self.data["seen"]:
                for t, unseen in self.data["after"].items():
                    found = self._proxy(clients[name], unseen)
                    where = {"client": name, "split": layer, "variant": variant}
                    yield _row("divergence_after", found, **where) | {"samples": t}

    def floor(self, layer: str, rng: np.random.Generator) -> Rows:
        """What a classifier finds between normalised samples of one Gaussian law."""
        kind = self.config["capacity"]
        measure = functools.partial(proxy_a_distance, capacity=kind, seed=self.seed)
        yield from self._floors("divergence_floor", layer, rng, (_FLOOR_DRAWS, measure))

    def pair_floor(self, layer: str, rng: np.random.Generator) -> Rows:
        """What the search over pairs finds between them."""
        measure = functools.partial(pair_divergence, seed=self.seed, **SEARCH)
        yield from self._floors("pair_divergence_floor", layer, rng, (_PAIR_FLOOR_DRAWS, measure))

    def _floors(
        self,
        metric: str,
        layer: str,
        rng: np.random.Generator,
        how: tuple[int, Callable[[Array, Array], Estimate]],
    ) -> Rows:
        """Both normalisations of the same draws; clients of equal sizes share theirs."""
        by, at = self.data["whitened_by"], self.data["features"][layer]
        unseen, known = self.data["unseen"], {}
        for name in self.data["seen"] if by else ():
            shapes = at["whitened"][name].shape, at["whitened"][unseen].shape
            sizes = shapes, (by[name], by[unseen])
            if sizes not in known:
                known[sizes] = [_equal_laws(rng, *sizes, how[1]) for _ in range(how[0])]
            for variant in NORMALISED:
                values = [found[variant] for found in known[sizes]]
                where = {"client": name, "split": layer, "variant": variant}
                yield _floor_row(metric, values, sizes[1], **where)

    def searched(self, layers: list[str]) -> list[tuple[str, str]]:
        """Where d_HΔH is searched for."""
        last = [(layers[-1], variant) for variant in self.bounded(layers[-1])]
        return [("input", "raw"), *last] if last[0][1] == "aggregated" else last

    def bounded(self, layer: str) -> list[str]:
        """The variants that the bounds are computed with."""
        return [v for v in self.data["features"][layer] if v != "affine"]

    def pairs(self, layer: str, variant: str, found: dict[str, list[Estimate]]) -> Rows:
        """d_HΔH of each seen client to the unseen one; `found` keeps those of each variant."""
        clients = self.data["features"][layer][variant]
        for name in self.data["seen"]:
            pair = pair_divergence(
                clients[name],
                clients[self.data["unseen"]],
                seed=self.seed,
                delta=share(self.config, self.data),
                **SEARCH,
            )
            found.setdefault(variant, []).append(pair)
            where = {"client": name, "split": layer, "variant": variant}
            note = f"{pair.capacity}; {pair.origin}, so that the seen clients' hold together"
            yield _row("pair_divergence", pair, **where) | {"note": note}

    def _seen(self, clients: Mapping[str, Array]) -> list[tuple[str, Float[Array, "n d"]]]:
        each = [(name, clients[name]) for name in self.data["seen"]]
        return [*each, (MIXTURE, np.concatenate([features for _, features in each]))]

    def _proxy(self, a: Array, b: Array) -> Estimate:
        kind, delta = self.config["capacity"], self.config["delta"]
        return proxy_a_distance(a, b, capacity=kind, seed=self.seed, delta=delta)


def _row(metric: str, found: Estimate, **where: Any) -> dict[str, Any]:
    low, high = found.interval
    about = {"samples": min(found.n), "parameter": found.p_value, "note": found.capacity}
    return row(metric, found.value, lower=low, upper=high, **about, **where)


def _floor_row(
    metric: str, found: list[Estimate], by: tuple[int, int], **where: str
) -> dict[str, Any]:
    values = [estimate.value for estimate in found]
    note = (
        f"mean, least and most of {len(values)} draws: two samples of N(0, I), normalised by "
        f"{by[0]} and {by[1]} other points"
    )
    about = {"lower": min(values), "upper": max(values), "samples": min(found[0].n)}
    return row(metric, np.mean(values), note=note, **about, **where)


def _equal_laws(
    rng: np.random.Generator,
    shapes: tuple[tuple[int, int], ...],
    by: tuple[int, ...],
    measure: Callable[[Array, Array], Estimate],
) -> dict[str, Estimate]:
    """What is found between two samples of one law, by the way in which they are normalised."""
    a, b = (_normalised_gaussian(rng, *sizes) for sizes in zip(shapes, by, strict=True))
    return {variant: measure(a[variant], b[variant]) for variant in NORMALISED}


def _normalised_gaussian(
    rng: np.random.Generator, shape: tuple[int, int], by: int
) -> dict[str, Float[Array, "n d"]]:
    """Draws of N(0, I), whitened and scaled per unit by so many others."""
    points, others = rng.standard_normal(shape), rng.standard_normal((by, shape[1]))
    values, vectors = np.linalg.eigh(np.cov(others.T, bias=True))
    alive = values > 1e-6 * values[-1]
    root = vectors[:, alive] / np.sqrt(values[alive]) @ vectors[:, alive].T
    about = points - others.mean(0)
    return {"whitened": about @ root, "per_unit": about / others.std(0)}
