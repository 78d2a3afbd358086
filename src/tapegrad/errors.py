"""Errors that are raised in more than one place. Each derives from what PyTorch users catch."""

from __future__ import annotations

__all__ = ["ShapeError", "TapeFullError"]


class ShapeError(RuntimeError):
    """Shapes that do not go together."""


class TapeFullError(RuntimeError):
    """More rows are alive than the tape can number; the graph that was recorded stays usable."""
