"""Hooks on what operations save for the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.packing import Pair, enter, leave
from tapegrad.tensor import Tensor

__all__ = ["saved_tensors_hooks"]


class saved_tensors_hooks:  # noqa: N801 - PyTorch's name
    """Context in which operations keep what `pack_hook` makes of the tensors that they save for the backward pass.

    Parameters
    ----------
    pack_hook : callable
        Is given each tensor when it is saved, once a use, and returns any object in its place.
    unpack_hook : callable
        Is given that object when the derivative needs the tensor, and returns a tensor of the same values.

    Notes
    -----
    Of nested contexts the innermost counts. Plain numbers are kept without hooks. Operations recorded inside are several times
    slower.

    Examples
    --------
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> with tg.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda kept: tg.tensor(kept)):
    ...     y = x * x
    >>> y.sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = ("_pair",)

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self._pair: Pair = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        enter(self._pair)

    def __exit__(self, *exception: object) -> None:
        leave()
