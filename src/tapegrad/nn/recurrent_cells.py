"""Recurrent layers of one step."""

from __future__ import annotations

import math
from typing import Any

from tapegrad.nn import init
from tapegrad.nn.module import Module
from tapegrad.nn.parameter import Parameter
from tapegrad.nn.recurrent_steps import CHUNKS, STEPS, State
from tapegrad.ops.affine import linear
from tapegrad.tensors.factories import empty, zeros
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["GRUCell", "LSTMCell", "RNNCell"]


class _Cell(Module):
    """What the cells share: weights of input and state, and how a state is made and checked."""

    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None
    parts = 1  # tensors of a state

    def __init__(self, input_size: int, hidden_size: int, bias: bool, chunks: int, dtype: Any) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self.weight_ih = Parameter(empty(chunks * hidden_size, input_size, dtype=dtype))
        self.weight_hh = Parameter(empty(chunks * hidden_size, hidden_size, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(empty(chunks * hidden_size, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0.0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _stepped(self, mode: str, input: Tensor, state: tuple[Any, ...] | None) -> State:
        shape = array_of(input).shape
        name = type(self).__name__
        if len(shape) not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {len(shape)}D instead")
        if shape[-1] != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {shape[-1]} expected {self.input_size}")
        if state is None:
            state = (zeros(*shape[:-1], self.hidden_size, dtype=input.dtype),) * self.parts
        for number, part in enumerate(state):
            own = array_of(part).shape
            if len(own) not in (1, 2):
                raise ValueError(f"{name}: Expected hidden to be 1D or 2D, got {len(own)}D instead")
            if own[-1] != self.hidden_size:
                raise RuntimeError(f"hidden{number} has inconsistent hidden_size: got {own[-1]}, expected {self.hidden_size}")
            if own[:-1] != shape[:-1]:
                raise RuntimeError(f"Input batch size {list(shape[:-1])} doesn't match hidden{number} batch size {list(own[:-1])}")
        given = linear(input, self.weight_ih, self.bias_ih)
        return STEPS[mode](given, state, self.weight_hh, self.bias_hh, None)

    def extra_repr(self) -> str:
        """The sizes, and what differs from the defaults."""
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(_Cell):
    """One step of an Elman network: ``tanh(weight_ih @ x + bias_ih + weight_hh @ h + bias_hh)``.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool
        Whether there are biases.
    nonlinearity : {"tanh", "relu"}
    dtype : dtype, optional
        Floating dtype of the parameters; the default float if not given.

    Attributes
    ----------
    weight_ih : Parameter, shape (hidden_size, input_size)
    weight_hh : Parameter, shape (hidden_size, hidden_size)
    bias_ih, bias_hh : Parameter, shape (hidden_size,), or None

    Examples
    --------
    >>> tg.nn.RNNCell(3, 4)(tg.ones(2, 3)).shape
    tapegrad.Size([2, 4])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 1, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The state after `input` of shape ``(n, input_size)`` or ``(input_size,)``; the state before is zero if not given."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}; use 'tanh' or 'relu'")
        return self._stepped(self.nonlinearity, input, None if hx is None else (hx,))[0]

    def extra_repr(self) -> str:
        """The sizes, and what differs from the defaults."""
        return super().extra_repr() + ("" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}")


class GRUCell(_Cell):
    """One step of a network of gated recurrent units.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool
        Whether there are biases.
    dtype : dtype, optional
        Floating dtype of the parameters; the default float if not given.

    Attributes
    ----------
    weight_ih : Parameter, shape (3 * hidden_size, input_size)
        Of the gates that reset and update, and of the new state.
    weight_hh : Parameter, shape (3 * hidden_size, hidden_size)
    bias_ih, bias_hh : Parameter, shape (3 * hidden_size,), or None

    Examples
    --------
    >>> tg.nn.GRUCell(3, 4)(tg.ones(2, 3)).shape
    tapegrad.Size([2, 4])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, CHUNKS["gru"], dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The state after `input` of shape ``(n, input_size)`` or ``(input_size,)``; the state before is zero if not given."""
        return self._stepped("gru", input, None if hx is None else (hx,))[0]


class LSTMCell(_Cell):
    """One step of a long short-term memory.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool
        Whether there are biases.
    dtype : dtype, optional
        Floating dtype of the parameters; the default float if not given.

    Attributes
    ----------
    weight_ih : Parameter, shape (4 * hidden_size, input_size)
        Of the gates that take and keep, of the new content, and of the gate that gives out.
    weight_hh : Parameter, shape (4 * hidden_size, hidden_size)
    bias_ih, bias_hh : Parameter, shape (4 * hidden_size,), or None

    Examples
    --------
    >>> h, c = tg.nn.LSTMCell(3, 4)(tg.ones(2, 3))
    >>> h.shape, c.shape
    (tapegrad.Size([2, 4]), tapegrad.Size([2, 4]))
    """

    parts = 2

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, CHUNKS["lstm"], dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> State:
        """State and content after `input` of shape ``(n, input_size)`` or ``(input_size,)``; those before are zero if not given."""
        return self._stepped("lstm", input, hx)
