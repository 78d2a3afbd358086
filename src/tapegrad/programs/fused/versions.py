"""Writes in place as versions of arrays: after each write the array is another value, in memory of its own."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.programs.fused.data_steps import results_of
from tapegrad.programs.fused.replaced_parts import Replaced
from tapegrad.programs.fused.rule_text import Unfused
from tapegrad.programs.steps import (
    Computed,
    Copied,
    Gathered,
    Guard,
    Joined,
    Place,
    Ruled,
    Scattered,
    Step,
    Structured,
    Summed,
    Value,
    Viewed,
    Written,
    mapped,
)
from tapegrad.tensors.tensor import FLOATS

__all__ = ["versions_of"]

Array = np.ndarray[Any, Any]
MOST_COPIED = 1_000_000  # elements of the versions together: each is an array of its own
MOST_WRITES = 1000


class _Owner:
    """Memory, and the value that it has at present."""

    def __init__(self, array: Array, value: Value) -> None:
        self.array, self.value, self.version = array, value, 0
        self.low, self.high = np.lib.array_utils.byte_bounds(array)


def versions_of(steps: Sequence[Step], inputs: Sequence[Value], outputs: Sequence[Value]) -> tuple[Sequence[Step], Sequence[Value]]:
    """The steps of a path without writes into memory that has had another value, and what values are at the end.

    Parameters
    ----------
    steps : sequence of Step
    inputs, outputs : sequence of Value

    Returns
    -------
    sequence of Step, sequence of Value
        The same ones if nothing is written over.

    Raises
    ------
    Unfused
        If something else than a recorded write does so, or too often.
    """
    if not any(isinstance(step, Written) for step in steps):
        return steps, outputs
    versions = _Versions(inputs)
    made = versions.of(steps)
    asked_at = steps[-1].asked_at
    return made, [versions.at_the_end(value, asked_at) for value in outputs]


class _Versions:
    def __init__(self, inputs: Sequence[Value]) -> None:
        self._owners: list[_Owner] = []
        self._made: dict[tuple[int, int, int, bool], Value] = {}
        self._kept: list[Any] = []
        self._copied = self._writes = 0
        self._viewed: set[int] = set()  # views that steps give; others are looked at where they are read
        self.steps: list[Step] = []
        for value in inputs:
            if value.number < 0 and value.array.size:
                self._owners.append(_Owner(value.array, value))

    def of(self, steps: Sequence[Step]) -> list[Step]:
        """The steps again, each reading the versions of its time."""
        self._viewed = {id(step.result) for step in steps if isinstance(step, Viewed)}
        for step in steps:
            if isinstance(step, Viewed):
                self._view(step)
                continue
            own = self._reading(step)
            for value in results_of(own):
                if value.number < 0 and value.of is None and value.array.size:
                    own = self._put(own, value)
            self.steps.append(own)
            if isinstance(own, Written):
                self._replace(step, own)
        return self.steps

    def at_the_end(self, value: Value, asked_at: Place) -> Value:
        """What a value is when all is done."""
        return self._present(value, asked_at, False)

    def _owner_of(self, array: Array) -> _Owner | None:
        low, high = np.lib.array_utils.byte_bounds(array)
        found = [owner for owner in self._owners if low < owner.high and owner.low < high]
        if len(found) > 1:
            raise Unfused("an array in the memory of several")
        return found[0] if found else None

    def _view(self, step: Viewed) -> None:
        own = self._present(step.result, step.asked_at, False)
        if own is step.result:
            self.steps.append(step)

    def _present(self, value: Value, asked_at: Place, is_read_at_once: bool) -> Value:
        """A value as it is now: itself where nothing was written into its memory."""
        if value.number >= 0 or value.constant or not value.array.size:
            return value
        owner = self._owner_of(value.array)
        if owner is None or owner.version == 0:
            return value
        key = id(owner), owner.version, id(value), is_read_at_once
        if key not in self._made:
            self._made[key] = self._version(value, owner, asked_at, is_read_at_once)
            self._kept.append(value)
        return self._made[key]

    def _version(self, value: Value, owner: _Owner, asked_at: Place, is_read_at_once: bool) -> Value:
        present = owner.value
        if _is_same(value.array, owner.array) and (value.tracked or not present.tracked):
            return present
        found = Value(_alike(value.array, owner.array, present.array), of=present)
        found.tracked = value.tracked and present.tracked
        if not is_read_at_once:
            step = Viewed(found)
            step.asked_at = asked_at
            self.steps.append(step)
        return found

    def _reading(self, step: Step) -> Step:
        """A step that reads the versions of its time."""
        own = copy.copy(step)

        def now(value: Value) -> Value:
            return self._present(value, step.asked_at, isinstance(step, Copied) and id(value) not in self._viewed)

        if isinstance(own, (Ruled, Structured)):
            own.operands = tuple(map(now, own.operands))
            if isinstance(own, Structured):
                own.chosen = [None if value is None else now(value) for value in own.chosen]
                if any(a is not b for a, b in zip(own.chosen, step.chosen, strict=True)):  # type: ignore[attr-defined]
                    raise Unfused("places in an array that is written into")
        elif isinstance(own, Joined):
            own.sources = tuple(map(now, own.sources))
        elif isinstance(own, Computed):
            own.args, own.kwargs = mapped(own.args, now), mapped(own.kwargs, now)
        elif isinstance(own, Guard):
            own.value = now(own.value)
        elif isinstance(own, (Copied, Gathered, Scattered, Summed)):
            own.source = now(own.source)
        else:
            raise Unfused(f"no code for {step.describe()}")
        return own

    def _put(self, step: Step, value: Value) -> Step:
        """Let the result of a step have memory of its own."""
        owner = self._owner_of(value.array)
        if owner is None:
            self._owners.append(_Owner(value.array, value))
            return step
        if not isinstance(step, Written):
            raise Unfused("it writes over values")
        if value.array.dtype not in FLOATS:  # which a write converts to, as no copy in memory of floats does
            raise Unfused(f"it writes into values of dtype {value.array.dtype}")
        own = Value(np.zeros(value.array.shape, value.array.dtype))
        own.tracked = value.tracked
        step.result = own
        return step

    def _replace(self, step: Step, own: Written) -> None:
        """The version of an array after a write."""
        assert isinstance(step, Written)
        owner = self._owner_of(step.result.array)
        if owner is None or own.result is step.result:
            raise Unfused("a write into memory that nobody has written before")
        before = owner.value
        if step.base.of is not None or not _is_same(step.base.array, owner.array) or (before.tracked and not step.has_row):
            raise Unfused("a write past the graph")
        owner.version += 1
        self._writes += 1
        self._copied += owner.array.size
        if self._copied > MOST_COPIED or self._writes > MOST_WRITES:
            raise Unfused("it writes in place too often")
        if _is_same(step.result.array, owner.array):
            owner.value = own.result
            return
        result = Value(np.zeros(owner.array.shape, owner.array.dtype))
        result.tracked = before.tracked or own.result.tracked
        where = Value(_alike(step.result.array, owner.array, result.array), of=result)
        made = Replaced(before, own.result, where, result)
        made.asked_at = step.asked_at
        self.steps.append(made)
        owner.value = result


def _is_same(a: Array, b: Array) -> bool:
    return a.__array_interface__["data"] == b.__array_interface__["data"] and a.shape == b.shape and a.strides == b.strides


def _alike(view: Array, whole: Array, other: Array) -> Array:
    """The part of another array that a view is of an array in C order."""
    if not whole.flags.c_contiguous or view.dtype != whole.dtype:
        raise Unfused("a write into an array in another order of elements")
    offset = view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    try:
        return np.ndarray(view.shape, view.dtype, other.reshape(-1), offset, view.strides)
    except ValueError:
        raise Unfused("a view beyond an array") from None
