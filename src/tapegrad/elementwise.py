"""Elementwise functions: made from the rule table, one Python function a rule.

The forward value comes from Python's floats for 0-d float64 tensors and from NumPy for arrays; the row is recorded by one
compiled call. The common cases (float64 scalars, arrays of one dtype) run straight through the closures below; everything else
(numbers on arrays of another kind, integers, 0-d arrays, subclasses) takes `apply_rule`.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad import dtypes, special
from tapegrad.buffers import SMALL, large_empty
from tapegrad.casting import cast
from tapegrad.engine.layout import UNSUPPORTED
from tapegrad.errors import ShapeError
from tapegrad.kernels import ARITHMETIC
from tapegrad.quiet import IGNORING, enter, leave
from tapegrad.rules import RULES, Rule
from tapegrad.tape import TAPE
from tapegrad.tensor import FLOATS, Tensor, as_operand, is_recording, make, retry

__all__ = ["FUNCTIONS", "apply_rule", "forward", "reflected", "scalar_forward"]

_new = object.__new__
_array = np.array
_empty = np.empty
_T = TAPE
_ADDRESS = TAPE.address
ndarray = np.ndarray
F64, F32 = dtypes.float64, dtypes.float32

# Rules whose result has the dtype of integer arguments; the others turn integers into the default float.
KEEPS_INTEGERS = frozenset(
    [
        "_alias",
        "_mul0",
        "add",
        "sub",
        "mul",
        "pow",
        "neg",
        "abs",
        "sign",
        "square",
        "relu",
        "maximum",
        "minimum",
        "_clamp",
        "where",
        "fmod",
        "remainder",
        "floor",
        "ceil",
        "trunc",
        "round",
    ]
)


def _np_sigmoid(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0.0, 1.0, e) / (1.0 + e)


def _np_mul0(x: Any, y: Any) -> Any:
    # 0 * inf and 0 * nan are the only products that differ, and they are nan.
    z = x * y
    return np.where((x == 0.0) | (y == 0.0), 0.0, z) if np.isnan(np.add.reduce(z, None)) else z


# Powers that are products or roots: exact, and several times cheaper than the general power. Filled below.
POWERS: dict[float, Callable[[Tensor], Tensor]] = {}

# What rule text means on arrays and on floats.
ARRAY_NAMES: dict[str, Any] = {
    "abs": np.absolute, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atan2": np.arctan2, "atanh": np.arctanh, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "exp": np.exp, "exp2": np.exp2,
    "expm1": np.expm1, "floor": np.floor, "fmod": np.fmod, "hypot": np.hypot, "log": np.log, "log10": np.log10, "log1p": np.log1p,
    "log2": np.log2, "logaddexp": np.logaddexp, "maximum": np.maximum, "minimum": np.minimum, "mul0": _np_mul0, "pow": np.power,
    "remainder": np.remainder, "round": np.round, "sigmoid": _np_sigmoid, "sign": np.sign, "sin": np.sin, "sinh": np.sinh,
    "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh, "trunc": np.trunc, "where": np.where,
}  # fmt: skip

FLOAT_NAMES: dict[str, Any] = {
    name: getattr(math, name)
    for name in [
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "cos",
        "cosh",
        "erf",
        "erfc",
        "exp",
        "expm1",
        "fmod",
        "hypot",
        "lgamma",
        "log",
        "log10",
        "log1p",
        "log2",
        "pow",
        "sin",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
    ]
} | {name: getattr(special, name) for name in special.__all__}
FLOAT_NAMES |= {
    "abs": abs,
    "ceil": lambda x: float(math.ceil(x)),
    "floor": lambda x: float(math.floor(x)),
    "trunc": lambda x: float(math.trunc(x)),
    "round": lambda x: float(round(x)),
    "remainder": operator.mod,
}

UFUNCS = {
    "x + y": np.add,
    "x - y": np.subtract,
    "x * y": np.multiply,
    "x / y": np.true_divide,
    "-x": np.negative,
    "x * x": np.square,
}
OPERATORS: dict[str, Any] = {
    "x + y": operator.add,
    "x - y": operator.sub,
    "x * y": operator.mul,
    "x / y": operator.truediv,
    "-x": operator.neg,
}


def _compile(rule: Rule, names: dict[str, Any]) -> Callable[..., Any]:
    # Rule text is ours, never a user's.
    return eval(f"lambda {', '.join(rule.args)}: {rule.primal}", names)


def _compiled_forward(opcode: int) -> Callable[..., Any]:
    """Forward pass by a compiled loop, for functions that NumPy lacks."""

    def forward(x: Any, y: Any = 0.0) -> Any:
        _T.load()
        dtype = np.result_type(x, y)
        xs, ys = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
        xs, ys = np.ascontiguousarray(xs), np.ascontiguousarray(ys)
        out = np.empty(np.broadcast_shapes(np.shape(x), np.shape(y)))
        _T.primal_block(opcode, out.size, xs.ctypes.data, ys.ctypes.data, out.ctypes.data)
        return out.astype(dtype, copy=False) if dtype in (dtypes.float32, dtypes.float16) else out

    return forward


def _forward(opcode: int, rule: Rule) -> Callable[..., Any]:
    text = rule.primal
    call = f"({', '.join(rule.args)})"
    if text in UFUNCS:
        return UFUNCS[text]
    if text.endswith(call) and text[: -len(call)] in ARRAY_NAMES:
        return ARRAY_NAMES[text[: -len(call)]]
    used = _compile(rule, {}).__code__.co_names
    if any(name not in ARRAY_NAMES for name in used):
        return _compiled_forward(opcode)
    return _compile(rule, ARRAY_NAMES)


def _scalar_forward(rule: Rule) -> Callable[..., float]:
    if rule.primal in OPERATORS:
        return OPERATORS[rule.primal]
    call = f"({', '.join(rule.args)})"
    if rule.primal.endswith(call) and rule.primal[: -len(call)] in FLOAT_NAMES:
        return FLOAT_NAMES[rule.primal[: -len(call)]]
    return _compile(rule, FLOAT_NAMES)


forward: tuple[Callable[..., Any], ...] = tuple(_forward(opcode, rule) for opcode, rule in enumerate(RULES))
scalar_forward: tuple[Callable[..., float], ...] = tuple(_scalar_forward(rule) for rule in RULES)


def _float_at_the_edge(opcode: int, *values: float) -> float:
    """A float result where Python's own function raises: overflow, poles, domain; IEEE values as on arrays."""
    token = enter(IGNORING)
    try:
        return float(forward[opcode](*(np.array([value]) for value in values))[0])
    finally:
        leave(token)


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
                z = _float_at_the_edge(opcode, a)
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
        "arrays": _binary_arrays(opcode, exchanged), "edge": _float_at_the_edge, "is_recording": is_recording, "opcode": opcode,
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


def check_broadcast(*operands: Any) -> None:
    """Raise PyTorch's error if shapes do not broadcast.

    Raises
    ------
    ShapeError
        Names the sizes and the dimension.
    """
    shape: tuple[int, ...] = ()
    for operand in operands:
        other = np.shape(operand)
        rank = max(len(shape), len(other))
        a, b = (1,) * (rank - len(shape)) + shape, (1,) * (rank - len(other)) + other
        for d in range(rank - 1, -1, -1):
            if a[d] != b[d] and a[d] != 1 and b[d] != 1:
                raise ShapeError(
                    f"The size of tensor a ({a[d]}) must match the size of tensor b ({b[d]}) at non-singleton dimension {d}: "
                    f"shapes {list(shape)} and {list(other)} do not broadcast. Reshape or unsqueeze one of them."
                )
        shape = tuple(n if m == 1 else m for m, n in zip(a, b, strict=True))


def _operand_data(t: Tensor, dtype: np.dtype[Any]) -> Any:
    """Data of an operand for a computation in `dtype`: a float for 0-d (so that it does not widen), else an array."""
    a = t._data
    if type(a) is float:
        return a
    if a.ndim == 0 and (a.dtype == dtypes.float64 or (not t._row and dtype.kind == "f")):
        return float(a.item())
    keeps = a.dtype == dtype or (a.dtype in FLOATS and (a.ndim or t._row))
    return a if keeps else a.astype(dtype)


def result_dtype(opcode: int, operands: tuple[Any, ...]) -> np.dtype[Any]:
    """Dtype of an elementwise result by PyTorch's promotion rules."""
    name = RULES[opcode].name
    counted = operands[1:] if name == "where" else operands
    dtype = dtypes.result_type(*counted)
    if dtype.kind != "f" and name not in KEEPS_INTEGERS:
        return dtypes.get_default_dtype()
    return dtype


def apply_rule(opcode: int, *values: Any) -> Tensor:
    """Compute and record an elementwise rule for operands of any kind.

    Parameters
    ----------
    opcode : int
        Number of the rule.
    *values : Tensor, number or array
        Operands.

    Raises
    ------
    ShapeError
        If shapes do not broadcast.
    TypeError
        If an operand is neither tensor, number nor array.
    """
    operands = tuple(value if isinstance(value, Tensor) else as_operand(value) for value in values)
    dtype = result_dtype(
        opcode, tuple(v if isinstance(v, (bool, int, float)) else t for v, t in zip(values, operands, strict=True))
    )
    data = tuple(_operand_data(t, dtype) for t in operands)
    # A tracked float32 scalar has a float32 adjoint, which plain rows do not know.
    plain = dtype == dtypes.float64 and all(not t._row or type(t._data) is float or t._data.dtype == dtype for t in operands)
    if plain:
        data = tuple(float(a) if type(a) is not float and a.ndim == 0 else a for a in data)
    z: Any
    if plain and all(type(a) is float for a in data):
        try:
            z = scalar_forward[opcode](*data)
        except (ArithmeticError, ValueError):
            z = _float_at_the_edge(opcode, *data)
    else:
        check_broadcast(*data)
        arrays = tuple(np.asarray(a, dtype) if type(a) is float or (a.dtype != dtype and a.dtype.kind != "f") else a for a in data)
        token = enter(IGNORING)
        try:
            z = np.asarray(forward[opcode](*arrays))
        except ValueError as error:
            raise RuntimeError(str(error)) from None
        finally:
            leave(token)
        if z.dtype != dtype:
            z = z.astype(dtype)
    tracked = any(t._row for t in operands) and is_recording()
    row = record(opcode, operands, data, z) if tracked else 0
    return make(z.item() if type(z) is not float and z.ndim == 0 and dtype == dtypes.float64 else z, row)


def record(opcode: int, operands: tuple[Tensor, ...], data: tuple[Any, ...], z: Any, in_place: int = 0) -> int:
    """Write the row of an elementwise operation whose value is known; its handle.

    Parameters
    ----------
    data : tuple
        What the operands are in the computation: floats or arrays.
    in_place : int
        1 if `z` overwrites the first operand.
    """
    for t, text in zip(operands, RULES[opcode].partials, strict=True):
        if text is None and t._row:
            raise NotImplementedError(
                f"the derivative for '{RULES[opcode].name}' is not implemented with respect to argument "
                f"{operands.index(t)}; detach() it."
            )
    if type(z) is float:
        # A tracked float32 scalar has a float32 adjoint, which rows of float64 scalars do not know.
        operands = tuple(cast(t, F64) if t._row and type(t._data) is not float and t._data.dtype != F64 else t for t in operands)
    if type(z) is float and len(operands) < 3:
        if len(operands) == 1:
            return retry(lambda: _T.scalar1(_ADDRESS, opcode, operands[0]._row, data[0], z), operands)
        return retry(lambda: _T.scalar2(_ADDRESS, opcode, operands[0]._row, data[0], operands[1]._row, data[1], z), operands)

    def attempt() -> Any:
        words = [word for t, a in zip(operands, data, strict=True) for word in (t._row, id(a))]
        return (_T.array1, _T.array2, _T.array3)[len(operands) - 1](_ADDRESS, opcode, *words, id(z), in_place)

    row = retry(attempt, operands)
    if row == UNSUPPORTED:
        raise RuntimeError(f"{RULES[opcode].name}: cannot record a result of dtype {z.dtype}; only float32 and float64 are tracked")
    return row


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
