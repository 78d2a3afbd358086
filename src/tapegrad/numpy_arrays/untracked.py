"""Arrays of which nothing is differentiated: what NumPy computes of their values is the result.

So integers, bools, complex numbers and whatever else a function computes beside its derivative have NumPy's dtypes, shapes, edge
cases and errors, because NumPy makes them. Views stay views of ours, through which tracked values can be written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.numpy_arrays.array import Array, as_arrays
from tapegrad.numpy_arrays.classes import answering, class_of
from tapegrad.ops.views import is_written, view
from tapegrad.tape.locks import changing
from tapegrad.tape.tape import TAPE
from tapegrad.tensors import tracers
from tapegrad.tensors.tensor import Tensor, array_of, is_recording, make, promote

__all__ = ["PAIRS", "computed", "constant", "is_tracked", "of_values", "plain", "values_of", "with_digits", "write_constants"]

KINDS = "fiubc"  # of dtypes that arrays of ours have
MOST = 16  # bytes of an element
PAIRS: set[type] = set()  # classes of pairs of arrays for tracked complex numbers, which join it when they are first needed


def plain(x: Any) -> Any:
    """An array's values as NumPy's arithmetic takes them: a number has a dtype that counts."""
    if not isinstance(x, Tensor):
        return x
    data = x._data
    if type(data) is float:
        return np.float64(data)
    return data if data.ndim or class_of(x) is np.ndarray else data[()]


def values_of(values: Any) -> Any:
    """The same for what is nested in tuples, lists and dicts."""
    if isinstance(values, Tensor):
        return array_of(values)
    if isinstance(values, (tuple, list)):
        return tuple(map(values_of, values)) if isinstance(values, tuple) else list(map(values_of, values))
    if type(values) is dict:
        return {name: values_of(value) for name, value in values.items()}
    return values


def is_tracked(*values: Any) -> bool:
    """Whether a derivative is recorded by one of the arrays in nested tuples, lists and dicts."""
    return _holds_rows(values) and is_recording()


def _holds_rows(values: Any) -> bool:
    for value in values:
        if isinstance(value, Tensor):
            if value._row:
                return True
        elif isinstance(value, (tuple, list)):
            if _holds_rows(value):
                return True
        elif type(value) is dict and _holds_rows(value.values()):
            return True
    return False


def constant(value: Any) -> Any:
    """What NumPy gave, with arrays of ours for its arrays and numbers."""
    kind = type(value)
    if kind is np.float64:
        return as_arrays(make(float(value), 0))
    if kind is np.ndarray or issubclass(type(value), np.generic):
        if value.dtype.kind not in KINDS or value.dtype.itemsize > MOST or value.dtype.char in "gG":
            return value
        native = value if value.dtype.isnative else value.astype(value.dtype.newbyteorder("="))
        made = as_arrays(make(np.asarray(native), 0))
        return made if value.ndim or kind is not np.ndarray else answering(made, kind)
    if kind is tuple or kind is list:
        return kind(map(constant, value))
    return kind(*map(constant, value)) if isinstance(value, tuple) else value


def of_values(operate: Callable[..., Any], *operands: Any) -> Any:
    """What an operator gives for values alone."""
    result = constant(operate(*map(plain, operands)))
    return tracers.computed(operate, operands, {}, result) if TAPE.tracers else result


def computed(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What NumPy's function gives for arrays that are not tracked; views of them where it gives views."""
    for x in _arrays(args) + _arrays(tuple(kwargs.values())):
        if type(x._data) is float and is_written(x):
            promote(x)  # whose memory a view can share
    result = function(*values_of(args), **values_of(kwargs))
    operands = [x for x in _arrays(args) + _arrays(tuple(kwargs.values())) if x.size]
    found = _with_views(result, operands, lambda *arrays: function(*_replaced(args, arrays), **_replaced(kwargs, arrays)))
    return tracers.computed(function, args, kwargs, found) if TAPE.tracers else found


def with_digits(result: Tensor, values: Any) -> Tensor:
    """A new result with NumPy's own value, whose last digits may be other ones than those of the operations that it is made of."""
    data = result._data
    if type(data) is float:
        result._data = float(values)
        if result._row > 0:  # whose derivative is to have the same value
            with changing:
                TAPE.columns["value"][TAPE.slot(result._row)] = values
    elif data.base is None and data.shape == np.shape(values):
        np.copyto(data, values, casting="same_kind")
    return result


def write_constants(x: Array, write: Callable[[np.ndarray], Any], *values: Any) -> None:
    """Let NumPy write into an array that is not tracked what is not tracked either; rows that saved the memory know of it.

    Raises
    ------
    TypeError
        If a value is tracked and the array complex: it has one type of numbers, and tracked complex ones are pairs of arrays.
    """
    if x.dtype.kind == "c" and any((isinstance(value, Tensor) and value._row) or type(value) in PAIRS for value in values):
        raise TypeError(
            "an array of complex numbers that was made as constants cannot hold what is being differentiated; make it from what "
            "is, as np.zeros_like(x + 0j), or keep real and imaginary parts in arrays of their own"
        )
    from tapegrad.ops.overwriting import check_writable, overwrite  # which a function that writes nothing needs not

    changed = array_of(x).copy()
    write(changed)
    check_writable(x, False)
    overwrite(x, changed, None)


def _with_views(result: Any, operands: list[Array], again: Callable[..., Any], place: tuple[int, ...] = ()) -> Any:
    if isinstance(result, (tuple, list)):
        parts = [_with_views(part, operands, again, (*place, k)) for k, part in enumerate(result)]
        return type(result)(parts) if type(result) in (tuple, list) else type(result)(*parts)
    if type(result) is not np.ndarray or result.base is None:
        return constant(result)
    for x in operands:
        if np.may_share_memory(array_of(x), result):

            def take(array: np.ndarray, x: Array = x) -> Any:
                found = again((x, array))
                for k in place:
                    found = found[k]
                return found

            return as_arrays(view(x, "AsStridedBackward0", take))
    return constant(result.copy())


def _arrays(values: Any) -> list[Any]:
    if isinstance(values, Array):
        return [values]
    return [x for value in values for x in _arrays(value)] if isinstance(values, (tuple, list)) else []


def _replaced(values: Any, pairs: tuple[Any, ...]) -> Any:
    """Values of nested arguments, with another array for one of them."""
    for x, array in pairs:
        if values is x:
            return array
    if isinstance(values, (tuple, list)):
        parts = [_replaced(value, pairs) for value in values]
        return tuple(parts) if isinstance(values, tuple) else parts
    if type(values) is dict:
        return {name: _replaced(value, pairs) for name, value in values.items()}
    return array_of(values) if isinstance(values, Tensor) else values
