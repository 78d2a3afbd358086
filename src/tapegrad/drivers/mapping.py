"""A function at many points: its results at each, with a leading axis."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tapegrad.drivers.containers import Structure, flatten, restore

__all__ = ["InAxes", "Many", "Points", "map_of", "mapped", "places_of"]

InAxes = int | None | Sequence[int | None]


def mapped(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], in_axes: InAxes | None, many: Many | None = None
) -> Any:
    """The results of a function at many points.

    Parameters
    ----------
    function : callable
        Its results are numbers, arrays, and containers of these, of the same structure and shapes at all points.
    args : tuple
        Its arguments, of which some have one axis more than the function takes: that of the points.
    kwargs : dict
        Further arguments, the same at all points.
    in_axes : int, None or sequence of these
        Which axis that is, for all arguments or for each; None if an argument is the same at all points. Of containers it is that
        of each array in them. By default the first argument has the points in its axis 0, and the others are the same.
    many : callable, optional
        ``many(arguments, numbers)`` gives, for points of these numbers, which of them it has done, and an array for each part of
        the result with those of these points.

    Returns
    -------
    object
        The structure of one result, of arrays with the points in axis 0.

    Raises
    ------
    ValueError
        If no argument is mapped, there is no such axis, or numbers of points differ.

    Notes
    -----
    What the function raises has a note with the number of its point. Without points it is called once with nan in their places,
    which says of what shapes the empty results are.
    """
    axes = _axes(in_axes, len(args))
    taken = [Points(value, axis, k) for k, (value, axis) in enumerate(zip(args, axes, strict=True))]
    counts = {k: one.count for k, one in enumerate(taken) if one.count is not None}
    if not counts:
        raise ValueError(f"map: in_axes={in_axes!r} maps no argument; one axis at least must have the points")
    count = next(iter(counts.values()))
    if any(other != count for other in counts.values()):
        raise ValueError(f"map: arguments have different numbers of points: {counts}")
    found: list[list[Any]] = []
    numbers: list[int] = []  # of the points of these
    done: list[tuple[np.ndarray, Sequence[np.ndarray]]] = []
    structure: Structure = None
    pending = np.arange(max(count, 1))
    asking = 1  # after so many points one by one, which doubles when there is nothing yet that takes many
    while len(pending):
        k, pending = int(pending[0]), pending[1:]
        try:
            result = function(*(one.at(k) if count else one.unknown() for one in taken), **kwargs)
        except Exception as error:
            error.add_note(f"at point {k} of {count}")
            raise
        leaves: list[Any] = []
        structure = flatten(result, leaves, [], "")
        found.append(leaves)
        numbers.append(k)
        if many is None or kwargs or not len(pending) or len(numbers) < asking:
            continue
        if (more := many(taken, pending)) is None:
            asking *= 2
        else:
            done.append(more)
            pending = pending[:0] if len(more[0]) == len(pending) else np.setdiff1d(pending, more[0], assume_unique=True)
    parts = [np.stack(leaves)[:count] for leaves in zip(*found, strict=True)]
    return restore(structure, (_together(part, numbers, done, k) for k, part in enumerate(parts)) if done else iter(parts))


def _together(part: np.ndarray, numbers: list[int], done: Sequence[tuple[np.ndarray, Sequence[np.ndarray]]], k: int) -> np.ndarray:
    """Results of points one by one, and of many at once, in the order of the points."""
    whole = np.empty((len(numbers) + sum(len(which) for which, _ in done), *part.shape[1:]), part.dtype)
    whole[numbers] = part
    for which, leaves in done:
        whole[places_of(which)] = leaves[k]
    return whole


def places_of(numbers: np.ndarray) -> slice | np.ndarray:
    """Increasing numbers as an index, which is a slice where they are consecutive."""
    first, last = int(numbers[0]), int(numbers[-1])
    return slice(first, last + 1) if last - first + 1 == len(numbers) else numbers


def map_of(function: Callable[..., Any], many: Many | None = None) -> Callable[..., Any]:
    """`mapped` as a method of a function: ``map(*args, in_axes=None, **kwargs)``."""

    def map(*args: Any, in_axes: InAxes | None = None, **kwargs: Any) -> Any:
        return mapped(function, args, kwargs, in_axes, many)

    return map


def _axes(in_axes: InAxes | None, count: int) -> list[int | None]:
    if in_axes is None:
        return [0, *[None] * (count - 1)]
    if isinstance(in_axes, (list, tuple)):
        if len(in_axes) != count:
            raise ValueError(f"map: in_axes={in_axes!r} is for {len(in_axes)} arguments, but there are {count}")
        return [None if axis is None else operator.index(axis) for axis in in_axes]
    return [operator.index(in_axes)] * count  # type: ignore[arg-type]


class Points:
    """An argument at many points.

    Attributes
    ----------
    value : object
        The argument.
    count : int or None
        How many points it has; None if it is the same at all.
    leaves : list of ndarray
        The arrays in it, with the points in axis 0.
    """

    __slots__ = ("_structure", "count", "leaves", "value")

    def __init__(self, value: Any, axis: int | None, number: int) -> None:
        self.value, self.count = value, None
        self.leaves: list[np.ndarray] = []
        if axis is None:
            return
        leaves: list[Any] = []
        self._structure = flatten(value, leaves, [], "")
        for leaf in leaves:
            array = np.asarray(leaf)
            if not -array.ndim <= axis < array.ndim:
                raise ValueError(f"map: argument {number} has no axis {axis}: an array in it has shape {array.shape}")
            self.leaves.append(np.moveaxis(array, axis, 0))
        counts = {len(array) for array in self.leaves}
        if len(counts) != 1:
            raise ValueError(f"map: argument {number} has different numbers of points: {sorted(counts)}")
        (self.count,) = counts

    def at(self, k: int) -> Any:
        """The argument at one point."""
        return self.value if self.count is None else restore(self._structure, self._of(k))

    def unknown(self) -> Any:
        """The argument at no point: nan, and zero for integers."""
        if self.count is None:
            return self.value
        empty = (np.full(a.shape[1:], np.nan if a.dtype.kind == "f" else 0, a.dtype) for a in self.leaves)
        return restore(self._structure, (part if part.ndim else part[()] for part in empty))

    def _of(self, k: int) -> Iterator[Any]:
        for array in self.leaves:
            part = array[k]
            yield part if part.ndim else part[()]


Many = Callable[[Sequence[Points], np.ndarray], tuple[np.ndarray, list[np.ndarray]] | None]
