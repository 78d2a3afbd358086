"""Where values come from: which code of the package hands operands on, takes elements at given places, or asks for shapes only.

A recording believes what is listed here and what functions say of themselves (`tapegrad.tensors.tracers`), and nothing else.
"""

from __future__ import annotations

import dis
import functools
import inspect
import os
import sys
import warnings
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

import numpy as np

from tapegrad.deferred import Deferred
from tapegrad.frames import PACKAGE
from tapegrad.numpy_arrays import attributes as attributes_of_arrays
from tapegrad.programs.names_in_code import is_installed_file
from tapegrad.programs.steps import Value
from tapegrad.surface import attributes
from tapegrad.tensors.tensor import Tensor
from tapegrad.tensors.tracers import OF_SHAPES, WRITING

__all__ = [
    "CONVERTING",
    "FACTORIES",
    "FACTORY_DATA",
    "HANDING_ON",
    "NUMBERS",
    "THREADS",
    "given_in",
    "hands_on",
    "inside",
    "is_converted",
    "is_elementwise",
    "is_static",
    "is_users",
    "maker_of",
    "named",
    "operand_count",
    "operands_in",
    "parts_of",
    "profile_again",
    "raises",
    "reads_outside",
    "reads_settings",
    "takes_given_places",
    "tensors_in",
    "values_in",
    "writes_arrays",
]

# What is asked of an array without looking at its values.
STATIC = "shape ndim size itemsize nbytes strides dtype device length numel stride is_contiguous get_requires_grad is_leaf"
STATIC_CODE = frozenset(
    getattr(module, name).__code__
    for module in (attributes, attributes_of_arrays)
    for name in STATIC.split()
    if hasattr(getattr(module, name, None), "__code__")
)
_MADE_FIRST = Deferred.__get__.__code__
NUMBERS = (bool, int, float, complex, str, bytes)
GIVEN = (tuple, list, int, float, np.ndarray, np.generic)


def is_static(frame: FrameType) -> bool:
    """Whether a function that returns tells shapes and the like, also if the attribute was made for that in this very call."""
    return frame.f_code in STATIC_CODE or (frame.f_code is _MADE_FIRST and frame.f_locals["self"].name in STATIC.split())


# Files that hand operands on as they are.
_HANDING_ON = """
tensors/tensor recording/apply_rule ops/elementwise ops/operators numpy_arrays/array numpy_arrays/operators numpy_arrays/promotion
numpy_arrays/protocols numpy_protocol/protocols numpy_protocol/operands numpy_protocol/functions_of_values
"""
HANDING_ON = (PACKAGE + "programs", *(PACKAGE + file.replace("/", os.sep) + ".py" for file in _HANDING_ON.split()))
# And those that do so with what is written.
PASSING = (*HANDING_ON, *(PACKAGE + os.path.join(*file) for file in (("ops", "in_place.py"), ("numpy_arrays", "indexing.py"))))
FACTORY_DATA = ("data", "fill_value", "value", "size")  # arguments of factories of which values are made
FACTORIES = PACKAGE + os.path.join("tensors", "factories.py")
# Where lists and numbers become arrays, and arrays ones of another dtype.
CONVERTING = tuple(PACKAGE + os.path.join(*file) for file in (("numpy_protocol", "operands.py"), ("numpy_arrays", "promotion.py")))


# Functions that take elements at places which their arguments name.
_AT_GIVEN_PLACES = """
append block compress delete diag diagonal extract flip fliplr flipud insert pad repeat resize roll rot90 take take_along_axis tile
trace tril triu
"""
AT_GIVEN_PLACES = frozenset(getattr(np, name) for name in _AT_GIVEN_PLACES.split())


def takes_given_places(frame: FrameType) -> bool:
    """Whether a call takes elements at places that its arguments name."""
    asked = frame.f_locals.get("function")
    return frame.f_code.co_name in ("_item", "getitem", "setitem") or (callable(asked) and asked in AT_GIVEN_PLACES)


def named(frame: FrameType) -> str:
    """Which function of the package a frame is of."""
    file = frame.f_code.co_filename[len(PACKAGE) :].removesuffix(".py").replace(os.sep, ".")
    return f"{file}:{frame.f_code.co_qualname}"


def inside(value: Any) -> Iterator[Any]:
    """A value, and what tuples, lists and dicts in it hold."""
    pending = [value]
    while pending:
        part = pending.pop()
        yield part
        if isinstance(part, (tuple, list)):
            pending += part
        elif isinstance(part, dict):
            pending += part.values()


def tensors_in(values: Any) -> list[Any]:
    """Tensors in the arguments of a call."""
    return [value for value in inside(values) if isinstance(value, Tensor)]


def values_in(template: Any) -> list[Value]:
    """Values in nested containers."""
    return [part for part in inside(template) if isinstance(part, Value)]


def given_in(values: Any) -> list[Any]:
    """Numbers, arrays and lists in the arguments of a call."""
    return [value for value in inside(values) if issubclass(type(value), GIVEN)]


OPERATORS = PACKAGE + os.path.join("ops", "elementwise.py")
_operands_of: dict[CodeType, int] = {}


def operand_count(code: CodeType) -> int:
    """How many operands the form of an operator has, by its code; 0 for other code."""
    count = _operands_of.get(code)
    if count is None:
        is_operator = code.co_filename == OPERATORS and code.co_qualname in ("_unary.<locals>.form", "_binary.<locals>.form")
        count = _operands_of[code] = code.co_argcount if is_operator else 0
    return count


def operands_in(frame: FrameType) -> list[Any]:
    """Numbers, arrays and lists among the operands of an operator, which has no other arguments."""
    known, code = frame.f_locals, frame.f_code
    return [x for x in [known[name] for name in code.co_varnames[: operand_count(code)]] if issubclass(type(x), GIVEN)]


def hands_on(frame: FrameType) -> bool:
    """Whether code hands operands on as they are."""
    code = frame.f_code
    return (code in WRITING or code.co_filename.startswith(PASSING)) and code not in OF_SHAPES


def is_converted(value: Any, given: Any) -> bool:
    """Whether an operand is another form of what the user gave, through hands that compute nothing."""
    if isinstance(given, (list, tuple)) and any(isinstance(part, (Tensor, list, tuple)) for part in given):
        return False
    own = np.asarray(given)
    return own.dtype.kind in "fiub" and np.shape(value) == own.shape and bool(np.array_equal(value, own, equal_nan=True))


def maker_of(value: Any, given: list[Any], frame: FrameType) -> FrameType | None:
    """Which code made an operand; None if it is an argument of the operation that the user asked for.

    Parameters
    ----------
    value : object
        The operand.
    given : list
        Arguments of the operation.
    frame : frame
        Of who tells of the operand.
    """
    if not isinstance(value, (int, tuple)) and any(value is one for one in given):  # nearly all
        return None
    candidates = [value]
    while hands_on(frame) and frame.f_back is not None:
        if frame.f_code.co_filename.startswith(CONVERTING):
            candidates += frame.f_locals.values()
        frame = frame.f_back
    from_outside = not frame.f_code.co_filename.startswith(PACKAGE)
    for own in candidates:
        # Small integers and the empty tuple are the same object wherever they come from.
        unique = not isinstance(own, int) and not (type(own) is tuple and not own)
        if any(own is one for one in given) and (from_outside or unique):
            return None
    maker = frame
    if not from_outside and np.size(value) > 1 and maker.f_back is not None:
        maker = maker.f_back  # of one operation that was given it
        while hands_on(maker) and maker.f_back is not None:
            maker = maker.f_back
    if not maker.f_code.co_filename.startswith(PACKAGE):
        return None if any(is_converted(value, one) for one in given) else frame
    return frame


THREADS = ("threading.py", os.path.join("concurrent", "futures", "thread.py"))


# NumPy's functions that write into their first argument.
WRITERS = frozenset([np.copyto, np.put, np.putmask, np.place, np.fill_diagonal, np.put_along_axis])


@functools.cache
def place_of_output(function: Any) -> int:
    """Which positional argument of a function is the array for its result; one that no call has if there is none."""
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return sys.maxsize
    return names.index("out") if "out" in names else sys.maxsize


def writes_arrays(call: dict[str, Any]) -> bool:
    """Whether a call, by its variables, is asked to write into an array of NumPy's: nobody tells what stands in it then."""
    args, function = call.get("args", ()), call.get("function")
    written = [call.get("out"), call.get("kwargs", {}).get("out")]
    if callable(function):
        first = 0 if function in WRITERS else place_of_output(function)
        written += args[first : first + 1]
    if call.get("method") == "at":
        written.append(call["inputs"][0])
    return any(issubclass(type(part), np.ndarray) for part in inside(written))


CATCHING = warnings.catch_warnings.__enter__.__code__
ENVIRONMENT = type(os.environ).__getitem__.__code__
READING = (input, open, os.urandom, np.fromfile)
NOW = ("now", "today", "utcnow")  # of datetime's classes


FINDING = (eval, exec, globals, __import__)
OF_SYSTEM = ("posix", "nt")  # modules
OF_TEXT = ("fspath", "_path_normpath")  # functions of these that do not ask the system


def reads_outside(function: Any, owner: Any, frame: FrameType) -> bool:
    """Whether a function of C code tells the time, asks the system, reads a file, or finds by text, for the user, what there is."""
    module, name = getattr(owner, "__name__", ""), function.__name__
    if module == "time" or function in READING:
        return True
    if module in OF_SYSTEM:
        return name not in OF_TEXT
    if function in FINDING:
        return not is_installed_file(frame.f_code.co_filename)
    return name in NOW and isinstance(owner, type)


def reads_settings(frame: FrameType) -> bool:
    """Whether a call is one that a run would not make again: of the user's that catches warnings, or reads the environment."""
    code, asking = frame.f_code, frame.f_back
    return code is ENVIRONMENT or (code is CATCHING and asking is not None and not is_installed_file(asking.f_code.co_filename))


# By which code leaves a frame without an exception.
_LEAVING = frozenset(map(dis.opmap.get, ("RETURN_VALUE", "RETURN_CONST", "YIELD_VALUE", "RETURN_GENERATOR")))


def raises(frame: FrameType) -> bool:
    """Whether a frame that is being left is left by an exception, of which profilers are told as if None were returned."""
    return frame.f_code.co_code[frame.f_lasti] not in _LEAVING


def profile_again(before: Any) -> None:
    """Let whatever profiled this thread go on; profilers in C are objects to be switched on."""
    if before is None or callable(before):
        sys.setprofile(before)
    else:
        sys.setprofile(None)
        before.enable()


def parts_of(value: Any, place: tuple[int, ...], found: list[tuple[tuple[int, ...], Any]]) -> None:
    """Append what nested tuples and lists hold to a list, each with its place."""
    if isinstance(value, (tuple, list)):
        for k, part in enumerate(value):
            parts_of(part, (*place, k), found)
    else:
        found.append((place, value))


def is_elementwise(function: Any) -> bool:
    """Whether all arguments of a function are operands of elementwise operations."""
    if isinstance(getattr(function, "__self__", None), np.ufunc):  # its call, with which rules are asked for
        return function.__name__ == "__call__"
    return isinstance(function, np.ufunc) or function is np.where or getattr(function, "__module__", "") == "_operator"


def is_users(frame: FrameType) -> bool:
    """Whether code is the user's, by its file; what has none may be typed, or text that the package compiles."""
    file = frame.f_code.co_filename
    return frame.f_globals.get("__name__") == "__main__" if file.startswith("<") else not is_installed_file(file)
