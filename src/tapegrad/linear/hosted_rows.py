"""Rows whose derivative is Python, as steps of the sweeps over a linear tape: products of matrices, solutions, sorted arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.decoded_rows import Argument, Record, as_float, object_at
from tapegrad.autograd.host_rows import context_of
from tapegrad.engine import layout as at
from tapegrad.recording.structural import Payload
from tapegrad.tensors.grad_mode import with_recording, without_recording
from tapegrad.tensors.tensor import Tensor, array_of, make, wrap

__all__ = ["HostedRow"]

Matrix = np.ndarray


class HostedRow:
    """One such row at one point, apart from the tape.

    Values are copied: what was saved may be written once the recording is over.

    Parameters
    ----------
    slot : int
    record : Record
        Of the row.
    place_of : callable
        First place of a row; -1 if it depends on no input.
    """

    def __init__(self, slot: int, record: Record, place_of: Callable[[int], int]) -> None:
        payload: Payload = object_at(record.payload)
        self.op, self.shape, self.dtype = payload.op, record.shape, record.dtype
        self.place, self.size = place_of(slot), int(np.prod(record.shape, dtype=np.int64))
        own = record.arguments[: payload.inputs]
        self.inputs = [place_of(a.slot) if a.slot >= 0 else -1 for a in own]
        self.context = context_of(slot, record, tuple(place >= 0 for place in self.inputs), _value, _copied)
        self._transposed: tuple[Tensor, list[tuple[int, Tensor]]] | None = None

    def pull(self, bars: Matrix, count: int) -> None:
        """Add what the row contributes to the adjoints of its arguments, for the first `count` lanes."""
        for lane in range(count):
            g = bars[self.place : self.place + self.size, lane].astype(self.dtype).reshape(self.shape)
            cotangents = without_recording(self.op.vjp, _tensor(g), self.context)
            for place, cotangent in zip(self.inputs, cotangents, strict=False):
                if place >= 0 and cotangent is not None:
                    values = array_of(cotangent).reshape(-1)
                    bars[place : place + values.size, lane] += values

    def push(self, dots: Matrix, count: int) -> None:
        """Write the tangents of the row, for the first `count` lanes."""
        from tapegrad.autograd.entry_points import grad as tensor_grad

        seed, pulled = self._pulled()
        dots[self.place : self.place + self.size] = 0.0
        if not pulled:
            return
        outputs = [t for _, t in pulled]
        for lane in range(count):
            tangents = [self._tangent(dots, k, lane, t) for k, t in pulled]
            (z,) = tensor_grad(outputs, seed, tangents, retain_graph=True, materialize_grads=True)
            if z is not None:
                dots[self.place : self.place + self.size, lane] = array_of(z).reshape(-1)

    def _tangent(self, dots: Matrix, k: int, lane: int, like: Tensor) -> Tensor:
        shape, place = np.shape(like._data), self.inputs[k]
        size = int(np.prod(shape, dtype=np.int64))
        return wrap(dots[place : place + size, lane].astype(array_of(like).dtype).reshape(shape))

    def _pulled(self) -> tuple[Tensor, list[tuple[int, Tensor]]]:
        """A cotangent and what the row makes of it, recorded: that is linear, and its transpose gives tangents."""
        if self._transposed is None:
            seed, cotangents = with_recording(self._recorded)
            pairs = zip(range(len(self.inputs)), cotangents, strict=False)
            found = [(k, t) for k, t in pairs if t is not None and t._row and self.inputs[k] >= 0]
            self._transposed = seed, found
        return self._transposed

    def _recorded(self) -> tuple[Tensor, Sequence[Tensor | None]]:
        seed: Tensor = wrap(np.zeros(self.shape, self.dtype)).requires_grad_()
        return seed, self.op.vjp(seed, self.context)


def _tensor(array: np.ndarray) -> Tensor:
    return make(array.item() if array.ndim == 0 and array.dtype == np.float64 else array, 0)


def _value(argument: Argument) -> Tensor | None:
    """An argument's value, if it was saved."""
    if argument.kind == at.ARRAY:
        return _tensor(object_at(argument.saved).copy())
    return make(as_float(argument.saved), 0) if argument.kind == at.NUMBER else None


def _copied(value: Any) -> Tensor:
    return make(value if type(value) is float else value.copy(), 0)
