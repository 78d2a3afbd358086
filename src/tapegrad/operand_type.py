"""What compiled operators take for tensors: all of them, or none while all operations must go through the Python forms."""

from __future__ import annotations

import threading

from tapegrad.tensor import Tensor

__all__ = ["choosing", "operand_type"]

choosing = threading.RLock()  # the innermost lock, for the collector may end a thread's state anywhere


class _Nothing:
    """A class that no operand has."""


def operand_type(packers: int, inferring: int) -> int:
    """Address of the class, for the header: without hooks on saved values and threads in inference mode, that of tensors."""
    return id(_Nothing if packers or inferring else Tensor)
