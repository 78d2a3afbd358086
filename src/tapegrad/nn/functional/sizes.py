"""Arguments that are one number for all spatial dimensions or one for each."""

from __future__ import annotations

import operator
from typing import Any

__all__ = ["Sizes", "per_dimension"]

Sizes = tuple[int, ...]


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
    numbers = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(numbers) not in (1, rank):
        raise RuntimeError(f"{message}, but got {list(numbers)}")
    try:
        found = tuple(operator.index(number) for number in numbers)
    except TypeError:
        raise TypeError(f"{message}, but got {value!r}") from None
    return found if len(found) == rank else found * rank
