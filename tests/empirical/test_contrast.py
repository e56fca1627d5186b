"""What represents an image, and the networks frozen beside the one in training."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from toy import Residual, bn_net, client, plain_net

from empirical.algorithm import Algorithm, Features
from empirical.algorithms import build_algorithm
from empirical.bn_policy import AGGREGATED, BN_POLICIES
from empirical.contrast import Contrast, last_linear, with_representation
from empirical.federate import federate
from empirical.schedule import Schedule
from empirical.weights import Weights, load, take, tensors

X = torch.randn(7, 3, 4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
CLIENTS = [client("a", 9), client("b", 17), client("c", 30), client("d", 5)]
SCHEDULE = Schedule(rounds=4, local_epochs=2, batch_size=8, lr=0.1, participation=0.5, seed=2)


class Unused(nn.Module):
    """Its last linear layer by registration takes no part."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.spare = plain_net(), nn.Linear(2, 2)

    def forward(self, images: Tensor) -> Tensor:
        return self.net(images)


class Twice(nn.Module):
    """Calls its last linear layer twice, by keyword, on a row of tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(2, 2, dtype=torch.float64)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.last(input=self.last(input=tokens)).mean(1)


def moved(net: nn.Module) -> nn.Module:
    """Statistics apart from their start, so that the mode matters."""
    net.train()
    for _ in range(3):
        net(3 * X + 1)
    return net


def test_the_representation_is_what_the_last_linear_layer_is_given() -> None:
    net = moved(bn_net()).eval()
    outputs, z = with_representation(net, X)
    assert torch.equal(outputs, net(X))
    assert torch.equal(z, net[:-1](X))  # type: ignore[index]
    block = Residual().double().eval()
    outputs, z = with_representation(block, X)
    assert torch.equal(block.head(z), outputs)


def test_the_layers_last_call_counts_and_tokens_are_one_representation() -> None:
    net, tokens = Twice(), X[:, 0, :, :2]
    outputs, z = with_representation(net, tokens)
    assert torch.equal(z, net.last(tokens).flatten(1))
    assert torch.equal(outputs, net(tokens))


def test_a_batch_of_one_stays_a_batch() -> None:
    net = moved(bn_net()).eval()
    assert with_representation(net, X[:1])[1].shape == (1, 5)
    contrast = Contrast(net, X[:1])
    contrast.begin(tensors(net), tensors(net), X)
    found = contrast.features(X.new_zeros(1, 5), torch.tensor([3]))
    assert found.received.shape == (1, 5)
    assert found.previous is not None and found.previous.shape == (1, 5)


def test_no_hook_stays_behind_even_where_the_pass_fails() -> None:
    net = bn_net()
    with_representation(net, X)
    with pytest.raises(RuntimeError):
        with_representation(net, X[:, :2])
    assert not last_linear(net)._forward_pre_hooks


def test_nets_without_a_representation_are_refused_before_training() -> None:
    moon, schedule = build_algorithm("moon"), Schedule(rounds=1)
    without = nn.Sequential(nn.Conv2d(3, 2, 4), nn.BatchNorm2d(2), nn.Flatten()).double()
    with pytest.raises(ValueError, match="the model has no linear layer"):
        federate(moon, AGGREGATED, without, CLIENTS, schedule)
    unused = nn.Sequential(nn.BatchNorm2d(3), Unused()).double()
    with pytest.raises(ValueError, match="does not call its last linear layer"):
        federate(moon, AGGREGATED, unused, CLIENTS, schedule)
    federate(build_algorithm("fedavg"), AGGREGATED, unused, CLIENTS, schedule)


def test_frozen_networks_are_in_eval_mode_without_gradients_and_move_nothing() -> None:
    net = nn.Sequential(nn.Dropout(0.5), moved(bn_net())).train()
    old = nn.Sequential(nn.Dropout(0.5), moved(bn_net(1))).train()
    kept, generator = take(tensors(net), tensors(net)), torch.get_rng_state()
    contrast = Contrast(net, X[:1])
    received, previous = tensors(net), take(tensors(old), tensors(old))
    for _ in range(2):  # the second time nothing has moved
        contrast.begin(received, previous, X)
        found = contrast.features(X.new_zeros(2, 5), torch.tensor([4, 0]))
        assert torch.equal(found.received, with_representation(net.eval(), X)[1][[4, 0]])
        assert found.previous is not None
        assert torch.equal(found.previous, with_representation(old.eval(), X)[1][[4, 0]])
        assert not (found.received.requires_grad or found.previous.requires_grad)
        net.train()
    frozen = contrast._frozen
    assert not any(layer.training for layer in frozen.modules())
    assert all(torch.equal(now, previous[name]) for name, now in tensors(frozen).items())
    assert all(torch.equal(now, kept[name]) for name, now in tensors(net).items())
    assert all(weight.grad is None for weight in net.parameters())
    assert torch.equal(torch.get_rng_state(), generator)


def test_the_network_in_training_stays_in_training_mode() -> None:
    net = moved(bn_net())
    Contrast(net, X[:1]).begin(tensors(net), None, X)
    assert all(layer.training for layer in net.modules())
    assert all(weight.requires_grad for weight in net.parameters())


def test_no_result_depends_on_how_many_images_pass_at_once(monkeypatch) -> None:
    net = moved(bn_net())
    found = []
    for size in (2, 100):
        monkeypatch.setattr("empirical.contrast.BATCH", size)
        contrast = Contrast(net, X[:1])
        contrast.begin(tensors(net), None, X)
        found.append(contrast.features(X.new_zeros(7, 5), torch.arange(7)).received)
    torch.testing.assert_close(*found, rtol=1e-14, atol=1e-14)


Key = tuple[int, str]  # round, client


class Watched:
    """A run whose features are noted, with the weights as each client's round began and ended."""

    def __init__(self, policy: str, measure_every: int = 1) -> None:
        self.features: dict[Key, list[Features]] = {}
        self.server: dict[Key, Weights] = {}
        self.received: dict[Key, Weights] = {}
        self.ended: dict[Key, Weights] = {}
        here: list[Key] = []

        def note(features: Features) -> Tensor:
            self.features.setdefault(here[-1], []).append(features)
            return features.z.square().mean()

        algorithm = Algorithm("note", "", feature_loss=note)
        schedule = replace(SCHEDULE, measure_every=measure_every)
        run = federate(algorithm, BN_POLICIES[policy], bn_net(), CLIENTS, schedule)
        train = run._train_client

        def spy(site, round_):
            here.append((round_, site.name))
            self.server[here[-1]] = run.state.server
            self.received[here[-1]] = {**run.state.server, **run.state.clients[site.name]}
            result = train(site, round_)
            self.ended[here[-1]] = take(tensors(run._net), tensors(run._net))
            return result

        run._train_client = spy  # type: ignore[method-assign]
        assert list(run) and run.state.status == "complete"


def represented(weights: Weights, name: str) -> Tensor:
    """The training images of a client, by `bn_net` in eval mode."""
    net, images = bn_net(), next(c for c in CLIENTS if c.name == name).train.inputs()
    load(net, weights)
    return net.eval()[:-1](images.double())  # type: ignore[index]


def belong(rows: Tensor, to: Tensor) -> bool:
    """Whether each row is one of `to`, within rounding by other batches."""
    return bool((torch.cdist(rows, to).min(1).values < 1e-12).all())


@pytest.mark.parametrize("measure_every", [1, 4])
@pytest.mark.parametrize("policy", BN_POLICIES)
def test_received_and_previous_are_the_clients_own(policy: str, measure_every: int) -> None:
    # Received: with the batch norm that stays with the client. Previous: all of its last fit,
    # whatever was averaged, measured or trained on the one resident model since.
    run = Watched(policy, measure_every)
    last: dict[str, int] = {}
    pauses = set()
    for (round_, name), found in run.features.items():
        received = represented(run.received[round_, name], name)
        servers = represented(run.server[round_, name], name)
        for features in found:
            assert belong(features.received, received)
            if name not in last:
                assert features.previous is None
                continue
            assert features.previous is not None
            assert belong(features.previous, represented(run.ended[last[name], name], name))
            assert not belong(features.previous, received)
            # Counters alone stay with a client where batch norm is aggregated.
            assert belong(features.received, servers) is (policy == "aggregated")
        pauses.add(round_ - last.get(name, round_))
        last[name] = round_
    assert max(pauses) > 1  # rounds of others lie between a client's own


def test_the_live_representation_is_that_of_the_training_pass() -> None:
    run = Watched("client_specific")
    for (round_, name), found in run.features.items():
        assert all(features.z.requires_grad for features in found)
        assert not belong(found[0].z.detach(), represented(run.received[round_, name], name))
