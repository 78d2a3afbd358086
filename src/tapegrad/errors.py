"""Errors that are raised in more than one place. Each derives from what PyTorch users catch."""

from __future__ import annotations

import numpy as np

__all__ = [
    "CompileError", "DerivativeOrderError", "GradcheckError", "LinAlgError", "OverwrittenError", "ProgramError",
    "ShapeError", "TapeFullError",
]  # fmt: skip


class LinAlgError(RuntimeError, np.linalg.LinAlgError):
    """A matrix that has no such factorisation, inverse or solution."""


class DerivativeOrderError(RuntimeError):
    """A compiled function is to be differentiated once more than it can be."""


class OverwrittenError(RuntimeError):
    """A value that a derivative needs was overwritten after it was saved."""


class ProgramError(RuntimeError):
    """A function cannot be run again from what one call of it recorded."""


class ShapeError(RuntimeError, ValueError):
    """Shapes or dimensions that do not go together. Users of NumPy catch it as a ValueError."""


class TapeFullError(RuntimeError):
    """More rows are alive than the tape can number; the graph that was recorded stays usable."""


class CompileError(TypeError):
    """A compiled function uses something that cannot be recorded; the message names the line."""


class GradcheckError(RuntimeError):
    """Gradients that disagree with central differences, or with themselves."""
