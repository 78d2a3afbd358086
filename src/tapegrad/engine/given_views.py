"""Views that Python took of an array, made tensors: their row, and their place among the views of what they are views of.

As for ``x[key]`` (`items`), common are tracked tensors of contiguous float64 while nobody looks at each operation.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.items import (
    MOST_DIMENSIONS,
    adopt,
    is_of_usual_family,
    is_taken,
    is_unchanged_family,
    meta_of,
    prepare_family,
    release_any,
    view_handle,
)
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    array_rank,
    array_size,
    array_type_number,
    call2,
    load_i64,
    owner,
    release,
    retain,
)
from tapegrad.engine.objects import (
    append_to_list,
    attribute,
    call_object,
    clear_error,
    data_of,
    handle_of,
    length_of_list,
    new_meta,
    new_weak_reference,
    set_handle,
    type_of,
)


@inline
def is_view_of(tape, data, part):
    """Whether an array shows elements of another one."""
    if type_of(part) != tape.array_type or array_type_number(part) != FLOAT64 or array_rank(part) > MOST_DIMENSIONS:
        return False
    return array_size(part) > 0 and owner(tape.array_type, part) == owner(tape.array_type, data)


@inline
def chain_to(tape, theirs, take):
    """How a view is taken from what `theirs` is a view of, or from the array itself; 0 without memory."""
    if attribute(tape, theirs, META_BASE) == tape.none:
        retain(take)
        return take
    return call_object(tape.replay_class, 2, attribute(tape, theirs, META_REPLAY), take)


@inline
def is_listed(tape, family, link):
    """Let a family know a new view; whether it does."""
    views = attribute(tape, family, META_VIEWS)
    if append_to_list(views, link) != 0:
        return False
    count = length_of_list(views)
    if count >= 8 and count & (count - 1) == 0:
        answer = call_object(tape.look_through, 1, family, family)
        if answer == 0:
            return False
        release(answer)
    return True


@inline
def adopted(tape, name, x, handle, data, take, part, t, theirs, base, family):
    """Make `t` a view of what the caller holds; 1 if it is one, and else nothing has changed."""
    if not prepare_family(tape, theirs, family):
        clear_error()
        return 0
    own = new_meta(tape)
    way = chain_to(tape, theirs, take) if own != 0 else 0
    link = new_weak_reference(t, 0) if way != 0 else 0
    listed, recorded = link != 0 and is_listed(tape, family, link), 0
    release_any(link)
    if listed and is_unchanged_family(tape, x, handle, data, theirs, base, family):
        recorded = view_handle(tape, name, handle, data, part)
    if recorded > 0 and set_handle(tape, t, recorded):
        adopt(tape, t, own, theirs, base, way)
        return 1
    clear_error()
    if recorded > 0:
        call2(tape.give_back, tape, recorded)
    release_any(own)
    release_any(way)
    return 0


@entry("int64(Tape,int64,int64,int64,int64,int64)")
def adopt_view(tape, name, x, take, part, t):
    """Make `t`, a new tensor around `part`, the view of a tensor that `take` takes: 1, or 0 if this is left to Python."""
    if tape.tensor_type != tape.plain_tensor or type_of(x) != tape.plain_tensor or type_of(t) != tape.plain_tensor:
        return 0
    data, handle = data_of(tape, x), handle_of(tape, x)
    if tape.recording_off != 0 or tape.items_ready == 0 or handle <= 0:
        return 0
    if not is_taken(tape, data) or not is_view_of(tape, data, part):
        return 0
    theirs = meta_of(tape, x)
    if theirs == 0:
        clear_error()
        return 0
    base = attribute(tape, theirs, META_BASE)
    base = x if base == tape.none else base
    family = load_i64(base + tape.meta_at)
    if family == tape.none or type_of(theirs) != tape.meta_class or not is_of_usual_family(tape, theirs):
        return 0
    retain(base)
    done = adopted(tape, name, x, handle, data, take, part, t, theirs, base, family)
    release(base)
    return done
