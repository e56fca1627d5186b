"""Full whitening: covariance exactly the identity, against NumPy, with dead directions left out."""

import numpy as np
import pytest
import torch
from streams import trained
from torch import nn
from toy import bn_net, unchecked

from empirical.features import layer_features
from empirical.whitening import whitenings

INPUTS = torch.randn(230, 3, 4, 4, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


def given(net, x, number):
    """What comes to a layer of a Sequential: (images × positions, channels)."""
    with torch.no_grad():
        for layer in net.eval()[:number]:
            x = layer(x)
    return x.movedim(1, -1).reshape(-1, x.shape[1]).numpy()


@pytest.mark.parametrize(("place", "number"), [(0, 1), (1, 5)])
def test_the_whitened_covariance_over_images_and_positions_is_the_identity(place, number):
    net = trained(bn_net())
    by = whitenings(net, INPUTS)[place]
    rows = given(net, INPUTS, number)
    z = (rows - by.mean.numpy()) @ by.root.numpy()
    # Conditioning below 1e4 leaves twelve digits.
    assert np.allclose(z.mean(0), 0, atol=1e-12)
    assert np.allclose(np.cov(z.T, bias=True), np.eye(z.shape[1]), atol=1e-10)
    assert np.allclose(by.root, by.root.T, atol=1e-12) and np.linalg.eigvalsh(by.root).min() > 0
    assert by.kept == z.shape[1]
    assert np.allclose(by.mean, rows.mean(0), atol=1e-12)


def test_whitened_features_are_the_whitened_positions_averaged_over_cells():
    net = trained(bn_net())
    features, by = layer_features(net, INPUTS)[0], whitenings(net, INPUTS[:90])[0]
    rows = given(net, INPUTS, 1)
    z = ((rows - by.mean.numpy()) @ by.root.numpy()).reshape(230, 2, 2, 4)  # one position a cell
    assert np.allclose(features.whitened(by), np.moveaxis(z, 3, 1).reshape(230, 16), atol=1e-12)


def test_per_unit_features_have_the_diagonal_of_the_very_covariance():
    net = trained(bn_net())
    net[1].eps = 0.1
    features, by = layer_features(net, INPUTS)[0], whitenings(net, INPUTS[:90])[0]
    train, rows = given(net, INPUTS[:90], 1), given(net, INPUTS, 1)
    assert np.allclose(by.variance, train.var(0), atol=1e-12)
    z = (rows - train.mean(0)) / np.sqrt(train.var(0) + 0.1)
    expected = np.moveaxis(z.reshape(230, 2, 2, 4), 3, 1).reshape(230, 16)
    assert np.allclose(features.per_unit(by), expected, atol=1e-12)


def test_dead_directions_are_left_out_and_the_rest_is_white():
    net = trained(bn_net())
    with torch.no_grad():
        net[0].weight[1], net[0].bias[1] = 2 * net[0].weight[0], 7.0
        net[0].weight[2], net[0].bias[2] = 0.0, 3.0
    by = whitenings(net, INPUTS)[0]
    assert by.kept == 2
    z = (given(net, INPUTS, 1) - by.mean.numpy()) @ by.root.numpy()
    values = np.linalg.eigvalsh(np.cov(z.T, bias=True))
    assert np.allclose(values, [0, 0, 1, 1], atol=1e-9)
    assert whitenings(net, INPUTS, cut=0.9)[0].kept == 1


def test_a_large_common_mean_does_not_cancel():
    net = nn.Sequential(nn.BatchNorm2d(3)).double()
    by = whitenings(net, INPUTS + 1e6)[0]
    rows = INPUTS.movedim(1, -1).reshape(-1, 3).numpy()
    values, vectors = np.linalg.eigh(np.cov(rows.T, bias=True))
    # 1e6 takes ten of the sixteen digits from the inputs themselves.
    assert np.allclose(by.root, vectors / np.sqrt(values) @ vectors.T, atol=1e-8)


def test_what_cannot_be_whitened_is_refused():
    net = trained(bn_net())
    with pytest.raises(ValueError, match=r"share of the largest variance in \[0, 1\), got 1"):
        unchecked(whitenings)(net, INPUTS, 1)
    with pytest.raises(ValueError, match="layer '5' has one value per channel"):
        whitenings(net, INPUTS[:1])
    with pytest.raises(ValueError, match="layer '1' has 4 channels, the whitening 5"):
        layer_features(net, INPUTS)[0].whitened(whitenings(net, INPUTS)[1])
    with pytest.raises(ValueError, match="layer '1' has 4 channels, the whitening 5"):
        layer_features(net, INPUTS)[0].per_unit(whitenings(net, INPUTS)[1])
