"""The modules' computations as functions."""

import warnings

from tapegrad.affine import linear
from tapegrad.nn.functional.adaptive_pooling import *  # noqa: F403
from tapegrad.nn.functional.fixed_pooling import *  # noqa: F403
from tapegrad.nn.functional.embedding import *  # noqa: F403
from tapegrad.nn.functional.normalisation import *  # noqa: F403
from tapegrad.nn.functional.dropping import *  # noqa: F403
from tapegrad.nn.functional.convolution import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from tapegrad.tensor import Tensor

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "linear",
    "mse_loss",
    "relu",
    "sigmoid",
    "softmax",
    "tanh",
]
def relu(input: Tensor) -> Tensor:
    """``max(x, 0)`` of every element."""
    return input.relu()


def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + exp(-x))`` of every element."""
    return input.sigmoid()


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent of every element."""
    return input.tanh()


def softmax(input: Tensor, dim: int) -> Tensor:
    """Exponentials normalised to a sum of one along the axis `dim`."""
    return input.softmax(dim)


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Squared differences, and by default their mean.

    Parameters
    ----------
    input, target : Tensor
        Of one shape.
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    ValueError
        If `reduction` is none of the three.

    Warns
    -----
    UserWarning
        If the shapes differ and broadcast, which is seldom meant.

    Examples
    --------
    >>> tg.nn.functional.mse_loss(tg.tensor([1.0, 3.0]), tg.tensor([1.0, 1.0]))
    tensor(2.)
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction; use 'mean', 'sum' or 'none'")
    if tuple(input.shape) != tuple(target.shape):
        warnings.warn(
            f"Using a target size ({tuple(target.shape)}) that is different to the input size ({tuple(input.shape)}). "
            "This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=2,
        )
    squares = (input - target).square()
    if reduction == "none":
        return squares
    return squares.mean() if reduction == "mean" else squares.sum()
