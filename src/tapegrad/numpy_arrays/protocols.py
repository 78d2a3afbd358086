"""NumPy's two protocols on arrays: of what is not differentiated NumPy's own results, else those of the package's tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.numpy_arrays.array import Array, as_arrays
from tapegrad.numpy_arrays.methods import apart, written
from tapegrad.numpy_arrays.promotion import PAIRS, are_doubles, may_be_complex, promoted
from tapegrad.numpy_arrays.untracked import computed, is_tracked
from tapegrad.numpy_arrays.writing import WRITING, accumulate_at
from tapegrad.numpy_protocol import protocols
from tapegrad.numpy_protocol.functions import holds_tensors, stacked
from tapegrad.numpy_protocol.rearranging import AT_LEAST
from tapegrad.tensors.tensor import Tensor, is_recording

__all__ = ["array_function", "array_ufunc"]


def array_ufunc(x: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Ufuncs and their methods."""
    if method == "__call__" and not kwargs and x._row and are_doubles(inputs):
        return as_arrays(protocols.array_ufunc(x, ufunc, method, *inputs))
    if method == "at":
        return accumulate_at(ufunc, *inputs)
    out = kwargs.get("out", ())
    if len(out) == 1 and isinstance(out[0], Array):
        kwargs.pop("out")
        mask = kwargs.pop("where", True) if method == "__call__" else True
        result = array_ufunc(x, ufunc, method, *apart(inputs, out[0]), **kwargs)
        return written(out[0], result if mask is True else np.where(mask, result, out[0]))
    if PAIRS and any(value.__class__ in PAIRS for value in inputs):
        return NotImplemented  # which is asked next
    if not (x._row and is_recording()) and not is_tracked(inputs, kwargs):
        return computed(getattr(ufunc, method), inputs, kwargs)
    if method == "__call__" and not kwargs and any(map(may_be_complex, inputs)):
        return look_up("numpy_arrays.complex_arrays:complex_ufunc")(ufunc, *inputs)
    if any(type(value) in (list, tuple) for value in inputs):
        inputs = tuple(stacked(value) if holds_tensors(value) else value for value in inputs)
    if method == "__call__" and len(inputs) == 2 and ufunc.nout == 1:
        inputs = promoted(*(np.asarray(value) if type(value) in (list, tuple) else value for value in inputs))
    return as_arrays(protocols.array_ufunc(x, ufunc, method, *inputs, **kwargs))


def array_function(x: Any, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Functions that are no ufuncs."""
    if function in OF_ARRAYS:
        return as_arrays(OF_ARRAYS[function](*args, **kwargs))
    if kwargs and isinstance(kwargs.get("out"), Array):
        kwargs = dict(kwargs)
        out = kwargs.pop("out")
        return written(out, array_function(x, function, types, apart(args, out), kwargs))
    if not (x._row and is_recording()) and not is_tracked(args, kwargs):
        return computed(function, args, kwargs)
    if function.__module__ == "numpy.fft":
        return look_up("numpy_arrays.fourier:FOURIER")[function](*args, **kwargs)
    result = protocols.array_function(x, function, types, args, kwargs)
    if Tensor in types and any(part is given for part in _parts(result) for given in _parts(args)):
        return result  # the very tensor that was given stays one
    return as_arrays(result)


OF_ARRAYS = WRITING | AT_LEAST  # what these arrays have in another way than tensors


def _parts(values: Any) -> list[Any]:
    if isinstance(values, (tuple, list)):
        return [part for value in values for part in _parts(value)]
    return [values] if type(values) is Tensor else []
