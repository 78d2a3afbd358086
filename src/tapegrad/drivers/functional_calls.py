"""Functions of tensors called on leaves, and what `torch.autograd.functional` forbids: vectors, strict mode, strategies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.entry_points import grad
from tapegrad.tensors.tensor import Tensor, array_of, make, wrap

__all__ = [
    "FUNCTION",
    "INDEPENDENT",
    "OF_INPUT",
    "OF_OUTPUT",
    "STRICT_GRAPH",
    "STRICT_HESSIAN",
    "Function",
    "Tensors",
    "as_tuple",
    "called",
    "check_strategy",
    "filled",
    "finished",
    "gradients_or_none",
    "like_given",
    "numbers_only",
    "single",
    "vector_for",
]

Tensors = Tensor | tuple[Tensor, ...]
Function = Callable[..., Any]

FUNCTION = "outputs of the user-provided function"
INDEPENDENT = "The output of the user-provided function is independent of input {}. This is not allowed in strict mode."
STRICT_GRAPH = (
    "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode when "
    "create_graph=True."
)
STRICT_HESSIAN = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is independent of "
    "the input. This is not allowed in strict mode. You should ensure that your function is twice differentiable and that the "
    "jacobian depends on the inputs (a linear function's does not)."
)


def as_tuple(value: Any, what: str, name: str) -> tuple[Tensor, ...]:
    """Inputs, outputs or vectors as a tuple.

    Raises
    ------
    TypeError
        If there is something else than a tensor.
    """
    if isinstance(value, Tensor):
        return (value,)
    must = f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but"
    if not isinstance(value, tuple):
        raise TypeError(f"{must} the given {what} has type {type(value)}.")
    for index, element in enumerate(value):
        if not isinstance(element, Tensor):
            raise TypeError(f"{must} the value at index {index} has type {type(element)}.")
    return value


def like_given(results: Sequence[Any], given: Any) -> Any:
    """Results as a tuple if a tuple was given, else the only one."""
    return tuple(results) if isinstance(given, tuple) else results[0]


def _own_leaf(x: Tensor, create_graph: bool) -> Tensor:
    if create_graph and x.requires_grad:
        return x.view_as(x)
    # A scalar is a float; detach() would turn it into an array that is shared.
    return (make(x._data, 0) if type(x._data) is float else x.detach()).requires_grad_()


def called(func: Function, inputs: Any, name: str, create_graph: bool, strict: bool) -> tuple[tuple[Tensor, ...], Any]:
    """The leaves that the function is called on, and what it returns."""
    leaves = tuple(_own_leaf(x, create_graph) for x in as_tuple(inputs, "inputs", name))
    returned = func(*leaves)
    for index, output in enumerate(as_tuple(returned, FUNCTION, name)):
        if strict and not output.requires_grad:
            raise RuntimeError(
                f"Output {index} of the user-provided function does not require gradients. The outputs must be computed in a "
                "differentiable manner from the input when running in strict mode."
            )
    return leaves, returned


def single(returned: Any, name: str) -> Tensor:
    """The output of a function that a Hessian is asked of."""
    if isinstance(returned, tuple):
        raise RuntimeError(
            f"The function given to {name} should return a single Tensor, but it returned {len(returned)} in a tuple"
        )
    if returned.numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {name} should contain a single element, but it has shape "
            f"{list(returned.shape)}"
        )
    return returned


def vector_for(v: Any, others: tuple[Tensor, ...], of: str, name: str) -> tuple[Tensor, ...]:
    """The vector of a product, checked against what it is multiplied with; ones if it may be left out."""
    if v is None:
        if len(others) != 1 or others[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if {of} a single Tensor with a single element.")
        return (wrap(np.ones_like(array_of(others[0]))),)
    vector = as_tuple(v, "v", name)
    if len(vector) != len(others):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(others)} but got {len(vector)}.")
    for index, (element, other) in enumerate(zip(vector, others, strict=True)):
        if element.shape != other.shape:
            where = f"Entry {index} in v" if len(others) > 1 else "v"
            raise RuntimeError(f"{where} has invalid size: should be {other.shape} but got {element.shape}.")
    return vector


OF_INPUT = "the input to the user-provided function is"
OF_OUTPUT = "the user-provided function returns"


def gradients_or_none(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], seeds: Sequence[Tensor] | None, create_graph: bool = True
) -> tuple[Tensor | None, ...]:
    """Gradients of those outputs that are tracked; None for what they do not depend on."""
    tracked = [k for k, output in enumerate(outputs) if output.requires_grad]
    if not tracked:
        return (None,) * len(inputs)
    given = None if seeds is None else [seeds[k] for k in tracked]
    return grad([outputs[k] for k in tracked], inputs, given, create_graph=create_graph, retain_graph=True, allow_unused=True)


def filled(
    found: Sequence[Tensor | None], like: Sequence[Tensor], strict: bool = False, missing: str = "", untracked: str = ""
) -> tuple[Tensor, ...]:
    """Zeros for None; in strict mode neither None nor (if there is a message for it) an untracked result is allowed."""
    for index, result in enumerate(found):
        if strict and result is None:
            raise RuntimeError(missing.format(index))
        if strict and untracked and not (result is not None and result.requires_grad):
            raise RuntimeError(untracked.format(index))
    return tuple(
        wrap(np.zeros_like(array_of(other))) if result is None else result for result, other in zip(found, like, strict=True)
    )


def finished(results: Sequence[Tensor], create_graph: bool) -> list[Tensor]:
    """Results as the caller gets them: untracked, unless they are to be differentiated further."""
    return list(results) if create_graph else [x.detach() if x.requires_grad else x for x in results]


def check_strategy(strategy: str, name: str, create_graph: bool, strict: bool, vectorize: bool) -> None:
    """Raise what PyTorch raises for options that exclude each other."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(f'{name}: Expected strategy to be either "forward-mode" or "reverse-mode", but got {strategy!r}.')
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                f'tapegrad.autograd.functional.{name}: `create_graph=True` and "forward-mode" are not supported together. Please '
                'either set `create_graph=False` or take "reverse-mode".'
            )
        if strict:
            raise RuntimeError(
                f'tapegrad.autograd.functional.{name}: `strict=True` and "forward-mode" are not supported together. Please either '
                'set `strict=False` or take "reverse-mode".'
            )
        if not vectorize:
            raise NotImplementedError(
                f'tapegrad.autograd.functional.{name}: "forward-mode" is only implemented for `vectorize=True`, as in PyTorch. '
                'Without it take "reverse-mode", which goes forwards by itself where that is shorter.'
            )
    elif strict and vectorize:
        raise RuntimeError(
            f"tapegrad.autograd.functional.{name}: `strict=True` and `vectorized=True` are not supported together. Please either "
            "set `strict=False` or `vectorize=False`."
        )


def numbers_only(create_graph: bool, strict: bool) -> bool:
    """Whether numbers are all that is asked for: these come from linear tapes, which know no graph."""
    return not (create_graph or strict)
