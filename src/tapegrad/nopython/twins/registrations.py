"""Functions whose derivative a user has said, by what a call of them names."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

from numba.core.ccallback import CFunc
from numba.core.types import WrapperAddressProtocol

__all__ = ["Registration", "address_of", "is_pointer", "register", "registration_of"]

_registered: dict[Any, Registration] = {}


class Registration(NamedTuple):
    """What is called in the place of a function.

    Attributes
    ----------
    partials : tuple
        A compiled function for each argument, or None.
    call : function
        Takes the tape before the arguments, and records.
    stand_in : function
        Python's form of that, for a function that has a recording twin.
    """

    partials: tuple[Any, ...]
    call: Callable[..., Any]
    stand_in: Callable[..., Any]


def is_pointer(function: Any) -> bool:
    """Whether something is a C function's address, by `ctypes`, `numba.cfunc` or Numba's protocol for objects that have one."""
    return isinstance(function, (ctypes._CFuncPtr, CFunc, WrapperAddressProtocol))  # type: ignore[attr-defined]


def address_of(function: Any) -> int:
    """The address of a C function."""
    if isinstance(function, WrapperAddressProtocol):
        return int(function.__wrapper_address__())
    return (function.address if isinstance(function, CFunc) else ctypes.cast(function, ctypes.c_void_p).value) or 0


def _key(function: Any) -> Any:
    """What is equal for all that calls the same function."""
    if is_pointer(function):
        return "C", address_of(function)
    try:
        hash(function)
    except TypeError:
        return None
    return function


def register(function: Any, made: Registration) -> None:
    """Call this in the place of the function from now on."""
    _registered[_key(function)] = made
    _registered[made.stand_in.__globals__["call"]] = made


def registration_of(function: Any) -> Registration | None:
    """What is called in the place of a function, if anything is."""
    return _registered.get(_key(function)) if _registered and function is not None else None
