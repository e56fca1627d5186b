"""The ways in which the domains of the structural model may differ, by name and strength."""

import math

import numpy as np

from theory._loose import Real, Whole
from theory._validate import non_negative, positive
from theory.structural import FARTHEST, FEATURES, Domain, StructuralModel, is_whole, refuse_beyond

SCENARIOS = ("shift", "label shift", "confounded", "feature scales")
_STRONGEST = {"shift": 900.0, "confounded": FARTHEST / 2, "feature scales": 90.0}
"""Where the scales, exponentials of it, or the nuisance begin to leave float64."""
_CLIENTS = 1000

SEPARATION = 1.5
"""|δ|: the content alone is read wrongly with probability Φ(−1.5) = 0.067."""

_AXIS = np.array([1.0, -1.0, 1.0])
_OUTSIDE = 1.5  # where the unseen domain lies, the training ones between −1 and 1


def structural_model(
    scenario: object, strength: Real, clients: Whole = 4, separation: Real = SEPARATION
) -> StructuralModel:
    """The structural model of a scenario; at strength 0 all domains, the unseen too, are one.

    Training domains lie at z = −1 … 1, evenly, the unseen one at z = 1.5. With strength t

    - "shift": b = t z (1, −1, 1) and one scale for all features, a = exp(t z/10).
    - "label shift": π = ½ + t z/2 in training and ½ + t in the unseen domain, t < ½.
    - "confounded": c = t (1 + 0.3 z) in training, −t in the unseen domain.
    - "feature scales": a = exp(t z (1, −1, 0)): features 1 and 2, which here share the content,
      are scaled apart. Batch norm of the features undoes that, batch norm of units that mix them
      does not: it is diagonal in another basis.

    Raises:
        TypeError: a strength or separation that is no number.
        ValueError: an unknown scenario, clients that are no whole number in 1 … 1000, a negative
            strength, one of label shift that leaves a domain with one label, or a strength or
            separation that leads beyond float64.
    """
    if not isinstance(scenario, str) or scenario not in SCENARIOS:
        said = repr(scenario) if isinstance(scenario, str) else f"a {type(scenario).__name__}"
        raise ValueError(f"unknown scenario {said}: choose from {', '.join(SCENARIOS)}.")
    t, delta = non_negative(strength, "strength"), positive(separation, "separation")
    refuse_beyond(t, f"strength of {scenario}", _STRONGEST.get(scenario, FARTHEST))
    refuse_beyond(delta, "separation", FARTHEST)
    content = (delta, 0.0)
    if not is_whole(clients, 1):
        raise ValueError(f"clients must be a whole number of at least 1 domain, not {clients!r}.")
    if clients > _CLIENTS:
        raise ValueError(f"clients must be at most {_CLIENTS} domains: take fewer.")
    z = np.linspace(-1, 1, int(clients)) if clients > 1 else np.zeros(1)
    places = [*z.tolist(), _OUTSIDE]
    if scenario == "shift":
        ones = np.ones(FEATURES)
        domains = [Domain(0.5, np.exp(t * z / 10) * ones, t * z * _AXIS) for z in places]
    elif scenario == "label shift":
        if t >= 0.5:
            raise ValueError(
                f"the strength of label shift is |P(Y = 1) − ½| < ½ of the unseen domain, not "
                f"{t:g}: at ½ it has one label."
            )
        domains = [Domain(0.5 + t * z / 2) for z in places[:-1]] + [Domain(0.5 + t)]
    elif scenario == "confounded":
        domains = [Domain(nuisance=t * (1 + 0.3 * z)) for z in places[:-1]]
        domains.append(Domain(nuisance=-t))
    else:
        content = (delta * math.sqrt(0.5), delta * math.sqrt(0.5))
        apart = np.array([1.0, -1.0, 0.0])
        domains = [Domain(0.5, np.exp(t * z * apart)) for z in places]
    return StructuralModel(content, tuple(domains[:-1]), domains[-1])
