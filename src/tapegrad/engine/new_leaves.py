"""Rows for leaves that are used for the first time: what `register_leaf` does in Python, for those that are common."""

from tapegrad.compilation.jit import inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_size, array_type_number, is_float, load_i64, release, retain
from tapegrad.engine.objects import (
    attribute,
    call_object,
    call_object0,
    change_attribute,
    clear_error,
    data_of,
    handle_of,
    set_attribute,
    set_handle,
    type_of,
)
from tapegrad.engine.record_structural import write_leaf


@inline
def meta_of_leaf(tape, t):
    """What only some tensors have, of a leaf without hooks; 0 for others."""
    meta = load_i64(t + tape.meta_at)
    if type_of(meta) != tape.meta_class or attribute(tape, meta, META_HOOKS) != tape.none:
        return 0
    return meta


@inline
def is_small(tape, data):
    """Whether data are a number, or a small array whose adjoints have their kernels."""
    if data == 0 or is_float(tape, data):
        return data != 0
    number, kernels = array_type_number(data), tape.kernel_table
    ready = kernels[GATHER_BLOCK] != 0 and kernels[SCATTER_BLOCK] != 0
    return ready and array_size(data) <= LARGEST_BLOCK and (number == FLOAT64 or number == FLOAT32)


@inline
def link_to(tape, t):
    """How the row of a leaf finds it, a new reference; 0 without memory."""
    link = call_object(tape.leaf_link, 1, t, 0)
    if link == 0:
        clear_error()
        return 0
    data = data_of(tape, t)
    retain(data)
    set_attribute(tape, link, LINK_DATA, data)
    return link


@inline
def register(tape, t):
    """Give a leaf its row, if nobody else does and there is room; the caller has the lock on leaves."""
    link = link_to(tape, t)
    if link == 0:
        return
    # The collector may have run code that used the leaf, or changed it.
    meta, data = meta_of_leaf(tape, t), attribute(tape, link, LINK_DATA)
    if meta != 0 and handle_of(tape, t) == UNREGISTERED and data_of(tape, t) == data:
        handle = write_leaf(tape, link, data)
        if handle > 0 and set_handle(tape, t, handle):
            retain(link)
            change_attribute(tape, meta, META_LEAF, link)
    release(link)


@inline
def register_new(tape, t):
    """Give a leaf that has none its row where that is simple; the collector may run."""
    if (
        handle_of(tape, t) != UNREGISTERED
        or tape.leaf_link == 0
        or meta_of_leaf(tape, t) == 0
        or not is_small(tape, data_of(tape, t))
    ):
        return
    is_free = call_object(tape.lock_leaves, 1, tape.false, 0)
    if is_free == 0:
        clear_error()
        return
    release(is_free)
    if is_free != tape.true:  # another thread registers leaves
        return
    register(tape, t)
    let_go = call_object0(tape.unlock_leaves)
    if let_go != 0:
        release(let_go)
    else:
        clear_error()
