"""What a pass does while anomalies are looked for: it walks row by row, and looks at what each row sends to its arguments."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from tapegrad.autograd.handing_over import add_gradients, check_leaf
from tapegrad.autograd.recorded import Contributions, recorded_sweep
from tapegrad.autograd.rows import Argument, arguments_of, object_at, opcode_of, record_of
from tapegrad.autograd.sweeping import call_finished, release
from tapegrad.autograd.traces import Trace, described, running
from tapegrad.engine import layout as at
from tapegrad.frames import frames_of_package
from tapegrad.tape import TAPE
from tapegrad.tensor import Tensor, array_of

__all__ = ["Settings", "observed", "walk"]


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


def walk(
    slots: Sequence[int],
    seeds: Sequence[Tensor],
    requested: Sequence[int] | None,
    retain: bool,
    demand: bool = False,
    into: Sequence[tuple[Tensor, int]] = (),
) -> dict[int, np.ndarray]:
    """A pass that is not recorded, row by row: arguments, results and effects are those of `tapegrad.autograd.sweeping.sweep`."""
    found, shown, finished = recorded_sweep(
        slots, seeds, requested, demand, accumulates=requested is None or bool(into), records=False
    )
    # A gradient shares memory with nothing: neither with a seed nor with another gradient.
    adjoints = {slot: np.array(array_of(g), order="C") for slot, g in found.items()}
    pairs = [(t, np.array(array_of(g), order="C")) for t, g in shown]
    if requested is None:
        for slot, array in adjoints.items():
            t: Tensor | None = object_at(record_of(slot).payload)() if opcode_of(slot)[0] == at.LEAF else None
            if t is not None and t._row:
                if TAPE.reshaped:
                    check_leaf(t, record_of(slot), None if t._meta is None or t._meta.grad is None else t._meta.grad._data)
                pairs.append((t, array))
    else:
        pairs += [(t, adjoints[slot].copy()) for t, slot in into if slot in adjoints]
    add_gradients(pairs, before=None if retain else partial(release, slots, requested))
    if finished:
        call_finished(finished)
    return adjoints
