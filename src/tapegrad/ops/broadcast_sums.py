"""Sums over what broadcasting would repeat: the transpose of `expand`."""

from __future__ import annotations

from collections.abc import Sequence

from tapegrad.errors import ShapeError
from tapegrad.ops.reductions import sum
from tapegrad.ops.shaping import reshape
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["sum_to_size"]


def sum_to_size(x: Tensor, *size: int | Sequence[int]) -> Tensor:
    """The sum over the dimensions that a tensor of a smaller shape lacks, or has with length one.

    Parameters
    ----------
    x : Tensor
    *size : int, or one sequence of them
        A shape that broadcasts to that of `x`.

    Raises
    ------
    RuntimeError
        If it does not.

    Examples
    --------
    >>> tg.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    wanted = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
    shape = array_of(x).shape
    before = len(shape) - len(wanted)
    if before < 0 or any(n not in (1, m) for n, m in zip(wanted, shape[max(before, 0) :], strict=False)):
        raise ShapeError(f"size {list(wanted)} is not expandable to size {list(shape)}.")
    over = [*range(before), *(before + k for k, n in enumerate(wanted) if n == 1 and shape[before + k] != 1)]
    summed = sum(x, tuple(over), True) if over else x
    return reshape(summed, wanted) if before else summed  # type: ignore[arg-type]
