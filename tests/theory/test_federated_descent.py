"""Local steps and averaging against gradient descent, against explicit Jacobians, and refusals."""

from dataclasses import replace

import numpy as np
import pytest

from theory import (
    Problem,
    federated_descent,
    gradient_descent,
    initialise,
    jacobian,
    kernels,
    predict,
    sample_participants,
)

SIZES = {"b": 3, "a": 1, "c": 4}  # a client with one point, and names out of their order


def problem(*, matrices=False, sizes=SIZES, d=5, seed=0):
    random = np.random.default_rng(seed)
    names = list(sizes)
    client = np.repeat(names, list(sizes.values()))
    x = random.standard_normal((len(client), d))
    order = random.permutation(len(client))
    covariances = 1.3
    if matrices:
        roots = random.standard_normal((len(names), d, d)) / np.sqrt(d)
        covariances = np.eye(d) + roots @ roots.transpose(0, 2, 1)
    return Problem(x[order], random.choice([-1.0, 1.0], len(x)), client[order], covariances)


def network(given, *, star, width=40, alpha=2.0, names=tuple(SIZES), seed=3):
    d = np.asarray(given.x).shape[1]
    return initialise(width, d, names, alpha=alpha, seed=seed, client_specific=star)


def step(net, given, share=0.5):
    top = np.linalg.eigvalsh(kernels(net, given.x, given.client, given.covariances).Lambda)[-1]
    return share / top


BOTH = pytest.mark.parametrize("star", [False, True])
METRICS = pytest.mark.parametrize("matrices", [False, True])


@BOTH
@METRICS
def test_one_local_step_of_everyone_is_gradient_descent(star, matrices):
    given = problem(matrices=matrices)
    net = network(given, star=star)
    eta = step(net, given)
    found = federated_descent(net, given, step_size=eta, rounds=30)
    plain = gradient_descent(net, given, step_size=eta, steps=30)
    # The weights n_i/n and their inverses round: a few units a round.
    np.testing.assert_allclose(found.losses, plain.losses, rtol=1e-11)
    np.testing.assert_allclose(found.network.v, plain.network.v, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found.network.gamma, plain.network.gamma, rtol=1e-11)
    assert found.inside_theorem and found.status == "finished"
    assert found.weights == {"b": 3 / 8, "a": 1 / 8, "c": 4 / 8}
    assert found.participants == (("b", "a", "c"),) * 30
    assert found.losses[-1] < 0.5 * found.losses[0]
    assert (found.squared_residuals == 2 * found.losses).all()


@BOTH
@METRICS
def test_one_client_takes_all_the_steps_of_gradient_descent(star, matrices):
    given = problem(matrices=matrices, sizes={"only": 6})
    net = network(given, star=star, names=("only",))
    eta = step(net, given)
    found = federated_descent(net, given, step_size=eta, rounds=5, local_steps=4)
    plain = gradient_descent(net, given, step_size=eta, steps=20)
    np.testing.assert_allclose(found.losses, plain.losses[::4], rtol=1e-13)
    np.testing.assert_allclose(found.network.v, plain.network.v, rtol=1e-12)
    assert not found.inside_theorem


def by_jacobians(net, given, eta, steps, participants):
    """The rounds in the plainest terms: L_i = n/n_i F_i, gradients Jᵀr, dictionaries of clients."""
    x, y, client = np.asarray(given.x), np.asarray(given.y), np.asarray(given.client)
    weight = {name: (client == name).mean() for name in net.clients if (client == name).any()}
    losses = []
    for some in (*participants, None):
        residual = predict(net, x, client, given.covariances) - y
        losses.append(0.5 * residual @ residual)
        if some is None:
            return losses, net
        sent, total = {}, sum(weight[name] for name in some)
        for name in some:
            own, local = client == name, net
            for _ in range(steps):
                arguments = local, x[own], client[own], given.covariances
                j, r = jacobian(*arguments), predict(*arguments) - y[own]
                gradients = {
                    "v": (j.v.T @ r).reshape(net.v.shape) / weight[name],
                    "gamma": (j.gamma.T @ r).reshape(net.gamma.shape) / weight[name],
                }
                if net.client_specific:
                    gradients["gamma"] = gradients["gamma"] * weight[name]
                local = replace(
                    local,
                    v=local.v - eta * gradients["v"],
                    gamma=local.gamma - eta * gradients["gamma"],
                )
            sent[name] = local
        v = sum(weight[name] / total * sent[name].v for name in some)
        if net.client_specific:
            gamma = net.gamma.copy()
            for name in some:
                column = net.clients.index(name)
                gamma[:, column] = sent[name].gamma[:, column]
        else:
            gamma = sum(weight[name] / total * sent[name].gamma for name in some)
        net = replace(net, v=v, gamma=gamma)


@BOTH
@METRICS
def test_local_steps_of_some_clients_agree_with_explicit_jacobians(star, matrices):
    given = problem(matrices=matrices)
    net = network(given, star=star)
    eta = step(net, given, 0.2)
    participants = [("c", "b"), ("a",), ("b", "a", "c"), ("a", "c")]
    found = federated_descent(
        net, given, step_size=eta, rounds=4, local_steps=3, participants=participants
    )
    losses, last = by_jacobians(net, given, eta, 3, participants)
    np.testing.assert_allclose(found.losses, losses, rtol=1e-11)
    np.testing.assert_allclose(found.network.v, last.v, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.network.gamma, last.gamma, rtol=1e-10)
    assert found.participants[0] == ("b", "c") and not found.inside_theorem


@BOTH
@METRICS
def test_neither_the_order_of_clients_nor_that_of_points_matters(star, matrices):
    given = problem(matrices=matrices)
    net = network(given, star=star)
    order = np.random.default_rng(5).permutation(8)
    turned = replace(
        given,
        x=np.asarray(given.x)[order],
        y=np.asarray(given.y)[order],
        client=np.asarray(given.client)[order],
        covariances=np.asarray(given.covariances)[[2, 0, 1]] if matrices else given.covariances,
    )
    other = network(given, star=star, names=("c", "b", "a"))  # the same seed: the same v, c and γ
    settings = {"step_size": step(net, given, 0.2), "rounds": 6, "local_steps": 3}
    rounds = [("a", "b"), ("c",), ("b", "c")] * 2
    one = federated_descent(net, given, participants=rounds, **settings)
    two = federated_descent(other, turned, participants=[p[::-1] for p in rounds], **settings)
    np.testing.assert_allclose(one.losses, two.losses, rtol=1e-11)
    np.testing.assert_allclose(one.network.v, two.network.v, rtol=1e-10, atol=1e-12)


def test_client_specific_gamma_moves_on_its_client_alone():
    given = problem()
    net = network(given, star=True)
    eta = step(net, given)
    found = federated_descent(
        net, given, step_size=eta, rounds=2, local_steps=2, participants=[("c",)] * 2
    )
    moved = (found.network.gamma != net.gamma).any(axis=0)
    assert moved.tolist() == [False, False, True]
    assert (found.network.v != net.v).any()
    assert (net.v == network(given, star=True).v).all()  # what was given is left alone


def test_a_client_without_points_takes_no_part():
    given = problem()
    plain = federated_descent(network(given, star=True), given, step_size=1e-2, rounds=3)
    net = network(given, star=True, names=("b", "a", "nobody", "c"))
    found = federated_descent(net, given, step_size=1e-2, rounds=3)
    np.testing.assert_allclose(found.losses, plain.losses, rtol=1e-13)
    assert set(found.weights) == set(SIZES) and found.inside_theorem
    with pytest.raises(ValueError, match=r"'nobody'.* no client with points"):
        federated_descent(net, given, step_size=1e-2, rounds=1, participants=[["nobody"]])


@BOTH
@pytest.mark.parametrize(
    ("sizes", "width", "alpha"),
    [({"p": 1}, 1, 1.0), ({"p": 1}, 7, 1e-3), ({"p": 1, "q": 1}, 1, 1e3), ({"p": 2, "q": 1}, 2, 5)],
)
def test_the_smallest_problems_are_trained(star, sizes, width, alpha):
    given = problem(sizes=sizes, d=1)
    net = network(given, star=star, width=width, alpha=alpha, names=tuple(sizes))
    found = federated_descent(net, given, step_size=1e-8, rounds=3, local_steps=2)
    assert found.status == "finished" and np.isfinite(found.losses).all()
    assert federated_descent(net, given, step_size=1e-8, rounds=0).losses.shape == (1,)


@BOTH
@pytest.mark.parametrize("eta", [1e2, 1e150, 1e300])
@pytest.mark.parametrize("steps", [1, 5])
def test_divergence_is_a_status_and_never_a_nan(star, eta, steps):
    given = problem(matrices=True)
    net = network(given, star=star, alpha=0.5)
    found = federated_descent(net, given, step_size=eta, rounds=200, local_steps=steps)
    assert np.isfinite(found.losses).all() and found.losses.size
    if found.status == "diverged":
        assert found.diverged_at == len(found.losses) <= 200
        assert np.isfinite(found.network.v).all() and np.isfinite(found.network.gamma).all()
        last = predict(found.network, given.x, given.client, given.covariances) - given.y
        assert 0.5 * last @ last == pytest.approx(found.losses[-1], rel=1e-9)
    if eta == 1e300:
        assert found.status == "diverged" and found.diverged_at == 1


def test_participants_are_drawn_without_replacement_and_repeatably():
    drawn = sample_participants(list("abcde"), 0.5, 400, 7)
    assert (
        drawn
        == sample_participants(list("abcde"), 0.5, 400, 7)
        != sample_participants(list("abcde"), 0.5, 400, 8)
    )
    assert {len(some) for some in drawn} == {3}  # round(2.5) upwards
    assert all(list(some) == sorted(set(some)) for some in drawn)
    # Each of five is drawn in 3/5 of 400 rounds; 5 standard deviations are 49.
    counts = [sum(name in some for some in drawn) for name in "abcde"]
    assert max(abs(count - 240) for count in counts) < 49
    assert sample_participants([1, 2], 1.0, 2, 0) == ((1, 2), (1, 2))
    assert sample_participants(["x"], 0.5, 1, 0) == (("x",),)
    assert sample_participants(["x"], 1, 0, 0) == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a", "b", "c"], 0.1, 3, 0), "is nobody: take at least 0.333"),
        ((["a"], 0.0, 3, 0), r"in \(0, 1\]"),
        ((["a"], 1.5, 3, 0), r"in \(0, 1\]"),
        ((["a", "a"], 1.0, 3, 0), "every client once"),
        (([], 1.0, 3, 0), "at least one client"),
        ((["a"], 1.0, -1, 0), "rounds must be at least 0"),
        ((["a"], 1.0, 1, -1), "seed must be at least 0"),
    ],
)
def test_a_sample_of_nobody_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        sample_participants(*arguments)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"local_steps": 0}, ValueError, "local_steps must be at least 1"),
        ({"local_steps": 1.5}, TypeError, "local_steps must be an integer"),
        ({"rounds": -1}, ValueError, "rounds must be at least 0"),
        ({"step_size": 0.0}, ValueError, "step_size must be positive"),
        ({"participants": [["a"]]}, ValueError, "given for 1 rounds of 2"),
        ({"participants": [["a"], []]}, ValueError, "round 1 needs at least one participant"),
        ({"participants": [["a"], ["b", "b"]]}, ValueError, "each only once"),
        ({"participants": [["a"], ["z"]]}, ValueError, "'z', a participant of round 1"),
        ({"participants": [["a"], [["a"]]]}, ValueError, "participant of round 1"),
        ({"participants": ["a", "b"]}, TypeError, "must be a collection of names"),
        ({"participants": "ab"}, TypeError, "sequence of the names"),
        ({"participants": 3}, TypeError, "sequence of the names"),
    ],
)
def test_bad_schedules_are_refused_in_one_sentence(changes, error, message):
    given = problem()
    settings = {"step_size": 0.1, "rounds": 2, **changes}
    with pytest.raises(error, match=message):
        federated_descent(network(given, star=False), given, **settings)


def test_more_local_steps_decay_faster_here_and_are_outside_the_theorem():
    given = problem()
    net = network(given, star=True, width=300)
    eta = step(net, given, 0.1)
    runs = [federated_descent(net, given, step_size=eta, rounds=20, local_steps=e) for e in (1, 4)]
    assert runs[1].losses[-1] < runs[0].losses[-1]
    assert [run.inside_theorem for run in runs] == [True, False]
