import math

import numpy as np
import pytest

from theory.studies import principal
from theory.studies.points import (
    FULL_SAMPLES,
    choose,
    gaussian_clients,
    unit_covariance_sample,
    whiten,
)

CONFIG = {"seed": 3, "data": "gaussian", "clients": 3, "samples": 5, "dimension": 4}


def generators(*purpose):
    """A stand-in for the seeds of `empirical`: every purpose has a stream of its own."""
    return np.random.default_rng([sum(map(ord, str(part))) for part in purpose])


def test_gaussian_clients_have_condition_ten_in_bases_that_do_not_commute():
    n = 40_000
    x, client = gaussian_clients(np.random.default_rng(0), 3, n, 6)
    assert x.shape == (3 * n, 6) and client.tolist() == [0] * n + [1] * n + [2] * n
    own = [x[client == i] for i in range(3)]
    covariances = [part.T @ part / n for part in own]
    for part, covariance in zip(own, covariances, strict=True):
        # Means and eigenvalues err by about √(λ/n) and λ√(2/n): five and seven times that.
        assert np.abs(part.mean(axis=0)).max() < 5 * math.sqrt(10 / n)
        values = np.linalg.eigvalsh(covariance)
        np.testing.assert_allclose(values, np.geomspace(1, 10, 6), rtol=7 * math.sqrt(2 / n))
    for a, b in ((0, 1), (0, 2), (1, 2)):
        product = covariances[a] @ covariances[b]
        assert np.abs(product - product.T).max() > 1


def test_principal_agrees_with_the_singular_value_decomposition():
    x = np.random.default_rng(1).standard_normal((30, 7)) * np.geomspace(9, 1, 7) + 5
    _, values, right = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    reduced = principal(x, 3)
    for k in range(3):
        expected = x @ right[k]
        sign = np.sign(expected @ reduced[:, k])
        # Singular vectors are conditioned by the gaps of the squared values, here above 10 %.
        np.testing.assert_allclose(reduced[:, k], sign * expected, atol=1e-11 * values[0])


def test_principal_keeps_all_distances_in_all_dimensions():
    x = np.random.default_rng(2).standard_normal((9, 4))
    full = principal(x, 4)
    np.testing.assert_allclose(full @ full.T, x @ x.T, atol=1e-13)


@pytest.mark.parametrize("dimension", [0, 5])
def test_principal_refuses_dimensions_that_are_not_there(dimension):
    with pytest.raises(ValueError, match="have 4 dimensions"):
        principal(np.eye(4), dimension)


def test_principal_refuses_directions_without_variance():
    plane = np.random.default_rng(3).standard_normal((20, 2)) @ np.ones((2, 5))
    with pytest.raises(ValueError, match="span fewer than 3 directions"):
        principal(plane, 3)


def test_whitening_gives_every_client_mean_zero_and_the_identity():
    x, client = gaussian_clients(np.random.default_rng(4), 3, 50, 6)
    order = np.random.default_rng(5).permutation(len(x))
    x, client = x[order] + 3.0 * client[order, None], client[order]
    white = whiten(x, client)
    for i in range(3):
        own = white[client == i]
        np.testing.assert_allclose(own.mean(axis=0), 0, atol=1e-13)
        np.testing.assert_allclose(own.T @ own / len(own), np.eye(6), atol=1e-12)
        # The symmetric root, not just any: W (x − mean) has a symmetric positive W.
        centred = x[client == i] - x[client == i].mean(axis=0)
        root = np.linalg.lstsq(centred, own, rcond=None)[0]
        np.testing.assert_allclose(root, root.T, atol=1e-12)
        assert np.linalg.eigvalsh(root)[0] > 0


@pytest.mark.parametrize("samples", [1, 6])
def test_whitening_refuses_a_singular_covariance_and_names_the_client(samples):
    x, client = gaussian_clients(np.random.default_rng(6), 2, 40, 6)
    keep = (client == 0) | (np.cumsum(client == 1) <= samples)
    names = np.array(["many", "few"])[client]
    with pytest.raises(ValueError, match=f"Client 'few' .* from {samples} points"):
        whiten(x[keep], names[keep])


def test_choose_takes_that_many_of_every_client_and_none_twice():
    client = np.array(["c", "a", "b", "a", "c", "b", "a", "c", "b", "d", "d"] * 3)
    seen = set()
    for seed in range(40):
        rows = choose(np.random.default_rng(seed), client, 3, 4)
        assert len(rows) == len(set(rows.tolist())) == 12
        names, counts = np.unique(client[rows], return_counts=True)
        assert counts.tolist() == [4, 4, 4]
        for name in names:  # together, in the order of the data
            place = np.flatnonzero(client[rows] == name)
            assert place.tolist() == list(range(place[0], place[0] + 4))
            assert (np.diff(rows[place]) > 0).all()
        seen.add(tuple(names.tolist()))
    assert len(seen) == 4  # every choice of three clients occurs


def test_choose_takes_everything_where_everything_is_asked_for():
    client = np.array([1, 0, 1, 0])
    assert choose(np.random.default_rng(0), client, 2, 2).tolist() == [1, 3, 0, 2]


def test_choose_refuses_more_clients_or_samples_than_there_are():
    client = np.array(["a", "a", "a", "b"])
    with pytest.raises(ValueError, match="3 clients were asked for and the data have 2"):
        choose(np.random.default_rng(0), client, 3, 1)
    with pytest.raises(ValueError, match="2 samples a client were asked for and 'b' has 1"):
        choose(np.random.default_rng(0), client, 2, 2)


def test_a_sample_depends_on_its_seed_and_draw_alone():
    first, client = unit_covariance_sample(CONFIG, None, generators, 0)
    assert first.shape == (15, 4) and np.unique(client).tolist() == [0, 1, 2]
    for draw in (1, 2):  # other draws in between change nothing
        other, _ = unit_covariance_sample(CONFIG, None, generators, draw)
        assert np.abs(other - first).min() > 0
    again, _ = unit_covariance_sample(dict(CONFIG), None, generators, 0)
    np.testing.assert_array_equal(again, first)
    moved, _ = unit_covariance_sample({**CONFIG, "seed": 4}, None, generators, 0)
    assert np.abs(moved - first).min() > 0


def test_a_sample_is_white_over_the_full_training_set_not_over_itself():
    everything, client = unit_covariance_sample(
        {**CONFIG, "samples": FULL_SAMPLES}, None, generators, 0
    )
    for i in range(3):
        own = everything[client == i]
        np.testing.assert_allclose(own.T @ own / len(own), np.eye(4), atol=1e-12)
    few, labels = unit_covariance_sample(CONFIG, (everything, client), generators, 0)
    known = {row.tobytes() for row in whiten(everything, client)}
    assert {row.tobytes() for row in few} <= known and len(labels) == 15
