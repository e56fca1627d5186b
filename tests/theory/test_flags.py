"""Every function that asks a yes-or-no question takes True, False and NumPy's, nothing else."""

from typing import Any

import numpy as np
import pytest

import theory
from theory._validate import flag

SAMPLING: dict[str, Any] = dict(vc_dimension=3, n=100, delta=0.1)


def network(value):
    return theory.initialise(3, 2, ["a"], alpha=1.0, seed=0, client_specific=value)


def rebuilt(value):
    made = network(False)
    return theory.Network(made.v, made.gamma, made.c, made.clients, 1.0, value)


# x and client go to bn_ntk, one client: f and f* have parameters of one shape.
ASKED = {
    "client_specific": network,
    "client_specific of Network": rebuilt,
    "client_specific of bn_ntk": lambda value: theory.bn_ntk(
        np.eye(2), ["a", "a"], 1.0, alpha=1.0, client_specific=value
    ),
    "isotropic": lambda value: theory.affordable_width(4, 4, 2, 10**6, isotropic=value),
    "convex_loss": lambda value: theory.mixture_risk([1.0], [0.5], convex_loss=value),
    "averages_predictions": lambda value: theory.mixture_risk(
        [1.0], [0.5], convex_loss=True, averages_predictions=value
    ),
    "common_labels": lambda value: theory.mixture_risk(
        [1.0], [0.5], convex_loss=True, common_labels=value
    ),
    "common_hypothesis": lambda value: theory.mixture_ideal_error(
        [1.0], [0.5], common_hypothesis=value
    ),
    "common_law": lambda value: theory.corollary_iii9(0.1, 0.0, **SAMPLING, common_law=value),
    "in_place": lambda value: theory.smallest_eigenvalue(2 * np.eye(3), in_place=value),
}


def fields(found):
    return repr(found) if not hasattr(found, "matrix") else repr(found.matrix.tolist())


@pytest.mark.parametrize("name", list(ASKED))
def test_numpy_s_booleans_are_those_of_python(name):
    for value in (True, False):
        assert fields(ASKED[name](np.bool_(value))) == fields(ASKED[name](value))


@pytest.mark.parametrize("name", list(ASKED))
@pytest.mark.parametrize("value", ["False", "yes", "", 0, 1, 1.0, [], [True], np.ones(2, bool)])
def test_what_only_has_a_truth_value_is_refused(name, value):
    with pytest.raises(TypeError, match=rf"{name.split()[0]} must be .*True"):
        ASKED[name](value)


def test_the_helper_gives_a_python_boolean():
    assert flag(np.True_, "it") is True and flag(False, "it") is False


@pytest.mark.parametrize(
    "values", [{0.1, 0.9}, {0.1: "a", 0.9: "b"}, {0.1: 1, 0.9: 2}.keys(), "ab", 3, iter([0.1, 0.9])]
)
def test_values_without_an_order_are_no_values_of_clients(values):
    with pytest.raises(TypeError, match="sequence of one divergence per seen client"):
        theory.mixture_divergence([0.9, 0.1], values)
    with pytest.raises(TypeError, match="sequence of one ε per seen client"):
        theory.mixture_ideal_error([0.9, 0.1], values, common_hypothesis=True)


def test_an_array_of_values_has_one_dimension():
    term = theory.mixture_divergence([0.5, 0.5], np.array([0.2, 0.4])).term
    assert term.lower <= 0.3 <= (term.upper or 0.0) < 0.31
    with pytest.raises(ValueError, match="one dimension"):
        theory.mixture_divergence([0.5, 0.5], np.ones((2, 2)))


@pytest.mark.parametrize("bounds", [None, 3, theory.Bound("x", (), 0.1)])
def test_what_is_no_sequence_of_bounds_is_refused(bounds):
    with pytest.raises(TypeError, match="bounds must be a sequence of Bound objects"):
        theory.unseen_clients_bound(bounds)
