"""Which modules and functions one forward pass calls, on which tensors."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

Function = Callable[..., Any]
Tensors = list[Tensor]


@dataclass(frozen=True, eq=False)
class Call:
    """A module without children that is called: what it is given (if anything) and gives."""

    layer: nn.Module
    given: Tensor
    gives: Tensor


@dataclass(frozen=True, eq=False)
class Pass:
    """A forward pass; all its tensors are kept, so that each has its own id.

    Attributes:
        calls: of modules without children, in their order.
        functions: (function, its positional arguments) called outside of these modules.
        uses: id of a tensor -> how many modules and functions take it, the caller of the net too.
    """

    calls: list[Call]
    functions: list[tuple[Function, tuple[Any, ...]]]
    uses: Counter[int]


class _Functions(TorchFunctionMode):
    """Notes torch's functions and methods, but for those that are called inside a module."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = 0
        self.seen: list[tuple[Function, tuple[Any, ...]]] = []
        self.taken: Tensors = []

    def __torch_function__(
        self,
        func: Function,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        del types
        named = kwargs or {}
        if not self.inside:
            self.seen.append((func, (*args, *named.values())))
            self.taken += _tensors(self.seen[-1][1])
        return func(*args, **named)


@torch.no_grad()
def traced(net: nn.Module, inputs: Tensor) -> Pass:
    """One pass in eval mode; the net is left in the mode in which it was."""
    noted, calls = _Functions(), []
    modes = {module: module.training for module in net.modules()}
    try:
        with _tapped(net, noted, calls), noted:
            answer = net.eval()(inputs)
    finally:
        for module, mode in modes.items():
            module.training = mode
    looks = {"__get__", "size", "dim", "numel"}  # at a tensor's shape, which use none of its values
    functions = [f for f in noted.seen if getattr(f[0], "__name__", "") not in looks]
    taken = [call.given for call in calls] + [t for _, a in functions for t in _tensors(a)]
    uses = Counter(id(tensor) for tensor in [*taken, *_tensors(answer)])
    return Pass(calls, functions, uses)


@contextmanager
def _tapped(net: nn.Module, noted: _Functions, calls: list[Call]) -> Iterator[None]:
    def enter(*_: Any) -> None:
        noted.inside += 1

    def leave(layer: nn.Module, given: tuple[Any, ...], named: dict[str, Any], gives: Any) -> None:
        first, last = _tensors((given, list(named.values()))), _tensors(gives)
        noted.inside -= 1
        if last:
            calls.append(Call(layer, (first or last)[0], last[0]))

    leaves = [layer for layer in net.modules() if not list(layer.children())]
    handles = [layer.register_forward_pre_hook(enter) for layer in leaves]
    handles += [layer.register_forward_hook(leave, with_kwargs=True) for layer in leaves]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _tensors(values: Any) -> Tensors:
    """All tensors in nested lists and tuples."""
    if isinstance(values, Tensor):
        return [values]
    if not isinstance(values, list | tuple):
        return []
    return [tensor for value in values for tensor in _tensors(value)]
