"""What is true of do(S) and do(F), by hand-made models: a stochastic do(F), and a cancellation."""

from itertools import product

import numpy as np
import pytest
from binary_models import BinaryModels
from scipy import stats

import theory


@pytest.mark.parametrize("statistics", ["batch", "population"])
def test_given_the_raw_feature_do_s_is_do_f(statistics):
    """With F = R ⊕ S, P(y | do(s), r) = P(y | do(F := r ⊕ s))."""
    graph = theory.test_graph(statistics=statistics)
    drawn = np.random.default_rng(5).uniform(0.1, 0.9, (6, 2, 2))
    table = {
        "D": drawn[0, 0, 0],
        "X": lambda v: drawn[1, 0][v["D"]],
        "R": lambda v: drawn[2][v["D"], v["X"]],
        "S": lambda v: drawn[3, 0][next(iter(v.values()))],
        "F": lambda v: 1.0 * (v["R"] ^ v["S"]),
        "Y": lambda v: drawn[4, 0][v["F"]],
    }
    models = BinaryModels(graph, tables=table)
    left = models.law("Y", do="S", given="R").squeeze()  # R, S, Y
    right = models.law("Y", do="F").squeeze()  # F, Y
    for r, s in product((0, 1), (0, 1)):
        assert np.allclose(left[r, s], right[r ^ s], atol=1e-14)
    assert not np.allclose(right[0], right[1])


def test_the_cancellation_that_no_graph_shows():
    """R = D ⊕ Z and S = D: F = R ⊕ S = Z has one law in all domains, along an open path."""
    graph = theory.test_graph(statistics="population")
    noise = 0.3
    table = {
        "D": 0.4,
        "X": lambda v: abs(v["D"] - noise),  # D ⊕ Z
        "R": lambda v: 1.0 * v["X"],  # so that D → R is idle
        "S": lambda v: 1.0 * v["D"],
        "F": lambda v: 1.0 * (v["R"] ^ v["S"]),
        "Y": lambda v: np.array([0.2, 0.9])[v["F"]],
    }
    with np.errstate(invalid="ignore"):  # of values that never occur together
        models = BinaryModels(graph, tables=table)
        assert not theory.d_separated(graph, "D", "F")
        of_domain = models.law("F", given="D").squeeze()  # D, F
        assert np.allclose(of_domain, [[1 - noise, noise]] * 2, atol=1e-15)
        labels = models.law("Y", given="D").squeeze()
        assert np.allclose(labels[0], labels[1], atol=1e-15)  # equal label laws are a consequence
        # Assigning each domain its own statistics is not do(S := s) for one s.
        seen = models.law("F", given="S").squeeze()
        done = models.law("F", do="S").squeeze()
    assert np.allclose(seen, [[1 - noise, noise]] * 2, atol=1e-15)
    one = 0.6 * noise + 0.4 * (1 - noise)
    assert np.allclose(done, [[1 - one, one], [one, 1 - one]], atol=1e-15)


def test_one_law_after_normalisation_is_a_location_scale_family():
    points = np.linspace(-2, 2, 41)

    def normalised(law):
        return law.cdf(law.mean() + law.std() * points)

    gaussians = [normalised(stats.norm(m, s)) for m, s in ((0, 1), (3, 0.2), (-5, 7))]
    assert np.allclose(gaussians, gaussians[0], atol=1e-14)
    skewed = [normalised(stats.gamma(k)) for k in (1, 4)]  # one family, of varying shape
    assert np.abs(skewed[0] - skewed[1]).max() > 0.05
    assert np.abs(skewed[0] - gaussians[0]).max() > 0.1


@pytest.mark.parametrize("n", [2, 10, 1000])
def test_a_batch_that_includes_the_sample(n):
    """R_i ~ N(μ, 1), S their mean, F = R_1 − S: P(F | do(s)) and P(F | s) for Gaussian units."""
    to_s, to_f = np.full(n, 1 / n), np.eye(n)[0] - 1 / n
    (var_s, cov), (_, var_f) = np.array([to_s, to_f]) @ np.array([to_s, to_f]).T
    slope = cov / var_s
    assert slope == pytest.approx(0, abs=1e-12)  # F given S = s has one mean for every s
    assert var_f - slope * cov == pytest.approx(1 - 1 / n, abs=1e-12)
    assert to_f.sum() == pytest.approx(0, abs=1e-12)  # and the mean is 0 whatever μ is
    assert np.sqrt(var_s) == pytest.approx(n**-0.5)  # how far s is from μ, the mean under do(s)
