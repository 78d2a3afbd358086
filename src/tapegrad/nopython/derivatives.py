"""Derivatives of compiled functions: NumPy in, NumPy out."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.errors import ShapeError
from tapegrad.nopython.columns import PAIRS, ROWS
from tapegrad.nopython.recorder import Recorder, recorder
from tapegrad.nopython.sweep import sweep
from tapegrad.nopython.tape_memory import give_back, take

__all__ = ["Recording", "grad", "jacobian", "value_and_grad", "vjp"]


class Recording:
    """A call of a compiled function on a tape: its value, and the derivatives that sweeps of the tape give.

    The tape's memory goes back when the object dies or is closed.
    """

    def __init__(self, record: Recorder, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.record = record
        self.arguments = record.arguments(args, kwargs)
        self.points = [self.arguments[k] for k in record.argnums]
        self.columns = take()
        self.close = weakref.finalize(self, give_back, self.columns)
        try:
            self.value, self.rows = record.record(self.columns, self.arguments)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def gradients(self, rows: Any, cotangents: Any) -> list[Any]:
        """Cotangents of results pulled back to the inputs; rows may occur several times."""
        columns = self.columns
        bar = columns.adjoints()
        if isinstance(rows, int):
            bar[rows if 0 <= rows <= columns.header[ROWS] else 0] = cotangents
        else:
            np.add.at(bar, np.where((rows >= 0) & (rows <= columns.header[ROWS]), rows, 0), cotangents)
        bar[0] = 0.0  # what is constant
        count, pairs = int(columns.header[ROWS]), int(columns.header[PAIRS])
        sweep.get()(columns.rows, columns.partials, bar, count, pairs)
        found: dict[int, Any] = {}
        first = 1
        for k in sorted({k % len(self.arguments) for k in self.record.argnums}):
            point = self.arguments[k]
            if isinstance(point, float):
                found[k] = float(bar[first])
                first += 1
            else:
                found[k] = bar[first : first + point.size].reshape(point.shape).copy()
                first += point.size
        return [found[k % len(self.arguments)] for k in self.record.argnums]


def _as_asked(parts: list[Any], argnums: int | tuple[int, ...]) -> Any:
    return parts[0] if isinstance(argnums, int) else tuple(parts)


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
        same shape for an array, and a tuple of these if `argnums` is one. The value has the bits that `f` returns, but for
        `fastmath` and parallel reductions.

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
        with Recording(record, args, kwargs) as recording:
            value = recording.value
            if np.ndim(value):
                raise TypeError(f"{record.name} returns an array of shape {value.shape}; a gradient is that of a number")
            return value, _as_asked(recording.gradients(int(recording.rows), 1.0), argnums)

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


def jacobian(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that gives the Jacobian of a compiled function.

    Parameters
    ----------
    f : callable
        A function decorated with `numba.njit`, unmodified, or a plain function, which is then compiled. It returns a number or an
        array of float64.
    argnums : int or tuple of int
        Which arguments the derivative is taken with respect to.

    Returns
    -------
    callable
        Takes the arguments of `f`, gives an array whose shape is that of the value followed by that of the argument.

    Notes
    -----
    The function runs once; the tape is swept once for every element of the value.

    Examples
    --------
    >>> def f(x):
    ...     return np.array([x[0] * x[1], x[0] + x[1]])
    >>> tg.jacobian(f)(np.array([2.0, 3.0]))
    array([[3., 2.],
           [1., 1.]])
    """
    record = recorder(f, argnums)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        with Recording(record, args, kwargs) as recording:
            rows = np.asarray(recording.rows)
            parts = [np.zeros((rows.size, np.size(point))) for point in recording.points]
            for k, row in enumerate(rows.ravel()):
                if row != 0:
                    for part, gradient in zip(parts, recording.gradients(int(row), 1.0), strict=True):
                        part[k] = np.ravel(gradient)
            shaped = [part.reshape(rows.shape + np.shape(p)) for part, p in zip(parts, recording.points, strict=True)]
            return _as_asked(shaped, argnums)

    return call


def vjp(f: Callable[..., Any], *args: Any, argnums: int | tuple[int, ...] = 0) -> tuple[Any, Callable[[Any], Any]]:
    """The value of a compiled function, and the function that pulls cotangents back through it.

    Parameters
    ----------
    f : callable
        A function decorated with `numba.njit`, unmodified, or a plain function, which is then compiled. It returns a number or an
        array of float64.
    *args
        Its arguments.
    argnums : int or tuple of int
        Which arguments the derivative is taken with respect to.

    Returns
    -------
    value : float or ndarray
        What `f` returns.
    pullback : callable
        Takes a cotangent of the shape of the value, gives its product with the Jacobian. It may be called many times; the tape
        lives as long as it does.

    Examples
    --------
    >>> value, pullback = tg.vjp(lambda x: x * x, np.array([1.0, 2.0]))
    >>> value
    array([1., 4.])
    >>> pullback(np.array([1.0, 10.0]))
    array([ 2., 40.])
    """
    recording = Recording(recorder(f, argnums), args, {})
    shape = np.shape(recording.value)

    def pullback(cotangent: Any) -> Any:
        weights = np.asarray(cotangent, np.float64)
        if weights.shape != shape:
            raise ShapeError(f"the cotangent has shape {weights.shape}, and the value of {recording.record.name} has {shape}")
        return _as_asked(recording.gradients(np.asarray(recording.rows), weights), argnums)

    return recording.value, pullback
