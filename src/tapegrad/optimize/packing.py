"""Variables as one flat vector, which is what SciPy works on, in the structure that functions take; arguments, and first values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.drivers.containers import Structure, flatten, places_in, refuse_computed_attributes, restore
from tapegrad.drivers.derivatives import joined
from tapegrad.numpy_arrays.classes import answering
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["AnyVector", "Packing", "as_arguments", "in_floats", "refuse_nan"]


class Packing:
    """The structure of a variable, and how it is laid out in a vector.

    Parameters
    ----------
    x0 : array, float, sequence of numbers or container of arrays and floats
        A list or tuple of numbers means an array, and integers mean float64, as in SciPy.
    name, place : str
        Of the function that was given it, and of its argument, for messages.

    Attributes
    ----------
    start : ndarray
        `x0` as a vector.
    is_vector : bool
        Whether the variable is one array of one dimension.

    Raises
    ------
    TypeError
        If there is something in it that is no array or number of floats or integers.
    """

    def __init__(self, x0: Any, name: str, place: str = "x0") -> None:
        sequence = isinstance(x0, (list, tuple)) and not hasattr(x0, "_fields")  # a named tuple has its own structure
        if sequence and x0 and all(issubclass(type(_of_floats(v)), (float, np.floating)) for v in x0):
            x0 = np.array(x0, np.float64)
        leaves: list[Any] = []
        self.structure: Structure = flatten(x0, leaves)
        refuse_computed_attributes(self.structure, name)
        self.shapes: list[tuple[int, ...]] = []
        self.plain: list[bool] = []
        parts = []
        for leaf, where in zip(leaves, places_in(self.structure, place), strict=True):
            value = _of_floats(array_of(leaf) if isinstance(leaf, Tensor) else leaf)
            if not issubclass(type(value), (float, np.ndarray, np.floating)) or np.asarray(value).dtype.kind != "f":
                kind = str(value.dtype) if isinstance(value, (np.ndarray, np.generic)) else type(value).__name__
                raise _refused(name, f"{where} of {kind}")
            self.shapes.append(np.shape(value))
            self.plain.append(issubclass(type(leaf), (float, int)))
            parts.append(np.asarray(value, np.float64).reshape(-1))
        self.start: np.ndarray = joined(parts)
        self.size = len(self.start)
        # Then the vector is the variable.
        self.is_vector = self.structure is None and len(self.shapes[0]) == 1

    def structured(self, vector: np.ndarray) -> Any:
        """A vector in the structure of the variable, freshly allocated."""
        return self.point(np.array(vector, np.float64))

    def point(self, vector: np.ndarray) -> Any:
        """The same on the vector's own memory.

        Raises
        ------
        ValueError
            If it has another number of elements.
        """
        if vector.size != self.size:
            raise ValueError(f"the variable has {self.size} elements, but the vector has {vector.size}")
        if self.is_vector:
            return vector
        found, done = [], 0
        for shape, plain in zip(self.shapes, self.plain, strict=True):
            size = int(np.prod(shape))
            part = vector[done : done + size]
            found.append(float(part[0]) if plain else part.reshape(shape))
            done += size
        return restore(self.structure, iter(found))

    def tensors(self, vector: Tensor) -> Any:
        """A tensor of one dimension in the structure of the variable, recorded."""
        if self.is_vector:
            return vector
        found: list[Any] = []
        done = 0
        for shape, plain in zip(self.shapes, self.plain, strict=True):
            size = int(np.prod(shape))
            part = vector[done : done + size].reshape(shape)
            found.append(answering(part, float) if plain else part)
            done += size
        return restore(self.structure, iter(found))


class AnyVector(Packing):
    """The packing of a variable that is a vector of any length."""

    def __init__(self, name: str) -> None:
        super().__init__(np.empty(0), name)

    def point(self, vector: np.ndarray) -> Any:
        """The vector itself."""
        return vector


def _of_floats(value: Any) -> Any:
    """Integers as float64; anything else as it is, truth values too."""
    if issubclass(type(value), np.ndarray) and value.dtype.kind in "iu":
        return value.astype(np.float64)
    return float(value) if issubclass(type(value), (int, np.integer)) and not isinstance(value, bool) else value


def _refused(name: str, what: str) -> TypeError:
    return TypeError(f"{name} requires real-valued variables (floats), but got {what}. Pass floats: 2.0 instead of True or 2 + 0j.")


def as_arguments(args: Any) -> tuple[Any, ...]:
    """Further arguments as SciPy understands them: what is no tuple is one of them."""
    return args if isinstance(args, tuple) else (args,)


def refuse_nan(value: float) -> None:
    """Raise ValueError if the first value is nan."""
    if value != value:
        raise ValueError("minimize: the function is nan at x0, so there is no direction to go. Start from another point.")


def in_floats(value: Any) -> Any:
    """A result with floats in place of integers, which SciPy would convert: a constant like ``[x[0], 0]``."""
    leaves: list[Any] = []
    structure = flatten(value, leaves)
    if not any(_is_integer(leaf) for leaf in leaves):
        return value
    return restore(structure, (np.asarray(leaf, np.float64)[()] if _is_integer(leaf) else leaf for leaf in leaves))


def _is_integer(leaf: Any) -> bool:
    if issubclass(type(leaf), (np.ndarray, np.generic)):
        return leaf.dtype.kind in "iu"
    return isinstance(leaf, int) and not isinstance(leaf, bool)
