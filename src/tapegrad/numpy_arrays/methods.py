"""Methods of arrays that mean something else than the tensor's of the same name, or that tensors have not."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.numpy_arrays.array import IN_PLACE, Array, as_arrays
from tapegrad.numpy_arrays.constants import stop_gradient
from tapegrad.numpy_arrays.numbers import go_on_as, is_seen_by_nobody, like, may_go_on_as
from tapegrad.numpy_arrays.untracked import PAIRS, is_tracked, of_values, values_of, write_constants
from tapegrad.numpy_protocol.functions import copy_in_order
from tapegrad.ops.cloning import clone
from tapegrad.ops.views import is_written
from tapegrad.surface.attributes import base as base_of
from tapegrad.surface.conversions import as_float, as_index
from tapegrad.surface.conversions import item as number_of
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import FLOATS, Tensor, array_of, is_recording
from tapegrad.tensors.tracers import left, writes_operands
from tapegrad.tensors.untracked_values import is_stored

__all__: list[str] = []

_TENSORS: Any = Tensor


def _refuse(what: str, t: Tensor) -> None:
    """Raise if a value is taken out of an array that is being differentiated: what is made of it would lose its derivative.

    Raises
    ------
    TypeError
        Says what to write.
    """
    if TAPE.tracers:
        left(t)
    if t._row and is_recording():
        raise TypeError(
            f"{what} takes a number out of an array that is being differentiated, so what is made of it would have no derivative. "
            "Work with the element itself, and with NumPy's functions (np.exp(x[0]) for math.exp(x[0]), np.stack for lists of "
            "numbers); write tg.stop_gradient(x[0]) where a constant is meant."
        )


def to_index(x: Array) -> int:
    """The value of an integer without dimensions; one element of a line is no index, as NumPy would take it for that number."""
    if array_of(x).ndim:
        raise TypeError("only integer scalar arrays can be converted to a scalar index")
    return as_index(x)


def to_float(x: Array) -> Any:
    """The value as a float, if it is not being differentiated."""
    if is_stored():  # NumPy would hide the reason; the driver refuses afterwards, with the place
        return as_float(x)
    _refuse("float() or a function of the math module", x)
    data = array_of(x)
    if data.size != 1:
        raise TypeError("only length-1 arrays can be converted to Python scalars")
    return float(data.item())


def to_complex(x: Array) -> Any:
    """The value as a complex number, if it is not being differentiated."""
    _refuse("complex()", x)
    return complex(array_of(x).item())


def item(x: Array, *args: Any) -> Any:
    """One element as a Python number, if it is not being differentiated."""
    _refuse("item()", x)
    return number_of(x[args[0] if len(args) == 1 else args] if args else x)


def tolist(x: Array) -> Any:
    """The values as nested lists of Python numbers, if they are not being differentiated."""
    _refuse("tolist()", x)
    return array_of(x).tolist()


def tobytes(x: Array, order: str = "C") -> bytes:
    """The bytes of the values, if they are not being differentiated."""
    _refuse("tobytes()", x)
    return array_of(x).tobytes(order)  # type: ignore[arg-type]


def reduced(x: Array, protocol: Any) -> Any:
    """What pickle keeps: the values, if they are not being differentiated."""
    _refuse("pickle", x)
    return look_up("surface.copying:reduce")(x, protocol)


def rounded(x: Array, ndigits: int | None = None) -> Any:
    """Python's ``round``: to an integer without digits, as NumPy's numbers have it."""
    if ndigits is None:
        if TAPE.tracers:
            left(x)
        return int(np.rint(array_of(x)).item())
    return np.round(x, ndigits)


def _step(function: Callable[[Any], int]) -> Callable[[Array], int]:
    def step(x: Array) -> int:
        """A step of `math`, which has no slope, as ``int(x)`` has none."""
        if TAPE.tracers:
            left(x)
        return function(array_of(x).item())

    return step


floored, ceiled, truncated = _step(math.floor), _step(math.ceil), _step(math.trunc)


def divided(x: Array, y: Any) -> tuple[Any, Any]:
    """Quotient and remainder."""
    return x // y, x % y


def dividing(x: Array, y: Any) -> tuple[Any, Any]:
    """The same of another value by an array."""
    return y // x, y % x


def astype(x: Array, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True) -> Any:
    """The values in another dtype, as a copy unless ``copy=False`` and it is the same.

    Raises
    ------
    TypeError
        If the rule of `casting` forbids it.
    """
    wanted = np.dtype(dtype)
    if not np.can_cast(x.dtype, wanted, casting):  # type: ignore[arg-type]
        raise TypeError(f"Cannot cast array data from {x.dtype!r} to {wanted!r} according to the rule '{casting}'")
    if wanted == x.dtype and not copy:
        return x
    if not is_tracked(x):
        return of_values(operator.methodcaller("astype", wanted, order), x)
    if wanted.kind == "c" and wanted.itemsize <= 16:
        part = as_arrays(copy_in_order(x, order, np.dtype(f"f{wanted.itemsize // 2}")))
        return look_up("numpy_arrays.complex_arrays:made")(part, np.zeros(np.shape(part), part.dtype))
    if wanted.kind in "fc" and wanted not in FLOATS:
        raise TypeError(f"astype({wanted.name!r}): numbers of this dtype are not differentiated; take float64 or complex128")
    return like(x, as_arrays(copy_in_order(x, order, wanted)))


def copy(x: Array, order: str = "C") -> Array:
    """A copy."""
    found: Array = like(x, as_arrays(copy_in_order(x, order)))
    return found


def positive(x: Array) -> Array:
    """``+x``: a copy, and a number if it has no dimensions."""
    return as_arrays(copy_in_order(x, "C"))


def shallow_copy(x: Array) -> Array:
    """What `copy.copy` gives."""
    return copy(x)


def deep_copy(x: Array, memo: dict[int, Any]) -> Array:
    """What `copy.deepcopy` gives."""
    return copy(x)


def compress(x: Array, condition: Any, axis: int | None = None, out: Any = None) -> Any:
    """The parts along an axis where a condition holds."""
    return np.compress(condition, x, axis=axis, out=out)


def described(x: Array) -> str:
    """The values, as NumPy's arrays and numbers are shown."""
    data = x._data
    return repr(data if type(data) is not float else np.float64(data))


def shown(x: Array) -> str:
    """The values, as NumPy's arrays and numbers are printed."""
    return str(x._data)


def conjugate(x: Array) -> Array:
    """The complex conjugate; of real numbers the array itself."""
    return np.conjugate(x) if array_of(x).dtype.kind == "c" else x  # type: ignore[return-value]


def floor_divided(x: Array, y: Any) -> Any:
    """Whole quotients, which are constants between their steps."""
    return of_values(operator.floordiv, x, stop_gradient(y))


def floor_dividing(x: Array, y: Any) -> Any:
    """The same of another value by an array."""
    return of_values(operator.floordiv, stop_gradient(y), x)


@writes_operands
def fill(x: Array, value: Any) -> None:
    """Write one value into all elements."""
    if x.dtype.kind == "c":
        x[...] = value
    else:
        look_up("ops.in_place:fill_")(x, value)  # which is not imported with the other methods


def flatten(x: Array, order: str = "C") -> Array:
    """A copy with one dimension."""
    flat: Array = as_arrays(clone(x.ravel(order)))
    return flat


@writes_operands
def sort(x: Array, axis: int = -1, kind: Any = None, order: Any = None, **stable: Any) -> None:
    """Sort in place."""
    x[...] = np.sort(x, axis=axis)


def partition(x: Array, kth: Any, axis: int = -1, kind: Any = "introselect", order: Any = None) -> None:
    """Put the elements of `kth` in their sorted places; all are sorted here."""
    x[...] = np.sort(x, axis=axis)


def put(x: Array, indices: Any, values: Any, mode: str = "raise") -> None:
    """Write values at places of the flattened array.

    Raises
    ------
    IndexError
        If a place is out of bounds.
    """
    if x.dtype.kind == "c":
        write_constants(x, lambda array: array.put(values_of(indices), values_of(values), mode), values)  # type: ignore[arg-type]
        return
    places = np.arange(x.size).take(np.asarray(indices), mode=mode).ravel()  # type: ignore[call-overload]
    given = np.ravel(values) if isinstance(values, Tensor) else np.asarray(values).ravel()
    if places.size and np.size(given):
        x[np.unravel_index(places, x.shape)] = given[np.arange(places.size) % np.size(given)]


def transpose(x: Array, *axes: Any) -> Array:
    """The axes in another order, reversed without arguments; a view."""
    order = axes[0] if len(axes) == 1 else axes
    turned: Any = np.transpose(x, None if order is None or not axes else order)
    return turned


def view(x: Array, dtype: Any = None, type: Any = None) -> Array:
    """A view of the same memory; of another dtype only where nothing is differentiated.

    Raises
    ------
    TypeError
        If the dtype is another.
    """
    if dtype is np.ndarray:
        return like(x, x[...])
    if dtype is not None and np.dtype(dtype) != x.dtype:
        raise TypeError(f"view({dtype!r}) reads the memory as another dtype, which has no derivative; write x.astype({dtype!r})")
    return like(x, x[...])


def resize(x: Array, *shape: Any, refcheck: bool = True) -> None:
    """Refused: the array's memory belongs to its graph.

    Raises
    ------
    ValueError
        Always.
    """
    raise ValueError("cannot resize an array that is being differentiated; write np.resize(x, shape), or x.reshape(shape)")


def written(x: Any, result: Any) -> Any:
    """The array that was given as ``out=``, with a result written into it.

    Raises
    ------
    ValueError
        If the shapes are not the same.
    TypeError
        If its dtype cannot hold the result.
    """
    if type(result) in PAIRS:
        write_constants(x, lambda array: None, result)
    if np.shape(result) != x.shape:
        raise ValueError(f"output array of shape {x.shape} does not hold a result of shape {np.shape(result)}")
    if not np.can_cast(result.dtype, x.dtype, "same_kind"):
        raise TypeError(f"Cannot cast a result of {result.dtype!r} to {x.dtype!r} with casting rule 'same_kind'")
    look_up("ops.in_place:copy_")(x, result)
    return x


def apart(operands: tuple[Any, ...], out: Tensor) -> tuple[Any, ...]:
    """Operands with copies for those on the memory that is to be written: what the derivative needs of them is overwritten."""
    data = array_of(out)
    return tuple(as_arrays(clone(x)) if isinstance(x, Array) and np.may_share_memory(array_of(x), data) else x for x in operands)


def _updated(name: str) -> Callable[[Array, Any], Any]:
    operator = f"__{name}__"

    @writes_operands
    def update(x: Array, y: Any) -> Any:
        if x.ndim == 0 and base_of(x) is None:
            if not is_written(x):  # a number, of which others keep the value that it has
                return NotImplemented
            if is_seen_by_nobody(x):
                result = getattr(x, operator)(y)
                if may_go_on_as(x, result):
                    return go_on_as(x, result)
        if isinstance(y, Tensor) and np.may_share_memory(array_of(x), array_of(y)):
            y = as_arrays(clone(y))
        # Of a copy: what the derivative needs of the operand is overwritten next.
        result = getattr(as_arrays(clone(x)), operator)(y)
        if result is NotImplemented:
            return result
        return written(x, result)

    update.__name__ = f"__i{name}__"
    return update


globals().update({f"i{name}": _updated(name) for name in IN_PLACE.split()})
