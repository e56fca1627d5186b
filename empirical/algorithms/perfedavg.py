"""Per-FedAvg: clients train a model that is good after one step on a client's own images."""

from collections.abc import Sequence

import torch

from empirical.algorithm import Algorithm, Backward, Local
from empirical.checks import LARGEST, is_real
from empirical.weights import Weights, take


def perfedavg(
    alpha: float = 0.01, beta: float = 0.001, order: int = 1, delta: float = 1e-3
) -> Algorithm:
    """Per-FedAvg (Fallah et al. 2020, Algorithm 1): Σ p_i J_i(w − α ∇J_i(w)) is minimised.

    Each local step is w ← w − β d on distinct batches D₁, D₂ (and D₃) of one epoch, where with
    v = ∇f(w − α ∇f(w; D₁); D₂)

    - order 1 (FO) takes d = v;
    - order 2 (HF, Hessian-free) takes d = v − α (∇f(w + δv; D₃) − ∇f(w − δv; D₃)) / (2δ), whose
      fraction is ∇²f(w; D₃) v up to δ² ‖v‖³ times a bound on f's fourth derivative, over 6.

    All parameters that the client trains take part in both steps, its own γ and β among them.
    Every pass moves the running statistics, as in any training; nothing rolls them back.
    "batch_loss" is the mean over all these passes. Each client is measured after one step of
    size α on one batch of its training images; the server's model is measured as it is.

    Args:
        alpha: α, step size of the adaptation; the default is the authors'.
        beta: β, step size of training, in place of the schedule's; the default is the authors'.
        order: 1 or 2, of the derivatives that d holds.
        delta: δ of order 2; the default is FL-bench's.

    Raises:
        ValueError: α is no number of at least 0, β or δ no positive one, one of them more than
            float32 holds, or an order that is neither 1 nor 2.
    """
    if not (is_real(alpha) and 0 <= alpha <= LARGEST):
        raise ValueError(
            f"Per-FedAvg needs a finite alpha of at least 0 that float32 holds, got {alpha!r}"
        )
    for name, value in (("beta", beta), ("delta", delta)):
        if not (is_real(value) and 1 / LARGEST <= value <= LARGEST):
            raise ValueError(
                f"Per-FedAvg needs a positive {name} that, like its inverse, float32 holds, got "
                f"{value!r}"
            )
    if not (is_real(order) and order in (1, 2)):
        raise ValueError(
            f"Per-FedAvg is of order 1 (first-order) or 2 (Hessian-free), got {order!r}"
        )

    def meta_gradient(local: Local, batches: Sequence[Backward]) -> None:
        trained = local.trained
        start = take(trained, trained)

        def gradient(batch: Backward, direction: Weights, step: float) -> Weights:
            _move(trained, start, direction, step)
            batch()
            return _gradients(trained)

        batches[0]()
        v = gradient(batches[1], _gradients(trained), -alpha)
        if order == 2:
            cuda = {w.device for w in trained.values() if w.device.type == "cuda"}
            with torch.random.fork_rng(cuda):  # the second pass draws the same dropout
                ahead = gradient(batches[2], v, delta)
            behind = gradient(batches[2], v, -delta)
            for name, weight in trained.items():
                weight.grad = v[name] - alpha * (ahead[name] - behind[name]) / (2 * delta)
        _move(trained, start, v, 0.0)

    def adapt(weights: Weights, batch: Backward) -> None:
        batch()
        _move(weights, weights, _gradients(weights), -alpha)

    return Algorithm(
        "perfedavg",
        "Fallah et al. 2020, Algorithm 1",
        {"alpha": alpha, "beta": beta, "order": int(order), "delta": delta},
        local_lr=beta,
        batches_a_step=3 if order == 2 else 2,
        gradient=meta_gradient,
        serve=adapt,
    )


def _gradients(weights: Weights) -> Weights:
    """Each parameter's gradient; zero where the loss does not depend on it."""
    return {n: torch.zeros_like(w) if w.grad is None else w.grad for n, w in weights.items()}


@torch.no_grad()
def _move(weights: Weights, start: Weights, direction: Weights, step: float) -> None:
    """Sets each parameter to its start plus step times the direction; step 0 is the very start."""
    for name, weight in weights.items():
        weight.copy_(start[name])
        if step:
            weight.add_(direction[name], alpha=step)
