"""The structural model: its laws against draws, its answers against densities by SciPy."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from theory import Domain, StructuralModel, structural_answer, structural_model, structural_sample
from theory.scenarios import SCENARIOS
from theory.structural_answers import ANSWERS

CONTENT = (1.1, -0.4)
TRAINED = (
    Domain(0.3, (0.5, 1.5, 1.0), (1.0, -1.0, 0.3), 0.8),
    Domain(0.6, (1.2, 0.7, 2.0), (-0.5, 0.2, 0.0), 0.2),
    Domain(0.5, (0.9, 0.9, 0.4), (0.0, 2.0, -1.0), -0.3),
)
UNSEEN = Domain(0.8, (2.0, 0.6, 1.1), (1.5, 0.5, 0.7), -0.9)
MODEL = StructuralModel(CONTENT, TRAINED, UNSEEN, (0.2, 0.5, 0.3))
X = np.random.default_rng(0).normal(scale=2.0, size=(50, 3))


def density(domain, label, x):
    """P(x | label, domain), by SciPy."""
    m = np.array([CONTENT[0], CONTENT[1] + domain.nuisance, 0.0])
    mean = domain.scale * (2 * label - 1) * m + domain.shift
    return multivariate_normal(mean, np.diag(domain.scale**2)).pdf(x)


def posterior(domain, x):
    one = domain.label_rate * density(domain, 1, x)
    return one / (one + (1 - domain.label_rate) * density(domain, 0, x))


def pooled(domains, weights, x):
    one = sum(w * d.label_rate * density(d, 1, x) for d, w in zip(domains, weights, strict=True))
    none = sum(
        w * (1 - d.label_rate) * density(d, 0, x) for d, w in zip(domains, weights, strict=True)
    )
    return one / (one + none)


def z_of(values, expected):
    """How many standard errors the mean of the values lies from what it should be."""
    return (values.mean(0) - expected) / (values.std(0) / np.sqrt(len(values)))


@pytest.mark.parametrize("domain", [*TRAINED, UNSEEN], ids=["one", "two", "three", "unseen"])
def test_draws_have_the_law_that_the_statistics_say(domain):
    x, y = structural_sample(domain, CONTENT, 100_000, np.random.default_rng(1))
    mean, sd = domain.statistics(CONTENT)
    assert np.abs(z_of(x, mean)).max() < 5
    assert np.abs(z_of((x - mean) ** 2, sd**2)).max() < 5
    assert abs(z_of(y, domain.label_rate)) < 5
    # The normalised domain is that of the normalised points, class by class.
    after = domain.normalised(CONTENT)
    for label in (0, 1):
        own = ((x - mean) / sd)[y == label]
        m = after.direction(CONTENT) * (2 * label - 1)
        assert np.abs(z_of(own, after.scale * m + after.shift)).max() < 5
        assert np.abs(z_of((own - own.mean(0)) ** 2, after.scale**2)).max() < 5


# Posteriors from densities that do not underflow agree to a few roundings.
def test_the_observational_answer_is_bayes_rule_for_the_pooled_domains():
    wanted = pooled(TRAINED, (0.2, 0.5, 0.3), X)
    np.testing.assert_allclose(structural_answer(MODEL, "observational", X), wanted, atol=1e-12)


def test_the_backdoor_answer_is_equation_20():
    wanted = sum(w * posterior(d, X) for d, w in zip(TRAINED, (0.2, 0.5, 0.3), strict=True))
    found = structural_answer(MODEL, "backdoor", X)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert np.abs(found - structural_answer(MODEL, "observational", X)).max() > 0.1


def test_do_s_is_the_pooled_answer_after_each_domain_is_normalised_by_itself():
    normalised = [
        Domain(
            d.label_rate,
            d.scale / d.statistics(CONTENT)[1],
            (d.shift - d.statistics(CONTENT)[0]) / d.statistics(CONTENT)[1],
            d.nuisance,
        )
        for d in TRAINED
    ]
    mean, sd = UNSEEN.statistics(CONTENT)
    wanted = pooled(normalised, (0.2, 0.5, 0.3), (X - mean) / sd)
    np.testing.assert_allclose(structural_answer(MODEL, "do_s", X), wanted, atol=1e-12)


def test_bayes_and_do_f_know_the_unseen_domain_and_do_f_takes_the_nuisance_out():
    found = structural_answer(MODEL, "bayes", X)
    np.testing.assert_allclose(found, posterior(UNSEEN, X), atol=1e-12)
    v = (X - UNSEEN.shift) / UNSEEN.scale
    wanted = 1 / (1 + np.exp(-2 * (v[:, :2] @ CONTENT)))
    np.testing.assert_allclose(structural_answer(MODEL, "do_f", X), wanted, atol=1e-12)


def test_do_f_is_right_on_average_where_no_arrow_enters_from_the_domain():
    cut = Domain(0.5, UNSEEN.scale, UNSEEN.shift, 0.0)
    x, y = structural_sample(cut, CONTENT, 100_000, np.random.default_rng(2))
    p = structural_answer(MODEL, "do_f", x)
    for some in (p < 0.2, (p >= 0.2) & (p < 0.8), p >= 0.8):
        assert abs(z_of(y[some] - p[some], 0.0)) < 5
    elsewhere, label = structural_sample(UNSEEN, CONTENT, 100_000, np.random.default_rng(3))
    assert abs(z_of(label - structural_answer(MODEL, "do_f", elsewhere), 0.0)) > 20


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_where_the_domain_cut_off_is_the_label_s_law_given_f_in_every_domain(scenario):
    """So that, read as F → Y, it is P(Y | do(F)): not where labels or a nuisance are the domain's.

    With D → Y besides F → Y it is not the average Σ_d P(d) P(Y | F, d) either.
    """
    model = structural_model(scenario, 0.4)
    v = X * 0.5
    laws = []
    for d in (*model.domains, model.unseen):
        x = d.scale * v + d.shift
        alone = StructuralModel(model.content, (d,), d)
        known, cut = (structural_answer(alone, answer, x) for answer in ("bayes", "do_f"))
        laws.append(known - cut)
    one_law = scenario in ("shift", "feature scales")
    assert (np.abs(laws).max() < 1e-12) == one_law
    average = np.mean(laws[:-1], axis=0)
    assert (np.abs(average).max() < 1e-12) == one_law


@pytest.mark.parametrize("answer", ["do_s", "do_f", "bayes"])
def test_answers_that_normalise_do_not_see_the_unseen_scale_and_shift(answer):
    other = Domain(UNSEEN.label_rate, (0.3, 4.0, 2.0), (-3.0, 8.0, 1.0), UNSEEN.nuisance)
    moved = StructuralModel(CONTENT, TRAINED, other, (0.2, 0.5, 0.3))
    x = other.scale * (X - UNSEEN.shift) / UNSEEN.scale + other.shift
    np.testing.assert_allclose(
        structural_answer(moved, answer, x), structural_answer(MODEL, answer, X), atol=1e-12
    )


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("clients", [1, 4])
def test_at_strength_zero_every_answer_is_the_same(scenario, clients):
    model = structural_model(scenario, 0.0, clients)
    first, *others = (structural_answer(model, answer, X) for answer in ANSWERS)
    for other in others:
        np.testing.assert_allclose(other, first, atol=1e-12)


def test_with_one_training_domain_pooling_and_adjusting_are_one():
    model = StructuralModel(CONTENT, TRAINED[:1], UNSEEN)
    found = structural_answer(model, "observational", X)
    np.testing.assert_allclose(found, structural_answer(model, "backdoor", X), atol=1e-12)
    np.testing.assert_allclose(found, posterior(TRAINED[0], X), atol=1e-12)


def test_a_point_far_away_has_an_answer_and_no_warning():
    far = np.array([[1e6, -1e6, 1e6], [-1e8, 1e8, 0.0]])
    for answer in ANSWERS:
        assert np.isfinite(structural_answer(MODEL, answer, far)).all()


def test_the_scenarios_differ_in_one_thing_each():
    for scenario, strength in zip(SCENARIOS, (1.0, 0.4, 1.0, 0.5), strict=True):
        model = structural_model(scenario, strength)
        members = [*model.domains, model.unseen]
        differ = {
            "shift": len({d.shift.tobytes() for d in members}) > 1,
            "label shift": len({d.label_rate for d in members}) > 1,
            "confounded": len({d.nuisance for d in members}) > 1,
            "feature scales": len({tuple(d.scale / d.scale[0]) for d in members}) > 1,
        }
        assert differ == {name: name == scenario for name in SCENARIOS}
        assert np.linalg.norm(model.content) == pytest.approx(1.5)
    assert structural_model("label shift", 0.4).unseen.label_rate == pytest.approx(0.9)
    confounded = structural_model("confounded", 1.0)
    assert all(d.nuisance > 0 for d in confounded.domains) and confounded.unseen.nuisance == -1.0


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Domain(0.0), ValueError, "strictly between 0 and 1"),
        (lambda: Domain(1.0), ValueError, "strictly between 0 and 1"),
        (lambda: Domain(float("nan")), ValueError, "strictly between 0 and 1"),
        (lambda: Domain("half"), TypeError, "label_rate must be one real number"),
        (lambda: Domain(0.5, (1.0, 1.0)), ValueError, "scale has 2 entries"),
        (lambda: Domain(0.5, (1.0, 0.0, 1.0)), ValueError, "scale must be positive"),
        (lambda: Domain(0.5, shift=(0.0, np.inf, 0.0)), ValueError, "NaN or infinity"),
        (lambda: Domain(nuisance=np.inf), ValueError, "nuisance must be finite"),
        (lambda: StructuralModel(CONTENT, (), UNSEEN), ValueError, "at least one Domain"),
        (lambda: StructuralModel(CONTENT, 3, UNSEEN), ValueError, "at least one Domain"),
        (lambda: StructuralModel(CONTENT, TRAINED, None), TypeError, "must be a Domain"),
        (lambda: StructuralModel((0.0, 0.0), TRAINED, UNSEEN), ValueError, "not both 0"),
        (lambda: StructuralModel((1.0,), TRAINED, UNSEEN), ValueError, "two numbers"),
        (lambda: StructuralModel(CONTENT, TRAINED, UNSEEN, (0.5, 0.5)), ValueError, "2 weights"),
        (lambda: StructuralModel(CONTENT, TRAINED, UNSEEN, (1, 1, 1)), ValueError, "sum to 3"),
        (lambda: structural_model("drift", 1.0), ValueError, "unknown scenario 'drift'"),
        (lambda: structural_model("shift", -1.0), ValueError, "not negative"),
        (lambda: structural_model("shift", "big"), TypeError, "strength must be one real"),
        (lambda: structural_model("label shift", 0.5), ValueError, "at ½ it has one label"),
        (lambda: structural_model("shift", 1.0, 0), ValueError, "at least 1 domain"),
        (lambda: structural_model("shift", 1.0, 2.0), ValueError, "at least 1 domain"),
        (lambda: structural_model("shift", 1.0, 4, 0.0), ValueError, "separation must be positive"),
        (lambda: structural_answer(MODEL, "do_x", X), ValueError, "unknown answer 'do_x'"),
        (lambda: structural_answer(MODEL, 3, X), ValueError, "unknown answer 3"),
        (lambda: structural_answer(None, "do_s", X), TypeError, "must be a StructuralModel"),
        (lambda: structural_answer(MODEL, "do_s", X[:, :2]), ValueError, "2 features"),
        (lambda: structural_answer(MODEL, "do_s", X[0]), ValueError, "two dimensions"),
        (lambda: structural_answer(MODEL, "do_s", X * np.nan), ValueError, "NaN or infinite"),
        (
            lambda: structural_sample(UNSEEN, CONTENT, 0, np.random.default_rng(0)),
            ValueError,
            "1 p",
        ),
        (lambda: structural_sample(UNSEEN, CONTENT, 1, 0), TypeError, "must be a Generator"),
        (
            lambda: structural_sample(MODEL, CONTENT, 1, np.random.default_rng(0)),
            TypeError,
            "domain must be a Domain",
        ),
    ],
)
def test_bad_input_is_refused_with_advice(make, error, words):
    with pytest.raises(error, match=words):
        make()
