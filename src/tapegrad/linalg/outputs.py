"""Operations with several outputs that depend on one another: one row for all of them.

The row's value is the outputs one after the other in one vector, which belongs to nobody else; each output is a piece of it,
with memory of its own. So the derivative sees all cotangents together (they must be added before they are divided), an output
that was not used has a cotangent of zeros, and a write to an output does no harm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from tapegrad.structural import Context, Structural, apply, strided_gather
from tapegrad.tape import TAPE
from tapegrad.tensor import Tensor, is_recording, meta_of, wrap

__all__ = ["ManyOutputs", "joint_outputs"]

Array = np.ndarray[Any, Any]
Shapes = Sequence[tuple[int, ...]]


def _pieces(x: Tensor, shapes: Shapes, name: str) -> list[Tensor]:
    """The outputs that are packed in a vector."""
    found = []
    start = 0
    for shape in shapes:
        size = math.prod(shape)
        found.append(strided_gather(x, (size,), (1,), start, 1.0, shape, name))
        start += size
    return found


class ManyOutputs(Structural):
    """An operation of one operand whose outputs are packed in one row.

    Parameters
    ----------
    name : str
        PyTorch's node name.
    vjp : callable
        ``vjp(cotangents, outputs, context)`` gives the operand's cotangent; both are lists of tensors.
    uses : tuple of tuple
        As for `Structural`.
    """

    __slots__ = ()
    packs: ClassVar[bool] = True

    def __init__(self, name: str, vjp: Callable[[list[Tensor], list[Tensor], Context], Tensor], uses: Any = (("z",),)) -> None:
        def unpacked(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
            shapes, _ = ctx.attrs
            outputs = _pieces(ctx.result, shapes, "SliceBackward0") if ctx.result is not None else []
            return (vjp(_pieces(g, shapes, "SliceBackward0"), outputs, ctx),)

        super().__init__(name, uses, unpacked)


def joint_outputs(
    op: ManyOutputs, x: Tensor, values: Sequence[Array], options: Any = None, numbers: Sequence[int] | None = None
) -> tuple[Tensor, ...]:
    """Record an operation and hand out its outputs.

    Parameters
    ----------
    values : sequence of ndarray
        The outputs, of the dtype of `x`.
    options : object
        Given to the vjp as the second of ``context.attrs``.
    numbers : sequence of int, optional
        Which output of the node each of them is, if not in this order.
    """
    if not (x._row and is_recording()):
        return tuple(wrap(np.asarray(value)) for value in values)
    shapes = tuple(np.shape(value) for value in values)
    packed = apply(op, (x,), np.concatenate([np.ravel(value) for value in values]), (shapes, options))
    outputs = tuple(_pieces(packed, shapes, op.name))
    for number, output in enumerate(outputs):
        number_output(output, number if numbers is None else numbers[number])
    return outputs


def number_output(output: Tensor, number: int) -> None:
    """Say which output of its node a tensor is."""
    meta_of(output).output_nr = number
    if output._row > 0:
        TAPE.columns["second"][TAPE.slot(output._row)] = number  # wide rows have no other use for this column
