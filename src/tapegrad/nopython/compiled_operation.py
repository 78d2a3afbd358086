"""Compiled functions as operations of eager graphs: one row of the outer tape."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.arrays.dtypes import float64
from tapegrad.autograd.function import Function
from tapegrad.errors import DerivativeOrderError
from tapegrad.frames import is_inside_driver
from tapegrad.nopython.arguments.ownership import kept
from tapegrad.nopython.derivatives import Recording, flatten
from tapegrad.nopython.recorder import recorder
from tapegrad.tensors.factories import tensor
from tapegrad.tensors.modes import is_grad_enabled
from tapegrad.tensors.tensor import Tensor

__all__ = ["holds_tensors", "njit_op", "value_of"]


class Form(NamedTuple):
    """How the arguments of a call are put together from a flat list: an item is a position in it, or a tuple of items."""

    items: tuple[Any, ...]
    numbers: tuple[int, ...]  # arguments that are differentiated by
    tensors: tuple[int, ...]  # positions of tensors

    def values(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments with values in the places of tensors."""
        return tuple(_together(item, leaves) for item in self.items)

    def placed(self, parts: Sequence[Tensor], count: int) -> list[Any]:
        """Gradients at the positions that they belong to; numbers beside tensors in a tuple have none."""
        found: list[Any] = [None] * count
        positions: list[int] = []
        for number in self.numbers:
            _positions(self.items[number], positions)
        for position, part in zip(positions, parts, strict=True):
            if position in self.tensors:
                found[position] = part
        return found


class Items(NamedTuple):
    """A tuple that holds tensors, and what kind of a tuple it is."""

    like: tuple[Any, ...]
    items: tuple[Any, ...]


def holds_tensors(value: Any) -> bool:
    """Whether there is a tensor in a value, or in what it holds."""
    if isinstance(value, (tuple, list)):
        return any(map(holds_tensors, value))
    if isinstance(value, dict):
        return any(map(holds_tensors, value.values()))
    return isinstance(value, Tensor)


def _apart(value: Any, leaves: list[Any]) -> Any:
    if isinstance(value, tuple) and holds_tensors(value):
        return Items(value, tuple(_apart(item, leaves) for item in value))
    leaves.append(value)
    return len(leaves) - 1


def _together(item: Any, leaves: Sequence[Any]) -> Any:
    if isinstance(item, Items):
        found = [_together(inner, leaves) for inner in item.items]
        return type(item.like)(*found) if hasattr(item.like, "_fields") else tuple(found)
    leaf = leaves[item]
    if not isinstance(leaf, Tensor):
        return leaf
    value = value_of(leaf)
    # Arrays in drivers give NumPy memory that is only read (decision 33), and a function may write into its arguments.
    return value.copy() if isinstance(value, np.ndarray) and not value.flags.writeable else value


def _arranged(value: Any, parts: Iterator[Any]) -> Any:
    """The next tensors in the tuples of a value."""
    if not isinstance(value, tuple):
        return next(parts)
    found = [_arranged(item, parts) for item in value]
    return type(value)(*found) if hasattr(value, "_fields") else tuple(found)


def _positions(item: Any, found: list[int]) -> None:
    if isinstance(item, Items):
        for inner in item.items:
            _positions(inner, found)
    else:
        found.append(item)


def _differentiated(value: Any) -> bool:
    """Whether a derivative by an argument is taken: tensors of integers and the like are constants."""
    if isinstance(value, tuple):
        return any(map(_differentiated, value))
    if isinstance(value, Tensor):
        return value.requires_grad or value.dtype == float64
    return isinstance(value, (list, dict)) and holds_tensors(value)  # which is refused there, and says what to write


class Compiled(Function):
    """A call of a compiled function; its tape lives as long as the row."""

    @staticmethod
    def forward(ctx: Any, f: Any, form: Form, returned: list[Any], *leaves: Any) -> Any:
        """Run and record; what the function returned goes into a list, and the tensors for what it holds are the results."""
        ctx.f, ctx.form = f, form
        ctx.save_for_backward(*(leaves[k] for k in form.tensors))
        constants = [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        # As they are now, for a second recording when the first one is differentiated.
        ctx.leaves = kept(constants) if any(ctx.needs_input_grad) else [None] * len(leaves)
        ctx.recording = _recorded(f, form, leaves)
        value = ctx.recording.value
        returned.append(value)
        if not isinstance(value, tuple):
            return tensor(value)
        parts: list[Any] = []
        flatten(value, parts)
        return tuple(map(tensor, parts))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Pull the cotangents back through the call's own tape."""
        if is_grad_enabled():
            leaves = list(ctx.leaves)
            for k, saved in zip(ctx.form.tensors, ctx.saved_tensors, strict=True):
                leaves[k] = saved
            pulled = Pulled.apply(ctx.f, ctx.form, ctx.recording.value, len(gradients), *gradients, *leaves)
            pulled = pulled if isinstance(pulled, tuple) else (pulled,)
        else:
            pulled = _split(ctx.recording.points, ctx.recording.pull(_column(gradients)))
        return (None, None, None, *ctx.form.placed(pulled, len(ctx.leaves)))


class Pulled(Function):
    """The product of cotangents with the Jacobian of a compiled function, recorded with second derivatives."""

    @staticmethod
    def forward(ctx: Any, f: Any, form: Form, value: Any, count: int, *given: Any) -> Any:
        """Run and record, then pull the cotangents back."""
        cotangents, leaves = given[:count], given[count:]
        ctx.recording, ctx.form, ctx.count = _recorded(f, form, leaves, curved=True), form, len(leaves)
        _check_same(ctx.recording, value)
        ctx.cotangent, ctx.cotangents = _column(cotangents), [value_of(t) for t in cotangents]
        return tuple(_split(ctx.recording.points, ctx.recording.pull(ctx.cotangent)))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """By the cotangents a product with the Jacobian, by the arguments one with the Hessian of the weighted results."""
        if is_grad_enabled():  # a part of the third derivative would be missing, and nobody would see it
            raise DerivativeOrderError(f"{ctx.recording.name}, a compiled function, can be differentiated twice only: {_instead()}")
        recording, direction = ctx.recording, _column(gradients)
        by_cotangents = _split(ctx.cotangents, recording.push(direction))
        curved = _split(recording.points, recording.curve(direction, ctx.cotangent[:, 0]))
        return (None, None, None, None, *by_cotangents, *ctx.form.placed(curved, ctx.count))


def _check_same(recording: Recording, value: Any) -> None:
    """A second recording is one of the same function, unless something changed that is not kept."""
    before: list[Any] = []
    now: list[Any] = []
    flatten(value, before)
    flatten(recording.value, now)
    if len(now) != len(before) or not all(map(_agree, now, before)):
        raise RuntimeError(
            f"{recording.name} gave another value when it ran again for its second derivative. It depends on random numbers, or on "
            "something that changed meanwhile: pass that as an argument that is a number or an array, which is kept"
        )


def _agree(now: Any, before: Any) -> bool:
    """Whether two results are equal but for the last digits, which fastmath may change."""
    a, b = np.asarray(now), np.asarray(before)
    if a.shape != b.shape:
        return False
    other = (a != b) & ((a == a) | (b == b))  # nan agrees with nan
    if not other.any():
        return True
    a, b = a[other], b[other]
    return bool(np.isfinite(b).all() and (np.abs(a - b) <= 1e-12 + 1e-9 * np.abs(b)).all())


def _instead() -> str:
    """What to write where a third derivative was asked for."""
    if not is_inside_driver():
        return "leave create_graph=True away, or write it with operations on tensors"
    return (
        "a driver around two others needs the third derivative, and so do jvp, linearize and hvp around one. Write hvp(f, x, v) "
        "for jvp(grad(f), (x,), (v,)), jacobian(f) for jvp or linearize inside of another driver, and jacobian(grad(f)) or "
        "hessian(f) for second derivatives; for more give the function without numba.njit (its .py_func)"
    )


def _recorded(f: Any, form: Form, leaves: Sequence[Any], curved: bool = False) -> Recording:
    record = recorder(f, form.numbers)
    return Recording(record, record.arguments(form.values(leaves), {}), curved)


def _column(tensors: Any) -> np.ndarray:
    """Tensors as one column."""
    return np.concatenate([np.ravel(t.detach().numpy()) for t in tensors]).astype(np.float64)[:, None]


def _split(like: Sequence[Any], column: np.ndarray) -> list[Tensor]:
    """A column cut into tensors of the shapes of arrays and numbers."""
    points: list[Any] = []
    flatten(like, points)
    parts, done = [], 0
    for point in points:
        size = int(np.size(point))
        parts.append(tensor(column[done : done + size, 0].reshape(np.shape(point))))
        done += size
    return parts


def value_of(t: Tensor) -> Any:
    """The value of a tensor as compiled functions take it."""
    array = t.detach().numpy()
    return array.item() if array.ndim == 0 and (array.dtype == np.float64 or array.dtype.kind in "iub") else array


def njit_op(f: Callable[..., Any]) -> Callable[..., Any]:
    """A differentiable operation on tensors out of a compiled function.

    Parameters
    ----------
    f : callable
        A function decorated with `numba.njit`, unmodified, or a plain function, which is then compiled. It returns numbers and
        arrays of float64, one or a tuple of them.

    Returns
    -------
    callable
        Takes tensors where `f` takes float64 numbers and arrays, in tuples too, and anything else as it is; gives tensors. The
        whole call is one operation of the graph, and can be differentiated twice.

    Raises
    ------
    CompileError
        When called first with arguments of some types, if `f` uses what cannot be recorded; the message names the line.
    RuntimeError
        In a backward pass: if it is to be differentiated a third time, or gives another value when it runs again.

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
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            bound = inspect.signature(getattr(f, "py_func", f)).bind(*args, **kwargs)
            bound.apply_defaults()
            args = bound.args
        leaves: list[Any] = []
        items = tuple(_apart(arg, leaves) for arg in args)
        numbers = tuple(k for k, arg in enumerate(args) if _differentiated(arg))
        tensors = tuple(k for k, leaf in enumerate(leaves) if isinstance(leaf, Tensor))
        returned: list[Any] = []
        made = Compiled.apply(f, Form(items, numbers, tensors), returned, *leaves)
        value = returned[0]
        return _arranged(value, iter(made if isinstance(made, tuple) else (made,))) if isinstance(value, tuple) else made

    return call
