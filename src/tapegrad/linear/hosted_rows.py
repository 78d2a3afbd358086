"""Rows whose derivative is Python, as steps of the sweeps over a linear tape: products of matrices, solutions, sorted arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.autograd.decoded_rows import Argument, Record, as_float, object_at
from tapegrad.autograd.host_rows import saved_result
from tapegrad.engine import layout as at
from tapegrad.ops.namespaces import PLAIN, TENSORS
from tapegrad.recording.structural import Context, Payload
from tapegrad.tensors.grad_mode import with_recording
from tapegrad.tensors.tensor import Tensor, array_of, make, wrap

__all__ = ["HostedRow"]

Matrix = np.ndarray
FEW = 4  # cotangents from which on recording the vjp costs less than calling it for each


class HostedRow:
    """One such row at one point, apart from the tape.

    Values are copied: what was saved may be written once the recording is over.

    Blocks of vectors go through it: a vjp is linear in its cotangent, so it is recorded once, and what it recorded is a linear tape
    of its own. The rows of that one are compiled or, as products of matrices are, linear in what varies, and these say themselves
    what they give for many vectors (`Structural.linear`).

    Parameters
    ----------
    slot : int
    record : Record
        Of the row.
    place_of : callable
        First place of a row; -1 if it depends on no input.
    tape_of : callable
        Gives the linear tape from leaves to outputs, or None.

    Attributes
    ----------
    place, size : int
        First place, and number of elements, of its result.
    inputs, sizes : list of int
        The same of its inputs; place -1 for one that depends on nothing.
    parts : list of (int, int)
        First place and number of elements of each input to which `transposed` leads.
    linear : list of (int, callable or None)
        Inputs that vary, and what the row gives for many tangents of them.
    is_linear : bool
        Whether all of them have that.
    is_flat : bool
        Whether it is linear in all inputs that vary together.
    """

    def __init__(self, slot: int, record: Record, place_of: Callable[[int], int], tape_of: Callable[..., Any]) -> None:
        payload: Payload = object_at(record.payload)
        self.op, self.shape, self.dtype = payload.op, record.shape, record.dtype
        self.place, self.size = place_of(slot), math.prod(record.shape)
        own = record.arguments[: payload.inputs]
        self.inputs = [place_of(a.slot) if a.slot >= 0 else -1 for a in own]
        needs = tuple([place >= 0 for place in self.inputs])
        values, result = list(map(_value, record.arguments)), saved_result(slot, record, _copied)
        self._plain = payload.context(values, result, needs, PLAIN)
        self._context: Context | None = None
        self.sizes = list(map(math.prod, payload.shapes))
        self.linear, self.is_linear, self.is_flat = self.op.linear_forms(needs)
        self._adjoint: Tensor | None = None
        self._crossed: Any = None
        self._is_crossed: bool | None = None  # not known yet
        self._tape_of = tape_of
        self._pulled: tuple[Tensor, list[tuple[int, Tensor]]] | None = None
        self._transposed: Any = None
        self._is_transposed: bool | None = None  # not known yet
        self.parts: list[tuple[int, int]] = []  # first place and number of elements of each argument that it leads to

    @property
    def context(self) -> Context:
        """What the vjp is given where it is recorded."""
        if self._context is None:
            self._context = self._plain.with_operations(TENSORS)
        return self._context

    @property
    def has_curvature(self) -> bool:
        """Whether `curve` is at hand: for what is linear in all of its inputs together, or in each of two."""
        return self.is_linear and (self.is_flat or self.op.uses == ((1,), (0,)))

    @property
    def takes_blocks(self) -> bool:
        """Whether vectors go through it many at once, in both directions."""
        return self._in_blocks() is not None

    @property
    def transposed(self) -> Any:
        """The linear tape of the vjp, from the cotangent to the inputs in `parts`; None if a row of it takes single vectors."""
        return self._in_blocks()

    def pulled(self, cotangent: Matrix) -> Sequence[Tensor | None]:
        """What the vjp makes of one cotangent, given as a vector."""
        return self.op.vjp(_tensor(cotangent.astype(self.dtype).reshape(self.shape)), self._plain)

    def pull(self, bars: Matrix, count: int) -> None:
        """Add what the row contributes to the adjoints of its arguments, for the first `count` lanes."""
        if count >= FEW and (transposed := self._in_blocks()):
            found = transposed.push(bars[self.place : self.place + self.size, :count])
            done = 0
            for place, size in self.parts:
                bars[place : place + size, :count] += found[done : done + size]
                done += size
            return
        for lane in range(count):
            g = bars[self.place : self.place + self.size, lane].astype(self.dtype).reshape(self.shape)
            self._add(bars[:, lane], self.op.vjp(_tensor(g), self._plain))

    def _add(self, bars: Matrix, cotangents: Sequence[Tensor | None]) -> None:
        for place, cotangent in zip(self.inputs, cotangents, strict=False):
            if place >= 0 and cotangent is not None:
                values = cotangent._data
                if type(values) is float:
                    bars[place] += values
                else:
                    own = bars[place : place + values.size]
                    np.add(own, values.reshape(-1), own)

    def push(self, dots: Matrix, count: int) -> None:
        """Write the tangents of the row, for the first `count` lanes."""
        own = dots[self.place : self.place + self.size]
        if self.is_linear:
            own[...] = self._of_tangents(dots)
        elif transposed := self._in_blocks():
            parts = [dots[place : place + size, :count] for place, size in self.parts]
            own[:, :count] = transposed.pull(np.concatenate(parts)) if parts else 0.0
        else:
            own[...] = 0.0
            self._push_each(dots, count)

    def weigh(self, bars: Matrix) -> None:
        """Keep the row's adjoint, which second derivatives are weighted with."""
        self._adjoint = _tensor(bars[self.place : self.place + self.size, 0].astype(self.dtype).reshape(self.shape))

    def curve(self, dots: Matrix, bars: Matrix, count: int) -> None:
        """Add what the row contributes to the adjoints of its arguments, and what its own derivative along tangents adds to them.

        A product of two inputs has for each of them a cotangent that is linear in the other one: with the other's tangent in its
        place, it is its own derivative along the tangents.
        """
        self.pull(bars, count)
        if self.is_flat:
            return
        if count >= FEW and (crossed := self._crossed_tape()):
            places = list(zip(self.inputs, self.sizes, strict=True))
            found = crossed.push(np.concatenate([dots[place : place + size, :count] for place, size in places]))
            for (place, size), part in zip(places, np.split(found, [self.sizes[0]]), strict=True):
                bars[place : place + size, :count] += part
            return
        for lane in range(count):
            self._add(bars[:, lane], self._crossed_by([self._tangent(dots, k, lane) for k in (0, 1)], self._plain))

    def _crossed_by(self, tangents: Sequence[Tensor], known: Context) -> Sequence[Tensor | None]:
        assert self._adjoint is not None  # it was weighed
        return self.op.vjp(self._adjoint, known.with_inputs(tangents))

    def _crossed_tape(self) -> Any:
        """The linear tape from the tangents of both inputs to what they add to the adjoints; None if it takes single vectors."""
        if self._is_crossed is None:
            tape = with_recording(self._recorded_crossing)
            self._is_crossed = tape is not None and all(row.is_linear for row in tape.hosts.values())
            self._crossed = tape if self._is_crossed else None
        return self._crossed

    def _recorded_crossing(self) -> Any:
        shapes, dtypes = self.context.shapes, self.context.dtypes
        leaves = [wrap(np.zeros(shape, dtype)).requires_grad_() for shape, dtype in zip(shapes, dtypes, strict=True)]
        return self._tape_of(leaves, self._crossed_by(leaves, self.context))

    def _of_tangents(self, dots: Matrix) -> Matrix:
        total, context = 0.0, self._plain  # type: Any, Context
        with quiet():
            for k, form in self.linear:
                assert form is not None  # it is linear
                place = self.inputs[k]
                x_dot = dots[place : place + self.sizes[k]].reshape(*context.shapes[k], dots.shape[1])
                total = total + form(x_dot, context, self.shape).reshape(self.size, dots.shape[1])
        return total

    def _in_blocks(self) -> Any:
        """The linear tape of the vjp, from the cotangent to those of the arguments; None if a row of it takes single vectors."""
        if self._is_transposed is None:
            seed, found = self._recorded_vjp()
            tape = with_recording(self._tape_of, [seed], [t for _, t in found])
            fits = tape is not None and all(row.is_linear for row in tape.hosts.values())
            self.parts = [(self.inputs[k], self.sizes[k]) for k, _ in found]
            self._transposed = tape if fits else None
            self._is_transposed = fits
            if fits:
                self._pulled = None  # its rows are not needed any more
        return self._transposed

    def _push_each(self, dots: Matrix, count: int) -> None:
        """The tangents one by one: the recorded vjp is linear, and its transpose gives tangents."""
        from tapegrad.autograd.entry_points import grad as tensor_grad

        seed, found = self._recorded_vjp()
        if not found:
            return
        outputs = [t for _, t in found]
        for lane in range(count):
            tangents = [self._tangent(dots, k, lane) for k, _ in found]
            (z,) = tensor_grad(outputs, seed, tangents, retain_graph=True, materialize_grads=True)
            if z is not None:
                dots[self.place : self.place + self.size, lane] = array_of(z).reshape(-1)

    def _tangent(self, dots: Matrix, k: int, lane: int) -> Tensor:
        place = self.inputs[k]
        values = dots[place : place + self.sizes[k], lane].astype(self._plain.dtypes[k])
        return _tensor(values.reshape(self._plain.shapes[k]))

    def _recorded_vjp(self) -> tuple[Tensor, list[tuple[int, Tensor]]]:
        """A cotangent, and what the vjp makes of it for each argument that varies."""
        if self._pulled is None:
            seed, cotangents = with_recording(self._recorded)
            pairs = zip(range(len(self.inputs)), cotangents, strict=False)
            self._pulled = seed, [(k, t) for k, t in pairs if t is not None and t._row and self.inputs[k] >= 0]
        return self._pulled

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
