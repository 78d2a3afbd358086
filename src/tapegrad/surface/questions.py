"""What PyTorch asks of tensors by functions and methods: kinds of dtypes, sizes, single values."""

from __future__ import annotations

from typing import Any

from tapegrad.surface.attributes import dtype, numel, shape
from tapegrad.tensors.tensor import Tensor

__all__ = [
    "is_complex", "is_conj", "is_floating_point", "is_neg", "is_nonzero", "is_same_size", "is_signed", "is_tensor", "never",
    "type_as",
]  # fmt: skip


def _given(name: str, argument: str, value: Any) -> Any:
    """A tensor that a function was given.

    Raises
    ------
    TypeError
        If it is none.
    """
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}(): argument '{argument}' must be Tensor, not {type(value).__name__}")
    return value


def is_tensor(obj: Any) -> bool:
    """Whether an object is a tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Whether the elements are floating point numbers."""
    return dtype(_given("is_floating_point", "input", input)).kind == "f"


def is_complex(input: Tensor) -> bool:
    """Whether the elements are complex numbers: never."""
    return never(_given("is_complex", "input", input))


def is_conj(input: Tensor) -> bool:
    """Whether the elements are to be conjugated when they are read: never."""
    return never(_given("is_conj", "input", input))


def is_neg(input: Tensor) -> bool:
    """Whether the signs of the elements are to be changed when they are read: never."""
    return never(_given("is_neg", "input", input))


def never(t: Tensor) -> bool:
    """False: tensors are dense arrays of real numbers in the memory of the CPU."""
    return False


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return dtype(_given("is_signed", "input", input)).kind in "fi"


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors are of one shape."""
    return shape(_given("is_same_size", "input", input)) == shape(_given("is_same_size", "other", other))


def is_nonzero(input: Tensor) -> bool:
    """Whether a tensor of one element is not zero.

    Raises
    ------
    RuntimeError
        If it has another number of elements.
    """
    if numel(_given("is_nonzero", "input", input)) != 1:
        raise RuntimeError(f"Boolean value of Tensor with {numel(input)} values is ambiguous: is_nonzero takes one element")
    return bool(input)


def type_as(input: Tensor, other: Tensor) -> Any:
    """The tensor in the dtype of another one."""
    return input.to(dtype(_given("type_as", "other", other)))
