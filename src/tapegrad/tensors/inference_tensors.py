"""Inference tensors: what operations make in inference mode, and what is refused to them outside.

They are a class of their own, so that nothing is looked up for other tensors. Its slot for the data hides that of `Tensor`, which
stays empty. Compiled operators read that one, take the tensor for one that is not ready yet, and leave the operation to their
Python form, which is where the class is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tapegrad.tensors.modes import is_inference_mode_enabled
from tapegrad.tensors.tensor import KINDS, Tensor

__all__ = [
    "InferenceTensor",
    "check_inference_flag",
    "check_inference_write",
    "check_saved",
    "class_of",
    "is_inference",
    "make_kept",
    "make_like",
    "new_inference_tensor",
]


class InferenceTensor(Tensor):
    """A tensor made in inference mode; everything about it but its class is that of `Tensor`."""

    __slots__ = ("_data",)


KINDS.add(InferenceTensor)


def new_inference_tensor() -> Tensor:
    """An inference tensor, of which nothing is set."""
    return object.__new__(InferenceTensor)


def is_inference(t: Tensor) -> bool:
    """Whether the tensor was made in inference mode.

    Examples
    --------
    >>> with tg.inference_mode():
    ...     x = tg.ones(2)
    >>> x.is_inference(), x[:1].is_inference(), (x + 1).is_inference()
    (True, True, False)
    """
    return type(t) is InferenceTensor


def class_of(value: Any) -> type:
    """The class that a copy of a value has: whether that is an inference tensor depends on where it is made."""
    return Tensor if type(value) is InferenceTensor else type(value)


def make_like(x: Tensor, data: Any, row: int) -> Tensor:
    """A tensor on the memory of `x`: an inference tensor if `x` is one, wherever it is made."""
    if type(x) is not InferenceTensor:
        t = object.__new__(Tensor)
    else:
        t = object.__new__(InferenceTensor)
    t._data, t._row, t._meta = data, row, None
    return t


def make_kept(data: Any) -> Tensor:
    """An untracked tensor that is kept for later calls: no inference tensor, in whichever mode it is made."""
    t = object.__new__(Tensor)
    t._data, t._row, t._meta = data, 0, None
    return t


def check_saved(saved: Iterable[Tensor]) -> None:
    """Raise if an inference tensor is among what the derivative needs.

    Raises
    ------
    RuntimeError
        Says what to do instead.
    """
    if InferenceTensor in map(type, saved):
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation "
            "tracked by autograd. To work around this, you can make a clone() to get a normal tensor and use it in autograd, or "
            "use tg.no_grad() instead of tg.inference_mode()."
        )


def check_inference_write(t: Tensor) -> None:
    """Raise if `t` is an inference tensor and this thread is not in inference mode.

    Raises
    ------
    RuntimeError
        Says what to do instead.
    """
    if type(t) is InferenceTensor and not is_inference_mode_enabled():
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone() to get a normal "
            "tensor before doing inplace update."
        )


def check_inference_flag(t: Tensor) -> None:
    """Raise if `t` is an inference tensor, which must not be tracked from now on, and this thread is not in inference mode.

    Raises
    ------
    RuntimeError
        Says what to do instead.
    """
    if type(t) is InferenceTensor and not is_inference_mode_enabled():
        raise RuntimeError(
            "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed. You can make a clone() to get a "
            "normal tensor."
        )
