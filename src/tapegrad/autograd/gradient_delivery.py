"""Gradients handed over: all at once at the end of a pass, or into their places in place."""

from __future__ import annotations

from _ctypes import PyObj_FromPtr
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tapegrad.arrays.memory_pool import large_empty
from tapegrad.autograd.decoded_rows import Record, object_at, record_of
from tapegrad.autograd.sweep_memory import Sweep
from tapegrad.engine import layout as at
from tapegrad.interrupts import at_once
from tapegrad.ops.views import check_memory
from tapegrad.tape.locks import gradients as _grad_lock
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Meta, Tensor, make, meta_of

__all__ = ["add_gradients", "aim_leaves", "check_leaf", "check_shapes", "commit", "deliver", "written"]

_ADDRESS = TAPE.address
LEAF_PAYLOAD, LEAF_TARGET, LEAF_MODE, LEAF_WORDS, ADD, WRITE = (
    at.LEAF_PAYLOAD,
    at.LEAF_TARGET,
    at.LEAF_MODE,
    at.LEAF_WORDS,
    at.ADD,
    at.WRITE,
)
ndarray = np.ndarray
_empty = np.empty
assert at.IGNORE == 0


_set_grad: Any = vars(Meta)["grad"].__set__


def _gradient(array: np.ndarray) -> Tensor:
    return make(array if array.ndim or array.itemsize != 8 else array.item(), 0)


def additions(t: Tensor, array: np.ndarray, numbers: dict[int, float]) -> list[partial[Any]]:
    """Calls, none of which can fail, that add an array (owned) to ``t.grad`` in place, or make it the gradient.

    `numbers` has what gradients that are numbers will be, by their ids: two tensors may have the same gradient.
    """
    meta = meta_of(t)
    grad = meta.grad
    if grad is None:
        return [partial(setattr, meta, "grad", _gradient(array))]
    data = grad._data
    if type(data) is float:
        total = numbers[id(grad)] = numbers.get(id(grad), data) + array.item()
        steps = [partial(setattr, grad, "_data", total)]
    else:
        check_shapes(data, array)
        check_memory(data)
        TAPE.note_written(data)
        steps = [partial(np.add, data, array, data)]
    if grad._meta is not None and grad._meta.version is not None:
        steps.append(partial(setattr, grad._meta.version, "count", grad._meta.version.count + 1))
    return steps


def check_shapes(gradient: Any, more: Any) -> None:
    """Raise if what is to be added to a gradient has another shape: the leaf was given one in place.

    Raises
    ------
    RuntimeError
        Names both shapes.
    """
    if np.shape(gradient) != np.shape(more):
        raise RuntimeError(
            f"output with shape {list(np.shape(gradient))} doesn't match the broadcast shape {list(np.shape(more))}: the gradient "
            "of a leaf has the shape that the leaf had before. Set it to None."
        )


def _summed(pairs: list[tuple[Tensor, np.ndarray]]) -> list[tuple[Tensor, np.ndarray]]:
    """Each tensor once: one that retained its gradient at several rows gets the sum."""
    sums: dict[int, tuple[Tensor, np.ndarray]] = {}
    for t, array in pairs:
        before = sums.get(id(t))
        sums[id(t)] = (t, array if before is None else before[1] + array)
    return list(sums.values())


def add_gradients(pairs: list[tuple[Tensor, np.ndarray]], *others: partial[Any], before: Callable[[], None] | None = None) -> None:
    """Add arrays (owned) to the gradients of tensors, all at once and together with other calls.

    One call may come before, when these can no longer fail.
    """
    with _grad_lock:  # another thread may be adding to the same gradients
        steps = list(others)
        if len(pairs) > 1 and len({id(t) for t, _ in pairs}) < len(pairs):
            pairs = _summed(pairs)
        metas, gradients, numbers = [], [], dict[int, float]()
        for t, array in pairs:
            meta = t._meta
            if meta is not None and meta.grad is None:
                metas.append(meta)
                gradients.append(_gradient(array))
            else:
                steps += additions(t, array, numbers)
        if metas:
            steps.append(partial(tuple, map(_set_grad, metas, gradients)))
        if before is not None:
            before()
        at_once(*steps)


def commit(state: Sweep, pairs: list[tuple[Tensor, np.ndarray]], releases: int) -> None:
    """Hand the gradients over and end the pass: all gradients are as before if an exception comes first, else all are new."""
    if pairs:
        add_gradients(pairs, partial(TAPE.conclude, _ADDRESS, state.address, releases))
    else:
        TAPE.conclude(_ADDRESS, state.address, releases)
    if state.words[at.TRASH_COUNT] and not TAPE.header[at.PINS]:
        TAPE.drop_trash(state.address)


def deliver(state: Sweep) -> bool:
    """`commit` for leaves alone, in one step: new ones, and sums with old ones. False, with nothing done, if that is not all."""
    with _grad_lock:
        waiting = TAPE.deliver_gradients(_ADDRESS, state.address)
    if waiting > 0 and not TAPE.header[at.PINS]:
        TAPE.drop_trash(state.address)
    return waiting >= 0


def aim_leaves(state: Sweep, count: int, begun: bool = False) -> list[tuple[int, Tensor, np.ndarray]]:
    """Direct the adjoints of leaves: into existing ``.grad`` arrays in place, or into new ones, which are returned.

    In a pass that has begun, adjoints stay where they are; large ones may stand in arrays of their own already.
    """
    fresh = []
    words = state.leaf_words
    at_leaf = 0
    adds = not state.words[at.STOPS]  # Python that runs on the way may give a leaf another gradient
    for k in range(count):
        t = PyObj_FromPtr(words[at_leaf + LEAF_PAYLOAD])()
        if t is not None and t._row:  # else the leaf was dropped or its flag cleared: nobody wants its gradient
            grad = t._meta.grad
            data = None if grad is None else grad._data
            if TAPE.reshaped:
                check_leaf(t, record_of(words[at_leaf]), data)
            if begun and words[at_leaf + LEAF_MODE] == at.IN_PLACE:
                fresh.append((k, t, object_at(words[at_leaf + LEAF_TARGET])))
            elif adds and type(data) is ndarray:
                if not (data.flags.c_contiguous and data.flags.writeable):
                    check_memory(data)
                state.targets.append(data)  # lives until the pass is over, whatever others do with the gradient meanwhile
                words[at_leaf + LEAF_TARGET] = id(data)
                words[at_leaf + LEAF_MODE] = ADD
                if grad._meta is not None and grad._meta.version is not None:
                    grad._meta.version.count += 1
            else:
                data = t._data
                if begun or type(data) is float or data.size <= at.BLOCK:
                    array = _empty(()) if type(data) is float else _empty(data.shape, data.dtype)
                    words[at_leaf + LEAF_TARGET] = id(array)
                    words[at_leaf + LEAF_MODE] = WRITE
                else:
                    array = large_empty(data.shape, data.dtype)
                    state.place(k, array)
                fresh.append((k, t, array))
        at_leaf += LEAF_WORDS
    return fresh


def check_leaf(t: Tensor, record: Record, grad: Any) -> None:
    """Raise if a leaf, or its gradient, was given another shape or dtype since the row was recorded.

    Raises
    ------
    RuntimeError
        Names both shapes.
    """
    if getattr(object_at(record.payload), "turned", False):
        raise RuntimeError(
            f"the shape of a leaf was changed in place after it was used: it is {list(np.shape(t._data))} now, and was "
            f"{list(record.shape)}. Compute the result again."
        )
    for data in (t._data, grad):
        if data is None:
            continue
        shape, dtype = (), np.dtype(np.float64)
        if type(data) is not float:
            shape, dtype = data.shape, data.dtype
        if shape != record.shape or dtype != record.dtype:
            raise RuntimeError(
                f"the data of a leaf or of its gradient was replaced after it was used: it has shape {list(shape)} and "
                f"dtype {dtype} now, and had {list(record.shape)} and {record.dtype}. Compute the result again."
            )


def written(state: Sweep, fresh: list[tuple[int, Tensor, np.ndarray]]) -> list[tuple[Tensor, np.ndarray]]:
    """Leaves and their gradients, those left out to which nothing was contributed."""
    taken = state.taken
    return [(t, taken.get(k, array)) for k, t, array in fresh if state.leaf_words[LEAF_WORDS * k + LEAF_MODE] != at.IGNORE]
