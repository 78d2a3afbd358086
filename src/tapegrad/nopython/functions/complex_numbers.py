"""Complex numbers out of their parts, and sums and products of arrays of them: values are Numba's, rows those of a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.core.errors import TypingError

from tapegrad.nopython.formulas.expression_tree import Leaf, Op
from tapegrad.nopython.numba_interface.linking import overload, part
from tapegrad.nopython.statements.statement import Statement
from tapegrad.nopython.tape.complex_rows import joined, with_rows_of_parts
from tapegrad.nopython.tape.row_writing import primals
from tapegrad.nopython.twins.recording_twin import twin
from tapegrad.nopython.types.variable import REAL, ComplexVariable, Variable, complex_variable, has_narrow, has_variables

__all__ = ["COMPLEX", "conjugate", "product_of_complex", "sum_along", "sum_of_complex"]


def complex_number(tape, real=0.0, imag=0.0):
    """``complex(a, b)`` of numbers."""
    raise NotImplementedError


@overload(complex_number, complex_too=True)
def _complex_number(tape, real=0.0, imag=0.0):
    if not has_variables(types.Tuple([kind for kind in (real, imag) if isinstance(kind, types.Type)])):
        return lambda tape, real=0.0, imag=0.0: complex(real, imag)
    if isinstance(real, ComplexVariable) and isinstance(imag, (float, types.Omitted)):
        return lambda tape, real=0.0, imag=0.0: real
    if any(isinstance(kind, types.Type) and has_narrow(kind) for kind in (real, imag)):
        raise TypingError("[tapegrad] complex(...) of float32 is not recorded; write complex(np.float64(x), ...)")
    if all(isinstance(kind, (float, Variable, *REAL, types.Omitted)) for kind in (real, imag)):
        return lambda tape, real=0.0, imag=0.0: joined(real, imag)
    raise TypingError("[tapegrad] complex(...) of complex numbers is not recorded; write a + 1j * b")


def as_complex(tape, x):
    """``np.complex128(x)`` of a number."""
    raise NotImplementedError


@overload(as_complex, complex_too=True)
def _as_complex(tape, x):
    if isinstance(x, ComplexVariable):
        return lambda tape, x: x
    if isinstance(x, Variable):
        return lambda tape, x: joined(x, 0.0)
    return lambda tape, x: np.complex128(x)


def conjugate(tape, a):
    """The method of numbers and arrays."""
    raise NotImplementedError


@overload(conjugate, complex_too=True)
def _conjugate(tape, a):
    if not has_variables(a):
        return lambda tape, a: np.conjugate(a)
    statement = Statement(Op(np.conjugate, (Leaf(0),)))
    return lambda tape, a: statement(tape, a)


@part
def total(a):
    """The sum of all items."""
    found = 0j
    for item in a.ravel():
        found += item
    return found


@part
def inner(a, b):
    """The sum of products of items."""
    found = 0j
    for k in range(len(a)):
        found += a[k] * b[k]
    return found


@part
def conjugate_inner(a, b):
    """The same with the first operand conjugate."""
    found = 0j
    for k in range(len(a)):
        found += np.conj(a[k]) * b[k]
    return found


def sum_of_complex(function: Any, a: Any) -> Any:
    """The implementation of a sum or a mean of all items of an array."""
    if not isinstance(a, types.Array):
        raise TypingError("[tapegrad] a sum of complex numbers takes an array; write a loop for lists and tuples")
    recording = twin(total)
    scaling = twin(part(lambda a, size: a / size))
    if function is np.mean:
        return lambda tape, a: with_rows_of_parts(np.mean(primals(a)), scaling(tape, recording(tape, a), float(a.size)))
    return lambda tape, a, axis=None: with_rows_of_parts(np.sum(primals(a)), recording(tape, a))


def sum_along(a: Any, axis: Any) -> Any:
    """The implementation of a sum of the items of an array along one of its axes."""
    if not isinstance(axis, types.Integer):
        raise TypingError("[tapegrad] np.sum of complex variables takes one axis; call it once for each axis")
    recording = twin(total)

    def impl(tape, a, axis=None):
        values, lines = np.sum(primals(a), axis), np.moveaxis(a, axis, -1)
        out = np.empty(values.shape, complex_variable)
        for place in np.ndindex(values.shape):
            out[place] = with_rows_of_parts(values[place], recording(tape, lines[place]))
        return out

    return impl


def product_of_complex(function: Any, a: Any, b: Any) -> Any:
    """The implementation of a product of vectors and matrices."""
    recording = twin(conjugate_inner if function is np.vdot else inner)
    if (a.ndim, b.ndim) == (1, 1):

        def impl(tape, a, b):
            z = function(primals(a), primals(b))
            return with_rows_of_parts(z, recording(tape, a, b))

        return impl
    if function is np.vdot or a.ndim > 2 or b.ndim > 2:
        raise TypingError("[tapegrad] products of complex arrays of more than two dimensions are not recorded; write a loop")
    left, right = ("a[i]" if a.ndim == 2 else "a"), ("b[:, j]" if b.ndim == 2 else "b")
    counters = [name for name, kind in (("i", a), ("j", b)) if kind.ndim == 2]
    space = {"np": np, "function": function, "primals": primals, "recording": recording, "kind": complex_variable}
    space["joined"] = with_rows_of_parts
    lines = ["def impl(tape, a, b):", "    values = function(primals(a), primals(b))", "    out = np.empty(values.shape, kind)"]
    indent = "    "
    for axis, name in enumerate(counters):
        lines.append(f"{indent}for {name} in range(values.shape[{axis}]):")
        indent += "    "
    place = ", ".join(counters)
    lines += [f"{indent}out[{place}] = joined(values[{place}], recording(tape, {left}, {right}))", "    return out"]
    exec("\n".join(lines), space)
    return space["impl"]


COMPLEX: dict[Any, Any] = {
    complex: complex_number,
    np.complex128: as_complex,
}
