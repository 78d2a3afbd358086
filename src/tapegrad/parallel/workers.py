"""Who computes parts of a sum: workers of an executor, which hold the shards.

There is one method, which applies a piece of work to every shard and gives the results in the order of the shards. Shards are
shipped once to each worker and stay there. A shard that is a function without arguments is called where it is needed first.
"""

from __future__ import annotations

import threading
import uuid
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.executors import Runner, runner_for

__all__ = ["Workers", "workers_for"]

Work = Callable[..., Any]  # work(f, shard, *arguments)


class Workers(ABC):
    """Those who hold shards of one sum."""

    @abstractmethod
    def apply(self, work: Work, *arguments: Any) -> list[Any]:
        """``work(f, shard, *arguments)`` for every shard, in their order."""


def made(shard: Any) -> Any:
    """A shard, made if it is a function that makes one."""
    return shard() if callable(shard) else shard


class _Keepers(Workers):
    """Those who keep results: function and shards are such, so that they are made again if a worker is lost."""

    def __init__(self, f: Any, shards: Sequence[Any], runner: Runner) -> None:
        self._runner = runner
        self._f = runner.keep(_same, f)
        self._shards = [runner.keep(made, shard) for shard in shards]

    def apply(self, work: Work, *arguments: Any) -> list[Any]:
        return self._runner.run(work, [(self._f, shard, *arguments) for shard in self._shards])


def _same(value: Any) -> Any:
    return value


# What this process holds for sums of others: the function, and the shards by number.
_held: dict[str, dict[int, Any]] = {}
_holding = threading.Lock()
MISSING = "tapegrad: this worker does not have the shard"
FUNCTION = -1
GROUPS = 3  # of shards for each worker, so that one that is slow for a while does less
MOST_SUMS = 64  # a worker holds at a time: those that were used longest ago are given up, and would be shipped again


def _work_at(token: str, shards: Sequence[tuple[int, Any]], work: Work, arguments: tuple[Any, ...]) -> list[Any]:
    """Do a piece of work at some shards in a worker, which keeps the function and the shards that come with payloads for later."""
    with _holding:
        own = _held.pop(token, {})
        _held[token] = own
        while len(_held) > MOST_SUMS:
            del _held[next(iter(_held))]
    found: list[Any] = []
    for number, payload in shards:
        if payload is not None:
            own[FUNCTION], own[number] = payload[0], made(_owned(payload[1]))
        found.append(work(own[FUNCTION], own[number], *arguments) if number in own else MISSING)
    return found


def _owned(shard: Any) -> Any:
    """A shard whose arrays stay: joblib hands large ones over in files that it deletes."""
    if isinstance(shard, tuple | list):
        return type(shard)([_owned(part) for part in shard])
    return np.array(shard) if isinstance(shard, np.memmap) else shard


def _forget(token: str) -> None:
    with _holding:
        _held.pop(token, None)


class _Pool(Workers):
    """Any of these workers may be given any shard: one that has it not is sent it."""

    def __init__(self, f: Any, shards: Sequence[Any], runner: Runner) -> None:
        self._f, self._shards, self._runner = f, list(shards), runner
        self._token = uuid.uuid4().hex
        self._shipped = [False] * len(self._shards)
        weakref.finalize(self, _forget, self._token)  # threads hold their shards in this process

    def _shard(self, number: int, ships: bool) -> tuple[int, Any]:
        return number, (self._f, self._shards[number]) if ships else None

    def _run(self, numbers: Sequence[int], work: Work, arguments: tuple[Any, ...]) -> list[Any]:
        """In consecutive groups: a call of a process by itself takes a quarter of a millisecond of this one."""
        count = len(numbers)
        parts = min(GROUPS * self._runner.workers, count) or count
        groups = [numbers[count * k // parts : count * (k + 1) // parts] for k in range(parts)]
        calls = [(self._token, [self._shard(k, not self._shipped[k]) for k in group], work, arguments) for group in groups]
        return [result for group in self._runner.run(_work_at, calls) for result in group]

    def apply(self, work: Work, *arguments: Any) -> list[Any]:
        found = self._run(range(len(self._shards)), work, arguments)
        missing = [k for k, result in enumerate(found) if _is_missing(result)]
        self._shipped = [k not in missing for k in range(len(self._shards))]
        for k, result in zip(missing, self._run(missing, work, arguments), strict=True):
            found[k] = result
        self._shipped = [True] * len(self._shards)
        return found


def _is_missing(result: Any) -> bool:
    return isinstance(result, str) and result == MISSING


def workers_for(f: Any, shards: Sequence[Any], executor: Any) -> Workers:
    """Those who will hold the shards.

    Raises
    ------
    ModuleNotFoundError
        If an executor's library is asked for by name, and is not installed.
    TypeError
        If the executor is none.
    """
    runner = runner_for(executor)
    return _Keepers(f, shards, runner) if runner.keeps else _Pool(f, shards, runner)
