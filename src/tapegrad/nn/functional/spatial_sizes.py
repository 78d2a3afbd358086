"""Arguments that are one number for all spatial dimensions or one for each."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

__all__ = ["Sizes", "per_dimension", "remembered"]

Sizes = tuple[int, ...]
P = ParamSpec("P")
R = TypeVar("R")


def remembered(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which finds small plain data from numbers and shapes, and checks them, once for each.

    To look at all sizes of a convolution anew took longer than the convolution.
    """
    kept: Any = functools.lru_cache(maxsize=256, typed=True)(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            found: R = kept(*args)
        except TypeError:  # a list, or what the function refuses
            pass
        else:
            return found
        return function(*args, **kwargs)

    return call


def per_dimension(value: Any, rank: int, message: str) -> Sizes:
    """One number for each spatial dimension.

    Parameters
    ----------
    value : int or sequence of int
    rank : int
        Number of spatial dimensions.
    message : str
        What is wrong if there are more or fewer numbers than that.

    Raises
    ------
    RuntimeError
        If the count is wrong.
    TypeError
        If anything in it is no integer.
    """
    if type(value) is int:
        return (value,) * rank
    numbers = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(numbers) not in (1, rank):
        raise RuntimeError(f"{message}, but got {list(numbers)}")
    try:
        found = tuple(operator.index(number) for number in numbers)
    except TypeError:
        raise TypeError(f"{message}, but got {value!r}") from None
    return found if len(found) == rank else found * rank
