"""The types of tapes on which second derivatives are recorded as well.

At run time they are the same address as any other tape. Their type tells everything that writes rows what else to write, so
functions that record first derivatives are compiled as before and cost what they cost before.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.extending import intrinsic, models, register_model

__all__ = ["CurvedTape", "DirectedTape", "StraightTape", "as_curved", "as_directed", "is_curved", "straight"]


class CurvedTape(types.Type):
    """The address of a header, seen as the first argument of a function that records second derivatives."""

    def __init__(self) -> None:
        super().__init__(type(self).__name__)


class DirectedTape(CurvedTape):
    """The same for second derivatives along one direction, which is known before."""


class StraightTape(DirectedTape):
    """The same for rows whose second derivatives nobody asks for, as they are those of partials."""


def is_curved(tape: types.Type) -> bool:
    """Whether second derivatives are recorded on a tape, and asked for."""
    return isinstance(tape, CurvedTape) and not isinstance(tape, StraightTape)


@register_model(CurvedTape)
@register_model(DirectedTape)
@register_model(StraightTape)
class CurvedTapeModel(models.PrimitiveModel):
    """An address, as for the other kind."""

    def __init__(self, manager: Any, kind: CurvedTape) -> None:
        super().__init__(manager, kind, manager.lookup(types.int64).get_value_type())


def _seen_as(kind: CurvedTape) -> Any:
    """The tape at an address, for second derivatives."""

    @intrinsic
    def tape(typingctx: Any, address: Any) -> Any:
        def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return args[0]

        return kind(types.int64), write

    return tape


as_curved, as_directed = _seen_as(CurvedTape()), _seen_as(DirectedTape())


@intrinsic
def straight(typingctx: Any, tape: Any) -> Any:
    """The tape, for rows whose second derivatives nobody asks for."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return args[0]

    return (StraightTape() if isinstance(tape, DirectedTape) else types.int64)(tape), write
