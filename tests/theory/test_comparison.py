import math
import time
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import theory.comparison as comparison
from theory.centring import centre
from theory.comparison import compare_smallest_eigenvalues
from theory.gram import gram_matrix, normalised_gram_matrix

LABELS = np.repeat(["a", "b", "c", "d"], 8)


def cloud(n=32, d=20, seed=0, labels=LABELS):
    return centre(np.random.default_rng(seed).standard_normal((n, d)), labels)


def eigenvalues(matrix, labels):
    """Extremes of a matrix and of its masked version, by plain dense LAPACK."""
    masked = matrix * (labels[:, None] == labels[None, :])
    return np.linalg.eigvalsh(matrix)[[0, -1]], np.linalg.eigvalsh(masked)[[0, -1]]


@pytest.mark.parametrize("kernel", ["printed", "normalised"])
def test_all_four_enclosures_and_the_certificate(kernel):
    x = cloud()
    given = {"alpha": 1.5} if kernel == "printed" else {"scale": 0.7}
    result = compare_smallest_eigenvalues(x, LABELS, kernel=kernel, **given)
    matrix = gram_matrix(x, 1.5) if kernel == "printed" else normalised_gram_matrix(x, 0.7)
    plain, masked = eigenvalues(matrix, LABELS)
    for found, expected in (
        (result.aggregated, plain[0]),
        (result.client_specific, masked[0]),
        (result.largest_aggregated, plain[1]),
        (result.largest_client_specific, masked[1]),
    ):
        # LAPACK's own error is about n u λ_max; the enclosure may be 1e-6 λ wide.
        assert found.widened(1e-13 * plain[1]).contains(float(expected))
        assert found.width < 1.01e-6 * expected
    assert result.verdict == "certified" and result.inequality.verdict == "certified"
    assert result.ratio == pytest.approx(masked[0] / plain[0], rel=1e-6)
    assert result.kernel == kernel


def test_alpha_and_scale_only_rescale():
    x = cloud()
    one = compare_smallest_eigenvalues(x, LABELS)
    three = compare_smallest_eigenvalues(x, LABELS, alpha=3.0)
    true = compare_smallest_eigenvalues(x, LABELS, kernel="normalised", scale=0.5)
    assert three.aggregated.midpoint == pytest.approx(9 * one.aggregated.midpoint)
    assert true.aggregated.midpoint == pytest.approx(one.aggregated.midpoint / (20 * 0.5))
    assert one.client == three.client == true.client
    assert one.ratio == pytest.approx(true.ratio)


def test_the_driving_client_is_the_one_with_the_smallest_block():
    x = cloud()
    result = compare_smallest_eigenvalues(x, LABELS)
    low = {name: np.linalg.eigvalsh(gram_matrix(x[name == LABELS]))[0] for name in "abcd"}
    assert result.client == min(low, key=low.get)
    assert set(result.driver.clients) == {result.client}
    assert {LABELS[row] for row in result.driver.rows} == {result.client}
    # Interleaved labels: the same points in another order have the same driver.
    order = np.random.default_rng(3).permutation(32)
    mixed = compare_smallest_eigenvalues(x[order], LABELS[order])
    assert mixed.client == result.client
    assert sorted(order[list(mixed.driver.rows)]) == sorted(result.driver.rows)


def test_the_eigenvector_is_named_where_no_pair_is_the_cause():
    x = cloud()
    driver = compare_smallest_eigenvalues(x, LABELS).aggregated_driver
    vector = np.linalg.eigh(gram_matrix(x))[1][:, 0]
    assert driver.angle is None and "no single pair explains it" in driver.sentence
    top = np.argsort(-np.abs(vector)).tolist()
    assert set(driver.rows) == set(top[: len(driver.rows)]) and len(driver.rows) == 3


def near_pair(p, q, angle=1e-3):
    x = cloud()
    ortho = x[q] - (x[q] @ x[p]) / (x[p] @ x[p]) * x[p]
    ortho *= np.linalg.norm(x[p]) / np.linalg.norm(ortho)
    x[q] = 1.3 * (math.cos(angle) * x[p] + math.sin(angle) * ortho)
    return x


def test_a_close_pair_across_clients_hurts_only_G():
    result = compare_smallest_eigenvalues(near_pair(2, 29), LABELS)
    driver = result.aggregated_driver
    assert driver.rows == (2, 29) and driver.clients == ("a", "d") and result.across_clients
    assert driver.angle == pytest.approx(math.degrees(1e-3), rel=1e-6)
    assert "2 and 29" in driver.sentence and "0.0573° apart" in driver.sentence
    assert result.verdict == "certified" and result.ratio > 1e3
    assert set(result.driver.rows) != {2, 29}
    assert "several clients" in str(result)


def test_a_close_pair_within_a_client_drives_both():
    result = compare_smallest_eigenvalues(near_pair(17, 20), LABELS)
    for driver in (result.driver, result.aggregated_driver):
        assert driver.rows == (17, 20) and driver.clients == ("c", "c")
    assert result.client == "c" and not result.across_clients
    assert result.ratio < 3 and result.verdict == "certified"
    assert "0.0573° apart" in result.cause
    assert "several clients" not in str(result)


def test_duplicates_within_a_client_leave_both_singular_and_consistent():
    x = cloud()
    x[11] = 2.0 * x[14]
    result = compare_smallest_eigenvalues(x, LABELS)
    assert result.verdict == "consistent" and "singular" in result.reason
    assert result.client == "b" and result.cause.startswith("singular")
    assert set(result.driver.rows) == {11, 14}
    assert set(result.aggregated_driver.rows) == {11, 14} and not result.across_clients
    for side in (result.aggregated, result.client_specific):
        assert side.lower <= 0 <= side.upper


def test_of_several_duplicates_one_within_a_client_is_named_first():
    x = cloud()
    x[0] = x[31]  # a, d
    x[11] = x[14]  # both b
    driver = compare_smallest_eigenvalues(x, LABELS).aggregated_driver
    assert driver.rows == (11, 14) and "2 such groups in all" in driver.sentence


def test_a_duplicate_across_clients_makes_only_G_singular():
    x = cloud()
    x[11] = x[30]
    result = compare_smallest_eigenvalues(x, LABELS)
    assert result.verdict == "certified" and result.client_specific.lower > 0.1
    assert result.aggregated_driver.sentence.startswith("singular")
    assert set(result.aggregated_driver.rows) == {11, 30} and result.across_clients


def test_one_antipodal_pair_is_no_singularity():
    x = cloud()
    x[11] = -x[14]
    result = compare_smallest_eigenvalues(x, LABELS)
    assert result.aggregated.lower > 0.1 and "singular" not in str(result)


def test_more_antipodal_pairs_than_dimensions_are_a_named_singularity():
    points = np.random.default_rng(1).standard_normal((8, 5))
    x, labels = np.concatenate([points, -points]), np.repeat(["u", "v"], 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = compare_smallest_eigenvalues(x, labels)
    assert result.aggregated.lower <= 0 and "antipodal" in result.aggregated_driver.sentence
    assert result.client_specific.lower > 0 and result.verdict == "certified"


def test_one_client_is_an_identity():
    x = cloud(labels=np.zeros(32))
    result = compare_smallest_eigenvalues(x, np.zeros(32, int))
    assert result.verdict == "certified" and "same matrix" in result.reason
    assert result.client == 0 and not result.across_clients
    assert result.aggregated.midpoint == pytest.approx(result.client_specific.midpoint, rel=1e-6)


def test_one_sample_per_client_gives_the_smallest_diagonal_entry():
    x = np.random.default_rng(2).standard_normal((6, 20))
    result = compare_smallest_eigenvalues(x, list("uvwxyz"))
    entries = (x**2).sum(axis=1) / 2
    assert result.client_specific.midpoint == pytest.approx(entries.min(), rel=1e-6)
    assert result.client == "uvwxyz"[entries.argmin()]
    assert result.driver.rows == (entries.argmin(),) and result.verdict == "certified"


def test_a_single_point():
    result = compare_smallest_eigenvalues([[3.0, 4.0]], ["only"])
    assert result.verdict == "certified" and result.aggregated.contains(12.5)
    assert "only point" in str(result)


def test_uncoupled_clients_are_an_equality_and_only_consistent():
    """On opposite half-lines φ(v·x)φ(v·y) = 0, so that G∞ is block-diagonal itself."""
    equal = compare_smallest_eigenvalues([[1.0], [-2.0]], ["a", "b"])
    assert equal.ratio == pytest.approx(1.0)
    assert equal.verdict == "consistent" and "equal up to" in equal.reason


def test_float32_and_integers_give_what_float64_gives():
    x = np.round(8 * cloud()).astype(np.int32)
    results = [compare_smallest_eigenvalues(x.astype(t), LABELS) for t in ("i4", "f4", "f8")]
    assert len({(r.aggregated.lower, r.client_specific.upper) for r in results}) == 1


@given(
    st.integers(0, 10**6),
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(1, 8),
    st.sampled_from(["printed", "normalised"]),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_never_violated_and_the_largest_eigenvalue_does_not_grow(
    seed, clients, samples, d, kernel, degenerate
):
    rng = np.random.default_rng(seed)
    x, labels = rng.standard_normal((clients * samples, d)), np.arange(clients * samples) % clients
    if degenerate:  # copies, scaled copies and antipodes
        x = x[rng.integers(0, len(x), len(x))] * rng.choice([-2.0, 1.0, 3.0], (len(x), 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = {"alpha": 1.3} if kernel == "printed" else {"scale": 0.6}
        result = compare_smallest_eigenvalues(x, labels, kernel=kernel, **given)
    assert result.verdict != "violated"
    assert result.largest_client_specific.lower <= result.largest_aggregated.upper
    assert result.client in labels and str(result)
    assert all(0 <= row < len(x) for row in result.driver.rows)
    assert {labels[row] for row in result.driver.rows} == {result.client}


def test_a_broken_kernel_is_called_violated(monkeypatch):
    """Blocks that are not those of G∞ (here: shrunk) break the theorem's premise."""
    shrink = comparison.diagonal_blocks
    monkeypatch.setattr(comparison, "diagonal_blocks", lambda k, c: shrink(0.01 * k, c))
    result = compare_smallest_eigenvalues(cloud(), LABELS)
    assert result.verdict == "violated" and "bug" in result.reason


def test_the_text_for_a_terminal():
    lines = str(compare_smallest_eigenvalues(cloud(), LABELS)).splitlines()
    assert lines[0].startswith("Corollary III.6") and "certified" in lines[0]
    assert len(lines) == 7 and all(len(line) < 260 for line in lines)


def test_points_far_from_centred_draw_a_warning_and_nothing_else_does():
    x = cloud()
    with pytest.warns(UserWarning, match=r"Client 'b' is not centred.*theory\.centre"):
        moved = np.repeat(x, 4, axis=0) + np.random.default_rng(0).standard_normal((128, 20)) / 9
        labels = np.repeat(LABELS, 4)
        moved[labels == "b"] += 5.0
        compare_smallest_eigenvalues(moved, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compare_smallest_eigenvalues(x, LABELS)
        compare_smallest_eigenvalues(x[::3], LABELS[::3])  # a sample of centred points


BAD = [
    (dict(x=cloud()[0]), "two dimensions"),
    (dict(x=np.where(np.arange(640).reshape(32, 20) == 45, np.nan, cloud())), "row 2"),
    (dict(x=np.where(np.arange(32)[:, None] == 7, 0.0, cloud())), "row 7 of x is zero"),
    (dict(client=LABELS[:3]), "3 labels"),
    (dict(client=[float("nan"), *LABELS[1:]]), "row 0 is missing"),
    (dict(alpha=0.0), "alpha"),
    (dict(alpha=-1.0), "alpha"),
    (dict(alpha=float("nan")), "alpha"),
    (dict(kernel="exact"), '"printed" or "normalised"'),
    (dict(kernel="normalised", scale=0.0), "scale"),
    (dict(kernel="normalised", alpha=7), "alpha = 7 has no effect on the normalised kernel"),
    (dict(kernel="normalised", alpha=7, scale=2.0), "leave alpha out"),
    (dict(kernel="printed", scale=9), "scale = 9 has no effect on the printed kernel"),
    (dict(scale=9.0), "leave scale out"),
    (dict(kernel="normalised", alpha=-1.0), "alpha"),
    (dict(scale=0.0), "scale"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_input_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        compare_smallest_eigenvalues(**(dict(x=cloud(), client=LABELS) | change))


@pytest.mark.slow
def test_three_thousand_images_take_seconds():
    labels = np.repeat(["a", "b", "c", "d"], 743)
    x = cloud(2972, 2352, labels=labels)
    start = time.perf_counter()
    result = compare_smallest_eigenvalues(x, labels)
    assert result.verdict == "certified"
    assert time.perf_counter() - start < 30
