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
MOST_SUMS = 64  # a worker holds at a time: those that were used longest ago are given up, and would be shipped again


def _work_at(token: str, number: int, payload: tuple[Any, Any] | None, work: Work, arguments: tuple[Any, ...]) -> Any:
    """Do a piece of work in a worker; with a payload it keeps the function and the shard for later."""
    with _holding:
        own = _held.pop(token, {})
        _held[token] = own
        while len(_held) > MOST_SUMS:
            del _held[next(iter(_held))]
    if payload is not None:
        own[FUNCTION], own[number] = payload[0], made(_owned(payload[1]))
    elif number not in own:
        return MISSING
    return work(own[FUNCTION], own[number], *arguments)


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

    def _call(self, number: int, ships: bool, work: Work, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        payload = (self._f, self._shards[number]) if ships else None
        return self._token, number, payload, work, arguments

    def apply(self, work: Work, *arguments: Any) -> list[Any]:
        calls = [self._call(k, not shipped, work, arguments) for k, shipped in enumerate(self._shipped)]
        found = self._runner.run(_work_at, calls)
        self._shipped = [True] * len(self._shards)
        missing = [k for k, result in enumerate(found) if _is_missing(result)]
        again = self._runner.run(_work_at, [self._call(k, True, work, arguments) for k in missing]) if missing else []
        for k, result in zip(missing, again, strict=True):
            found[k] = result
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
