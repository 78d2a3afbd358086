"""Embedding: a table of learned rows."""

from __future__ import annotations

from typing import Any, Self

from tapegrad.nn import functional, init
from tapegrad.nn.module import Module
from tapegrad.nn.parameter import Parameter
from tapegrad.tensors.factories import empty
from tapegrad.tensors.grad_mode import no_grad
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["Embedding"]


class Embedding(Module):
    """Rows of a table chosen by numbers; see `functional.embedding`.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        Number of rows, and elements in each.
    padding_idx : int, optional
        A row that starts at zero and gets no gradient.
    max_norm, norm_type, scale_grad_by_freq, sparse
        As for the function.
    dtype : dtype, optional
        Floating dtype of the table; the default float if not given.

    Attributes
    ----------
    weight : Parameter, shape (num_embeddings, embedding_dim)
        Starts normal with mean 0 and variance 1.

    Examples
    --------
    >>> tg.nn.Embedding(10, 3)(tg.tensor([[1, 2], [4, 9]])).shape
    tapegrad.Size([2, 2, 3])
    """

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError(f"Padding_idx must be within num_embeddings, but got {padding_idx} for {num_embeddings} rows")
            padding_idx %= num_embeddings
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self.weight = Parameter(empty(num_embeddings, embedding_dim, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the table anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0.0

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """A module around a given table, untracked if `freeze`."""
        if array_of(embeddings).ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = array_of(embeddings).shape
        made = cls(rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        made.weight = Parameter(embeddings, requires_grad=not freeze)
        return made

    def forward(self, input: Tensor) -> Tensor:
        """The rows that ``input`` numbers."""
        return functional.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        """The sizes, and what is not usual."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2.0:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        return text
