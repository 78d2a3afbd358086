"""In-place forms of functions that return a copy: compute it, then write it into the tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad import affine, dtypes, scattering, selecting, slice_writing, triangles
from tapegrad.inplace import check_writable, fit, overwrite, take_row
from tapegrad.tensor import Tensor

__all__ = ["FORMS"]


def writes(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """In-place form of a function of a tensor.

    The function must not need the values that are overwritten for its derivative.
    """

    def write(t: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        result = function(t, *args, **kwargs)
        tracked = result._row != 0
        z = result._data
        z = fit(t, z, dtypes.float64 if type(z) is float else z.dtype)
        check_writable(t, tracked)
        return overwrite(t, z, (lambda: take_row(result)) if tracked else None)

    write.__name__ = write.__qualname__ = name
    write.__doc__ = f"In-place form of `Tensor.{name[:-1]}`: writes into the tensor and returns it."
    return write


_FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "addbmm": affine.addbmm,
    "addmm": affine.addmm,
    "addmv": affine.addmv,
    "addr": affine.addr,
    "baddbmm": affine.baddbmm,
    "scatter": scattering.scatter,
    "scatter_add": scattering.scatter_add,
    "index_add": slice_writing.index_add,
    "index_copy": slice_writing.index_copy,
    "index_fill": slice_writing.index_fill,
    "index_put": scattering.index_put,
    "masked_fill": selecting.masked_fill,
    "masked_scatter": scattering.masked_scatter,
    "put": scattering.put,
    "tril": triangles.tril,
    "triu": triangles.triu,
}
FORMS = {f"{name}_": writes(f"{name}_", function) for name, function in _FUNCTIONS.items()}
