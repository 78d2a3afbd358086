"""Under which conditions programs run at all."""

from __future__ import annotations

from tapegrad.tape.tape import TAPE
from tapegrad.tensors import untracked_values
from tapegrad.tensors.tensor import is_recording

__all__ = ["may_run"]


def may_run() -> bool:
    """Whether nothing is asked of calls that runs do not do."""
    return not (TAPE.tracers or TAPE.anomalies or TAPE.observers or TAPE.packers or untracked_values.depth()) and is_recording()
