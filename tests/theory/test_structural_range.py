"""The structural model where float64 is short of digits or range: against 400 decimal digits."""

import warnings
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, logit, ndtr
from scipy.stats import norm

from theory import Domain, StructuralModel, structural_answer, structural_model, structural_risk
from theory import structural_sample as sample
from theory.structural_answers import ANSWERS

CONTENT = (1.1, -0.4)
TRAINED = (
    Domain(0.3, (0.5, 1.5, 1.0), (1.0, -1.0, 0.3), 0.8),
    Domain(0.6, (1.2, 0.7, 2.0), (-0.5, 0.2, 0.0), 0.2),
    Domain(0.5, (0.9, 0.9, 2.0), (0.0, 2.0, 0.0), -0.3),
)
UNSEEN = Domain(0.8, (1.4, 0.6, 1.1), (1.5, 0.5, 0.7), -0.9)
SHARES = (0.2, 0.5, 0.3)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def moved(model, shift=0.0, scale=1.0):
    """All domains in another unit and about another origin."""

    def of(d):
        return Domain(d.label_rate, scale * d.scale, scale * d.shift + shift, d.nuisance)

    members = tuple(of(d) for d in model.domains)
    return StructuralModel(model.content, members, of(model.unseen), model.weights)


def decimal_law(domain, content, normalised=False):
    """(π, a, b, m) of a domain in Decimal numbers."""
    rate = Decimal(float(domain.label_rate))
    m = [Decimal(content[0]), Decimal(content[1]) + Decimal(domain.nuisance), Decimal(0)]
    if not normalised:
        return rate, [*map(Decimal, domain.scale)], [*map(Decimal, domain.shift)], m
    tau = [(1 + 4 * rate * (1 - rate) * mj**2).sqrt() for mj in m]
    shift = [(1 - 2 * rate) * mj / t for mj, t in zip(m, tau, strict=True)]
    return rate, [1 / t for t in tau], shift, m


def decimal_answer(model, answer, x):
    """P(Y = 1 | x) by the definitions, from densities of 400 digits."""
    shares, laws = [*map(Decimal, map(float, model.weights))], []
    point = [*map(Decimal, x)]
    if answer in ("bayes", "do_f"):
        u = model.unseen
        known = Domain(0.5, u.scale, u.shift) if answer == "do_f" else u
        shares, laws = [Decimal(1)], [decimal_law(known, model.content)]
    elif answer == "do_s":
        laws = [decimal_law(d, model.content, True) for d in model.domains]
        _, a, b, _ = decimal_law(model.unseen, model.content)
        _, scale, shift, _ = decimal_law(model.unseen, model.content, True)
        point = [(p - bj) / aj * s + t for p, aj, bj, s, t in zip(point, a, b, scale, shift)]  # noqa: B905
    else:
        laws = [decimal_law(d, model.content) for d in model.domains]
    joint = []
    for rate, a, b, m in laws:
        v = [(p - bj) / aj for p, aj, bj in zip(point, a, b, strict=True)]
        size = a[0] * a[1] * a[2]
        for label, share in ((1, rate), (-1, 1 - rate)):
            square = sum((vj - label * mj) ** 2 for vj, mj in zip(v, m, strict=True))
            joint.append(share * (-square / 2).exp() / size)
    one, none = joint[::2], joint[1::2]
    if answer == "backdoor":
        return sum(w * p / (p + q) for w, p, q in zip(shares, one, none, strict=True))
    up, down = (sum(w * p for w, p in zip(shares, side, strict=True)) for side in (one, none))
    return up / (up + down)


def assert_exact(model, x, tolerance):
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 400, MIN_EMIN, MAX_EMAX
        for answer in ANSWERS:
            wanted = [float(decimal_answer(model, answer, point)) for point in x]
            found = structural_answer(model, answer, x)
            np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance, err_msg=answer)


MODEL = StructuralModel(CONTENT, TRAINED, UNSEEN, SHARES)
NEAR = np.random.default_rng(0).normal(scale=1.5, size=(8, 3))


@pytest.mark.parametrize("shift", [0.0, 1e6, -1e10, 1e13])
@pytest.mark.parametrize("scale", [1.0, 1e160, 1e-160])
def test_answers_are_exact_about_any_origin_and_in_any_unit(shift, scale):
    # Log odds of a few tens of roundings; what the numbers handed in hold is taken as it is.
    assert_exact(moved(MODEL, shift * scale, scale), scale * (NEAR + shift), 1e-12)


@pytest.mark.parametrize("size", [1e4, 1e7, 1e8])
def test_answers_are_exact_far_out(size):
    # All domains share feature 3 in the first model, in the second only two of the three do.
    alike = tuple(
        Domain(d.label_rate, (*d.scale[:2], 2.0), (*d.shift[:2], 0.0), d.nuisance) for d in TRAINED
    )
    for domains in (alike, TRAINED):
        x = NEAR.copy()
        x[:, 2] = size * np.where(np.arange(len(x)) % 2, 1, -1)
        assert_exact(StructuralModel(CONTENT, domains, UNSEEN, SHARES), x, 1e-12)
    # In all directions answers are 0 and 1, or Eq. (20)'s average of them.
    assert_exact(MODEL, size * NEAR, 1e-12)


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_feature_that_says_nothing_changes_nothing_up_to_1e99(answer):
    model = structural_model("shift", 0.0)
    for far in (0.0, 1e7, -1e30, 1e99):
        # σ(2 · 1.5 · 0.3)
        found = structural_answer(model, answer, [[0.3, 0.0, far]])
        assert found == pytest.approx(1 / (1 + np.exp(-0.9)), abs=1e-15)
    with pytest.raises(
        ValueError, match=r"1e\+100 standard deviations from a domain, first in row 1"
    ):
        structural_answer(model, answer, [[0.0, 0.0, 0.0], [0.3, 0.0, 1e300]])


PAIR = StructuralModel(CONTENT, TRAINED[1:], UNSEEN, (0.3, 0.7))
RISKS = [(answer, None) for answer in ANSWERS] + [("do_s", 4)]


@pytest.mark.parametrize(("answer", "n"), RISKS)
@pytest.mark.parametrize("shift", [-1e6, 1e10])
def test_risks_do_not_depend_on_the_origin(answer, n, shift):
    for model in (PAIR, structural_model("shift", 2.0, 2), structural_model("label shift", 0.3)):
        there = moved(model, shift)
        here = moved(there, -shift)  # exact: what the sums have left of each shift
        a, b = structural_risk(there, answer, n), structural_risk(here, answer, n)
        assert abs(a.value - b.value) <= min(a.error, b.error)
        assert a.error == pytest.approx(b.error, rel=1e-3, abs=1e-12)


@pytest.mark.parametrize(("answer", "n"), RISKS)
@pytest.mark.parametrize("power", [40, -530, 660])
def test_risks_do_not_depend_on_the_unit(answer, n, power):
    for model in (PAIR, structural_model("feature scales", 0.4, 2)):
        a, b = (
            structural_risk(moved(model, 0.0, 2.0**power), answer, n),
            structural_risk(model, answer, n),
        )
        assert abs(a.value - b.value) <= min(a.error, b.error)


def test_the_common_shift_of_a_known_risk():
    for c in (0.0, 1e6, 1e8, 1e10):
        train = (Domain(shift=(c - 1, c, c)), Domain(0.5, (1.2, 1, 1), (c + 1, c, c)))
        model = StructuralModel((1.5, 0.0), train, Domain(shift=(c + 1.5, c, c)))
        risk = structural_risk(model, "observational")
        assert risk.value == pytest.approx(0.2922602, abs=1e-7) and risk.error < 1e-12


@pytest.mark.parametrize("far", [1e6, 1e10])
def test_a_threshold_whose_parts_cancel_states_what_their_rounding_costs(far):
    """w·b is exact in whole numbers of which sums in float64 lose the last digits."""
    content = (1 / 3, 1 / 7)
    train = Domain(shift=(3 * far, 0.0, 0.0))
    unseen = Domain(shift=(0.0, 7 * far, 0.0))
    risk = structural_risk(StructuralModel(content, (train,), unseen), "observational")
    # The offset −2 far + 2 far is nothing but the rounding of 1/3 and 1/7.
    assert risk.error > 1e-17 * far and risk.error < 1e-14 * far
    with localcontext() as context:
        context.prec = 60
        exact = -6 * Decimal(content[0]) * Decimal(far) + 14 * Decimal(content[1]) * Decimal(far)
    m, size = np.array(content), 2 * np.hypot(*content)
    mean, at = 2 * m @ m, float(exact)
    wanted = 0.5 * ndtr(-(at + mean) / size) + 0.5 * ndtr((at - mean) / size)
    assert abs(risk.value - wanted) <= risk.error


@pytest.mark.parametrize("apart", [3.0, 30.0, 300.0, 1e6])
@pytest.mark.parametrize("middle", [0.0, 0.013, 0.3])
def test_the_error_covers_a_step_between_domains_that_the_rule_does_not_see(apart, middle):
    """Far apart in feature 2 the sign of V_2 − middle says which domain a point is like."""
    rates, delta, rate = (0.2, 0.9), 1.5, 0.6
    train = tuple(
        Domain(r, shift=(0, middle + side, 0))
        for r, side in zip(rates, (-apart, apart), strict=True)
    )
    model = StructuralModel((delta, 0.0), train, Domain(rate))
    risk = structural_risk(model, "observational")

    def integrand(v2):
        one = expit(2 * apart * (v2 - middle))  # P(domain 2 | v2)
        move = logit(one * rates[1] + (1 - one) * rates[0]) / (2 * delta)
        wrong = rate * norm.cdf(-move - delta) + (1 - rate) * norm.cdf(move - delta)
        return wrong * norm.pdf(v2)

    near = middle + np.array([-40, -4, -1, 0, 1, 4, 40]) / apart
    ends = sorted({-9.0, 9.0, *(p for p in near if abs(p) < 9)})
    exact = sum(quad(integrand, *pair, epsabs=1e-13)[0] for pair in pairwise(ends))
    assert abs(risk.value - exact) <= risk.error + 1e-11
    assert risk.error < (1e-12 if apart == 3.0 else 0.02)


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_domain_of_weight_nothing_is_as_if_it_were_not_there(answer):
    # It would be beyond the quadrature, and its law unlike the others.
    with_it = StructuralModel(
        CONTENT, (Domain(0.9, (1e-9, 1, 1), (5.0, 0, 0), 2.0), *TRAINED[:2]), UNSEEN, (0, 0.4, 0.6)
    )
    without = StructuralModel(CONTENT, TRAINED[:2], UNSEEN, (0.4, 0.6))
    found, wanted = (structural_answer(m, answer, NEAR) for m in (with_it, without))
    np.testing.assert_array_equal(found, wanted)
    assert structural_risk(with_it, answer) == structural_risk(without, answer)
    assert structural_risk(with_it, "do_s", 3) == structural_risk(without, "do_s", 3)


def test_the_largest_models_that_are_made_have_finite_answers():
    most = {"shift": 900.0, "confounded": 5e39, "feature scales": 90.0}
    cases = [(name, t, separation) for name, t in most.items() for separation in (1e-40, 1.5)]
    for case in [*cases, ("shift", 1.0, 1e40), ("confounded", 5e39, 1e40)]:
        scenario, strength, separation = case
        model = structural_model(scenario, strength, 4, separation)
        x, _ = sample(model.unseen, model.content, 5, np.random.default_rng(0))
        for answer in ANSWERS:
            assert np.isfinite(structural_answer(model, answer, x)).all()
        for answer in ("bayes", "do_f"):
            assert 0 <= structural_risk(model, answer).value <= 0.5 + 1e-12


def draw(n):
    return sample(UNSEEN, CONTENT, n, np.random.default_rng(0))


WORDS = np.array(["shift", "x"])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: structural_model("shift", 1.0, 4, 1e300), "separation must be at most 1e.40"),
        (lambda: structural_model("shift", 3000), "strength of shift must be at most 900"),
        (lambda: structural_model("feature scales", 3000), "strength of feature scales must be at"),
        (lambda: structural_model("confounded", 1e100), "strength of confounded must be at most"),
        (lambda: structural_model("shift", 1.0, 10**12), "at most 1000 domains"),
        (lambda: structural_model("shift", 1.0, 10**5000), "at most 1000 domains"),
        (lambda: structural_model(WORDS, 1.0), "unknown scenario a ndarray: choose from shift"),
        (lambda: structural_model([[1], [2, 3]], 1.0), "unknown scenario a list: choose from"),
        (lambda: draw(10**12), "more points than the .* hold: draw at most"),
        (lambda: draw(10**30), "more points than the .* hold: draw at most"),
        (lambda: draw(10**5000), "more points than the .* hold: draw at most"),
        (lambda: Domain(nuisance=1e60), "nuisance must be at most 1e.40"),
        (lambda: Domain(scale=(1.0, 1e201, 1.0)), "scale must be at most 1e.200"),
        (lambda: Domain(scale=(1.0, 1e-300, 1.0)), "scale must be at least 1e-200"),
        (lambda: Domain(shift=(0.0, -1e201, 0.0)), "shift must be at most 1e.200"),
        (lambda: StructuralModel((0.0, -1e41), TRAINED, UNSEEN), "content must be at most 1e.40"),
        (
            lambda: StructuralModel(CONTENT, [Domain(scale=(1e-150, 1, 1))], UNSEEN),
            "scales differ by a factor of more than 1e.100",
        ),
        (
            lambda: StructuralModel(CONTENT, [Domain(shift=(1e150, 0, 0))], UNSEEN),
            "shifts differ by more than 1e.100",
        ),
    ],
)
def test_what_float64_or_memory_cannot_hold_is_refused_in_the_caller_s_words(make, words):
    with pytest.raises(ValueError, match=words) as refusal:
        make()
    assert len(str(refusal.value)) < 250 and str(refusal.value).endswith(".")
