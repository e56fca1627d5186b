"""The memory that is counted against the memory that is taken."""

import tracemalloc

import numpy as np
import pytest

from theory import Problem, affordable_width, gradient_descent, initialise


@pytest.mark.parametrize(
    ("n", "d", "clients", "isotropic"),
    [
        (32, 20, 4, True),
        (200, 10, 4, True),
        (8, 300, 4, True),
        (40, 5, 20, True),
        (32, 20, 4, False),
        (8, 100, 8, False),
    ],
)
def test_a_network_of_that_width_takes_that_memory(n, d, clients, isotropic):
    memory = 2**26
    width = affordable_width(n, d, clients, memory, isotropic=isotropic)
    random = np.random.default_rng(0)
    covariances = 1.0 if isotropic else np.stack([np.eye(d)] * clients)
    given = Problem(
        random.standard_normal((n, d)),
        random.standard_normal(n),
        np.arange(n) % clients,
        covariances,
    )
    tracemalloc.start()
    net = initialise(width, d, clients, alpha=2.0, seed=0, client_specific=True)
    gradient_descent(net, given, step_size=1e-3, steps=2, kernels_at=(0, 2))
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # What does not grow with m (kernels, covariances) is not counted: at most 3 MiB here.
    assert taken < 1.05 * memory
    assert taken > 0.7 * memory


def test_it_grows_with_memory_and_shrinks_with_all_else():
    base = affordable_width(32, 20, 4, 2**33)
    assert 1e6 < base < 1e7
    assert affordable_width(32, 20, 4, 2**34) == pytest.approx(2 * base, rel=1e-6)
    for other in ((64, 20, 4), (32, 40, 4), (32, 20, 8)):
        assert affordable_width(*other, 2**33) < base
    assert affordable_width(32, 20, 4, 2**33, isotropic=False) < base
    assert affordable_width(32, 20, 4, 1) == 0


@pytest.mark.parametrize("place", range(4))
def test_what_is_no_whole_number_of_at_least_one_is_refused(place):
    for value, error in ((0, ValueError), (1.5, TypeError), (True, TypeError)):
        arguments = [4, 4, 4, 4]
        arguments[place] = value
        with pytest.raises(error):
            affordable_width(*arguments)
