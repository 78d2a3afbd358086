"""Backward passes as they run, measured from stop to stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import c_int64
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from tapegrad.autograd.tensor_backward import tensor_backward
from tapegrad.engine import layout as at
from tapegrad.inspection.profile_tables import LineProfile, PassProfile
from tapegrad.inspection.recorded_rows import Kind, kind_of
from tapegrad.interrupts import undone
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor

__all__ = ["MeasuredPasses"]

_ENDED = (at.DONE, at.FREED_ROW, at.STALE_ROW)


class _Pass:
    """The rows that one pass will walk through, from the highest down, as they were before it began."""

    def __init__(self, address: int, owners: Callable[[Any], Sequence[LineProfile | None]]) -> None:
        words = (c_int64 * at.SWEEP_WORDS).from_address(address)
        self.words = words
        low, top = words[at.LOW], words[at.TOP]
        offsets = np.ctypeslib.as_array((c_int64 * (top + 1)).from_address(words[at.OFFSET]))[low:]
        self.slots = (offsets != at.UNSEEN).nonzero()[0][::-1] + low
        self.kinds = [kind_of(slot) for slot in self.slots.tolist()]
        self.owners = owners(self.slots)
        self.adjoint_bytes = 8 * words[at.PEAK]
        self.next = 0
        self.compiled = self.host = 0.0
        self.host_rows = 0
        self.stopped = 0.0  # when the walk stopped for Python, and how much of the time since then lines took for themselves
        self.waiting: tuple[Kind, LineProfile | None] | None = None

    def stretch(self, last: int) -> list[tuple[Kind, LineProfile | None]]:
        """Rows that the walk went through since it stopped, down to one."""
        start = self.next
        while self.next < len(self.slots) and self.slots[self.next] >= last:
            self.next += 1
        return list(zip(self.kinds[start : self.next], self.owners[start : self.next], strict=True))


class MeasuredPasses:
    """Measures passes for a profile: stretches of compiled code, and derivatives in Python between them."""

    def __init__(self, profile: Any) -> None:
        self.profile = profile
        self.passes: dict[int, _Pass] = {}

    def begin(self) -> Callable[[], None]:
        """Measure from now on; what ends it."""
        entry, method = TAPE.compiled("run"), vars(Tensor)["backward"]
        TAPE.run = self._run_of(entry)  # type: ignore[method-assign]
        # The compiled method walks by itself; its Python form does the same in steps.
        setattr(Tensor, "backward", tensor_backward)  # noqa: B010

        def end() -> None:
            TAPE.run = entry  # type: ignore[method-assign]
            setattr(Tensor, "backward", method)  # noqa: B010

        return end

    def _run_of(self, entry: Any) -> Any:
        def run(tape: int, address: int, releases: int, context: int, cotangents: int) -> Any:
            if not self.profile.is_here():
                return entry(tape, address, releases, context, cotangents)
            begun = perf_counter()
            one = self.passes.get(address)
            if one is None:
                one = self.passes[address] = _Pass(address, self.profile.owners)
            else:
                self._end_host(one, begun)
            forget = partial(self.passes.pop, address, None)
            start = perf_counter()
            status = undone(forget, entry, tape, address, releases, context, cotangents)
            end = perf_counter()
            self._note(one, status, start, end)
            if status in _ENDED:
                del self.passes[address]
                self.profile.note_pass(
                    PassProfile(one.compiled, one.host, len(one.slots), one.host_rows, one.adjoint_bytes), one.adjoint_bytes
                )
            one.stopped = perf_counter()
            self.profile.excluded += one.stopped - begun
            return status

        return run

    def _note(self, one: _Pass, status: int, start: float, end: float) -> None:
        ended = status in _ENDED
        rows = one.stretch(-1 if ended else one.words[at.CURRENT])
        stop = None if ended or not rows else rows.pop()
        spent = end - start
        one.compiled += spent
        total = sum(kind.weight for kind, _ in rows)
        for kind, owner in rows:
            self._give(kind, owner, spent * kind.weight / total)
        if not rows and stop is not None:
            self._give(*stop, spent)
        one.waiting = stop
        self.profile.events.sweep(f"compiled sweep of {len(rows)} rows", start, end)

    def _end_host(self, one: _Pass, now: float) -> None:
        """Python has done its step: what lines of the user's code took in it was counted for them."""
        if one.waiting is None:
            return
        spent = max(now - max(one.stopped, self.profile.since), 0.0)
        kind, owner = one.waiting
        one.host += spent
        one.host_rows += 1
        one.waiting = None
        self._give(kind, owner, spent)
        if owner is not None:
            owner.host += spent
        self.profile.excluded += spent
        self.profile.events.sweep(f"{kind.operation} (Python)", one.stopped, now)

    def _give(self, kind: Kind, owner: LineProfile | None, spent: float) -> None:
        owner = owner or self.profile.present
        if owner is not None:
            owner.backward += spent
        operation = self.profile.operation(kind.operation)
        operation.backward += spent
        operation.is_host |= kind.is_host
