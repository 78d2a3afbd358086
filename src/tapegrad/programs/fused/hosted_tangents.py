"""Derivatives along many directions of what Python does between pieces of code, where that is linear, as running sums are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.ops.namespaces import PLAIN
from tapegrad.programs.fused.hosted_steps import saved_by
from tapegrad.programs.steps import Step, Structured
from tapegrad.tensors.tensor import make

__all__ = ["HostedLanes", "HostedTangent", "is_linear_step"]

Array = np.ndarray[Any, Any]


def is_linear_step(step: Step, together: bool = False) -> bool:
    """Whether the row of a step says itself what it gives for many tangents; if `together`, that it has no second derivative."""
    if not isinstance(step, Structured):
        return False
    _, is_linear, is_flat = step.payload.op.linear_forms(_varying(step))
    saved, _ = saved_by(step)
    return is_linear and (is_flat or not together) and not any(step.operands[k].number >= 0 for k in saved)


def _varying(step: Structured) -> tuple[bool, ...]:
    return tuple([value.tracked for value in step.operands])


def _context(step: Structured) -> Any:
    """What the row's derivative is given, with the values of this run."""
    saved, saves_result = saved_by(step)
    values = [make(value.array, 0) if k in saved else None for k, value in enumerate(step.operands)]
    values += [make(array, 0) for array in step.extra]
    is_number = step.result.number >= 0
    result = make(step.result.array.item() if is_number else step.result.array, 0) if saves_result or is_number else None
    return step.payload.context(values, result, _varying(step), PLAIN)


class HostedTangent:
    """Tangents of the result, along all directions, as a linear tape has them.

    Parameters
    ----------
    step : Structured
    tangents : dict of ndarray
        Of the operands that vary, with directions in the last axis.
    own : ndarray
        Where those of the result go.
    """

    __slots__ = ("_forms", "_own", "_step", "_tangents")

    def __init__(self, step: Structured, tangents: dict[int, Array], own: Array) -> None:
        self._step, self._tangents, self._own = step, tangents, own
        self._forms, _, _ = step.payload.op.linear_forms(_varying(step))

    def run(self) -> bool:
        """Do it."""
        step, own = self._step, self._own
        lanes = own.shape[-1]
        total: Any = 0.0
        with quiet():
            context = _context(step)
            for k, form in self._forms:
                total = total + form(self._tangents[k], context, step.result.array.shape).reshape(-1, lanes)
        own.reshape(-1, lanes)[...] = total
        return True


class HostedLanes:
    """What goes back to the operands, along all directions.

    Parameters
    ----------
    step : Structured
    own : ndarray
        Where the tangents of the result's adjoint stand, with directions in the last axis.
    cotangents : dict of ndarray
        Where those of operands go.
    """

    __slots__ = ("_cotangents", "_own", "_step")

    def __init__(self, step: Structured, own: Array, cotangents: dict[int, Array]) -> None:
        self._step, self._own, self._cotangents = step, own, cotangents

    def run(self) -> bool:
        """Do it; False if there is no cotangent of an operand that varies."""
        step = self._step
        shape, lanes = step.result.array.shape, self._own.shape[-1]
        rows = self._own.reshape(math.prod(shape), lanes)
        with quiet():
            context = _context(step)
            for lane in range(lanes):
                g = np.ascontiguousarray(rows[:, lane]).reshape(shape)
                found = step.payload.op.vjp(make(g if shape else g.item(), 0), context)
                for k, own in self._cotangents.items():
                    part = found[k] if k < len(found) else None
                    if part is None:
                        return False
                    own[..., lane] = part._data
        return True
