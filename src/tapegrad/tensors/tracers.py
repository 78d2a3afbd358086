"""Who is told of what a thread computes, if anybody is (`tapegrad.tensors.tracing`)."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

from tapegrad.tape.locks import OfThread

__all__ = [
    "LOOKING",
    "OF_SHAPES",
    "WRITING",
    "Tracer",
    "computed",
    "current_tracer",
    "left",
    "looks_at_values",
    "makes_constants_of_shapes",
    "of_thread",
    "writes_operands",
]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
OF_SHAPES: set[CodeType] = set()
LOOKING: set[CodeType] = set()
WRITING: set[CodeType] = set()


def makes_constants_of_shapes(function: F) -> F:
    """Say of a function that constants which it makes for its operations depend on shapes and settings, never on values."""
    OF_SHAPES.add(function.__code__)
    return function


def writes_operands(function: F) -> F:
    """Say of a function that it writes its operands, or what operations make of them, at places that its `key` alone decides."""
    WRITING.add(function.__code__)
    return function


def looks_at_values(function: F) -> F:
    """Say of a function that it decides by values, which no operation and no call of `left` tells."""
    LOOKING.add(function.__code__)
    return function


class Tracer:
    """What is told of everything that is computed while a thread is followed."""

    __slots__ = ()

    def constant(self, t: Any, value: Any) -> None:
        """A number or an array of NumPy's became the untracked tensor `t`."""
        raise NotImplementedError

    def made(self, t: Any) -> None:
        """A factory made the untracked tensor `t`."""
        raise NotImplementedError

    def unwatched(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of code of the package that calls none of the user's, while nobody looks at its calls."""
        return function(*arguments)

    def operands(self, opcode: int, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """The operands of an elementwise rule, or others of the same values in their places."""
        raise NotImplementedError

    def rule(self, opcode: int, operands: tuple[Any, ...], data: tuple[Any, ...], result: Any, way: int = 0) -> None:
        """An elementwise rule gave a tensor; `data` are its operands as it read them, `way` how it computes with numbers."""
        raise NotImplementedError

    def row(self, entry: str, arguments: tuple[Any, ...], handle: int) -> None:
        """An entry wrote a row."""
        raise NotImplementedError

    def computed(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """NumPy's function gave a result without a derivative for the values of its arguments."""
        raise NotImplementedError

    def written(self, t: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The value of a new tensor was replaced by that of a function, of which it differs in its last digits."""
        raise NotImplementedError

    def spread(self, source: Any, result: Any) -> None:
        """An array was made of the values of a tensor, or of constants, by broadcasting them."""
        raise NotImplementedError

    def overwriting(self, t: Any, z: Any, row: int) -> None:
        """The value `z` is about to be written into the memory of a tensor, which gets a row (0: it has none)."""
        raise NotImplementedError

    def left(self, t: Any, as_truth: bool) -> None:
        """The value of a tensor left it, as a number or an array of NumPy's; or only whether it is zero."""
        raise NotImplementedError


class _Thread(OfThread):
    tracer: Tracer | None = None


of_thread = _Thread()


def current_tracer() -> Tracer | None:
    """Who follows this thread; callers look at ``TAPE.tracers`` first."""
    return of_thread.tracer


def left(t: Any, as_truth: bool = False) -> None:
    """Tell this thread's tracer, if it has one, that the value of a tensor left it; callers look at ``TAPE.tracers`` first."""
    if of_thread.tracer is not None:
        of_thread.tracer.left(t, as_truth)


def computed(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: T) -> T:
    """The result of a function of values, of which this thread's tracer is told if it has one."""
    if of_thread.tracer is not None:
        of_thread.tracer.computed(function, args, kwargs, result)
    return result
