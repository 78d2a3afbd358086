"""Power means over windows, without the division: Lp pooling."""

from __future__ import annotations

import math

from tapegrad.nn.functional.dimensions import in_dimensions
from tapegrad.nn.functional.fixed_pooling import avg_pool1d, avg_pool2d, avg_pool3d
from tapegrad.nn.functional.spatial_sizes import per_dimension
from tapegrad.ops import elementwise
from tapegrad.tensors.tensor import Tensor

__all__ = ["lp_pool1d", "lp_pool2d", "lp_pool3d"]

Numbers = int | tuple[int, ...]


def _lp_pool(
    rank: int,
    input: Tensor,
    norm_type: float,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The root of the sum of powers over every window of {thing}; the derivative of a sum that is zero is 0.

    Parameters
    ----------
    input : Tensor, shape (n, c, {sizes}) or (c, {sizes})
    norm_type : float
        The power: 1 gives sums.
    kernel_size : {number}
        Elements in a window.
    stride : {number}, optional
        Step from one window to the next; the kernel size if not given.
    ceil_mode : bool
        Whether a last window may reach beyond the end.

    Raises
    ------
    RuntimeError
        If the rank is wrong, a number makes no sense, or no window fits.

    Examples
    --------
    {example}
    """
    elements = math.prod(per_dimension(kernel_size, rank, f"lp_pool{rank}d: kernel_size must be one int or {rank}"))
    pool = (avg_pool1d, avg_pool2d, avg_pool3d)[rank - 1]
    means = pool(elementwise.FUNCTIONS["pow"](input, norm_type), kernel_size, stride, 0, ceil_mode)
    result: Tensor = (means.sign() * means.abs().relu() * elements) ** (1.0 / norm_type)
    return result


lp_pool1d, lp_pool2d, lp_pool3d = in_dimensions(
    _lp_pool,
    """>>> tg.nn.functional.lp_pool1d(tg.tensor([[3.0, 4.0, 5.0, 12.0]]), 2, 2)
    tensor([[ 5., 13.]])""",
    """>>> tg.nn.functional.lp_pool2d(tg.ones(1, 4, 6), 2, (2, 2)).shape
    tapegrad.Size([1, 2, 3])""",
    """>>> tg.nn.functional.lp_pool3d(tg.ones(1, 4, 4, 6), 2, (1, 2, 2)).shape
    tapegrad.Size([1, 4, 2, 3])""",
)
