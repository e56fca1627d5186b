"""Which images a step takes."""

from dataclasses import replace

import pytest
import torch

from empirical.batches import batch_sizes, in_steps, steps
from empirical.schedule import Schedule

SCHEDULE = Schedule(rounds=1, local_epochs=3, batch_size=8, seed=4)


def dealt(sizes: list[int], each: int) -> list[list[list[int]]]:
    order = torch.arange(sum(sizes)).split(sizes)
    return [[rows.tolist() for rows in step] for step in in_steps(order, each)]


def test_whole_steps_keep_the_batches_and_their_order() -> None:
    assert dealt([2, 2, 1], 1) == [[[0, 1]], [[2, 3]], [[4]]]
    assert dealt([2, 2, 2, 1], 2) == [[[0, 1], [2, 3]], [[4, 5], [6]]]
    assert dealt([], 2) == []


def test_what_is_left_is_dealt_anew() -> None:
    assert dealt([3, 3, 5], 2) == [[[0, 1, 2], [3, 4, 5]], [[6, 7, 8], [9, 10]]]
    assert dealt([4, 4], 3) == [[[0, 1, 2], [3, 4, 5], [6, 7]]]
    assert dealt([6], 3) == [[[0, 1], [2, 3], [4, 5]]]


def test_too_few_images_for_batches_of_two_are_all_taken_each_time() -> None:
    assert dealt([3], 2) == [[[0, 1, 2]] * 2]
    assert dealt([5], 3) == [[[0, 1, 2, 3, 4]] * 3]
    assert dealt([2, 2, 1], 2) == [[[0, 1], [2, 3]], [[4]] * 2]


@pytest.mark.parametrize("each", [1, 2, 3])
@pytest.mark.parametrize("images", [5, 9, 17, 30, 40])
def test_the_batches_of_a_step_come_from_one_epoch(images: int, each: int) -> None:
    # Every epoch shows each image once, and no two batches of a step share one, as long as
    # there are two images for each.
    found = list(steps("a", images, SCHEDULE, 2, each))
    an_epoch = -(-len(batch_sizes(images, 8)) // each)
    assert len(found) == 3 * an_epoch
    for step in found:
        assert len(step) == each
        assert all(len(rows) >= 2 for rows in step)
    if images >= 2 * each:
        for epoch in range(3):
            shown = [torch.cat(step) for step in found[epoch * an_epoch : (epoch + 1) * an_epoch]]
            assert torch.cat(shown).sort().values.tolist() == list(range(images))


def test_how_many_batches_a_step_takes_changes_neither_them_nor_their_order() -> None:
    single = [rows for (rows,) in steps("a", 32, SCHEDULE, 1)]
    assert [len(rows) for rows in single] == 3 * batch_sizes(32, 8)
    pairs = [rows for step in steps("a", 32, SCHEDULE, 1, 2) for rows in step]
    assert len(pairs) == len(single) and all(map(torch.equal, pairs, single))


def test_another_seed_gives_another_order() -> None:
    one, other = (
        torch.cat([rows for (rows,) in steps("a", 30, replace(SCHEDULE, seed=seed), 1)])
        for seed in (4, 5)
    )
    assert not torch.equal(one, other)
