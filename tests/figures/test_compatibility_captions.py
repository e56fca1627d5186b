"""Captions and axes of the section `compatibility` in small runs."""

from itertools import pairwise

import pytest
from synthetic import Records
from synthetic_experiments import pair, trained, training_config

from figures.compatibility import _words, drawings, summarise, tables
from figures.compatibility.draw_curves import curves
from figures.style import context

EQUAL = "(no interval where all differences are equal)"


def captions(records):
    summary = summarise(*records.both)
    words = _words(summary, records.both[1])
    found = {name: one.caption for name, one in drawings(summary, words).items()}
    return found, {table.name: table.layout.caption for table in tables(summary, words)}


def of_seeds(spread):
    records = Records()
    for seed in range(3):
        high = 0.55 + spread * seed
        pair(records, "fedavg", seed, (0.5, 0.4), (high, high), rounds=1, gain=0.8 + spread * seed)
    return captions(records)


def test_captions_of_one_round_are_in_the_singular():
    for found in of_seeds(0.01):
        assert not [name for name, text in found.items() if "1 rounds" in text]
    figures, sheets = of_seeds(0.01)
    assert "Accuracy after 1 round, sorted" in figures["compatibility"]
    assert "1 round, E = 1" in sheets["settings"]


def test_equal_differences_are_explained_where_they_have_no_interval():
    figures, sheets = of_seeds(0.0)
    for text in (figures["compatibility"], figures["gains"], sheets["compatibility"]):
        assert EQUAL in text
    figures, sheets = of_seeds(0.01)
    # The serving of the aggregated model is the same in every seed.
    assert EQUAL in figures["gains"]


def test_the_caption_says_that_bars_are_cut():
    assert ", cut at 0 and 100; hollow" in of_seeds(0.01)[0]["compatibility"]


@pytest.mark.parametrize("last", [2.2, 1.8, 1.0, 0.3, 0.05, 0.001])
def test_labels_of_the_losses_have_room(last):
    records = Records()
    for name in ("fedavg", "fedprox", "scaffold", "fedadam", "fednova", "moon"):
        config = training_config(name, "aggregated", 0, rounds=2)
        trained(records, config, 0.5, {0: 2.4, 2: last})
    with context():
        figure = curves(summarise(*records.both), "loss")
        figure.draw_without_rendering()
        ax = figure.axes[0]
        low, high = ax.get_ylim()
        places = zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)
        boxes = [label.get_window_extent() for place, label in places if low <= place <= high]
    assert len(boxes) >= 2
    boxes.sort(key=lambda box: box.y0)
    for below, above in pairwise(boxes):
        assert above.y0 >= below.y1
