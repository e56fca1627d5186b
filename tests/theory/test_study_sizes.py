"""Sizes of the studies on a user's points: sizes and draws that exist, and what is left out."""

import itertools
import math

import numpy as np
import pytest

from theory.data import Points
from theory.studies import ALPHAS, STUDIES, convergence_plan, describe, principal
from theory.studies.points import choose, whiten
from theory.studies.sizes import MOST_EIGENVALUES, comparison_sizes, possible_draws


def points(counts, dimension, seed=0, names=None):
    """Clients of these sizes with means of their own."""
    random = np.random.default_rng(seed)
    names = names or [f"c{k}" for k in range(len(counts))]
    x = random.standard_normal((sum(counts), dimension))
    client = np.repeat(names, counts)
    return Points(x + (client == names[0])[:, None], client, "mine", "0" * 64)


def generators(*purpose):
    return np.random.default_rng([sum(map(ord, str(part))) for part in purpose])


@pytest.mark.parametrize(
    "counts", [(2, 3), (5,), (3,) * 30, (4, 4), (743,) * 4, (2, 900), (9,) * 70]
)
@pytest.mark.parametrize("most", [250, 800])
def test_sizes_exist_are_affordable_and_can_be_drawn_differently(counts, most):
    client = np.repeat(np.arange(len(counts)), counts)
    sizes = comparison_sizes(counts, most)
    for (clients, samples), draws in sizes.items():
        assert 2 <= samples <= min(counts) and 1 <= clients <= len(counts)
        assert clients * samples <= most and 2 <= draws <= 20
        choose(np.random.default_rng(0), client, clients, samples)
    assert len(sizes) <= 14


def test_a_large_federation_gets_sizes_like_those_of_the_digits():
    sizes = comparison_sizes((743,) * 4, 800)
    assert {(2, 50), (3, 50), (4, 50), (4, 10), (4, 25), (4, 100), (4, 200)} <= set(sizes)
    assert set(sizes.values()) == {20}


@pytest.mark.parametrize("counts", [(2, 2), (2,), (2, 3), (3, 3, 3), (3, 4)])
def test_possible_draws_counts_no_more_than_there_are(counts):
    groups = [[(k, row) for row in range(count)] for k, count in enumerate(counts)]
    for clients, samples in itertools.product(range(1, len(counts) + 1), range(1, min(counts) + 1)):
        different = sum(
            math.prod(math.comb(len(group), samples) for group in chosen)
            for chosen in itertools.combinations(groups, clients)
        )
        found = possible_draws(counts, clients, samples)
        assert 1 <= found <= min(different, 20)
        if len(set(counts)) == 1:
            assert found == min(different, 20)


def test_the_dimension_is_one_in_which_every_client_is_whitened():
    given = points((30, 45, 60), 40)
    found = describe(given, 20)
    assert found.dimension == 15 and found.sentences == ()
    whiten(principal(given.x, 15), given.client)
    assert describe(points((300, 45), 7), 20).dimension == 7
    flat = points((30, 30), 6)
    flat.x[:30, 3:] = 2.0
    found = describe(flat, 20)
    assert 2 <= found.dimension <= 3
    whiten(principal(flat.x, found.dimension), flat.client)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (points((40, 40), 1), "one dimension"),
        (points((3, 40), 5, names=["few", "many"]), "client 'few' has 3 points"),
        (points((2, 2), 2), "'c0' has 2 points"),
    ],
)
def test_what_cannot_be_whitened_is_left_out_in_words(given, words):
    found = describe(given, 20)
    assert found.dimension == 0
    assert any(words in sentence and "left out" in sentence for sentence in found.sentences)
    for preset in ("quick", "default"):
        plan = convergence_plan(preset, found.source, found)
        own = [study.config for study in plan if study.config["data"] == found.source]
        assert {config["study"] for config in own} <= {"corollary", "spectrum"}
        assert {config["study"] for config in own} >= {"spectrum"}
        assert {"corollary", "regime", "dynamics"} <= {
            s.config["study"] for s in plan if s.config["data"] == "gaussian"
        }


def test_what_is_said_to_be_compared_is_what_is_compared():
    given = points((3, 40), 5)
    found = describe(given, 20)
    (sentence,) = [text for text in found.sentences if "are compared" in text]
    compared, left_out = sentence.split(";", 1)
    data, metrics, studies = (given.x, given.client), set(), set()
    for study in convergence_plan("default", found.source, found):
        if study.config["data"] == found.source:
            studies.add(study.config["study"])
            run = STUDIES[study.config["study"]](study.config, data, generators, lambda _: None)
            metrics |= {row["metric"] for row in run}
    for words in ("smallest eigenvalue", "largest eigenvalue", "condition"):
        said = words.split()[0] in compared and words.split()[-1] in compared
        assert said == (words.replace(" ", "_") in metrics), metrics
    for words, study in (
        ("exact kernel", "exact"),
        ("readings", "readings"),
        ("regimes", "regime"),
    ):
        assert (words in left_out) == (study not in studies)


def test_points_on_one_line_are_named_by_their_places():
    given = points((20, 20), 5)
    given.x[7] = given.x[3]
    doubled = next(iter(describe(given, 20).sentences))
    assert "row 3 and row 7" in doubled and "counted from 0" in doubled
    lines = np.concatenate([np.arange(2, 22)] * 2)
    files = {"c0": "c0.csv", "c1": "c1.csv"}
    placed = Points(given.x, given.client, "mine", "0" * 64, files, lines)
    sentence = next(iter(describe(placed, 20).sentences))
    assert "c0.csv line 5 and c0.csv line 9" in sentence and "counted" not in sentence


def test_the_headline_says_what_was_read():
    headline = describe(points((5, 9, 1200), 3), 20).headline
    for words in ("points of mine", "1,214 points", "3 clients", "5 to 1,200 each", "d = 3"):
        assert words in headline


def test_one_client_and_many_points_are_said():
    assert "one client only" in " ".join(describe(points((30,), 3), 20).sentences)
    found = describe(points((MOST_EIGENVALUES, 5), 2), 20)
    assert "all eigenvalues is left out" in " ".join(found.sentences)
    plan = convergence_plan("quick", found.source, found)
    (config,) = [study.config for study in plan if study.config["study"] == "spectrum"]
    assert config["eigenvalues"] is False
    small = describe(points((30, 30), 3), 20)
    for study in convergence_plan("quick", small.source, small):
        assert study.config.get("eigenvalues", True)


def test_without_eigenvalues_the_comparison_is_still_there():
    given = points((8, 9), 3)
    whole = {"study": "spectrum", "data": "own-mine", "seed": 0}
    data = given.x, given.client
    full = list(STUDIES["spectrum"](whole, data, generators, lambda _: None))
    short = list(
        STUDIES["spectrum"]({**whole, "eigenvalues": False}, data, generators, lambda _: None)
    )
    assert short == [row for row in full if row["metric"] != "eigenvalue"] != full


@pytest.mark.parametrize("preset", ["quick", "default", "paper"])
@pytest.mark.parametrize("counts", [(40, 55, 30), (2, 2), (5, 4), (3,) * 30, (30,), (8,) * 4])
def test_every_plan_has_labels_of_its_own_and_sizes_that_exist(preset, counts):
    found = describe(points(counts, 6), 20)
    plan = convergence_plan(preset, found.source, found)
    assert len({study.label for study in plan}) == len(plan)
    assert all(study.seconds > 0 for study in plan)
    for config in (study.config for study in plan if study.config["data"] == found.source):
        assert config.get("clients", 1) <= len(counts)
        assert config.get("samples", 1) <= min(counts)
        assert config.get("dimension", 1) <= 6
        if config["study"] == "dynamics":
            assert config["alpha"] in ALPHAS


def test_a_federation_is_planned_as_before():
    plan = convergence_plan("quick", "digits")
    (drawn,) = [
        study.config
        for study in plan
        if study.config["study"] == "corollary" and study.config["data"] == "digits"
    ]
    assert drawn["sizes"] == [(2, 50), (3, 50), (4, 50), (4, 10), (4, 25)] and drawn["draws"] == 20
    (whole,) = [study for study in plan if study.config["study"] == "spectrum"]
    assert whole.label == "spectra, all points"
    assert whole.config == {"study": "spectrum", "data": "digits", "seed": 0}


def test_directions_of_few_points_in_many_features_are_those_of_the_covariance():
    x = np.random.default_rng(3).standard_normal((12, 40)) * np.geomspace(9, 1, 40)
    reduced = principal(x, 5)
    centred = x - x.mean(axis=0)
    values, directions = np.linalg.eigh(centred.T @ centred)
    for k in range(5):
        expected = x @ directions[:, -1 - k]
        sign = np.sign(expected @ reduced[:, k])
        # Gaps of the values are above 1 %: directions of rounding 1e-14 err by 1e-12.
        np.testing.assert_allclose(reduced[:, k], sign * expected, atol=1e-10 * values[-1] ** 0.5)
    with pytest.raises(ValueError, match="fewer than 12 directions"):
        principal(x, 12)
