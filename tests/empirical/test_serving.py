"""Every way to serve a client outside, against plain loops from the bytes to the two numbers."""

import math
from collections.abc import Callable

import pytest
import torch
from federations import toy_federation
from streams import Loops, in_sequence, state_of, trained
from torch import Tensor, nn
from toy import bn_net, client, plain_net, residual_net

from empirical import (
    BN_POLICIES,
    VARIANTS,
    Client,
    FederationState,
    Schedule,
    Serving,
    adapt,
    build_algorithm,
    build_model,
    derive,
    federate,
    load_checkpoint,
    save_checkpoint,
    serve_external,
    stream,
)
from empirical.seeds import generator

ORDERS = ("shuffled", "sorted", "drifting")
SITE = client("outside", 3, test=33)


NET = trained(bn_net())
STATE = state_of(NET)


def arrival(site: Client, seed: int, order: str) -> tuple[list[Tensor], list[int]]:
    """Normalised images and labels in the order of arrival, one by one and in Python's numbers."""
    n = len(site.test)
    draws = generator(derive(seed, "external", site.name), "stream")
    rows = torch.randperm(n, generator=draws).tolist()
    if order == "sorted":
        rows = [row for k in range(2) for row in rows if site.test.labels[row] == k]
    images = []
    for place, row in enumerate(rows):
        levels = site.test.images[row].flatten().tolist()
        if order == "drifting":
            t = place / (n - 1)
            levels = [127.5 + (1 - t / 2) * (x - 127.5) + 64 * t for x in levels]
            levels = [min(max(round(x), 0), 255) for x in levels]
        scaled = [2 * x / 255 - 1 for x in levels]
        images.append(torch.tensor(scaled, dtype=torch.float64).view(3, 4, 4))
    return images, [int(site.test.labels[row]) for row in rows]


def by_loops(
    variant: str, tau: float, sizes: list[int], images: list[Tensor], labels: list[int]
) -> tuple[float, float]:
    """Loss and accuracy."""
    layers, forward = in_sequence(
        NET,  # type: ignore[arg-type]
        lambda m: Loops(
            m, tau, variant == "total", variant == "identity", variant in ("source", "server")
        ),
    )
    for layer in layers:
        layer.still = variant == "server"
    loss, right, first = 0.0, 0, 0
    for size in sizes:
        logits = forward(torch.stack(images[first : first + size])).tolist()
        for (a, b), label in zip(logits, labels[first : first + size], strict=True):
            loss += math.log(math.exp(a) + math.exp(b)) - (b if label else a)
            right += (b > a) == bool(label)
        first += size
    assert first == len(images)
    return loss / first, right / first


@pytest.mark.parametrize("variant", sorted(VARIANTS))
@pytest.mark.parametrize("order", ORDERS)
def test_plain_loops_agree(variant: str, order: str) -> None:
    # 33 = 4 · 8 + 1: the last batch has nine.
    tau = None if variant in ("batch", "server") else 0.7
    serving = Serving(variant, tau, None if variant == "server" else 8, order)
    served = serve_external(bn_net(3), STATE, SITE, serving, 2)
    sizes = [33] if variant == "server" else [8, 8, 8, 9]
    loss, accuracy = by_loops(variant, serving.momentum or 0.0, sizes, *arrival(SITE, 2, order))
    # Pixels pass through float32 on their way, as in training; the rest is float64.
    assert served.loss == pytest.approx(loss, rel=1e-5)
    assert served.accuracy == pytest.approx(accuracy, abs=1e-15)
    assert served.batches == len(sizes)


def test_one_image_at_a_time_by_loops() -> None:
    serving = Serving("total", 0.8, 1)
    served = serve_external(bn_net(), STATE, SITE, serving, 2)
    loss, accuracy = by_loops("total", 0.8, [1] * 33, *arrival(SITE, 2, "shuffled"))
    assert served.loss == pytest.approx(loss, rel=1e-5)
    assert (served.accuracy, served.batches) == (pytest.approx(accuracy, abs=1e-15), 33)


def watched(net: nn.Module) -> tuple[nn.Module, list[Tensor]]:
    """`net`, and all inputs that copies of it will get."""
    seen: list[Tensor] = []
    net.register_forward_pre_hook(lambda _net, inputs: seen.append(inputs[0].clone()))
    return net, seen


@pytest.mark.parametrize("order", ORDERS)
def test_all_variants_see_the_same_images_in_the_same_order(order: str) -> None:
    came = []
    for variant in VARIANTS:
        for size in (2, 8) if variant != "server" else (None,):
            net, seen = watched(trained(residual_net()).float())
            serve_external(net, state_of(net), SITE, Serving(variant, None, size, order), 0)
            came.append(torch.cat(seen))
    assert all(torch.equal(came[0], other) for other in came[1:])
    net, seen = watched(bn_net().float())
    serve_external(net, state_of(net, "c"), SITE, Serving(order=order), 0)
    assert torch.equal(torch.cat(seen), came[0])
    for seed, site in ((1, SITE), (0, Client("elsewhere", SITE.train, SITE.test))):
        seen.clear()
        serve_external(net, state_of(net), site, Serving(order=order), seed)
        assert not torch.equal(torch.cat(seen), came[0])


def test_no_past_is_the_batch_alone() -> None:
    for order in ORDERS:
        adapted = serve_external(bn_net(), STATE, SITE, Serving("adapted", 0.0, 8, order), 0)
        batch = serve_external(bn_net(), STATE, SITE, Serving("batch", None, 8, order), 0)
        assert (adapted.loss, adapted.accuracy) == (batch.loss, batch.accuracy)
        assert Serving("batch", 0.0, 8) == Serving("batch", batch_size=8)


def test_nothing_but_the_past_is_the_server() -> None:
    for order in ORDERS:
        source = serve_external(bn_net(), STATE, SITE, Serving("source", 1.0, 8, order), 0)
        server = serve_external(bn_net(), STATE, SITE, Serving("server", order=order), 0)
        assert source.loss == pytest.approx(server.loss, rel=1e-12)  # batches of other sizes
        assert source.accuracy == server.accuracy


def test_identity_is_adapted_where_affine_is_identity() -> None:
    net = bn_net()  # γ = 1, β = 0 as initialised
    one, other = (
        serve_external(net, state_of(net), SITE, Serving(v), 0) for v in ("identity", "adapted")
    )
    assert (one.loss, one.accuracy) == (other.loss, other.accuracy)
    one, other = (serve_external(net, STATE, SITE, Serving(v), 0) for v in ("identity", "adapted"))
    assert one.loss != other.loss


@pytest.mark.parametrize(
    ("choice", "last"),
    [
        ({"prediction": "before"}, "kept"),
        ({"batch_variance": "unbiased"}, "kept"),
        ({}, "joined"),
    ],
)
def test_open_choices_reach_adapt(choice: dict, last: str) -> None:
    serving = Serving(batch_size=10, last=last, **choice)
    served = serve_external(bn_net(), STATE, SITE, serving, 0)
    seed = derive(0, "external", SITE.name)
    arriving = stream(NET, SITE.test, seed, batch_size=10, last=last)
    answers = adapt(NET, arriving, **choice).predictions
    assert served.loss == nn.functional.cross_entropy(answers, arriving.labels).item()
    plain = Serving(batch_size=10)
    assert served.loss != serve_external(bn_net(), STATE, SITE, plain, 0).loss


@pytest.fixture(scope="module")
def federation() -> tuple[FederationState, Client]:
    *clients, outside = toy_federation((48, 48, 48), test=65)
    net, schedule = build_model("compact_cnn", 0), Schedule(rounds=4, batch_size=16, lr=0.05)
    run = federate(
        build_algorithm("fedavg"), BN_POLICIES["client_specific"], net, clients, schedule
    )
    for _ in run:
        pass
    return run.state, outside


def test_after_training_it_serves_better_than_the_servers_statistics(federation) -> None:
    served = {
        v: serve_external(build_model("compact_cnn", 1), *federation, Serving(v), 0)
        for v in VARIANTS
    }
    assert served["adapted"].accuracy > served["server"].accuracy + 0.1
    assert all(served[v].loss < served["server"].loss for v in VARIANTS if v != "server")


def test_what_was_served_before_and_the_file_change_nothing(federation, tmp_path) -> None:
    state, outside = federation
    save_checkpoint(tmp_path / "state", state)
    read = load_checkpoint(tmp_path / "state")
    mirrored = FederationState(
        state.status, state.round, state.server, dict(reversed(state.clients.items())),
        dict(reversed(state.p.items())),
    )  # fmt: skip
    net, before = build_model("compact_cnn", 5), torch.get_rng_state()
    kept = [value.clone() for value in net.state_dict().values()]
    ways = [Serving(variant, order="sorted") for variant in VARIANTS]
    one = [serve_external(net, state, outside, serving, 0) for serving in ways]
    for other in (read, mirrored):
        again = [serve_external(net, other, outside, serving, 0) for serving in reversed(ways)]
        assert again[::-1] == one
    assert all(map(torch.equal, kept, net.state_dict().values()))
    assert torch.equal(before, torch.get_rng_state())


def test_a_net_of_other_layers_is_served_by_its_server_alone() -> None:
    state = state_of(plain_net())
    served = serve_external(plain_net(), state, SITE, Serving("server"), 0)
    assert served.options["variant"] == "server" and 0 <= served.accuracy <= 1
    for variant in VARIANTS.keys() - {"server"}:
        with pytest.raises(ValueError, match=r"no batch-norm layer, .* let it predict as it is"):
            serve_external(plain_net(), state, SITE, Serving(variant), 0)


@pytest.mark.parametrize("build", [bn_net, residual_net])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dtype_is_the_models(build: Callable, dtype: torch.dtype) -> None:
    net, seen = watched(trained(build()).to(dtype))
    serve_external(net, state_of(net), SITE, Serving(), 0)
    assert {x.dtype for x in seen} == {dtype}
    assert seen[0].is_contiguous(memory_format=torch.channels_last) == (dtype is torch.float32)
