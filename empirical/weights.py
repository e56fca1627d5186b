"""A model's tensors by name, what each is for, and their weighted mean."""

import math
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.parameter import is_lazy

Weights = dict[str, Tensor]


class Role(Enum):
    """What a tensor of a model is for; it decides what may happen to it.

    WEIGHT is learned and belongs to no normalisation by running statistics (the scales of
    LayerNorm and GroupNorm are weights). AFFINE is a batch-norm layer's γ or β. STATISTIC is a
    running mean or variance: no algorithm's arithmetic touches it. COUNTER counts batches: it
    never leaves its client. CONSTANT never changes and is the same everywhere.
    """

    WEIGHT = "weight"
    AFFINE = "affine"
    STATISTIC = "statistic"
    COUNTER = "counter"
    CONSTANT = "constant"


_RUNNING = {
    "running_mean": Role.STATISTIC,
    "running_var": Role.STATISTIC,
    "num_batches_tracked": Role.COUNTER,
}


def label(model: nn.Module) -> dict[str, Role]:
    """The role of every tensor of `model`, from the types of its layers and never from names.

    `_BatchNorm` (BatchNorm1d/2d/3d, SyncBatchNorm) and InstanceNorm with running statistics own
    affine, statistics and counter; every other parameter is a weight. Any other layer that owns
    a buffer says on its class what the buffer is for:
    `federated_roles = {"running_max": "statistic"}` (or "counter", "constant").
    A tied tensor appears once, under its first name.

    Raises:
        ValueError: a buffer without a role, a batch-norm layer without running statistics, a
            parameter without a shape yet, a tensor tied across two roles, a running statistic
            or counter of two layers, or what is averaged but holds no real numbers.
    """
    roles: dict[str, Role] = {}
    first: dict[int, str] = {}
    for name, tensor, role in _owned(model):
        known = first.setdefault(id(tensor), name)
        if role not in (Role.COUNTER, Role.CONSTANT) and not tensor.is_floating_point():
            raise ValueError(
                f"'{name}' is {tensor.dtype} but a {role.value}, and only real numbers are "
                "averaged: make it floating-point, or a buffer declared a counter or a constant"
            )
        if known != name and role in (Role.STATISTIC, Role.COUNTER):
            raise ValueError(
                f"'{known}' and '{name}' are one buffer, into which two layers count: give each "
                "layer its own"
            )
        if roles.setdefault(known, role) is not role:
            raise ValueError(
                f"'{known}' and '{name}' are one tensor but a {roles[known].value} in the one "
                f"place and a {role.value} in the other; untie them"
            )
    return roles


def _owned(model: nn.Module) -> Iterator[tuple[str, Tensor, Role]]:
    for prefix, layer in model.named_modules():
        dot = f"{prefix}." if prefix else ""
        normalises = _uses_running_statistics(prefix, layer)
        learned = Role.AFFINE if normalises else Role.WEIGHT
        for leaf, tensor in layer.named_parameters(recurse=False):
            if is_lazy(tensor):
                raise ValueError(
                    f"'{dot}{leaf}' has no shape yet: run the model once on an example before use"
                )
            yield dot + leaf, tensor, learned
        for leaf, tensor in layer.named_buffers(recurse=False):
            role = _RUNNING.get(leaf) if normalises else None
            yield dot + leaf, tensor, role or _declared(dot + leaf, layer, leaf)


def _uses_running_statistics(name: str, layer: nn.Module) -> bool:
    if not isinstance(layer, _BatchNorm | _InstanceNorm):
        return False
    tracked = layer.running_mean is not None
    if isinstance(layer, _BatchNorm) and not tracked:
        raise ValueError(
            f"batch-norm layer '{name}' keeps no running statistics, so what it predicts depends "
            "on the batch an image is in; build it with track_running_stats=True"
        )
    return tracked


def _declared(name: str, layer: nn.Module, leaf: str) -> Role:
    declared = getattr(type(layer), "federated_roles", {})
    allowed = [Role.STATISTIC.value, Role.COUNTER.value, Role.CONSTANT.value]
    if declared.get(leaf) in allowed:
        return Role(declared[leaf])
    kind = type(layer).__name__
    raise ValueError(
        f"layer {kind} owns the buffer '{name}', and what a federation should do with it is "
        f"unknown: set {kind}.federated_roles = {{'{leaf}': ...}} to one of {', '.join(allowed)}"
    )


def has_batch_norm(model: nn.Module) -> bool:
    """Whether any layer is a batch-norm layer."""
    return any(isinstance(layer, _BatchNorm) for layer in model.modules())


def variance_partners(model: nn.Module) -> dict[str, str]:
    """Name of each running variance -> name of the running mean of the same layer."""
    return {
        f"{dot}running_var": f"{dot}running_mean"
        for prefix, layer in model.named_modules()
        for dot in [f"{prefix}." if prefix else ""]
        if isinstance(layer, _BatchNorm | _InstanceNorm) and layer.running_var is not None
    }


def tensors(model: nn.Module) -> Weights:
    """Every parameter and buffer of `model` itself (no copy), by name, tied ones once."""
    return dict(model.named_parameters()) | dict(model.named_buffers())


def all_finite(tensors: Iterable[Tensor]) -> bool:
    """Whether no value is NaN or infinite."""
    return all(bool(tensor.isfinite().all()) for tensor in tensors)


def take(weights: Mapping[str, Tensor], names: Iterable[str]) -> Weights:
    """A copy of the named tensors, apart from autograd; memory layout is kept."""
    return {name: weights[name].detach().clone() for name in names}


@torch.no_grad()
def load(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Writes `weights` into the tensors of `model` in place; the others stay.

    Raises:
        ValueError: the model has no tensor of a name, or one of another shape or kind of number;
            then nothing was written.
    """
    live = tensors(model)
    for name, value in weights.items():
        if name not in live or live[name].shape != value.shape:
            has = f"has the shape {tuple(live[name].shape)}" if name in live else "does not exist"
            raise ValueError(
                f"'{name}' of shape {tuple(value.shape)} does not fit: in this model it {has}; "
                "build the model that the weights came from"
            )
        if not torch.can_cast(value.dtype, live[name].dtype):
            raise ValueError(
                f"'{name}' of {value.dtype} does not fit: in this model it is {live[name].dtype}, "
                "which would lose a part of each number"
            )
    for name, value in weights.items():
        live[name].copy_(value)


def shares(sizes: Mapping[str, float], names: Iterable[str]) -> dict[str, float]:
    """Weights p of the named clients, made to sum to one over them, in the order of their names."""
    chosen = sorted(names)
    total = math.fsum(sizes[name] for name in chosen)
    return {name: sizes[name] / total for name in chosen}


class RunningMean:
    """Σ p_i x_i in float64, one state at a time, so that no more than one is held.

    Sums depend on the order of `add` in their last bit: callers add in the order of the
    clients' names.
    """

    def __init__(self) -> None:
        self._sums: Weights = {}
        self._dtypes: dict[str, torch.dtype] = {}

    @torch.no_grad()
    def add(self, state: Mapping[str, Tensor], p: float) -> None:
        """Adds p times each tensor of `state`.

        Raises:
            ValueError: a state whose names differ from those before it.
            TypeError: an integer tensor: counters are never averaged.
        """
        if not self._sums:
            for name, value in state.items():
                if not value.is_floating_point():
                    raise TypeError(f"'{name}' is {value.dtype}: only real numbers are averaged")
                self._sums[name] = torch.zeros_like(value, dtype=torch.float64)
                self._dtypes[name] = value.dtype
        if state.keys() != self._sums.keys():
            odd = sorted(state.keys() ^ self._sums.keys())
            raise ValueError(f"states to be averaged differ in {', '.join(odd)}")
        for name, total in self._sums.items():
            total.add_(state[name].detach(), alpha=p)

    def value(self) -> Weights:
        """The mean so far, in the dtype of the states."""
        return {name: total.to(self._dtypes[name]) for name, total in self._sums.items()}


def weighted_mean(states: Mapping[str, Weights], p: Mapping[str, float]) -> Weights:
    """Σ p_i x_i over clients, with p made to sum to one over the clients in `states`.

    Accumulated in float64 in the order of the clients' names, so that the order in which
    `states` lists them changes no bit.

    Raises:
        ValueError: no client, or states of differing names.
        TypeError: an integer tensor: counters are never averaged.
    """
    if not states:
        raise ValueError("a mean needs at least one client")
    mean = RunningMean()
    for name, share in shares(p, states).items():
        mean.add(states[name], share)
    return mean.value()
