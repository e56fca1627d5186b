"""Methods by name, FedBN among them."""

import pytest

from empirical.algorithms import ALGORITHMS, build_algorithm
from empirical.bn_policy import BN_POLICIES
from empirical.methods import methods


def test_fedbn_is_fedavg_with_client_specific_batch_norm_alone() -> None:
    fedbn = methods()["fedbn"]
    assert (fedbn.algorithm, fedbn.bn_policies) == ("fedavg", ("client_specific",))


def test_every_algorithm_is_a_method_under_both_policies() -> None:
    assert methods().keys() == ALGORITHMS.keys() | {"fedbn"}
    for name, method in methods().items():
        assert method.name == name
        assert method.algorithm in ALGORITHMS
        assert set(method.bn_policies) <= BN_POLICIES.keys()
        if name in ALGORITHMS:
            assert method.bn_policies == ("aggregated", "client_specific")


def test_fedbn_is_no_algorithm_and_the_refusal_says_what_to_combine() -> None:
    advice = r"build_algorithm\('fedavg'\) and BN_POLICIES\['client_specific'\]"
    with pytest.raises(ValueError, match=advice):
        build_algorithm("fedbn")
