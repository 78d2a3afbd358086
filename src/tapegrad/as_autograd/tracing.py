"""What is being differentiated, as autograd's users ask for it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.as_autograd.complex_numbers import complex_value
from tapegrad.numpy_arrays.array import Array
from tapegrad.numpy_arrays.complex_arrays import ComplexArray
from tapegrad.tensors.tensor import Tensor

__all__ = [
    "ArrayBox",
    "Box",
    "JVPNode",
    "Node",
    "VJPNode",
    "const_graph",
    "getval",
    "isbox",
    "notrace_primitive",
    "register_notrace",
]

ArrayBox = Array


def getval(x: Any) -> Any:
    """The plain value of what is being differentiated; anything else as it is."""
    if not isinstance(x, Tensor):
        return complex_value(x) if type(x) is ComplexArray else x
    data = x._data
    return np.float64(data) if type(data) is float else data.view()


def isbox(x: Any) -> bool:
    """Whether a value is being differentiated."""
    if type(x) is ComplexArray:
        return isbox(x.real) or isbox(x.imag)
    return isinstance(x, Tensor) and x._row != 0


# Boxes of autograd have their value as an attribute, which scripts print.
_KINDS: tuple[Any, ...] = (Array, ComplexArray)
for _kind in _KINDS:
    _kind._value = property(getval)


class _OfTracked(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isbox(instance)


class Box(metaclass=_OfTracked):
    """What is being differentiated is an instance of this; tapegrad has no boxes around values."""

    def __init_subclass__(cls) -> None:
        raise NotImplementedError(
            f"{cls.__name__}: tapegrad differentiates arrays, numbers, and lists, tuples, dicts, named tuples and dataclasses of "
            "them; there are no boxes for values of other types. Keep the arrays of such a value in one of these"
        )


class Node:
    """A name that autograd has for what it keeps of an operation."""


class VJPNode(Node):
    """The same in reverse mode."""


class JVPNode(Node):
    """The same in forward mode."""


def notrace_primitive(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function on plain values: its result is a constant."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*map(getval, args), **{name: getval(value) for name, value in kwargs.items()})

    return call


def register_notrace(trace_type: Any, primitive_fun: Any) -> None:
    """Make the results of a primitive constants.

    Raises
    ------
    TypeError
        If it is none.
    """
    made = primitive_fun.as_primitive() if hasattr(primitive_fun, "as_primitive") else primitive_fun
    if not hasattr(made, "without_derivative"):
        raise TypeError(f"register_notrace takes what primitive(...) gave, not {primitive_fun!r}")
    made.without_derivative()


def const_graph(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """The function with its first arguments given; it is called anew each time, which is right whatever it depends on."""
    return functools.partial(fun, *args, **kwargs)


def const_graph_unary(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function itself."""
    return fun
