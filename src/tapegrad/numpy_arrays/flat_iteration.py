"""What ``x.flat`` is: the elements one after the other, read as copies and written through to the array."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, SupportsIndex

import numpy as np

from tapegrad.numpy_arrays.array import Array, as_arrays
from tapegrad.ops.shaping import reshape
from tapegrad.tensors.tensor import array_of

__all__ = ["FlatElements"]


class FlatElements:
    """The elements of an array in C order, as `numpy.flatiter` has them.

    Attributes
    ----------
    base : Array
        The array that they are the elements of.
    index : int
        Of the element that ``next`` gives.
    """

    __slots__ = ("base", "index")
    __class__ = np.flatiter  # type: ignore[assignment]  # what `isinstance` asks for

    def __init__(self, x: Array) -> None:
        self.base, self.index = x, 0

    @property
    def elements(self) -> Any:
        """An array of them; a view where they lie one after the other in memory."""
        return as_arrays(reshape(self.base, (-1,)))

    def _at(self, k: int) -> Any:
        """Element `k`, as a number."""
        x = self.base
        if x.ndim == 1:
            return x[k]
        places = []
        for extent in reversed(x.shape):
            k, place = divmod(k, extent)
            places.append(place)
        return x[tuple(reversed(places))]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, SupportsIndex) and not getattr(key, "ndim", 0):  # any array says that it can be an index
            size, k = len(self), operator.index(key)
            if not -size <= k < size:
                raise IndexError(f"index {k} is out of bounds for size {size}")
            return self._at(k % size)
        found = self.elements[key]
        return found.copy() if found.ndim else found

    def __setitem__(self, key: Any, value: Any) -> None:
        elements = self.elements
        elements[key] = _as_array(value)
        if self.base.size and not np.may_share_memory(array_of(elements), array_of(self.base)):
            self.base[...] = elements.reshape(self.base.shape)

    def __len__(self) -> int:
        return int(self.base.size)

    def __iter__(self) -> Iterator[Any]:
        while self.index < len(self):  # without the exception that ends an iteration: programs do not follow these
            yield next(self)

    def __next__(self) -> Any:
        if self.index >= len(self):
            raise StopIteration
        self.index += 1
        return self._at(self.index - 1)

    def copy(self) -> Any:
        """The elements as an array of one dimension."""
        return self.elements.copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.elements.__array__(dtype, copy=copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*map(_as_array, inputs), **_in_names(kwargs))

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return function(*map(_as_array, args), **_in_names(kwargs))


def _as_array(x: Any) -> Any:
    """Elements as an array, also in lists, in which NumPy's functions take several."""
    if type(x) in (list, tuple):
        return type(x)(map(_as_array, x))
    return x.copy() if isinstance(x, FlatElements) else x


def _in_names(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {name: _as_array(x) for name, x in kwargs.items()}


def _comparison(name: str) -> Callable[[FlatElements, Any], Any]:
    def compare(x: FlatElements, y: Any) -> Any:
        return getattr(x.elements, name)(_as_array(y))

    compare.__name__ = name
    return compare


for _name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
    setattr(FlatElements, _name, _comparison(_name))
