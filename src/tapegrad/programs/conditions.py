"""Under which conditions programs run at all."""

from __future__ import annotations

from tapegrad.tape.tape import TAPE
from tapegrad.tensors import untracked_values
from tapegrad.tensors.tensor import is_recording

__all__ = ["ASKED", "ASKED_OF", "may_run"]

# The same as text, for functions that are written out: where a thread has gradient mode off, they leave it to others to ask which.
ASKED = "tape.tracers or tape.anomalies or tape.observers or tape.packers or tape.recording_off or depth()"
ASKED_OF = {"tape": TAPE, "depth": untracked_values.depth}


def may_run() -> bool:
    """Whether nothing is asked of calls that runs do not do."""
    return not (TAPE.tracers or TAPE.anomalies or TAPE.observers or TAPE.packers or untracked_values.depth()) and is_recording()
