import mpmath
import numpy as np
import pytest
from exact_kernels import ends, exact, inside, masked

from theory._client_kernels import (
    as_covariances,
    both_kernels,
    client_kernel,
    isotropic,
    pooled_covariance,
)
from theory._validate import as_groups
from theory.spectrum import largest_eigenvalue, smallest_eigenvalue

CLIENT = ["a", "b", "a", "c", "b", "a"]
VARIANCES = {"a": 0.3, "b": 1.7, "c": 11.1}


def points(seed, d=3):
    return np.random.default_rng(seed).standard_normal((6, d)) * 1.7


@pytest.mark.parametrize("alpha", [0.3, 7.7])
@pytest.mark.parametrize("seed", [0, 1])
def test_closed_forms_lie_within_their_bounds(seed, alpha):
    x = points(seed)
    magnitude, direction = both_kernels(x, CLIENT, VARIANCES)
    weighted = direction.divided(alpha * alpha, 2.0**-52)
    assert magnitude.method == "closed form"
    with mpmath.workdps(50):
        g, _, v = exact(x, CLIENT, VARIANCES, alpha)
        for found, wanted in (
            (magnitude, g),
            (weighted, v),
            (weighted.plus(magnitude), v + g),
            (weighted.plus(magnitude.within_clients()), v + masked(g, CLIENT)),
        ):
            gap = mpmath.matrix(found.matrix.tolist()) - wanted
            assert mpmath.mnorm(gap, "f") <= found.error < 1e-13 * np.linalg.norm(found.matrix)
            low, high = ends(wanted)
            assert inside(low, smallest_eigenvalue(found.matrix, found.error))
            assert inside(high, largest_eigenvalue(found.matrix, found.error))


def test_blocks_are_literally_those_of_the_matrix():
    kernel = client_kernel(points(2), CLIENT, VARIANCES)
    blocks = kernel.masked()
    for rows, block in zip(blocks.rows, blocks.blocks, strict=True):
        np.testing.assert_array_equal(block, kernel.matrix[np.ix_(rows, rows)])
    np.testing.assert_array_equal(blocks.dense(), kernel.within_clients().matrix)
    assert blocks.errors == (kernel.error,) * 3


def test_unit_variances_change_no_bit():
    x = points(3)
    plain = client_kernel(x, CLIENT, dict.fromkeys("abc", 1.0))
    other = client_kernel(x, CLIENT, dict.fromkeys("abc", 1.0 + 2**-52))
    assert plain.error < other.error  # a division was charged


@pytest.mark.parametrize(
    "given",
    [
        2.5,
        [1.0, 2.0, 3.0],
        {"c": 3.0, "a": 1.0, "b": 2.0},
        np.stack([np.eye(4) * k for k in (1.0, 2.0, 3.0)]),
        {"a": np.eye(4), "b": 2.0, "c": 3 * np.eye(4)},
        4 * np.eye(4),
    ],
    ids=["number", "numbers", "mapping", "matrices", "both", "one matrix"],
)
def test_every_way_to_give_covariances(given):
    found = as_covariances(given, as_groups(CLIENT, 6), 4)
    shared = {2.5: 2.5}.get(given) if isinstance(given, float) else None
    wanted = {"a": 1.0, "b": 2.0, "c": 3.0}
    if shared is not None:
        wanted = dict.fromkeys("abc", shared)
    elif np.shape(given) == (4, 4):
        wanted = dict.fromkeys("abc", 4.0)
    assert found == wanted and isotropic(found)


def test_a_matrix_stays_one():
    general = np.diag([1.0, 2.0])
    found = as_covariances({"a": general, "b": 1.0, "c": np.eye(2)}, as_groups(CLIENT, 6), 2)
    assert found["a"] is not None and np.array_equal(found["a"], general)
    assert found["b"] == found["c"] == 1.0 and not isotropic(found)


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"a": 1.0, "b": 1.0}, ValueError, "no entry for client 'c'"),
        ([1.0, 2.0], ValueError, r"shape \(2,\); give one number"),
        (np.zeros((3, 2, 2)), ValueError, "shape"),
        ({"a": np.eye(3), "b": 1.0, "c": 1.0}, ValueError, r"'a'\] has shape \(3, 3\)"),
        (0.0, ValueError, "must be positive"),
        ([1.0, -1.0, 1.0], ValueError, "'b' must be positive"),
        ("abc", TypeError, "real numbers"),
        (None, TypeError, "real numbers"),
    ],
)
def test_covariances_that_cannot_be_used_are_refused(given, kind, words):
    with pytest.raises(kind, match=words):
        as_covariances(given, as_groups(CLIENT, 6), 4)


def test_the_pooled_covariance_is_the_weighted_mean():
    from fractions import Fraction

    p = {"a": Fraction(1, 2), "b": Fraction(1, 3), "c": Fraction(1, 6)}
    assert pooled_covariance({"a": 1.0, "b": 3.0, "c": 6.0}, p, 2) == 2.5
    mixed = {"a": np.array([[2.0, 1.0], [1.0, 2.0]]), "b": 3.0, "c": 6.0}
    np.testing.assert_allclose(pooled_covariance(mixed, p, 2), [[3.0, 0.5], [0.5, 3.0]], rtol=4e-16)
