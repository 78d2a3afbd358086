"""Who runs calls: this process, executors of `concurrent.futures`, a client of Dask, joblib, Ray.

Each is given calls of a function and gives their results in the same order. Libraries are imported where they are asked for.
"""

from __future__ import annotations

import functools
import importlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

__all__ = ["Calls", "Runner", "runner_for"]

Calls = Sequence[tuple[Any, ...]]  # the arguments of each


class Runner(ABC):
    """Runs calls, and keeps what they gave if it can.

    Attributes
    ----------
    keeps : bool
        Whether `keep` is there: results stay where they were computed, and are computed again if they are lost.
    in_this_process : bool
        Whether calls see the objects of this process.
    workers : int
        How many calls run at a time; 0 if that is not known.
    """

    keeps = False
    in_this_process = False
    workers = 0

    @abstractmethod
    def run(self, function: Callable[..., Any], calls: Calls) -> list[Any]:
        """``function(*arguments)`` for all arguments, in their order."""

    def keep(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What stands for a result that is not fetched, as an argument of other calls."""
        raise NotImplementedError


class _Here(Runner):
    """This process, one call after the other."""

    keeps = in_this_process = True

    def run(self, function: Callable[..., Any], calls: Calls) -> list[Any]:
        return [function(*arguments) for arguments in calls]

    def keep(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)


class _Futures(Runner):
    """An executor of `concurrent.futures`, or of another library with its ``submit``."""

    def __init__(self, executor: Any) -> None:
        self._executor = executor
        self.in_this_process = isinstance(executor, ThreadPoolExecutor)
        self.workers = getattr(executor, "_max_workers", 0)

    def run(self, function: Callable[..., Any], calls: Calls) -> list[Any]:
        tasks = [self._executor.submit(function, *arguments) for arguments in calls]
        return [task.result() for task in tasks]


class _Dask(Runner):
    """A client of Dask, whose results stay with workers."""

    keeps = True

    def __init__(self, client: Any) -> None:
        self._client = client

    def run(self, function: Callable[..., Any], calls: Calls) -> list[Any]:
        found: list[Any] = self._client.gather([self.keep(function, *arguments) for arguments in calls])
        return found

    def keep(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._client.submit(function, *arguments, pure=False)


class _Joblib(Runner):
    """A ``joblib.Parallel``, or one with what ``joblib.parallel_config`` says."""

    def __init__(self, parallel: Any) -> None:
        self._parallel = parallel

    def run(self, function: Callable[..., Any], calls: Calls) -> list[Any]:
        return list(self._parallel((function, arguments, {}) for arguments in calls))


class _Ray(Runner):
    """Ray, whose results stay in its store of objects."""

    keeps = True

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        if not ray.is_initialized():
            ray.init()
        self._remote = functools.cache(ray.remote)

    def run(self, function: Callable[..., Any], calls: Calls) -> list[Any]:
        found: list[Any] = self._ray.get([self.keep(function, *arguments) for arguments in calls])
        return found

    def keep(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._remote(function).remote(*arguments)


def _imported(library: str) -> Any:
    try:
        return importlib.import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        message = f"executor={library!r} needs {library}: pip install 'tapegrad[{library}]'"
        raise ModuleNotFoundError(message, name=library) from None


def runner_for(executor: Any) -> Runner:
    """What runs calls on an executor.

    Parameters
    ----------
    executor : Executor, distributed.Client, joblib.Parallel, "joblib", "ray" or None

    Raises
    ------
    ModuleNotFoundError
        If a library is asked for by name, and is not installed.
    TypeError
        If it is none of these.
    """
    if executor is None:
        return _Here()
    if executor == "ray" or (executor is sys.modules.get("ray")):
        return _Ray(_imported("ray"))
    if executor == "joblib":
        return _Joblib(_imported("joblib").Parallel())
    if type(executor).__module__.partition(".")[0] == "joblib" and callable(executor):
        return _Joblib(executor)
    if hasattr(executor, "scatter") and hasattr(executor, "gather") and hasattr(executor, "submit"):
        return _Dask(executor)
    if hasattr(executor, "submit"):
        return _Futures(executor)
    raise TypeError(
        "an executor is one of concurrent.futures, a distributed.Client, a joblib.Parallel, 'joblib', 'ray', or None for this "
        f"process, not {executor!r}"
    )
