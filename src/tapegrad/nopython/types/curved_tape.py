"""The types of tapes on which second derivatives are recorded as well, or on which there is room for what is written.

At run time they are the same address as any other tape. Their type tells everything that writes rows what else to write, so
functions that record first derivatives are compiled as before and cost what they cost before.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.extending import intrinsic, models, register_model

__all__ = [
    "CurvedTape", "DirectedTape", "PlainTape", "StraightTape", "as_curved", "as_directed", "has_room", "is_curved", "seen_as",
    "straight",
]  # fmt: skip


class PlainTape(types.Type):
    """The address of a header, where first derivatives are recorded and who calls has made room before.

    Everywhere else such a tape is a number.
    """

    has_room = True

    def __init__(self) -> None:
        super().__init__(type(self).__name__)


class CurvedTape(types.Type):
    """The address of a header, seen as the first argument of a function that records second derivatives."""

    def __init__(self, has_room: bool = False) -> None:
        self.has_room = has_room
        super().__init__(type(self).__name__ + ("WithRoom" if has_room else ""))


class DirectedTape(CurvedTape):
    """The same for second derivatives along one direction, which is known before."""


class StraightTape(DirectedTape):
    """The same for rows whose second derivatives nobody asks for, as they are those of partials."""


def is_curved(tape: types.Type) -> bool:
    """Whether second derivatives are recorded on a tape, and asked for."""
    return isinstance(tape, CurvedTape) and not isinstance(tape, StraightTape)


def has_room(tape: types.Type) -> bool:
    """Whether there is room on a tape for all that a function writes, so that it need not look."""
    return getattr(tape, "has_room", False)


@register_model(PlainTape)
@register_model(CurvedTape)
@register_model(DirectedTape)
@register_model(StraightTape)
class CurvedTapeModel(models.PrimitiveModel):
    """An address, as for the other kind."""

    def __init__(self, manager: Any, kind: types.Type) -> None:
        super().__init__(manager, kind, manager.lookup(types.int64).get_value_type())


def seen_as(kind: types.Type) -> Any:
    """The tape at an address, as one of these types."""

    @intrinsic
    def tape(typingctx: Any, address: Any) -> Any:
        def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return args[0]

        return kind(types.int64), write

    return tape


as_curved, as_directed = seen_as(CurvedTape()), seen_as(DirectedTape())


@intrinsic
def straight(typingctx: Any, tape: Any) -> Any:
    """The tape, for rows whose second derivatives nobody asks for."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return args[0]

    room = has_room(tape)
    return (StraightTape(room) if isinstance(tape, DirectedTape) else PlainTape() if room else types.int64)(tape), write
