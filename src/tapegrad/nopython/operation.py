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
        ctx.f, ctx.numbers = f, numbers
        ctx.save_for_backward(*(arg for arg in args if isinstance(arg, Tensor)))
        ctx.args = tuple(None if isinstance(arg, Tensor) else arg for arg in args)
        ctx.tensors = tuple(k for k, arg in enumerate(args) if isinstance(arg, Tensor))
        ctx.recording = _recorded(f, numbers, args)
        if isinstance(ctx.recording.value, tuple):
            raise TypeError(f"{ctx.recording.name} returns several values; an operation on tensors gives one")
        return tensor(ctx.recording.value)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Pull the cotangent back through the call's own tape."""
        if is_grad_enabled():
            args = list(ctx.args)
            for k, saved in zip(ctx.tensors, ctx.saved_tensors, strict=True):
                args[k] = saved
            pulled = Pulled.apply(ctx.f, ctx.numbers, gradients[0], *args)
            pulled = pulled if isinstance(pulled, tuple) else (pulled,)
        else:
            pulled = _split(ctx.recording, ctx.recording.pull(_column([gradients[0]])))
        return (None, None, *_placed(pulled, ctx.numbers, len(ctx.args)))


class Pulled(Function):
    """The product of a cotangent with the Jacobian of a compiled function, recorded with second derivatives."""

    @staticmethod
    def forward(ctx: Any, f: Any, numbers: tuple[int, ...], cotangent: Tensor, *args: Any) -> Any:
        """Run and record, then pull the cotangent back."""
        ctx.recording, ctx.numbers, ctx.count = _recorded(f, numbers, args, curved=True), numbers, len(args)
        ctx.cotangent, ctx.shape = _column([cotangent]), cotangent.shape
        return tuple(_split(ctx.recording, ctx.recording.pull(ctx.cotangent)))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """By the cotangent a product with the Jacobian, by the arguments one with the Hessian of the weighted results."""
        if is_grad_enabled():  # a part of the third derivative would be missing, and nobody would see it
            raise RuntimeError(
                f"{ctx.recording.name}, a compiled function, can be differentiated twice only: "
                "leave create_graph=True away, or write it with operations on tensors"
            )
        recording, direction = ctx.recording, _column(gradients)
        by_cotangent = tensor(recording.push(direction)[:, 0].reshape(ctx.shape))
        curved = _split(recording, recording.curve(direction, ctx.cotangent[:, 0]))
        return (None, None, by_cotangent, *_placed(curved, ctx.numbers, ctx.count))


def _recorded(f: Any, numbers: tuple[int, ...], args: Any, curved: bool = False) -> Recording:
    values = tuple(_value(arg) if isinstance(arg, Tensor) else arg for arg in args)
    record = recorder(f, numbers)
    return Recording(record, record.arguments(values, {}), curved)


def _column(tensors: Any) -> np.ndarray:
    """Tensors as one column."""
    return np.concatenate([np.ravel(t.detach().numpy()) for t in tensors]).astype(np.float64)[:, None]


def _split(recording: Recording, column: np.ndarray) -> list[Tensor]:
    """A column over the inputs as tensors of their shapes."""
    parts, done = [], 0
    for point in recording.points:
        size = int(np.size(point))
        parts.append(tensor(column[done : done + size, 0].reshape(np.shape(point))))
        done += size
    return parts


def _placed(parts: Any, numbers: tuple[int, ...], count: int) -> list[Any]:
    """Gradients at the arguments that they belong to."""
    placed: list[Any] = [None] * count
    for number, part in zip(numbers, parts, strict=True):
        placed[number] = part
    return placed


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
        one operation of the graph, and can be differentiated twice.

    Raises
    ------
    CompileError
        When called first with arguments of some types, if `f` uses what cannot be recorded; the message names the line.
    RuntimeError
        In a backward pass: if it is to be differentiated a third time.

    Notes
    -----
    The forward pass records the call on a tape of its own, which lives as long as the row; the backward pass is one sweep over it.
    A backward pass with ``create_graph=True`` runs `f` once more and records second partials. Drivers take compiled functions
    without this; it is for calls inside of graphs of tensors and of Python functions that are differentiated.

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
