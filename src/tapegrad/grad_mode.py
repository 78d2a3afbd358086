"""Whether operations are recorded: `no_grad`, `enable_grad`, `set_grad_enabled`; a setting of each thread."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, TypeVar

from tapegrad.tape import TAPE

__all__ = ["enable_grad", "is_grad_enabled", "no_grad", "set_grad_enabled", "without_recording"]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
_lock = threading.RLock()  # the collector may end a thread's state anywhere
GENERATOR = 0x20  # code flag; importing `inspect` for it would double the cost of this module


class _State:
    """The mode of one thread; dies with the thread."""

    __slots__ = ("enabled",)

    def __init__(self) -> None:
        self.enabled = True

    def __del__(self) -> None:
        # A thread that ends while its mode is off no longer counts.
        if not self.enabled:
            with _lock:
                for step in TAPE.recording_off_steps(TAPE.recording_off - 1):
                    step()


class _Thread(threading.local):
    def __init__(self) -> None:
        self.state = _State()


_thread = _Thread()


def is_grad_enabled() -> bool:
    """Whether this thread records operations on tracked tensors.

    Examples
    --------
    >>> with tg.no_grad():
    ...     tg.is_grad_enabled()
    False
    """
    return _thread.state.enabled


def _switch(enabled: bool) -> bool:
    """Set this thread's mode; the mode before."""
    state = _thread.state
    before = state.enabled
    if before != enabled:
        # Operators look at the counter first: while no thread has recording off, they need not find their thread's mode.
        with _lock:
            count = TAPE.recording_off + (-1 if enabled else 1)
            # No bytecode between these steps, so no interrupt comes between them.
            tuple(map(partial.__call__, (*TAPE.recording_off_steps(count), partial(setattr, state, "enabled", enabled))))
    return before


def without_recording(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function with recording off in this thread."""
    before = _thread.state.enabled
    try:
        _switch(False)
        return function(*arguments)
    finally:
        try:
            _switch(before)
        except BaseException:  # an interrupt hit the way back
            _switch(before)
            raise


class _Mode:
    """A context manager, and a decorator for functions and generators, that sets the mode inside."""

    __slots__ = ("_before", "_wanted")

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(_switch(self._wanted))

    def __exit__(self, *exception: object) -> None:
        _switch(self._before.pop())

    def __call__(self, function: F) -> F:
        wanted = self._wanted
        if _is_generator(function):
            return _wrap_generator(function, wanted)  # type: ignore[return-value]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            before = _switch(wanted)
            try:
                return function(*args, **kwargs)
            finally:
                _switch(before)

        return call  # type: ignore[return-value]


def _is_generator(function: Any) -> bool:
    return bool(getattr(getattr(function, "__code__", None), "co_flags", 0) & GENERATOR)


def _wrap_generator(function: Callable[..., Generator[Any, Any, Any]], wanted: bool) -> Callable[..., Any]:
    """The mode holds only while the generator itself runs."""

    @functools.wraps(function)
    def generate(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        before = _switch(wanted)
        try:
            source = function(*args, **kwargs)
        finally:
            _switch(before)
        step: Callable[[], Any] = functools.partial(next, source)
        while True:
            before = _switch(wanted)
            try:
                item = step()
            except StopIteration as stop:
                return stop.value
            finally:
                _switch(before)
            try:
                sent = yield item
            except GeneratorExit:
                before = _switch(wanted)
                try:
                    source.close()
                finally:
                    _switch(before)
                raise
            except BaseException as error:
                step = functools.partial(source.throw, error)
            else:
                step = functools.partial(source.send, sent)

    return generate


class _Fixed(_Mode):
    """A mode that may be given the function it decorates: ``@no_grad`` as well as ``@no_grad()``."""

    __slots__ = ()
    _inside: bool

    def __new__(cls, function: F | None = None) -> Any:
        """The context manager, or, given a function, the function decorated."""
        if function is not None:
            return cls()(function)
        return super().__new__(cls)

    def __init__(self, function: Any = None) -> None:
        super().__init__(self._inside)


class no_grad(_Fixed):  # noqa: N801 - PyTorch's name
    """Switch recording off inside a ``with`` block or a decorated function.

    Examples
    --------
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> with tg.no_grad():
    ...     y = x * x
    >>> y.requires_grad
    False
    """

    __slots__ = ()
    _inside = False


class enable_grad(_Fixed):  # noqa: N801 - PyTorch's name
    """Switch recording on inside a ``with`` block or a decorated function.

    Examples
    --------
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> with tg.no_grad(), tg.enable_grad():
    ...     y = x * x
    >>> y.requires_grad
    True
    """

    __slots__ = ()
    _inside = True


class set_grad_enabled(_Mode):  # noqa: N801 - PyTorch's name
    """Switch recording on or off: at once, and back at the end of the block if used with ``with``.

    Parameters
    ----------
    mode : bool
        Whether to record.

    Examples
    --------
    >>> with tg.set_grad_enabled(False):
    ...     tg.is_grad_enabled()
    False
    """

    __slots__ = ("_outside",)

    def __init__(self, mode: bool) -> None:
        super().__init__(bool(mode))
        self._outside = _switch(self._wanted)

    def __enter__(self) -> None:
        self._before.append(self._outside)
        _switch(self._wanted)

    def __call__(self, function: F) -> F:
        """Decorate a function; the mode of the surroundings is restored first."""
        _switch(self._outside)
        return super().__call__(function)
