"""Domain classifiers, their regularisation chosen by cross-validation within the fit part."""

import difflib
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from theory._loose import ArrayLike
from theory._standardise import Standardise, standardise
from theory._validate import as_matrix

Part = tuple[np.ndarray, np.ndarray]  # points, and which of them are of A

_TRIES = 200  # iterations of a solver
_FAR = 2.0**400  # times what was fitted: squares in a kernel stay finite
_one_at_a_time = threading.Lock()  # filters of warnings are the process's, not a thread's


@dataclass(frozen=True)
class Capacity:
    """A class of classifiers: how one is made, and the strengths that are tried, simplest first."""

    make: Callable[[float, int], Any]
    strengths: tuple[float, ...]
    weighs: bool  # whether it takes class weights


@dataclass(frozen=True, eq=False)
class DomainClassifier:
    """h: which points are said to be of domain A.

    Attributes:
        capacity: the class that it was chosen from.
        strength: C of logistic regression and SVC (small is simple), α of the network.
        units: of the fit part.
        model: the fitted scikit-learn classifier.
    """

    capacity: str
    strength: float
    units: Standardise
    model: Any

    def __call__(self, x: ArrayLike) -> Bool[np.ndarray, " n"]:
        """Whether each point, a row of x (n, d), is said to be of A.

        Raises:
            TypeError, ValueError: points that are not real and finite, of other features than those
                that were fitted, or too far from them.
        """
        return scores(self.model, self.units(as_judged(x, self.units))) > 0

    @property
    def half_space(self) -> tuple[Float[np.ndarray, " d"], float] | None:
        """(w, c) such that A is said where w·x > c, of any length; None unless "linear"."""
        if self.capacity != "linear":
            return None
        w, b = self.units.in_units_of_x(self.model.coef_, self.model.intercept_)
        return w[0], -float(b[0])


def as_capacity(name: object) -> str:
    """A known class, or a ValueError with the nearest name."""
    if isinstance(name, str) and name in CAPACITIES:
        return name
    given = name if isinstance(name, str) else ""
    near = difflib.get_close_matches(given, CAPACITIES, n=1, cutoff=0.4)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    raise ValueError(f"capacity must be one of {', '.join(CAPACITIES)}, not {name!r}{hint}")


def as_judged(x: object, units: Standardise) -> Float[np.ndarray, "n d"]:
    """Points for a classifier that was fitted in these units.

    Raises:
        TypeError, ValueError: as a classifier's call says.
    """
    points, d = as_matrix(x, "x"), len(units.exponents)
    if points.shape[1] != d:
        raise ValueError(
            f"x must have {d} features, as the fitted points have, not {points.shape[1]}: give the "
            "same features in the same order (points are rows)."
        )
    with np.errstate(over="ignore"):
        far = np.abs(np.ldexp(points, -units.exponents)) > _FAR
    if far.any():
        row, column = np.argwhere(far)[0]
        raise ValueError(
            f"x has entries over {_FAR:.0e} times as large as any that was fitted, first in row "
            f"{row}, feature {column}: rescale it as the fitted points were."
        )
    return points


def fit_classifier(
    x: Float[np.ndarray, "n d"],
    of_a: Bool[np.ndarray, " n"],
    fold: Int[np.ndarray, " n"],
    capacity: str,
    seed: int,
) -> DomainClassifier:
    """Fits h to points of both domains; the folds choose its strength by their balanced error."""
    kind = CAPACITIES[capacity]
    with _quiet():
        units = standardise(x)
        z = units(x)
        errors = np.zeros(len(kind.strengths))
        for k in np.unique(fold):
            test = fold == k
            errors += _path_errors(kind, (z[~test], of_a[~test]), (z[test], of_a[test]), seed)
        strength = kind.strengths[int(np.argmin(np.round(errors, 9)))]
        model = kind.make(strength, seed).fit(*_balanced(kind, z, of_a, seed))
    return DomainClassifier(capacity, strength, units, model)


def balanced_error(said: Bool[np.ndarray, " n"], of_a: Bool[np.ndarray, " n"]) -> float:
    """Mean of the two domains' error rates."""
    return 0.5 * (1 - said[of_a].mean() + said[~of_a].mean())


def scores(model: Any, z: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    """Positive where a model says A."""
    if hasattr(model, "decision_function"):
        return model.decision_function(z)
    return model.predict_proba(z)[:, 1] - 0.5


def _path_errors(kind: Capacity, fit: Part, test: Part, seed: int) -> Float[np.ndarray, " _"]:
    errors, model = [], kind.make(kind.strengths[0], seed)
    warm, data = getattr(model, "warm_start", False), _balanced(kind, *fit, seed)
    for strength in kind.strengths:
        # From one strength to the next the solver starts where it was.
        model = model.set_params(C=strength) if warm else kind.make(strength, seed)
        errors.append(balanced_error(scores(model.fit(*data), test[0]) > 0, test[1]))
    return np.array(errors)


def _balanced(kind: Capacity, z: np.ndarray, of_a: np.ndarray, seed: int) -> Part:
    """The points; where no weights are taken, those of the smaller domain are repeated."""
    counts = int(of_a.sum()), int((~of_a).sum())
    if kind.weighs or counts[0] == counts[1]:
        return z, of_a
    small = np.flatnonzero(of_a if counts[0] < counts[1] else ~of_a)
    times, rest = divmod(max(counts), len(small))
    again = np.random.default_rng(seed).choice(small, rest, replace=False)
    rows = np.concatenate([np.flatnonzero(of_a != of_a[small[0]]), np.tile(small, times), again])
    return z[rows], of_a[rows]


@contextmanager
def _quiet() -> Iterator[None]:
    """A solver that stops early has given a classifier all the same: held-out data judge it.

    One thread at a time: two that restore the filters in turn would restore each other's.
    """
    from sklearn import config_context
    from sklearn.exceptions import ConvergenceWarning

    checks = {"assume_finite": True, "skip_parameter_validation": True}
    with _one_at_a_time, config_context(**checks), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _state(seed: int) -> int:
    """What scikit-learn's generators take of a seed; without one they are NumPy's global one."""
    return seed % 2**32


def _logistic(strength: float, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    fixed: dict[str, Any] = {"class_weight": "balanced", "warm_start": True}
    limits: dict[str, Any] = {"tol": 1e-5, "max_iter": _TRIES}
    return LogisticRegression(C=strength, random_state=_state(seed), **fixed, **limits)


def _support_vectors(strength: float, seed: int) -> Any:
    from sklearn.svm import SVC

    fixed: dict[str, Any] = {"class_weight": "balanced", "cache_size": 500}
    return SVC(C=strength, kernel="rbf", random_state=_state(seed), **fixed)


def _network(strength: float, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    limits: dict[str, Any] = {"solver": "lbfgs", "max_iter": _TRIES}
    return MLPClassifier((32,), alpha=strength, random_state=_state(seed), **limits)


CAPACITIES = {
    "linear": Capacity(_logistic, (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0), weighs=True),
    "rbf": Capacity(_support_vectors, (0.1, 1.0, 10.0, 100.0), weighs=True),
    "mlp": Capacity(_network, (100.0, 10.0, 1.0), weighs=False),
}
