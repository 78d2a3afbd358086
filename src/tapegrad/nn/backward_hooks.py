"""Functions that run when a reverse pass comes to the results of a module, and when it has gone through it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from tapegrad.autograd.function import Function
from tapegrad.nn.hooks import Hooks
from tapegrad.tensors.tensor import Tensor, is_recording

__all__ = ["Passage"]

Gradients = tuple[Tensor | None, ...]


class BackwardHookFunction(Function):
    """The identity; its node stands where a reverse pass enters or leaves a module."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        return gradients


class Passage:
    """One call of a module, as a reverse pass will go through it.

    Parameters
    ----------
    module : Module
    before, after : Hooks
        Called as ``hook(module, grad_output)`` and ``hook(module, grad_input, grad_output)``; what they return, unless None, takes
        the place of the gradients of the results and of the arguments.
    """

    __slots__ = ("_after", "_arguments", "_before", "_gradients", "_module", "_places")

    def __init__(self, module: Any, before: Hooks, after: Hooks) -> None:
        self._module, self._before, self._after = module, list(before.values()), list(after.values())
        self._arguments = 0
        self._places: list[int] = []  # positions of the tracked tensors among the arguments
        self._gradients: Gradients | None = None  # of the results, in the pass that is going on

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments as the module gets them."""
        self._arguments = len(args)
        args, node, self._places = _set_apart(args)
        if node is not None:
            node.register_hook(self._leave)
        return args

    def leave(self, result: Any) -> Any:
        """The results as the caller gets them."""
        results = result if isinstance(result, tuple) else (result,)
        results, node, places = _set_apart(results)
        if node is not None:

            def start(gradients: Gradients) -> Gradients:
                return self._start(_spread(gradients, places, len(results)), places)

            node.register_prehook(start)
        if not isinstance(result, tuple):
            return results[0]
        return type(result)(*results) if hasattr(result, "_fields") else results

    def _start(self, gradients: Gradients, places: list[int]) -> Gradients:
        """The pass comes to the results."""
        for hook in self._before:
            changed = hook.function(self._module, gradients)
            gradients = _replaced(changed, gradients, "Backward pre hook", "grad_output")
        self._gradients = gradients
        if not self._places:
            self._gradients = None
            self._end_without_arguments(gradients)
        return tuple(gradients[k] for k in places)

    def _end_without_arguments(self, gradients: Gradients) -> None:
        if not self._after:
            return
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require "
            "gradients: grad_input is None for each of them. Set requires_grad=True on an input to see its gradient.",
            stacklevel=2,
        )
        for hook in self._after:
            changed = hook.function(self._module, (None,) * self._arguments, gradients)
            if changed is not None and not (isinstance(changed, tuple) and all(g is None for g in changed)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for all "
                    f"gradients, but got {changed}."
                )

    def _leave(self, inputs: Gradients, outputs: Gradients) -> Gradients | None:
        """The pass has gone through the module."""
        results, self._gradients = self._gradients, None
        if results is None:  # it came to the arguments by a way that is not through the results
            return None
        gradients = _spread(inputs, self._places, self._arguments)
        for hook in self._after:
            changed = hook.function(self._module, gradients, results)
            gradients = _replaced(changed, gradients, "Backward hook", "grad_input")
        return tuple(gradients[k] for k in self._places)


def _set_apart(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any, list[int]]:
    """Values with the tracked tensors passed through a node, that node, and where they are; without one there is no node."""
    places = [k for k, value in enumerate(values) if isinstance(value, Tensor) and value.requires_grad]
    if not places or not is_recording():
        return values, None, []
    passed: Sequence[Tensor] = BackwardHookFunction.apply(*(values[k] for k in places))
    changed = list(values)
    for k, t in zip(places, passed, strict=True):
        changed[k] = t
    return tuple(changed), passed[0].grad_fn, places


def _spread(gradients: Gradients, places: list[int], count: int) -> Gradients:
    found: list[Tensor | None] = [None] * count
    for k, g in zip(places, gradients, strict=True):
        found[k] = g
    return tuple(found)


def _replaced(changed: Any, gradients: Gradients, who: str, what: str) -> Gradients:
    if changed is None:
        return gradients
    if not isinstance(changed, (tuple, list)):
        changed = (changed,)
    if len(changed) != len(gradients):
        raise RuntimeError(f"{who} returned an invalid number of {what}, got {len(changed)}, but expected {len(gradients)}")
    return tuple(changed)
