"""What a variable answers where a float is asked: its parts, a hash, what it is and how it is shown."""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.errors import TypingError
from numba.core.extending import overload_attribute, overload_method
from numba.core.typing.templates import AttributeTemplate, infer_getattr

from tapegrad.nopython.numba_interface.linking import overload
from tapegrad.nopython.tape.complex_rows import imaginary_part as imaginary_of
from tapegrad.nopython.tape.complex_rows import imaginary_view, real_view
from tapegrad.nopython.tape.complex_rows import real_part as real_of
from tapegrad.nopython.tape.row_writing import primal, primals
from tapegrad.nopython.types.variable import ComplexVariable, Variable, has_complex, has_variables

__all__ = ["imaginary_part", "real_part", "seen", "shown"]


@infer_getattr
class _AttributesOfDtypes(AttributeTemplate):  # type: ignore[misc]
    """What ``array.dtype`` says of an array of variables."""

    key = types.DType

    def resolve_kind(self, dtype: Any) -> Any:
        """The letter for floats, or for complex numbers."""
        if isinstance(dtype.dtype, (Variable, ComplexVariable)):
            return types.StringLiteral("f" if isinstance(dtype.dtype, Variable) else "c")
        return None


@overload_attribute(Variable, "real")
def _real(a):
    return lambda a: a


@overload_attribute(Variable, "imag")
def _imag(a):
    return lambda a: 0.0


@overload_method(Variable, "item")
@overload_method(Variable, "conjugate")
def _conjugate(a):
    return lambda a: a


@overload_attribute(ComplexVariable, "real")
def _real_of_complex(a):
    return lambda a: real_of(a)


@overload_attribute(ComplexVariable, "imag")
def _imag_of_complex(a):
    return lambda a: imaginary_of(a)


@overload_method(ComplexVariable, "__hash__")
@overload_method(Variable, "__hash__")
def _hash(a):
    raise TypingError("[tapegrad] variables as keys of dictionaries or items of sets are not recorded; use a list, or integer keys")


def real_part(a):
    """``a.real``, of a number or an array."""
    raise NotImplementedError


@overload(real_part, complex_too=True)
def _real_part(a):
    if isinstance(a, types.Array) and has_complex(a):
        return lambda a: real_view(a)
    if isinstance(a, types.Array) and has_variables(a):
        return lambda a: a
    return lambda a: a.real


def imaginary_part(a):
    """``a.imag``, of a number or an array."""
    raise NotImplementedError


@overload(imaginary_part, complex_too=True)
def _imaginary_part(a):
    if isinstance(a, types.Array) and has_complex(a):
        return lambda a: imaginary_view(a)
    if isinstance(a, types.Array) and has_variables(a):
        return lambda a: primals(a).imag
    return lambda a: a.imag


def shown(a):
    """What `print` shows."""
    raise NotImplementedError


@overload(shown, complex_too=True)
def _shown(a):
    if isinstance(a, Variable):
        return lambda a: primal(a)
    if isinstance(a, types.Array):
        return lambda a: primals(a)
    if has_variables(a):
        raise TypingError(f"[tapegrad] print of {a} is not recorded; print its items")
    return lambda a: a


def seen(a):
    """What `isinstance` sees."""
    raise NotImplementedError


@overload(seen, complex_too=True)
def _seen(a):
    return (lambda a: primal(a)) if isinstance(a, Variable) else (lambda a: a)
