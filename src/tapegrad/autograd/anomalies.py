"""What a row sends to its arguments, looked at while anomalies are looked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np

from tapegrad.autograd.decoded_rows import Argument, arguments_of
from tapegrad.autograd.recording_stacks import Trace, described, running
from tapegrad.autograd.row_derivatives import Contributions
from tapegrad.frames import frames_of_package
from tapegrad.tensors.tensor import array_of

__all__ = ["Settings", "observed"]


class Settings:
    """What is looked for, in all threads."""

    check_nan = True


def observed(slot: int, send: Callable[[], Contributions]) -> Contributions:
    """Contributions of a row, if they are computed without error and, where that is looked for, none of them is nan.

    Raises
    ------
    RuntimeError
        Names the operation.
    """
    rows = running()
    rows.append(described(slot))
    try:
        sent = send()
        if Settings.check_nan:
            _check(slot, sent)
    except Exception:
        _report(*rows[-1])
        raise
    finally:
        rows.pop()
    return sent


def _check(slot: int, sent: Contributions) -> None:
    arguments: Sequence[Argument] = ()
    number = -1
    for argument, c in sent:
        data = array_of(c)
        if not arguments:
            arguments = arguments_of(slot)
        # In the order of the arguments, of which some are left out.
        number = next(k for k in range(number + 1, len(arguments)) if arguments[k].slot == argument.slot)
        if data.dtype.kind == "f" and np.isnan(data).any():
            raise RuntimeError(f"Function '{running()[-1][0]}' returned nan values in its {number}th output.")


def _report(name: str, trace: Trace | None) -> None:
    """Warn of an error in a row, and of the rows whose derivatives recorded it."""
    level = frames_of_package() + 1
    if trace is None:
        warnings.warn(
            f"Error detected in {name}. No forward pass information available. Enable detect anomaly during forward pass for more "
            "information.",
            UserWarning,
            stacklevel=level,
        )
        return
    warnings.warn(
        f"Error detected in {name}. Traceback of forward call that caused the error:\n{trace}", UserWarning, stacklevel=level
    )
    while trace is not None and trace.parent is not None:
        name, trace = trace.parent
        if trace is None:
            text = (
                f"\n\nPrevious calculation was induced by {name}. No forward pass information available. Enable detect anomaly "
                "during forward pass for more information."
            )
        else:
            text = (
                f"\n\nPrevious calculation was induced by {name}. Traceback of forward call that induced the previous "
                f"calculation:\n{trace}"
            )
        warnings.warn(text, UserWarning, stacklevel=level)
