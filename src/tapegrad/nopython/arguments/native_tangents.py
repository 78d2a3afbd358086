"""Tangents where compiled code calls for them: of arguments as columns of a matrix, and of results in their own form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from tapegrad.nopython.arguments.native_results import size
from tapegrad.nopython.numba_interface.linking import overload
from tapegrad.nopython.types.variable import is_float

__all__ = ["across", "along", "are_several", "laid", "listed", "width"]

WRONG_SHAPE = (
    "a tangent must have the shape of its argument, and where there are several of them, their number as one more dimension"
)
WRONG_NUMBER = "all arguments must have the same number of tangents"


def are_several(argument: Any, tangent: Any) -> bool | None:
    """Whether a type is that of several tangents of an argument; None if it is not that of one either."""
    if isinstance(argument, types.BaseTuple):
        if not isinstance(tangent, types.BaseTuple) or len(tangent.types) != len(argument.types):
            return None
        found = {are_several(*pair) for pair in zip(argument.types, tangent.types, strict=True)}
        return found.pop() if len(found) == 1 else None
    kind = getattr(tangent, "dtype", tangent) if isinstance(tangent, types.Array) else tangent
    if not isinstance(kind, types.Integer) and not is_float(kind):
        return None
    more = getattr(tangent, "ndim", 0) - getattr(argument, "ndim", 0)
    return bool(more) if more in (0, 1) else None


def width(x: Any, t: Any) -> Any:
    """How many tangents there are of an argument."""
    raise NotImplementedError


@overload(width)
def _width(x, t):
    if isinstance(x, types.BaseTuple):
        return lambda x, t: width(x[0], t[0])
    if are_several(x, t):
        return lambda x, t: t.shape[-1]
    return lambda x, t: 1


def laid(x: Any, t: Any, directions: Any, start: Any) -> Any:
    """Write tangents of an argument into the rows of a matrix from one on; where the next ones go."""
    raise NotImplementedError


@overload(laid)
def _laid(x, t, directions, start):
    if isinstance(x, types.BaseTuple):
        lines = ["def of_items(x, t, directions, start):"]
        lines += [f"    start = laid(x[{k}], t[{k}], directions, start)" for k in range(len(x.types))]
        space = {"laid": laid}
        exec("\n".join([*lines, "    return start"]), space)
        return space["of_items"]
    dimensions = x.ndim if isinstance(x, types.Array) else 0
    if not isinstance(t, types.Array):

        def of_number(x, t, directions, start):
            directions[start, 0] = t
            return start + 1

        return of_number
    if t.ndim > dimensions:

        def several(x, t, directions, start):
            count = directions.shape[1]
            if t.shape[dimensions] != count:
                raise ValueError(WRONG_NUMBER)
            if dimensions and t.size != size(x) * count:
                raise ValueError(WRONG_SHAPE)
            for k in range(dimensions):
                if t.shape[k] != np.shape(x)[k]:
                    raise ValueError(WRONG_SHAPE)
            for k, value in enumerate(t.flat):
                directions[start + k // count, k % count] = value
            return start + size(x)

        return several

    def one(x, t, directions, start):
        if t.shape != x.shape:
            raise ValueError(WRONG_SHAPE)
        for k, value in enumerate(t.flat):
            directions[start + k, 0] = value
        return start + x.size

    return one


def listed(rows: Any, outs: Any, start: Any) -> Any:
    """Write the rows of a result into a vector from a place on; where the next ones go."""
    raise NotImplementedError


@overload(listed)
def _listed(rows, outs, start):
    if isinstance(rows, types.BaseTuple):
        lines = ["def of_items(rows, outs, start):"]
        lines += [f"    start = listed(rows[{k}], outs, start)" for k in range(len(rows.types))]
        space = {"listed": listed}
        exec("\n".join([*lines, "    return start"]), space)
        return space["of_items"]
    if isinstance(rows, types.Array):

        def of_array(rows, outs, start):
            for k, number in enumerate(rows.flat):
                outs[start + k] = number
            return start + rows.size

        return of_array

    def of_number(rows, outs, start):
        outs[start] = rows
        return start + 1

    return of_number


def along(value: Any, products: Any, start: Any) -> Any:
    """The tangent of a result, in its form, from the rows of a matrix of one column."""
    raise NotImplementedError


def across(value: Any, products: Any, start: Any) -> Any:
    """The tangents of a result, with one more dimension, from the rows of a matrix."""
    raise NotImplementedError


def _of_items(name: str, value: Any) -> Any:
    lines = [f"def of_items(value, products, start):\n    p0 = {name}(value[0], products, start)"]
    following = range(1, len(value.types))
    lines += [f"    start += size(value[{k - 1}])\n    p{k} = {name}(value[{k}], products, start)" for k in following]
    new = getattr(value, "instance_class", None)
    lines.append(f"    return {'new' if new else ''}({''.join(f'p{k}, ' for k in range(len(value.types)))})")
    space = {name: globals()[name], "size": size, "new": new}
    exec("\n".join(lines), space)
    return space["of_items"]


@overload(along)
def _along(value, products, start):
    if isinstance(value, types.BaseTuple):
        return _of_items("along", value)
    if isinstance(value, types.Array):

        def of_array(value, products, start):
            made = np.empty(value.size, value.dtype)
            for k in range(made.size):
                made[k] = products[start + k, 0]
            return made.reshape(value.shape)

        return of_array
    if value == types.float32:
        return lambda value, products, start: np.float32(products[start, 0])
    return lambda value, products, start: products[start, 0]


@overload(across)
def _across(value, products, start):
    if isinstance(value, types.BaseTuple):
        return _of_items("across", value)
    kind = np.float32 if getattr(value, "dtype", value) == types.float32 else np.float64
    if isinstance(value, types.Array):

        def of_array(value, products, start):
            count = products.shape[1]
            made = np.empty((value.size, count), kind)
            for k in range(value.size):
                for j in range(count):
                    made[k, j] = products[start + k, j]
            return made.reshape((*value.shape, count))

        return of_array

    def of_number(value, products, start):
        made = np.empty(products.shape[1], kind)
        for j in range(made.size):
            made[j] = products[start, j]
        return made

    return of_number
