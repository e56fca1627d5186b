import pytest
import torch
from torch import nn
from toy import unchecked

from empirical.models import MODELS, build_model


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
