"""The network's units and parameters, counted by hand."""

import pytest
import torch
from torch import nn
from toy import bn_net

from empirical import build_model
from empirical.architecture import architecture


def test_the_compact_net_has_the_units_and_parameters_of_its_layers():
    found = architecture(build_model("compact_cnn", 0), torch.zeros(1, 3, 28, 28))
    assert found == [
        (16 * 28 * 28, 16 * (3 * 25 + 1)),
        (16 * 14 * 14 * 2, 0),  # two comparisons of pairs, then one of their winners
        (16 * 14 * 14, 0),
        (32 * 14 * 14, 32 * (16 * 25 + 1)),
        (32 * 7 * 7 * 2, 0),
        (32 * 7 * 7, 0),
        (64 * 7 * 7, 64 * (32 * 25 + 1)),
        (128, 128 * (64 * 49 + 1)),
        (10, 10 * 129),
    ]


@pytest.mark.parametrize("name", ["compact_cnn", "digits_cnn"])
def test_only_batch_norm_is_not_counted(name):
    net = build_model(name, 0)
    norm = sum(
        p.numel()
        for layer in net.modules()
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d)
        for p in layer.parameters()
    )
    parameters = sum(p for _, p in architecture(net, torch.zeros(1, 3, 28, 28)))
    assert parameters == sum(p.numel() for p in net.parameters()) - norm


@pytest.mark.parametrize(("kernel", "rounds"), [(1, []), (3, [4, 2, 1, 1]), ((1, 2), [1])])
def test_pooling_over_k_values_takes_k_minus_one_comparisons(kernel, rounds):
    net = nn.Sequential(nn.Conv2d(3, 1, 1), nn.MaxPool2d(kernel, stride=1))
    found = architecture(net, torch.zeros(1, 3, 3, 3))[1:]
    outputs = {1: 9, 3: 1, (1, 2): 6}[kernel]
    assert found == [(outputs * k, 0) for k in rounds]


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
