"""One definition of a function for signals, images and volumes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

__all__ = ["in_dimensions"]

P = ParamSpec("P")
R = TypeVar("R")

# What the text of a definition may name in braces.
WORDS = (
    {"n": 1, "thing": "a signal", "sizes": "l", "window": "k", "number": "int"},
    {"n": 2, "thing": "an image", "sizes": "h, w", "window": "k, l", "number": "int or pair of int"},
    {"n": 3, "thing": "a volume", "sizes": "d, h, w", "window": "j, k, l", "number": "int or triple of int"},
)


def in_dimensions(
    define: Callable[Concatenate[int, P], R], *examples: str
) -> tuple[Callable[P, R], Callable[P, R], Callable[P, R]]:
    """The functions over one, two and three spatial dimensions that a definition with their number in front stands for.

    Parameters
    ----------
    define : callable
        Its name and text are theirs, with the number behind the name and the words of `WORDS` and ``{example}`` in the text.
    *examples : str
        One for each.
    """
    one, two, three = (_of_rank(define, words, example) for words, example in zip(WORDS, examples, strict=True))
    return one, two, three


def _of_rank(define: Callable[Concatenate[int, P], R], words: dict[str, Any], example: str) -> Callable[P, R]:
    rank, original = words["n"], cast(FunctionType, define)
    name = f"{original.__name__.lstrip('_')}{rank}d"
    # Of the same code, but missing and unknown arguments are refused in this one's name.
    copied = FunctionType(original.__code__, original.__globals__, name, original.__defaults__, original.__closure__)
    body = cast(Callable[Concatenate[int, P], R], copied)

    def of_rank(*args: P.args, **kwargs: P.kwargs) -> R:
        return body(rank, *args, **kwargs)

    # With the namespace of the definition's module, by which doctest and help know it for one of its functions.
    made = FunctionType(of_rank.__code__, original.__globals__, name, closure=of_rank.__closure__)
    copied.__qualname__ = made.__qualname__ = name
    made.__module__, made.__annotations__ = original.__module__, dict(original.__annotations__)
    del made.__annotations__["rank"]
    # Without the indentation, which Python leaves out from 3.13 on.
    made.__doc__ = inspect.cleandoc(original.__doc__ or "").format(example=inspect.cleandoc(example), **words)
    signature = inspect.signature(original)
    made.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
    return made
