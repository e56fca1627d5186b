"""Complexities against exact suprema over single neurons, and against simulation."""

import math
from itertools import product

import numpy as np
import pytest

from theory.gaussian import TwoLayer
from theory.rademacher import (
    learned_rademacher_capacity,
    path_norm,
    rademacher_capacity,
    rademacher_complexity,
)


def largest(x, signs):
    """sup_{‖w‖≤1} |Σ ε φ(w·x)| in the plane: on each sector of directions φ is linear."""
    angles = np.arctan2(x[:, 1], x[:, 0])
    edges = np.sort(np.concatenate([angles + math.pi / 2, angles - math.pi / 2]) % (2 * math.pi))
    middles = (edges + np.diff(np.append(edges, edges[0] + 2 * math.pi)) / 2)[:, None]
    candidates = list(edges)
    for middle in middles.ravel():
        active = np.cos(middle - angles) > 0
        total = signs[active] @ x[active]
        inside = np.arctan2(total[1], total[0])
        candidates += [inside, inside + math.pi]  # where the linear form of the sector is extreme
    w = np.column_stack([np.cos(candidates), np.sin(candidates)])
    return np.abs(np.maximum(w @ x.T, 0) @ signs).max()


def exact(x, norm=1.0):
    """R̂ of the class: its extreme points are single neurons ±Bφ(w·x), ‖w‖ = 1."""
    signs = np.array(list(product([-1.0, 1.0], repeat=len(x))))
    return norm * np.mean([largest(x, s) for s in signs]) / len(x)


@pytest.mark.parametrize("seed", range(4))
def test_the_largest_neuron_is_found_exactly(seed):
    rng = np.random.default_rng(seed)
    x, signs = rng.standard_normal((5, 2)), rng.choice([-1.0, 1.0], 5)
    t = np.linspace(0, 2 * math.pi, 20_001)
    grid = np.abs(np.maximum(np.column_stack([np.cos(t), np.sin(t)]) @ x.T, 0) @ signs).max()
    # A grid misses a maximum by at most Σ‖x‖ times half its step.
    assert grid <= largest(x, signs) + 1e-12 <= grid + np.linalg.norm(x, axis=1).sum() * 2e-4


@pytest.mark.parametrize("n", [1, 2, 3, 6, 9])
def test_the_complexity_of_the_class_lies_between_the_ends(n):
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal((n, 2))
        found = rademacher_complexity(x, 1.7)
        assert found.lower <= exact(x, 1.7) <= found.upper


def test_on_a_line_the_complexity_is_a_sum_of_signs():
    # w = ±1: sup is max(|Σ_{x>0} ε x|, |Σ_{x<0} ε x|).
    x = np.array([[1.0], [2.0], [-1.0], [-3.0]])
    sups = [max(abs(a + 2 * b), abs(c + 3 * d)) / 4 for a, b, c, d in product([-1, 1], repeat=4)]
    found = rademacher_complexity(x, 1.0)
    assert found.lower <= np.mean(sups) <= found.upper
    assert found.upper == pytest.approx(2 * math.sqrt(15) / 4)
    assert found.lower == pytest.approx(math.sqrt(15) / (8 * math.sqrt(2)))


def test_many_neurons_are_no_better_than_one():
    rng = np.random.default_rng(0)
    x, signs = rng.standard_normal((6, 2)), rng.choice([-1.0, 1.0], 6)
    best = largest(x, signs)
    for _ in range(500):
        w, c = rng.standard_normal((4, 2)), rng.standard_normal(4)
        size = np.abs(c) @ np.linalg.norm(w, axis=1)
        assert signs @ (np.maximum(x @ w.T, 0) @ c) / size <= best + 1e-12


def test_the_steps_of_the_derivation_against_simulation():
    rng = np.random.default_rng(3)
    n, d = 40, 6
    x = rng.standard_normal((n, d)) * np.geomspace(1, 5, d)
    signs = rng.choice([-1.0, 1.0], (20_000, n))
    lengths = np.linalg.norm(signs @ x, axis=1)
    mean, error = lengths.mean(), lengths.std() / math.sqrt(len(lengths))
    whole = math.sqrt((x**2).sum())
    # Jensen above, Khintchine and Kahane below; E‖Σ ε x‖² is Σ‖x‖² itself.
    assert whole / math.sqrt(2) < mean - 5 * error and mean + 5 * error < whole
    squares = lengths**2
    assert abs(squares.mean() - whole**2) < 5 * squares.std() / math.sqrt(len(squares))
    found = rademacher_complexity(x, 1.0)
    # The linear half of the class is inside, and 2 E‖Σ ε x‖/n is not above the upper end.
    assert found.lower <= (mean - 5 * error) / (2 * n) and 2 * mean / n <= found.upper


def test_the_capacity_by_hand():
    x = np.ones((100, 1))
    found = rademacher_capacity(x, 3.0, lipschitz=2.0, largest_loss=5.0, delta=0.1)
    value = 2 * 2.0 * (2 * 3.0 * 10 / 100) + 3 * 5.0 * math.sqrt(math.log(20) / 200)
    assert found.lower < value < found.upper == pytest.approx(value)
    assert found.name == "capacity of the risk"


def test_the_capacity_covers_the_gap_of_every_network():
    """sup over neurons of J − Ĵ, with J from many points: fails in at most a share δ of draws."""
    rng = np.random.default_rng(5)
    w, c = rng.standard_normal((300, 3)), rng.choice([-1.0, 1.0], 300)
    w /= np.linalg.norm(w, axis=1, keepdims=True)

    def losses(z):
        return np.clip(0.5 - 0.5 * c * np.maximum(z @ w.T, 0) * np.sign(z[:, :1]), 0, 1)

    true = losses(rng.standard_normal((50_000, 3))).mean(axis=0)
    failed, widest = 0, 0.0
    for _ in range(100):
        x = rng.standard_normal((200, 3))
        gap = (true - losses(x).mean(axis=0)).max()
        capacity = rademacher_capacity(x, 1.0, lipschitz=0.5, delta=0.2).upper
        failed, widest = failed + (gap > capacity), max(widest, gap / capacity)
    assert failed <= 20 and 0.05 < widest < 1


@pytest.mark.parametrize(("norm", "j"), [(1.0, 0), (1.1, 1), (2.0, 1), (0.5, -1), (0.3, -1)])
def test_a_learned_norm_is_rounded_to_the_next_power_of_two(norm, j):
    x = np.eye(4)
    found = learned_rademacher_capacity(x, norm, delta=0.1)
    share = 0.1 * 3 / (math.pi**2 * (abs(j) + 1) ** 2)
    assert found.upper == pytest.approx(rademacher_capacity(x, 2.0**j, delta=share).upper)
    assert found.upper > rademacher_capacity(x, norm, delta=0.1).upper
    assert f"2^{j}" in found.origin


def test_the_shares_of_all_norms_stay_below_delta():
    shares = [3 / (math.pi * (abs(j) + 1)) ** 2 for j in range(-20_000, 20_001)]
    assert 0.69 < math.fsum(shares) < 1


def test_the_path_norm_of_a_network():
    network = TwoLayer([[3.0, 4.0], [0.0, 2.0]], [-2.0, 1.0])
    assert path_norm(network) == pytest.approx((10 + 2) / math.sqrt(2))
    x = np.random.default_rng(0).standard_normal((50, 2))
    size, sums = path_norm(network), np.abs(network(x))
    assert (sums <= size * np.linalg.norm(x, axis=1)).all()


def test_path_norms_at_both_ends_of_float64():
    assert path_norm(TwoLayer(np.full((1, 2), 1e307), [1.0])) == pytest.approx(math.sqrt(2) * 1e307)
    # The sum of the four overflows, half of it does not.
    assert path_norm(TwoLayer(np.full((4, 1), 8e307), np.ones(4))) == pytest.approx(1.6e308)
    assert 0 < path_norm(TwoLayer([[1e-200]], [1e-200])) < 1e-320
    assert path_norm(TwoLayer([[1e-200]], [0.0])) == 0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: rademacher_complexity([1.0], 1.0), ValueError, "two dimensions"),
        (lambda: rademacher_complexity([[math.nan]], 1.0), ValueError, "NaN"),
        (lambda: rademacher_complexity([[1.0]], -1.0), ValueError, "norm must be"),
        (lambda: rademacher_complexity([[1e300]], 1e300), ValueError, "beyond the range"),
        (lambda: rademacher_capacity([[1.0]], 1.0, delta=1.0), ValueError, "delta is a prob"),
        (lambda: rademacher_capacity([[1.0]], 1.0, lipschitz=0.0), ValueError, "lipschitz"),
        (lambda: rademacher_capacity([[1.0]], 1.0, largest_loss=-1), ValueError, "largest_loss"),
        (lambda: rademacher_capacity([[1e200]], 1e50, lipschitz=1e99), ValueError, "capacity is"),
        (lambda: learned_rademacher_capacity([[1.0]], 0.0), ValueError, "norm must be positive"),
        (lambda: learned_rademacher_capacity([[1.0]], 1.7e308), ValueError, "beyond the powers"),
        (lambda: path_norm(np.ones(3)), TypeError, "must be a TwoLayer"),
        (lambda: path_norm(TwoLayer(np.full((2, 2), 1e308), [1e10, 1])), ValueError, "path norm"),
        (lambda: path_norm(TwoLayer(np.full((2, 2), 1.7e308), [1, 1])), ValueError, "path norm"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
