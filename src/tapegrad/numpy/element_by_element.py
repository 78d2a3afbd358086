"""`numpy.vectorize` for what is differentiated."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.numpy.creation import as_made_array, made_array
from tapegrad.numpy_arrays.untracked import is_tracked, values_of

__all__ = ["vectorize"]

_np: Any = np


class vectorize:  # noqa: N801 - NumPy's name
    """`numpy.vectorize`: a function of numbers, called with each element. Where one is differentiated, results are stacked.

    Attributes are those of NumPy's object.
    """

    def __init__(self, pyfunc: Any = np._NoValue, *args: Any, **kwargs: Any) -> None:
        self._given = args, kwargs
        self._vectorized: Any = np.vectorize(pyfunc, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._vectorized, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: D102
        own = self._vectorized
        if own.pyfunc is np._NoValue:  # a decorator with arguments
            given, named = self._given
            return vectorize(*args, *given, **named)
        if not is_tracked(args, kwargs):
            return own(*args, **kwargs)
        if own.signature is not None:
            raise TypeError(
                "numpy.vectorize with a signature is not covered for what is being differentiated; write "
                "np.stack([f(row) for row in x])"
            )
        return self._each(args, kwargs)

    def _each(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        own = self._vectorized
        places = [k for k in range(len(args)) if k not in own.excluded]
        names = [name for name in kwargs if name not in own.excluded]
        arrays = _np.broadcast_arrays(*[as_made_array(x) for x in (*(args[k] for k in places), *(kwargs[name] for name in names))])
        shape, flat = np.shape(arrays[0]), list(map(np.ravel, arrays))
        if not flat[0].size:
            raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
        given, named, results = list(args), dict(kwargs), []
        for elements in zip(*flat, strict=True):
            for place, x in zip(places, elements, strict=False):
                given[place] = x
            named.update(zip(names, elements[len(places) :], strict=True))
            results.append(own.pyfunc(*given, **named))
        many = isinstance(results[0], tuple)
        columns = list(zip(*results, strict=True)) if many else [results]
        # As NumPy does, the first element decides about the dtype.
        dtypes = [np.dtype(char) for char in own.otypes or ""] or [np.asarray(values_of(column[0])).dtype for column in columns]
        found = [_stacked(column, dtype, shape) for column, dtype in zip(columns, dtypes, strict=True)]
        return tuple(found) if many else found[0]


def _stacked(column: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
    if dtype.kind == "f":
        return np.reshape(made_array(list(column), dtype), shape)
    return np.reshape(np.array(values_of(list(column))).astype(dtype), shape)  # whole numbers, which have no slope
