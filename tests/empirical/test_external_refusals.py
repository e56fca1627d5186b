"""What `adapt` leaves untouched, records, and refuses."""

import copy
from collections.abc import Callable, Iterator

import pytest
import torch
from streams import stream, trained
from torch import Tensor, nn
from toy import bn_net, plain_net, residual_net, unchecked

from empirical import DivergedError, adapt

SMALL = (3, 4, 4)
BATCHES = stream(4, 5, shape=SMALL)


def flags(model: nn.Module) -> list[bool]:
    return [m.training for m in model.modules()]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("affine", ["given", "identity"])
def test_the_given_model_stays_as_it_is(training: bool, affine: str) -> None:
    net = trained(residual_net()).train(training)
    net.body.train(not training)
    seen: list[int] = []
    net.body[1].register_forward_pre_hook(lambda _layer, _inputs: seen.append(1))
    before, modes = copy.deepcopy(net.state_dict()), flags(net)
    adapted = adapt(net, BATCHES, affine=affine)
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert flags(net) == modes
    assert [len(m._forward_pre_hooks) for m in net.modules()].count(1) == len(seen) - 1 == 1
    assert all(p.requires_grad for p in net.parameters())
    assert not {id(t) for t in net.state_dict(keep_vars=True).values()} & {
        id(t) for t in adapted.model.state_dict(keep_vars=True).values()
    }


@pytest.mark.parametrize("training", [True, False])
def test_the_models_mode_changes_nothing(training: bool) -> None:
    net = nn.Sequential(*trained(bn_net()), nn.Dropout(0.5))
    expected = adapt(net.eval(), BATCHES).predictions
    assert torch.equal(adapt(net.train(training), BATCHES).predictions, expected)


def test_the_adapted_model_predicts_on_with_its_last_statistics() -> None:
    adapted = adapt(trained(bn_net()), BATCHES)
    assert not any(flags(adapted.model))
    assert not any(m._forward_pre_hooks for m in adapted.model.modules())
    kept = copy.deepcopy(adapted.model.state_dict())
    with torch.no_grad():
        again = adapted.model(BATCHES[1])
    assert torch.equal(again, adapted.predictions[4:])
    assert all(torch.equal(kept[n], value) for n, value in adapted.model.state_dict().items())


def test_only_statistics_change() -> None:
    net = trained(bn_net())
    after = adapt(net, BATCHES).model.state_dict()
    changed = {name for name, old in net.state_dict().items() if not torch.equal(old, after[name])}
    assert changed == {f"{n}.running_{leaf}" for n in (1, 5) for leaf in ("mean", "var")}
    identity = adapt(net, BATCHES, affine="identity").model
    for layer in (identity[1], identity[5]):
        assert (layer.weight == 1).all() and (layer.bias == 0).all()
        assert layer.num_batches_tracked == 7


def test_every_choice_is_recorded() -> None:
    adapted = adapt(bn_net(), iter(BATCHES))
    assert adapted.batches == (4, 5)
    assert [len(part) for part in adapted.predictions.split(adapted.batches)] == [4, 5]
    assert adapted.options == {
        "momentum": 0.9,
        "variance": "within",
        "affine": "given",
        "first": "batch",
        "batch_variance": "biased",
        "prediction": "after",
    }
    choices = {"variance": "total", "affine": "identity", "first": "source"}
    choices |= {"prediction": "before", "batch_variance": "unbiased"}
    assert adapt(bn_net(), BATCHES, 0.0, **choices).options == {"momentum": 0.0, **choices}


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_the_callers_mode_changes_nothing(mode) -> None:
    net = trained(bn_net())
    expected = adapt(net, BATCHES)
    with mode():
        batches = [x.clone() for x in BATCHES]
        adapted = adapt(net, batches)
        assert torch.is_grad_enabled() is (mode is torch.enable_grad)
    assert torch.equal(adapted.predictions, expected.predictions)
    assert not adapted.predictions.requires_grad
    assert not adapted.predictions.is_inference()
    adapted.model(BATCHES[0]).sum().backward()  # fine-tuning stays possible


def test_what_a_model_keeps_of_a_batch_can_be_trained_with() -> None:
    def keep(net: nn.Module, x: Tensor) -> Tensor:
        net.kept = net.norm(x)
        return net.kept

    with torch.inference_mode():
        model = adapt(Uses(keep), BATCHES).model
    assert not model.kept.is_inference()


def test_statistics_are_those_of_what_the_layer_gets_after_the_users_hooks() -> None:
    layer = nn.BatchNorm2d(3).double()
    layer.register_forward_pre_hook(lambda _layer, inputs: (inputs[0] + 5,))
    plain = nn.BatchNorm2d(3).double()
    moved = adapt(layer, BATCHES).model.running_mean - adapt(plain, BATCHES).model.running_mean
    torch.testing.assert_close(moved, torch.full_like(moved, 5.0), rtol=1e-14, atol=0)


def test_the_stream_is_drawn_in_the_callers_mode() -> None:
    modes = []

    def batches() -> Iterator[Tensor]:
        for x in BATCHES:
            modes.append(torch.is_grad_enabled())
            yield x

    adapt(bn_net(), batches())
    assert modes == [True, True]


def test_the_global_generator_stays() -> None:
    before = torch.get_rng_state()
    adapt(nn.Sequential(bn_net(), nn.Dropout()), BATCHES)
    assert torch.equal(before, torch.get_rng_state())


class Uses(nn.Module):
    """Batch norm and a head, used as a function says."""

    def __init__(self, forward: Callable) -> None:
        super().__init__()
        self.norm, self.spare = nn.BatchNorm2d(3).double(), nn.BatchNorm2d(3).double()
        self.head = nn.Linear(48, 2).double()
        self._forward = forward

    def forward(self, x: Tensor) -> object:
        return self._forward(self, x)


def test_a_layer_that_no_batch_comes_to_is_named_and_kept() -> None:
    model = Uses(lambda net, x: net.head(net.norm(input=x).flatten(1)))
    adapted = adapt(trained(model), BATCHES)
    assert adapted.unreached == ("spare",)
    assert torch.equal(adapted.model.spare.running_mean, model.spare.running_mean)
    assert not torch.equal(adapted.model.norm.running_mean, model.norm.running_mean)
    model.spare.running_var.fill_(torch.nan)  # of no effect on any answer
    assert torch.equal(adapt(model, BATCHES).predictions, adapted.predictions)


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (lambda net, x: net.norm(net.norm(x)), "'norm' is called twice in one pass"),
        (lambda net, x: net.head(x.flatten(1)), "calls none of its batch-norm layers"),
        (lambda net, x: net.train().norm(x), "'norm' is in training mode"),
        (lambda net, x: (net.norm(x), x), "answers with tuple"),
        (lambda net, x: net.norm(x).argmax(1), r"answers with torch\.int64"),
        (lambda net, x: net.norm(x)[:2], r"answers \(2, 3, 4, 4\) to the 4 inputs of batch 0"),
        (lambda net, x: net.norm(x).sum(), r"answers \(\) to the 4 inputs"),
        (lambda net, x: net.norm(x).log(), "answers NaN to batch 0"),
        (lambda net, x: net.norm(x)[:, : len(x)], r"batch 1 have the shape \(3, 4, 4\) each"),
        (lambda net, x: net.norm(x / 0), "statistics of batch-norm layer 'norm' are not"),
        (lambda net, x: net.head(net.norm(x)), r"cannot take batch 0 of shape \(4, 3, 4, 4\)"),
        (lambda net, x: net.norm(x[:, :2]), "cannot take batch 0"),
        (lambda net, x: net.norm(x[:, :1]), "cannot take batch 0"),
        (lambda net, x: net.norm(x, x), "cannot take batch 0"),
        (lambda net, x: net.norm(x.flatten(2)), "expected 4D input"),
    ],
)
def test_models_that_cannot_serve_are_refused(forward: Callable, message: str) -> None:
    batches = stream(4, 5, shape=SMALL) if "batch 1" not in message else stream(2, 5, shape=SMALL)
    with pytest.raises(ValueError, match=message):
        adapt(Uses(forward), batches)


class Peak(nn.Module):
    federated_roles = {"running_max": "statistic"}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("running_max", torch.zeros(3))


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([], "no batch-norm layer, so there is nothing to adapt"),
        ([nn.LayerNorm(3), nn.InstanceNorm2d(3)], "no batch-norm layer"),
        ([nn.BatchNorm2d(3), nn.InstanceNorm2d(3, track_running_stats=True)], "'1.running_mean'"),
        ([Peak(), nn.BatchNorm2d(3)], "'0.running_max' is a running statistic of a layer that"),
        ([nn.BatchNorm2d(3, track_running_stats=False)], "track_running_stats=True"),
        ([nn.LazyBatchNorm2d()], "run the model once"),
    ],
)
def test_layers_that_the_equations_do_not_speak_of_are_refused(layers, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        adapt(nn.Sequential(*layers, *plain_net()).double(), BATCHES)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (BATCHES[0].float(), r"batch 1 is torch\.float32 on cpu, the model torch\.float64"),
        (BATCHES[0].to("meta"), r"batch 1 is torch\.float64 on meta, .* on cpu"),
        ((BATCHES[0] * 9).to(torch.uint8), r"batch 1 is torch\.uint8"),
        (BATCHES[0][:0], r"batch 1 has the shape \(0, 3, 4, 4\)"),
        (BATCHES[0][0, 0, 0], r"batch 1 has the shape \(4,\)"),
        (BATCHES[0][0], r"expected 4D|cannot take batch 1"),
        (BATCHES[0][:, :2], r"cannot take batch 1 of shape \(4, 2, 4, 4\)"),
        (BATCHES[0] / 0, "batch 1 holds NaN or infinity"),
        (BATCHES[0] * torch.tensor(float("nan")), "batch 1 holds NaN"),
    ],
)
def test_wrong_batches_are_refused(batch: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        adapt(bn_net(), [BATCHES[0], batch])


@pytest.mark.parametrize("first", ["batch", "source"])
def test_one_value_per_channel_is_refused(first: str) -> None:
    # The convolution gives four values per channel, the dense layer one.
    message = "batch 1 gives batch-norm layer '5' one value per channel.*or use variance='total'"
    with pytest.raises(ValueError, match=message):
        adapt(bn_net(), stream(4, 1, shape=SMALL), first=first)
    assert adapt(bn_net(), stream(4, 1, shape=SMALL), variance="total").batches == (4, 1)
    assert adapt(residual_net(), stream(1, 1, shape=SMALL)).batches == (1, 1)
    unbiased = {"variance": "total", "batch_variance": "unbiased", "first": first}
    with pytest.raises(ValueError, match=r"no unbiased variance: .* with batch_variance='biased'"):
        adapt(bn_net(), stream(4, 1, shape=SMALL), **unbiased)


@pytest.mark.parametrize(
    ("net", "batch", "message"),
    [
        (nn.BatchNorm2d(3).double(), BATCHES[0] * 1e200, "statistics of batch-norm layer"),
        (nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 2, 1)).double(), BATCHES[0], "answers NaN"),
    ],
)
@pytest.mark.parametrize("prediction", ["after", "before"])
def test_what_is_not_finite_has_an_error_of_its_own(
    net: nn.Module, batch: Tensor, message: str, prediction: str
) -> None:
    if "NaN" in message:
        net[1].weight.data[0, 0] = torch.nan
    with pytest.raises(DivergedError, match=message):
        adapt(net, [batch, batch], prediction=prediction)


@pytest.mark.parametrize("batches", [[], iter(()), ()])
def test_no_batch_is_refused(batches) -> None:
    with pytest.raises(ValueError, match="no batch to adapt to"):
        adapt(bn_net(), batches)


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        (BATCHES[0], r"got Tensor: images\.split\(32\)"),
        ("images", "got str"),
        ({"images": BATCHES[0]}, "got dict"),
        (7, "got int"),
        (None, "got NoneType"),
        ([(BATCHES[0], BATCHES[0])], r"batch 0 is tuple, .* \(x for x, _ in loader\)"),
        ([BATCHES[0].numpy()], "batch 0 is ndarray"),
    ],
)
def test_streams_of_another_kind_are_refused(batches: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        unchecked(adapt)(bn_net(), batches)


@pytest.mark.parametrize("model", ["compact_cnn", bn_net, nn.Linear, None])
def test_what_is_no_model_is_refused(model: object) -> None:
    with pytest.raises(TypeError, match=r"is no Module: use build_model\(name, seed\)"):
        unchecked(adapt)(model, BATCHES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"momentum": -0.1}, r"in \[0, 1\], got -0\.1"),
        ({"momentum": 1.1}, "got 1.1"),
        ({"momentum": float("nan")}, "got nan"),
        ({"momentum": True}, "got True"),
        ({"momentum": "0.9"}, "got '0.9'"),
        ({"variance": "pooled"}, "variance is 'within' or 'total', not 'pooled'"),
        ({"affine": None}, "affine is 'given' or 'identity', not None"),
        ({"first": "server"}, "first is 'batch' or 'source', not 'server'"),
        ({"prediction": "after the update"}, "prediction is 'after' or 'before', not 'after the"),
        ({"batch_variance": True}, "batch_variance is 'biased' or 'unbiased', not True"),
    ],
)
def test_unknown_options_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unchecked(adapt)(bn_net(), BATCHES, **options)


def test_autocast_leaves_the_statistics_their_digits() -> None:
    # The convolution answers in bfloat16, of 8 bits; the layer's statistics are float32.
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    batch = BATCHES[0].float()
    with torch.autocast("cpu", torch.bfloat16):
        layer = adapt(net, [batch]).model[1]
        values = net[0](batch).detach()
    assert values.dtype is torch.bfloat16
    var, mean = torch.var_mean(values.double(), (0, 2, 3), correction=0)
    torch.testing.assert_close(layer.running_mean.double(), mean, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(layer.running_var.double(), var, rtol=1e-5, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_each_step_of_the_statistics_is_rounded_once(dtype: torch.dtype) -> None:
    # Of 64 channels some would differ in the last bit if a product were rounded before the sum.
    layer = trained(nn.BatchNorm1d(64)).to(dtype)
    batch = stream(8, shape=(64,))[0].to(dtype)
    adapted = adapt(layer, [batch], 0.7, first="source").model
    moments = [part.double() for part in torch.var_mean(batch.float(), 0, correction=0)]
    for leaf, moment in zip(("running_var", "running_mean"), moments, strict=True):
        expected = 0.7 * getattr(layer, leaf).double() + (1 - 0.7) * moment
        assert torch.equal(getattr(adapted, leaf), expected.to(dtype))
