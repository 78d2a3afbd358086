"""The one place that compiles: Numba with the project's flags."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable
from typing import Any

__all__ = ["Lazy", "always_inline", "entry", "inline", "kernel", "typed"]

FLAGS: dict[str, Any] = {
    "error_model": "numpy",  # 1/0 is inf, as on arrays; the default raises
    "boundscheck": False,
    "nogil": False,  # recording and sweeping rely on the interpreter lock for atomicity
}

takes_all_passes = False  # of Numba's, when the library is built, where time matters less


def typed(signature: str) -> Any:
    """The types that a signature names: Numba's, and structs and columns by their names."""
    from numba.core import types

    from tapegrad.compilation.memory_types import NAMED

    return eval(signature, {}, vars(types) | NAMED)


def inline(function: Callable[..., Any]) -> Any:
    """Compile `function` as a part of the entries that call it; it gets no cache file of its own."""
    return _part(function)


def always_inline(function: Callable[..., Any]) -> Any:
    """The same for parts of an inner loop that are too long for the compiler to inline unasked."""
    return _part(function, forceinline=True)


def _part(function: Callable[..., Any], **flags: Any) -> Any:
    import numba

    if not takes_all_passes:
        from tapegrad.compilation.engine_compiler import PartCompiler

        flags["pipeline_class"] = PartCompiler
    njit: Any = numba.njit  # its stubs do not know the wrapper flags
    return njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **flags, **FLAGS)(function)


class Lazy:
    """A function that is compiled, or loaded from the cache, when it is first asked for.

    A process pays for what it uses: the first gradient of a scalar needs no array kernels.
    """

    __slots__ = ("_build", "_built", "function", "is_entry", "nogil", "signature", "wide")

    def __init__(self, build: Any, function: Any, signature: str, is_entry: bool, nogil: bool = False, wide: bool = False) -> None:
        self._build, self.function, self.signature, self.is_entry, self.nogil = build, function, signature, is_entry, nogil
        self.wide = wide  # whether a library has it for wider registers besides
        self._built: Any = None

    @classmethod
    def of(cls, built: Any) -> Lazy:
        """One that is there already."""
        made = cls(None, None, "", callable(built))
        made._built = built
        return made

    def get(self) -> Any:
        """The compiled function (an entry), or its address (a kernel)."""
        if self._built is None:
            self._built = self._build()
        return self._built


_damaged: set[str] = set()  # folders that were said to hold damaged files
_full: set[str] = set()  # folders that were said to take no more


def _warn_once(said: set[str], folder: object, message: str) -> None:
    if str(folder) not in said:
        said.add(str(folder))
        warnings.warn(message, RuntimeWarning, stacklevel=2)


def _cached(compile_with: Callable[..., Any], function: Callable[..., Any]) -> Any:
    """Compile with Numba's cache; what cannot be read from there is compiled anew, and kept if that can be."""
    from pathlib import Path

    from numba.core import caching
    from numba.core.errors import NumbaError

    from tapegrad.compilation.notice import notice

    def unkept() -> Any:
        with notice.around(None):
            return compile_with(cache=False)(function)

    if not os.path.exists(function.__code__.co_filename):  # no place was found for the text, so there is none for the code
        return unkept()
    files: Any = caching.FunctionCache  # its stubs leave out the types
    folder = Path(files(function).cache_path)
    own = f"{function.__module__}.{function.__name__}-*.nb?"
    if str(folder) in _full and not any(folder.glob(own)):
        return unkept()
    for _ in range(2):
        try:
            with notice.around(str(folder)):
                made = compile_with(cache=True)(function)
            if made.stats.cache_hits if hasattr(made, "stats") else made.cache_hits:
                notice.was_read()
            return made
        except NumbaError:
            raise
        except OSError as error:
            message = f"compiled code cannot be kept in {folder} ({error}): every process compiles it anew. Make room, "
            _warn_once(_full, folder, f"{message}or set NUMBA_CACHE_DIR to another folder.")
            break
        except Exception as error:  # whatever unpickling makes of damaged bytes
            message = f"the cache of compiled code in {folder} is damaged ({type(error).__name__}: {error})"
            _warn_once(_damaged, folder, f"{message}; it is compiled anew")
            try:
                for path in folder.glob(own):
                    path.unlink(missing_ok=True)
            except OSError:
                break
    return unkept()


def entry(signature: str, nogil: bool = False, wide: bool = False) -> Callable[[Callable[..., Any]], Lazy]:
    """Compile a function that Python calls, for one signature, cached on disk; `nogil` where it works on memory of its own.

    With `wide`, a library has it twice (`tapegrad.library_build.wide_loops`): it should be what computes much for each element.

    What `Lazy.get` gives is the compiled C function itself, not Numba's dispatcher: types are fixed, so the dispatcher's type
    resolution (0.14 of 0.29 microseconds a call when measured) would be paid for nothing.
    """

    def declare(function: Callable[..., Any]) -> Lazy:
        def build() -> Any:
            import numba

            from tapegrad.compilation.engine_compiler import Compiler

            flags = FLAGS | {"nogil": nogil, "no_cfunc_wrapper": True, "pipeline_class": Compiler}
            dispatcher = _cached(functools.partial(numba.njit, typed(signature), **flags), function)
            return dispatcher.overloads[dispatcher.signatures[0]].entry_point

        return Lazy(build, function, signature, is_entry=True, nogil=nogil, wide=wide)

    return declare


def kernel(signature: str, wide: bool = False) -> Callable[[Callable[..., Any]], Lazy]:
    """Compile a function that compiled code calls by its address, cached on disk; `wide` as for an `entry`."""

    def declare(function: Callable[..., Any]) -> Lazy:
        compiled: list[Any] = []  # holds the code that the address points to

        def build() -> Any:
            import numba

            from tapegrad.compilation.engine_compiler import Compiler

            flags: dict[str, Any] = {"error_model": "numpy", "pipeline_class": Compiler}
            compiled.append(_cached(functools.partial(numba.cfunc, typed(signature), **flags), function))
            return compiled[0].address

        return Lazy(build, function, signature, is_entry=False, wide=wide)

    return declare
