"""Warnings that values are taken out of a tracked tensor, so that nothing made of them has a gradient."""

from __future__ import annotations

import itertools
import os
import sys
import warnings

from tapegrad.tensor import Tensor, is_recording

__all__ = ["warn_of_copy", "warn_of_number"]

_FOLDER = os.path.dirname(__file__)


def warn_of_number(t: Tensor) -> None:
    """Warn that a number is taken out of `t`, if that is tracked."""
    if t._row and is_recording():
        _warn(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior. "
            "Consider using tensor.detach() first. The number is a constant from here on: np.exp(x) records, math.exp(x) does not."
        )


def warn_of_copy(t: Tensor) -> None:
    """Warn that a copy of `t` does not depend on it, if that is tracked."""
    if t._row and is_recording():
        _warn("To copy a tensor it is recommended to use t.clone(), or t.detach().clone() for a copy without its gradient")


def _warn(message: str) -> None:
    # in the caller's name: Python 3.11 cannot skip a package's files itself
    inside = (sys._getframe(level).f_code.co_filename.startswith(_FOLDER) for level in itertools.count(1))
    warnings.warn(message, UserWarning, stacklevel=1 + sum(itertools.takewhile(bool, inside)))
