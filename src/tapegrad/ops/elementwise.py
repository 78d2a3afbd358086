"""Elementwise functions and operators in their Python form: made from the rule table, one function a rule.

Python forms take operands of any kind. Values come from NumPy, and the row is recorded by one compiled call; what is neither a
float64 scalar nor an array of one dtype takes `tapegrad.recording.apply_rule.apply_rule`. Once rows have been recorded, the
compiled operators of `tapegrad.ops.compiled_operators` take the common cases (scalars, small arrays) before a Python form
sees them.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave
from tapegrad.arrays.memory_pool import SMALL, large_empty
from tapegrad.deferred import MadeOnDemand
from tapegrad.engine.layout import NEW_LEAF
from tapegrad.kernels.opcodes import OPCODES
from tapegrad.recording.apply_rule import DIVISIONS, PROMOTION, apply_rule, check_broadcast
from tapegrad.recording.parameter_names import names_of, with_names
from tapegrad.recording.primal_values import BY_POWER, LARGE, float_at_the_edge, forward, scalar_forward
from tapegrad.recording.stretched_operands import OPERATIONS, combined
from tapegrad.rules.table import POWERS, RULES, Rule
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.foreign_operands import REFLECTED_NAMES, asked
from tapegrad.tensors.inference_tensors import InferenceTensor
from tapegrad.tensors.tensor import KINDS, Tensor, as_operand, is_recording, make, register_leaf
from tapegrad.tensors.tracers import of_thread

__all__ = ["FORMS", "FUNCTIONS", "REFLECTED", "doc", "method", "reflected", "use_compiled"]

_array = np.array
_T = TAPE
_ADDRESS = TAPE.address
ndarray, float64 = np.ndarray, np.float64
F64, F32 = dtypes.float64, dtypes.float32

Form = Callable[..., Tensor]


def _unary(opcode: int) -> Form:
    scalar, array = scalar_forward[opcode], forward[opcode]
    is_ufunc, large = isinstance(array, np.ufunc), LARGE.get(array, array)

    def form(x: Tensor) -> Tensor:
        try:
            handle, a = x._row, x._data  # masked arrays have `_data` too
        except AttributeError:
            return form(as_operand(x))
        if _T.tracers and of_thread.tracer is not None:
            return apply_rule(opcode, x)
        if type(a) is float:
            if handle and (not _T.recording_off or is_recording()):
                return _again(opcode, x) if handle < 0 else apply_rule(opcode, x)
            if _T.tracers or type(x) in PROMOTION:
                return apply_rule(opcode, x)
            return make(_value(scalar, opcode, a), 0)
        token = enter(IGNORING)
        try:
            z = large(a, out=large_empty(a.shape, F64)) if is_ufunc and a.size > SMALL and a.dtype is F64 else array(a)
        finally:
            leave(token)
        if type(z) is not ndarray or z.dtype is not a.dtype:
            return apply_rule(opcode, x)
        if not handle or (_T.recording_off and not is_recording()):
            return make(z, 0) if not _T.tracers else apply_rule(opcode, x)
        if type(x) is InferenceTensor:
            return apply_rule(opcode, x)
        row = _T.array1(_ADDRESS, opcode, handle, id(a), id(z), 0)
        if row == NEW_LEAF:
            register_leaf(x)
            row = _T.array1(_ADDRESS, opcode, x._row, id(a), id(z), 0)
        return make(z, row) if row >= 0 else apply_rule(opcode, x)

    return form


def _value(scalar: Callable[..., float], opcode: int, *floats: float) -> float:
    try:
        return scalar(*floats)
    except (ArithmeticError, ValueError):
        return float_at_the_edge(opcode, *floats)


_compiled: Callable[..., Form | None] | None = None  # gives the compiled operator of a rule


def _registered(*operands: Any) -> list[int]:
    """Handles of operands, after new leaves among them were given rows: nothing can fail for them now but the tape's memory."""
    for t in operands:
        if isinstance(t, Tensor) and t._row < 0:
            register_leaf(t)
    return [t._row if isinstance(t, Tensor) else 0 for t in operands]


def _again(opcode: int, *operands: Any) -> Tensor:
    """An operation on numbers among which are new leaves: their rows are all that the compiled operator lacked."""
    _registered(*operands)
    operator = None if _compiled is None else _compiled(opcode)
    return apply_rule(opcode, *operands) if operator is None else operator(*operands)


def _binary(opcode: int, exchanged: bool = False) -> Form:
    """``op(x, y)`` for a tensor `x`; ``op(y, x)`` if exchanged."""
    scalar, array = scalar_forward[opcode], forward[opcode]
    is_ufunc, large, operation = isinstance(array, np.ufunc), LARGE.get(array, array), OPERATIONS.get(array)
    powers = {y: FORMS[OPCODES[name]] for y, name in POWERS.items()} if RULES[opcode].name == "pow" and not exchanged else {}

    reflected = None if exchanged else REFLECTED_NAMES.get(RULES[opcode].name)

    def general(x: Any, y: Any) -> Any:
        try:
            return apply_rule(opcode, y, x) if exchanged else apply_rule(opcode, x, y)
        except TypeError:
            answer = NotImplemented if reflected is None else asked(reflected, x, y)
            if answer is NotImplemented:
                raise
            return answer

    divides = opcode in DIVISIONS
    x_refused, y_refused = (partial is None for partial in RULES[opcode].partials)

    def value(a: Any, b: Any) -> Any:
        shaped = b if type(a) is float else a
        shared = is_ufunc and shaped.size > SMALL and shaped.dtype is F64
        if shared and (type(a) is float or type(b) is float or a.shape == b.shape):
            return large(a, b, out=large_empty(shaped.shape, F64))
        if shared and large is not array and a.dtype is b.dtype:
            return large(a, b, out=large_empty(np.broadcast_shapes(a.shape, b.shape), F64))
        if operation is not None and type(a) is type(b) and a.shape != b.shape and a.dtype is b.dtype is F64:
            found = combined(operation, a, b)
            if found is not None:
                return found
        # NumPy takes twice as long over a Python float as over a 0-d array.
        if type(b) is float and a.dtype is F64:
            return array(a, _array(b))
        if type(a) is float and b.dtype is F64:
            return array(_array(a), b)
        return array(a, b)

    def form(x: Tensor, y: Any) -> Tensor:
        a, x_handle = x._data, x._row
        kind = type(y)
        doubles = type(a) is float or a.dtype is F64
        if kind is float64 and doubles:
            y, kind = float(y), float
            operator = None if _compiled is None else _compiled(opcode, exchanged)
            if operator is not None:  # which knows Python's numbers alone
                return operator(x, y)
        if kind in KINDS:
            b, y_handle = y._data, y._row
        elif kind is ndarray and doubles and y.dtype is F64 and y.ndim:
            # The row may keep its operand, and the caller may write into the array before a derivative is taken.
            b, y_handle = (y.copy("K") if is_recording() else y), 0
        elif (kind is float or kind is int) and (type(a) is float or a.dtype is F64 or a.dtype is F32):
            if y in powers:
                if type(x) not in PROMOTION:
                    return powers[y](x)
                if type(a) is float:  # with the bits of NumPy's numbers and arrays
                    tracked = x_handle and (not _T.recording_off or is_recording())
                    return apply_rule(OPCODES[POWERS[y]], x, way=BY_POWER) if tracked else general(x, y)
                if y != 3.0 and a.ndim:
                    return powers[y](x)
            b, y_handle = float(y), 0
        else:
            return general(x, y)
        if _T.tracers and of_thread.tracer is not None:
            return apply_rule(opcode, y, x) if exchanged else apply_rule(opcode, x, y)
        if exchanged:
            a, b, x_handle, y_handle = b, a, y_handle, x_handle
        if (x_refused and x_handle) or (y_refused and y_handle):
            return general(x, y)  # which says that there is no derivative
        if type(a) is float and type(b) is float:
            if (x_handle or y_handle) and (not _T.recording_off or is_recording()):
                return _again(opcode, x, y) if (x_handle < 0 or y_handle < 0) and not exchanged else general(x, y)
            if _T.tracers or type(x) in PROMOTION or kind in PROMOTION:
                return general(x, y)
            return make(_value(scalar, opcode, a, b), 0)
        if (
            type(a) is not type(b)
            and (kind in PROMOTION or (type(x) in PROMOTION and kind in KINDS))
            and (b if type(a) is float else a).dtype is not F64
        ):
            return general(x, y)  # a number whose dtype counts
        if divides and (b if type(a) is float else a).dtype.kind != "f":
            return general(x, y)  # which looks for zeros
        token = enter(IGNORING)
        try:
            z = value(a, b)
        except ValueError:
            check_broadcast(a, b)
            raise
        finally:
            leave(token)
        if type(z) is not ndarray:
            return general(x, y)
        if (x_handle or y_handle) and (not _T.recording_off or is_recording()):
            if kind is InferenceTensor or type(x) is InferenceTensor:
                return general(x, y)
            row = _T.array2(_ADDRESS, opcode, x_handle, id(a), y_handle, id(b), id(z), 0)
            if row == NEW_LEAF:
                x_handle, y_handle = _registered(x, y)
                if exchanged:
                    x_handle, y_handle = y_handle, x_handle
                row = _T.array2(_ADDRESS, opcode, x_handle, id(a), y_handle, id(b), id(z), 0)
            return make(z, row) if row >= 0 else general(x, y)
        first = F64 if type(a) is float else a.dtype
        same = first is (F64 if type(b) is float else b.dtype) and z.dtype is first
        return make(z, 0) if same and not _T.tracers else general(x, y)

    return form


def _ternary(opcode: int) -> Form:
    array, partials = forward[opcode], RULES[opcode].partials

    def form(x: Any, y: Any, w: Any) -> Tensor:
        # Common are tensors of float64 with dimensions, numbers, and a condition in the place without a derivative.
        values: list[Any] = []
        words: list[int] = []
        tracked = doubles = False
        for operand, partial in zip((x, y, w), partials, strict=True):
            kind = type(operand)
            handle = 0
            if kind in KINDS and kind is not InferenceTensor:
                data, handle = operand._data, operand._row
                if type(data) is float:
                    if handle:
                        return apply_rule(opcode, x, y, w)
                elif not data.ndim:
                    return apply_rule(opcode, x, y, w)
                elif data.dtype is F64:
                    doubles = True
                else:
                    if partial is not None or data.dtype.kind != "b":
                        return apply_rule(opcode, x, y, w)
                    data = data.astype(F64)
                if handle:
                    if partial is None:
                        return apply_rule(opcode, x, y, w)
                    tracked = True
            elif kind is float or kind is int:
                data = float(operand)
            else:
                return apply_rule(opcode, x, y, w)
            values.append(data)
            words += handle, id(data)
        if not doubles or (_T.tracers and of_thread.tracer is not None):  # numbers alone may be integers, or of the default dtype
            return apply_rule(opcode, x, y, w)
        token = enter(IGNORING)
        try:
            z = array(*values)
        except ValueError:
            return apply_rule(opcode, x, y, w)  # which says what does not fit
        finally:
            leave(token)
        if type(z) is not ndarray or z.dtype is not F64:
            return apply_rule(opcode, x, y, w)
        if not tracked or (_T.recording_off and not is_recording()):
            return make(z, 0) if not _T.tracers else apply_rule(opcode, x, y, w)
        words += id(z), 0
        row = _T.array3(_ADDRESS, opcode, *words)
        if row == NEW_LEAF:
            words[:6:2] = _registered(x, y, w)
            row = _T.array3(_ADDRESS, opcode, *words)
        return make(z, row) if row >= 0 else apply_rule(opcode, x, y, w)

    return form


def _form(opcode: int) -> Form:
    return (_unary, _binary, _ternary)[len(RULES[opcode].args) - 1](opcode)


def _reflected(opcode: int) -> Form:
    if len(RULES[opcode].args) != 2:
        raise KeyError(opcode)
    return _binary(opcode, True)


# By opcode, each made when it is first asked for.
FORMS: dict[int, Form] = MadeOnDemand(_form)
REFLECTED: dict[int, Form] = MadeOnDemand(_reflected)


def deliver_to(out: Tensor, result: Tensor) -> Tensor:
    """Write a result into the tensor given as ``out=``.

    Raises
    ------
    RuntimeError
        If the result or `out` is tracked.
    """
    if not isinstance(out, Tensor):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
    if result._row or (out._row and is_recording()):
        raise RuntimeError(
            "functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad. "
            "Leave out=... away, or work under no_grad()."
        )
    from tapegrad.ops.in_place import copy_  # which few processes need

    return copy_(out, result)


_switches: dict[int, Callable[[Form], None]] = {}


def use_compiled(compiled: Callable[..., Form | None]) -> None:
    """Let public functions, also those that are made later, call compiled operators when their first operand is a tensor.

    Parameters
    ----------
    compiled : callable
        Gives the operator by opcode, and on request its reflected form; None if the rule has none.
    """
    global _compiled
    _compiled = compiled
    for opcode, switch in _switches.items():
        operator = compiled(opcode)
        if operator is not None:
            switch(operator)


def _switch(opcode: int, switch: Callable[[Form], None]) -> None:
    _switches[opcode] = switch
    operator = None if _compiled is None else _compiled(opcode)
    if operator is not None:
        switch(operator)


def _public_unary(opcode: int) -> Form:
    form = operator = FORMS[opcode]

    def function(x: Any) -> Tensor:
        return operator(x) if type(x) is Tensor else form(x)

    def switch(compiled: Form) -> None:
        nonlocal operator
        operator = compiled

    _switch(opcode, switch)
    return function


def _public_binary(opcode: int) -> Form:
    operator = FORMS[opcode]
    # A number in front is the rule's parameter, as the order of `polygamma`.
    of_number = REFLECTED[opcode] if RULES[opcode].partials[0] is None else None

    def function(x: Any, y: Any, *, out: Tensor | None = None) -> Tensor:
        if isinstance(x, Tensor):
            result = operator(x, y)
        elif of_number is not None and isinstance(y, Tensor):
            result = of_number(y, x)
        else:
            result = apply_rule(opcode, x, y)
        return result if out is None else deliver_to(out, result)

    def switch(compiled: Form) -> None:
        nonlocal operator, of_number
        operator = compiled
        if of_number is not None:
            of_number = reflected(RULES[opcode].name)

    _switch(opcode, switch)
    return function


def _public_ternary(opcode: int) -> Form:
    form = operator = FORMS[opcode]

    def function(x: Any, y: Any, w: Any) -> Tensor:
        return operator(x, y, w) if type(x) is Tensor else form(x, y, w)

    def switch(compiled: Form) -> None:
        nonlocal operator
        operator = compiled

    _switch(opcode, switch)
    return function


def _public(name: str) -> Form:
    opcode = OPCODES[name]
    rule = RULES[opcode]
    function: Any = (_public_unary, _public_binary, _public_ternary)[len(rule.args) - 1](opcode)
    if len(rule.args) > 1:
        function = with_names(function, names_of(name))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc(rule)
    return function


def doc(rule: Rule) -> str:
    """Docstring of a rule's function."""
    return (
        f"{rule.doc}\n\nElementwise; arguments broadcast.\n\nParameters\n----------\n"
        f"{', '.join(rule.args)} : Tensor{' or number' if len(rule.args) > 1 else ''}\n    Any shape.\n\n"
        "Returns\n-------\nTensor\n    Of the broadcast shape and promoted dtype."
    )


def method(name: str) -> Form:
    """A rule as a method: the operator for a tensor as the first argument."""
    opcode = OPCODES[name]
    return (None if _compiled is None else _compiled(opcode)) or FORMS[opcode]


def reflected(name: str) -> Form:
    """The operator of a rule of two arguments for the second one."""
    opcode = OPCODES[name]
    return (None if _compiled is None else _compiled(opcode, True)) or REFLECTED[opcode]


# The functions of rules by their names, each made when it is first asked for.
FUNCTIONS: dict[str, Form] = MadeOnDemand(_public)


def __getattr__(name: str) -> Form:
    try:
        function = FUNCTIONS[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    if not hasattr(builtins, name):  # which this file means by such a name
        globals()[name] = function
    return function
