"""Whether operations are recorded: `no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode`; settings of each thread."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, TypeVar

from tapegrad.arrays.slots import offset_of
from tapegrad.engine import layout as at
from tapegrad.interrupts import at_once
from tapegrad.tape.tape import TAPE
from tapegrad.tensors import tensor as tensors
from tapegrad.tensors.inference_tensors import new_inference_tensor
from tapegrad.tensors.modes import Modes, ThreadModes, of_thread
from tapegrad.tensors.operator_dispatch import choosing, operand_type

__all__ = [
    "enable_grad",
    "in_gradient_mode",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "with_recording",
    "without_recording",
]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
_ADDRESS = TAPE.address
TAPE.header[at.OFFSETS + at.MODES_ENABLED] = offset_of(ThreadModes(), "enabled")
TAPE.header[at.OFFSETS + at.TAPE_RECORDING_OFF] = offset_of(TAPE, "recording_off")
TAPE.header[at.OFFSETS + at.TAPE_VERSIONS], TAPE.versions = offset_of(TAPE, "versions"), {}
GENERATOR = 0x20  # code flag; importing `inspect` for it would double the cost of this module


class _CountedModes(ThreadModes):
    """The modes of a thread that has set some; dies with the thread."""

    __slots__ = ()

    def __del__(self) -> None:
        # A thread that ends while a mode is on or off no longer counts.
        if self.inference or not self.enabled:
            with choosing:
                for step in _counting_steps(-1, -int(self.inference)):
                    step()


_new_tensor = object.__new__


def _new_by_mode(kind: type[tensors.Tensor]) -> tensors.Tensor:
    """A tensor, while some thread is in inference mode."""
    return new_inference_tensor() if kind is tensors.Tensor and of_thread.modes.inference else _new_tensor(kind)


def _counting_steps(off: int, inferring: int) -> tuple[partial[Any], ...]:
    """Calls that count further threads that do not record, and that are in inference mode."""
    # Operators look at the counter first: while no thread has recording off, they need not find their thread's mode.
    step = partial(TAPE.count_recording_off, _ADDRESS, off)
    if not inferring:
        return (step,)
    count = TAPE.inferring + inferring
    return (
        step,
        partial(setattr, TAPE, "inferring", count),
        partial(TAPE.header.__setitem__, at.TENSOR_TYPE, operand_type(count)),
        partial(setattr, tensors, "_new", _new_by_mode if count else _new_tensor),
    )


def _modes() -> ThreadModes:
    """This thread's modes, which count from now on."""
    state = of_thread.modes
    if type(state) is ThreadModes:
        for entry in ("switch_recording", "count_recording_off"):  # what loads them may be interrupted
            TAPE.compiled(entry)
        state = of_thread.modes = _CountedModes()
    return state


def _switch(enabled: bool, inference: bool | None = None) -> Modes:
    """Set this thread's modes, by default only gradient mode; the modes before."""
    state = _modes()
    before = state.enabled, state.inference
    if not before[1] and not inference:
        if TAPE.switch_recording(_ADDRESS, id(state), enabled) < 0:
            raise MemoryError
    elif inference is None:  # and in inference mode, where gradient mode makes no difference to the count
        state.enabled = enabled
    elif (enabled, inference) != before:
        with choosing:
            change = (inference or not enabled) - (before[1] or not before[0])
            count = _counting_steps(change, int(inference) - int(before[1]))
            at_once(*count, partial(setattr, state, "enabled", enabled), partial(setattr, state, "inference", inference))
    return before


def _in_mode(wanted: tuple[bool, bool | None], function: Callable[..., T], *arguments: Any) -> T:
    """Call a function with this thread's modes set, whatever interrupt comes when; what it sets itself ends with it."""
    state = of_thread.modes
    before = state.enabled, state.inference
    try:
        if wanted[0] != before[0] or wanted[1] not in (None, before[1]):
            _switch(*wanted)
        return function(*arguments)
    finally:
        state = of_thread.modes
        if (state.enabled, state.inference) != before:
            try:
                _switch(*before)
            except BaseException:  # an interrupt hit the way back
                _switch(*before)
                raise


def without_recording(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function with recording off in this thread."""
    state = _modes()
    inferring: bool = state.inference
    if inferring:
        return _in_mode((False, None), function, *arguments)
    # What `_in_mode` does takes four times as long. The way back is a single compiled call: an interrupt comes when it is made.
    enabled, address, switch = state.enabled, id(state), TAPE.switch_recording
    try:
        if switch(_ADDRESS, address, False) < 0:
            raise MemoryError
        return function(*arguments)
    finally:
        if not state.inference:
            switch(_ADDRESS, address, enabled)
        else:  # the function left it on
            try:
                _switch(enabled, False)
            except BaseException:
                _switch(enabled, False)
                raise


def in_gradient_mode(enabled: bool, function: Callable[..., T], *arguments: Any) -> T:
    """Call a function with recording on or off in this thread, and in inference mode if it is."""
    return _in_mode((enabled, None), function, *arguments)


def with_recording(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function with recording on, and out of inference mode, in this thread."""
    return _in_mode((True, False), function, *arguments)


class _Mode:
    """A context manager, and a decorator for functions and generators, that sets modes inside."""

    __slots__ = ("_before", "_wanted")

    def __init__(self, enabled: bool, inference: bool | None = None) -> None:
        self._wanted = enabled, inference
        self._before: list[Modes] = []

    # An exception that comes when a switch is done ends the function that made it all the same. What an interrupt at the very
    # beginning of `__exit__` leaves, nobody can mend.

    def __enter__(self) -> None:
        state = of_thread.modes
        before = state.enabled, state.inference
        self._before.append(before)
        try:
            _switch(*self._wanted)
        except BaseException:
            _switch(*before)
            raise

    def __exit__(self, *exception: object) -> None:
        before = self._before[-1]
        try:
            _switch(*before)
        except BaseException:
            _switch(*before)
            raise
        finally:
            del self._before[-1]

    def __call__(self, function: F) -> F:
        wanted = self._wanted
        if _is_generator(function):
            return _wrap_generator(function, wanted)  # type: ignore[return-value]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return _in_mode(wanted, partial(function, *args, **kwargs))

        return call  # type: ignore[return-value]


def _is_generator(function: Any) -> bool:
    return bool(getattr(getattr(function, "__code__", None), "co_flags", 0) & GENERATOR)


def _wrap_generator(function: Callable[..., Generator[Any, Any, Any]], wanted: tuple[bool, bool | None]) -> Callable[..., Any]:
    """The mode holds only while the generator itself runs."""

    @functools.wraps(function)
    def generate(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        source = _in_mode(wanted, partial(function, *args, **kwargs))
        step: Callable[[], Any] = functools.partial(next, source)
        while True:
            try:
                item = _in_mode(wanted, step)
            except StopIteration as stop:
                return stop.value
            try:
                sent = yield item
            except GeneratorExit:
                _in_mode(wanted, source.close)
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
        self._outside = _switch(*self._wanted)

    def __enter__(self) -> None:
        self._before.append(self._outside)
        _switch(*self._wanted)

    def __call__(self, function: F) -> F:
        """Decorate a function; the mode of the surroundings is restored first."""
        _switch(*self._outside)
        return super().__call__(function)


class inference_mode(_Mode):  # noqa: N801 - PyTorch's name
    """Switch recording off inside a ``with`` block or a decorated function, and let what is made there stay out of graphs.

    Parameters
    ----------
    mode : bool, or callable
        Whether to be in inference mode; False records as usual, inside of inference mode too. Given a function, that is decorated.

    Notes
    -----
    What operations and factories make inside are inference tensors: outside they are values for operations like others, but
    cannot be written in place, cannot be saved for a derivative, and have no ``_version``. Their views are inference tensors
    too, and a ``clone()`` made outside is an ordinary tensor. Views of ordinary tensors stay ordinary. So do parameters, wherever
    they are made. A tracked leaf that was made inside can be used outside as long as no derivative needs its value.

    While any thread is in inference mode, operations on small operands take the longer way through Python: `no_grad` is faster.

    Examples
    --------
    >>> w = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> with tg.inference_mode():
    ...     y = w * w
    >>> y.requires_grad, y.is_inference()
    (False, True)
    >>> w * y
    Traceback (most recent call last):
    RuntimeError: Inference tensors cannot be saved for backward. ...
    """

    __slots__ = ()

    def __new__(cls, mode: Any = True) -> Any:
        """The context manager, or, given a function, the function decorated.

        Raises
        ------
        TypeError
            If `mode` is neither a bool nor a function.
        """
        if isinstance(mode, bool):
            return super().__new__(cls)
        if not callable(mode):
            raise TypeError(f"inference_mode() takes a bool, or a function to decorate, but got {type(mode).__name__}")
        return cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__(not mode, mode)
