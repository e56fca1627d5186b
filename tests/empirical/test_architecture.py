"""The network's units, parameters and comparisons, counted by hand."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from toy import bn_net, residual_net

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


def test_batch_norm_takes_the_place_of_a_bias_that_is_not_there():
    net = nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU())
    x = torch.zeros(1, 3, 8, 8)
    folded = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    assert architecture(net, x) == architecture(folded, x) == [(144, 112, 0)]
    assert architecture(net, x, norms=2) == [(144, 108, 0), (144, 16, 0)]


@pytest.mark.parametrize(
    "before", [nn.ReLU(), nn.ReLU(inplace=True), nn.MaxPool2d(1), nn.Identity()]
)
def test_batch_norm_that_no_weights_take_up_is_a_layer(before):
    net = nn.Sequential(nn.Conv2d(3, 4, 3), before, nn.BatchNorm2d(4), nn.ReLU())
    assert architecture(net, torch.zeros(1, 3, 8, 8)) == [(144, 112, 0), (144, 8, 0)]


def test_batch_norm_before_all_weights_is_a_layer():
    net = nn.Sequential(nn.BatchNorm2d(3, affine=False), nn.Conv2d(3, 4, 3))
    assert architecture(net, torch.zeros(1, 3, 8, 8)) == [(192, 6, 0), (144, 112, 0)]


class Called(nn.Module):
    """A convolution with batch norm; `after` says what becomes of what they take and give."""

    def __init__(self, after):
        super().__init__()
        self.conv, self.bn, self.after = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), after

    def forward(self, x):
        given = self.conv(x)
        return self.after(given, self.bn(given))


def test_a_sum_that_goes_around_batch_norm_keeps_it_from_being_taken_up():
    x = torch.zeros(1, 3, 8, 8)
    alone = Called(lambda _, bn: functional.relu(bn).flatten(1) * 0.5 + 1)
    assert architecture(alone, x) == [(144, 112, 0)]
    around = [Called(lambda given, bn: given + bn), Called(lambda given, bn: (given, bn))]
    assert all(architecture(net, x) == [(144, 112, 0), (144, 8, 0)] for net in around)
    assert len(architecture(residual_net(), torch.zeros(1, 3, 4, 4).double())) == 4


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("gelu", lambda _, bn: functional.gelu(bn)),
        ("max_pool2d", lambda _, bn: functional.max_pool2d(bn, 2)),
        ("mul", lambda given, bn: given * bn),
        ("sigmoid", lambda _, bn: bn.sigmoid()),
    ],
)
def test_functions_that_have_no_count_are_refused(name, call):
    with pytest.raises(ValueError, match=f"calls {name} as a function.*use a module"):
        architecture(Called(call), torch.zeros(1, 3, 8, 8))


def test_the_net_is_left_as_it_was():
    net = bn_net().train()
    architecture(net, torch.zeros(1, 3, 4, 4, dtype=torch.float64))
    assert net.training and net[1].num_batches_tracked == 0
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())


def test_nets_that_are_not_piecewise_linear_are_refused():
    with pytest.raises(ValueError, match="a layer GELU has no count"):
        architecture(nn.Sequential(nn.Linear(2, 2), nn.GELU()), torch.zeros(1, 2))
    with pytest.raises(ValueError, match="no layer with parameters"):
        architecture(nn.Sequential(nn.ReLU()), torch.zeros(1, 2))
    with pytest.raises(ValueError, match="begins with pooling"):
        architecture(nn.Sequential(nn.MaxPool2d(2)), IMAGE)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        architecture(bn_net(), IMAGE, 0)
