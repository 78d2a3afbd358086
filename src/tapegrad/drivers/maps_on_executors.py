"""Maps whose points are computed by the workers of an executor."""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.drivers.containers import flatten, restore
from tapegrad.drivers.mapping import Points, at_each
from tapegrad.executors import runner_for

__all__ = ["at_each_by_workers"]

PARTS = 32  # of a map, at most: a few for each of some workers, and the same for any number of them


def at_each_by_workers(
    function: Callable[..., Any],
    made_by: tuple[Any, ...],
    taken: Sequence[Points],
    kwargs: dict[str, Any],
    count: int,
    executor: Any,
) -> Any:
    """The results of a function at many points, in consecutive parts; see `tapegrad.drivers.mapping.mapped`.

    Parameters
    ----------
    function : callable
    made_by : tuple
        What it is made of where it cannot be pickled: the place of a driver, and its arguments. Empty if it can.
    taken : sequence of Points
        Its arguments.
    kwargs : dict
    count : int
        How many points there are.
    executor : Executor, distributed.Client, joblib.Parallel, "joblib" or "ray"
    """
    runner = runner_for(executor)
    if runner.in_this_process:  # whose threads would wait for each other at each path: its machine code has threads of its own
        many = getattr(function, "__many__", None)
        return at_each(function, taken, kwargs, many and functools.partial(many, threads=runner.workers), 0, count)
    shipped = _shipped(function, made_by)
    parts = min(count, PARTS)
    ends = [count * k // parts for k in range(parts + 1)]
    calls = [(shipped, [one.between(first, end) for one in taken], kwargs, first, count) for first, end in itertools.pairwise(ends)]
    found = runner.run(_part, calls)
    leaves: list[list[Any]] = []
    for part in found:
        own: list[Any] = []
        structure = flatten(part, own)
        leaves.append(own)
    return restore(structure, (np.concatenate(same) for same in zip(*leaves, strict=True)))


def _shipped(function: Any, made_by: tuple[Any, ...]) -> Any:
    """A function as workers get it: its bytes where they are made again once, and else itself."""
    if made_by:
        function = _Driver(made_by)
    try:
        return pickle.dumps(function)
    except Exception:
        return function  # Dask, joblib and Ray have a way for functions of no module; others say why there is none


class _Driver:
    """A driver's function, by what it is made of."""

    def __init__(self, made_by: tuple[Any, ...]) -> None:
        self.made_by = made_by

    def made(self) -> Any:
        place, *arguments = self.made_by
        return look_up(place)(*arguments)


@functools.lru_cache(maxsize=32)
def _received(content: bytes) -> Any:
    """A function, which keeps what it recorded for further parts."""
    found = pickle.loads(content)
    return found.made() if isinstance(found, _Driver) else found


def _part(shipped: Any, taken: Sequence[Points], kwargs: dict[str, Any], first: int, count: int) -> Any:
    """The results at the points of a part."""
    function = _received(shipped) if isinstance(shipped, bytes) else shipped.made() if isinstance(shipped, _Driver) else shipped
    return at_each(function, taken, kwargs, getattr(function, "__many__", None), first, count)
