"""The one place that compiles: Numba with the project's flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["entry", "inline", "kernel"]

FLAGS: dict[str, Any] = {
    "error_model": "numpy",  # 1/0 is inf, as on arrays; the default raises
    "boundscheck": False,
    "nogil": False,  # recording and sweeping rely on the interpreter lock for atomicity
}


def inline(function: Callable[..., Any]) -> Any:
    """Compile `function` as a part of the entries that call it; it gets no cache file of its own."""
    import numba

    return numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **FLAGS)(function)


def entry(signature: str) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that Python calls, for one signature, cached on disk.

    The decorated name is the compiled C function itself, not Numba's dispatcher: types are fixed, so the dispatcher's type
    resolution (0.14 of 0.29 microseconds a call when measured) would be paid for nothing.
    """

    def compile_entry(function: Callable[..., Any]) -> Any:
        import numba

        dispatcher = numba.njit(signature, cache=True, no_cfunc_wrapper=True, **FLAGS)(function)
        return dispatcher.overloads[dispatcher.signatures[0]].entry_point

    return compile_entry


def kernel(signature: str) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that compiled code calls by its address, cached on disk."""

    def compile_kernel(function: Callable[..., Any]) -> Any:
        import numba

        return numba.cfunc(signature, cache=True, error_model="numpy")(function)

    return compile_kernel
