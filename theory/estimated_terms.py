"""Terms of the bounds from losses: risks of a mixture of clients, an oracle's ideal joint error."""

import math
from collections.abc import Iterable, Mapping, MappingView, Set
from dataclasses import replace
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from theory._loose import Anything, ArrayLike, Flag, Real
from theory._validate import as_matrix, as_vector
from theory.bounds import Term, as_weights, float_weights, outward, weighted_mean
from theory.hoeffding import empirical_risk
from theory.mixtures import MixtureRisk, mixture_risk
from theory.rates import as_risk

__all__ = ["cross_losses_risk", "oracle_ideal_error"]

Array = np.ndarray


def oracle_ideal_error(
    losses_seen: "Iterable[ArrayLike] | Anything",
    losses_unseen: ArrayLike,
    *,
    weights: "ArrayLike | None" = None,
    delta: Real = 0.05,
) -> Term:
    """An upper estimate of ε = min_f J_s(f) + J_u(f), from any one h and labels of the unseen data.

    ε ≤ J_s(h) + J_u(h) for whatever h, such as one trained on labelled points of all clients; each
    risk is bounded by Hoeffding from points new to h, its upper side at δ/2. The lower end is 0. It
    needs what the setting forbids, hence "oracle": it serves to see how large ε can be.

    Args:
        losses_seen: one array (n_i,) per seen client of losses of h in [0, 1].
        losses_unseen: (n_u,), the losses of h on the unseen client.
        weights: ω_i; n_i/n when left out.
        delta: probability with which the upper end may fail, in (0, 1).

    Raises:
        TypeError, ValueError: losses outside [0, 1], weights as for `mixture_divergence`.
    """
    listed = [as_losses(v, f"losses of client {i}") for i, v in each(losses_seen, "losses_seen")]
    omega, _ = as_client_weights(weights, [len(values) for values in listed])
    pairs = zip(listed, omega, strict=True)
    shares = np.concatenate([np.full(len(v), w / len(v)) for v, w in pairs])
    # Of a two-sided interval at δ each side fails with δ/2.
    first = empirical_risk(np.concatenate(listed), shares / math.fsum(shares), delta=delta)
    second = empirical_risk(as_losses(losses_unseen, "losses_unseen"), delta=delta)
    ends = [Fraction(found.population.upper) for found in (first, second)]  # type: ignore[arg-type]
    origin = f"oracle: J_s(h) + J_u(h) of one h, Hoeffding, confidence {1 - as_risk(delta):g}"
    upper = min(outward(sum(ends), up=True), 2.0)
    return Term("ideal joint error", 0.0, upper, origin, delta=as_risk(delta))


def cross_losses_risk(
    losses: "Iterable[ArrayLike] | Anything",
    *,
    weights: "ArrayLike | None" = None,
    mixture: "Iterable[ArrayLike] | Anything | None" = None,
    convex_loss: Flag,
    averages_predictions: Flag = True,
    common_labels: Flag = False,
) -> MixtureRisk:
    """Both right sides of (15) from losses of all local models at all clients' points.

    Args:
        losses: one array (N, n_i) per seen client i: row j the losses of f_j at its points, in
            [0, 1].
        weights: ω_i; n_i/n when left out.
        mixture: one array (n_i,) per seen client, losses of f_u = Σ ω_j f_j, where measured.
        convex_loss: whether ℓ is convex in the prediction.
        averages_predictions: whether f_u averages predictions, not parameters.
        common_labels: whether labels are one function of the features for all clients.

    Raises:
        TypeError, ValueError: as `mixture_risk`; losses of another shape or outside [0, 1].
    """
    listed = [as_matrix(v, f"losses of client {i}") for i, v in each(losses, "losses")]
    for i, values in enumerate(listed):
        if len(values) != len(listed):
            raise ValueError(
                f"losses of client {i} have {len(values)} rows: give one per local model, "
                f"{len(listed)}."
            )
        as_losses(values.ravel(), f"losses of client {i}")
    omega, _ = as_client_weights(weights, [values.shape[1] for values in listed])
    left = None
    if mixture is not None:
        own = [as_losses(v, f"mixture losses of client {i}") for i, v in each(mixture, "mixture")]
        if [len(v) for v in own] != [v.shape[1] for v in listed]:
            raise ValueError("mixture must hold one loss per point of each seen client.")
        left = mean_risk(own, omega)
    return mixture_risk(
        omega,
        [[math.fsum(row) / len(row) for row in values] for values in listed],
        left,
        convex_loss=convex_loss,
        averages_predictions=averages_predictions,
        common_labels=common_labels,
    )


def mean_risk(listed: list[Array], weights: list[float]) -> Term:
    """Σ ω_i Ĵ_i, with the clients' own as parts."""
    parts = [
        replace(empirical_risk(v).empirical, name=f"empirical risk of client {i}")
        for i, v in enumerate(listed)
    ]
    return weighted_mean("empirical risk", as_weights(weights), parts)


def as_losses(value: object, name: str) -> Float[Array, " n"]:
    """Losses in [0, 1], or advice."""
    vector = as_vector(value, name)
    if vector.min() < 0 or vector.max() > 1:
        raise ValueError(f"{name} are outside [0, 1]: divide by the largest loss there can be.")
    return vector


def as_client_weights(weights: object, sizes: list[int]) -> tuple[list[float], bool]:
    """ω_i, and whether they are n_i/n."""
    if weights is None:
        return [size / sum(sizes) for size in sizes], True
    values = float_weights(weights).tolist()
    if len(values) != len(sizes):
        raise ValueError(f"there are {len(values)} weights for {len(sizes)} seen clients.")
    return values, False


def each(values: object, name: str) -> "list[tuple[int, object]]":
    """The entries of a list, numbered."""
    refused = isinstance(values, str | bytes | Mapping | MappingView | Set)
    if refused or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list with one entry per seen client, not {values!r}.")
    listed = list(enumerate(values))
    if not listed:
        raise ValueError(f"{name} is empty: give one entry per seen client.")
    return listed
