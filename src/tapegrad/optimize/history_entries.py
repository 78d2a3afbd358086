"""Lines of the history of a solver, for who looks at one."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["HistoryEntry"]


class HistoryEntry(NamedTuple):
    """What is known after an iteration."""

    iteration: int
    objective: float
    gradient_norm: float
    evaluations: int
