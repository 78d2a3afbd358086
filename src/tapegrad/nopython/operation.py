"""Compiled functions as operations of eager graphs: one row of the outer tape."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.autograd.function import Function
from tapegrad.dtypes import float64
from tapegrad.factories import tensor
from tapegrad.grad_mode import is_grad_enabled
from tapegrad.nopython.derivatives import Recording
from tapegrad.nopython.recorder import recorder
from tapegrad.tensor import Tensor

__all__ = ["njit_op"]


class Compiled(Function):
    """A call of a compiled function; its tape lives as long as the row."""

    @staticmethod
    def forward(ctx: Any, f: Any, numbers: tuple[int, ...], *args: Any) -> Tensor:
        """Run and record."""
        values = [_value(arg) if isinstance(arg, Tensor) else arg for arg in args]
        ctx.recording, ctx.numbers, ctx.count = Recording(recorder(f, numbers), tuple(values), {}), numbers, len(args)
        return tensor(ctx.recording.value)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Pull the cotangent back through the call's own tape."""
        if is_grad_enabled():  # a part of the second derivative would be missing, and nobody would see it
            raise RuntimeError(
                f"{ctx.recording.record.name}, a compiled function, can be differentiated once only: "
                "leave create_graph=True away, or write it with operations on tensors"
            )
        recording = ctx.recording
        pulled = recording.gradients(np.asarray(recording.rows), gradients[0].numpy())
        parts: list[Any] = [None] * ctx.count
        for number, part in zip(ctx.numbers, pulled, strict=True):
            parts[number] = tensor(part)
        return (None, None, *parts)


def _value(t: Tensor) -> Any:
    array = t.detach().numpy()
    return float(array) if array.ndim == 0 and array.dtype == np.float64 else array


def njit_op(f: Callable[..., Any]) -> Callable[..., Any]:
    """A differentiable operation on tensors out of a compiled function.

    Parameters
    ----------
    f : callable
        A function decorated with `numba.njit`, unmodified, or a plain function, which is then compiled. It returns a number or an
        array of float64.

    Returns
    -------
    callable
        Takes tensors where `f` takes float64 numbers and arrays, and anything else as it is; gives a tensor. The whole call is
        one operation of the graph, and can be differentiated once.

    Raises
    ------
    CompileError
        When called first with arguments of some types, if `f` uses what cannot be recorded; the message names the line.

    Examples
    --------
    >>> def f(x, n):
    ...     y = 1.0
    ...     for _ in range(n):
    ...         y *= x[0] + x[1]
    ...     return y
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> (2 * tg.njit_op(f)(x, 2)).backward()
    >>> x.grad
    tensor([12., 12.])
    """

    @functools.wraps(f)
    def call(*args: Any) -> Any:
        numbers = tuple(k for k, arg in enumerate(args) if isinstance(arg, Tensor) and (arg.requires_grad or arg.dtype == float64))
        return Compiled.apply(f, numbers, *args)

    return call
