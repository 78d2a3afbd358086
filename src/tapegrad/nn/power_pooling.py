"""Lp pooling as modules."""

from __future__ import annotations

from tapegrad.nn import functional
from tapegrad.nn.dimensions import Spatial
from tapegrad.tensors.tensor import Tensor

__all__ = ["LPPool1d", "LPPool2d", "LPPool3d"]

Numbers = int | tuple[int, ...]


class _LPPool(Spatial):
    """Roots of sums of powers over windows of {thing}: `functional.lp_pool{n}d` as a module.

    Parameters
    ----------
    norm_type : float
        The power.
    kernel_size : {number}
        Elements in a window.
    stride : {number}, optional
        Step from one window to the next; the kernel size if not given.
    ceil_mode : bool
        Whether a last window may reach beyond the end.
    """

    def __init__(self, norm_type: float, kernel_size: Numbers, stride: Numbers | None = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """The roots."""
        pool = getattr(functional, f"lp_pool{self._dimensions}d")
        result: Tensor = pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)
        return result

    def extra_repr(self) -> str:
        """The power and the window."""
        return f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"


class LPPool1d(_LPPool, dimensions=1):
    """Of signals.

    Examples
    --------
    >>> tg.nn.LPPool1d(2, 2)(tg.tensor([[3.0, 4.0, 5.0, 12.0]]))
    tensor([[ 5., 13.]])
    """


class LPPool2d(_LPPool, dimensions=2):
    """Of images.

    Examples
    --------
    >>> tg.nn.LPPool2d(2, 2)(tg.ones(1, 1, 4, 6)).shape
    tapegrad.Size([1, 1, 2, 3])
    """


class LPPool3d(_LPPool, dimensions=3):
    """Of volumes.

    Examples
    --------
    >>> tg.nn.LPPool3d(2, (1, 2, 2))(tg.ones(1, 1, 4, 4, 6)).shape
    tapegrad.Size([1, 1, 4, 2, 3])
    """
