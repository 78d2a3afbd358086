"""The plain reverse pass: plan, sweep, and hand over the gradients.

Everything that can fail because of the graph fails before the first row runs; gradients are handed over after the last one. So
a pass that raises (in a host row's Python code) leaves every ``.grad`` and every saved value as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from tapegrad.arrays.memory_pool import large_empty
from tapegrad.autograd.decoded_rows import object_at
from tapegrad.autograd.gradient_delivery import aim_leaves, commit, deliver, written
from tapegrad.autograd.pass_state import Finished
from tapegrad.autograd.plain_context import PlainContext
from tapegrad.autograd.row_walk import after_odd_cotangent, resume, run, through_vjps
from tapegrad.autograd.sweep_memory import Sweep, _pool, borrow
from tapegrad.engine import layout as at
from tapegrad.ops.compiled_operators import keep
from tapegrad.tape.locks import gradients
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.grad_mode import without_recording
from tapegrad.tensors.tensor import Tensor

__all__ = ["call_finished", "check_saved", "check_used", "reached_rows", "release", "sweep", "sweep_from", "sweep_towards"]

_ADDRESS = TAPE.address
TELLING = np.uint8(at.HOOKED | at.WATCHED)
T = TypeVar("T")
Fresh = list[tuple[int, Tensor, np.ndarray]]


def sweep_from(handle: int, seed: float) -> None:
    """The common pass: from one tracked tensor of one element to all leaves, releasing what it used.

    Parameters
    ----------
    handle : int
        Of the tensor's row.
    seed : float
        Its adjoint.

    Raises
    ------
    RuntimeError
        If values that it needs were released or overwritten.
    """
    try:
        state = _pool.pop()
    except IndexError:
        state = Sweep()
    try:
        leaves = TAPE.start(_ADDRESS, state.address, handle, seed)
        while leaves < 0:
            _make_room(state, handle)
            leaves = TAPE.start(_ADDRESS, state.address, handle, seed)
        # Small gradients are made at the end, when it is known what each is added to.
        fresh = aim_leaves(state, leaves) if TAPE.reshaped or state.words[at.AIMS_FIRST] else None
        status = through_vjps(state, 1) if state.words[at.STOPS] else TAPE.run(_ADDRESS, state.address, 1, 0, 0)
        finished = _completed(state, leaves, fresh, status)
    except BaseException:
        TAPE.give_up(_ADDRESS, state.address)
        raise
    state.finish()
    if finished:
        call_finished(finished)


def _completed(state: Sweep, leaves: int, fresh: Fresh | None, status: int) -> list[Finished] | None:
    """Take a common pass from where it stopped to the end; leaves with hooks to call then."""
    finished = resume(state, status, True, {}) if status != at.DONE else None
    if fresh is None:
        if not state.shown and not finished and deliver(state):
            return None
        fresh = aim_leaves(state, leaves, begun=True)
        TAPE.run(_ADDRESS, state.address, 1, 0, 0)  # which only writes the gradients
    commit(state, written(state, fresh) + state.shown, 1)
    return finished


def _call_vjp(state: Sweep, context: PlainContext) -> Any:
    """Call a vjp for compiled code; the pass is a variable here, by which a forked process knows it."""
    return context.op.vjp(context.g, context)


def _go_on(state: Sweep, what: int | tuple[PlainContext, Any]) -> None:
    """Do the rest of a pass that was started in compiled code.

    Parameters
    ----------
    what : int or tuple
        Where the walk stopped, or the context and the cotangents of a row that were not all taken; `MORE_ROOM` if there was no
        room to start, and then the pass that follows makes it.
    """
    if what == at.MORE_ROOM:
        _pool.append(state)
        return
    finished = None
    if what != at.DELIVERED:
        leaves = state.words[at.REACHED_COUNT]
        try:
            state.settle_rooms(leaves)
            status = what if isinstance(what, int) else after_odd_cotangent(state, *what, 1)
            finished = _completed(state, leaves, None, status)
        except BaseException:
            TAPE.give_up(_ADDRESS, state.address)
            raise
    state.finish()
    if finished:
        call_finished(finished)


for _word, _function in (
    (at.GO_ON, _go_on),
    (at.CALL_VJP, _call_vjp),
    (at.LOCK, gradients.acquire),
    (at.UNLOCK, gradients.release),
):
    TAPE.header[_word] = keep(_function)


def sweep_towards(handle: int, leaves: Sequence[Tensor], releases: int = 1) -> list[np.ndarray | None] | None:
    """The same towards leaves of the caller's own, whose gradients are returned and not accumulated.

    Parameters
    ----------
    handle : int
        Of a tracked tensor of one element.
    leaves : sequence of Tensor
    releases : int
        0 for a graph that is kept for other passes; all leaves that it reaches are the caller's own then.

    Returns
    -------
    list or None
        For each leaf its gradient, or None if it was not reached. None in all, with nothing done, if the pass would reach other
        leaves, call hooks or show gradients on its way, or need values that were released or overwritten: then it takes the
        general one, which leaves out what these leaves do not need, and says what is wrong with the rest.
    """
    try:
        state = _pool.pop()
    except IndexError:
        state = Sweep()
    try:
        count = TAPE.start(_ADDRESS, state.address, handle, 1.0)
        while count < 0:
            try:
                _make_room(state, handle)
            except RuntimeError:
                TAPE.give_up(_ADDRESS, state.address)
                return None
            count = TAPE.start(_ADDRESS, state.address, handle, 1.0)
        aimed = None if TAPE.reshaped or _tells_others(state) else _aim_own(state, count, leaves, not releases)
        finished = None
        if aimed is None:
            TAPE.clear(_ADDRESS, state.address, 0)
            TAPE.give_up(_ADDRESS, state.address)
        else:
            if state.words[at.STOPS]:
                state.accumulates = False
                finished = resume(state, through_vjps(state, releases), bool(releases), {})
                state.accumulates = True
            else:
                TAPE.run(_ADDRESS, state.address, releases, 0, 0)
            commit(state, state.shown, releases)
    except BaseException:
        TAPE.give_up(_ADDRESS, state.address)
        raise
    found: list[np.ndarray | None] | None = None
    if aimed is not None:
        found = [None] * len(leaves)
        for k, number, array in aimed:
            if state.leaf_words[at.LEAF_WORDS * k + at.LEAF_MODE] != at.IGNORE:  # else every contribution was undefined
                found[number] = state.taken.get(k, array)
    state.finish()
    if finished:
        call_finished(finished)
    return found


def _tells_others(state: Sweep) -> bool:
    """Whether hooks, or tensors that retain their gradients, may wait for a pass that returns to Python."""
    if not state.words[at.STOPS]:
        return False
    flags = TAPE.columns["flags"][state.words[at.LOW] : state.words[at.TOP] + 1]
    return bool(np.bitwise_and(flags, TELLING).any())


def _aim_own(state: Sweep, count: int, leaves: Sequence[Tensor], ignores: bool) -> list[tuple[int, int, np.ndarray]] | None:
    """Direct the adjoints of all leaves that are reached to fresh arrays; None if one is another, unless those are ignored."""
    aimed = []
    words = state.leaf_words
    # By the link of its row: a leaf that has left a row may be reached by more than one, and these are left to the general pass.
    numbers = {id(leaf._meta.leaf): k for k, leaf in enumerate(leaves) if leaf._meta is not None}
    for k in range(count):
        number = numbers.get(words[at.LEAF_WORDS * k + at.LEAF_PAYLOAD])
        if number is None:
            if not ignores:
                return None
            continue
        data = leaves[number]._data
        array = np.empty(()) if type(data) is float else large_empty(data.shape, data.dtype)
        state.place(k, array)
        aimed.append((k, number, array))
    return aimed


def _make_room(state: Sweep, handle: int) -> None:
    """Give a state the memory that a pass from this row needs, or say why it cannot be run."""
    with TAPE.claim():
        state.reset()
        state.plan([TAPE.slot(handle)])
        state.allocate()
        TAPE.clear(_ADDRESS, state.address, 0)


def sweep(
    slots: Sequence[int],
    seeds: Sequence[Any],
    requested: Sequence[int] | None,
    retain: bool,
    demand: bool = False,
    into: Sequence[tuple[Tensor, int]] = (),
    ends: bool = False,
) -> dict[int, np.ndarray] | None:
    """One reverse pass.

    Parameters
    ----------
    slots, seeds : sequence
        Roots and the arrays or floats given to them. The caller has pinned the tape.
    requested : sequence of int or None
        Rows whose adjoints are wanted; None accumulates into all leaves.
    retain : bool
        Whether saved values are kept for another pass.
    demand : bool
        Raise, before anything runs, if a requested row is not reached.
    into : sequence of (Tensor, int)
        Tensors to whose ``.grad`` the adjoint of a requested row is added.
    ends : bool
        Whether the pass ends at the requested rows, as a part of another one.

    Returns
    -------
    dict or None
        Adjoints of the requested rows that were reached.
    """
    state = borrow()
    captured: dict[int, np.ndarray] = {}
    # A pass that raises leaves its state behind: a fresh one costs less than cleaning up.
    if requested is not None:
        state.request(requested, max(slots), ends)
    state.plan(slots)
    if requested is not None and demand:
        try:
            check_used(requested, lambda slot: bool(state.offsets[slot] != at.UNSEEN))
        except RuntimeError:
            TAPE.clear(_ADDRESS, state.address, 0)
            raise
    state.allocate()
    fresh: Fresh = []
    targets: list[tuple[int, int, np.ndarray]] = []
    if requested is None:
        fresh = aim_leaves(state, int(state.header[at.REACHED_COUNT]))
    else:
        for k, (slot, payload, *_) in enumerate(state.leaves()):
            data = object_at(payload).data
            array = np.empty(()) if type(data) is float else np.empty(data.shape, data.dtype)
            state.aim(k, array, at.WRITE)
            targets.append((k, slot, array))
    for slot, seed in zip(slots, seeds, strict=True):
        if TAPE.wants(_ADDRESS, state.address, slot):
            TAPE.add_to_adjoint(_ADDRESS, state.address, slot, id(seed))
    state.accumulates = requested is None or bool(into)
    try:
        finished = run(state, not retain, captured)
        modes = state.leaf_words[at.LEAF_MODE :: at.LEAF_WORDS]
        captured.update({slot: array for k, slot, array in targets if modes[k] != at.IGNORE})
        pairs = [(t, captured[slot].copy()) for t, slot in into if slot in captured]
        commit(state, [*state.shown, *written(state, fresh), *pairs], int(not retain))
    except BaseException:
        TAPE.give_up(_ADDRESS, state.address)
        raise
    state.accumulates = True
    state.finish()
    if finished:
        call_finished(finished)
    return None if requested is None else captured


def reached_rows(slots: Sequence[int], requested: Sequence[int], ends: bool = False) -> set[int]:
    """Which of the requested rows a pass from `slots` would reach; on request, one that ends at them.

    Raises
    ------
    RuntimeError
        If values that it needs were released or overwritten.
    """
    state = borrow()
    state.request(requested, max(slots), ends)
    state.plan(slots)
    reached = {slot for slot in requested if state.offsets[slot] != at.UNSEEN}
    TAPE.clear(_ADDRESS, state.address, 0)
    state.reset()  # the next pass may take it as it is
    state.finish()
    return reached


def check_saved(slots: Sequence[int]) -> None:
    """Raise if a pass from these rows would.

    Raises
    ------
    RuntimeError
        If values that it needs were released or overwritten.
    """
    state = borrow()
    state.plan(slots)
    TAPE.clear(_ADDRESS, state.address, 0)
    state.reset()
    state.finish()


def release(slots: Sequence[int], requested: Sequence[int] | None) -> None:
    """Free what a pass between these rows, or down to all leaves, would free, without walking them."""
    state = borrow()
    if requested is not None:
        state.request(requested, max(slots))
    state.plan(slots)
    state.header[at.STOPS] = 1  # a pass without stops would have released rows on the way
    state.allocate()
    commit(state, [], 1)
    state.finish()


def check_used(requested: Sequence[T], reached: Callable[[T], bool]) -> None:
    """Raise for the first requested row, or group of rows, that was not reached.

    Raises
    ------
    RuntimeError
        Names its position.
    """
    if all(map(reached, requested)):
        return
    for index, slot in enumerate(requested):
        if not reached(slot):
            raise RuntimeError(
                f"The differentiated Tensor at index {index} appears to not have been used in the graph. "
                "Set allow_unused=True if this is the desired behavior."
            )


def call_finished(finished: list[Finished]) -> None:
    """The hooks of leaves after a plain pass."""
    from tapegrad.autograd import hooked_rows

    without_recording(hooked_rows.call_finished, finished)
