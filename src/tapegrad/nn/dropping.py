"""Dropout as modules: at work in training only."""

from __future__ import annotations

from typing import Any

from tapegrad.nn import functional
from tapegrad.nn.module import Module
from tapegrad.tensors.tensor import Tensor

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _Dropout(Module):
    function: Any = None

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        """``input`` with elements dropped, in training."""
        return type(self).function(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """`functional.dropout` as a module.

    Parameters
    ----------
    p : float
        Probability with which an element is dropped.
    inplace : bool
        Whether to write into the input.

    Examples
    --------
    >>> tg.nn.Dropout(0.9).eval()(tg.ones(2))
    tensor([1., 1.])
    """

    function = staticmethod(functional.dropout)


class Dropout1d(_Dropout):
    """`functional.dropout1d` as a module."""

    function = staticmethod(functional.dropout1d)


class Dropout2d(_Dropout):
    """`functional.dropout2d` as a module."""

    function = staticmethod(functional.dropout2d)


class Dropout3d(_Dropout):
    """`functional.dropout3d` as a module."""

    function = staticmethod(functional.dropout3d)


class AlphaDropout(_Dropout):
    """`functional.alpha_dropout` as a module."""

    function = staticmethod(functional.alpha_dropout)


class FeatureAlphaDropout(_Dropout):
    """`functional.feature_alpha_dropout` as a module."""

    function = staticmethod(functional.feature_alpha_dropout)
