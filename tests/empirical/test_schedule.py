from dataclasses import replace

import pytest
import torch
from torch import Tensor
from toy import bn_net, client, plain_net, unchecked

from empirical.algorithms import build_algorithm, fedprox
from empirical.batches import batch_sizes, steps
from empirical.bn_policy import AGGREGATED, CLIENT_SPECIFIC
from empirical.federate import federate
from empirical.schedule import Schedule, participants

FEDAVG = build_algorithm("fedavg")
NAMES = [f"client {k}" for k in range(10)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rounds": 0}, "rounds must be a whole number of at least 1, got 0"),
        ({"rounds": -2}, "rounds must be"),
        ({"local_epochs": 0}, "local_epochs must be"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"measure_every": 0}, "measure_every must be"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"lr": 0.0}, "lr must be a positive number"),
        ({"lr": -0.1}, "lr must be a positive number"),
        ({"lr": float("nan")}, "lr must be a positive number"),
        ({"lr": 1e300}, r"that float32 holds, got 1e\+300"),
        ({"lr": 10**400}, "that float32 holds, got 1000"),
        ({"lr": True}, "lr must be a positive number that float32 holds, got True"),
        ({"lr": "x"}, "lr must be a positive number that float32 holds, got 'x'"),
        ({"lr": None}, "lr must be a positive number"),
        ({"lr": 1j}, "lr must be a positive number"),
        ({"rounds": 1.5}, "rounds must be a whole number of at least 1, got 1.5"),
        ({"batch_size": True}, "batch_size must be a whole number of at least 1, got True"),
        ({"seed": "0"}, "seed must be a whole number of at least 0, got '0'"),
        ({"participation": True}, r"in \(0, 1\], got True"),
        ({"participation": "all"}, r"in \(0, 1\], got 'all'"),
        ({"participation": 0.0}, r"in \(0, 1\], got 0.0"),
        ({"participation": 1.5}, r"in \(0, 1\], got 1.5"),
        ({"participation": float("nan")}, r"in \(0, 1\]"),
        ({"weights": "sizes"}, "'size' or 'uniform', got 'sizes'"),
        ({"device": "gpu"}, "unknown device 'gpu': use 'cpu'"),
        ({"device": "meta"}, "unknown device 'meta'"),
        ({"device": None}, "unknown device None: use 'cpu'"),
        ({"device": 0}, "unknown device 0: use 'cpu'"),
    ],
)
def test_bad_settings_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unchecked(Schedule)(**{"rounds": 1, **settings})


def test_absent_cuda_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert Schedule(1, device="cuda").device == "cuda"
    with pytest.raises(ValueError, match=r"'cuda:1' is not there \(1 CUDA devices\): use 'cpu'"):
        Schedule(1, device="cuda:1")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(ValueError, match="'cuda' is not there"):
        Schedule(1, device="cuda")


@pytest.mark.parametrize(
    ("clients", "net", "settings", "message"),
    [
        ([], bn_net, {}, "at least one client"),
        ([client("a", 4), client("a", 5)], bn_net, {}, "2 clients are called 'a'"),
        ([client("server", 4)], bn_net, {}, "rename that client"),
        ([client("a", 4), client("b", 4, size=5)], bn_net, {}, r"'b' have the shape \(3, 5, 5\)"),
        ([client("a", 4, size=5)], bn_net, {}, r"cannot take images of shape \(3, 5, 5\)"),
        ([client("a", 1)], bn_net, {}, "'a' has one training image"),
        ([client("a", 4)], bn_net, {"batch_size": 1}, "batch_size of at least 2"),
        ([client("a", 4)], lambda: bn_net()[:-1], {}, None),
        ([client("a", 4)], lambda: bn_net()[:3], {}, "need"),
    ],
)
def test_clients_that_cannot_be_trained_are_refused(clients, net, settings, message) -> None:
    schedule = Schedule(1, **settings)
    if message is None:  # five outputs for two classes: more than needed is no fault
        assert list(federate(FEDAVG, AGGREGATED, net(), clients, schedule))
        return
    with pytest.raises(ValueError, match=message):
        federate(FEDAVG, AGGREGATED, net(), clients, schedule)


def test_one_image_and_batches_of_one_are_fine_without_batch_norm() -> None:
    with pytest.warns(UserWarning, match="no batch-norm layer"):
        run = federate(FEDAVG, AGGREGATED, plain_net(), [client("a", 1)], Schedule(1))
    assert list(run)
    with pytest.warns(UserWarning, match="no batch-norm layer"):
        run = federate(FEDAVG, AGGREGATED, plain_net(), [client("a", 3)], Schedule(1, batch_size=1))
    assert list(run)


def test_names_in_place_of_values_are_refused_with_advice() -> None:
    with pytest.raises(TypeError):
        federate("fedavg", AGGREGATED, bn_net(), [client("a", 4)], Schedule(1))  # type: ignore
    with pytest.raises(ValueError, match="did you mean 'fedprox'"):
        build_algorithm("fedpox")
    with pytest.raises(ValueError, match="its settings are mu"):
        build_algorithm("fedprox", nu=1.0)
    with pytest.raises(ValueError, match="it has none"):
        build_algorithm("fedavg", mu=1.0)


@pytest.mark.parametrize("mu", [-1.0, float("inf"), float("nan"), 1e300, "x", None, True])
def test_a_mu_that_pulls_nowhere_is_refused(mu) -> None:
    with pytest.raises(ValueError, match="finite mu of at least 0"):
        unchecked(fedprox)(mu)


@pytest.mark.parametrize(
    ("images", "size", "expected"),
    [
        (743, 32, [32] * 23 + [7]),
        (65, 32, [32, 33]),
        (33, 32, [33]),
        (64, 32, [32, 32]),
        (1, 32, [1]),
        (5, 32, [5]),
        (3, 1, [1, 1, 1]),
    ],
)
def test_a_last_batch_of_one_is_folded(images: int, size: int, expected: list[int]) -> None:
    assert batch_sizes(images, size) == expected


def test_an_epoch_sees_every_image_once_in_an_order_of_its_own() -> None:
    schedule = Schedule(1, local_epochs=3, batch_size=8)

    def order(name: str, round_: int) -> Tensor:
        return torch.cat([rows for (rows,) in steps(name, 25, schedule, round_)]).view(3, 25)

    rows = order("a", 1)
    assert torch.equal(rows.sort(1).values, torch.arange(25).expand(3, 25))
    assert not torch.equal(rows[0], rows[1])
    assert not torch.equal(rows[0], order("b", 1)[0])
    assert not torch.equal(rows[0], order("a", 2)[0])


@pytest.mark.parametrize(
    ("fraction", "count"), [(0.01, 1), (0.25, 3), (0.3, 3), (0.5, 5), (1.0, 10)]
)
def test_how_many_take_part(fraction: float, count: int) -> None:
    chosen = participants(NAMES, Schedule(1, participation=fraction), 1)
    assert len(chosen) == len(set(chosen)) == count


def test_participants_depend_on_round_seed_and_names_alone() -> None:
    schedule = Schedule(9, participation=0.5)
    rounds = [participants(NAMES, schedule, k) for k in range(1, 10)]
    other = replace(schedule, lr=1.0, batch_size=4, local_epochs=3)
    assert rounds == [participants(NAMES[::-1], other, k) for k in range(1, 10)]
    assert rounds != [participants(NAMES, replace(schedule, seed=1), k) for k in range(1, 10)]
    assert len({tuple(chosen) for chosen in rounds}) > 1
    assert set().union(*rounds) == set(NAMES)


def test_every_algorithm_and_policy_sees_the_same_participants() -> None:
    clients = [client(name, 4) for name in "abcdef"]
    schedule = Schedule(4, participation=0.5)

    def who(algorithm: str, policy) -> list[tuple[int, str]]:
        run = federate(build_algorithm(algorithm), policy, bn_net(), clients, schedule)
        return [(row.round, row.client) for row in run if row.metric == "batch_loss"]

    expected = who("fedavg", AGGREGATED)
    assert expected == who("fedprox", CLIENT_SPECIFIC) == who("local", AGGREGATED)


def test_names_that_end_in_nul_take_part_as_they_are() -> None:
    names = ["a", "a\x00", "a\x00\x00", ""]
    for fraction in (0.5, 1.0):
        for round_ in range(9):
            chosen = participants(names, Schedule(9, participation=fraction), round_)
            assert set(chosen) <= set(names)
            assert len(set(chosen)) == 4 * fraction
    both = [client("a", 4), client("a\x00", 4)]
    run = federate(FEDAVG, CLIENT_SPECIFIC, bn_net(), both, Schedule(1))
    assert {row.client for row in run if row.metric == "batch_loss"} == {"a", "a\x00"}


def test_recorded_draws_stay() -> None:
    drawn = [participants(NAMES, Schedule(9, participation=0.3), round_) for round_ in (1, 2, 3)]
    assert drawn == [
        ["client 0", "client 4", "client 9"],
        ["client 0", "client 5", "client 7"],
        ["client 1", "client 3", "client 4"],
    ]
