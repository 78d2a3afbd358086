"""Recurrent layers over whole sequences, in several layers and both directions."""

from __future__ import annotations

import math
import warnings
from typing import Any

from tapegrad.nn import functional, init
from tapegrad.nn.module import Module
from tapegrad.nn.parameter import Parameter
from tapegrad.nn.recurrent_steps import CHUNKS, STEPS, State
from tapegrad.ops.affine import linear
from tapegrad.ops.joining import cat, stack
from tapegrad.ops.shaping import squeeze, unsqueeze
from tapegrad.ops.splitting import unbind
from tapegrad.ops.transposing import transpose
from tapegrad.tensors.factories import empty, zeros
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["GRU", "LSTM", "RNN"]


class _Recurrent(Module):
    """What the layers share."""

    mode = "tanh"
    parts = 1  # tensors of a state

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        bias: bool,
        batch_first: bool,
        dropout: float,
        bidirectional: bool,
        proj_size: int,
        dtype: Any,
    ) -> None:
        super().__init__()
        if hidden_size <= 0 or num_layers <= 0:
            raise ValueError(f"hidden_size and num_layers must be greater than zero, but are {hidden_size} and {num_layers}")
        if not 0 <= dropout <= 1:
            raise ValueError(
                f"dropout should be a number in range [0, 1], the chance of an element to become zero, but is {dropout}"
            )
        if not 0 <= proj_size < hidden_size:
            raise ValueError(f"proj_size has to be smaller than hidden_size and not negative, but is {proj_size}")
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers greater "
                f"than 1, but got dropout={dropout} and num_layers=1",
                stacklevel=3,
            )
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional, self.proj_size = batch_first, float(dropout), bidirectional, proj_size
        given, rows = proj_size or hidden_size, CHUNKS[self.mode] * hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else given * self._directions
            for direction in range(self._directions):
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, width), "weight_hh": (rows, given)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    self.register_parameter(f"{name}{_suffix(layer, direction)}", Parameter(empty(*shape, dtype=dtype)))
        self.reset_parameters()

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def flatten_parameters(self) -> None:
        """Nothing: PyTorch puts the parameters into one piece of a GPU's memory here."""

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Any]:
        """Outputs and last states of a sequence.

        Parameters
        ----------
        input : Tensor, shape (length, n, input_size) or (length, input_size); (n, length, input_size) with ``batch_first``
        hx : Tensor, or (Tensor, Tensor), optional
            The states before it, of shape ``(layers * directions, n, size)`` or without the batch; zeros if not given.

        Returns
        -------
        output : Tensor, shape (length, n, directions * size), or as `input`
            What the last layer gives in each step.
        hx : Tensor or (Tensor, Tensor)
            The states after it, of the shape of those before.

        Raises
        ------
        RuntimeError, ValueError
            If a shape does not fit.
        """
        shape = array_of(input).shape
        if len(shape) not in (2, 3):
            raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {len(shape)}D tensor instead")
        if shape[-1] != self.input_size:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {shape[-1]}")
        batched = len(shape) == 3
        sequence = input if batched else unsqueeze(input, 1)
        if batched and self.batch_first:
            sequence = transpose(sequence, 0, 1)
        states = self._states(hx, sequence, batched)
        output = sequence
        last: list[list[Tensor]] = [[] for _ in states]
        for layer in range(self.num_layers):
            if layer and self.dropout:
                output = functional.dropout(output, self.dropout, self.training)
            found = []
            for direction in range(self._directions):
                number = layer * self._directions + direction
                outputs, after = self._run(output, tuple(part[number] for part in states), _suffix(layer, direction), direction)
                found.append(outputs)
                for kept, part in zip(last, after, strict=True):
                    kept.append(part)
            output = found[0] if len(found) == 1 else cat(found, -1)
        ends = tuple(stack(kept) if batched else squeeze(stack(kept), 1) for kept in last)
        if not batched:
            output = squeeze(output, 1)
        elif self.batch_first:
            output = transpose(output, 0, 1)
        return output, ends if self.parts > 1 else ends[0]

    def _states(self, hx: Any, sequence: Tensor, batched: bool) -> State:
        count, n = self.num_layers * self._directions, array_of(sequence).shape[1]
        sizes = (self.proj_size or self.hidden_size, self.hidden_size)[: self.parts]
        if hx is None:
            return tuple(zeros(count, n, size, dtype=sequence.dtype) for size in sizes)
        given = (hx,) if isinstance(hx, Tensor) else tuple(hx)
        if len(given) != self.parts:
            raise RuntimeError(f"{type(self).__name__} has a state of {self.parts} tensor(s), but got {len(given)}")
        for part, size in zip(given, sizes, strict=True):
            wanted = (count, n, size) if batched else (count, size)
            if array_of(part).shape != wanted:
                raise RuntimeError(f"Expected hidden size {wanted}, got {list(array_of(part).shape)}")
        return given if batched else tuple(unsqueeze(part, 1) for part in given)

    def _run(self, sequence: Tensor, state: State, suffix: str, backwards: int) -> tuple[Tensor, State]:
        """One layer in one direction. What the input adds is one product for all steps."""
        weight, bias, projection = (getattr(self, f"{name}{suffix}", None) for name in ("weight_hh", "bias_hh", "weight_hr"))
        given = unbind(linear(sequence, getattr(self, f"weight_ih{suffix}"), getattr(self, f"bias_ih{suffix}", None)), 0)
        step, found = STEPS[self.mode], []
        for one in reversed(given) if backwards else given:
            state = step(one, state, weight, bias, projection)  # type: ignore[arg-type]
            found.append(state[0])
        return stack(found[::-1] if backwards else found), state

    def extra_repr(self) -> str:
        """The sizes, and what differs from the defaults."""
        defaults = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        told = [f"{name}={getattr(self, name)}" for name, default in defaults.items() if getattr(self, name) != default]
        return ", ".join([str(self.input_size), str(self.hidden_size), *told])


def _suffix(layer: int, direction: int) -> str:
    return f"_l{layer}{'_reverse' if direction else ''}"


class RNN(_Recurrent):
    """Elman's network over sequences: `RNNCell` step by step.

    Parameters
    ----------
    input_size, hidden_size : int
    num_layers : int
        How many layers, each of which takes what the one before it gives.
    nonlinearity : {"tanh", "relu"}
    bias : bool
        Whether there are biases.
    batch_first : bool
        Whether the batch is the first dimension of input and output, and not the second.
    dropout : float
        Chance of elements between the layers to become zero in training.
    bidirectional : bool
        Whether the sequence is read from its end, too.
    dtype : dtype, optional
        Floating dtype of the parameters; the default float if not given.

    Raises
    ------
    ValueError
        If an option is out of its range.

    Examples
    --------
    >>> output, h = tg.nn.RNN(3, 4, num_layers=2)(tg.ones(5, 2, 3))
    >>> output.shape, h.shape
    (tapegrad.Size([5, 2, 4]), tapegrad.Size([2, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, dtype)
        self.nonlinearity = self.mode = nonlinearity


class GRU(_Recurrent):
    """Gated recurrent units over sequences: `GRUCell` step by step.

    Parameters
    ----------
    input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype
        As for `RNN`.

    Examples
    --------
    >>> output, h = tg.nn.GRU(3, 4, bidirectional=True)(tg.ones(5, 2, 3))
    >>> output.shape, h.shape
    (tapegrad.Size([5, 2, 8]), tapegrad.Size([2, 2, 4]))
    """

    mode = "gru"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, dtype)


class LSTM(_Recurrent):
    """Long short-term memory over sequences: `LSTMCell` step by step.

    Parameters
    ----------
    input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype
        As for `RNN`.
    proj_size : int
        Size that states are projected to; 0 leaves them as they are.

    Examples
    --------
    >>> output, (h, c) = tg.nn.LSTM(3, 4, proj_size=2)(tg.ones(5, 2, 3))
    >>> output.shape, h.shape, c.shape
    (tapegrad.Size([5, 2, 2]), tapegrad.Size([1, 2, 2]), tapegrad.Size([1, 2, 4]))
    """

    mode, parts = "lstm", 2

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, dtype)
