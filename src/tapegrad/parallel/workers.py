"""Who computes parts: this process, an executor of `concurrent.futures`, or a client of Dask.

Each has one method, which applies a piece of work to every shard and gives the results in the order of the shards. Shards are
shipped once to each worker and stay there. A shard that is a function without arguments is called where it is needed first.
"""

from __future__ import annotations

import threading
import uuid
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any

__all__ = ["Workers", "apply_in_order", "workers_for"]

Work = Callable[..., Any]  # work(f, shard, *arguments)


class Workers(ABC):
    """Those who hold shards of one sum."""

    @abstractmethod
    def apply(self, work: Work, *arguments: Any) -> list[Any]:
        """``work(f, shard, *arguments)`` for every shard, in their order."""


def made(shard: Any) -> Any:
    """A shard, made if it is a function that makes one."""
    return shard() if callable(shard) else shard


class _Here(Workers):
    """This process, one shard after the other."""

    def __init__(self, f: Any, shards: Sequence[Any]) -> None:
        self._f, self._shards = f, [made(shard) for shard in shards]

    def apply(self, work: Work, *arguments: Any) -> list[Any]:
        return [work(self._f, shard, *arguments) for shard in self._shards]


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
        own[FUNCTION], own[number] = payload[0], made(payload[1])
    elif number not in own:
        return MISSING
    return work(own[FUNCTION], own[number], *arguments)


def _forget(token: str) -> None:
    with _holding:
        _held.pop(token, None)


class _Pool(Workers):
    """An executor of `concurrent.futures`, any of whose workers may be given any shard: one that has it not is sent it."""

    def __init__(self, f: Any, shards: Sequence[Any], executor: Executor) -> None:
        self._f, self._shards, self._executor = f, list(shards), executor
        self._token = uuid.uuid4().hex
        self._shipped = [False] * len(self._shards)
        weakref.finalize(self, _forget, self._token)  # threads hold their shards in this process

    def _submit(self, number: int, ships: bool, work: Work, arguments: tuple[Any, ...]) -> Any:
        payload = (self._f, self._shards[number]) if ships else None
        return self._executor.submit(_work_at, self._token, number, payload, work, arguments)

    def apply(self, work: Work, *arguments: Any) -> list[Any]:
        tasks = [self._submit(k, not shipped, work, arguments) for k, shipped in enumerate(self._shipped)]
        found = [task.result() for task in tasks]
        self._shipped = [True] * len(self._shards)
        again = {k: self._submit(k, True, work, arguments) for k, result in enumerate(found) if _is_missing(result)}
        for k, task in again.items():
            found[k] = task.result()
        return found


def _is_missing(result: Any) -> bool:
    return isinstance(result, str) and result == MISSING


class _Dask(Workers):
    """A client of Dask. Function and shards are results of tasks, so that Dask makes them again if a worker is lost."""

    def __init__(self, f: Any, shards: Sequence[Any], client: Any) -> None:
        self._client = client
        self._f = client.submit(_same, f, pure=False)
        self._shards = [client.submit(made, shard, pure=False) for shard in shards]

    def apply(self, work: Work, *arguments: Any) -> list[Any]:
        found: list[Any] = self._client.gather(
            [self._client.submit(work, self._f, shard, *arguments, pure=False) for shard in self._shards]
        )
        return found


def _same(value: Any) -> Any:
    return value


def _is_dask(executor: Any) -> bool:
    return hasattr(executor, "scatter") and hasattr(executor, "gather") and hasattr(executor, "submit")


def workers_for(f: Any, shards: Sequence[Any], executor: Any) -> Workers:
    """Those who will hold the shards.

    Raises
    ------
    TypeError
        If the executor is none.
    """
    if executor is None:
        return _Here(f, shards)
    if _is_dask(executor):
        return _Dask(f, shards, executor)
    if hasattr(executor, "submit"):
        return _Pool(f, shards, executor)
    raise TypeError(
        f"an executor is one of concurrent.futures, a distributed.Client, or None for this process, not {type(executor).__name__}"
    )


def apply_in_order(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], executor: Any) -> list[Any]:
    """``function(*one)`` for each of the arguments, in their order."""
    if executor is None:
        return [function(*one) for one in arguments]
    if _is_dask(executor):
        found: list[Any] = executor.gather([executor.submit(function, *one, pure=False) for one in arguments])
        return found
    if not hasattr(executor, "submit"):
        workers_for(function, (), executor)
    tasks = [executor.submit(function, *one) for one in arguments]
    return [task.result() for task in tasks]
