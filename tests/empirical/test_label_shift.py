"""Label shift: distances by hand, the test against SciPy and at its level, skewed draws."""

import warnings

import numpy as np
import pytest
import torch
from federations import toy_federation
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, fisher_exact
from toy import unchecked

from empirical import Client, LabelShift, Split, label_shift
from empirical.label_shift import largest_skewed, skewed


def client(name, counts, test=None):
    """A client with so many training images of each class, one test image unless given."""

    def split(numbers):
        labels = torch.repeat_interleave(torch.arange(len(numbers)), torch.tensor(numbers))
        return Split(torch.zeros(len(labels), 3, 1, 1, dtype=torch.uint8), labels, len(numbers))

    return Client(name, split(counts), split(test or [1] * len(counts)))


def test_distances_are_total_variations_from_the_federation_and_between_clients():
    found = label_shift(
        [client("a", [49, 29, 19]), client("b", [19, 29, 49]), client("c", [29, 29, 39])]
    )
    # With the test images (50, 30, 20), (20, 30, 50), (30, 30, 40); together (100, 90, 110).
    assert isinstance(found, LabelShift) and found.images == 300
    expected = {"a": 0.5 - 1 / 3, "b": 0.5 - 11 / 30, "c": 0.4 - 11 / 30}
    assert found.distances == pytest.approx(expected, abs=1e-12)
    assert found.pair == ("a", "b") and found.pair_distance == pytest.approx(0.3, abs=1e-12)


def test_the_test_is_pearsons():
    counts = [[30, 12, 50], [22, 40, 31], [18, 25, 60], [40, 20, 20]]
    found = label_shift([client(str(i), row) for i, row in enumerate(counts)])
    expected = chi2_contingency(np.array(counts) + 1)
    assert found.method == "χ²"
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-12)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9)


def test_small_counts_are_tested_by_relabelling():
    found = label_shift([client("a", [7, 1], [1, 1]), client("b", [1, 9], [1, 1])])
    exact = fisher_exact([[8, 2], [2, 10]]).pvalue  # for a table of two by two the same ordering
    assert found.method == "permutation"
    # 4,999 draws: five standard errors.
    assert found.p_value == pytest.approx(exact, abs=5 * (exact / 5000) ** 0.5)
    assert label_shift([client("a", [7, 1]), client("b", [1, 9])], seed=3).p_value != found.p_value


def test_under_no_shift_small_counts_are_significant_at_their_level_at_most():
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(60):
        rows = [rng.multinomial(12, [0.5, 0.3, 0.2]).tolist() for _ in range(3)]
        p_values.append(label_shift([client(str(i), row) for i, row in enumerate(rows)]).p_value)
    assert np.mean(np.array(p_values) <= 0.1) <= 0.1 + 5 * (0.09 / 60) ** 0.5
    assert np.mean(p_values) > 0.35  # and not always without power


def test_a_class_that_nobody_has_does_not_count():
    few = label_shift([client("a", [20, 0, 30], [1, 0, 1]), client("b", [30, 0, 20], [1, 0, 1])])
    none = label_shift([client("a", [20, 30]), client("b", [30, 20])])
    assert few.p_value == none.p_value and few.distances == none.distances


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        ([[300, 100], [100, 300]], True),
        ([[300, 300], [300, 300]], False),
        ([[3000, 2500], [2500, 3000]], False),  # significant, but small
        ([[5, 2], [2, 5]], False),  # large, but by chance
        ([[40, 0, 0], [0, 40, 0], [0, 0, 40]], True),
    ],
)
def test_advice_is_given_where_the_shift_is_large_and_no_chance(counts, told):
    found = label_shift([client(f"c{i}", row) for i, row in enumerate(counts)])
    assert (found.sentence is not None) == told
    if told:
        assert "test-time batch norm assumes" in found.sentence and "'c0'" in found.sentence
        assert found.sentence.count(". ") == 0


def test_federations_without_label_shift_are_not_warned_of():
    found = label_shift(toy_federation((60, 83, 41)))
    assert found.sentence is None and found.p_value > 0.9


def test_what_cannot_be_compared_is_refused():
    ask = unchecked(label_shift)
    with pytest.raises(TypeError, match="list of Client"):
        ask("clients")
    with pytest.raises(ValueError, match="one client cannot differ"):
        ask([client("a", [3, 3])])
    with pytest.raises(ValueError, match="two clients have one name"):
        ask([client("a", [3, 3])] * 2)
    with pytest.raises(TypeError, match="a seed must be an integer, got float"):
        ask([client("a", [9, 9]), client("b", [9, 9])], 3.0)  # of large tables, not needed


def test_clients_that_know_fewer_classes_have_none_of_the_rest():
    short = label_shift([client("a", [30, 10, 20]), client("b", [25, 15])])
    padded = label_shift([client("a", [30, 10, 20]), client("b", [25, 15, 0], [1, 1, 0])])
    assert short == padded and short.images == 60 + 3 + 40 + 2
    apart = 31 / 63 - 26 / 42, 11 / 63 - 16 / 42, 21 / 63
    assert short.pair_distance == pytest.approx(0.5 * sum(map(abs, apart)), abs=1e-12)


def split_of(*counts):
    return client("a", list(counts)).train


@pytest.mark.parametrize("ratio", [1, 2, 5, 10, 50])
def test_the_shares_fall_geometrically_from_the_commonest_to_the_rarest(ratio):
    counts = np.sort(skewed(split_of(*[1000] * 10), ratio, 0).labels.bincount().numpy())[::-1]
    expected = 1000 * ratio ** (-np.arange(10) / 9)
    # As many as there are: the commonest class is used up, but for the rounding of the sum.
    assert counts[0] >= 999 and np.all(np.abs(counts - expected) < 1.5)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, 40), min_size=3, max_size=6).filter(
        lambda c: sum(k > 0 for k in c) > 1
    ),
    st.sampled_from([1, 1.5, 4]),
    st.integers(0, 5),
)
def test_no_image_is_taken_twice_and_as_many_as_can_be(counts, ratio, seed):
    split = split_of(*counts)
    split = Split(
        torch.arange(len(split), dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, 3, 1, 1),
        split.labels,
        split.classes,
    )
    most = largest_skewed(split, ratio, seed)
    try:
        drawn = skewed(split, ratio, seed)
    except ValueError:
        assert most < 2 * len([k for k in counts if k]) * ratio
        return
    taken = drawn.images[:, 0, 0, 0].tolist()
    assert len(set(taken)) == len(taken) == most <= len(split)
    assert all(split.labels[row] == label for row, label in zip(taken, drawn.labels, strict=True))


def test_a_size_and_a_seed_fix_the_draw():
    split = split_of(*[30] * 5)
    one, again, other = (skewed(split, 4, seed, 50) for seed in (0, 0, 1))
    assert len(one) == 50 and torch.equal(one.labels, again.labels)
    assert not torch.equal(one.labels.bincount(), other.labels.bincount())
    orders = {
        tuple(skewed(split, 4, seed, 50).labels.bincount().argsort().tolist()) for seed in range(9)
    }
    assert len(orders) > 5


def test_numpys_numbers_are_numbers():
    split, few = split_of(*[30] * 5), [client("a", [7, 1]), client("b", [1, 9])]
    found = skewed(split, np.int64(4), np.int64(3), np.int64(50))
    assert torch.equal(found.labels, skewed(split, 4, 3, 50).labels)
    assert largest_skewed(split, np.float32(4), np.uint8(3)) == largest_skewed(split, 4, 3)
    assert label_shift(few, np.int64(3)) == label_shift(few, 3)


@pytest.mark.parametrize("ratio", [1e300, 1e308, np.finfo(float).max])
def test_the_largest_ratios_are_ratios(ratio):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert largest_skewed(split_of(6, 5), ratio, 0) in (5, 6)
        with pytest.raises(ValueError, match="no image of the rarest class is left"):
            skewed(split_of(6, 5), ratio, 0)


@pytest.mark.parametrize("split", [None, "test", [0, 1], client("a", [2, 2])])
@pytest.mark.parametrize("draw", [skewed, largest_skewed])
def test_what_is_no_split_is_refused(draw, split):
    with pytest.raises(TypeError, match=r"split must be a Split, got .*: give a client's"):
        unchecked(draw)(split, 2, 0)


@pytest.mark.parametrize("ratio", [0.5, 0, -1, float("nan"), float("inf"), 10**400, "2", True])
def test_odd_ratios_are_refused(ratio):
    with pytest.raises(ValueError, match="at least 1, got"):
        unchecked(skewed)(split_of(5, 5), ratio, 0)


def test_draws_that_cannot_be_made_are_refused():
    with pytest.raises(ValueError, match="has one class"):
        skewed(split_of(5, 0), 2, 0)
    with pytest.raises(ValueError, match="no image of the rarest class"):
        skewed(split_of(5, 5), 100, 0)
    for size in (0, 11, 2.5):
        with pytest.raises(ValueError, match=r"allows 1 … 10 images, got"):
            unchecked(skewed)(split_of(5, 5), 1, 0, size)
