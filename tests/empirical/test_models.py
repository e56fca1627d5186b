import pytest
import torch
from torch import nn
from toy import residual_net, unchecked

from empirical.contrast import last_linear, with_representation
from empirical.models import MODELS, build_model, with_projection_head


def test_fedbns_net_has_its_published_size() -> None:
    parameters = list(build_model("digits_cnn", 0).parameters())
    assert sum(p.numel() for p in parameters) == 14_219_210
    norms = [
        m
        for m in build_model("digits_cnn", 0).modules()
        if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d)
    ]
    assert sum(p.numel() for m in norms for p in m.parameters()) == 5_632


def test_the_compact_net_has_four_batch_norm_layers() -> None:
    layers = list(build_model("compact_cnn", 0))  # type: ignore[call-overload]
    norms = [m for m in layers if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d)]
    assert [m.num_features for m in norms] == [16, 32, 64, 128]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("classes", [10, 3])
def test_models_answer_classes(name: str, classes: int) -> None:
    model = build_model(name, 0, classes).eval()
    with torch.inference_mode():
        assert model(torch.zeros(2, 3, 28, 28)).shape == (2, classes)


def test_the_seed_alone_fixes_the_start() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one = build_model("compact_cnn", 1).state_dict()
    assert torch.equal(before, torch.get_rng_state())
    torch.rand(7)
    two = build_model("compact_cnn", 1).state_dict()
    three = build_model("compact_cnn", 2).state_dict()
    assert all(torch.equal(one[k], two[k]) for k in one)
    assert not torch.equal(one["0.weight"], three["0.weight"])


def test_bad_requests_are_refused() -> None:
    with pytest.raises(ValueError, match="did you mean 'digits_cnn'"):
        build_model("digit_cnn", 0)
    for classes in (1, "a", 2.5, True, None):
        with pytest.raises(ValueError, match=f"at least two classes, got {classes!r}"):
            unchecked(build_model)("digits_cnn", 0, classes)


@pytest.mark.parametrize("name", MODELS)
def test_the_projection_head_replaces_the_last_linear_layer_alone(name: str) -> None:
    plain, model = build_model(name, 3, 7), build_model(name, 3, 7, projection=256)
    features = last_linear(plain).in_features
    one, two = plain.state_dict(), model.state_dict()
    last = f"{len(list(plain)) - 1}."  # type: ignore[call-overload]
    body = [key for key in one if not key.startswith(last)]
    assert len(body) == len(one) - 2
    assert all(torch.equal(one[key], two[key]) for key in body)
    assert {key: tuple(two[key].shape) for key in two if key not in body} == {
        f"{last}0.weight": (features, features),
        f"{last}0.bias": (features,),
        f"{last}2.weight": (256, features),
        f"{last}2.bias": (256,),
        f"{last}3.weight": (7, 256),
        f"{last}3.bias": (7,),
    }
    images = torch.zeros(2, 3, 28, 28)
    with torch.inference_mode():
        outputs, z = with_representation(model.eval(), images)
    assert (outputs.shape, z.shape) == ((2, 7), (2, 256))


def test_the_head_is_two_layers_with_a_relu_between_and_a_classifier() -> None:
    model = with_projection_head(nn.Sequential(nn.Linear(4, 2)), 0, 3)
    head, x = model.state_dict(), torch.randn(5, 4)
    hidden = (x @ head["0.0.weight"].T + head["0.0.bias"]).clamp_min(0)
    z = hidden @ head["0.2.weight"].T + head["0.2.bias"]
    outputs, found = with_representation(model, x)
    torch.testing.assert_close(found, z)
    torch.testing.assert_close(outputs, z @ head["0.3.weight"].T + head["0.3.bias"])


def test_the_seed_alone_fixes_the_head() -> None:
    before = torch.get_rng_state()
    one, two, other = (build_model("compact_cnn", seed, projection=8) for seed in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    heads = [last_linear(model).weight for model in (one, two, other)]
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])


def test_any_net_takes_a_head_and_stays_as_it_was() -> None:
    block = residual_net()
    before = {key: value.clone() for key, value in block.state_dict().items()}
    headed = with_projection_head(block.eval(), 0, 6)
    assert all(torch.equal(value, before[key]) for key, value in block.state_dict().items())
    assert last_linear(headed).in_features == 6
    assert {p.dtype for p in headed.parameters()} == {torch.float64}
    assert not any(layer.training for layer in headed.modules())
    images = torch.zeros(2, 3, 4, 4, dtype=torch.float64)
    assert headed(images).shape == (2, 2)
    alone = with_projection_head(nn.Linear(4, 2), 0, 3)
    assert alone(torch.zeros(1, 4)).shape == (1, 2)


def test_bad_heads_are_refused() -> None:
    for width in (0, -1, 2.5, True, "256"):
        with pytest.raises(ValueError, match=f"a whole width of at least 1, got {width!r}"):
            unchecked(with_projection_head)(nn.Linear(4, 2), 0, width)
    with pytest.raises(ValueError, match="got 0"):
        build_model("compact_cnn", 0, projection=0)
    with pytest.raises(ValueError, match="the model has no linear layer"):
        with_projection_head(nn.Conv2d(3, 2, 3), 0)


@pytest.mark.parametrize("model", [None, "compact_cnn", nn.Linear])
def test_only_a_module_takes_a_projection_head(model) -> None:
    with pytest.raises(TypeError, match=r"is no Module: use build_model\(name, seed\)"):
        unchecked(with_projection_head)(model, 0)


def test_a_last_layer_without_a_shape_takes_no_projection_head() -> None:
    with pytest.raises(ValueError, match="no shape yet: run the model once on an example"):
        with_projection_head(nn.Sequential(nn.Flatten(), nn.LazyLinear(3)), 0)


@pytest.mark.parametrize("width", [2**20 + 1, 10**400])
def test_an_absurd_projection_is_refused(width: int) -> None:
    with pytest.raises(ValueError, match="is too wide: MOON's is 256"):
        with_projection_head(nn.Sequential(nn.Linear(1, 2)), 0, width)
    with pytest.raises(ValueError, match="is too wide: MOON's is 256"):
        build_model("compact_cnn", 0, projection=width)


class TwoNames(nn.Module):
    """One last layer under two names, the second of which the forward uses."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.classifier = nn.Linear(4, 2)
        self.heads = nn.ModuleList([self.classifier, nn.Identity()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.heads[0](self.body(x))


def test_a_last_layer_of_two_names_gives_way_under_both() -> None:
    model = with_projection_head(TwoNames(), 0, 3)
    assert model.classifier is model.heads[0] and len(model.classifier) == 4  # type: ignore
    _, z = with_representation(model, torch.ones(5, 4))
    assert z.shape == (5, 3)
