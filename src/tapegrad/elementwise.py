"""Elementwise functions and operators: made from the rule table, one Python function a rule.

The forward value comes from Python's floats for 0-d float64 tensors, from compiled arithmetic for small arrays and from NumPy for
the others; the row is recorded by one compiled call. The common cases (float64 scalars, arrays of one dtype) run straight through
the closures below; everything else (integers, 0-d arrays, subclasses) takes `tapegrad.recording.apply_rule`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad import dtypes
from tapegrad.buffers import SMALL, large_empty
from tapegrad.engine.layout import UNSUPPORTED
from tapegrad.forward import OPERATORS, float_at_the_edge, forward, scalar_forward
from tapegrad.kernels import ARITHMETIC
from tapegrad.quiet import IGNORING, enter, leave
from tapegrad.recording import apply_rule, check_broadcast
from tapegrad.rules import RULES, Rule
from tapegrad.tape import TAPE
from tapegrad.tensor import Tensor, as_operand, is_recording, retry

__all__ = ["FUNCTIONS", "METHODS", "reflected"]

_new = object.__new__
_array = np.array
_empty = np.empty
_T = TAPE
_ADDRESS = TAPE.address
ndarray = np.ndarray
F64, F32 = dtypes.float64, dtypes.float32

# Powers that are products or roots: exact, and several times cheaper than the general power. Filled below.
POWERS: dict[float, Callable[[Tensor], Tensor]] = {}


def _unary(opcode: int) -> Callable[[Tensor], Tensor]:
    scalar, array = scalar_forward[opcode], forward[opcode]
    arithmetic, is_ufunc = RULES[opcode].name in ARITHMETIC, isinstance(array, np.ufunc)

    def function(x: Tensor) -> Tensor:
        try:
            a = x._data
        except AttributeError:
            return function(as_operand(x))
        handle = x._row
        if type(a) is float:
            try:
                z = scalar(a)
            except (ArithmeticError, ValueError):
                z = float_at_the_edge(opcode, a)
            if handle and (not _T.recording_off or is_recording()):
                row = _T.scalar1(_ADDRESS, opcode, handle, a, z)
                if row < 0:
                    row = retry(lambda: _T.scalar1(_ADDRESS, opcode, x._row, a, z), (x,))
            else:
                row = 0
            t = _new(Tensor)
            t._data = z
            t._row = row
            t._meta = None
            return t
        size = a.size
        if arithmetic and size <= SMALL and a.ndim:
            z = a.copy()
            row = _T.compute1(_ADDRESS, opcode, handle if not _T.recording_off or is_recording() else 0, id(a), id(z))
            if row >= 0:
                t = _new(Tensor)
                t._data = z
                t._row = row
                t._meta = None
                return t
            if row != UNSUPPORTED:
                return apply_rule(opcode, x)
        token = enter(IGNORING)
        try:
            z = array(a, out=large_empty(a.shape, F64)) if is_ufunc and size > SMALL and a.dtype is F64 else array(a)
        finally:
            leave(token)
        if type(z) is not ndarray or z.dtype is not a.dtype:
            return apply_rule(opcode, x)
        if handle and (not _T.recording_off or is_recording()):
            row = _T.array1(_ADDRESS, opcode, handle, id(a), id(z), 0)
            if row < 0:
                return apply_rule(opcode, x)
        else:
            row = 0
        t = _new(Tensor)
        t._data = z
        t._row = row
        t._meta = None
        return t

    return function


# The operators of scalar code are made from this text: an operator in line is 30 ns faster than one that is called, and
# scalars come first. `x` is the tensor that has the method; exchanged forms compute ``y op x``.
_BINARY = """
def function(x, y):
    a = x._data
    if type(a) is float:
        if type(y) is float:
            {powers}
            try:
                z = {a_op_y}
            except (ArithmeticError, ValueError):
                z = edge(opcode, {a_and_y})
            row = x._row
            if row:
                if _T.recording_off and not is_recording():
                    row = 0
                else:
                    row = {record_constant}
                    if row < 0:
                        return apply_rule(opcode, {x_and_y})
            t = _new(Tensor)
            t._data = z
            t._row = row
            t._meta = None
            return t
        if type(y) is Tensor:
            b = y._data
            if type(b) is float:
                try:
                    z = {a_op_b}
                except (ArithmeticError, ValueError):
                    z = edge(opcode, {a_and_b})
                if (x._row or y._row) and (not _T.recording_off or is_recording()):
                    row = _T.scalar2(_ADDRESS, opcode, {rows_and_values}, z)
                    if row < 0:
                        return apply_rule(opcode, {x_and_y})
                else:
                    row = 0
                t = _new(Tensor)
                t._data = z
                t._row = row
                t._meta = None
                return t
        elif type(y) is int:
            return function(x, float(y))
    {small_arrays}
    return arrays(x, y)
"""

# Arithmetic on small arrays: one compiled call computes and records.
_SMALL = """elif a.size <= SMALL:
        kind = type(y)
        if kind is Tensor:
            b = y._data
            handle = y._row
        elif kind is float or (kind is int and a.dtype is F64):
            b = y if kind is float else float(y)
            handle = 0
        else:
            return apply_rule(opcode, {x_and_y})
        z = a.copy()
        if _T.recording_off and not is_recording():
            row = _T.compute2(_ADDRESS, opcode, {untracked}, id(z))
        else:
            row = _T.compute2(_ADDRESS, opcode, {tracked}, id(z))
        if row >= 0:
            t = _new(Tensor)
            t._data = z
            t._row = row
            t._meta = None
            return t
        if row != UNSUPPORTED:
            return apply_rule(opcode, {x_and_y})
"""


def _binary(opcode: int, exchanged: bool = False) -> Callable[[Tensor, Any], Tensor]:
    """``op(x, y)`` for a tensor `x`; ``op(y, x)`` if exchanged (the reflected operator)."""
    rule = RULES[opcode]
    text = rule.primal if rule.primal in OPERATORS else "scalar(x, y)"

    def formula(first: str, second: str) -> str:
        one, two = (second, first) if exchanged else (first, second)
        return re.sub(r"\b[xy]\b", lambda found: one if found[0] == "x" else two, text)

    def pair(first: str, second: str) -> str:
        return f"{second}, {first}" if exchanged else f"{first}, {second}"

    constant = (
        "_T.scalar2(_ADDRESS, opcode, 0, y, row, a, z)" if exchanged else "_T.scalar_constant(_ADDRESS, opcode, row, a, y, z)"
    )
    powers = "if y in POWERS: return POWERS[y](x)" if rule.name == "pow" and not exchanged else ""
    small = ""
    if rule.name in ARITHMETIC:
        small = _SMALL.format(
            x_and_y=pair("x", "y"),
            untracked=pair("0, id(a)", "0, id(b)"),
            tracked=pair("x._row, id(a)", "handle, id(b)"),
        )
    source = _BINARY.format(
        a_op_y=formula("a", "y"),
        a_op_b=formula("a", "b"),
        a_and_y=pair("a", "y"),
        a_and_b=pair("a", "b"),
        x_and_y=pair("x", "y"),
        rows_and_values=pair("x._row, a", "y._row, b"),
        record_constant=constant,
        powers=powers,
        small_arrays=small,
    )
    names: dict[str, Any] = {
        "_ADDRESS": _ADDRESS, "_T": _T, "_new": _new, "POWERS": POWERS, "Tensor": Tensor, "apply_rule": apply_rule,
        "arrays": _binary_arrays(opcode, exchanged), "edge": float_at_the_edge, "is_recording": is_recording, "opcode": opcode,
        "SMALL": SMALL, "F64": F64, "UNSUPPORTED": UNSUPPORTED,
        "scalar": scalar_forward[opcode],
    }  # fmt: skip
    exec(compile(source, f"<tapegrad {rule.name}>", "exec"), names)
    return names["function"]


def _binary_arrays(opcode: int, exchanged: bool) -> Callable[[Tensor, Any], Tensor]:
    """The same where an operand is an array."""
    array = forward[opcode]
    arithmetic, is_ufunc = RULES[opcode].name in ARITHMETIC, isinstance(array, np.ufunc)
    powers = POWERS if RULES[opcode].name == "pow" and not exchanged else {}

    def arrays(x: Tensor, y: Any) -> Tensor:
        a = x._data
        x_handle = x._row
        kind = type(y)
        if kind is Tensor:
            b = y._data
            y_handle = y._row
        elif (kind is float or kind is int) and (type(a) is float or a.dtype is F64 or a.dtype is F32):
            if y in powers:
                return powers[y](x)
            b = y if kind is float else float(y)
            y_handle = 0
        else:
            return apply_rule(opcode, y, x) if exchanged else apply_rule(opcode, x, y)
        if exchanged:
            a, b, x_handle, y_handle = b, a, y_handle, x_handle
        if type(a) is float and type(b) is float:  # an operand was a 0-d array
            return apply_rule(opcode, y, x) if exchanged else apply_rule(opcode, x, y)
        shaped = b if type(a) is float else a
        size = shaped.size
        if arithmetic and size <= SMALL and shaped.ndim:
            z = _empty(shaped.shape)
            if not _T.recording_off or is_recording():
                row = _T.compute2(_ADDRESS, opcode, x_handle, id(a), y_handle, id(b), id(z))
            else:
                row = _T.compute2(_ADDRESS, opcode, 0, id(a), 0, id(b), id(z))
            if row >= 0:
                t = _new(Tensor)
                t._data = z
                t._row = row
                t._meta = None
                return t
            if row != UNSUPPORTED:
                return apply_rule(opcode, y, x) if exchanged else apply_rule(opcode, x, y)
        token = enter(IGNORING)
        try:
            if is_ufunc and size > SMALL and shaped.dtype is F64 and (type(a) is float or type(b) is float or a.shape == b.shape):
                z = array(a, b, out=large_empty(shaped.shape, F64))
            # NumPy takes twice as long over a Python float as over a 0-d array.
            elif type(b) is float and a.dtype is F64:
                z = array(a, _array(b))
            elif type(a) is float and b.dtype is F64:
                z = array(_array(a), b)
            else:
                z = array(a, b)
        except ValueError:
            check_broadcast(a, b)
            raise
        finally:
            leave(token)
        if type(z) is not ndarray:
            return apply_rule(opcode, y, x) if exchanged else apply_rule(opcode, x, y)
        if (x_handle or y_handle) and (not _T.recording_off or is_recording()):
            row = _T.array2(_ADDRESS, opcode, x_handle, id(a), y_handle, id(b), id(z), 0)
            if row < 0:
                return apply_rule(opcode, y, x) if exchanged else apply_rule(opcode, x, y)
        elif type(a) is ndarray and type(b) is ndarray and a.dtype is b.dtype and z.dtype is a.dtype:
            row = 0
        else:
            return apply_rule(opcode, y, x) if exchanged else apply_rule(opcode, x, y)
        t = _new(Tensor)
        t._data = z
        t._row = row
        t._meta = None
        return t

    return arrays


def reflected(opcode: int) -> Callable[[Tensor, Any], Tensor]:
    """The operator with its operands exchanged, for ``number op tensor``."""
    return _binary(opcode, exchanged=True)


def deliver_to(out: Tensor, result: Tensor) -> Tensor:
    """Write a result into the tensor given as ``out=``.

    Raises
    ------
    RuntimeError
        If the result or `out` is tracked.
    """
    if result._row or out._row:
        raise RuntimeError(
            "functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad. "
            "Leave out=... away, or work under no_grad()."
        )
    from tapegrad.inplace import copy_

    return copy_(out, result)


def _ternary(opcode: int) -> Callable[[Any, Any, Any], Tensor]:
    def function(x: Any, y: Any, w: Any) -> Tensor:
        return apply_rule(opcode, x, y, w)

    return function


def _function(opcode: int, rule: Rule) -> Callable[..., Tensor]:
    function: Any = (_unary, _binary, _ternary)[len(rule.args) - 1](opcode)
    if len(rule.args) == 2:
        method = function

        def function(x: Any, y: Any, *, out: Tensor | None = None) -> Tensor:
            result = method(x, y) if isinstance(x, Tensor) else apply_rule(opcode, x, y)
            return result if out is None else deliver_to(out, result)

    function.__name__ = function.__qualname__ = rule.name
    function.__doc__ = (
        f"{rule.doc}\n\nElementwise; arguments broadcast.\n\nParameters\n----------\n"
        f"{', '.join(rule.args)} : Tensor{' or number' if len(rule.args) > 1 else ''}\n    Any shape.\n\n"
        "Returns\n-------\nTensor\n    Of the broadcast shape and promoted dtype."
    )
    return function


METHODS: dict[str, Callable[..., Tensor]] = {
    rule.name: (_unary, _binary, _ternary)[len(rule.args) - 1](opcode) for opcode, rule in enumerate(RULES)
}
FUNCTIONS: dict[str, Callable[..., Tensor]] = {rule.name: _function(opcode, rule) for opcode, rule in enumerate(RULES)}

POWERS |= {2.0: METHODS["square"], 3.0: METHODS["_cube"], 0.5: METHODS["_root"], -1.0: METHODS["_inverse"]}


def __getattr__(name: str) -> Callable[..., Tensor]:
    try:
        return FUNCTIONS[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
