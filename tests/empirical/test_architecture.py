"""The network's units, parameters and comparisons, counted by hand."""

import pytest
import torch
from torch import nn
from toy import bn_net

from empirical import build_model
from empirical.architecture import architecture

IMAGE = torch.zeros(1, 3, 28, 28)


def test_the_compact_net_has_the_units_and_parameters_of_its_layers():
    assert architecture(build_model("compact_cnn", 0), IMAGE) == [
        (16 * 28 * 28, 16 * (3 * 25 + 1), 14 * 14 * 16 * 6),  # six pairs of four
        (32 * 14 * 14, 32 * (16 * 25 + 1), 7 * 7 * 32 * 6),
        (64 * 7 * 7, 64 * (32 * 25 + 1), 0),
        (128, 128 * (64 * 49 + 1), 0),
        (10, 10 * 129, 0),
    ]


def test_batch_norm_of_each_client_is_a_layer_of_its_own():
    net = build_model("compact_cnn", 0)
    one, three = architecture(net, IMAGE), architecture(net, IMAGE, norms=3)
    assert [layer[:2] for layer in three[::2]] == [layer[:2] for layer in one]
    assert three[1::2] == [
        (16 * 28 * 28, 3 * 2 * 16, 14 * 14 * 16 * 6),
        (32 * 14 * 14, 3 * 2 * 32, 7 * 7 * 32 * 6),
        (64 * 7 * 7, 3 * 2 * 64, 0),
        (128, 3 * 2 * 128, 0),
    ]


@pytest.mark.parametrize("name", ["compact_cnn", "digits_cnn"])
def test_only_batch_norm_is_not_counted(name):
    net = build_model(name, 0)
    kinds = nn.BatchNorm1d | nn.BatchNorm2d
    norms = [layer for layer in net.modules() if isinstance(layer, kinds)]
    left_out = sum(p.numel() for layer in norms for p in layer.parameters())
    counted = sum(parameters for _, parameters, _ in architecture(net, IMAGE))
    assert counted == sum(p.numel() for p in net.parameters()) - left_out


@pytest.mark.parametrize(("kernel", "compared"), [(1, 0), (3, 36), ((1, 2), 6)])
def test_pooling_compares_each_pair_of_a_window(kernel, compared):
    net = nn.Sequential(nn.Conv2d(3, 1, 1), nn.ReLU(), nn.MaxPool2d(kernel, stride=1))
    assert architecture(net, torch.zeros(1, 3, 3, 3)) == [(9, 4, compared)]


def test_the_net_is_left_as_it_was():
    net = bn_net().train()
    architecture(net, torch.zeros(1, 3, 4, 4, dtype=torch.float64))
    assert net.training and net[1].num_batches_tracked == 0
    assert not any(layer._forward_hooks for layer in net.modules())


def test_nets_that_are_not_piecewise_linear_are_refused():
    with pytest.raises(ValueError, match="a layer GELU has no count"):
        architecture(nn.Sequential(nn.Linear(2, 2), nn.GELU()), torch.zeros(1, 2))
    with pytest.raises(ValueError, match="no layer with parameters"):
        architecture(nn.Sequential(nn.ReLU()), torch.zeros(1, 2))
    with pytest.raises(ValueError, match="belongs to none before it"):
        architecture(nn.Sequential(nn.BatchNorm2d(3)), IMAGE)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        architecture(bn_net(), IMAGE, 0)
