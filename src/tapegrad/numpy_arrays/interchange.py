"""What the Array API standard asks of arrays beside their functions: namespace, device, and memory for other libraries."""

from __future__ import annotations

import importlib
from typing import Any

from tapegrad.numpy_arrays.array import Array
from tapegrad.surface.conversions import as_array
from tapegrad.tensors.tensor import array_of, is_recording

__all__: list[str] = []


def array_namespace(x: Array, *, api_version: str | None = None) -> Any:
    """The namespace with the functions of these arrays, `tapegrad.numpy`.

    Raises
    ------
    ValueError
        If there is no such version of the standard.
    """
    array_of(x).__array_namespace__(api_version=api_version)  # type: ignore[arg-type]
    return importlib.import_module("tapegrad.numpy")


def to_device(x: Array, device: str, /, *, stream: Any = None) -> Array:
    """The array itself.

    Raises
    ------
    ValueError
        If the device is not the processor.
    """
    array_of(x).to_device(device, stream=stream)  # type: ignore[arg-type]
    return x


def as_numpys(x: Array, dtype: Any = None, copy: bool | None = None) -> Any:
    """NumPy's conversion protocol: the values of a constant, read-only unless they are copied.

    Rows may have saved the memory, and a write through an array of NumPy's would go unnoticed: a derivative at other values.
    """
    found = as_array(x, dtype, copy)
    if found.base is not None:
        found.setflags(write=False)
    return found


def numpy(x: Array) -> Any:
    """The values of a constant as an array of NumPy's on the same memory, which can only be read."""
    return as_numpys(x)


def dlpack(
    x: Array,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """The memory as a capsule for other libraries, to be read only; a copy where the version of the protocol cannot say that.

    Raises
    ------
    BufferError
        If the array is being differentiated: there is no derivative by what another library makes of it. Or if a copy is needed and
        forbidden.
    """
    if x._row and is_recording():
        raise BufferError(
            "an array that is being differentiated is not handed to other libraries, where it would lose its derivative; "
            "write tg.stop_gradient(x) where its values are meant"
        )
    options: Any = {"dl_device": dl_device, "copy": copy, "max_version": max_version}
    array = as_numpys(x)
    if copy is not False and (max_version is None or max_version[0] < 1):
        array = array.copy()
    return array.__dlpack__(stream=stream, **options)


def dlpack_device(x: Array) -> tuple[int, int]:
    """Kind and number of the device."""
    return array_of(x).__dlpack_device__()
