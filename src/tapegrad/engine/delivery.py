"""Gradients of leaves, handed over at the end of a pass in one call.

Gradients are made first, and what was found is looked at again before anything changes: allocating may let the collector run, and
with it any code. After that nothing can fail, and no other code runs until all gradients are there and the pass is over.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.adjoints import adjoint_address, has_shape_of
from tapegrad.engine.host_steps import numbers_at
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    OBJECT,
    array_is_contiguous,
    array_is_writeable,
    array_type_number,
    float_value,
    is_float,
    load_f64,
    load_i64,
    release,
    retain,
    store_f64,
    store_i64,
)
from tapegrad.engine.objects import (
    attribute,
    call_object0,
    clear_error,
    data_of,
    handle_of,
    new_float,
    set_attribute,
    tensor_around,
    type_of,
)
from tapegrad.engine.owned import record_dimensions
from tapegrad.engine.plan import record_of
from tapegrad.engine.sweep import end_pin, forget_leaves, forget_rows, hand_over, is_early


@inline
def leaf_at(sweep, k):
    """The k-th leaf."""
    return sweep.reached[k]


@inline
def set_aside(tape, leaf, t, target, grad, data, mode):
    """Note a gradient that is to be set, a number in the place of one, or an array to add to; the first reference is taken over."""
    if target == 0:
        clear_error()
        return False
    meta = load_i64(t + tape.meta_at)
    retain(meta)
    retain(grad)
    retain(data)
    leaf.target = target
    leaf.data = data
    leaf.meta = meta
    leaf.grad = grad
    leaf.mode = mode
    return True


@inline
def prepare_sum(tape, leaf, t, grad, address):
    """Prepare a leaf that has a gradient; False if this is left to Python."""
    if type_of(grad) != tape.plain_tensor:
        return False
    meta, data = load_i64(grad + tape.meta_at), data_of(tape, grad)
    if meta != tape.none and attribute(tape, meta, META_VERSION) != tape.none:
        return False
    slot = leaf.slot
    if not has_shape_of(tape, slot, data):
        return False
    number = record_of(tape, slot).dtype & 255
    if is_float(tape, data):
        return number == FLOAT64 and set_aside(tape, leaf, t, new_float(float_value(data) + load_f64(address)), grad, data, WRITE)
    if array_type_number(data) != number or not array_is_contiguous(data) or not array_is_writeable(data):
        return False
    retain(data)
    return set_aside(tape, leaf, t, data, grad, data, ADD)


@inline
def prepare_leaf(tape, sweep, leaf):
    """Prepare what a leaf gets; False if this is left to Python."""
    t = call_object0(leaf.payload)
    if t == 0:
        clear_error()
        return False
    done = True
    if t != tape.none and handle_of(tape, t) != 0:  # else it was dropped or its flag cleared: nobody wants its gradient
        meta = load_i64(t + tape.meta_at)
        done = meta != tape.none and attribute(tape, meta, META_LEFT) == tape.false
        slot = leaf.slot
        address = adjoint_address(sweep, sweep.offset[slot])
        grad = attribute(tape, meta, META_GRAD) if done else 0
        if done and grad == tape.none:
            record, data = record_of(tape, slot), leaf.room
            form, size = record.dtype, record.size
            if data != 0:
                retain(data)
            else:
                data = numbers_at(tape, address, form & 255, form >> 8, record_dimensions(record), size)
            done = set_aside(tape, leaf, t, tensor_around(tape, data), grad, grad, WRITE)
        elif done:
            done = grad != 0 and prepare_sum(tape, leaf, t, grad, address)
    release(t)
    return done


@inline
def is_as_before(tape, leaf):
    """Whether a leaf has the gradient, and that the data, for which something was prepared."""
    grad = leaf.grad
    if attribute(tape, leaf.meta, META_GRAD) != grad:
        return False
    return grad == tape.none or data_of(tape, grad) == leaf.data


@inline
def exchange(tape, sweep, leaf):
    """Set a gradient, or the number in one; what was there is released with the rest."""
    grad, target = leaf.grad, leaf.target
    if grad == tape.none:
        set_attribute(tape, leaf.meta, META_GRAD, target)
        leaf.target = grad
    else:
        before = data_of(tape, grad)
        if before != leaf.data:  # another leaf has the same gradient: the new number, which nobody has yet, is the sum
            address = adjoint_address(sweep, sweep.offset[leaf.slot])
            store_f64(target + OBJECT, float_value(before) + load_f64(address))
        leaf.target = before
        store_i64(grad + tape.data_at, target)
    leaf.mode = IGNORE


@inline
def put_away(sweep, count):
    """Release what was prepared, or what it took the place of."""
    for k in range(count):
        leaf = leaf_at(sweep, k)
        if leaf.meta != 0:
            release(leaf.target)
            release(leaf.grad)
            release(leaf.data)
            release(leaf.meta)
            leaf.meta = 0
        leaf.target = leaf.room
        leaf.mode = IN_PLACE if leaf.room != 0 and sweep.offset[leaf.slot] & UNWRITTEN == 0 else IGNORE


@inline
def prepare(tape, sweep, count):
    """Prepare all; False if a leaf is left to Python."""
    if tape.tensor_type != tape.plain_tensor:
        return False
    for k in range(count):
        leaf = leaf_at(sweep, k)
        reached = sweep.offset[leaf.slot] & UNWRITTEN == 0
        if reached and not prepare_leaf(tape, sweep, leaf):
            return False
    for k in range(count):
        leaf = leaf_at(sweep, k)
        if leaf.meta != 0 and not is_as_before(tape, leaf):
            return False
    return True


@inline
def deliver_all(tape, sweep):
    """Give all leaves their gradients and end the pass; the caller keeps others from changing gradients meanwhile.

    The number of objects that `drop_trash` is to release, or -1 if this is left to Python: then nothing has happened.
    """
    count = sweep.reached_count
    for k in range(count):
        leaf_at(sweep, k).mode = IGNORE
        leaf_at(sweep, k).meta = 0
    if not prepare(tape, sweep, count):
        put_away(sweep, count)
        return -1
    for k in range(count):
        if leaf_at(sweep, k).mode == WRITE:
            exchange(tape, sweep, leaf_at(sweep, k))
    hand_over(tape, sweep, ADD)
    if is_early(sweep, 1):
        forget_leaves(sweep)
    else:
        forget_rows(tape, sweep, 1)
    end_pin(tape, sweep)
    trash = sweep.trash_count
    put_away(sweep, count)
    return trash


@entry("int64(Tape,Sweep)")
def deliver_gradients(tape, sweep):
    """As `deliver_all`."""
    return deliver_all(tape, sweep)
