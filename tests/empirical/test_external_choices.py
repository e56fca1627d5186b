"""When a batch is predicted and by which variance: by hand, and against plain loops."""

import pytest
import torch
from streams import Loops, in_sequence, stream, trained
from torch import Tensor, nn
from toy import bn_net, residual_net

from empirical import adapt

ROUNDING = {"rtol": 1e-10, "atol": 1e-10}  # float64 through two layers of 1/√σ²


def column(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64).view(-1, 1)


def chain() -> nn.Sequential:
    """One batch-norm layer of one channel, ε = 0."""
    return nn.Sequential(nn.BatchNorm1d(1, eps=0.0)).double()


def statistics(model: nn.Module) -> list[float]:
    return [model[0].running_mean.item(), model[0].running_var.item()]


@pytest.mark.parametrize("variance", ["within", "total"])
@pytest.mark.parametrize("prediction", ["after", "before"])
@pytest.mark.parametrize("batch_variance", ["biased", "unbiased"])
@pytest.mark.parametrize("first", ["batch", "source"])
def test_plain_loops_agree_on_when_and_by_what(
    variance: str, prediction: str, batch_variance: str, first: str
) -> None:
    net, batches = trained(bn_net()), stream(4, 3, 5, 2, shape=(3, 4, 4))
    choices = {"variance": variance, "first": first, "prediction": prediction}
    adapted = adapt(net, batches, 0.7, **choices, batch_variance=batch_variance)
    layers, forward = in_sequence(
        net,  # type: ignore[arg-type]
        lambda m: Loops(
            m,
            0.7,
            variance == "total",
            source=first == "source",
            unbiased=batch_variance == "unbiased",
        ),
    )
    expected = []
    for x in batches:
        if prediction == "before" and layers[0].seen:
            for layer in layers:
                layer.still = True
            expected.append(forward(x))
            for layer in layers:
                layer.still = False
            forward(x)
        else:
            expected.append(forward(x))
    torch.testing.assert_close(adapted.predictions, torch.cat(expected), **ROUNDING)
    for layer, name in zip(layers, ("1", "5"), strict=True):
        mean, var = layer.statistics()
        norm = adapted.model.get_submodule(name)
        assert norm.running_mean.tolist() == pytest.approx(mean, rel=1e-10, abs=1e-10)
        assert norm.running_var.tolist() == pytest.approx(var, rel=1e-10)


@pytest.mark.parametrize("first", ["batch", "source"])
def test_before_is_the_model_that_the_batches_before_it_left(first: str) -> None:
    net, batches = trained(residual_net()), stream(4, 5, 6, 3, shape=(3, 4, 4))
    before = adapt(net, batches, 0.6, first=first, prediction="before")
    after = adapt(net, batches, 0.6, first=first)
    answers = before.predictions.split(before.batches)
    for t in range(1, 4):
        with torch.no_grad():
            left = adapt(net, batches[:t], 0.6, first=first).model(batches[t])
        assert torch.equal(answers[t], left)
    with torch.no_grad():
        source = net.eval()(batches[0])
    own = after.predictions[:4]
    assert torch.equal(answers[0], source if first == "source" else own)
    assert all(
        map(torch.equal, before.model.state_dict().values(), after.model.state_dict().values())
    )


def test_before_by_hand() -> None:
    # Layer 0 alone, τ = 1/2: (0, 2) gives μ = 1, σ² = 1 and is normalised by them: (−1, 1).
    # (0, 14) is too: (0 − 1)/1 = −1 and 13. Then μ = 4, σ² = 25 as under "after".
    batches = [column(0, 2), column(0, 14), column(4, 9)]
    adapted = adapt(chain(), batches[:2], 0.5, prediction="before")
    assert adapted.predictions.flatten().tolist() == [-1.0, 1.0, -1.0, 13.0]
    assert statistics(adapted.model) == [4.0, 25.0]
    # and (4, 9) by those: 0 and 1.
    adapted = adapt(chain(), batches, 0.5, prediction="before")
    assert adapted.predictions.flatten().tolist()[4:] == [0.0, 1.0]


def test_unbiased_by_hand() -> None:
    # (0, 2): Σ (r − 1)² = 2 over 2 − 1 = 2; (0, 14): 98 over 1; σ² = (2 + 98)/2 = 50, total + 9.
    batches = [column(0, 2), column(0, 14)]
    for variance, expected in (("within", 50.0), ("total", 59.0)):
        adapted = adapt(chain(), batches, 0.5, variance=variance, batch_variance="unbiased")
        assert statistics(adapted.model) == pytest.approx([4.0, expected], rel=1e-15)


def test_unbiased_from_the_source_is_what_pytorch_keeps() -> None:
    # One layer, whose input no statistics change; PyTorch's momentum is the batch's weight.
    layer, batches = (
        trained(nn.BatchNorm2d(3, momentum=0.3)).double(),
        stream(4, 5, shape=(3, 2, 2)),
    )
    adapted = adapt(layer, batches, 0.7, first="source", batch_variance="unbiased")
    layer.train()
    for x in batches:
        layer(x)
    torch.testing.assert_close(adapted.model.running_mean, layer.running_mean, **ROUNDING)
    torch.testing.assert_close(adapted.model.running_var, layer.running_var, **ROUNDING)


@pytest.mark.parametrize("prediction", ["after", "before"])
def test_the_order_within_a_batch_changes_nothing(prediction: str) -> None:
    net, batches = trained(bn_net()), stream(4, 5, 3, shape=(3, 4, 4))
    draws = torch.Generator().manual_seed(0)
    orders = [torch.randperm(len(x), generator=draws) for x in batches]
    one = adapt(net, batches, prediction=prediction)
    mixed = [x[order] for x, order in zip(batches, orders, strict=True)]
    other = adapt(net, mixed, prediction=prediction)
    parts = zip(one.predictions.split(one.batches), orders, strict=True)
    torch.testing.assert_close(
        other.predictions, torch.cat([x[order] for x, order in parts]), **ROUNDING
    )
