"""Operations with several outputs that depend on one another: one row for all of them.

The row's value is the outputs one after the other in one vector, which belongs to nobody else; each output is a piece of it,
with memory of its own. So the derivative sees all cotangents together (they must be added before they are divided), an output
that was not used has a cotangent of zeros, and a write to an output does no harm.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from tapegrad.arrays.slots import offset_of
from tapegrad.engine import layout as at
from tapegrad.ops.compiled_operators import hosted_function, prepare_views, when_compiled
from tapegrad.recording.strided_maps import piece
from tapegrad.recording.structural import Context, Structural, apply, as_result
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Meta, Tensor, is_recording, make, meta_of

__all__ = ["ManyOutputs", "joint_outputs"]

Array = np.ndarray[Any, Any]


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
    again : callable or None
        ``again(array, options, shapes)`` gives the outputs again for another value of the operand.
    """

    __slots__ = ()
    packs: ClassVar[bool] = True

    def __init__(
        self,
        name: str,
        vjp: Callable[[list[Tensor], list[Tensor], Context], Tensor],
        uses: Any = (("z",),),
        again: Callable[[Array, Any, Any], Sequence[Array]] | None = None,
    ) -> None:
        def unpacked(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
            shapes, _ = ctx.attrs
            outputs = ctx.on.pieces(ctx.result, shapes) if ctx.result is not None else []
            return (vjp(ctx.on.pieces(g, shapes), outputs, ctx),)

        def packed(arrays: Sequence[Array], attrs: Any, *extra: Array) -> Array:
            assert again is not None
            shapes, options = attrs
            return np.concatenate([value.reshape(-1) for value in again(arrays[0], options, shapes)])

        super().__init__(name, uses, unpacked, forward=None if again is None else packed)


def joint_outputs(
    op: ManyOutputs,
    x: Tensor,
    values: Sequence[Array],
    options: Any = None,
    numbers: Sequence[int | None] | None = None,
    extra: Sequence[Tensor] = (),
) -> tuple[Tensor, ...]:
    """Record an operation and hand out its outputs.

    Parameters
    ----------
    values : sequence of ndarray
        The outputs, of the dtype of `x`, which nobody else has.
    options : object
        Given to the vjp as the second of ``context.attrs``.
    numbers : sequence of int or None, optional
        Which output of the node each of them is, if not in this order; those with None are not handed out.
    extra : sequence of Tensor
        Untracked tensors for the vjp.
    """
    wanted = tuple(range(len(values))) if numbers is None else tuple(numbers)
    found = _all_at_once(op, (x,), tuple(values), options, wanted, tuple(extra))
    if found is not None:
        return found
    if not (x._row and is_recording()):
        return tuple(make(as_result(value), 0) for value, number in zip(values, wanted, strict=True) if number is not None)
    shapes = tuple(value.shape for value in values)
    flat = [value.reshape(-1) for value in values]
    packed = apply(op, (x,), np.concatenate(flat), (shapes, options), extra)
    outputs, start = [], 0
    for value, row, number in zip(values, flat, wanted, strict=True):
        if number is not None:
            outputs.append(piece(packed, start, value if value.flags.c_contiguous else value.copy(), op.name))
            number_output(outputs[-1], number)
        start += row.size
    return tuple(outputs)


def _compiled() -> Any:
    """What does all of this in one call where that is usual, and gives None where it is not."""
    prepare_views()
    TAPE.header[at.OFFSETS + at.META_OUTPUT_NR] = offset_of(Meta(), "output_nr")
    return hosted_function("joint_outputs", 2 + at.PLAIN_COUNT, None)


def _left_to_python(*given: Any) -> None:
    """There is no compiled form yet."""


_all_at_once = when_compiled(sys.modules[__name__], _left_to_python, _compiled)


def number_output(output: Tensor, number: int) -> None:
    """Say which output of its node a tensor is."""
    meta_of(output).output_nr = number
    if output._row > 0:
        TAPE.number_output(TAPE.address, output._row, number)
