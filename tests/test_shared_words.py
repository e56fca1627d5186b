"""What `figures` must know of `empirical`, which it may not import: both list the same."""

from empirical.bn_policy import BN_POLICIES
from empirical.methods import COMPARED, methods
from empirical.serving import VARIANTS, Serving
from empirical.studies import GRID, METHODS
from empirical.studies.tuning import AUTHORS, CHOSEN
from figures.compatibility import captions
from figures.experiments import measures, product
from figures.style import looks


def test_the_rows_of_the_table_are_listed_alike_and_have_names():
    assert measures.METHODS == METHODS
    assert set(METHODS) <= set(methods())
    # A method that the style does not know is called by its registry's name.
    assert all(look.label != name for name, look in looks(METHODS).items())


def test_the_tuned_rows_are_rows_of_the_table():
    assert list(GRID) == [name for name in measures.METHODS if name in GRID]
    assert set(measures.METHODS) - set(GRID) == {"fedavg", "fedbn"}


def test_policies_and_ways_of_serving_are_listed_alike():
    assert measures.POLICIES == COMPARED
    assert set(measures.POLICIES) <= set(BN_POLICIES)
    assert sorted(measures.SERVED) == sorted(VARIANTS)
    usual = Serving("adapted")
    assert (usual.momentum, usual.batch_size, usual.order) == (
        measures.TAU,
        measures.SAMPLES,
        measures.ORDER,
    )


def test_manifests_and_reports_use_the_same_words_for_where_settings_come_from():
    assert captions.TUNED == CHOSEN
    assert product.AUTHORS == AUTHORS
