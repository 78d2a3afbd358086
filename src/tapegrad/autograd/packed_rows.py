"""Rows recorded while hooks pack saved values: they keep what the hooks made, and run in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.decoded_rows import Argument, Record, name_of_rule, object_at
from tapegrad.autograd.host_rows import saved_value
from tapegrad.autograd.messages import saved_record_of
from tapegrad.autograd.row_derivatives import apply_partials
from tapegrad.autograd.sweep_memory import Sweep
from tapegrad.kernels.opcodes import USES
from tapegrad.ops.namespaces import TENSORS
from tapegrad.recording.structural import Payload, Structural, tracked_among, write_host_row
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.saved_value_packing import Packer, pack, unpack
from tapegrad.tensors.tensor import Tensor, is_recording, make

__all__ = ["PackingHooks"]

RESULT = 8  # bit of the result among the values that partials use


def _value(data: Any, slot: int) -> Tensor:
    """An unpacked value, on its row if that can matter."""
    if type(data) is not float and data.ndim == 0 and data.dtype == np.float64:
        data = data.item()
    return make(data, TAPE.new_handle(slot) if slot >= 0 and is_recording() else 0)


class PackedRule(Payload):
    """Payload of an elementwise operation.

    `attrs` are the opcode, for each operand its place among the packed or its number, and the place of the result.
    """

    __slots__ = ()
    runs_itself = True

    def contributions(
        self, state: Sweep, slot: int, gradients: Sequence[Tensor | None], wanted: Callable[[Argument], bool]
    ) -> list[tuple[Argument, Tensor]]:
        """The rule's partials at the unpacked values."""
        (g,) = gradients
        if g is None:
            return []
        record = saved_record_of(slot)
        opcode, places, place_of_result = self.attrs
        packed = object_at(record.arguments[-1].saved)
        operands: list[tuple[Argument, Tensor | None]] = []
        for argument, place in zip(record.arguments[: self.inputs], places, strict=True):
            if place is None or isinstance(place, float):
                operands.append((argument, None if place is None else make(place, 0)))
            else:
                operands.append((argument, _value(unpack(packed[place]), argument.slot)))
        result = None if place_of_result is None else _value(unpack(packed[place_of_result]), slot)
        return apply_partials(opcode, operands, result, g, wanted)


class PackedStructural(Payload):
    """Payload of a structural operation, with the places of its inputs and of its result among the packed."""

    __slots__ = ("place_of_result", "places")
    runs_itself = True
    places: Sequence[int | None]
    place_of_result: int | None

    def contributions(
        self, state: Sweep, slot: int, gradients: Sequence[Tensor | None], wanted: Callable[[Argument], bool]
    ) -> list[tuple[Argument, Tensor]]:
        """The operation's vjp at the unpacked values."""
        (g,) = gradients
        if g is None:
            return []
        record: Record = saved_record_of(slot)
        packed = object_at(record.arguments[-1].saved)
        inputs = record.arguments[: self.inputs]
        needs = [argument.slot >= 0 and wanted(argument) for argument in inputs]
        values = [
            None if place is None else _value(unpack(packed[place]), argument.slot)
            for argument, place in zip(inputs, self.places, strict=True)
        ]
        result = None if self.place_of_result is None else _value(unpack(packed[self.place_of_result]), slot)
        extra = map(saved_value, record.arguments[self.inputs : -1])
        sent = self.op.vjp(g, self.context([*values, *extra], result, needs, TENSORS))
        return [(a, c) for a, needed, c in zip(inputs, needs, sent, strict=False) if needed and c is not None]


_operations: dict[str, Structural] = {}


def _operation(name: str) -> Structural:
    found = _operations.get(name)
    if found is None:
        found = _operations[name] = Structural(name, ((),), lambda g, ctx: ())
    return found


class PackingHooks(Packer):
    """Hooks that pack, and the rows that keep what they make."""

    __slots__ = ()

    def record_rule(
        self, opcode: int, operands: tuple[Tensor, ...], data: tuple[Any, ...], z: Any, numbers: Sequence[bool]
    ) -> int | None:
        """Write the row of an elementwise operation with packed values; its handle, None if it saves nothing."""
        need = 0
        for t, uses in zip(operands, USES[opcode], strict=True):
            need |= uses if t._row else 0
        tensors: list[Tensor] = []
        places: list[int | float | None] = []
        for k, (t, a, number) in enumerate(zip(operands, data, numbers, strict=True)):
            if not need >> k & 1:
                places.append(None)
            elif number and np.ndim(a) == 0:
                places.append(float(a))
            else:
                places.append(len(tensors))
                kept = t if t._data is a else make(a, 0)
                tensors.append(kept)
        place_of_result = None
        if need & RESULT:
            place_of_result = len(tensors)
            tensors.append(make(z, 0))
        if not tensors:
            return None
        name = name_of_rule(opcode, lambda: numbers)
        packed = make(pack(self, tensors), 0)
        payload = PackedRule(_operation(name), (opcode, tuple(places), place_of_result), [t._data for t in operands], len(operands))
        return write_host_row(payload, [*operands, packed], len(operands), {len(operands)}, z)

    def record_structural(
        self, op: Structural, inputs: Sequence[Tensor], value: Any, attrs: Any, extra: Sequence[Tensor]
    ) -> int | None:
        """Write the row of a structural operation with packed values; its handle, None if it saves nothing."""
        saved, saves_result = op.saves(tracked_among(inputs))
        tensors: list[Tensor] = []
        places: list[int | None] = []
        for k, t in enumerate(inputs):
            places.append(len(tensors) if k in saved else None)
            if k in saved:
                tensors.append(t)
        place_of_result = len(tensors) if saves_result else None
        if saves_result:
            tensors.append(make(value, 0))
        if not tensors:
            return None
        packed = make(pack(self, tensors), 0)
        everything = [*inputs, *(t if type(t._data) is not float else make(np.array(t._data), 0) for t in extra), packed]
        payload = PackedStructural(op, attrs, [t._data for t in inputs], len(inputs))
        payload.places, payload.place_of_result = places, place_of_result
        return write_host_row(payload, everything, len(inputs), set(range(len(inputs), len(everything))), value)
