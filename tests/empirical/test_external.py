"""Eqs. (3), (4): worked by hand, by limits, and against plain loops (`streams`)."""

import copy

import pytest
import torch
from streams import Loops, in_sequence, stream, trained
from torch import Tensor, nn
from toy import bn_net, residual_net

from empirical import adapt, build_model

ROUNDING = {"rtol": 1e-10, "atol": 1e-10}  # float64 through four layers of 1/√σ²


def column(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64).view(-1, 1)


def chain() -> nn.Sequential:
    """Two batch-norm layers of one channel in a row, ε = 0."""
    return nn.Sequential(nn.BatchNorm1d(1, eps=0.0), nn.BatchNorm1d(1, eps=0.0)).double()


def statistics(model: nn.Module, name: str) -> list[float]:
    layer = model.get_submodule(name)
    return [layer.running_mean.item(), layer.running_var.item()]


def test_two_batches_by_hand() -> None:
    # τ = 1/2. Layer 0, batch 0 = (0, 2): μ = 1, σ² = 1, gives (−1, 1).
    #   Layer 1: μ = 0, σ² = 1, gives (−1, 1).
    # Layer 0, batch 1 = (0, 14): μ_b = 7, σ_b² = 49; μ = (1 + 7)/2 = 4, σ² = (1 + 49)/2 = 25;
    #   gives (0 − 4)/5 = −0.8 and (14 − 4)/5 = 2. (The batch's own would give (−1, 1).)
    # Layer 1: μ_b = 0.6, σ_b² = 1.4² = 1.96; μ = 0.3, σ² = (1 + 1.96)/2 = 1.48;
    #   gives −1.1/√1.48 and 1.7/√1.48.
    adapted = adapt(chain(), [column(0, 2), column(0, 14)], 0.5)
    assert statistics(adapted.model, "0") == [4.0, 25.0]
    assert statistics(adapted.model, "1") == pytest.approx([0.3, 1.48], rel=1e-15)
    expected = column(-1, 1, -1.1 / 1.48**0.5, 1.7 / 1.48**0.5)
    torch.testing.assert_close(adapted.predictions, expected, rtol=1e-14, atol=0)
    assert adapted.batches == (2, 2)


def test_total_variance_by_hand() -> None:
    # As above with τ(1 − τ)(μ_b − μ)² more: layer 0: 25 + (7 − 1)²/4 = 34, which is the variance
    # of (0, 2, 0, 14): mean 4, Σ r²/4 − 16 = 200/4 − 16 = 34.
    adapted = adapt(chain()[:1], [column(0, 2), column(0, 14)], 0.5, variance="total")
    assert statistics(adapted.model, "0") == [4.0, 34.0]
    expected = column(-1, 1, -4 / 34**0.5, 10 / 34**0.5)
    torch.testing.assert_close(adapted.predictions, expected, rtol=1e-15, atol=0)


def test_from_the_source_by_hand() -> None:
    # μ = 2, σ² = 9, τ = 3/4, batch (0, 12): μ_b = 6, σ_b² = 36: μ = 1.5 + 1.5 = 3,
    # σ² = 6.75 + 9 = 15.75; total: + 3/16 · (6 − 2)² = 3 more.
    model = chain()[:1]
    model[0].running_mean.fill_(2)
    model[0].running_var.fill_(9)
    for variance, expected in (("within", 15.75), ("total", 18.75)):
        adapted = adapt(model, [column(0, 12)], 0.75, first="source", variance=variance)
        assert statistics(adapted.model, "0") == [3.0, expected]


def test_the_order_of_batches_matters() -> None:
    # (0, 14) first: μ = 7, σ² = 49 and then the same 4 and 25: with τ = 1/2 two batches weigh
    # the same, but the first is predicted by itself. With τ = 3/4: μ = 3/4 · 7 + 1/4 · 1 = 5.5.
    batches = [column(0, 2), column(0, 14)]
    assert statistics(adapt(chain(), batches[::-1], 0.75).model, "0")[0] == 5.5
    assert statistics(adapt(chain(), batches, 0.75).model, "0")[0] == 2.5
    one, two = adapt(chain(), batches, 0.5), adapt(chain(), batches[::-1], 0.5)
    assert not torch.allclose(one.predictions[:2], two.predictions[2:])


@pytest.mark.parametrize("first", ["batch", "source"])
def test_without_past_each_batch_is_normalised_by_itself(first: str) -> None:
    net, batches = trained(bn_net()), stream(4, 5, 3, shape=(3, 4, 4))
    adapted = adapt(net, batches, 0.0, first=first)
    by_itself = copy.deepcopy(net).train()  # no dropout: PyTorch's batch statistics are biased
    with torch.no_grad():
        expected = torch.cat([by_itself(x) for x in batches])
    torch.testing.assert_close(adapted.predictions, expected, **ROUNDING)


@pytest.mark.parametrize("variance", ["within", "total"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_with_nothing_but_the_past_the_source_predicts(variance: str, dtype: torch.dtype) -> None:
    net = trained(bn_net()).to(dtype)
    batches = [x.to(dtype) for x in stream(4, 5, 3, shape=(3, 4, 4))]
    adapted = adapt(net, batches, 1.0, first="source", variance=variance)
    with torch.no_grad():
        expected = torch.cat([net.eval()(x) for x in batches])
    assert torch.equal(adapted.predictions, expected)
    assert all(map(torch.equal, net.state_dict().values(), adapted.model.state_dict().values()))


def test_all_weight_on_the_first_batch() -> None:
    one, *more = stream(6, 5, 5, shape=(3, 4, 4))
    kept = adapt(bn_net(), [one, *more], 1.0).model.state_dict()
    alone = adapt(bn_net(), [one]).model.state_dict()
    assert all(torch.equal(kept[name], alone[name]) for name in alone)


@pytest.mark.parametrize("variance", ["within", "total"])
@pytest.mark.parametrize("affine", ["given", "identity"])
@pytest.mark.parametrize("first", ["batch", "source"])
def test_plain_loops_agree(variance: str, affine: str, first: str) -> None:
    net, batches = trained(build_model("compact_cnn", 0).double()), stream(4, 3, 4, 2, 3)
    adapted = adapt(net, batches, 0.7, variance=variance, affine=affine, first=first)
    layers, forward = in_sequence(
        net,  # type: ignore[arg-type]
        lambda m: Loops(m, 0.7, variance == "total", affine == "identity", first == "source"),
    )
    expected = torch.cat([forward(x) for x in batches])
    torch.testing.assert_close(adapted.predictions, expected, **ROUNDING)
    norms = [m for m in adapted.model.modules() if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d)]
    assert len(layers) == len(norms) == 4
    for layer, norm in zip(layers, norms, strict=True):
        mean, var = layer.statistics()
        assert norm.running_mean.tolist() == pytest.approx(mean, rel=1e-10, abs=1e-10)
        assert norm.running_var.tolist() == pytest.approx(var, rel=1e-10)


def test_layers_are_found_by_type_and_not_by_name() -> None:
    net, batches = trained(residual_net()), stream(4, 5, 6, shape=(3, 4, 4))
    body, side = Loops(net.body[1], 0.9), Loops(net.downsample[1], 0.9)
    expected = []
    with torch.no_grad():
        for images in batches:
            x = net.stem(images)
            both = body(net.body[0](x)).relu() + side(net.downsample[0](x))
            expected.append(net.head(both.relu().mean((2, 3))))
    adapted = adapt(net, batches)
    torch.testing.assert_close(adapted.predictions, torch.cat(expected), **ROUNDING)
    assert adapted.unreached == ()


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.BatchNorm1d(3), (3, 5)),
        (nn.BatchNorm3d(3), (3, 2, 4, 3)),
        (nn.SyncBatchNorm(3), (3, 4, 2)),
        (nn.BatchNorm2d(3, affine=False), (3, 4, 2)),
        (nn.BatchNorm2d(3, bias=False), (3, 4, 2)),
    ],
    ids=["1d", "3d", "sync", "no affine", "no bias"],
)
@pytest.mark.parametrize("affine", ["given", "identity"])
def test_every_kind_of_batch_norm(layer: nn.Module, shape: tuple[int, ...], affine: str) -> None:
    batches = stream(4, 3, shape=shape)
    adapted = adapt(layer.double(), batches, 0.6, affine=affine)
    moments = [torch.var_mean(x.transpose(0, 1).flatten(1), 1, correction=0) for x in batches]
    var, mean = (0.6 * old + 0.4 * new for old, new in zip(*moments, strict=True))
    at = (1, 3) + (1,) * (len(shape) - 1)
    expected = (batches[1] - mean.view(at)) / (var.view(at) + layer.eps).sqrt()
    torch.testing.assert_close(adapted.predictions[4:], expected, **ROUNDING)


def test_total_variance_of_equal_weights_is_the_pooled_one() -> None:
    # τ = 1/2 weighs two batches of one size alike.
    batches = stream(6, 6, shape=(3, 4, 4))
    norm = adapt(nn.BatchNorm2d(3).double(), batches, 0.5, variance="total").model
    pooled = torch.cat(batches).transpose(0, 1).flatten(1).var(1, correction=0)
    torch.testing.assert_close(norm.running_var, pooled, rtol=1e-13, atol=0)
    within = adapt(nn.BatchNorm2d(3).double(), batches, 0.5).model
    assert (within.running_var < 0.99 * pooled).all()


def test_total_variance_takes_one_input_at_a_time() -> None:
    # τ = 1/2, (2), then (6): μ = 4, σ² = 0 + (6 − 2)²/4 = 4; the first gives 0, the second 1.
    # ε is lost beside 4, and keeps the first from 0/0.
    model = nn.Sequential(nn.BatchNorm1d(1, eps=1e-300)).double()
    adapted = adapt(model, [column(2), column(6)], 0.5, variance="total")
    assert statistics(adapted.model, "0") == [4.0, 4.0]
    assert adapted.predictions.flatten().tolist() == [0.0, 1.0]


@pytest.mark.parametrize("first", ["batch", "source"])
@pytest.mark.parametrize("variance", ["within", "total"])
def test_a_stream_goes_on(first: str, variance: str) -> None:
    net, batches = trained(residual_net()).float(), stream(4, 5, 6, 3, shape=(3, 4, 4))
    batches = [x.float() for x in batches]
    whole = adapt(net, batches, first=first, variance=variance)
    begun = adapt(net, batches[:2], first=first, variance=variance)
    rest = adapt(begun.model, batches[2:], first="source", variance=variance)
    assert torch.equal(whole.predictions, torch.cat([begun.predictions, rest.predictions]))
    assert all(
        map(torch.equal, whole.model.state_dict().values(), rest.model.state_dict().values())
    )
