"""What the theory's estimates of divergence and risk are made from: arrays of a trained federation.

The theory knows no network: it gets NumPy arrays and names, and this module says which.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from empirical.architecture import Layer
from empirical.data.client import Client, Split
from empirical.features import LayerFeatures, layer_features, principal_coordinates
from empirical.state import FederationState
from empirical.studies.networks import Networks
from empirical.whitening import Whitening, whitenings

Array = np.ndarray
PerClient = dict[str, Array]
Report = Callable[[float], object]

DIRECTIONS, REFERENCE = 100, 100
"""In how many principal directions images are seen, and from how many of each client they come.

With some hundred images to fit a classifier, pixels would leave more than it can tell apart."""


class DivergenceData(TypedDict):
    """What `divergence_data` gives: NumPy arrays by name, images in the order of their split.

    Attributes:
        seen: names of the clients that trained, in the federation's order.
        unseen: the client held out.
        weights: (N,) ω of the seen ones, summing to 1: the run's p.
        features: layer ("input", "layer 1", …, in the order of the forward pass) -> variant ->
            client (seen and unseen) -> (n, d) float64 of all its test images.
        after: t -> (m, d) of the unseen client: the last layer, client_specific, once t of its
            test batches have moved its statistics; the same m images for all t, none of which
            any of those batches held. Empty for aggregated runs.
        probabilities: seen client -> (N, n, classes), what the shared weights with γ and β of
            seen client j answer to each of its training images, normalised by the statistics that
            serve the client itself: f_j as a function of features.
        on_inputs: the same with the statistics of client j too: f_j as a function of images.
        external: (N, n, classes), as `probabilities`, of the unseen client's test images.
        train_labels: seen client -> (n,).
        served: "server", "adapted" -> (n, classes), what the model serving the unseen client
            answers to its test images, as `serve_external` serves it.
        test_labels: client -> (n,).
        architecture: units, parameters, comparisons of the network's layers, with each seen
            client's γ and β unless they are aggregated, for its VC dimension.
        whitened_by: client -> the number of its images whose statistics whiten it, and scale it
            per unit.
        notes: what a reader should know.
    """

    seen: list[str]
    unseen: str
    weights: Float64[Array, " clients"]
    features: dict[str, dict[str, PerClient]]
    after: dict[int, Float64[Array, "m d"]]
    probabilities: PerClient
    on_inputs: PerClient
    external: Float64[Array, "models n classes"]
    train_labels: PerClient
    served: PerClient
    test_labels: PerClient
    architecture: list[Layer]
    whitened_by: dict[str, int]
    notes: list[str]


def divergence_data(
    config: Mapping[str, Any], clients: Iterable[Client], state: FederationState, report: Report
) -> DivergenceData:
    """Features, predictions and labels of a federation that a training left one client out of.

    Variants at every batch-norm layer, for a layer's input r: "aggregated" (of runs with that
    policy, which have no other): (r − μ)/√(σ² + ε) by the server's statistics for every client.
    "client_specific": as deployed, by the seen client's own running ones (which are stale: means
    over its nets in training, before aggregation), by those of Eqs. (3), (4) for the unseen one.
    "affine": that times γ plus β, the seen client's own, the server's mean for the unseen one.
    "whitened": Σ^(-1/2)(r − μ) over channels, Σ and μ of the client's own training images (the
    unseen one's too: an oracle's), so that no image that is measured moved them; before the layer
    the network is that of "client_specific". "per_unit": (r − μ)/√(diag Σ + ε) by the very same,
    so that these two differ in the rest of Σ alone. At "input", "raw": the pixels in the 100
    leading principal directions of 100 training images of every client, none of which is measured.

    The unseen client's network is the one after its whole stream, the same for all images: seeded
    batches as `serve_external` makes them, τ = 0.9, n_t = 32. Its statistics come from the very
    images that are measured, so that a lower bound's 1 − δ is approximate there; "per_unit" and
    "whitened" take training images at the layer itself, which makes it exact at the first one,
    while what comes to a later one has passed the statistics of the layers before.

    Args:
        config: of the run: "training" (the config of that run), "held_out", "layers" ("all", or
            "last" for the input and the last layer alone) and "batches", the numbers t for
            `after`; those are left out that take more than half of the images.
        clients: the whole federation.
        state: that the training left.
        report: takes the fraction done.

    Raises:
        ValueError: what the config names is not there, or does not fit the state.
        DivergedError: a ValueError; the training diverged, or features are not finite.
    """
    if config["layers"] not in ("all", "last"):
        raise ValueError(f"layers is 'all' or 'last', not {config['layers']!r}")
    nets = Networks(config, clients, state)
    features: dict[str, dict[str, PerClient]] = {"input": {"raw": {}}}
    notes: list[str] = []
    parts = len(nets.clients) + 2
    reference = torch.cat([_some(client.train).inputs() for client in nets.clients])
    for done, client in enumerate(nets.clients, start=1):
        pixels = principal_coordinates(client.test.inputs(), reference, DIRECTIONS)
        features["input"]["raw"][client.name] = pixels.numpy()
        net = nets.serving(client.name)
        found = layer_features(net, nets.inputs(client.test))
        white = whitenings(net, nets.inputs(client.train)) if nets.specific else []
        measured = range(0 if config["layers"] == "all" else len(found) - 1, len(found))
        for number in measured:
            at = features.setdefault(f"layer {number + 1}", {})
            for variant, values in _variants(found[number], white[number : number + 1]).items():
                at.setdefault(variant, {})[client.name] = values.numpy()
        notes += _dead(client.name, white, measured)
        report(done / parts)
    after = _after(nets, config["batches"], notes) if nets.specific else {}
    report((parts - 1) / parts)
    data = DivergenceData(
        seen=[client.name for client in nets.seen],
        unseen=nets.unseen.name,
        weights=nets.weights(),
        features=features,
        after=after,
        probabilities={c.name: nets.on_features(c) for c in nets.seen},
        on_inputs={c.name: nets.on_inputs(c) for c in nets.seen},
        external=nets.on_features(nets.unseen),
        train_labels={c.name: c.train.labels.numpy() for c in nets.seen},
        served=nets.served(),
        test_labels={c.name: c.test.labels.numpy() for c in nets.clients},
        architecture=nets.architecture(),
        whitened_by={c.name: len(c.train) for c in nets.clients} if nets.specific else {},
        notes=notes,
    )
    report(1.0)
    return data


def _variants(layer: LayerFeatures, white: Sequence[Whitening]) -> dict[str, Tensor]:
    """Variant -> features; `white` holds one whitening where batch norm is client-specific."""
    if not white:
        return {"aggregated": layer.normalised()}
    return {
        "client_specific": layer.normalised(),
        "affine": layer.affine(),
        "per_unit": layer.per_unit(white[0]),
        "whitened": layer.whitened(white[0]),
    }


def _some(split: Split) -> Split:
    """At most `REFERENCE` of its images, evenly spread over the split."""
    rows = torch.linspace(0, len(split) - 1, min(REFERENCE, len(split))).round().long()
    return Split(split.images[rows], split.labels[rows], split.classes)


def _dead(client: str, white: Sequence[Whitening], measured: range) -> list[str]:
    return [
        f"whitening {client} at layer {number + 1} leaves out {len(w.mean) - w.kept} of "
        f"{len(w.mean)} directions, which are dead"
        for number, w in enumerate(white)
        if w.kept < len(w.mean) and number in measured
    ]


def _after(nets: Networks, wanted: Sequence[int], notes: list[str]) -> dict[int, Array]:
    """T -> the unseen client's last features once t batches came, of images that came in none."""
    sizes, n = nets.arriving.sizes, len(nets.arriving.rows)
    done = [t for t in wanted if t <= len(sizes) and 2 * sum(sizes[:t]) <= n]
    if len(done) < len(wanted):
        left = ", ".join(str(t) for t in wanted if t not in done)
        notes.append(
            f"the divergence after {left} batches is left out: they take more than half of the "
            f"{n} test images of {nets.unseen.name}"
        )
    if not done:
        return {}
    rest = nets.arriving.rows[sum(sizes[: max(done)]) :].sort().values
    images = nets.inputs(nets.unseen.test)[rest.to(nets.device)]
    return {t: layer_features(nets.after(t), images)[-1].normalised().numpy() for t in sorted(done)}
