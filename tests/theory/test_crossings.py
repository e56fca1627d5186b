"""Sign changes of many functions at once, against roots that are known."""

import numpy as np

from theory._crossings import crossings

ROOTS = [np.array([-1.3, 0.2, 2.7]), np.array([0.45]), np.array([])]


def family(x, row):
    """Polynomials with these roots, each positive at its left end."""
    out = np.ones_like(x)
    for k, roots in enumerate(ROOTS):
        some = row == k
        out[some] = np.prod([root - x[some] for root in roots], axis=0) if len(roots) else 1.0
    return out


def test_every_sign_change_is_found_with_its_direction():
    found = crossings(family, 3, np.linspace(-4, 4, 41))
    assert found.first.all()
    np.testing.assert_array_equal(found.row, [0, 0, 0, 1])
    # 48 halvings of a cell of 0.2; a root at a node of the grid counts once.
    np.testing.assert_allclose(found.place, [-1.3, 0.2, 2.7, 0.45], atol=1e-14)
    np.testing.assert_array_equal(found.direction, [-1, 1, -1, -1])


def test_the_share_is_the_probability_of_where_a_function_is_positive():
    found = crossings(family, 3, np.linspace(-4, 4, 41))
    uniform = (4 - found.place) / 8  # P(T > place) for T uniform on the grid
    np.testing.assert_allclose(found.share(uniform), [(2.7 + 2.5) / 8, 4.45 / 8, 1.0], atol=1e-13)


def test_functions_are_evaluated_in_pieces_without_a_difference():
    grid = np.linspace(-3, 3, 301)
    places = np.linspace(-2, 2, 3000)

    def g(x, row):
        return x - places[row]

    found = crossings(g, 3000, grid)  # beyond what is held in memory at once
    np.testing.assert_array_equal(found.row, np.arange(3000))
    np.testing.assert_allclose(found.place, places, atol=1e-14)
    assert not found.first.any() and (found.direction == 1).all()
