"""Test-time batch norm for a client outside the federation (UniFed, Eqs. (3), (4))."""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from empirical.batch_checks import DivergedError, checked_answer, checked_batch
from empirical.running_norm import RunningNorm, checked_options
from empirical.seeds import repeatable
from empirical.weights import Role, label


@dataclass(frozen=True, eq=False)
class Adapted:
    """A model after a stream of batches, and what it answered on the way.

    Attributes:
        model: the copy, in eval mode, whose running statistics are those after the last batch.
            The stream goes on with `adapt(adapted.model, more, first="source")`.
        predictions: the model's outputs (logits), (n, ...), in the order of arrival, on the
            model's device.
        batches: number of inputs of each batch; `predictions.split(batches)` parts them.
        options: every choice that the equations leave open, for a manifest.
        unreached: names of the batch-norm layers that no batch came to (such as a head for
            training only), which keep their statistics.
    """

    model: nn.Module
    predictions: Float[Tensor, "n ..."]
    batches: tuple[int, ...]
    options: Mapping[str, float | str]
    unreached: tuple[str, ...]


def adapt(  # noqa: PLR0913 - the model, the batches, and every choice that the equations leave
    model: nn.Module,
    batches: Iterable[Tensor],
    momentum: float = 0.9,
    *,
    variance: str = "within",
    affine: str = "given",
    first: str = "batch",
    prediction: str = "after",
    batch_variance: str = "biased",
) -> Adapted:
    """Serves a client outside the federation: test-time batch norm, Eqs. (3) and (4).

    Per batch b, layer and channel, over the batch (and the pixels) that come to the layer:

        μ_b = mean r,  σ_b² = mean (r − μ_b)²                                                (3)
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
        prediction: "after" is as above. "before" predicts each batch in a pass of its own with
            what the batches before it left, and then moves the statistics as "after" does; the
            first batch under first="batch", before which there is nothing, is predicted after.
        batch_variance: "biased" divides by the number of values, "unbiased" by one less, as
            PyTorch does for its running variance.

    Returns:
        The adapted model and its predictions, with the options.

    Raises:
        TypeError: the model is no module, or batches no iterable of tensors.
        ValueError: an unknown option; a model without batch norm, with other layers that keep
            running statistics (see also `label`), that calls a batch-norm layer twice in a pass
            or none, or whose answers are no real numbers, one per input; no batch; a batch that
            is empty, not finite, of another dtype or device, that the model cannot take, or,
            under "within" or "unbiased", of one value per channel.
        DivergedError: a ValueError; statistics that are not finite, or answers that are NaN.
    """
    options = checked_options(
        momentum,
        variance=variance,
        affine=affine,
        first=first,
        prediction=prediction,
        batch_variance=batch_variance,
    )
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
        before = prediction == "before" and (number > 0 or first == "source")
        answers.append(_predicted(net, norms, batch, number, before))
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
def _predicted(
    net: nn.Module, norms: list[RunningNorm], batch: object, number: int, before: bool
) -> Tensor:
    """What the model answers to one batch, once that has moved its statistics or `before`."""
    like = next(net.parameters(), norms[0].statistics()[0])
    x = checked_batch(batch, number, like)
    for norm in norms:
        norm.begin(number)
    try:
        with repeatable(like.device):
            earlier = _unmoved(net, norms, x) if before else None
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
            raise DivergedError(
                f"batch {number} is finite but the statistics of batch-norm layer '{norm.name}' "
                "are not: the model diverged, or its dtype is too narrow"
            )
    return checked_answer(answer if earlier is None else earlier, len(x), number)


def _unmoved(net: nn.Module, norms: list[RunningNorm], x: Tensor) -> object:
    """What the model answers with its statistics as they are."""
    for norm in norms:
        norm.still = True
    answer = net(x)
    for norm in norms:
        norm.still = False
    return answer


@torch.inference_mode(False)
@torch.no_grad()
def _joined(answers: list[Tensor]) -> Tensor:
    return torch.cat(answers)
