import pytest
import torch
from torch import nn
from toy import bn_net, residual_net

from empirical.models import MODELS, build_model
from empirical.weights import (
    Role,
    label,
    load,
    take,
    tensors,
    variance_partners,
    weighted_mean,
)


def named(model: nn.Module, role: Role) -> set[str]:
    return {name for name, found in label(model).items() if found is role}


def test_roles_come_from_layer_types() -> None:
    model = residual_net()
    assert named(model, Role.AFFINE) == {
        f"{layer}.1.{leaf}" for layer in ("body", "downsample") for leaf in ("weight", "bias")
    }
    assert named(model, Role.STATISTIC) == {
        f"{layer}.1.running_{leaf}" for layer in ("body", "downsample") for leaf in ("mean", "var")
    }
    assert named(model, Role.COUNTER) == {
        f"{layer}.1.num_batches_tracked" for layer in ("body", "downsample")
    }
    assert label(model).keys() == model.state_dict().keys()


@pytest.mark.parametrize("name", MODELS)
def test_every_batch_norm_tensor_of_every_model_is_found(name: str) -> None:
    model = build_model(name, 0)
    layers = sum(isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d) for m in model.modules())
    counts = {role: len(named(model, role)) for role in Role}
    assert counts[Role.AFFINE] == counts[Role.STATISTIC] == 2 * layers
    assert counts[Role.COUNTER] == layers


def test_a_weight_called_bn_is_a_weight() -> None:
    model = nn.ModuleDict({"bn": nn.Linear(2, 2), "norm": nn.LayerNorm(2)})
    model["group"] = nn.GroupNorm(1, 2)
    assert set(label(model).values()) == {Role.WEIGHT}


def test_instance_norm_with_running_statistics_is_treated_like_batch_norm() -> None:
    tracked = nn.InstanceNorm2d(3, affine=True, track_running_stats=True)
    assert label(tracked) == {
        "weight": Role.AFFINE,
        "bias": Role.AFFINE,
        "running_mean": Role.STATISTIC,
        "running_var": Role.STATISTIC,
        "num_batches_tracked": Role.COUNTER,
    }
    assert set(label(nn.InstanceNorm2d(3, affine=True)).values()) == {Role.WEIGHT}


class Peak(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("running_max", torch.zeros(3))


def test_an_unknown_buffer_is_refused_with_advice() -> None:
    with pytest.raises(ValueError, match=r"Peak owns the buffer '0.running_max'.*federated_roles"):
        label(nn.Sequential(Peak()))


def test_a_layer_declares_its_buffers() -> None:
    class Declared(Peak):
        federated_roles = {"running_max": "statistic"}  # noqa: RUF012

    class Wrong(Peak):
        federated_roles = {"running_max": "weight"}  # noqa: RUF012

    assert label(Declared()) == {"running_max": Role.STATISTIC}
    with pytest.raises(ValueError, match="statistic, counter, constant"):
        label(Wrong())


def test_batch_norm_without_statistics_is_refused() -> None:
    with pytest.raises(ValueError, match="track_running_stats=True"):
        label(nn.Sequential(nn.BatchNorm2d(3, track_running_stats=False)))


def test_lazy_layers_are_refused() -> None:
    with pytest.raises(ValueError, match="run the model once"):
        label(nn.Sequential(nn.LazyLinear(3)))


def test_tied_parameters_appear_once_and_conflicts_are_refused() -> None:
    model = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
    model["b"].weight = model["a"].weight
    assert set(label(model)) == set(tensors(model)) == {"a.weight", "a.bias", "b.bias"}
    model["norm"] = nn.BatchNorm1d(3)
    model["norm"].bias = model["b"].bias
    with pytest.raises(ValueError, match=r"'b\.bias' and 'norm\.bias' are one tensor"):
        label(model)


def test_taken_weights_are_a_copy_and_load_puts_them_back() -> None:
    model = bn_net()
    kept = take(tensors(model), label(model))
    with torch.no_grad():
        for tensor in tensors(model).values():
            tensor += 1
    assert not torch.equal(kept["0.weight"], tensors(model)["0.weight"])
    load(model, kept)
    assert all(torch.equal(kept[name], tensor) for name, tensor in tensors(model).items())
    with pytest.raises(ValueError, match="has the shape"):
        load(model, {"0.weight": torch.zeros(1)})
    with pytest.raises(ValueError, match="does not exist"):
        load(model, {"nought": torch.zeros(1)})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("nought", torch.zeros(1), "does not exist"),
        ("7.bias", torch.zeros(3), "has the shape"),
        ("7.bias", torch.zeros(2, dtype=torch.complex128), "in this model it is torch.float64"),
        ("5.num_batches_tracked", torch.tensor(1.5), "in this model it is torch.int64"),
    ],
)
def test_a_refused_load_writes_nothing(name: str, value: torch.Tensor, message: str) -> None:
    model = bn_net()
    kept = take(tensors(model), label(model))
    with pytest.raises(ValueError, match=message):
        load(model, {"0.weight": kept["0.weight"] + 1, name: value})
    assert all(torch.equal(kept[name], tensor) for name, tensor in tensors(model).items())
    load(model, {"0.weight": kept["0.weight"].float(), "5.num_batches_tracked": torch.tensor(7)})
    assert tensors(model)["5.num_batches_tracked"] == 7


def test_each_variance_knows_its_mean() -> None:
    assert variance_partners(residual_net()) == {
        "body.1.running_var": "body.1.running_mean",
        "downsample.1.running_var": "downsample.1.running_mean",
    }


def test_weighted_mean_by_hand() -> None:
    # p over a and b alone: 1/4 and 3/4; 1/4·2 + 3/4·6 = 5.
    states = {"a": {"w": torch.tensor([2.0])}, "b": {"w": torch.tensor([6.0])}}
    assert weighted_mean(states, {"a": 0.1, "b": 0.3, "absent": 0.6})["w"].item() == 5.0


def test_weighted_mean_does_not_depend_on_the_order_given() -> None:
    draws = torch.Generator().manual_seed(0)
    states = {
        name: {"w": torch.randn(1000, generator=draws, dtype=torch.float64)} for name in "dacbe"
    }
    p = {"a": 0.1, "b": 0.15, "c": 0.2, "d": 0.25, "e": 0.3}
    back = {name: states[name] for name in reversed(states)}
    assert torch.equal(weighted_mean(states, p)["w"], weighted_mean(back, p)["w"])


def test_weighted_mean_of_equal_float32_is_that_value() -> None:
    value = torch.randn(1000, generator=torch.Generator().manual_seed(1))
    states = {str(i): {"w": value} for i in range(7)}
    mean = weighted_mean(states, {str(i): 1.0 + i for i in range(7)})["w"]
    assert mean.dtype is torch.float32
    assert torch.equal(mean, value)


def test_counters_and_unequal_states_are_refused() -> None:
    with pytest.raises(TypeError, match="only real numbers"):
        weighted_mean({"a": {"n": torch.tensor(1)}}, {"a": 1.0})
    with pytest.raises(ValueError, match="differ in v"):
        weighted_mean({"a": {"w": torch.ones(1)}, "b": {"v": torch.ones(1)}}, {"a": 1.0, "b": 1.0})
    with pytest.raises(ValueError, match="at least one client"):
        weighted_mean({}, {})
