"""Programs at many points: each recorded path takes the points that go its way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tapegrad.drivers.mapping import Points, places_of
from tapegrad.programs.fused.paths import close
from tapegrad.programs.keys import describe
from tapegrad.programs.traces import Trace

__all__ = ["at_points"]

FLOAT64 = np.dtype(np.float64)


def at_points(
    traces: Iterable[Trace], taken: Sequence[Points], numbers: np.ndarray, parts: str, threads: int, share: float = 1.0
) -> tuple[np.ndarray, list[np.ndarray]] | None:
    """Which points paths have taken, and the parts of the result there; None if there is nothing compiled for them.

    Parameters
    ----------
    traces : iterable of Trace
        For arguments like these.
    taken : sequence of Points
        The arguments.
    numbers : ndarray of int
        Of the points that are asked for.
    parts : str
        "value", "gradient" or "value and gradient".
    threads : int
    share : float
        Which part of all points these are: there must be enough in the whole to make machine code for.
    """
    given: list[Any] = []
    shared: list[int] = []
    for one in taken:
        own: list[Any] = list(one.leaves)
        if one.count is None:
            describe(one.value, [], own, [])
            shared += range(len(given), len(given) + len(own))
        elif any(leaf.dtype != FLOAT64 for leaf in own):
            return None
        given += own
    same = frozenset(shared)
    done: list[np.ndarray] = []
    found: list[list[np.ndarray]] = []
    for trace in traces:
        if not len(numbers) or len(trace.inputs) != len(given) or trace.is_running:
            continue
        trace.is_running = True
        try:
            code = trace.fused.many(round(len(numbers) / share), same, parts != "value")
            if code is None or not (code.agrees or _agrees(trace, code, same, parts)):
                continue
        finally:
            trace.is_running = False
        places = places_of(numbers)
        values = [value if k in same else value[places] for k, value in enumerate(given)]
        value, gradients, failed = code.results(values, len(numbers), threads)
        results = ([] if parts == "gradient" else [value]) + gradients
        taken_here = ~failed if failed.any() else slice(None)
        if not failed.all():
            found.append([part[taken_here] for part in results])
            done.append(numbers[taken_here])
        numbers = numbers[failed]
    if len(done) < 2:
        return (done[0], found[0]) if done else None
    order = np.argsort(np.concatenate(done))
    return np.concatenate(done)[order], [np.concatenate(part)[order] for part in zip(*found, strict=True)]


def _agrees(trace: Trace, code: Any, shared: frozenset[int], parts: str) -> bool:
    """Whether machine code gives what the steps give at the point of the latest run, if that did not leave the path."""
    latest = [value.array.copy() for value in trace.inputs]
    try:
        if trace.run(latest) is not None:
            return False
    except Exception:
        return False
    own_value, own = trace.value_and_gradient()
    values = [value if k in shared else value[None] for k, value in enumerate(latest)]
    value, gradients, failed = code.results(values, 1)
    tolerance = trace.fused.tolerance(own)
    code.agrees = (
        not failed[0]
        and close(value[0], own_value, tolerance + 1e-9 * abs(own_value))
        and all(close(a[0], b, tolerance) for a, b in zip(gradients, own, strict=False))
    )
    if not code.agrees:
        trace.fused.forget(shared, parts != "value")
    return bool(code.agrees)
