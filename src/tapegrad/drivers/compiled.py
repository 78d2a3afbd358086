"""Functions that are compiled with Numba: their calls are recorded on tapes of their own, and these give the products."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.drivers.containers import Node, flatten, restore
from tapegrad.drivers.derivatives import as_column, vectors_like
from tapegrad.drivers.leaves import Argnums, Call, check_argnums
from tapegrad.nopython.compiled_operation import holds_tensors, value_of
from tapegrad.nopython.derivatives import Recording, gradient
from tapegrad.nopython.recorder import recorder
from tapegrad.nopython.tape.column_memory import give_back, take
from tapegrad.tensors.tensor import Tensor, array_of, make

__all__ = ["compiled_call", "compiled_gradient", "parts_of"]

ndarray = np.ndarray
FLOAT64 = np.dtype(np.float64)


def compiled_call(
    f: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    argnums: Argnums,
    has_aux: bool,
    name: str,
    second: bool,
    along: Any = None,
) -> Call:
    """Record a call of a compiled function; its leaves and its output are plain values.

    `along` is the single direction, in the structure of the arguments, that second derivatives will be asked for.
    """
    numbers = check_argnums(argnums, len(args), name)
    record = recorder(f, numbers)
    arguments = record.arguments(tuple(map(_plain, args)), {key: _plain(value) for key, value in kwargs.items()})
    made = Call()
    made.arrays = False
    made.inside, made.many, made.numbers = False, not isinstance(argnums, (int, np.integer)), numbers
    found: list[Any] = []
    structures = [flatten(arguments[n], found) for n in numbers]
    made.structure = Node((), tuple(range(len(numbers))), tuple(structures)) if made.many else structures[0]
    made.leaves = [make(value, 0) for value in found]
    made.kinds = [type(value) if isinstance(value, (float, np.generic)) else ndarray for value in found]
    direction = None
    if along is not None:
        direction = as_column(made, vectors_like(made.leaves, made.structure, along, "v"))[:, 0]
    made.recording = Recording(record, arguments, second, has_aux, direction)
    made.output, made.aux = made.recording.value, made.recording.aux
    return made


def _plain(value: Any) -> Any:
    """An argument with values in the places of tensors."""
    if not holds_tensors(value):
        return value
    found: list[Any] = []
    structure = flatten(value, found)
    return restore(structure, iter([value_of(leaf) if isinstance(leaf, Tensor) else leaf for leaf in found]))


def _is_general(arg: Any) -> bool:
    return isinstance(arg, (Tensor, tuple)) and holds_tensors(arg)


def parts_of(vector: np.ndarray, leaves: Sequence[Tensor]) -> list[np.ndarray]:
    """A vector over all inputs cut into arrays of the shapes and types of the leaves."""
    parts, done = [], 0
    for leaf in leaves:
        shape = np.shape(leaf._data)
        size = int(np.prod(shape))
        parts.append(vector[done : done + size].reshape(shape).astype(array_of(leaf).dtype, copy=False))
        done += size
    return parts


def compiled_gradient(f: Any, argnums: Argnums, general: Callable[..., Any]) -> Callable[..., Any]:
    """Value and gradient without anything between the call and the sweep where arguments are what they mostly are.

    `general` is called where they are not: keywords, containers, tensors, results that are no numbers.
    """
    record: Any = None
    single = isinstance(argnums, (int, np.integer))

    @functools.wraps(f, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        nonlocal record
        if record is None:
            found = recorder(f, check_argnums(argnums, len(args), "grad"))
            if len(args) == found.count:  # with fewer, negative numbers mean other arguments
                record = found
        if record is None or kwargs or len(args) != record.count or not record.plain or any(map(_is_general, args)):
            return general(*args, **kwargs)
        for k in record.argnums:
            if type(args[k]) is not ndarray and type(args[k]) is not float:
                return general(*args)
        arguments = record.arguments(args, kwargs)
        columns = take()
        try:
            value, row = record.record(columns, arguments)
            if type(value) is not float:
                return general(*args)
            bar = gradient(columns, row)
            first, parts = 1, []
            for k in record.argnums:
                point = arguments[k]
                if type(point) is float:
                    parts.append(bar.item(first))
                    first += 1
                else:
                    last = first + point.size
                    part = bar[first:last].copy()
                    part = part if point.ndim == 1 else part.reshape(point.shape)
                    parts.append(part if point.dtype is FLOAT64 else part.astype(point.dtype))
                    first = last
        finally:
            give_back(columns)
        return value, (parts[0] if single else tuple(parts))

    return value_and_gradient
