"""The class `Array`: rows, operators and speed of a tensor, surface of `numpy.ndarray`.

A function that a driver differentiates is written for NumPy's arrays: ``x.std()`` divides by n there, ``x.size`` is a number and
``x[::-1]`` runs backwards. Operators, NumPy's functions and methods give arrays if an operand is one. What the package itself
offers under a name (``tg.exp(x)``, layers) has PyTorch's meaning, and gives tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from tapegrad.deferred import Deferred, look_up
from tapegrad.engine import layout as at
from tapegrad.kernels.opcodes import OPCODES
from tapegrad.numpy_arrays.classes import class_of
from tapegrad.ops.cloning import clone
from tapegrad.ops.compiled_items import method_item, use_form
from tapegrad.ops.elementwise import reflected
from tapegrad.recording.apply_rule import PROMOTION
from tapegrad.tape.tape import TAPE
from tapegrad.tensors import tracers
from tapegrad.tensors.tensor import KINDS, Tensor

__all__ = ["Array", "as_arrays"]


class Array(Tensor):
    """A tensor with the surface of `numpy.ndarray`, as drivers hand it to the functions that they differentiate."""

    __slots__ = ()
    _numbers_are_values: ClassVar[bool] = True

    __class__ = property(class_of, vars(object)["__class__"].__set__)  # what `isinstance` asks for

    def __init_subclass__(cls) -> None:
        raise TypeError("Array cannot be subclassed: operations give arrays of this very class")


def as_arrays(result: Any) -> Any:
    """What an operation gave, with arrays for its tensors, which nobody else has yet."""
    kind = type(result)
    if kind is Tensor:
        result.__class__ = Array
    elif kind is not Array and isinstance(result, (tuple, list)):
        for part in result:
            as_arrays(part)
    return result


def _giving_arrays(name: str) -> Callable[..., Any]:
    """A method of tensors, found when it is called, whose results are arrays."""

    def method(x: Array, *args: Any, **kwargs: Any) -> Any:
        return as_arrays(getattr(Tensor, name)(x, *args, **kwargs))

    method.__name__ = name
    return method


def _comparison(name: str) -> Callable[[Array, Any], Any]:
    """A comparison: of numbers by the shortest way."""
    of_tensors = getattr(Tensor, f"__{name}__")

    def compare(x: Array, y: Any) -> Any:
        numbers = type(x._data) is float and (type(y) is float or (type(y) is Array and type(y._data) is float))
        if numbers and not TAPE.tracers:
            return as_arrays(of_tensors(x, y))
        return look_up(f"numpy_arrays.operators:{name}")(x, y)

    compare.__name__ = compare.__qualname__ = f"__{name}__"
    return compare


def _numpy_function(name: str) -> Callable[..., Any]:
    """A method that is NumPy's function of the same name."""
    function = getattr(np, name)

    @wraps(function)
    def method(x: Array, *args: Any, **kwargs: Any) -> Any:
        return function(x, *args, **kwargs)

    method.__name__, method.__qualname__ = name, f"Array.{name}"
    return method


def _whole_or_axes(name: str) -> Callable[..., Any]:
    """A reduction: over all elements by the shortest way, else NumPy's function."""
    whole, function = getattr(Tensor, name), getattr(np, name)

    @wraps(function)
    def method(x: Array, *args: Any, **kwargs: Any) -> Any:
        return function(x, *args, **kwargs) if args or kwargs or not x._row else as_arrays(whole(x))

    method.__name__, method.__qualname__ = name, f"Array.{name}"
    return method


# Methods that are NumPy's functions, whose meaning for tensors is NumPy's.
FUNCTIONS = (
    "all any argmax argmin argpartition argsort choose clip cumprod cumsum diagonal dot nonzero ptp ravel "
    "repeat round searchsorted squeeze std swapaxes take trace var"
)
WHOLE = "sum max min mean prod"
# Methods and attributes of this room's other files.
OWN = {
    "methods": "astype copy fill flatten item sort tolist tobytes transpose view resize partition put "
    "compress conjugate conj:conjugate __pos__:positive __copy__:shallow_copy __deepcopy__:deep_copy __reduce_ex__:reduced "
    "__floordiv__:floor_divided "
    "__rfloordiv__:floor_dividing __float__:to_float __index__:to_index __complex__:to_complex __round__:rounded "
    "__floor__:floored __ceil__:ceiled __trunc__:truncated __divmod__:divided "
    "__rdivmod__:dividing __repr__:described __str__:shown",
    "attributes": "__len__:length T base data flags flat imag real shape size strides mT ndim itemsize nbytes device",
    "interchange": "numpy __array__:as_numpys to_device "
    "__array_namespace__:array_namespace __dlpack__:dlpack __dlpack_device__:dlpack_device",
    "reshaping": "reshape",
    "indexing": "__getitem__:getitem __setitem__:setitem __iter__:iterate",
}
IN_PLACE = "add and floordiv lshift matmul mod mul or pow rshift sub truediv xor"
# Operators that are no compiled ones.
OPERATORS = "and or xor lshift rshift rand ror rxor rlshift rrshift invert matmul rmatmul"
COMPARISONS = "eq ne lt le gt ge"
COMPILED = "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __pow__ __rpow__ __neg__ __abs__ __mod__ __rmod__"


# Attributes that can be assigned to, or say what to write instead.
ASSIGNED = frozenset(f"numpy_arrays.attributes:{name}" for name in ("flat", "imag", "real", "shape"))


def _assigned(place: str) -> Any:
    return look_up("ops.compiled_writes:method_item_assignment")(Array, look_up(place))


def _attribute(place: str) -> Any:
    return property(look_up(place), look_up(f"{place}_assigned") if place in ASSIGNED else None)


def _attach() -> None:
    table: dict[str, tuple[Callable[[str], Any], str]] = {}
    table |= {name: (_numpy_function, name) for name in FUNCTIONS.split() if hasattr(np, name)}
    table |= {name: (_whole_or_axes, name) for name in WHOLE.split()}
    for file, names in OWN.items():
        make = _attribute if file == "attributes" else look_up
        for name in names.split():
            public, _, own = name.partition(":")
            table[public] = make, f"numpy_arrays.{file}:{own or public}"
    table |= {f"__i{name}__": (look_up, f"numpy_arrays.methods:i{name}") for name in IN_PLACE.split()}
    table |= {f"__{name}__": (look_up, f"numpy_arrays.operators:{name}") for name in OPERATORS.split()}
    table |= {f"__{name}__": (_comparison, name) for name in COMPARISONS.split()}
    table["__setitem__"] = _assigned, "numpy_arrays.indexing:setitem"
    Array.__hash__ = Tensor.__hash__  # type: ignore[method-assign]
    # What is PyTorch's alone keeps its meaning, and gives arrays.
    for name, attribute in vars(Tensor).items():
        known = name[0] == "_" or name in table or name in LEFT_ALONE
        if not known and (type(attribute) is Deferred or callable(attribute)):
            table[name] = _as_tensors_have_it, name
    for name, made in table.items():
        setattr(Array, name, Deferred(Array, name, *made))
    for protocol in ("__array_ufunc__", "__array_function__"):
        setattr(Array, protocol, look_up("surface.tensor_methods:OnTheClass")(_PROTOCOLS[protocol]))


# What gives no new tensors, or others than those of the graph.
LEFT_ALONE = frozenset(["backward", "data", "grad", "grad_fn", "register_hook", "device", "dtype"])


def _as_tensors_have_it(name: str) -> Any:
    attribute = getattr(Tensor, name)
    if isinstance(attribute, property):
        return attribute
    return wraps(attribute)(_giving_arrays(name)) if callable(attribute) else attribute


_CONCATENATE = np.concatenate
_SEQUENCES = (list, tuple)
_REDUCTIONS = frozenset([np.sum, np.max, np.min, np.mean, np.prod])
_UNSTACK = getattr(np, "unstack", None)  # which came with NumPy 2.1
# Where others give numbers, these give arrays without dimensions: views, and such with memory of their own.
_VIEWS = frozenset([np.squeeze, np.reshape])
_ARRAYS = frozenset([np.tensordot, np.linalg.tensordot, np.apply_along_axis, np.cov])
_UNARY: dict[Any, Callable[[Any], Any] | None] = {}  # methods of tensors by the ufuncs that they stand for


def _array_ufunc(x: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    if method == "__call__" and not kwargs and len(inputs) == 1 and x._row:
        if ufunc not in _UNARY:
            _UNARY[ufunc] = getattr(Tensor, _name_of_method(ufunc), None)
        unary = _UNARY[ufunc]
        if unary is not None:
            return as_arrays(unary(inputs[0]))
    result = look_up("numpy_arrays.protocols:array_ufunc")(x, ufunc, method, *inputs, **kwargs)
    if method == "reduce":
        result = _number_apart(result)
    return tracers.computed(getattr(ufunc, method), inputs, kwargs, result) if TAPE.tracers else result


def _name_of_method(ufunc: Any) -> str:
    """What a ufunc of one argument is called here; empty if it is no method."""
    if ufunc in (np.degrees, np.rad2deg):  # in single precision the constant is another one
        return ""
    name: str = ufunc.__name__
    if name in OPCODES and getattr(np, name, None) is ufunc:  # the common ones, without what is known of all
        return name
    known: dict[Any, str] = look_up("numpy_protocol.protocols:UFUNCS")
    return known.get(ufunc, "")


def _array_function(x: Any, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    if not kwargs and len(args) == 1 and function in _REDUCTIONS and type(args[0]) is Array and args[0]._row:
        return getattr(args[0], function.__name__)()
    if function is _CONCATENATE and not kwargs and len(args) == 1 and x._row and not TAPE.tracers:
        joined = look_up("ops.joining:cat_of_lists")(args[0]) if type(args[0]) in _SEQUENCES else None
        if joined is not None:
            return as_arrays(joined)
    result = look_up("numpy_arrays.protocols:array_function")(x, function, types, args, kwargs)
    if not x.ndim:
        result = look_up("numpy_arrays.numbers:of_function")(x, function, args, result)
    elif function in _ARRAYS:
        result = look_up("numpy_arrays.numbers:as_array")(result)
    elif function not in _VIEWS:
        result = tuple(map(_number_apart, result)) if function is _UNSTACK else _number_apart(result)
    return tracers.computed(function, args, kwargs, result) if TAPE.tracers else result


def _number_apart(result: Any) -> Any:
    """A result without dimensions as a number, which is no view of anything."""
    if type(result) is not Array or type(result._data) is float or result._data.ndim:
        return result
    return result if result._meta is None or result._meta.base is None else as_arrays(clone(result))


def _rule_operands(opcode: int, values: tuple[Any, ...]) -> Any:
    return look_up("numpy_arrays.promotion:rule_operands")(opcode, values)


def _item(x: Array, key: Any) -> Any:
    """The part of an array that a key names: a view for slices, a number for an element, else a copy."""
    form = look_up("numpy_arrays.indexing:getitem")
    use_form(form)  # by itself from now on
    return form(x, key)


def _attach_operators() -> None:
    """Operators of an engine that is compiled here are Python forms at first, which know nothing of arrays."""
    if isinstance(TAPE.kernels, ModuleType):
        for name in COMPILED.split():
            setattr(Array, name, _giving_arrays(name))
    else:
        Array.__getitem__ = method_item(_item)
        setattr(Array, "__rtruediv__", reflected("div"))  # noqa: B010 - mypy takes it for a method of tensors


def _quotient(x: Array, y: Any) -> Any:
    """``y / x``, in one rounding; tensors have PyTorch's two."""
    return as_arrays(reflected("div")(x, y))


setattr(Array, "__rtruediv__", _quotient)  # noqa: B010
_PROTOCOLS = {"__array_ufunc__": _array_ufunc, "__array_function__": _array_function}

_attach()
if TAPE.ready:
    _attach_operators()
else:
    TAPE.on_load.append(_attach_operators)
KINDS.add(Array)
PROMOTION[Array] = _rule_operands
TAPE.header[at.TENSOR_CLASS], TAPE.header[at.ARRAY_CLASS] = id(Tensor), id(Array)
