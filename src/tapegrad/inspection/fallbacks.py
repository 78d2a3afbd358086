"""Why a row was recorded through Python, where compiled operators could have written it."""

from __future__ import annotations

from _ctypes import PyObj_FromPtr
from typing import Any

import numpy as np

from tapegrad.engine import layout as at
from tapegrad.rules.table import RULES
from tapegrad.tape.tape import TAPE

__all__ = ["reason"]

_OPERATORS = frozenset(("add", "sub", "mul", "div", "pow", "neg", "abs"))
_MODES = (
    ("anomalies", "anomaly detection is on, and all operations pass through Python"),
    ("observers", "rows are being observed, and all operations pass through Python"),
    ("packers", "hooks pack saved values, and all operations pass through Python"),
    ("inferring", "a thread is in inference mode, and all operations pass through Python"),
    ("tracers", "a program is being recorded, and all operations pass through Python"),
)


def reason(entry: str, arguments: tuple[Any, ...]) -> str:
    """Why an entry was called from Python; empty if that does not matter, as the work on the array takes longer."""
    for attribute, text in _MODES:
        if getattr(TAPE, attribute):
            return text
    if entry not in ("scalar_row", "array1", "array2", "array3"):
        return ""
    rule = RULES[arguments[1]].name
    value = arguments[-1] if entry == "scalar_row" else PyObj_FromPtr(arguments[-2])
    if np.size(value) > at.LARGEST_BLOCK:
        return ""
    if isinstance(value, np.ndarray) and value.dtype != np.float64:
        return f"{rule} in {value.dtype.name}: compiled operators take float64"
    if rule.strip("_") not in _OPERATORS:
        return f"{rule.strip('_')} is called as a function, which is Python up to its row; operators are compiled"
    return f"{rule} of operands of other kinds than float64 tensors and numbers of one shape"
