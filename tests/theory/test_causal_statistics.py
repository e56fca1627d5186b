"""Test-time statistics of other images too: what the one node R hides, by graph and enumeration."""

from itertools import product

import pytest
from binary_models import BinaryModels

import theory

COMBINED = list(
    product(
        ("client_specific", "aggregated"),
        ("batch", "stream", "population"),
        ("feature", "shift", "content"),
    )
)
GIVEN_R = ("rule2.S|R", "rule2.S.Y|R", "backdoor.S")


def steps_of(**variant):
    return {s.name: s for s in theory.proposition_iii10(theory.test_graph(**variant))}


@pytest.mark.parametrize(
    ("policy", "label", "reasons"),
    [
        ("client_specific", "feature", ("", "", "")),
        ("aggregated", "feature", ("B ← D → F", "B ← D → F → Y", "B ← D → F → Y")),
        ("client_specific", "shift", ("", "B ← D → Y", "B ← D → Y")),
        ("aggregated", "shift", ("B ← D → F", "B ← D → Y", "B ← D → Y")),
        ("client_specific", "content", ("", "B ← D → X ← C → Y", "B ← D → X ← C → Y")),
        ("aggregated", "content", ("B ← D → F", "B ← D → X ← C → Y", "B ← D → X ← C → Y")),
    ],
)
def test_statistics_of_other_images_too_let_the_domain_past_the_raw_feature(policy, label, reasons):
    """R alone behind S blocks S from D; the rest of the batch does not, nor a long stream."""
    usual = steps_of(label=label)
    assert all(steps_of(policy=policy, label=label)[name].holds for name in GIVEN_R)
    for statistics, cut in (("stream", ""), ("population", "B ← ")):
        found = steps_of(policy=policy, statistics=statistics, label=label)
        paths = (reason and f"S ← {reason.removeprefix(cut)}" for reason in reasons)
        want = dict(zip(GIVEN_R, paths, strict=True))
        assert {name: found[name].reason for name in GIVEN_R} == want
        changed = {n for n in found if found[n].holds != usual[n].holds}
        mended = {"rule2.S|D", *["rule2.S.Y"] * (label == "content")} if cut else set()
        assert changed == {n for n in want if want[n]} | mended
    batch = steps_of(policy=policy, label=label)
    assert {n for n in batch if batch[n].holds != usual[n].holds} == set()


@pytest.mark.parametrize(("policy", "statistics", "label"), COMBINED)
def test_given_raw_feature_and_domain_setting_statistics_is_seeing_them(policy, statistics, label):
    graph = theory.test_graph(policy, statistics=statistics, label=label)
    assert theory.rule2(graph, "F", "S", given=("R", "D")).holds
    assert theory.rule2(graph, "Y", "S", given=("R", "D")).holds
    models = BinaryModels(graph, 20)
    p = models.law
    for y in "FY":
        assert models.gaps(p(y, do="S", given="RD"), p(y, given="SRD")).max() < 1e-12  # rounding


def test_the_rest_of_the_batch_is_a_node_of_the_unseen_domain():
    one, more = theory.test_graph(), theory.test_graph(statistics="stream")
    assert set(more.edges) - set(one.edges) == {("D", "B"), ("B", "S")}
    assert set(one.edges) < set(more.edges) and more.nodes["B"]["role"] == "observed"
