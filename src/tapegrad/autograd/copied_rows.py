"""Rows that keep copies of what they save: otherwise the same as ever, so every pass, compiled or not, goes over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from tapegrad.autograd.packed_rows import RESULT, PackingHooks
from tapegrad.kernels.opcodes import USES
from tapegrad.recording.apply_rule import write_rule
from tapegrad.recording.structural import Payload, Structural, tracked_among, write_host_row
from tapegrad.tensors.tensor import Tensor

__all__ = ["COPYING"]


class CopyingRows(PackingHooks):
    """Hooks that copy.

    Custom functions keep what the hooks give; the rows of operations are those that there are without hooks.
    """

    __slots__ = ()
    keeps_numbers: ClassVar[bool] = True

    def record_rule(
        self, opcode: int, operands: tuple[Tensor, ...], data: tuple[Any, ...], z: Any, numbers: Sequence[bool]
    ) -> int | None:
        """Write the row of an elementwise operation with copies of its values; its handle."""
        need = 0
        for t, uses in zip(operands, USES[opcode], strict=True):
            need |= uses if t._row else 0
        saved = [_copied(a) if need >> k & 1 else a for k, a in enumerate(data)]
        return write_rule(opcode, operands, tuple(saved), _copied(z) if need & RESULT else z)

    def record_structural(
        self, op: Structural, inputs: Sequence[Tensor], value: Any, attrs: Any, extra: Sequence[Tensor]
    ) -> int | None:
        """Write the row of a structural operation with copies of its values; its handle."""
        saved, saves_result = op.saves(tracked_among(inputs))
        tensors = [*inputs, *extra]
        data = [_copied(t._data) if k in saved or k >= len(inputs) else t._data for k, t in enumerate(tensors)]
        payload = Payload(op, attrs, [t._data for t in tensors], len(inputs))
        return write_host_row(payload, tensors, len(inputs), saved, _copied(value) if saves_result else value, saves_result, data)


def _copied(value: Any) -> Any:
    return value if type(value) is float else np.array(value)


COPYING = CopyingRows(lambda t: t.detach().clone(), lambda t: t)
