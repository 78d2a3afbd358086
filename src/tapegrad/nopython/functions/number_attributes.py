"""What a variable answers where a float is asked: its parts, a hash, what it is and how it is shown."""

from __future__ import annotations

from numba.core import types
from numba.core.errors import TypingError
from numba.core.extending import overload_attribute, overload_method

from tapegrad.nopython.numba_interface.linking import overload
from tapegrad.nopython.tape.row_writing import primal, primals
from tapegrad.nopython.types.variable import Variable, has_variables

__all__ = ["real_part", "seen", "shown"]


@overload_attribute(Variable, "real")
def _real(a):
    return lambda a: a


@overload_attribute(Variable, "imag")
def _imag(a):
    return lambda a: 0.0


@overload_method(Variable, "conjugate")
def _conjugate(a):
    return lambda a: a


@overload_method(Variable, "__hash__")
def _hash(a):
    raise TypingError("[tapegrad] variables as keys of dictionaries or items of sets are not recorded; use a list, or integer keys")


def real_part(a):
    """``a.real``, of a number or an array."""
    raise NotImplementedError


@overload(real_part)
def _real_part(a):
    if isinstance(a, types.Array) and has_variables(a):
        return lambda a: a
    return lambda a: a.real


def shown(a):
    """What `print` shows."""
    raise NotImplementedError


@overload(shown)
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


@overload(seen)
def _seen(a):
    return (lambda a: primal(a)) if isinstance(a, Variable) else (lambda a: a)
