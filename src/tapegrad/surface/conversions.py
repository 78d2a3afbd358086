"""Conversions of tensors: to other dtypes, to numbers, lists, arrays and text."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.deferred import look_up
from tapegrad.frames import is_inside_driver, module_that_asks
from tapegrad.ops.cloning import clone
from tapegrad.recording.casting import cast
from tapegrad.surface.attributes import dtype as dtype_of
from tapegrad.surface.attributes import ndim, numel
from tapegrad.tape.tape import TAPE
from tapegrad.tensors import untracked_values
from tapegrad.tensors.constant_warnings import warn_of_number
from tapegrad.tensors.devices import CPU, check_device
from tapegrad.tensors.tensor import KINDS, Tensor, is_recording, promote
from tapegrad.tensors.tracers import left

__all__: list[str] = []


def item(t: Tensor) -> Any:
    """The value of a tensor of one element, as a Python number.

    Raises
    ------
    RuntimeError
        If it has another number of elements.
    """
    if TAPE.tracers:
        left(t)
    return _number(t)


def _number(t: Tensor) -> Any:
    data = t._data
    if untracked_values.in_use and t._row:
        untracked_values.note(t)
    if type(data) is float:
        return data
    if data.size != 1:
        raise RuntimeError(f"a Tensor with {data.size} elements cannot be converted to Scalar")
    return data.item()


def tolist(t: Tensor) -> Any:
    """The values as nested lists of Python numbers."""
    if TAPE.tracers:
        left(t)
    if untracked_values.in_use and t._row:
        untracked_values.note(t)
    return t._data if type(t._data) is float else t._data.tolist()


def numpy(t: Tensor) -> np.ndarray:
    """The values as an array that shares the tensor's memory.

    Raises
    ------
    RuntimeError
        If the tensor is tracked, outside of `no_grad`.
    """
    if t._row and is_recording():
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if TAPE.tracers:
        left(t)
    return promote(t).view()


def as_array(t: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """NumPy's conversion protocol.

    Raises
    ------
    RuntimeError
        If the tensor is tracked, outside of `no_grad`.
    """
    if t._row and is_recording():
        if module_that_asks() == "scipy.optimize._constraints":
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad: SciPy keeps limits as numbers, so there is no derivative by "
                "this one. Write it as a constraint of a function, as in tg.optimize.inequality(lambda x: x - lower), or pass "
                "lower.detach() for a constant."
            )
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad: in an array of NumPy's it would have no derivative. To keep that, "
            "write np.stack([x[0], 2 * x[1]]) for np.array([x[0], 2 * x[1]]) and x for np.asarray(x), and fill np.zeros_like(x) of "
            "the x that is differentiated by, not np.zeros(n). With import tapegrad.numpy as np all of these work as they stand, "
            "and np.vectorize, np.polynomial and np.lib.stride_tricks, too."
            + look_up("surface.scipy_counterparts:counterpart")()
            + (
                " Where a constant is meant, write tg.stop_gradient(x)."
                if is_inside_driver()
                else " For the values alone, as constants, use tensor.detach().numpy()."
            )
        )
    array = numpy(t)
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"cannot convert {array.dtype} to {dtype} without a copy")
        with quiet():
            return array.astype(dtype)
    return array.copy() if copy else array


def to(t: Tensor, *args: Any, dtype: Any = None, copy: bool = False, device: Any = None, non_blocking: bool = False) -> Tensor:
    """The tensor in another dtype; itself if it has that dtype already.

    Parameters
    ----------
    *args : dtype, Tensor, or device
        The dtype, or a tensor that has it. The device is the CPU.
    copy : bool
        Whether the result is a copy in any case.
    non_blocking : bool
        Of no effect.
    """
    check_device(device)
    for arg in args:
        if isinstance(arg, Tensor):
            dtype = arg.dtype
        elif isinstance(arg, (str, type(CPU))):
            check_device(arg)
        else:
            dtype = arg
    result = t if dtype is None else cast(t, dtype)
    return clone(t) if copy and result is t else result


def to_cpu(t: Tensor) -> Tensor:
    """The tensor itself, which is on the CPU."""
    return t


def to_float(t: Tensor) -> Tensor:
    """The tensor in float32."""
    return cast(t, dtypes.float32)


def to_double(t: Tensor) -> Tensor:
    """The tensor in float64."""
    return cast(t, dtypes.float64)


def to_long(t: Tensor) -> Tensor:
    """The tensor in int64."""
    return cast(t, dtypes.int64)


def to_int(t: Tensor) -> Tensor:
    """The tensor in int32."""
    return cast(t, dtypes.int32)


def to_bool(t: Tensor) -> Tensor:
    """The tensor in bool."""
    return cast(t, dtypes.bool)


def as_bool(t: Tensor) -> bool:
    """Truth of a tensor of one element.

    Raises
    ------
    RuntimeError
        If it has another number of elements.
    """
    data = t._data
    if TAPE.tracers:
        left(t, True)
    if untracked_values.decisions_in_use:
        untracked_values.compared(t)
    if type(data) is float:
        return data != 0.0
    if data.size == 1:
        return bool(data.item())
    how = "more than one value" if data.size else "no values"
    raise RuntimeError(f"Boolean value of Tensor with {how} is ambiguous. Use .any() or .all().")


def as_float(t: Tensor) -> float:
    """The value of a tensor of one element as a float."""
    warn_of_number(t)
    return float(item(t))


def as_int(t: Tensor) -> int:
    """The value of a tensor of one element as an int."""
    return int(item(t))


def as_index(t: Tensor) -> int:
    """The value of an integer tensor of one element as an index."""
    if dtype_of(t).kind not in "iu" or numel(t) != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(item(t))


def as_format(t: Tensor, specification: str) -> str:
    """A tensor without dimensions is formatted as its number, others as text, which takes no specification."""
    if ndim(t) == 0 and type(t) in KINDS:
        return format(_number(t), specification)
    return object.__format__(t, specification)
