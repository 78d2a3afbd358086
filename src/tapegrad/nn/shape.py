"""Modules that change the shape of their input, or nothing."""

from __future__ import annotations

from typing import Any

from tapegrad.nn.module import Module
from tapegrad.ops.shaping import flatten
from tapegrad.recording.axes import axis
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["Flatten", "Identity", "Unflatten"]


class Identity(Module):
    """The input itself; arguments are ignored."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """``input``."""
        return input


class Flatten(Module):
    """Several dimensions merged into one.

    Parameters
    ----------
    start_dim, end_dim : int
        The first and the last of them; by default all but the batch.

    Examples
    --------
    >>> tg.nn.Flatten()(tg.ones(2, 3, 4)).shape
    tapegrad.Size([2, 12])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        """The same elements."""
        return flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The dimensions."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One dimension split into several.

    Parameters
    ----------
    dim : int
    unflattened_size : sequence of int
        Their sizes; one may be -1, which is then inferred.

    Examples
    --------
    >>> tg.nn.Unflatten(1, (3, -1))(tg.ones(2, 12)).shape
    tapegrad.Size([2, 3, 4])
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)) or not all(isinstance(size, int) for size in unflattened_size):
            raise TypeError(f"unflattened_size must be a tuple of ints, but found {unflattened_size!r}")
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        """The same elements."""
        shape = array_of(input).shape
        position = axis(self.dim, len(shape))
        return input.reshape((*shape[:position], *self.unflattened_size, *shape[position + 1 :]))

    def extra_repr(self) -> str:
        """The dimension and the sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
