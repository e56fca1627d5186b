"""Features at batch-norm layers against a forward pass by hand, and their refusals."""

import numpy as np
import pytest
import torch
from streams import trained
from torch import nn
from toy import bn_net, plain_net, residual_net, unchecked

from empirical import DivergedError, build_model
from empirical.features import layer_features, principal_coordinates

INPUTS = torch.randn(7, 3, 4, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def by_hand(net, x):
    """What comes to each batch-norm layer of a Sequential and what it gives, in eval mode."""
    pairs = []
    with torch.no_grad():
        for layer in net.eval():
            given, x = x, layer(x)
            if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
                pairs.append((layer, given, x))
    return pairs


def test_the_affine_features_are_what_the_layers_give_averaged_over_cells():
    net = trained(bn_net())
    found = layer_features(net, INPUTS)
    (_, _, maps), (_, _, vectors) = by_hand(net, INPUTS)
    assert [layer.name for layer in found] == ["1", "5"]
    # Maps of 2 × 2 have one position a cell.
    assert torch.allclose(found[0].affine(), maps.flatten(1), rtol=0, atol=1e-12)
    assert torch.allclose(found[1].affine(), vectors, rtol=0, atol=1e-12)


def test_with_unit_scale_and_no_shift_normalised_is_what_the_layer_gives():
    net = trained(bn_net())
    with torch.no_grad():
        for layer in (net[1], net[5]):
            layer.weight.fill_(1)
            layer.bias.fill_(0)
    for features, (_, _, given) in zip(
        layer_features(net, INPUTS), by_hand(net, INPUTS), strict=True
    ):
        assert torch.allclose(features.normalised(), given.flatten(1), rtol=0, atol=1e-12)
        assert torch.equal(features.normalised(), features.affine())


def test_normalised_is_before_gamma_and_beta_and_with_eps():
    net = trained(bn_net())
    net[5].eps = 0.1
    layer, given, _ = by_hand(net, INPUTS)[1]
    expected = (given - layer.running_mean) / (layer.running_var + 0.1).sqrt()
    assert torch.allclose(layer_features(net, INPUTS)[1].normalised(), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("side", "ends"), [(8, (slice(0, 4), slice(4, 8))), (7, (slice(0, 4), slice(3, 7)))]
)
def test_maps_are_averaged_over_four_cells_channel_by_channel(side, ends):
    net = trained(nn.Sequential(nn.Conv2d(3, 5, 1), nn.BatchNorm2d(5)).double())
    x = torch.randn(
        2, 3, side, side, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    with torch.no_grad():
        given = net.eval()(x)
    found = layer_features(net, x)[0].affine().numpy()
    assert found.shape == (2, 20)
    expected = [
        [
            given[n, c, rows, columns].mean().item()
            for c in range(5)
            for rows in ends
            for columns in ends
        ]
        for n in range(2)
    ]
    assert np.allclose(found, expected, rtol=0, atol=1e-12)


def test_a_row_or_column_of_one_position_is_one_cell():
    net = nn.Sequential(nn.Conv2d(3, 2, (4, 1)), nn.BatchNorm2d(2)).double()
    assert layer_features(net, INPUTS)[0].normalised().shape == (7, 4)


def test_layers_come_in_the_order_of_the_pass_not_of_registration():
    net = trained(residual_net())
    net.downsample, net.body = nn.Sequential(*net.downsample), net.body
    assert [layer.name for layer in layer_features(net, INPUTS)] == ["body.1", "downsample.1"]
    swapped = nn.Sequential(nn.Identity(), nn.Identity()).double()
    swapped.late, swapped.early = nn.BatchNorm2d(3), nn.BatchNorm2d(3)
    swapped.double().forward = lambda x: swapped.late(swapped.early(x))
    assert [layer.name for layer in layer_features(swapped, INPUTS)] == ["early", "late"]


def test_an_image_passes_by_itself_and_nothing_is_left_behind():
    net = trained(bn_net()).train()
    net[1].eval()  # as someone who freezes one layer has it
    before = {name: value.clone() for name, value in net.state_dict().items()}
    together = layer_features(net, INPUTS.repeat(40, 1, 1, 1))[1].normalised()
    alone = torch.cat([layer_features(net, x[None])[1].normalised() for x in INPUTS])
    assert torch.allclose(together[:7], alone, rtol=0, atol=1e-12)
    assert net.training and net[5].training and not net[1].training
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert not any(layer._forward_pre_hooks for layer in net.modules())


def test_features_of_a_float32_net_are_float64():
    found = layer_features(build_model("compact_cnn", 0), torch.zeros(2, 3, 28, 28))
    assert [tuple(f.normalised().shape) for f in found] == [(2, 64), (2, 128), (2, 256), (2, 128)]
    assert all(f.affine().dtype is torch.float64 for f in found)


def test_what_has_no_features_is_refused():
    see = unchecked(layer_features)
    with pytest.raises(TypeError, match="no Module"):
        see("net", INPUTS)
    with pytest.raises(TypeError, match="must be a tensor, got ndarray"):
        see(bn_net(), INPUTS.numpy())
    with pytest.raises(ValueError, match="are empty"):
        see(bn_net(), INPUTS[:0])
    with pytest.raises(ValueError, match="calls no batch-norm layer"):
        see(plain_net(), INPUTS)
    twice = nn.BatchNorm2d(3).double()
    with pytest.raises(ValueError, match="called twice"):
        see(nn.Sequential(nn.Sequential(twice), nn.Sequential(twice)), INPUTS)
    with pytest.raises(ValueError, match=r"is given \(7, 3, 16\): features are made of maps"):
        see(nn.Sequential(nn.Flatten(2), nn.BatchNorm1d(3)).double(), INPUTS)
    with pytest.raises(ValueError, match="keeps no running statistics"):
        see(nn.Sequential(nn.BatchNorm2d(3, track_running_stats=False)).double(), INPUTS)


def test_what_is_not_finite_is_no_result():
    net = bn_net()
    with torch.no_grad():
        net[4].weight[0, 0] = float("nan")
    with pytest.raises(DivergedError, match="layer '5' is not finite"):
        layer_features(net, INPUTS)


def test_principal_coordinates_keep_the_most_variance_about_the_reference():
    x = INPUTS.flatten(1)
    found = principal_coordinates(x[:3], x, 6)
    # All directions that seven points span: distances are kept.
    assert torch.allclose(torch.cdist(found, found), torch.cdist(x[:3], x[:3]), atol=1e-10)
    whole = principal_coordinates(INPUTS, INPUTS, 2)
    values = torch.linalg.eigvalsh(torch.cov(x.T, correction=0)).flip(0)
    assert torch.allclose(whole.square().mean(0), values[:2], atol=1e-10)
    assert principal_coordinates(x, x, 50).shape == (7, 6)
    moved = principal_coordinates(x + 5, x, 2) - principal_coordinates(x, x, 2)
    assert torch.allclose(moved, moved[:1].expand(7, 2), atol=1e-10) and moved.abs().max() > 0.1


@pytest.mark.parametrize(
    "given", [(INPUTS, INPUTS[:1], 2), (INPUTS, INPUTS, 0), (INPUTS, INPUTS[:, :2], 2)]
)
def test_directions_that_are_not_there_are_refused(given):
    with pytest.raises(ValueError, match="give two images or more"):
        principal_coordinates(*given)
