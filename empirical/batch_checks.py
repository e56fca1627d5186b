"""What a batch for `adapt` and an answer to it have to be."""

from torch import Tensor


class DivergedError(ValueError):
    """What a model computes is not finite, so that there is no result to report."""


def checked_batch(batch: object, number: int, like: Tensor) -> Tensor:
    """The batch, if it is a finite tensor of inputs of the dtype and device of `like`.

    Raises:
        TypeError: it is no tensor.
        ValueError: it is empty, not finite, or of another dtype or device.
    """
    if not isinstance(batch, Tensor):
        raise TypeError(
            f"batch {number} is {type(batch).__name__}, not a tensor of inputs: of a loader of "
            "pairs give (x for x, _ in loader)"
        )
    if batch.dtype != like.dtype or batch.device != like.device:
        raise ValueError(
            f"batch {number} is {batch.dtype} on {batch.device}, the model {like.dtype} on "
            f"{like.device}: stream(model, split, seed) scales images as in training and makes "
            "batches that fit"
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


def checked_answer(answer: object, inputs: int, number: int) -> Tensor:
    """What the model answers to a batch, if it is one row of real numbers per input.

    Raises:
        ValueError: it is not.
        DivergedError: it holds NaN.
    """
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
        raise DivergedError(
            f"the model answers NaN to batch {number}: a weight is not finite, or a channel's "
            "variance and ε are both zero"
        )
    return answer
