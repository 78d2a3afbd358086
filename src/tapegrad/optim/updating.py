"""How an update rule is applied to a parameter: once to floats, or block by block to arrays, in place.

A rule is the published formula as a pure function, written once for both kinds of data. Arrays go through it in blocks that stay
in the processor's cache with all intermediate results: at a million elements a step of Adam takes a third of the time that whole
arrays take.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave
from tapegrad.engine.layout import CLOCK
from tapegrad.errors import ShapeError
from tapegrad.ops.view_rows import refresh
from tapegrad.ops.views import check_memory, version_of
from tapegrad.tape.tape import TAPE, owner_of
from tapegrad.tensors.tensor import Tensor, make, promote

__all__ = ["Rule", "assign", "chosen", "filled_like", "gradient_of", "larger", "next_count", "update", "zeros_like"]

BLOCK = 1 << 15  # elements: with the intermediate results, about the second level of cache
Rule = Callable[..., tuple[Any, ...]]
_ADDRESS = TAPE.address


def gradient_of(t: Tensor) -> Tensor | None:
    """The gradient of a parameter; unlike ``t.grad`` it never warns."""
    meta = t._meta
    return None if meta is None else meta.grad


def zeros_like(t: Tensor) -> Tensor:
    """Fresh state of a parameter's shape, dtype and memory order."""
    return make(0.0 if type(t._data) is float else np.zeros_like(t._data), 0)


def filled_like(t: Tensor, value: float) -> Tensor:
    """Fresh state of a parameter's shape, dtype and memory order, with one value everywhere."""
    return make(float(value) if type(t._data) is float else np.full_like(t._data, value), 0)


def chosen(condition: Any, x: Any, y: Any) -> Any:
    """`x` where the condition holds, else `y`, for floats and for arrays in a rule."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, x, y)
    return x if condition else y


def larger(a: Any, b: Any) -> Any:
    """The larger of two values, nan if one of them is, for floats and for arrays in a rule."""
    if isinstance(b, np.ndarray):
        return np.maximum(a, b)
    return b if b > a or b != b else a


def next_count(counter: Tensor) -> float:
    """The number of the step after those that were counted."""
    data = counter._data
    return data + 1.0 if type(data) is float else float(data.item()) + 1.0


def update(rule: Rule, t: Tensor, gradient: Tensor, *state: Tensor) -> None:
    """Replace a parameter and its state, in place, by what a rule makes of them.

    Parameters
    ----------
    rule : callable
        ``rule(root, value, gradient, *state)`` returns the new value and the new state. It must not write to its arguments;
        ``root`` is the square root for their kind.
    t, gradient : Tensor
        Of one shape and dtype.
    *state : Tensor
        Untracked, of the shape of `t`.

    Raises
    ------
    RuntimeError
        If the parameter's memory is read-only, elements share memory, or the state's shape is another. Nothing is written then.
    """
    value, g = t._data, gradient._data
    if type(value) is float and type(g) is float:
        old = [s._data for s in state]
        try:
            new = rule(_root, value, g, *old)
        except (ArithmeticError, TypeError):
            # Python's floats raise where 1/0 should be inf, and state from elsewhere may be a 0-d array.
            new = _as_in_arrays(rule, [value, g, *old])
        _write_float(t, new[0])
        for s, z in zip(state, new[1:], strict=True):
            s._data = z
        return
    arrays = [promote(t), promote(gradient), *map(promote, state)]
    whole = arrays[0]
    for array in arrays:
        if array.shape != whole.shape:
            raise ShapeError(
                f"a parameter has shape {list(whole.shape)}, but its gradient or the optimizer's state for it has shape "
                f"{list(array.shape)}; was a state loaded that belongs to another parameter?"
            )
    check_memory(whole)
    written = (t, *state)
    for target in written:
        _note_write(target)
    token = enter(IGNORING)
    try:
        if whole.ndim and whole.size <= BLOCK:
            _replace(rule, arrays)
        elif all(array.flags.c_contiguous for array in arrays):
            flat = [array.reshape(-1) for array in arrays]
            for start in range(0, whole.size, BLOCK):
                _replace(rule, [array[start : start + BLOCK] for array in flat])
        else:
            _replace(rule, arrays)
    finally:
        leave(token)
    for target in written:
        _refresh(target)


def _replace(rule: Rule, arrays: list[np.ndarray]) -> None:
    """Write what a rule makes of arrays into the first and those after the second, which is the gradient."""
    results = rule(np.sqrt, *arrays)
    arrays[0][...] = results[0]
    for array, result in zip(arrays[2:], results[1:], strict=True):
        array[...] = result


def assign(t: Tensor, value: np.ndarray) -> None:
    """Write new values, of the shape of a parameter, into it."""
    if type(t._data) is float:
        _write_float(t, float(value.item()))
        return
    check_memory(t._data)
    _note_write(t)
    t._data[...] = value
    _refresh(t)


def _root(x: float) -> float:
    return math.sqrt(x) if x >= 0.0 else math.nan


def _as_in_arrays(rule: Rule, values: list[float]) -> tuple[float, ...]:
    token = enter(IGNORING)
    try:
        return tuple(float(z[0]) for z in rule(np.sqrt, *[np.array([float(x)]) for x in values]))
    finally:
        leave(token)


def _write_float(t: Tensor, value: float) -> None:
    version_of(t).note(int(TAPE.header[CLOCK]))
    if t._row > 0:
        TAPE.mark_overwritten(_ADDRESS, t._row)
    t._data = value


def _note_write(t: Tensor) -> None:
    """Values saved from a tensor's memory become stale now."""
    counter = version_of(t)
    counter.note(int(TAPE.header[CLOCK]))
    TAPE.note_written(t._data)
    TAPE.versions[owner_of(t._data)] = counter


def _refresh(t: Tensor) -> None:
    """Let views on memory that was written start from it anew."""
    base = t._meta.base if t._meta is not None else None
    refresh(t if base is None else base, recorded=False)
