"""Elementwise nonlinearities as modules, for `Sequential`."""

from tapegrad.nn import functional
from tapegrad.nn.module import Module
from tapegrad.tensor import Tensor

__all__ = ["ReLU", "Sigmoid", "Softmax", "Tanh"]


class ReLU(Module):
    """``max(x, 0)``."""

    def forward(self, input: Tensor) -> Tensor:
        """The function of every element."""
        return functional.relu(input)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``."""

    def forward(self, input: Tensor) -> Tensor:
        """The function of every element."""
        return functional.sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """The function of every element."""
        return functional.tanh(input)


class Softmax(Module):
    """Exponentials normalised to a sum of one along an axis.

    Parameters
    ----------
    dim : int
        The axis.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """The normalised exponentials, in the shape of ``input``."""
        return functional.softmax(input, self.dim)

    def extra_repr(self) -> str:
        """The axis."""
        return f"dim={self.dim}"
