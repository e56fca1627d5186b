"""Entries of the BN kernels at any d, in float64 or mpmath: the double integral of `bn_moments`."""

from dataclasses import dataclass

import bn_moments as bm
import mpmath as mp
import numpy as np
from scipy.linalg import eigh


@dataclass(frozen=True)
class Value:
    """Entries and an estimate of their error that leaves room."""

    value: np.ndarray
    error: np.ndarray


@dataclass(frozen=True)
class Model:
    """S_i, S_j, eps and α in the arithmetic `how`, and the rule: its step, digits to reach."""

    metrics: tuple
    eps: object
    alpha: object
    how: bm.Arithmetic
    step: float
    reach: float  # logarithm of the part of an integral that may be cut off

    @property
    def single(self):
        return (self.metrics[0] == self.metrics[1]).all()


def laplace(x, y, metrics, *, eps=0.0, alpha=1.0, component="magnitude", step=0.16, digits=None):
    """Entries (P,) for pairs x_k of client i, y_k of client j; equal matrices are one S.

    Trapezoid rules in log r and in log tan φ, each behind u -> c + a sinh(u/a), whose error falls
    as e^(-const/step). The rule with every other node has e^(-const/2step): its relative error,
    squared, estimates that of the full rule. `error` is 100 times that, and the rounding.
    """
    how = bm.Arithmetic.multiple() if digits else bm.Arithmetic.double()
    one = mp.mpf(1) if digits else 1.0
    metrics = tuple(how.cast(np.asarray(metric, dtype=float)) for metric in metrics)
    reach = 2.31 * ((digits or 16) + 2)
    model = Model(metrics, one * float(eps), one * float(alpha), how, one * step, reach)
    pairs = bm.Pairs.of(x, y, how)
    fine, across, along, size = (np.zeros(len(pairs.x), metrics[0].dtype) for _ in range(4))
    for weight, share, even in angles(model):
        full, half, absolute = radial(pairs, model, share, component)
        fine, across = fine + weight * full, across + weight * half
        along = along + 2 * weight * full * even
        size = size + weight * absolute
    gaps = [across - fine] if model.single else [across - fine, along - fine]
    estimate = sum(100 * (gap * gap) for gap in gaps) / np.where(size > 0, size, 1)
    # 8 u: some 40 roundings an integrand, which average over the nodes.
    unit = mp.mpf(10) ** -digits if digits else 2.0**-50
    return Value(fine, estimate + size * unit)


def angles(model):
    """Weights in φ, shares (cos²φ, sin²φ) of S_i and S_j, and whether a node is of the half rule.

    In w = log tan φ the poles are at log(q_i/q_j)/2 ± iπ/2.
    """
    if model.single:
        yield model.step * 0 + 1, None, False
        return
    first, second = (metric.astype(float) for metric in model.metrics)
    ends = np.log(eigh(first, second, eigvals_only=True)[[0, -1]]) / 2
    if model.eps > 0:
        ends = np.array([min(ends[0], 0), max(ends[1], 0)])
    how, step = model.how, model.step
    for w, slope, even in nodes(ends, (ends[0] - model.reach, ends[1] + model.reach), step, how):
        cos2, sin2 = 1 / (1 + how.exp(2 * w)), 1 / (1 + how.exp(-2 * w))
        yield slope / (how.exp(w) + how.exp(-w)) * 2 / how.pi, (cos2, sin2), even


def nodes(poles, ends, step, how):
    """Nodes w = c + a sinh(u/a), weights step dw/du, and whether each is in the half rule."""
    centre, half = (poles[0] + poles[1]) / 2, (poles[1] - poles[0]) / 2
    a = max(1.0, half)
    low, high = (int(np.ceil(a * np.arcsinh((end - centre) / a) / float(step))) for end in ends)
    for k in range(low, high + 1):
        grown, shrunk = how.exp(k * step / a), how.exp(-k * step / a)
        yield centre + a * (grown - shrunk) / 2, step * (grown + shrunk) / 2, k % 2 == 0


def radial(pairs, model, share, component):
    """The integral over r at one φ: by all nodes, by every other, and a size of what is rounded."""
    how, (s_i, s_j) = model.how, model.metrics
    eigenvalues, basis = how.eigh(s_i if share is None else share[0] * s_i + share[1] * s_j)
    grid = list(nodes(*window(eigenvalues, model), model.step, how))
    r = how.exp(np.array([t for t, _, _ in grid]))[:, None]
    slope = np.array([s for _, s, _ in grid])[:, None] * r
    shrink = 1 + 2 * model.alpha**2 * r * eigenvalues
    a = model.alpha**2 / shrink
    slope = slope * how.exp(-how.log(shrink).sum(1)[:, None] / 2 - r * model.eps)
    frame = bm.frame_of(pairs, basis, a, how)
    if component == "magnitude":
        found, size = bm.magnitude(frame, how)
    else:
        cos2, sin2 = (1, 1) if share is None else (2 * share[0], 2 * share[1])
        last = r * r / 2 if share is None else cos2 * sin2 * r * r
        powers = (cos2 * r, sin2 * r, last)
        found, size = bm.direction(frame, pairs, basis, a, model.metrics, powers, how)
    # eigh is wrong by roundings of ‖S‖, which v meets as r‖S‖|v|².
    met = 1 + r * abs(eigenvalues).max() * a.max(1)[:, None]
    half = np.array([2.0 * even for _, _, even in grid])[:, None]
    found = slope * found
    return found.sum(0), (found * half).sum(0), (slope * size * met).sum(0)


def window(values, model):
    """Where in log r the integrand turns (its poles; its fall by eps), and where it dies out."""
    values = np.abs(values.astype(float)) * 2 * float(model.alpha) ** 2
    values = np.maximum(values, values.max() * 1e-18)
    eps = float(model.eps)
    centre, last = -np.log(values.sum() + eps), -np.log(values.min())
    t = np.linspace(centre - model.reach - 5, last + 3 * model.reach, 4000)
    spread = np.log(values.max() / values.min())
    decay = np.log1p(np.exp(t)[:, None] * values)
    # |x|² in the metric A <= |x|² over the smallest of these factors, of which it starts at 1.
    envelope = t - decay.sum(axis=1) / 2 - decay.min(axis=1) - np.exp(t) * eps
    alive = t[envelope > envelope.max() - model.reach - spread]
    turn = alive[-1] if eps else min(last, alive[-1])
    return (min(centre, turn), turn), (alive[0], alive[-1])


def gram(x, client, metrics, *, eps=0.0, alpha=1.0, component="magnitude", step=0.16):
    """The matrix (n, n) in float64; `metrics` maps a client to its S, one object for one S."""
    x, labels = np.asarray(x, dtype=float), np.asarray(client).tolist()
    rows = {name: [p for p, c in enumerate(labels) if c == name] for name in dict.fromkeys(labels)}
    value, error = np.zeros((len(x), len(x))), np.zeros((len(x), len(x)))
    names = list(rows)
    for i, first in enumerate(names):
        for second in names[: i + 1]:
            p, q = (part.ravel() for part in np.meshgrid(rows[first], rows[second], indexing="ij"))
            pair = (metrics[first], metrics[second])
            options = {"eps": eps, "alpha": alpha, "component": component, "step": step}
            found = laplace(x[p], x[q], pair, **options)
            value[p, q] = value[q, p] = found.value
            error[p, q] = error[q, p] = found.error
    return Value(value, error)
