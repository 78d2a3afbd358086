"""Views of tensors and arrays as members of a family: what they share with what they are views of, and how they are taken of it."""

from tapegrad.compilation.jit import inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    array_data,
    array_dimensions,
    array_rank,
    array_strides,
    array_type_number,
    load_i64,
    release,
    retain,
    store_i64,
)
from tapegrad.engine.objects import (
    allocate,
    append_to_list,
    attribute,
    call_object,
    call_object0,
    change_attribute,
    clear_error,
    data_of,
    handle_of,
    has_error,
    length_of_list,
    new_list,
    new_meta,
    new_weak_reference,
    prepared,
    type_of,
)
from tapegrad.engine.operator_results import deliver_tensor
from tapegrad.engine.record_structural import write_map

MOST_DIMENSIONS = (MOST_LENGTHS - 2) // 2  # of a map that is written in the room for lengths


@inline
def release_any(obj):
    """Give a reference back, if there is an object."""
    if obj != 0:
        release(obj)


@inline
def refused(t, data):
    """Answer where an object could not be made or the row was refused: the Python form, unless code was interrupted."""
    release_any(data)
    release_any(t)
    return -1 if has_error() != 0 else 0


@inline
def view_handle(tape, name, handle, data, part):
    """Record that `part` is a view of `data`."""
    geometry, rank = tape.lengths, array_rank(part)
    geometry[0], geometry[1] = rank, (array_data(part) - array_data(data)) // 8
    for d in range(rank):
        geometry[2 + d] = array_dimensions(part)[d]
        geometry[2 + rank + d] = array_strides(part)[d] // 8
    return write_map(tape, 0, name, handle, data, geometry, 1.0, part)


@inline
def meta_of(tape, t):
    """What only some tensors have, borrowed; made where there is none yet. 0 without memory."""
    meta = load_i64(t + tape.meta_at)
    if meta == tape.none:
        made = new_meta(tape)
        if made == 0:
            return 0
        if load_i64(t + tape.meta_at) == tape.none:
            store_i64(t + tape.meta_at, made)
            release(tape.none)
        else:  # code that ran meanwhile made one
            release(made)
        meta = load_i64(t + tape.meta_at)
    return meta


@inline
def complete(tape, meta, which, made):
    """Give what only some tensors have a new counter or list, unless it has one; whether it has one then."""
    if made != 0 and attribute(tape, meta, which) == tape.none:
        change_attribute(tape, meta, which, made)
    elif made != 0:
        release(made)
    return attribute(tape, meta, which) != tape.none


@inline
def prepare_family(tape, theirs, family):
    """Let tensors have what their views share."""
    if attribute(tape, theirs, META_VERSION) == tape.none and not complete(
        tape, theirs, META_VERSION, call_object0(tape.version_class)
    ):
        return False
    return attribute(tape, family, META_VIEWS) != tape.none or complete(tape, family, META_VIEWS, new_list(0))


@inline
def way_to(tape, theirs, take):
    """How a view is taken from what `theirs` is a view of, or from the array itself; the reference is taken over."""
    if take == 0 or attribute(tape, theirs, META_BASE) == tape.none:
        return take
    chain = call_object(tape.replay_class, 2, attribute(tape, theirs, META_REPLAY), take)
    release(take)
    return chain


@inline
def is_of_usual_family(tape, theirs):
    """Whether views of the array are told nothing but what it is."""
    return (
        attribute(tape, theirs, META_MADE_WITHOUT_GRAD) == tape.no_text
        and attribute(tape, theirs, META_ONE_OF_MANY) == tape.no_text
    )


@inline
def adopt(tape, t, own, theirs, base, way):
    """Tell a view what it is a view of; references to `own` and `way` are taken over."""
    retain(base)
    change_attribute(tape, own, META_BASE, base)
    change_attribute(tape, own, META_REPLAY, way)
    version = attribute(tape, theirs, META_VERSION)
    retain(version)
    change_attribute(tape, own, META_VERSION, version)
    store_i64(t + tape.meta_at, own)
    release(tape.none)


@inline
def announce(tape, t, link, family):
    """Let a family know a new view; the answer of the whole."""
    views = attribute(tape, family, META_VIEWS)
    failed = append_to_list(views, link) != 0
    release(link)
    count = length_of_list(views)
    if not failed and count >= 8 and count & (count - 1) == 0:
        answer = call_object(tape.look_through, 1, family, family)
        failed = answer == 0
        release_any(answer)
    if failed:
        release(t)
        return -1
    return t


@inline
def is_unchanged_family(tape, x, handle, data, theirs, base, family):
    """Whether code that ran meanwhile has left an array and its family as they were."""
    own_base = attribute(tape, theirs, META_BASE)
    return (
        handle_of(tape, x) == handle
        and data_of(tape, x) == data
        and (own_base == base or (own_base == tape.none and base == x))
        and attribute(tape, theirs, META_VERSION) != tape.none
        and attribute(tape, family, META_VIEWS) != tape.none
    )


@inline
def view_in_family(tape, x, handle, data, part, name, take, kind, theirs, base, family):
    """A new view of this class, and its place among the views of `base`, which the caller holds.

    References to the part of the data, and to what takes it, are taken over.
    """
    t = prepared(tape, allocate(kind, 0)) if take != 0 else 0
    own = new_meta(tape) if t != 0 else 0
    way = 0
    if own != 0:
        way = way_to(tape, theirs, take)
    else:
        release_any(take)
    link = new_weak_reference(t, 0) if way != 0 else 0
    recorded = 0
    if link != 0 and is_unchanged_family(tape, x, handle, data, theirs, base, family):
        recorded = view_handle(tape, name, handle, data, part)
    if recorded <= 0:
        release_any(own)
        release_any(way)
        release_any(link)
        return refused(t, part)
    t = deliver_tensor(tape, t, part, recorded)
    if t == 0:
        release(own)
        release(way)
        release(link)
        return 0
    adopt(tape, t, own, theirs, base, way)
    return announce(tape, t, link, family)


@inline
def taken_in_family(tape, x, handle, data, name, take, theirs, base, family):
    """The same of the part that a function takes of the data."""
    if not prepare_family(tape, theirs, family) or data_of(tape, x) != data:
        return refused(0, 0)
    part = call_object(take, 1, data, 0)
    if part == 0:
        clear_error()
        return 0
    if type_of(part) != tape.array_type or array_type_number(part) != FLOAT64 or not 0 < array_rank(part) <= MOST_DIMENSIONS:
        release(part)
        return 0
    retain(take)
    return view_in_family(tape, x, handle, data, part, name, take, tape.plain_tensor, theirs, base, family)
