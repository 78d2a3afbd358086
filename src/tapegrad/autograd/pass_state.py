"""What a pass remembers on its way: made at the first row that needs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tapegrad.tensors.tensor import Tensor

if TYPE_CHECKING:
    from tapegrad.tensors.hooks import RowHooks

__all__ = ["Finished", "Visits"]

Finished = tuple[Tensor | None, "RowHooks", Tensor | None]


class Visits:
    """What a pass must remember of the rows with hooks and the outputs of custom functions that it has passed."""

    __slots__ = ("called", "finished", "notes", "outputs", "pieces", "reaches")

    def __init__(self, reaches: Callable[[int], bool]) -> None:
        self.reaches = reaches  # whether the pass comes, or came, to a row
        self.notes: dict[object, Any] = {}  # of hooks that several tensors share
        self.called: set[RowHooks] = set()  # whose tensor hooks were called
        self.outputs: dict[int, list[Tensor | None]] = {}  # row of a node with several outputs: their gradients
        self.pieces: dict[int, dict[int, int]] = {}  # row of a node that its outputs are parts of: their rows by number
        self.finished: list[Finished] = []  # leaves that have hooks, and the gradients that go to them
