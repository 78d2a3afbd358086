"""What looks at the memory of an array, or at the spelling of a number, instead of its value: both are others in a recording."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba.core import types
from numba.core.errors import TypingError
from numba.core.extending import intrinsic

from tapegrad.nopython.types.variable import has_variables

__all__ = [
    "FORGETFUL",
    "MEMORY",
    "SPELLING",
    "STRIDING",
    "WRITERS",
    "WRITING_METHODS",
    "as_protected_as",
    "constants_only",
    "stored_attribute",
    "without_layout",
    "writable",
]

MEMORY = frozenset(["ctypes", "data", "itemsize", "nbytes", "strides", "tobytes", "view"])

STRIDING = frozenset([np.lib.stride_tricks.as_strided])

# What writes into its first argument, or its receiver, without asking whether that may be written, or lets others do so.
WRITERS = frozenset([np.fill_diagonal, np.random.shuffle, np.copyto, np.put, np.place, np.putmask, np.nditer])
WRITING_METHODS = frozenset(["fill", "sort", "partition", "itemset"])

# What may hand its argument on, and forgets that it is read-only.
FORGETFUL = frozenset([np.ascontiguousarray, np.asfortranarray])


@intrinsic
def writable(typingctx: Any, a: Any) -> Any:
    """An array that is written into; constants of the caller must be copied first."""
    if any(isinstance(kind, types.Array) and not kind.mutable for kind in (a if isinstance(a, types.BaseTuple) else (a,))):
        raise TypingError("Cannot modify readonly array")

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        context.nrt.incref(builder, a, args[0])
        return args[0]

    return a(a), write


@intrinsic
def as_protected_as(typingctx: Any, a: Any, original: Any) -> Any:
    """An array that is read-only if the one that it may be is."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        context.nrt.incref(builder, a, args[0])
        return args[0]

    arrays = isinstance(a, types.Array) and isinstance(original, types.Array)
    return (a.copy(readonly=True) if arrays and not original.mutable else a)(a, original), write


@intrinsic
def without_layout(typingctx: Any, a: Any) -> Any:
    """An object whose memory may be looked at."""
    if isinstance(a, types.Array) and has_variables(a):
        raise TypingError(
            "[tapegrad] the memory layout of an array (itemsize, strides, view, ...) is another one while it is differentiated; "
            "use shapes and values only"
        )

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        context.nrt.incref(builder, a, args[0])
        return args[0]

    return a(a), write


def constants_only(name: str, instead: str = "leave it away, or give it constants only") -> Any:
    """An identity that refuses variables, for what has this name."""

    @intrinsic
    def plain(typingctx: Any, a: Any) -> Any:
        if has_variables(a):
            raise TypingError(f"[tapegrad] {name} of a variable is not recorded; {instead}")

        def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            context.nrt.incref(builder, a, args[0])
            return args[0]

        return a(a), write

    return plain


SPELLING = {function: constants_only(function.__name__) for function in (str, repr, hash, getattr)}


@functools.cache
def stored_attribute(name: str) -> Any:
    """An identity for what is assigned to an attribute: classes declare the types of theirs."""
    return constants_only(
        f"assignment to the attribute {name}", "keep variables in local variables, arrays, tuples or lists, and return them"
    )
