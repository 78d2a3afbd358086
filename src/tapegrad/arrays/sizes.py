"""Shape arguments: ``f(2, 3)`` and ``f((2, 3))`` mean the same."""

import math
import operator
from collections.abc import Sequence
from typing import Any

from tapegrad.errors import ShapeError

__all__ = ["MOST", "Lengths", "Size", "by_name", "check_count", "parse_size"]

MOST = 1 << 60  # elements of eight bytes that fill 63 bits

Lengths = int | Sequence[int]


class Size(tuple[int, ...]):
    """Shape of a tensor: a tuple that prints as PyTorch's does."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"tapegrad.Size({list(self)})"

    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self)


def by_name(positional: tuple[Any, ...], function: str, named: Any) -> tuple[Any, ...]:
    """The arguments of a function that takes numbers or one sequence of them, where that is given by its name.

    Raises
    ------
    TypeError
        If there are positional arguments too.
    """
    if positional:
        raise TypeError(f"{function}() got multiple values for one argument: {list(positional)}, and {named!r} by its name")
    return (named,)


def parse_size(name: str, size: tuple[Any, ...], named: Any = None) -> tuple[int, ...]:
    """Shape from the positional arguments of the function `name`: integers, or one sequence of integers.

    Parameters
    ----------
    named : sequence of int, optional
        What was given as ``size=``.

    Raises
    ------
    TypeError
        If anything but integers was given, or nothing.
    RuntimeError
        If a length is negative, or there are more elements than an array can have.
    """
    if named is not None:
        size = by_name(size, name, named)
    if not size:
        raise TypeError(f"{name}() missing 1 required positional argument: 'size'; pass () for a 0-d tensor")
    given: Any = size
    if len(size) == 1 and isinstance(size[0], Sequence) and not isinstance(size[0], str | bytes):
        given = size[0]
    lengths = tuple(_length(name, position, value) for position, value in enumerate(given))
    for length in lengths:
        if length < 0:
            raise RuntimeError(
                f"{name}(): dimension size must be non-negative: trying to create tensor with negative dimension "
                f"{length}: {list(lengths)}"
            )
    check_count(lengths, f"{name}()")
    return lengths


def check_count(shape: Sequence[int], name: str) -> None:
    """Raise unless arrays may have so many elements.

    NumPy leaves out no dimension when it checks, so even an empty array cannot have the shape ``(0, 2**62)``.

    Raises
    ------
    ShapeError
        If their bytes do not fit in 63 bits.
    """
    if math.prod([length or 1 for length in shape]) >= MOST:
        raise ShapeError(f"{name}: storage size calculation overflowed with sizes={list(shape)}; no array can be so large")


def _length(name: str, position: int, value: Any) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"{name}(): argument 'size' must be tuple of ints, but found element of type {type(value).__name__} "
            f"at pos {position}: {value!r}"
        ) from None
