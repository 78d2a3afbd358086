"""Sweeps over recordings are entries of the engine's library, by numbers and addresses; where there is none they are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import carray, types
from numba.core.extending import intrinsic

from tapegrad.compilation.jit import Lazy, always_inline, entry
from tapegrad.compilation.memory_types import struct
from tapegrad.engine import memory
from tapegrad.nopython.tape import columns
from tapegrad.tape.tape import TAPE

__all__ = ["PREFIX", "f64", "i32", "matrix", "sweep_entry", "tape_of"]

f64: Any = memory.f64
PREFIX = "recorded_"  # of the names in the library
# The header of a recording, for sweeps; its words are those of the columns' file, in small letters.
Recording: Any = struct("Recording", {name.lower(): word for name, word in vars(columns).items() if name in columns.HEADER})


def sweep_entry(count: int) -> Callable[[Callable[..., Any]], Lazy]:
    """An entry that takes a recording and further whole numbers, `count` in all, and returns one."""

    def declare(function: Callable[..., Any]) -> Lazy:
        compiled = entry(f"int64({','.join(['Recording'] + ['int64'] * (count - 1))})", nogil=True)(function)

        def build() -> Any:
            TAPE.load()
            built = getattr(TAPE.kernels, PREFIX + function.__name__, None)
            return (compiled if built is None else built).get()

        return Lazy(build, function, compiled.signature, is_entry=True, nogil=True)

    return declare


def _pointer_to(kind: types.Type) -> Any:
    @intrinsic
    def pointer(typingctx: Any, address: Any) -> Any:
        def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(sig.return_type))

        return types.CPointer(kind)(types.int64), write

    return pointer


_i32_pointer, _f64_pointer = _pointer_to(types.int32), _pointer_to(types.float64)


@always_inline
def i32(address, n):  # type: ignore[no-untyped-def]
    """The int32 numbers at an address as an array."""
    return carray(_i32_pointer(address), (n,))


@always_inline
def matrix(address, n, m):  # type: ignore[no-untyped-def]
    """The float64 numbers at an address as a matrix."""
    return carray(_f64_pointer(address), (n, m))


@always_inline
def tape_of(recording):  # type: ignore[no-untyped-def]
    """Rows, partials, number of the last row, and number of pairs."""
    pairs = recording.pairs
    return i32(recording.row_column, pairs), f64(recording.partial_column, pairs), recording.rows, pairs
