"""The value of a structural operation again, from other values of its inputs.

Some definitions say it themselves. Of the linear ones it is what they do to a tangent; of bilinear ones what they do to that of the
first input, the other having its present value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tapegrad.recording.structural import Payload
from tapegrad.tensors.tensor import make

__all__ = ["forward_of"]

Array = np.ndarray[Any, Any]
BILINEAR = ((1,), (0,))


def forward_of(payload: Payload, extra: Sequence[Array], shape: tuple[int, ...]) -> Callable[[list[Array]], Any] | None:
    """What gives the value of a recorded operation for other arrays; None if that is not known.

    Parameters
    ----------
    payload : Payload
        Of its row.
    extra : sequence of ndarray
        What the row saved besides its inputs; it must not depend on their values.
    shape : tuple of int
        Of the result.
    """
    op = payload.op
    if op.forward is not None:
        attrs, forward = payload.attrs, op.forward
        return lambda arrays: forward(arrays, attrs, *extra)
    linear = op.linear[0] if op.linear else None
    if linear is None or not (payload.inputs == 1 or (payload.inputs == 2 and op.uses == BILINEAR)):
        return None
    return partial(_of_a_tangent, payload, shape, [make(array, 0) for array in extra], linear)


def _of_a_tangent(payload: Payload, shape: tuple[int, ...], extra: list[Any], linear: Any, arrays: list[Array]) -> Any:
    inputs = [None, *(make(array, 0) for array in arrays[1:])]
    context = payload.context([*inputs, *extra], None, (True,) * len(arrays), None)
    return linear(np.ascontiguousarray(arrays[0])[..., None], context, shape)[..., 0]
