"""The arrays for the estimates of divergence: what each holds, checked by other routes."""

import copy

import numpy as np
import pytest
import torch
from federations import toy_federation
from torch import nn

from empirical import (
    Client,
    DivergedError,
    FederationState,
    Serving,
    adapt,
    build_model,
    load,
    serve_external,
    stream,
)
from empirical.seeds import derive
from empirical.studies import Setting, train_study
from empirical.studies.divergence import divergence_data

CLIENTS = toy_federation((24, 32, 24, 24), test=140)
NAMES = tuple(client.name for client in CLIENTS)
OUT = NAMES[1]
SPECIFIC = ["client_specific", "affine", "per_unit", "whitened"]


def config(policy="client_specific", layers="all", batches=(1, 2, 4), **other):
    setting = Setting("quick", "toy", NAMES, "0" * 64)
    schedule = setting.schedule(setting.size("external"), 0)
    training = setting.training("fedavg", policy, schedule, held_out=OUT)
    return {
        "study": "divergence",
        "training": training,
        "held_out": OUT,
        "layers": layers,
        "batches": list(batches),
        **other,
    }


@pytest.fixture(scope="module")
def states():
    return {
        policy: train_study(config(policy)["training"], CLIENTS, lambda _: None, lambda _: None)
        for policy in ("aggregated", "client_specific")
    }


def data(states, **chosen):
    told = []
    found = divergence_data(
        config(**chosen), CLIENTS, states[chosen.get("policy", "client_specific")], told.append
    )
    assert told == sorted(told) and told[-1] == 1
    return found


@pytest.fixture(scope="module")
def specific(states):
    return data(states)


def member(name):
    return next(client for client in CLIENTS if client.name == name)


def model(state, name="server"):
    net = build_model("compact_cnn", 0).eval()
    load(net, state.weights(name))
    return net.to(memory_format=torch.channels_last)


def last_given(net, x):
    """What comes to the last batch-norm layer of the compact net, and what it gives."""
    with torch.no_grad():
        r = net[:-3](x)
        return r.double().numpy(), net[-3](r).double().numpy(), net[-3]


def test_who_is_seen_and_with_which_weights(specific):
    assert specific["seen"] == [NAMES[0], NAMES[2], NAMES[3]] and specific["unseen"] == OUT
    assert specific["weights"] == pytest.approx([1 / 3] * 3)
    assert list(specific["features"]) == ["input", *(f"layer {k}" for k in (1, 2, 3, 4))]
    for layer, variants in specific["features"].items():
        kinds = ["raw"] if layer == "input" else SPECIFIC
        assert list(variants) == kinds
        for clients in variants.values():
            assert list(clients) == [NAMES[0], NAMES[2], NAMES[3], OUT]
            assert all(len(z) == 140 and z.dtype == np.float64 for z in clients.values())


def test_raw_features_are_the_pixels_in_directions_of_training_images(specific):
    seen = [NAMES[0], NAMES[2], NAMES[3], OUT]
    by = np.concatenate([member(n).train.inputs().numpy().reshape(-1, 2352) for n in seen])
    mean = by.mean(0, dtype=np.float64)
    centred = by - mean
    values, vectors = np.linalg.eigh(centred @ centred.T)
    leading = centred.T @ vectors[:, ::-1][:, :100] / np.sqrt(values[::-1][:100])
    x = specific["features"]["input"]["raw"][OUT]
    expected = (member(OUT).test.inputs().numpy().reshape(140, -1) - mean) @ leading
    assert x.shape == (140, 100)
    # Directions are unique up to sign where their variances differ.
    assert np.allclose(np.abs(x[:, :5]), np.abs(expected[:, :5]), atol=1e-6)
    assert np.allclose(x @ x.T, expected @ expected.T, rtol=1e-6, atol=1e-4)


def test_a_seen_client_has_its_own_statistics_gamma_and_beta(states, specific):
    name = NAMES[2]
    net = model(states["client_specific"], name)
    r, out, layer = last_given(net, member(name).test.inputs())
    at = specific["features"]["layer 4"]
    z = (r - layer.running_mean.numpy()) / np.sqrt(layer.running_var.double().numpy() + layer.eps)
    # float32 inside the net.
    assert np.allclose(at["client_specific"][name], z, atol=1e-5)
    assert np.allclose(at["affine"][name], out, atol=1e-5)
    server = model(states["client_specific"])
    assert not np.allclose(
        z,
        (r - server[-3].running_mean.numpy()) / np.sqrt(server[-3].running_var.numpy() + 1e-5),
        atol=1e-2,
    )


def test_the_unseen_client_has_the_statistics_of_its_stream_and_the_servers_affine(
    states, specific
):
    client, state = member(OUT), states["client_specific"]
    net = model(state)
    arriving = stream(net, client.test, derive(0, "external", OUT))
    moved = adapt(net, arriving, 0.9).model
    r, out, layer = last_given(moved, client.test.inputs())
    assert torch.equal(layer.weight, net[-3].weight)
    z = (r - layer.running_mean.numpy()) / np.sqrt(layer.running_var.double().numpy() + layer.eps)
    at = specific["features"]["layer 4"]
    assert np.allclose(at["client_specific"][OUT], z, atol=1e-5)
    assert np.allclose(at["affine"][OUT], out, atol=1e-5)


def test_whitening_and_scaling_per_unit_are_by_the_training_images(states, specific):
    for name in (NAMES[0], OUT):
        net = model(states["client_specific"], name if name != OUT else "server")
        if name == OUT:
            arriving = stream(net, member(OUT).test, derive(0, "external", OUT))
            net = adapt(net, arriving, 0.9).model
        train, _, _ = last_given(net, member(name).train.inputs())
        test, _, _ = last_given(net, member(name).test.inputs())
        values, vectors = np.linalg.eigh(np.cov(train.T, bias=True))
        kept = values > 1e-6 * values[-1]
        root = vectors[:, kept] / np.sqrt(values[kept]) @ vectors[:, kept].T
        found = specific["features"]["layer 4"]["per_unit"][name]
        assert np.allclose(found, (test - train.mean(0)) / np.sqrt(train.var(0) + 1e-5), atol=1e-4)
        found = specific["features"]["layer 4"]["whitened"][name]
        # Small variances enlarge the rounding of float32.
        assert np.allclose(found, (test - train.mean(0)) @ root, rtol=1e-2, atol=2e-2)
        lost = f"whitening {name} at layer 4 leaves out {128 - kept.sum()} of 128 directions"
        assert any(note.startswith(lost) for note in specific["notes"])
    assert specific["whitened_by"] == {NAMES[0]: 24, NAMES[2]: 24, NAMES[3]: 24, OUT: 32}


def test_an_aggregated_run_has_the_servers_statistics_for_everyone(states):
    found = data(states, policy="aggregated", layers="last")
    assert list(found["features"]) == ["input", "layer 4"]
    net = model(states["aggregated"])
    for name in NAMES:
        r, _, layer = last_given(net, member(name).test.inputs())
        z = (r - layer.running_mean.numpy()) / np.sqrt(layer.running_var.double().numpy() + 1e-5)
        assert list(found["features"]["layer 4"]) == ["aggregated"]
        assert np.allclose(found["features"]["layer 4"]["aggregated"][name], z, atol=1e-5)
    assert found["after"] == {} and found["whitened_by"] == {}


def test_statistics_after_t_batches_are_measured_on_images_that_came_in_none(states, specific):
    client, net = member(OUT), model(states["client_specific"])
    arriving = stream(net, client.test, derive(0, "external", OUT))
    # 140 images: two batches of 32 leave half of them, four do not.
    assert sorted(specific["after"]) == [1, 2]
    rest = arriving.rows[64:].sort().values
    for t in (1, 2):
        moved = adapt(net, list(arriving)[:t], 0.9).model
        r, _, layer = last_given(moved, client.test.inputs()[rest])
        z = (r - layer.running_mean.numpy()) / np.sqrt(
            layer.running_var.double().numpy() + layer.eps
        )
        assert np.allclose(specific["after"][t], z, atol=1e-5)
    assert any("after 4 batches is left out" in note for note in specific["notes"])
    few = data(states, layers="last", batches=[8])
    assert few["after"] == {} and "after 8 batches" in few["notes"][-1]


def given_affine(net, other):
    """Gives the net γ and β of the other one's batch norm."""
    for own, theirs in zip(net.modules(), other.modules(), strict=True):
        if isinstance(own, nn.BatchNorm1d | nn.BatchNorm2d):
            own.weight.data, own.bias.data = theirs.weight.data, theirs.bias.data
    return net


def answers(net, x):
    with torch.no_grad():
        return net(x).softmax(1).numpy()


def test_models_on_inputs_have_their_own_statistics_and_on_features_those_of_the_images(
    states, specific
):
    state = states["client_specific"]
    for name in specific["seen"]:
        x = member(name).train.inputs()
        on_inputs, on_features = specific["on_inputs"][name], specific["probabilities"][name]
        assert on_inputs.shape == on_features.shape == (3, len(x), 10)
        for j, other in enumerate(specific["seen"]):
            assert np.allclose(on_inputs[j], answers(model(state, other), x), atol=1e-6)
            mixed = given_affine(model(state, name), model(state, other))
            assert np.allclose(on_features[j], answers(mixed, x), atol=1e-6)
            # Statistics differ wherever clients do.
            assert np.allclose(on_inputs[j], on_features[j], atol=1e-4) == (other == name)
        assert np.array_equal(specific["train_labels"][name], member(name).train.labels.numpy())


def test_models_outside_have_the_statistics_of_the_stream_and_each_its_affine(states, specific):
    state, x = states["client_specific"], member(OUT).test.inputs()
    arriving = stream(model(state), member(OUT).test, derive(0, "external", OUT))
    moved = adapt(model(state), arriving, 0.9).model
    assert specific["external"].shape == (3, 140, 10)
    for j, other in enumerate(specific["seen"]):
        expected = answers(given_affine(moved, model(state, other)), x)
        assert np.allclose(specific["external"][j], expected, atol=1e-6)


def test_of_an_aggregated_run_all_models_are_the_servers(states):
    found, net = data(states, policy="aggregated", layers="last"), model(states["aggregated"])
    for name in found["seen"]:
        expected = answers(net, member(name).train.inputs())
        for reading in ("probabilities", "on_inputs"):
            assert np.allclose(found[reading][name], [expected] * 3, atol=1e-6)
    assert np.array_equal(found["external"], [found["served"]["server"]] * 3)


@pytest.mark.parametrize("policy", ["aggregated", "client_specific"])
def test_served_answers_have_the_accuracy_that_serving_measures(states, policy):
    found = data(states, policy=policy, layers="last")
    for variant in ("server", "adapted"):
        served = serve_external(
            build_model("compact_cnn", 0), states[policy], member(OUT), Serving(variant), 0
        )
        right = found["served"][variant].argmax(1) == found["test_labels"][OUT]
        assert right.mean() == pytest.approx(served.accuracy, abs=1e-12)
        y = found["test_labels"][OUT]
        loss = -np.log(found["served"][variant][np.arange(140), y]).mean()
        assert loss == pytest.approx(served.loss, abs=1e-9)


def test_it_is_the_same_again_bit_by_bit(states, specific):
    again = data(states)
    for layer, variants in specific["features"].items():
        for variant, clients in variants.items():
            for name, z in clients.items():
                assert np.array_equal(z, again["features"][layer][variant][name])


def test_what_does_not_fit_is_refused(states):
    state = states["client_specific"]

    def refused(given, words, kind=ValueError, of=state):
        with pytest.raises(kind, match=words):
            divergence_data(given, CLIENTS, of, lambda _: None)

    refused(config(layers="first"), "'all' or 'last', not 'first'")
    refused({**config(), "held_out": "nobody"}, "nobody")
    refused({**config(), "held_out": NAMES[0]}, "give the checkpoint of that training")
    refused(config("client_affine"), "policy 'client_affine': features are compared under")
    lost = FederationState("diverged", 2, state.server, state.clients, state.p)
    refused(config(), "diverged in round 2", DivergedError, lost)
    broken = {name: value.clone() for name, value in state.server.items()}
    broken["0.weight"][0] = float("inf")
    odd = FederationState("complete", 2, broken, state.clients, state.p)
    refused(config(), "not finite", DivergedError, odd)


def test_clients_are_not_changed(states):
    before = copy.deepcopy([client.test.images for client in CLIENTS])
    data(states, layers="last")
    assert all(torch.equal(b, c.test.images) for b, c in zip(before, CLIENTS, strict=True))
    assert all(isinstance(client, Client) for client in CLIENTS)
