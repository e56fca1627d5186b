"""The study of Corollary III.6 with the exact kernel, over dimension and ridge."""

import numpy as np
import pytest

from empirical.seeds import numpy_generator
from theory.bn_kernel import bn_gram_matrix
from theory.centring import centre
from theory.covariances import client_covariances
from theory.studies.exact import exact
from theory.studies.points import choose, gaussian_clients, leading_directions

CONFIG = {
    "study": "exact",
    "data": "gaussian",
    "kept": [3, 5],
    "ridges": [0.0, 0.1],
    "clients": 2,
    "samples": 4,
    "dimension": 6,
    "seed": 0,
}


def rows(config, data=None):
    seen = []
    found = list(exact(config, data, numpy_generator, seen.append))
    assert seen == sorted(seen) and seen[-1] == 1.0
    return found


def test_every_dimension_and_ridge_is_certified_and_all_enclosures_are_ordered():
    found = rows(CONFIG)
    verdicts = [(r["round"], r["parameter"], r["note"]) for r in found if r["metric"] == "exact"]
    assert verdicts == [(k, p, "certified") for k in (3, 5) for p in (0.0, 0.1)]
    for row in found:
        if "lower" in row:
            assert row["lower"] <= row["value"] <= row["upper"]


def test_the_recorded_eigenvalue_is_that_of_the_kernel_of_the_same_points():
    found = rows({**CONFIG, "kept": [5], "ridges": [0.1]})
    generator = numpy_generator(0, "exact", "gaussian")
    x, client = gaussian_clients(generator, 2, 743, 6)
    z = centre(x @ leading_directions(x, 5)[1], client)
    some = choose(generator, client, 2, 4)
    own = client_covariances(z, client, 0.1)
    kernel = bn_gram_matrix(z[some], client[some], own)
    least = np.linalg.eigvalsh(kernel.matrix)[0]
    (row,) = [r for r in found if r["metric"] == "exact_smallest" and r["variant"] == "G"]
    assert row["lower"] <= least <= row["upper"]


def test_singular_covariances_of_different_ranges_are_recorded_and_not_guessed():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((80, 4))
    x[:40, 3] = 0.0
    client = np.repeat(["a", "b"], 40)
    config = {**CONFIG, "data": "own", "kept": [4], "samples": 3}
    found = rows({**config, "ridges": [0.0, 0.01]}, (x, client))
    refused = [r for r in found if r["metric"] == "exact_refused"]
    assert [r["parameter"] for r in refused] == [0.0]
    assert "ridge" in refused[0]["note"]
    assert [r["parameter"] for r in found if r["metric"] == "exact"] == [0.01]


def test_more_directions_than_there_are_is_refused():
    with pytest.raises(ValueError, match="6 dimensions"):
        rows({**CONFIG, "kept": [7]})


def test_with_one_client_both_kernels_are_one_matrix_and_the_claim_is_certified():
    x = np.random.default_rng(0).standard_normal((30, 5))
    config = {**CONFIG, "data": "own", "clients": 1}
    found = rows(config, (x, np.repeat("a", 30)))
    verdicts = [(r["value"], r["note"]) for r in found if r["metric"] == "exact"]
    assert verdicts == [(1.0, "certified")] * 4
