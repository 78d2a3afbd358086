"""Margins around signals, images and volumes, as modules."""

from __future__ import annotations

from tapegrad.nn import functional
from tapegrad.nn.dimensions import Spatial
from tapegrad.tensors.tensor import Tensor

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]

Numbers = int | tuple[int, ...]


class _Pad(Spatial):
    """A margin around {thing}: `functional.pad` as a module."""

    mode = "constant"

    def __init__(self, padding: Numbers) -> None:
        super().__init__()
        count = 2 * self._dimensions
        self.padding = (padding,) * count if isinstance(padding, int) else tuple(padding)
        if len(self.padding) != count:
            raise ValueError(f"padding must be one int or {count}, but got {len(self.padding)}: {self.padding}")

    def forward(self, input: Tensor) -> Tensor:
        """`input` with its margin."""
        return functional.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        """The widths."""
        return f"{self.padding}"


class _ConstantPad(_Pad):
    """A margin around {thing} of a constant.

    Parameters
    ----------
    padding : int or tuple of int
        The width, or those in front and behind in the last dimension, then in the one before it, and so on.
    value : float
        The constant.
    """

    def __init__(self, padding: Numbers, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """`input` with its margin."""
        return functional.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """The widths and the constant."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad, dimensions=1):
    """Of signals.

    Examples
    --------
    >>> tg.nn.ConstantPad1d(1, 0.5)(tg.tensor([[1.0, 2.0, 3.0]]))
    tensor([[0.5000, 1.0000, 2.0000, 3.0000, 0.5000]])
    """


class ConstantPad2d(_ConstantPad, dimensions=2):
    """Of images.

    Examples
    --------
    >>> tg.nn.ConstantPad2d(1, 0.5)(tg.ones(1, 1, 3, 3)).shape
    tapegrad.Size([1, 1, 5, 5])
    """


class ConstantPad3d(_ConstantPad, dimensions=3):
    """Of volumes.

    Examples
    --------
    >>> tg.nn.ConstantPad3d(1, 0.5)(tg.ones(1, 1, 3, 3, 3)).shape
    tapegrad.Size([1, 1, 5, 5, 5])
    """


class _ZeroPad(_Pad):
    """A margin around {thing} of zeros.

    Parameters
    ----------
    padding : int or tuple of int
        The width, or those in front and behind in the last dimension, then in the one before it, and so on.
    """


class ZeroPad1d(_ZeroPad, dimensions=1):
    """Of signals.

    Examples
    --------
    >>> tg.nn.ZeroPad1d((1, 0))(tg.tensor([[1.0, 2.0, 3.0]]))
    tensor([[0., 1., 2., 3.]])
    """


class ZeroPad2d(_ZeroPad, dimensions=2):
    """Of images.

    Examples
    --------
    >>> tg.nn.ZeroPad2d(1)(tg.ones(1, 1, 3, 3)).shape
    tapegrad.Size([1, 1, 5, 5])
    """


class ZeroPad3d(_ZeroPad, dimensions=3):
    """Of volumes.

    Examples
    --------
    >>> tg.nn.ZeroPad3d(1)(tg.ones(1, 1, 3, 3, 3)).shape
    tapegrad.Size([1, 1, 5, 5, 5])
    """


class _ReflectionPad(_Pad):
    """A margin around {thing} of the elements that are reflected at its ends.

    Parameters
    ----------
    padding : int or tuple of int
        The width, or those in front and behind in the last dimension, then in the one before it, and so on.
    """

    mode = "reflect"


class ReflectionPad1d(_ReflectionPad, dimensions=1):
    """Of signals.

    Examples
    --------
    >>> tg.nn.ReflectionPad1d(2)(tg.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 2., 1., 2., 3., 2., 1.]])
    """


class ReflectionPad2d(_ReflectionPad, dimensions=2):
    """Of images.

    Examples
    --------
    >>> tg.nn.ReflectionPad2d(1)(tg.ones(1, 1, 3, 3)).shape
    tapegrad.Size([1, 1, 5, 5])
    """


class ReflectionPad3d(_ReflectionPad, dimensions=3):
    """Of volumes.

    Examples
    --------
    >>> tg.nn.ReflectionPad3d(1)(tg.ones(1, 1, 3, 3, 3)).shape
    tapegrad.Size([1, 1, 5, 5, 5])
    """


class _ReplicationPad(_Pad):
    """A margin around {thing} of its outermost elements.

    Parameters
    ----------
    padding : int or tuple of int
        The width, or those in front and behind in the last dimension, then in the one before it, and so on.
    """

    mode = "replicate"


class ReplicationPad1d(_ReplicationPad, dimensions=1):
    """Of signals.

    Examples
    --------
    >>> tg.nn.ReplicationPad1d(1)(tg.tensor([[1.0, 2.0, 3.0]]))
    tensor([[1., 1., 2., 3., 3.]])
    """


class ReplicationPad2d(_ReplicationPad, dimensions=2):
    """Of images.

    Examples
    --------
    >>> tg.nn.ReplicationPad2d(1)(tg.ones(1, 1, 3, 3)).shape
    tapegrad.Size([1, 1, 5, 5])
    """


class ReplicationPad3d(_ReplicationPad, dimensions=3):
    """Of volumes.

    Examples
    --------
    >>> tg.nn.ReplicationPad3d(1)(tg.ones(1, 1, 3, 3, 3)).shape
    tapegrad.Size([1, 1, 5, 5, 5])
    """


class _CircularPad(_Pad):
    """A margin around {thing} of the elements at the other end.

    Parameters
    ----------
    padding : int or tuple of int
        The width, or those in front and behind in the last dimension, then in the one before it, and so on.
    """

    mode = "circular"


class CircularPad1d(_CircularPad, dimensions=1):
    """Of signals.

    Examples
    --------
    >>> tg.nn.CircularPad1d(1)(tg.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 1., 2., 3., 1.]])
    """


class CircularPad2d(_CircularPad, dimensions=2):
    """Of images.

    Examples
    --------
    >>> tg.nn.CircularPad2d(1)(tg.ones(1, 1, 3, 3)).shape
    tapegrad.Size([1, 1, 5, 5])
    """


class CircularPad3d(_CircularPad, dimensions=3):
    """Of volumes.

    Examples
    --------
    >>> tg.nn.CircularPad3d(1)(tg.ones(1, 1, 3, 3, 3)).shape
    tapegrad.Size([1, 1, 5, 5, 5])
    """
