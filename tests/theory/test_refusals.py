"""Bad input to certificates, runs and checks: one sentence, no error of another library."""

from fractions import Fraction

import numpy as np
import pytest
import torch

import theory
from theory._kernels import as_kernel

BIG = float(np.finfo(float).max)
CURVE = [1.0, 0.5]


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        (("a", "b"), "lower end of an enclosure must be one real number"),
        ((0.0, None), "upper end of an enclosure must be one real number"),
        ((np.nan, 1.0), "must be finite"),
        ((0.0, np.nan), "must be finite"),
        ((0.0, 10**400), "upper end of an enclosure is beyond the range"),
        ((2.0, 1.0), "enclosure is empty"),
    ],
)
def test_enclosures_have_real_ends(ends, message):
    with pytest.raises((TypeError, ValueError), match=message):
        theory.Enclosure(*ends, "x")


def test_an_enclosure_contains_numbers_only():
    unit = theory.Enclosure(np.float64(0), Fraction(1), "x")
    assert type(unit.lower) is type(unit.upper) is float
    assert unit.contains(1) and not unit.contains(np.nan) and not unit.contains(1.5)
    for value in (None, "0", [0.5], 1j):
        with pytest.raises(TypeError, match="value must be one real number"):
            unit.contains(value)


@pytest.mark.parametrize("function", [theory.smallest_eigenvalue, theory.largest_eigenvalue])
@pytest.mark.parametrize("sign", [-1, 1])
def test_eigenvalues_beyond_float64_are_refused_with_advice(function, sign):
    everywhere = sign * np.full((3, 3), BIG)
    top = (sign > 0) == (function is theory.largest_eigenvalue)
    if top:
        with pytest.raises(ValueError, match="beyond the range of float64: divide the matrix"):
            function(everywhere)
    with pytest.raises(ValueError, match="beyond the range of float64: divide the matrix"):
        function(sign * BIG * np.eye(2), error=BIG)
    assert function(sign * BIG / 4 * np.eye(2)).contains(sign * BIG / 4)


def test_a_row_that_underflowed_in_scaling_is_not_called_zero():
    tiny = theory.smallest_eigenvalue(np.diag([1e-200, 1.0, 1e199]))
    assert tiny.cause is not None and "is zero." not in tiny.cause
    assert "rescale the points" in tiny.cause and tiny.rows[0] == 0
    zero = theory.smallest_eigenvalue(np.diag([0.0, 1.0, 2.0]))
    assert zero.cause == "row 0 is zero."


@pytest.mark.parametrize("delta", [0, 1.0, -1, np.nan, "x", None])
def test_delta_is_checked_for_a_bare_curve_too(delta):
    for check in (theory.theorem_iii4, theory.corollary_iii5):
        with pytest.raises((ValueError, TypeError), match="delta"):
            check(CURVE, 0.1, step_size=0.1, delta=delta)


@pytest.mark.parametrize(
    ("curve", "message"),
    [
        ([1.0, 0.5 + 1j], "The curve must hold real numbers"),
        (["1", "0"], "The curve must hold real numbers"),
        (np.ma.masked_array(CURVE, mask=[0, 1]), "The curve has masked entries"),
        ([[1.0], [1.0, 2.0]], "The curve is not a rectangular"),
        ([1.0, np.nan], "The curve holds NaN or infinity, first at position 1"),
        ([], "give one value per step"),
    ],
)
def test_bad_curves_are_refused(curve, message):
    with pytest.raises((ValueError, TypeError), match=message):
        theory.theorem_iii4(curve, 0.1, step_size=0.1)
    gradient = torch.tensor(CURVE, dtype=torch.float64, requires_grad=True)
    assert theory.theorem_iii4(gradient, 0.1, step_size=0.1).measured.tolist() == CURVE


def test_corollary_iii6_wants_enclosures():
    with pytest.raises(TypeError, match="both arguments must be enclosures"):
        theory.corollary_iii6(1.0, 2.0)


def test_a_kernel_that_is_no_name_is_refused():
    for kernel in (np.ones((2, 2)), None, 5):
        with pytest.raises(TypeError, match='kernel must be "printed" or "normalised"'):
            as_kernel(kernel, 1.0, 1.0)


@pytest.mark.parametrize(
    ("kernel", "residual", "message"),
    [
        (np.zeros((0, 0)), [], "kernel is empty"),
        (np.eye(2) * 1j, [1, 1], "kernel must hold real numbers"),
        ([[1.0], [1.0, 2.0]], [1, 1], "kernel is not a rectangular"),
        (np.ones((2, 3)), [1, 1], "square matrix"),
        (np.eye(2), [1, 1j], "residual must hold real numbers"),
        (np.eye(2), np.ma.masked_array([1.0, 2.0], mask=[0, 1]), "residual has masked entries"),
        (np.eye(2), [[1.0, 1.0]], "one per point"),
    ],
)
def test_bad_linearised_predictions_are_refused(kernel, residual, message):
    with pytest.raises((ValueError, TypeError), match=message):
        theory.linearised_losses(kernel, residual, 0.1, 3)


@pytest.mark.parametrize(
    ("change", "keywords", "message"),
    [
        ({}, dict(kernels_at=5), r"kernels_at must be a sequence of steps, such as \(5,\)"),
        ({}, dict(kernels_at=None), "kernels_at must be a sequence"),
        (dict(covariances=np.eye(2)[None] * 1.7e308), {}, "range of float64"),
        (dict(covariances=np.eye(2)[None] * np.nan), {}, "covariances holds NaN"),
        (dict(y=[1.0, 1j]), {}, "y must hold real numbers"),
        (dict(y=[1.0, np.inf]), {}, "y holds NaN or infinity, first at position 1"),
    ],
)
def test_bad_runs_are_refused(change, keywords, message):
    start = theory.initialise(4, 2, 1, alpha=1.0, seed=0, client_specific=False)
    task = dict(x=np.eye(2), y=[1.0, 2.0], client=[0, 0], covariances=1.0) | change
    with pytest.raises((ValueError, TypeError), match=message):
        theory.gradient_descent(start, theory.Problem(**task), step_size=0.1, steps=2, **keywords)


def test_a_run_from_parameters_without_a_number_is_refused():
    start = theory.initialise(4, 2, 1, alpha=1.0, seed=0, client_specific=False)
    broken = theory.Network(
        np.full((4, 2), np.nan), start.gamma, start.c, start.clients, 1.0, False
    )
    task = theory.Problem(np.eye(2), [1.0, 2.0], [0, 0], 1.0)
    with pytest.raises(ValueError, match="v of the network holds NaN"):
        theory.gradient_descent(broken, task, step_size=0.1, steps=2)
