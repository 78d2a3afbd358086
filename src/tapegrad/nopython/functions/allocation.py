"""Work arrays: where a function allocates floats, a recording allocates variables.

Variables are zeros or what they are filled with, and constants, until something is written into them.
"""

from __future__ import annotations

import numpy as np
from numba.core import types
from numba.core.errors import TypingError
from numba.core.extending import intrinsic
from numba.core.imputils import lower_builtin
from numba.core.typing import signature
from numba.core.typing.npydecl import parse_dtype, parse_shape
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.np.arrayobj import _parse_shape

from tapegrad.nopython.numba_interface.linking import overload
from tapegrad.nopython.tape.complex_rows import real_part, real_view
from tapegrad.nopython.tape.row_writing import primals
from tapegrad.nopython.types import variable_arrays
from tapegrad.nopython.types.variable import (
    Variable,
    complex_variable,
    has_complex,
    has_variables,
    is_float,
    primal_type,
    variable,
    variable_of,
)

__all__ = ["ALLOCATORS", "CONVERSIONS", "converted", "lifted", "lifted_from"]


def _declared(dtype):
    """The type of variables that a dtype argument means, `float` itself where it was left away; None if it means no floats."""
    if dtype is float or isinstance(dtype, types.Omitted) or (isinstance(dtype, types.Function) and dtype.typing_key is float):
        return variable
    if isinstance(dtype, types.Function) and dtype.typing_key is complex:
        return complex_variable
    return _of(parse_dtype(dtype))


def _of(kind):
    """The type of variables in the place of numbers of a type; None if these have no derivatives."""
    plain = primal_type(kind)
    if plain == types.complex128:
        return complex_variable
    return variable_of(plain) if is_float(plain) else None


def _given(dtype):
    return not (dtype is None or (isinstance(dtype, (types.NoneType, types.Omitted)) and getattr(dtype, "value", None) is None))


def zeros(shape, dtype=float):
    raise NotImplementedError


@infer_global(zeros)
class ZerosByPosition(AbstractTemplate):  # type: ignore[misc]
    """As work arrays are written nearly always; there is no function to compile."""

    key = zeros

    def generic(self, args, kws):
        count = parse_shape(args[0]) if len(args) in (1, 2) and not kws else None
        kind = variable if len(args) == 1 else _declared(args[1])
        if count is None or kind is None:
            return None
        return signature(types.Array(kind, count, "C"), types.unliteral(args[0]), *args[1:])


@lower_builtin(zeros, types.Any)
@lower_builtin(zeros, types.Any, types.Any)
def _write_zeros(context, builder, sig, args):
    shape = _parse_shape(context, builder, sig.args[0], args[0])
    return variable_arrays.zeros(context, builder, sig.return_type, shape)


@overload(zeros, complex_too=True)
def _zeros(shape, dtype=float):
    kind = _declared(dtype)
    if kind is not None:
        return lambda shape, dtype=float: np.zeros(shape, kind)
    return lambda shape, dtype=float: np.zeros(shape, dtype)


def ones(shape, dtype=float):
    raise NotImplementedError


@overload(ones, complex_too=True)
def _ones(shape, dtype=float):
    kind = _declared(dtype)
    if kind is not None:
        return lambda shape, dtype=float: np.full(shape, 1.0, kind)
    return lambda shape, dtype=float: np.ones(shape, dtype)


def full(shape, fill_value, dtype=None):
    raise NotImplementedError


@overload(full, complex_too=True)
def _full(shape, fill_value, dtype=None):
    kind = _declared(dtype) if _given(dtype) else _of(types.unliteral(fill_value))
    if kind is not None:
        return lambda shape, fill_value, dtype=None: np.full(shape, fill_value, kind)
    if _given(dtype):
        return lambda shape, fill_value, dtype=None: np.full(shape, fill_value, dtype)
    return lambda shape, fill_value, dtype=None: np.full(shape, fill_value)


def _like(a, dtype):
    """The type of variables in an array like `a`; None if it holds no floats."""
    return _declared(dtype) if _given(dtype) else _of(getattr(a, "dtype", a))


def zeros_like(a, dtype=None):
    raise NotImplementedError


@overload(zeros_like, complex_too=True)
def _zeros_like(a, dtype=None):
    kind = _like(a, dtype)
    if kind is not None:
        return lambda a, dtype=None: np.zeros_like(a, kind)
    if _given(dtype):
        return lambda a, dtype=None: np.zeros_like(a, dtype)
    return lambda a, dtype=None: np.zeros_like(a)


def ones_like(a, dtype=None):
    raise NotImplementedError


@overload(ones_like, complex_too=True)
def _ones_like(a, dtype=None):
    kind = _like(a, dtype)
    if kind is not None:
        return lambda a, dtype=None: np.full_like(a, 1.0, kind)
    if _given(dtype):
        return lambda a, dtype=None: np.ones_like(a, dtype)
    return lambda a, dtype=None: np.ones_like(a)


def full_like(a, fill_value, dtype=None):
    raise NotImplementedError


@overload(full_like, complex_too=True)
def _full_like(a, fill_value, dtype=None):
    kind = _like(a, dtype)
    if kind is not None:
        return lambda a, fill_value, dtype=None: np.full_like(a, fill_value, kind)
    if _given(dtype):
        return lambda a, fill_value, dtype=None: np.full_like(a, fill_value, dtype)
    return lambda a, fill_value, dtype=None: np.full_like(a, fill_value)


def array(object, dtype=None):
    raise NotImplementedError


def _depth(kind):
    """How deep sequences are nested, and what is at the bottom."""
    depth = 0
    while isinstance(kind, (types.Sequence, types.UniTuple)) and not isinstance(kind, types.Array):
        kind, depth = kind.dtype, depth + 1
    return depth, kind


def _items(dtype, bottom):
    """The type of the items of an array that is made of variables."""
    kind = _declared(dtype) if _given(dtype) else _of(getattr(bottom, "dtype", bottom))
    if kind is None:
        raise TypingError(f"[tapegrad] an array of variables is made with {dtype}; only float64 and float32 are differentiated")
    return kind


@overload(array, complex_too=True)
def _array(object, dtype=None):
    if not has_variables(object):
        if _given(dtype):
            return lambda object, dtype=None: lifted(np.array(object, dtype))
        return lambda object, dtype=None: lifted(np.array(object))
    depth, bottom = _depth(object)
    kind = _items(dtype, bottom)
    if isinstance(object, Variable):

        def scalar(object, dtype=None):
            out = np.empty((), kind)
            out[()] = object
            return out

        return scalar
    if depth == 0 and isinstance(object, types.Array):
        return lambda object, dtype=None: converted(object, kind)
    if depth == 1 and isinstance(bottom, types.Array) and bottom.ndim == 1:

        def rows(object, dtype=None):
            out = np.empty((len(object), object[0].size), kind)
            for i in range(len(object)):
                out[i, :] = object[i]
            return out

        return rows
    if depth == 1:

        def vector(object, dtype=None):
            out = np.empty(len(object), kind)
            for i in range(len(object)):
                out[i] = object[i]
            return out

        return vector
    if depth == 2:

        def matrix(object, dtype=None):
            out = np.empty((len(object), len(object[0])), kind)
            for i in range(len(object)):
                for j in range(len(object[i])):
                    out[i, j] = object[i][j]
            return out

        return matrix
    raise TypingError("[tapegrad] np.array of variables takes lists and tuples, nested twice at most, of numbers of one type")


def asarray(a, dtype=None):
    raise NotImplementedError


@overload(asarray, complex_too=True)
def _asarray(a, dtype=None):
    if isinstance(a, types.Array):
        if has_variables(a):
            kind = _items(dtype, a)
            if kind is a.dtype:
                return lambda a, dtype=None: a
            return lambda a, dtype=None: converted(a, kind)
        if _given(dtype):
            return lambda a, dtype=None: np.asarray(a, dtype)
        return lambda a, dtype=None: np.asarray(a)
    return lambda a, dtype=None: array(a, dtype)


def astype(a, dtype):
    raise NotImplementedError


@overload(astype, complex_too=True)
def _astype(a, dtype):
    if not has_variables(a):
        return lambda a, dtype: lifted(a.astype(dtype))
    kind = parse_dtype(dtype) if not isinstance(dtype, types.Function) else None
    to = _declared(dtype)
    if to is not None and not (has_complex(a) and to is not complex_variable):
        return lambda a, dtype: converted(a, to)
    if isinstance(kind, (types.Integer, types.Boolean)) and not has_complex(a):
        return lambda a, dtype: primals(a).astype(dtype)
    raise TypingError(
        f"[tapegrad] a conversion of variables to {dtype}; only float64 and float32 are differentiated: leave the conversion away"
    )


def converted(a, kind):
    """A copy of an array with items of a type of variables."""
    raise NotImplementedError


@overload(converted, complex_too=True)
def _converted(a, kind):
    if kind.instance_type is a.dtype:
        return lambda a, kind: np.copy(a)

    def rounded(a, kind):
        out = np.empty_like(a, kind)
        out[...] = a
        return out

    return rounded


def real(val):
    raise NotImplementedError


@overload(real, complex_too=True)
def _real(val):
    if has_complex(val):
        return (lambda val: real_view(val)) if isinstance(val, types.Array) else (lambda val: real_part(val))
    if isinstance(val, Variable) or (isinstance(val, types.Array) and has_variables(val)):
        return lambda val: val
    return lambda val: np.real(val)


CONVERSIONS = {"astype": astype}

ALLOCATORS = {
    np.array: array, np.asarray: asarray, np.real: real,
    np.zeros: zeros, np.empty: zeros, np.ones: ones, np.full: full,
    np.zeros_like: zeros_like, np.empty_like: zeros_like, np.ones_like: ones_like, np.full_like: full_like,
}  # fmt: skip


@intrinsic
def lifted(typingctx, a):
    """New arrays of constants into which variables may be written; everything else as it is."""
    fresh = isinstance(a, types.Array) and not has_variables(a) and _of(a.dtype) is not None and a.mutable
    kind = a.copy(dtype=_of(a.dtype), layout="F" if a.layout == "F" else "C") if fresh else a

    def write(context, builder, sig, args):
        if fresh:
            if kind.dtype is complex_variable:
                return variable_arrays.copy_in_order(context, builder, a, kind, args[0])._getvalue()
            return variable_arrays.copied(context, builder, a, args[0], kind)
        context.nrt.incref(builder, a, args[0])
        return args[0]

    return kind(a), write


@intrinsic
def lifted_from(typingctx, made, owner):
    """What a method made: a new array if it is one of arrays; others may give what somebody else holds too."""
    new = isinstance(owner, types.Array)
    kind = typingctx.resolve_value_type(lifted).get_call_type(typingctx, (made,), {}).return_type if new else made

    def write(context, builder, sig, args):
        if new:
            function = typingctx.resolve_value_type(lifted)
            inner = function.get_call_type(typingctx, (made,), {})
            return context.get_function(function, inner)(builder, args[:1])
        context.nrt.incref(builder, made, args[0])
        return args[0]

    return kind(made, owner), write
