"""What the theory adds to the sections `generalization` and `causal`."""

from typing import Any

from theory.studies.gaussian_bounds import TEACHERS
from theory.studies.structural import structural_studies
from theory.studies.study import Study

SPREADS = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""κ of the Gaussian clients' covariances: eigenvalues between 1/κ and κ."""

DIMENSION = 5
"""Of the Gaussian clients: few enough that their bounds are below 1."""


def generalization_plan(preset: str) -> list[Study]:
    """List the studies of bounds on Gaussian clients, where every term is known.

    Raises:
        KeyError: an unknown preset.
    """
    quick = {"quick": True, "default": False, "paper": False}[preset]
    common: dict[str, Any] = {"study": "gaussian_bounds", "data": "gaussian", "clients": 4}
    common |= {"dimension": DIMENSION, "delta": 0.05, "seed": 0}
    common |= {"samples": 20_000 if quick else 200_000, "draws": 2 if quick else 8}
    common["spreads"] = list(SPREADS[::3] if quick else SPREADS)
    taught = zip(TEACHERS, ("whitened features", "the input"), strict=True)
    plan = [
        Study(
            f"bounds of Gaussian clients, the label a rule of {what}",
            {**common, "teacher": teacher},
            2.0 if quick else 60.0,
        )
        for teacher, what in taught
    ]
    # What BN leaves of the divergence does not depend on the teacher or on n.
    few = {**common, "teacher": TEACHERS[0], "samples": 2_000}
    others = (
        ("orthogonal directions", {"directions": "orthogonal"}),
        ("units that differ in scale", {"shift": "scale"}),
    )
    return plan + [
        Study(f"divergence of Gaussian clients, {what}", {**few, **more}, 1.0 if quick else 8.0)
        for what, more in others
    ]


def causal_plan(preset: str) -> list[Study]:
    """List the graphs with the steps checked on them, and the structural model's exact answers.

    Raises:
        KeyError: an unknown preset.
    """
    quick = {"quick": True, "default": False, "paper": False}[preset]
    graphs = Study("graphs and steps", {"study": "graphs", "data": "gaussian", "seed": 0}, 0.5)
    return [graphs, *(Study(*study) for study in structural_studies(quick))]
