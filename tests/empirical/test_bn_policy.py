from dataclasses import replace

import pytest
import torch
from toy import bn_net, residual_net, unchecked

from empirical.bn_policy import (
    AGGREGATED,
    BN_POLICIES,
    CLIENT_AFFINE,
    CLIENT_SPECIFIC,
    CLIENT_STATISTICS,
    BNPolicy,
)
from empirical.weights import Role, label, tensors

NOBODY: frozenset[Role] = frozenset()


def test_four_policies_by_name() -> None:
    assert list(BN_POLICIES) == [
        "aggregated",
        "client_specific",
        "client_statistics",
        "client_affine",
    ]


@pytest.mark.parametrize(
    ("policy", "learned", "statistics", "private"),
    [
        (AGGREGATED, {Role.WEIGHT, Role.AFFINE}, {Role.STATISTIC}, {Role.COUNTER}),
        (CLIENT_SPECIFIC, {Role.WEIGHT}, set(), {Role.AFFINE, Role.STATISTIC, Role.COUNTER}),
        (CLIENT_STATISTICS, {Role.WEIGHT, Role.AFFINE}, set(), {Role.STATISTIC, Role.COUNTER}),
        (CLIENT_AFFINE, {Role.WEIGHT}, {Role.STATISTIC}, {Role.AFFINE, Role.COUNTER}),
    ],
)
def test_what_is_shared_and_what_stays(policy, learned, statistics, private) -> None:
    roles = label(residual_net())
    division = policy.divide(roles, NOBODY)
    assert {roles[name] for name in division.learned} == learned
    assert {roles[name] for name in division.statistics} == statistics
    assert {roles[name] for name in division.private} == private
    assert {roles[name] for name in division.mirrored} == private - {Role.COUNTER}
    everything = [*division.learned, *division.statistics, *division.private]
    assert sorted(everything) == sorted(roles)


@pytest.mark.parametrize("policy", BN_POLICIES.values(), ids=lambda policy: policy.name)
def test_personal_roles_stay_and_are_not_mirrored(policy: BNPolicy) -> None:
    roles = label(bn_net())
    division = policy.divide(roles, frozenset(Role))
    assert division.learned == division.statistics == division.mirrored == ()
    assert sorted(division.private) == sorted(roles)


def test_pooled_variance_is_that_of_the_mixture() -> None:
    # σ² 1 and 5, μ 0 and 4, p 1/4 and 3/4: Σ p (σ² + μ²) = 1/4 + 63/4 = 16, μ̄ = 3, 16 − 9 = 7;
    # plain: 1/4 + 15/4 = 4.
    model = torch.nn.BatchNorm1d(1).double()
    states = {
        name: {
            "running_mean": torch.tensor([mean], dtype=torch.float64),
            "running_var": torch.tensor([variance], dtype=torch.float64),
        }
        for name, mean, variance in (("a", 0.0, 1.0), ("b", 4.0, 5.0))
    }
    p = {"a": 0.25, "b": 0.75}
    assert AGGREGATED.mean(states, p, model)["running_var"].item() == 4.0
    pooled = replace(AGGREGATED, variance="pooled").mean(states, p, model)
    assert pooled["running_var"].item() == 7.0
    assert pooled["running_mean"].item() == 3.0


def test_pooled_variance_cannot_cancel_below_zero() -> None:
    # float32 Σ p (σ² + μ²) − μ̄² at μ = 1e4, σ² = 1e-3 would lose σ² altogether.
    model = torch.nn.BatchNorm1d(1)
    state = {"running_mean": torch.tensor([1e4]), "running_var": torch.tensor([1e-3])}
    pooled = replace(AGGREGATED, variance="pooled")
    mean = pooled.mean({"a": state, "b": state}, {"a": 0.3, "b": 0.7}, model)
    assert mean["running_var"].item() == pytest.approx(1e-3, rel=1e-6)  # float32's rounding


def test_wrong_policies_are_refused() -> None:
    with pytest.raises(ValueError, match="'mean' or 'pooled'"):
        replace(AGGREGATED, variance="median")
    for shared in (frozenset({Role.COUNTER}), "affine", Role.AFFINE, ["affine"], None):
        with pytest.raises(ValueError, match=r"shares a set of Role\.AFFINE, .* got "):
            unchecked(BNPolicy)("odd", "", shared)


def test_division_names_tensors_of_the_model() -> None:
    model = bn_net()
    division = CLIENT_SPECIFIC.divide(label(model), NOBODY)
    assert {"1.running_mean", "5.weight"} <= set(division.private) <= set(tensors(model))
