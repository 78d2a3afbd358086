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
from tapegrad.nopython.tape.row_writing import primals
from tapegrad.nopython.types import variable_arrays
from tapegrad.nopython.types.variable import has_variables, variable

__all__ = ["ALLOCATORS", "CONVERSIONS", "lifted", "lifted_from"]


def _holds_floats(dtype):
    """Whether a dtype argument means float64; `float` itself where it was left away."""
    if dtype is float or (isinstance(dtype, types.Function) and dtype.typing_key is float):
        return True
    return parse_dtype(dtype) in (types.float64, variable)


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
        if count is None or (len(args) == 2 and not _holds_floats(args[1])):
            return None
        return signature(types.Array(variable, count, "C"), types.unliteral(args[0]), *args[1:])


@lower_builtin(zeros, types.Any)
@lower_builtin(zeros, types.Any, types.Any)
def _write_zeros(context, builder, sig, args):
    shape = _parse_shape(context, builder, sig.args[0], args[0])
    return variable_arrays.zeros(context, builder, sig.return_type, shape)


@overload(zeros)
def _zeros(shape, dtype=float):
    if isinstance(dtype, types.Omitted) or _holds_floats(dtype):
        return lambda shape, dtype=float: np.zeros(shape, variable)
    return lambda shape, dtype=float: np.zeros(shape, dtype)


def ones(shape, dtype=float):
    raise NotImplementedError


@overload(ones)
def _ones(shape, dtype=float):
    if isinstance(dtype, types.Omitted) or _holds_floats(dtype):
        return lambda shape, dtype=float: np.full(shape, 1.0, variable)
    return lambda shape, dtype=float: np.ones(shape, dtype)


def full(shape, fill_value, dtype=None):
    raise NotImplementedError


@overload(full)
def _full(shape, fill_value, dtype=None):
    if _holds_floats(dtype) if _given(dtype) else types.unliteral(fill_value) in (types.float64, variable):
        return lambda shape, fill_value, dtype=None: np.full(shape, fill_value, variable)
    if _given(dtype):
        return lambda shape, fill_value, dtype=None: np.full(shape, fill_value, dtype)
    return lambda shape, fill_value, dtype=None: np.full(shape, fill_value)


def _like(a, dtype):
    """Whether an array like `a` holds floats."""
    return _holds_floats(dtype) if _given(dtype) else getattr(a, "dtype", a) in (types.float64, variable)


def zeros_like(a, dtype=None):
    raise NotImplementedError


@overload(zeros_like)
def _zeros_like(a, dtype=None):
    if _like(a, dtype):
        return lambda a, dtype=None: np.zeros_like(a, variable)
    if _given(dtype):
        return lambda a, dtype=None: np.zeros_like(a, dtype)
    return lambda a, dtype=None: np.zeros_like(a)


def ones_like(a, dtype=None):
    raise NotImplementedError


@overload(ones_like)
def _ones_like(a, dtype=None):
    if _like(a, dtype):
        return lambda a, dtype=None: np.full_like(a, 1.0, variable)
    if _given(dtype):
        return lambda a, dtype=None: np.ones_like(a, dtype)
    return lambda a, dtype=None: np.ones_like(a)


def full_like(a, fill_value, dtype=None):
    raise NotImplementedError


@overload(full_like)
def _full_like(a, fill_value, dtype=None):
    if _like(a, dtype):
        return lambda a, fill_value, dtype=None: np.full_like(a, fill_value, variable)
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


def _converts(dtype):
    if _given(dtype) and not _holds_floats(dtype):
        raise TypingError(f"[tapegrad] an array of variables is made with {dtype}; only float64 is differentiated")


@overload(array)
def _array(object, dtype=None):
    if not has_variables(object):
        if _given(dtype):
            return lambda object, dtype=None: lifted(np.array(object, dtype))
        return lambda object, dtype=None: lifted(np.array(object))
    _converts(dtype)
    depth, bottom = _depth(object)
    if object is variable:

        def scalar(object, dtype=None):
            out = np.empty((), variable)
            out[()] = object
            return out

        return scalar
    if depth == 0 and isinstance(object, types.Array):
        return lambda object, dtype=None: np.copy(object)
    if depth == 1 and isinstance(bottom, types.Array) and bottom.ndim == 1:

        def rows(object, dtype=None):
            out = np.empty((len(object), object[0].size), variable)
            for i in range(len(object)):
                out[i, :] = object[i]
            return out

        return rows
    if depth == 1:

        def vector(object, dtype=None):
            out = np.empty(len(object), variable)
            for i in range(len(object)):
                out[i] = object[i]
            return out

        return vector
    if depth == 2:

        def matrix(object, dtype=None):
            out = np.empty((len(object), len(object[0])), variable)
            for i in range(len(object)):
                for j in range(len(object[i])):
                    out[i, j] = object[i][j]
            return out

        return matrix
    raise TypingError("[tapegrad] np.array of variables takes lists and tuples, nested twice at most, of numbers of one type")


def asarray(a, dtype=None):
    raise NotImplementedError


@overload(asarray)
def _asarray(a, dtype=None):
    if isinstance(a, types.Array):
        if has_variables(a):
            _converts(dtype)
            return lambda a, dtype=None: a
        if _given(dtype):
            return lambda a, dtype=None: np.asarray(a, dtype)
        return lambda a, dtype=None: np.asarray(a)
    return lambda a, dtype=None: array(a, dtype)


def astype(a, dtype):
    raise NotImplementedError


@overload(astype)
def _astype(a, dtype):
    if not has_variables(a):
        return lambda a, dtype: lifted(a.astype(dtype))
    kind = parse_dtype(dtype) if not isinstance(dtype, types.Function) else types.float64
    if kind in (types.float64, variable):
        return lambda a, dtype: np.copy(a)
    if isinstance(kind, (types.Integer, types.Boolean)):
        return lambda a, dtype: primals(a).astype(dtype)
    raise TypingError(f"[tapegrad] a conversion of variables to {kind}; only float64 is differentiated: leave the conversion away")


def real(val):
    raise NotImplementedError


@overload(real)
def _real(val):
    if val is variable or (isinstance(val, types.Array) and has_variables(val)):
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
    fresh = isinstance(a, types.Array) and a.dtype == types.float64 and a.mutable
    kind = a.copy(dtype=variable, layout="F" if a.layout == "F" else "C") if fresh else a

    def write(context, builder, sig, args):
        if fresh:
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
