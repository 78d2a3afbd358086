"""A function at many points: its results at each, with a leading axis."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.drivers.containers import Structure, flatten, restore

__all__ = ["InAxes", "Many", "Points", "at_each", "map_of", "mapped", "places_of"]

InAxes = int | None | Sequence[int | None]


def mapped(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    in_axes: InAxes | None,
    many: Many | None = None,
    executor: Any = None,
    made_by: tuple[Any, ...] = (),
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
        ``many(arguments, numbers, share)`` gives, for points of these numbers, which of them it has done, and an array for each
        part of the result with those of these points. They are a share of all points.
    executor : Executor, distributed.Client, joblib.Parallel, "joblib", "ray" or None
        Whose workers compute the points; None for this process.
    made_by : tuple
        The place of a driver and its arguments that make the function where it cannot be pickled.

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
    if executor is None or not count:
        return at_each(function, taken, kwargs, many, 0, count)
    return look_up("drivers.maps_on_executors:at_each_by_workers")(function, made_by, taken, kwargs, count, executor)


def at_each(
    function: Callable[..., Any], taken: Sequence[Points], kwargs: dict[str, Any], many: Many | None, first: int, whole: int
) -> Any:
    """As `mapped`, at points that are a part of a whole: those from the number `first`.

    A point that many are computed with is so as well if it was computed by itself before, so that what it gives does not depend on
    the part that it is in.
    """
    run = function.__settled__ if hasattr(type(function), "__settled__") else function  # type: ignore[attr-defined]
    count = next(one.count for one in taken if one.count is not None)
    share = max(count, 1) / max(whole, 1)
    found: dict[int, list[Any]] = {}  # of points one by one
    done: list[tuple[np.ndarray, Sequence[np.ndarray]]] = []
    structure: Structure = None
    pending = np.arange(max(count, 1))
    asking = 1  # after so many points one by one, which doubles when there is nothing yet that takes many
    while len(pending):
        k, pending = int(pending[0]), pending[1:]
        try:
            result = run(*(one.at(k) if count else one.unknown() for one in taken), **kwargs)
        except Exception as error:
            error.add_note(f"at point {first + k} of {whole}")
            raise
        leaves: list[Any] = []
        structure = flatten(result, leaves)
        found[k] = leaves
        if many is None or kwargs or whole < 2 or len(found) < asking:
            continue
        if (more := many(taken, np.concatenate(([k], pending)), share)) is None:
            asking *= 2
        else:
            done.append(more)
            pending = pending[:0] if len(more[0]) > len(pending) else np.setdiff1d(pending, more[0], assume_unique=True)
    parts = [np.stack(leaves)[:count] for leaves in zip(*found.values(), strict=True)]
    numbers = list(found)
    return restore(structure, (_together(part, numbers, done, k, count) for k, part in enumerate(parts)) if done else iter(parts))


def _together(
    part: np.ndarray, numbers: list[int], done: Sequence[tuple[np.ndarray, Sequence[np.ndarray]]], k: int, count: int
) -> np.ndarray:
    """Results of points one by one, and of many at once, in the order of the points."""
    if len(done) == 1 and len(done[0][0]) == count and done[0][1][k].dtype == part.dtype:  # all of them
        return done[0][1][k]
    whole = np.empty((count, *part.shape[1:]), part.dtype)
    whole[numbers] = part
    for which, leaves in done:
        whole[places_of(which)] = leaves[k]
    return whole


def places_of(numbers: np.ndarray) -> slice | np.ndarray:
    """Increasing numbers as an index, which is a slice where they are consecutive."""
    first, last = int(numbers[0]), int(numbers[-1])
    return slice(first, last + 1) if last - first + 1 == len(numbers) else numbers


def map_of(function: Callable[..., Any], many: Many | None = None, made_by: tuple[Any, ...] = ()) -> Callable[..., Any]:
    """`mapped` as a method of a function: ``map(*args, in_axes=None, executor=None, **kwargs)``."""

    def map(*args: Any, in_axes: InAxes | None = None, executor: Any = None, **kwargs: Any) -> Any:
        return mapped(function, args, kwargs, in_axes, many, executor, made_by)

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
        self._structure: Structure = None
        if axis is None:
            return
        leaves: list[Any] = []
        self._structure = flatten(value, leaves)
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

    def between(self, first: int, end: int) -> Points:
        """The same at consecutive points."""
        if self.count is None:
            return self
        part = Points(None, None, 0)
        part.count, part._structure = end - first, self._structure
        part.leaves = [array[first:end] for array in self.leaves]
        return part

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


Many = Callable[[Sequence[Points], np.ndarray, float], tuple[np.ndarray, list[np.ndarray]] | None]
