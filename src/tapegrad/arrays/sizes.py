"""Shape arguments: ``f(2, 3)`` and ``f((2, 3))`` mean the same, and -1 is inferred."""

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.errors import ShapeError

__all__ = [
    "MOST", "Lengths", "Size", "by_name", "check_count", "expanded", "is_one_number", "parse_size", "resolve", "sizes",
    "stretched_number", "stretches_to",
]  # fmt: skip

MOST = 1 << 60  # elements of eight bytes that fill 63 bits

Lengths = int | Sequence[int]
Shape = tuple[int, ...]


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


def sizes(shape: tuple[Any, ...], name: str, named: Any = None) -> Shape:
    """The shape given as ``f(2, 3)``, ``f((2, 3))`` or ``f([2, 3])``, or by its name, with its entries checked to be integers."""
    if named is not None:
        shape = by_name(shape, name, named)
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    elif not shape:
        raise TypeError(f"{name}() missing 1 required positional argument: 'shape'")
    for extent in shape:
        if type(extent) is not int:
            return tuple(_integer(extent, shape, name) for extent in shape)
    return shape


def _integer(extent: Any, shape: tuple[Any, ...], name: str) -> int:
    try:
        return operator.index(extent)
    except TypeError:
        raise TypeError(f"{name}(): sizes must be ints, got {shape!r}") from None


def resolve(shape: tuple[Any, ...], size: int, name: str, named: Any = None) -> Shape:
    """The shape for `size` elements with a -1 replaced by what it stands for."""
    target = sizes(shape, name, named)
    known, unknown = 1, -1
    for k, extent in enumerate(target):
        if extent >= 0:
            known *= extent
        elif extent != -1:
            raise ShapeError(f"invalid shape dimension {extent} at index {k} of shape {list(target)}")
        elif unknown >= 0:
            raise ShapeError(f"only one dimension can be inferred, shape {list(target)} has several -1")
        else:
            unknown = k
    if unknown < 0:
        if known == size:
            if not size:
                check_count(target, name)
            return target
    elif known == 0:
        if size == 0:
            raise ShapeError(
                f"cannot reshape tensor of 0 elements into shape {list(target)} because the unspecified dimension size "
                "-1 can be any value and is ambiguous"
            )
    elif size % known == 0:
        return (*target[:unknown], size // known, *target[unknown + 1 :])
    raise ShapeError(f"shape '{list(target)}' is invalid for input of size {size}")


def expanded(shape: Shape, target: Shape) -> Shape:
    """`target` with every -1 replaced by the size it keeps, or ShapeError if `shape` cannot be expanded to it."""
    ahead = len(target) - len(shape)
    if ahead < 0:
        raise ShapeError(
            f"expand: the number of sizes provided ({len(target)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({len(shape)})"
        )
    wanted = list(target)
    for k, extent in enumerate(target):
        have = shape[k - ahead] if k >= ahead else None
        if extent == -1 and have is not None:
            wanted[k] = have
        elif have is None and extent < 0:
            raise ShapeError(f"The expanded size of the tensor ({extent}) isn't allowed in a leading, non-existing dimension {k}")
        elif have is not None and have != extent and (have != 1 or extent < 0):
            raise ShapeError(
                f"The expanded size of the tensor ({extent}) must match the existing size ({have}) at non-singleton "
                f"dimension {k}. Target sizes: {list(target)}. Tensor sizes: {list(shape)}"
            )
    return tuple(wanted)


def is_one_number(array: Any) -> bool:
    """Whether an array is one number that is stretched over its shape."""
    if array.size <= 1 or array.flags.c_contiguous:
        return False
    return not any(array.strides) or not any(step for n, step in zip(array.shape, array.strides, strict=True) if n > 1)


def stretched_number(number: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """A number that is stretched over a shape, read-only: `numpy.broadcast_to` in a third of the time."""
    whole: Any = np.ndarray(shape, dtype, np.array(number, dtype), 0, (0,) * len(shape))
    whole.flags.writeable = False
    return whole


def stretches_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether values of a shape can be assigned to a target without another dimension."""
    extra = len(target) - len(shape)
    if extra < 0:
        return False
    for n, m in zip(shape, target[extra:], strict=True):  # noqa: SIM110 - in half of the time of a generator
        if n != 1 and n != m:
            return False
    return True
