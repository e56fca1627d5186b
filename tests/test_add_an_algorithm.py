"""The page's example is a working tenth algorithm: it registers, conforms, and is right."""

import contextlib
import io
import math
import re
from pathlib import Path

import pytest
import torch
from torch import nn

import empirical
from empirical.algorithm import Local, Server
from empirical.algorithms import ALGORITHMS
from empirical.data.client import Client, Split

PAGE = Path(__file__).parent.parent / "docs" / "add_an_algorithm.md"
FILE, LINE, USE = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def registered(monkeypatch):
    """Do what the page says: one file, one line."""
    names = {"ALGORITHMS": dict(ALGORITHMS)}
    exec(compile(FILE, str(PAGE), "exec"), names)
    exec(compile(LINE, str(PAGE), "exec"), names)
    monkeypatch.setitem(ALGORITHMS, "fedexp", names["ALGORITHMS"]["fedexp"])


def client(name, size):
    draws = torch.Generator().manual_seed(sum(map(ord, name)))
    images = torch.randint(0, 256, (size, 3, 2, 2), generator=draws, dtype=torch.uint8)
    split = Split(images, torch.arange(size) % 2, 2)
    return Client(name, split, split)


def net():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(3, 2, 1), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2)
        ).double()


def trained(algorithm, policy, clients, **settings):
    schedule = empirical.Schedule(rounds=3, batch_size=4, lr=0.1, **settings)
    run = empirical.federate(algorithm, empirical.BN_POLICIES[policy], net(), clients, schedule)
    return list(run), run.state


@pytest.mark.parametrize("policy", empirical.BN_POLICIES)
def test_it_trains_under_every_policy(registered, policy):
    clients = [client("a", 5), client("b", 8), client("c", 17)]
    algorithm = empirical.build_algorithm("fedexp", epsilon=0.01)
    rows, state = trained(algorithm, policy, clients, participation=0.7)
    assert state.status == "complete" and algorithm.settings == {"epsilon": 0.01}
    assert all(math.isfinite(row.value) for row in rows)


def test_where_all_clients_agree_it_is_fedavg(registered):
    # Changes that agree give η_g = max(1, 1/2) = 1.
    alone = [client("a", 12)]
    expected = trained(empirical.build_algorithm("fedavg"), "aggregated", alone)[1].server
    found = trained(empirical.build_algorithm("fedexp"), "aggregated", alone)[1].server
    for name, weight in expected.items():
        # w + (y − w) rounds once more than y.
        torch.testing.assert_close(found[name], weight, rtol=1e-14, atol=1e-14)


def test_a_round_by_hand(registered):
    # Four clients, p = 1/4 each, changes 1, 0, 0, 0 and 0, 1, 0, 0, …: Σ p ‖Δ_i‖² = 1, the mean
    # change is 1/4 in each of four places, ‖·‖² = 1/4: η_g = 1 / (2 (1/4 + 1/4)) = 1 at ε = 1/4,
    # and 1 / (2 · 1/4) → 2 at ε → 0: w⁺ = 0 + 2 · 1/4.
    algorithm = empirical.build_algorithm("fedexp", epsilon=1e-12)
    zero, reports = torch.zeros(4, dtype=torch.float64), []
    for row in torch.eye(4, dtype=torch.float64):
        local = Local("a", {"w": row}, {"w": zero}, {}, {}, 0.1, {"w": row}, dict)
        reports.append(algorithm.report(local)[0])
    mean = {
        kind: {name: sum(r[kind][name] for r in reports) / 4 for name in reports[0][kind]}
        for kind in reports[0]
    }
    new = algorithm.aggregate(Server({"w": zero}), mean, 1.0)
    torch.testing.assert_close(new.learned["w"], torch.full((4,), 0.5, dtype=torch.float64))
    with pytest.raises(ValueError, match="positive epsilon"):
        empirical.build_algorithm("fedexp", epsilon=-1.0)


def test_the_pages_use_of_it_runs(registered):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(USE, str(PAGE), "exec"), {})
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert {line[1] for line in lines} == {
        "mnist",
        "optdigits",
        "mnist-m",
        "synth-digits",
        "server",
    }
    assert {line[0] for line in lines} == {"0", "1"}
