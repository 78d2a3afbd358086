"""Warnings that values are taken out of a tracked tensor, so that nothing made of them has a gradient."""

from __future__ import annotations

import warnings

from tapegrad.frames import frames_of_package, is_inside_driver
from tapegrad.tensors.tensor import Tensor, is_recording

__all__ = ["warn_of_copy", "warn_of_number"]


def warn_of_number(t: Tensor) -> None:
    """Warn that a number is taken out of `t`, if that is tracked."""
    if t._row and is_recording():
        warnings.warn(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior: the number is a constant "
            "from here on, without a derivative. np.exp(x) records, math.exp(x) does not."
            + ("" if is_inside_driver() else " Consider using tensor.detach() first, if a constant is meant."),
            UserWarning,
            stacklevel=frames_of_package() + 1,
        )


def warn_of_copy(t: Tensor) -> None:
    """Warn that a copy of `t` does not depend on it, if that is tracked."""
    if t._row and is_recording():
        warnings.warn(
            "To copy a tensor it is recommended to use t.clone(), or t.detach().clone() for a copy without its gradient",
            UserWarning,
            stacklevel=frames_of_package() + 1,
        )
