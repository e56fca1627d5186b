"""What `federate` refuses before it trains, and in whose modes it works all the same."""

import warnings

import pytest
import torch
from torch import Tensor, nn
from toy import bn_net, client, unchecked

from empirical.algorithms import build_algorithm
from empirical.bn_policy import AGGREGATED, CLIENT_SPECIFIC, BNPolicy
from empirical.federate import federate
from empirical.schedule import Schedule
from empirical.weights import Role, label

FEDAVG = build_algorithm("fedavg")
CLIENTS = [client("a", 9), client("b", 12)]
POOLED = BNPolicy("pooled", "", frozenset({Role.AFFINE, Role.STATISTIC}), "pooled")


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, "fedavg", r"'fedavg' is no Algorithm: use build_algorithm\(name\)"),
        (1, "aggregated", r"'aggregated' is no BNPolicy: use BN_POLICIES\[name\]"),
        (2, "compact_cnn", r"'compact_cnn' is no Module: use build_model\(name, seed\)"),
        (2, bn_net, r"is no Module: use build_model\(name, seed\)"),
        (2, nn.Linear, r"is no Module: use build_model\(name, seed\)"),
        (3, "digits", r"a list of Client, got str: load_federation\(name\)"),
        (3, {"a": CLIENTS[0]}, "a list of Client, got dict"),
        (3, 7, "a list of Client, got int"),
        (3, CLIENTS[0], "a list of Client, got Client"),
        (3, ["a", "b"], "and this holds str"),
        (4, {"rounds": 1}, r"\{'rounds': 1\} is no Schedule: use Schedule\(rounds=10\)"),
        (4, 10, "10 is no Schedule"),
    ],
)
def test_arguments_of_another_kind_are_refused_with_advice(place, value, message) -> None:
    arguments = [FEDAVG, AGGREGATED, bn_net(), CLIENTS, Schedule(1)]
    arguments[place] = value
    with pytest.raises(TypeError, match=message):
        unchecked(federate)(*arguments)


def test_a_generator_of_clients_is_run_through_once() -> None:
    rows = list(federate(FEDAVG, AGGREGATED, bn_net(), CLIENTS, Schedule(1)))
    assert rows == list(federate(FEDAVG, AGGREGATED, bn_net(), iter(CLIENTS), Schedule(1)))
    assert rows == list(federate(FEDAVG, AGGREGATED, bn_net(), tuple(CLIENTS), Schedule(1)))


class Answer(nn.Module):
    """A linear net whose logits another function makes into what it answers."""

    def __init__(self, change) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(48, 2))
        self.change = change

    def forward(self, images: Tensor) -> object:
        return self.change(self.net(images))


class Fixed(nn.Module):
    """Answers zeros, without any parameter."""

    def forward(self, images: Tensor) -> Tensor:
        return torch.zeros(len(images), 2)


class TwoInputs(Answer):
    def forward(self, images: Tensor, more: Tensor) -> object:
        return self.change(self.net(images + more))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Answer(lambda logits: (logits, logits)), "answers with tuple, not with a tensor"),
        (Answer(lambda logits: {"logits": logits}), "answers with dict, not with a tensor"),
        (Answer(lambda _: None), "answers with NoneType"),
        (Answer(lambda logits: logits.argmax(1)), r"answers with torch\.int64"),
        (Answer(lambda logits: logits + 0j), r"answers with torch\.complex64"),
        (Answer(lambda logits: logits[0]), r"answers \(2,\) to one image"),
        (Answer(lambda logits: logits.detach()), "no parameter that can be trained"),
        (Answer(lambda logits: logits).requires_grad_(False), "no parameter that can be trained"),
        (Fixed(), "no parameter that can be trained"),
        (Answer(lambda logits: logits[9]), r"cannot take images of shape \(3, 4, 4\): index 9"),
        (TwoInputs(lambda logits: logits), r"cannot take images .* positional argument"),
    ],
)
def test_models_that_cannot_be_trained_are_refused(model: nn.Module, message: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no batch norm
        with pytest.raises(ValueError, match=message):
            federate(FEDAVG, AGGREGATED, model, CLIENTS, Schedule(1))


def test_a_part_of_the_parameters_may_be_frozen() -> None:
    model = bn_net()
    for parameter in model[0].parameters():
        parameter.requires_grad_(False)
    run = federate(FEDAVG, AGGREGATED, model, CLIENTS, Schedule(1))
    assert list(run)
    # Up to the last bit of a mean of equal numbers.
    assert torch.allclose(run.state.server["0.weight"], model[0].weight, rtol=1e-15, atol=0)
    assert not torch.equal(run.state.server["4.weight"], model[4].weight)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.int64, torch.bool])
@pytest.mark.parametrize("role", ["statistic", "counter", "constant"])
def test_only_real_statistics_are_averaged(dtype: torch.dtype, role: str) -> None:
    class Declared(nn.Module):
        federated_roles = {"kept": role}  # noqa: RUF012

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("kept", torch.zeros(3, dtype=dtype))

        def forward(self, images: Tensor) -> Tensor:
            return images

    model = nn.Sequential(Declared(), bn_net())
    if role == "statistic":
        with pytest.raises(ValueError, match=r"'0\.kept' is torch\..* only real numbers"):
            federate(FEDAVG, AGGREGATED, model, CLIENTS, Schedule(1))
    else:
        assert list(federate(FEDAVG, AGGREGATED, model, CLIENTS, Schedule(1)))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.int64])
def test_only_real_parameters_are_averaged(dtype: torch.dtype) -> None:
    model = bn_net()
    model.register_parameter("odd", nn.Parameter(torch.zeros(3, dtype=dtype), False))
    with pytest.raises(ValueError, match=r"'odd' is torch\..* but a weight"):
        label(model)


@pytest.mark.parametrize("leaf", ["running_mean", "running_var", "num_batches_tracked"])
@pytest.mark.parametrize("policy", [AGGREGATED, CLIENT_SPECIFIC, POOLED], ids=lambda p: p.name)
def test_a_buffer_of_two_layers_is_refused(leaf: str, policy: BNPolicy) -> None:
    model = bn_net()
    model[5] = nn.BatchNorm1d(5).double()
    model.insert(6, nn.BatchNorm1d(5).double())
    model[6].register_buffer(leaf, getattr(model[5], leaf))
    with pytest.raises(ValueError, match=rf"'5\.{leaf}' and '6\.{leaf}' are one buffer"):
        federate(FEDAVG, policy, model, CLIENTS, Schedule(1))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_the_callers_mode_changes_nothing(mode) -> None:
    expected = list(federate(FEDAVG, CLIENT_SPECIFIC, bn_net(), CLIENTS, Schedule(2)))
    with mode():
        run = federate(FEDAVG, CLIENT_SPECIFIC, bn_net(), CLIENTS, Schedule(2))
        rows = []
        for row in run:
            assert not torch.is_grad_enabled()  # it is the caller's own again between the rows
            rows.append(row)
    assert rows == expected
    run = federate(FEDAVG, CLIENT_SPECIFIC, bn_net(), CLIENTS, Schedule(2))
    first = next(run)
    with mode():
        assert [first, *run] == expected
