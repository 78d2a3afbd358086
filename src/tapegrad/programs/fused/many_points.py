"""Machine code of a path for many points: values and gradients of some thousand at a time, eight side by side."""

from __future__ import annotations

import ctypes
import functools
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import numpy as np

from tapegrad.programs.fused.adjoints import PathExpressions
from tapegrad.programs.fused.expressions import NUMBERS
from tapegrad.programs.fused.machine_code import compiled, memory_of, text_of
from tapegrad.programs.steps import Step, Value

__all__ = ["CHUNK", "ManyPoints"]

Array = np.ndarray[Any, Any]
CHUNK = 4096  # points that are computed at once, in memory of which much stays in the cache


class ManyPoints:
    """Compiled values and gradients of a path at many points.

    Parameters
    ----------
    steps, inputs, leaves, output
        Of the path.
    shared : frozenset of int
        Inputs that are the same at all points.

    Attributes
    ----------
    agrees : bool
        Whether it has given what the steps give, at one point.

    Notes
    -----
    Each point is computed on its own: what it gives depends neither on its neighbours nor on the number of threads.
    """

    __slots__ = ("_address", "_end", "_engine", "_path", "_shapes", "_shared", "agrees")

    def __init__(
        self,
        steps: Sequence[Step],
        inputs: Sequence[Value],
        leaves: Sequence[Value],
        output: Value,
        shared: frozenset[int],
        fast: bool = False,
    ) -> None:
        self._path = PathExpressions(steps, inputs, leaves, [output], CHUNK, shared, fast)
        text = text_of(self._path)
        self._engine, self._address = compiled(text.text)
        self._end = text.end
        self._shared, self.agrees = shared, False
        self._shapes = [value.array.shape for value in leaves]

    def results(
        self, values: Sequence[Any], count: int, threads: int = 1
    ) -> tuple[np.ndarray[Any, Any], list[Any], np.ndarray[Any, Any]]:
        """Values, gradients, and where the function goes another way.

        Parameters
        ----------
        values : sequence
            Of the inputs: arrays with the points in axis 0, or what is the same at all of them.
        count : int
            Number of points.
        threads : int

        Returns
        -------
        ndarray, shape (count,)
        list of ndarray
            With the points in axis 0.
        ndarray of bool, shape (count,)
        """
        value, failed = np.empty(count), np.zeros(count, bool)
        gradients = [np.empty((count, *shape)) for shape in self._shapes]
        starts = deque(range(0, count, CHUNK))
        run = functools.partial(self._run, values, value, gradients, failed, starts)
        with ThreadPoolExecutor(threads) if min(threads, len(starts)) > 1 else nullcontext() as pool:
            others = [] if pool is None else [pool.submit(run) for _ in range(min(threads, len(starts)) - 1)]
            try:
                run()
            finally:
                starts.clear()  # also if it was interrupted
            for other in others:
                other.result()
        return value, gradients, failed

    def _run(self, values: Sequence[Any], value: Any, gradients: Sequence[Any], failed: Any, starts: deque[int]) -> None:
        """What one thread does, in memory of its own: some thousand points after the other, as long as there are any."""
        path = self._path
        memory, table = memory_of(path, self._end)
        inputs = []
        for k, ((buffer, slot), given) in enumerate(zip(path.inputs, values, strict=True)):
            if buffer == NUMBERS:
                memory[NUMBERS][slot] = given
            elif k in self._shared:
                memory[buffer][:] = np.reshape(given, -1)
            else:
                inputs.append((memory[buffer].reshape(-1, CHUNK), given.reshape(len(given), -1)))
        results = [
            (memory[buffer].reshape(-1, CHUNK), gradient.reshape(len(gradient), -1))
            for (buffer, _), gradient in zip(path.gradients, gradients, strict=True)
        ]
        own_value, guards = memory[path.value[0]], memory[path.guards[0]]
        run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(self._address)
        address = table.ctypes.data
        while starts:
            try:
                start = starts.popleft()
            except IndexError:  # another thread was quicker
                return
            stop = min(start + CHUNK, len(value))
            count = stop - start
            for own, given in inputs:
                own[:, :count] = given[start:stop].T
                own[:, count:] = own[:, count - 1 : count]
            run(None, None, None, address)
            value[start:stop] = own_value[:count]
            for own, g in results:
                g[start:stop] = own[:, :count].T
            failed[start:stop] = guards[:count] != 0.0
