"""The reverse pass that is itself recorded: the same rows and the same rules, walked in Python on `Tensor`s."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial as partial_call
from typing import Any

from tapegrad.autograd.decoded_rows import Argument
from tapegrad.autograd.gradient_delivery import check_shapes
from tapegrad.autograd.pass_state import Finished, Visits
from tapegrad.autograd.row_derivatives import Contributions, contributions, fit
from tapegrad.autograd.sweep import check_used
from tapegrad.autograd.sweep_memory import Sweep, borrow
from tapegrad.engine import layout as at
from tapegrad.interrupts import at_once
from tapegrad.recording.strided_maps import reshape_copy
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.grad_mode import enable_grad, in_gradient_mode
from tapegrad.tensors.modes import is_grad_enabled
from tapegrad.tensors.retained_gradients import watchers_of
from tapegrad.tensors.tensor import Tensor, array_of, is_recording, make, meta_of

__all__ = ["apply_node", "call_finished_recorded", "recorded_sweep", "replace_gradients"]

_ADDRESS = TAPE.address
_LEAF, _ON_PATH, _REQUESTED = at.LEAF | at.WIDE, at.ON_PATH, at.REQUESTED
TELLING = at.HOOKED | at.WATCHED
FEW = 32  # rows up to which a loop takes less than NumPy's calls


def recorded_sweep(
    slots: Sequence[int],
    seeds: Sequence[Tensor],
    requested: Sequence[int] | None,
    demand: bool = False,
    accumulates: bool = True,
    records: bool = True,
    ends: bool = False,
) -> tuple[dict[int, Tensor], list[tuple[Tensor, Tensor]], list[Finished]]:
    """Adjoints, as tracked tensors, of the requested rows or of all leaves that are reached.

    With them come the tensors that retain their gradients, and those; and the leaves whose hooks are to be called at the end.

    Parameters
    ----------
    slots, seeds : sequence
        Roots and what is given to them. The caller has pinned the tape.
    requested : sequence of int or None
        Rows whose adjoints are wanted; None wants all leaves.
    demand : bool
        Raise, before anything runs, if a requested row is not reached.
    accumulates : bool
        Whether leaves get what is contributed to them.
    records : bool
        Whether the pass is recorded, if this thread records; else it only walks as a recorded one does.
    ends : bool
        Whether the pass ends at the requested rows, as a part of another one.
    """
    state = borrow()
    if requested is not None:
        state.request(requested, max(slots), ends)
    state.plan(slots)
    low = state.words[at.LOW]
    reached = _reached(state, low, state.words[at.TOP])
    present = set(reached)
    TAPE.clear(_ADDRESS, state.address, low)
    if requested is not None and demand:
        check_used(requested, present.__contains__)
    state.accumulates = accumulates
    state.seen = Visits(present.__contains__)
    adjoints: dict[int, Tensor] = {}
    found: dict[int, Tensor] = {}
    shown: list[tuple[Tensor, Tensor]] = []
    roots = [(slot, seed) for slot, seed in zip(slots, seeds, strict=True) if slot in present]
    in_gradient_mode(records, _walk, state, roots, reached, adjoints, found, shown)
    finished, state.seen, state.accumulates = state.seen.finished, None, True
    state.reset()
    state.finish()  # one that raises leaves its state behind
    return found, shown, finished


def _reached(state: Sweep, low: int, top: int) -> list[int]:
    """The rows that a planned pass comes to, the highest first."""
    words = state.offsets[low : top + 1]
    if top - low < FEW:
        few = words.tolist()
        return [slot for slot in range(top, low - 1, -1) if few[slot - low] != at.UNSEEN]
    found: list[int] = ((words != at.UNSEEN).nonzero()[0][::-1] + low).tolist()
    return found


def _walk(
    state: Sweep,
    roots: list[tuple[int, Tensor]],
    reached: list[int],
    adjoints: dict[int, Tensor],
    found: dict[int, Tensor],
    shown: list[tuple[Tensor, Tensor]],
) -> None:
    """From the roots through all rows that are reached, the highest first."""
    wanted, marks = _wanted(state), None if state.marks is None else state.marking_words
    for slot, seed in roots:
        _add(adjoints, slot, seed)
    for slot in reached:
        g, columns = adjoints.pop(slot, None), TAPE.columns
        flags, is_leaf = columns["flags"].item(slot), columns["opcode"].item(slot) == _LEAF
        mark = _ON_PATH if marks is None else marks[slot]
        runs = not is_leaf and mark & _ON_PATH != 0
        if flags & TELLING or TAPE.anomalies:
            if g is not None or flags & at.HOOKED:
                _told_step(state, slot, g, runs, wanted, adjoints, found, shown)
            continue
        if g is None:
            continue
        if type(g._data) is not float and not is_recording():
            g = make(g._data.copy(), 0)  # custom functions may keep it or write to it
        if is_leaf or mark & _REQUESTED:
            found[slot] = g
        if runs:
            for argument, c in contributions(state, slot, (g,), wanted):
                _add(adjoints, argument.slot, c)


def call_finished_recorded(finished: list[Finished]) -> None:
    """The hooks of leaves after a recorded pass, which are recorded too."""
    if finished:
        from tapegrad.autograd.hooked_rows import call_finished

        with enable_grad():
            call_finished(finished)


def _add(adjoints: dict[int, Tensor], slot: int, contribution: Tensor) -> None:
    before = adjoints.get(slot)
    adjoints[slot] = contribution if before is None else before + contribution


def _wanted(state: Sweep) -> Callable[[Argument], bool]:
    """Whether a pass needs the adjoint of an argument."""
    if state.marks is None:
        return lambda argument: argument.slot >= 0
    marks = state.marking_words

    def wanted(argument: Argument) -> bool:
        return argument.slot >= 0 and marks[argument.slot] != 0

    return wanted


def _told_step(
    state: Sweep,
    slot: int,
    g: Tensor | None,
    runs: bool,
    wanted: Callable[[Argument], bool],
    adjoints: dict[int, Tensor],
    found: dict[int, Tensor],
    shown: list[tuple[Tensor, Tensor]],
) -> None:
    """The step of a row of which somebody is told."""
    marks = state.marks
    columns = TAPE.columns
    opcode = columns["opcode"].item(slot) & ~at.WIDE
    flags = columns["flags"].item(slot)
    if g is not None and type(g._data) is not float and not is_recording():
        g = make(g._data.copy(), 0)  # hooks and custom functions may keep it or write to it

    def show(g: Tensor) -> None:
        if flags & at.WATCHED and not state.ends_at(slot):
            shown.extend((t, g) for t in watchers_of(slot))
        if opcode == at.LEAF or (marks is not None and marks[slot] & at.REQUESTED):
            found[slot] = g

    def send() -> Contributions:
        if flags & at.HOOKED:
            from tapegrad.autograd.hooked_rows import stop_recorded

            return stop_recorded(state, slot, g, show, wanted, runs)
        if g is None:
            return []
        show(g)
        return contributions(state, slot, (g,), wanted) if runs else []

    step = partial_call(_observed, slot, send) if TAPE.anomalies else send
    for argument, c in in_gradient_mode(is_grad_enabled(), step):  # a hook that sets modes sets them for its row
        _add(adjoints, argument.slot, fit(argument.slot, c))


def _observed(slot: int, send: Callable[[], Contributions]) -> Contributions:
    from tapegrad.autograd.anomalies import observed

    return observed(slot, send)


def apply_node(slot: int, gradients: Sequence[Tensor | None]) -> Any:
    """What a row sends to its arguments for the gradients of its outputs: one tensor, or a tuple with None where there is none."""
    with enable_grad():
        sent = contributions(borrow(), slot, gradients, lambda argument: argument.slot >= 0)
        results = tuple(c for _, c in sent)
    return results[0] if len(results) == 1 else results


def replace_gradients(pairs: Iterable[tuple[Tensor, Tensor]]) -> None:
    """Let each tensor's gradient be a new one that is larger by `g`, the old one keeping its value: all of them at once."""
    fresh: dict[int, tuple[Any, Tensor]] = {}
    for t, g in pairs:
        meta = meta_of(t)
        before = fresh[id(t)][1] if id(t) in fresh else meta.grad
        if before is not None:
            check_shapes(before._data, g._data)
        fresh[id(t)] = (meta, own_copy(g) if before is None else before + g)
    at_once(*(partial_call(setattr, meta, "grad", grad) for meta, grad in fresh.values()))


def own_copy(g: Tensor) -> Tensor:
    """A recorded copy: a gradient never shares memory with a seed or another gradient."""
    return reshape_copy(g, "CopyBackwards", array_of(g).copy())
