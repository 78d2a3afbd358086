"""Derivatives of compiled functions: NumPy in, NumPy out."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.nopython.columns import PAIRS, ROWS
from tapegrad.nopython.recorder import Recorder, recorder
from tapegrad.nopython.sweep import sweep
from tapegrad.nopython.tape_memory import Columns, give_back, take

__all__ = ["grad", "value_and_grad"]


def _swept(columns: Columns, row: int) -> np.ndarray:
    """Adjoints of all rows, for the derivative of the value of one."""
    bar = columns.adjoints()
    if row > 0:
        bar[row] = 1.0
        sweep.get()(columns.rows, columns.partials, bar, int(columns.header[ROWS]), int(columns.header[PAIRS]))
    return bar


def _gradients(bar: np.ndarray, record: Recorder, arguments: list[Any]) -> list[Any]:
    """The adjoints of the inputs, in their shapes; their rows are numbered in the order of the arguments."""
    found, first = {}, 1
    for k in sorted({k % len(arguments) for k in record.argnums}):
        point = arguments[k]
        if isinstance(point, float):
            found[k] = float(bar[first])
            first += 1
        else:
            found[k] = bar[first : first + point.size].reshape(point.shape).copy()
            first += point.size
    return [found[k % len(arguments)] for k in record.argnums]


def value_and_grad(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., tuple[Any, Any]]:
    """A function that gives the value and the gradient of a compiled function.

    Parameters
    ----------
    f : callable
        A function decorated with `numba.njit`, unmodified, or a plain function, which is then compiled. It returns a float64.
    argnums : int or tuple of int
        Which arguments the gradient is taken with respect to: float64 numbers and arrays. All others are constants.

    Returns
    -------
    callable
        Takes the arguments of `f`, gives ``(value, gradient)``; the gradient is a float for a number and an array of the
        same shape for an array, and a tuple of these if `argnums` is one. The value has the bits that `f` returns.

    Raises
    ------
    CompileError
        When called first with arguments of some types, if `f` uses what cannot be recorded; the message names the line.
    TypeError
        If an argument in `argnums` is not float64.

    Notes
    -----
    The first call with arguments of some types compiles. Arguments that `f` overwrites keep their values for the caller.
    Conversions to integers, comparisons and random numbers are constants to the derivative.

    Examples
    --------
    >>> def f(x, n):
    ...     y = x[0]
    ...     for _ in range(n):
    ...         y = y * x[1]
    ...     return y
    >>> tg.value_and_grad(f)(np.array([2.0, 3.0]), 2)
    (18.0, array([ 9., 12.]))
    """
    record = recorder(f, argnums)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        arguments = record.arguments(args, kwargs)
        columns = take()
        try:
            value, row = record.record(columns, arguments)
            if isinstance(value, np.ndarray):
                raise TypeError(f"{record.name} returns an array of shape {value.shape}; a gradient is that of a number")
            gradients = _gradients(_swept(columns, row), record, arguments)
        finally:
            give_back(columns)
        return value, gradients[0] if isinstance(argnums, int) else tuple(gradients)

    return call


def grad(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that gives the gradient of a compiled function; see `value_and_grad`.

    Parameters
    ----------
    f : callable
        A function decorated with `numba.njit`, unmodified, or a plain function, which is then compiled.
    argnums : int or tuple of int
        Which arguments the gradient is taken with respect to.

    Returns
    -------
    callable
        Takes the arguments of `f`, gives the gradient.

    Examples
    --------
    >>> tg.grad(lambda x: x * x)(3.0)
    6.0
    """
    both = value_and_grad(f, argnums)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return call
