"""NumPy's two protocols on arrays: of what is not differentiated NumPy's own results, else those of the package's tables."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.deferred import MadeOnDemand, look_up
from tapegrad.kernels.opcodes import OPCODES
from tapegrad.numpy_arrays.array import Array, as_arrays
from tapegrad.numpy_arrays.promotion import PAIRS, are_doubles, may_be_complex, promoted
from tapegrad.numpy_arrays.untracked import computed, is_tracked, values_of, with_digits
from tapegrad.numpy_protocol import protocols
from tapegrad.numpy_protocol.operands import as_tensors, holds_tensors, stacked
from tapegrad.ops.joining import cat_of_lists, hstack_of_lists, vstack_of_lists
from tapegrad.recording.apply_rule import apply_rule, record
from tapegrad.recording.casting import cast
from tapegrad.recording.primal_values import BY_LOOP, BY_TEXT
from tapegrad.rules.table import POWERS
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, is_recording, make
from tapegrad.tensors.tracers import current_tracer

__all__ = ["array_function", "array_ufunc"]

# What these arrays have in another way than tensors, and in which file: most functions call none of it.
OF_ARRAYS: dict[Any, str] = {
    getattr(np, name): place
    for place, names in (
        ("numpy_arrays.writing:WRITING", "copyto fill_diagonal place put put_along_axis putmask"),
        ("numpy_protocol.rearranging:AT_LEAST", "atleast_1d atleast_2d atleast_3d"),
    )
    for name in names.split()
}
_FLOAT64 = np.dtype(np.float64)
# Names of arguments that let NumPy's functions write into what they are given.
WRITTEN = frozenset(["out", "overwrite_input", "copy"])


def array_ufunc(x: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Ufuncs and their methods."""
    if method == "__call__" and not kwargs and x._row and are_doubles(inputs):
        if ufunc is np.power and not any(map(np.ndim, inputs)):
            return _power(*inputs)
        if ufunc.__name__ not in OF_SCIPY:
            direct = protocols.DIRECT[ufunc]
            return as_arrays(direct(*as_tensors(*inputs)) if direct else protocols.array_ufunc(x, ufunc, method, *inputs))
        if np.ndim(x._data) and not TAPE.packers and (name := protocols.of_scipy(ufunc)) and is_recording():
            return _by_scipy(name, ufunc, x)
        return _in_digits(ufunc, as_arrays(protocols.array_ufunc(x, ufunc, method, *inputs)), inputs, kwargs)
    if method == "at":
        return look_up("numpy_arrays.writing:accumulate_at")(ufunc, *inputs)
    out = kwargs.get("out", ())
    if any(isinstance(place, Tensor) for place in out):
        return _into(out, x, ufunc, method, inputs, {name: value for name, value in kwargs.items() if name != "out"})
    if PAIRS and any(type(value) in PAIRS for value in inputs):
        return NotImplemented  # which is asked next
    if not (x._row and is_recording()) and not is_tracked(inputs, kwargs):
        return computed(getattr(ufunc, method), inputs, kwargs)
    if method == "__call__" and not kwargs and _holds_complex(inputs):
        return look_up("numpy_arrays.complex_arithmetic:complex_ufunc")(ufunc, *inputs)
    given = inputs
    if any(type(value) in (list, tuple) for value in inputs):
        inputs = tuple(stacked(value) if holds_tensors(value) else value for value in inputs)
    if method == "__call__" and len(inputs) == 2 and ufunc.nout == 1 and not _takes_orders(ufunc):
        inputs = promoted(*(np.asarray(value) if type(value) in (list, tuple) else value for value in inputs))
    result = as_arrays(protocols.array_ufunc(x, ufunc, method, *inputs, **kwargs))
    if _is_single(x):
        return _in_dtype(getattr(ufunc, method), result, given, kwargs)
    return _in_digits(ufunc, result, inputs, kwargs) if ufunc.__name__ in OF_SCIPY and method == "__call__" else result


# Ufuncs of SciPy and functions of NumPy whose last digits are other ones than those of our own.
OF_SCIPY = frozenset(
    [
        "digamma", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "float_power", "gammaln", "log1p", "logit", "nextafter",
        "psi",
    ]
)  # fmt: skip
OF_NUMPY = frozenset(getattr(np, name) for name in ("i0", "sinc"))
LIKE = frozenset([np.zeros_like, np.ones_like, np.empty_like, np.full_like])
OTHERWISE = frozenset([np.float_power, np.nextafter])
# What does a function for lists of float64 arrays, and gives None for anything else: loops call it at each step.
OF_LISTS: dict[Any, Callable[..., Any]] = {np.concatenate: cat_of_lists, np.hstack: hstack_of_lists, np.vstack: vstack_of_lists}


@functools.cache
def _takes_orders(ufunc: np.ufunc) -> bool:
    """Whether a ufunc of SciPy has loops of its own for integers beside float64, as polynomials have for their orders."""
    operands = [set(types.partition("->")[0]) for types in ufunc.types]
    return getattr(np, ufunc.__name__, None) is not ufunc and {"l", "d"} in operands


def _power(x: Any, y: Any) -> Any:
    """`numpy.power` of numbers: by its loop, where their operator is the C library's power."""
    name = POWERS.get(float(y), "") if not isinstance(y, Tensor) else ""
    if name and y != 3.0:  # which the loop computes as products and roots
        return as_arrays(apply_rule(OPCODES[name], x, way=BY_TEXT))
    return as_arrays(apply_rule(OPCODES["pow"], x, y, way=BY_LOOP))


def _by_scipy(name: str, ufunc: Any, x: Array) -> Any:
    """A rule's row with the value that SciPy's ufunc computes."""
    opcode, data = OPCODES[name], x._data
    with np.errstate(all="ignore"):
        value = ufunc(data)
    result = as_arrays(make(value, record(opcode, (x,), (data,), value)))
    if TAPE.tracers and (tracer := current_tracer()) is not None:
        tracer.rule(opcode, (x,), (data,), result)
        tracer.written(result, ufunc, (x,), {})
    return result


def _in_digits(function: Any, result: Any, args: Any, kwargs: Any) -> Any:
    own = isinstance(function, np.ufunc) and getattr(np, function.__name__, None) is function
    if own and function not in OTHERWISE:
        return result  # NumPy's of the same name are computed by NumPy
    with np.errstate(all="ignore"):
        with_digits(result, function(*values_of(args), **values_of(kwargs)))
    if TAPE.tracers and (tracer := current_tracer()) is not None:
        tracer.written(result, function, args, kwargs)
    return result


def _written_into() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """How an array is written into, and how operands are kept apart from it."""
    return look_up("numpy_arrays.methods:apart"), look_up("numpy_arrays.methods:written")


def _is_single(x: Any) -> bool:
    """Whether results may have other dtypes than those of operations in double precision; conditions decide nothing about that."""
    data = x._data
    return type(data) is not float and data.dtype is not _FLOAT64 and data.dtype.kind != "b"


def _in_dtype(function: Any, result: Any, args: Any, kwargs: Any) -> Any:
    """Results of functions of single precision in the dtypes that NumPy gives them, which numbers of Python's do not widen."""
    with np.errstate(all="ignore"):
        values = function(*values_of(args), **values_of(kwargs))
    if not issubclass(type(result), (tuple, list)):
        found = _cast(result, values)
        is_new = isinstance(getattr(function, "__self__", None), np.ufunc) or function in OF_NUMPY
        return with_digits(found, values) if is_new and isinstance(found, Tensor) else found
    parts = [_cast(part, value) for part, value in zip(result, values, strict=True)]
    return type(result)(parts) if type(result) in (tuple, list) else type(result)(*parts)


def _cast(result: Any, value: Any) -> Any:
    dtype = getattr(value, "dtype", None)
    if not isinstance(result, Tensor) or dtype is None or dtype.kind != "f" or dtype == result.dtype:
        return result
    return as_arrays(cast(result, dtype))


def _into(out: tuple[Any, ...], x: Any, ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A ufunc whose results are written into what was given for them; on request only where a mask says so."""
    mask = kwargs.pop("where", True) if method == "__call__" else True
    apart, written = _written_into()
    for place in out:
        if isinstance(place, Tensor):
            inputs = apart(inputs, place)
    with np.errstate(all="ignore" if mask is not True else None):
        results = array_ufunc(x, ufunc, method, *inputs, **kwargs)
    results = results if isinstance(results, tuple) else (results,)
    given = []
    for place, result in zip(out, results, strict=True):
        if place is not None and mask is not True:
            result = np.where(mask, result, place)
        if isinstance(place, Tensor):
            whole = result if method != "__call__" or np.shape(result) == place.shape else np.broadcast_to(result, place.shape)
            result = written(place, whole)
        elif place is not None:
            np.copyto(place, result, casting="same_kind")
            result = place
        given.append(result)
    return tuple(given) if len(given) > 1 else given[0]


@functools.cache
def _written_names(function: Any) -> tuple[int, tuple[str, ...]]:
    """Names of a function's arguments from the first one on that says where it writes, and how many come before."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # NumPy says nothing of some functions of C, which write into nothing
        return 1000, ()
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    first = min((names.index(name) for name in WRITTEN if name in names), default=1000)
    return first, tuple(names[first:])


def _apart_from_output(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """What a function writes into, if that is a tensor, and the other arguments.

    Into our memory nothing may be written unseen: rows may have saved it.
    """
    first, names = _written_names(function)
    if len(args) <= first and WRITTEN.isdisjoint(kwargs):
        return None, args, kwargs
    if len(args) > first:
        kwargs = kwargs | dict(zip(names, args[first:], strict=False))
        args = args[:first]
    out = None
    if isinstance(kwargs.get("out"), Tensor):
        out = kwargs["out"]
    elif function is np.nan_to_num and not kwargs.get("copy", True):
        given = args[0] if args else kwargs["x"]
        out = given if given.ndim else None  # of a number there is a new one
    left_out = {"overwrite_input"} if out is None and function is not np.nan_to_num else {"overwrite_input", "out", "copy"}
    return out, args, {name: value for name, value in kwargs.items() if name not in left_out} if kwargs else kwargs


def _usual(function: Any) -> int | None:
    """How many arguments a function may be given by position that has only tensors' meaning; None for others."""
    others = function in OF_ARRAYS or function in LIKE or function in OF_NUMPY or function.__module__ == "numpy.fft"
    return None if others or function in (np.dot, np.linalg.eig, np.linalg.eigvals, np.nan_to_num) else _written_names(function)[0]


USUAL: dict[Any, int | None] = MadeOnDemand(_usual)


def array_function(x: Any, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Functions that are no ufuncs."""
    if not kwargs and len(args) == 1 and function in OF_LISTS and x._row and type(args[0]) in (list, tuple):
        found = OF_LISTS[function](args[0])
        if found is not None:
            return as_arrays(found)
    places = USUAL[function]
    is_usual = places is not None and len(args) <= places and x._row and not _is_single(x) and is_recording()
    if is_usual and WRITTEN.isdisjoint(kwargs) and Tensor not in types and not _holds_complex(args):
        return as_arrays(protocols.array_function(x, function, types, args, kwargs))  # what follows would find nothing to do
    if function is np.dot and not kwargs and len(args) == 2 and is_recording():
        found = look_up("numpy_arrays.operators:dot")(*args) if is_tracked(args, kwargs) else None
        if found is not None:
            return found
    if function in OF_ARRAYS:
        return as_arrays(look_up(OF_ARRAYS[function])[function](*args, **kwargs))
    if kwargs or len(args) > _written_names(function)[0]:
        out, args, kwargs = _apart_from_output(function, args, kwargs)
        if out is not None:
            apart, written = _written_into()
            return written(out, array_function(x, function, types, apart(args, out), kwargs))
    if not (x._row and is_recording()) and not is_tracked(args, kwargs):
        return computed(function, args, kwargs)
    if _holds_complex(args) or (function in LIKE and _is_complex_dtype(kwargs.get("dtype", args[-1]))):
        return look_up("numpy_arrays.complex_functions:function_for")(function)(*args, **kwargs)
    if function in (np.linalg.eig, np.linalg.eigvals) and np.iscomplexobj(np.linalg.eigvals(*values_of(args), **values_of(kwargs))):
        return look_up("numpy_arrays.complex_functions:function_for")(function)(*args, **kwargs)
    if function.__module__ == "numpy.fft":
        return look_up("numpy_arrays.fourier:FOURIER")[function](*args, **kwargs)
    result = protocols.array_function(x, function, types, args, kwargs)
    if Tensor in types and any(part is given for part in _parts(result) for given in _parts(args)):
        return result  # the very tensor that was given stays one
    if _is_single(x):
        return _in_dtype(function, as_arrays(result), args, kwargs)
    return _in_digits(function, as_arrays(result), args, kwargs) if function in OF_NUMPY else as_arrays(result)


def _is_complex(x: Any) -> bool:
    if type(x) is Array:
        x = x._data
    kind = type(x)
    if kind is np.ndarray or kind is float or kind is int or kind is bool:  # the common ones, in half of the time
        return kind is np.ndarray and x.dtype.kind == "c"
    return may_be_complex(x) or ((kind is list or kind is tuple) and any(map(_is_complex, x)))


def _is_complex_dtype(kind: Any) -> bool:
    """Whether an argument names a dtype of complex numbers."""
    return issubclass(type(kind), (type, str, np.dtype)) and np.dtype(kind).kind == "c"


def _holds_complex(values: Any) -> bool:
    return any(map(_is_complex, values))


def _parts(values: Any) -> list[Any]:
    if isinstance(values, (tuple, list)):
        return [part for value in values for part in _parts(value)]
    return [values] if type(values) is Tensor else []
