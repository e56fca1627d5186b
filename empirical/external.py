"""Test-time batch norm for a client outside the federation (UniFed, Eqs. (3), (4))."""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from empirical.checks import is_real
from empirical.running_norm import RunningNorm
from empirical.seeds import repeatable
from empirical.weights import Role, label

_CHOICES = {
    "variance": ("within", "total"),
    "affine": ("given", "identity"),
    "first": ("batch", "source"),
}


@dataclass(frozen=True, eq=False)
class Adapted:
    """A model after a stream of batches, and what it answered on the way.

    Attributes:
        model: the copy, in eval mode, whose running statistics are those after the last batch.
            The stream goes on with `adapt(adapted.model, more, first="source")`.
        predictions: the model's outputs (logits), (n, ...), in the order of arrival, on the
            model's device.
        batches: number of inputs of each batch; `predictions.split(batches)` parts them.
        options: every choice that the equations leave open, those of `adapt` and the fixed ones,
            for a manifest.
        unreached: names of the batch-norm layers that no batch came to (such as a head for
            training only), which keep their statistics.
    """

    model: nn.Module
    predictions: Float[Tensor, "n ..."]
    batches: tuple[int, ...]
    options: Mapping[str, float | str]
    unreached: tuple[str, ...]


def adapt(
    model: nn.Module,
    batches: Iterable[Tensor],
    momentum: float = 0.9,
    *,
    variance: str = "within",
    affine: str = "given",
    first: str = "batch",
) -> Adapted:
    """Serves a client outside the federation: test-time batch norm, Eqs. (3) and (4).

    Per batch b, layer and channel, over the batch (and the pixels) that come to the layer:

        μ_b = mean r,  σ_b² = mean (r − μ_b)²  (biased)                                      (3)
        μ ← τ μ + (1 − τ) μ_b,  σ² ← τ σ² + (1 − τ) σ_b²                                     (4)

    and then (r − μ)/√(σ² + ε), γ and β with the running value, not the batch's: each layer sees
    what the layers before it give with their statistics already moved. The batch is predicted
    in that same pass. All batches count alike, whatever their sizes. Otherwise the network is
    in eval mode, and `num_batches_tracked` stays.

    Eq. (4) averages the variances within the batches. Batch t of T has the weight
    w_t = (1 − τ) τ^(T−t) (the first τ^(T−1)), and the mixture of the batches the variance
    Σ w_t σ_t² + Σ w_t (μ_t − μ)²; joining a mixture of weight τ to a batch of weight 1 − τ gives

        σ² ← τ σ² + (1 − τ) σ_b² + τ (1 − τ) (μ_b − μ)²,  μ before its own step,

    which is `variance="total"`.

    Args:
        model: trained, with batch norm; copied and left as it is, in whichever mode it is.
        batches: tensors (n_t, ...) as the model takes them, in their order of arrival, on its
            device and of its dtype; run through once.
        momentum: τ in [0, 1], the weight of the past; PyTorch's momentum is 1 − τ. At 0 each
            batch is normalised by its own statistics.
        variance: "within" is Eq. (4). "total" adds the spread between the batches' means, and
            takes a batch of one value per channel; the first such is normalised to zero.
        affine: "given" keeps the model's γ and β, "identity" sets γ = 1 and β = 0.
        first: "batch" starts from the first batch's statistics, "source" from the model's own.

    Returns:
        The adapted model and its predictions, with the options.

    Raises:
        TypeError: the model is no module, or batches no iterable of tensors.
        ValueError: an unknown option; a model without batch norm, with other layers that keep
            running statistics (see also `label`), that calls a batch-norm layer twice in a pass
            or none, or whose answers are no real numbers, one per input; no batch; a batch that
            is empty, not finite, of another dtype or device, that the model cannot take, or,
            under "within", of one value per channel.
    """
    options = _checked_options(momentum, variance=variance, affine=affine, first=first)
    if not isinstance(batches, Iterable) or isinstance(batches, Tensor | Mapping | str | bytes):
        raise TypeError(
            f"batches must be an iterable of tensors (n_t, ...), got {type(batches).__name__}: "
            "images.split(32) makes batches of one tensor"
        )
    net, norms = _prepared(model, options)
    handles = [
        norm.layer.register_forward_pre_hook(norm.update, with_kwargs=True) for norm in norms
    ]
    answers: list[Tensor] = []
    for number, batch in enumerate(batches):
        answers.append(_predicted(net, norms, batch, number))
        if answers[-1].shape[1:] != answers[0].shape[1:]:
            raise ValueError(
                f"the model's answers to batch {number} have the shape "
                f"{tuple(answers[-1].shape[1:])} each, those to batch 0 "
                f"{tuple(answers[0].shape[1:])}: bring the inputs to one shape"
            )
    if not answers:
        raise ValueError("there is no batch to adapt to: an iterator is empty once it is used up")
    for handle in handles:
        handle.remove()
    return Adapted(
        model=net,
        predictions=_joined(answers),
        batches=tuple(len(answer) for answer in answers),
        options=options,
        unreached=tuple(norm.name for norm in norms if not norm.reached),
    )


def _checked_options(momentum: object, **chosen: object) -> dict[str, float | str]:
    if not (is_real(momentum) and 0 <= momentum <= 1):
        raise ValueError(f"momentum is the weight τ of the past, in [0, 1], got {momentum!r}")
    for name, value in chosen.items():
        if value not in _CHOICES[name]:
            raise ValueError(f"{name} is {' or '.join(map(repr, _CHOICES[name]))}, not {value!r}")
    return {
        "momentum": float(momentum),
        **{name: str(value) for name, value in chosen.items()},
        "batch_variance": "biased",
        "prediction": "after the update",
    }


@torch.inference_mode(False)
@torch.no_grad()
def _prepared(
    model: object, options: Mapping[str, float | str]
) -> tuple[nn.Module, list[RunningNorm]]:
    """A copy in eval mode, and its batch-norm layers by type."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"{model!r} is no Module: use build_model(name, seed) and load its weights")
    kept = {name for name, role in label(model).items() if role is Role.STATISTIC}
    net = copy.deepcopy(model).eval()
    norms = [
        RunningNorm(name, layer, options)
        for name, layer in net.named_modules()
        if isinstance(layer, _BatchNorm)
    ]
    own = {id(tensor) for norm in norms for tensor in norm.statistics()}
    odd = sorted(
        name for name, buffer in net.named_buffers() if name in kept and id(buffer) not in own
    )
    if odd:
        raise ValueError(
            f"'{odd[0]}' is a running statistic of a layer that is no batch norm, and Eqs. (3), "
            "(4) do not say how to move it: replace that layer by batch norm or by one without "
            "running statistics"
        )
    if not norms:
        raise ValueError(
            "the model has no batch-norm layer, so there is nothing to adapt: let it predict as "
            "it is"
        )
    if options["affine"] == "identity":
        for norm in norms:
            norm.drop_affine()
    return net, norms


@torch.inference_mode(False)
@torch.no_grad()
def _predicted(net: nn.Module, norms: list[RunningNorm], batch: object, number: int) -> Tensor:
    """What the model answers to one batch, once that has moved its statistics."""
    like = next(net.parameters(), norms[0].statistics()[0])
    x = _checked_batch(batch, number, like)
    for norm in norms:
        norm.begin(number)
    try:
        with repeatable(like.device):
            answer = net(x)
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, TypeError, IndexError) as error:
        raise ValueError(
            f"the model cannot take batch {number} of shape {tuple(x.shape)}: {error}"
        ) from error
    if not any(norm.reached for norm in norms):
        raise ValueError(
            "the model's forward calls none of its batch-norm layers: call them as modules"
        )
    for norm in norms:
        if norm.reached and not all(bool(part.isfinite().all()) for part in norm.statistics()):
            raise ValueError(
                f"batch {number} is finite but the statistics of batch-norm layer '{norm.name}' "
                "are not: the model diverged, or its dtype is too narrow"
            )
    return _checked_answer(answer, len(x), number)


def _checked_batch(batch: object, number: int, like: Tensor) -> Tensor:
    if not isinstance(batch, Tensor):
        raise TypeError(
            f"batch {number} is {type(batch).__name__}, not a tensor of inputs: of a loader of "
            "pairs give (x for x, _ in loader)"
        )
    if batch.dtype != like.dtype or batch.device != like.device:
        raise ValueError(
            f"batch {number} is {batch.dtype} on {batch.device}, the model {like.dtype} on "
            f"{like.device}: scale it as in training and give batch.to(device, dtype)"
        )
    if batch.ndim < 2 or batch.numel() == 0:
        raise ValueError(
            f"batch {number} has the shape {tuple(batch.shape)}: give (n_t, ...) with at least "
            "one input, and leave out empty batches"
        )
    if not bool(batch.isfinite().all()):
        raise ValueError(
            f"batch {number} holds NaN or infinity, which would stay in the running statistics: "
            "repair or leave out such inputs"
        )
    return batch


def _checked_answer(answer: object, inputs: int, number: int) -> Tensor:
    if not (isinstance(answer, Tensor) and answer.is_floating_point()):
        kind = answer.dtype if isinstance(answer, Tensor) else type(answer).__name__
        raise ValueError(
            f"the model answers with {kind}, not with a tensor of real numbers: let its forward "
            "return the logits alone"
        )
    if answer.ndim == 0 or len(answer) != inputs:
        raise ValueError(
            f"the model answers {tuple(answer.shape)} to the {inputs} inputs of batch {number}: "
            "let its forward return one row per input"
        )
    if bool(answer.isnan().any()):
        raise ValueError(
            f"the model answers NaN to batch {number}: a weight is not finite, or a channel's "
            "variance and ε are both zero"
        )
    return answer


@torch.inference_mode(False)
@torch.no_grad()
def _joined(answers: list[Tensor]) -> Tensor:
    return torch.cat(answers)
