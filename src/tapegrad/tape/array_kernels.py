"""Compiled loops over whole arrays, by name: `ARRAY_KERNELS.take_elements(...)`.

They take arrays by ``id(array)`` and trust their callers: an array is contiguous, alive until the call returns, and of the size and
dtype that the kernel's text says (`tapegrad.engine`).
"""

from __future__ import annotations

from typing import Any

from tapegrad.tape.locks import loading as _loading_lock
from tapegrad.tape.tape import TAPE

__all__ = ["ARRAY_KERNELS"]


class _ArrayKernels:
    """Each is loaded when it is first asked for; it is an attribute from then on."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        TAPE.load()
        with _loading_lock:
            kernel = getattr(_module(), name).get()
        setattr(self, name, kernel)
        return kernel


def _module() -> Any:
    if hasattr(TAPE.kernels, "take_elements"):
        return TAPE.kernels
    from tapegrad.kernels import kernel_files

    return kernel_files.load_arrays()


ARRAY_KERNELS: Any = _ArrayKernels()
