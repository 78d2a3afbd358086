"""The type of a tape on which second derivatives are recorded as well.

At run time it is the same address as any other tape. Its type tells everything that writes rows to write triplets too, so functions
that record first derivatives are compiled as before and cost what they cost before.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.errors import TypingError
from numba.core.extending import intrinsic, models, register_model

__all__ = ["CurvedTape", "as_curved", "curved_tape", "refuse_curvature"]


class CurvedTape(types.Type):
    """The address of a header, seen as the first argument of a function that records second derivatives."""

    def __init__(self) -> None:
        super().__init__("CurvedTape")


curved_tape = CurvedTape()


@register_model(CurvedTape)
class CurvedTapeModel(models.PrimitiveModel):
    """An address, as for the other kind."""

    def __init__(self, manager: Any, kind: CurvedTape) -> None:
        super().__init__(manager, kind, manager.lookup(types.int64).get_value_type())


@intrinsic
def as_curved(typingctx: Any, address: Any) -> Any:
    """The tape at an address, for second derivatives."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return args[0]

    return curved_tape(types.int64), write


def refuse_curvature(tape: types.Type, name: str) -> None:
    """Raise where a function that has no second derivative of its own is compiled for them."""
    if isinstance(tape, CurvedTape):
        raise TypingError(
            f"[tapegrad] {name} of variables has no second derivative in compiled functions; write it out with arithmetic"
        )
