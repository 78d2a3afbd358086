"""The method `backward` without arguments: the common pass from one tensor to its leaves, in one call.

A driver's pass is one too, if it reaches the driver's own leaves only: it gives the links of these.

Python calls the vjps of rows that have none in compiled code, and takes over where more is to be done: hooks, custom functions,
retained gradients, leaves that are given more than a gradient. The working memory that is used here belongs to a Python object, to
which the header refers while no pass uses it; meanwhile the pass does.
"""

from tapegrad.compilation.jit import entry, inline, kernel
from tapegrad.engine.adjoints import has_shape_of
from tapegrad.engine.delivery import deliver_all
from tapegrad.engine.large_cotangents import drop_all_handed, put_in_array
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    array_is_contiguous,
    array_size,
    array_type_number,
    call5_word,
    is_float,
    load_i64,
    release,
    retain,
)
from tapegrad.engine.objects import (
    allocate,
    attribute,
    call_object,
    call_object0,
    call_python_form,
    clear_error,
    data_of,
    handle_of,
    has_error,
    is_common,
    item_of_tuple,
    length_of_tuple,
    new_integer,
    new_tuple,
    set_item_of_tuple,
    type_of,
)
from tapegrad.engine.plan import begin, forget, record_of
from tapegrad.engine.structs import sweep_at
from tapegrad.engine.sweep import end_pin, release_trash

# How a pass that was started here goes on, besides the answers of the walk: it raised, or Python has done the rest.
RAISED, TAKEN_OVER = -1, -2


@entry("int64(Tape,int64,int64)")
def offer(tape, sweep, owner):
    """Let the method use working memory that no pass uses; 0 if it has some."""
    if tape.idle_sweep != 0:
        return 0
    retain(owner)
    tape.idle_owner = owner
    tape.idle_sweep = sweep
    return 1


@inline
def put_back(tape, sweep, owner):
    """The same without a further reference, which is released if another pass was first."""
    if tape.idle_sweep != 0:
        release(owner)
    else:
        tape.idle_owner = owner
        tape.idle_sweep = sweep


@inline
def are_among(sweep, links, count):
    """Whether the leaves that a pass reaches are those of some links, which come in the order of their rows or its reverse."""
    place = 0
    for k in range(sweep.reached_count):
        payload, tries = sweep.reached[k].payload, 0
        while item_of_tuple(links, place) != payload:
            tries += 1
            if tries == count:
                return False
            place = place + 1 if place + 1 < count else 0
    return True


@inline
def room_for(tape, sweep, k, t):
    """A new array for the gradient of the k-th leaf, or None if it gets none, or has one; 0 if that is left to Python."""
    meta, slot = load_i64(t + tape.meta_at), sweep.reached[k].slot
    if meta == tape.none or handle_of(tape, t) == 0:
        retain(tape.none)
        return tape.none
    if attribute(tape, meta, META_GRAD) != tape.none:
        if sweep.stops != 0:  # Python that runs on the way may give it another one
            return 0
        retain(tape.none)
        return tape.none
    data = data_of(tape, t)
    if data == 0 or not has_shape_of(tape, slot, data) or array_type_number(data) != record_of(tape, slot).dtype & 255:
        return 0
    room = call_object(tape.large_like, 1, data, 0)
    if room != 0 and not (array_is_contiguous(room) and has_shape_of(tape, slot, room)):
        release(room)
        return 0
    return room


@inline
def make_rooms(tape, sweep, rooms):
    """Let the adjoints of large leaves stand in new arrays, of which a tuple gets the references; whether that is possible."""
    for k in range(sweep.reached_count):
        if record_of(tape, sweep.reached[k].slot).size <= LARGEST_BLOCK:
            continue
        t = call_object0(sweep.reached[k].payload)
        room = 0
        if t == tape.none:
            retain(t)
            room = t
        elif t != 0:
            room = room_for(tape, sweep, k, t)
        if t != 0:
            release(t)
        if room == 0 or set_item_of_tuple(rooms, k, room) != 0:
            return False
        if room != tape.none:
            sweep.reached[k].room = room
            put_in_array(sweep, k, room)
    return True


@inline
def started_from(tape, sweep, t, links, count):
    """Start the pass from a tensor; nothing is done and the answer not `DONE` if it is no common one, or needs `MORE_ROOM`.

    If there are links, it is none if it reaches other leaves. The second answer is a tuple with the arrays that large gradients are
    computed in, or 0.
    """
    data, rooms = data_of(tape, t), 0
    if data == 0 or (not is_float(tape, data) and array_size(data) != 1) or handle_of(tape, t) <= 0:
        return TAKEN_OVER, rooms
    leaves = begin(tape, sweep, handle_of(tape, t), 1.0)
    if leaves < 0:
        return MORE_ROOM if leaves == -MORE_ROOM else TAKEN_OVER, rooms
    fits = sweep.aims_first & 2 == 0 and (count == 0 or are_among(sweep, links, count))
    if fits and sweep.aims_first != 0:
        rooms = new_tuple(leaves)
        fits = rooms != 0 and make_rooms(tape, sweep, rooms)
    if fits:
        return DONE, rooms
    forget(sweep, 0, sweep.top)
    end_pin(tape, sweep)
    if rooms != 0:
        release(rooms)
    return RAISED if has_error() != 0 else TAKEN_OVER, 0


@inline
def go_on(tape, owner, what):
    """Let Python do the rest; `what` is a new reference, or 0 for an exception."""
    if what == 0:
        return RAISED
    answer = call_object(tape.go_on, 2, owner, what)
    release(what)
    if answer == 0:
        return RAISED
    release(answer)
    return TAKEN_OVER


@inline
def pair_of(one, other):
    """A tuple that takes two references over; 0 without memory."""
    pair = new_tuple(2)
    if pair == 0:
        release(one)
        release(other)
        return 0
    set_item_of_tuple(pair, 0, one)
    set_item_of_tuple(pair, 1, other)
    return pair


@inline
def walk_through(tape, sweep, owner):
    """Walk, calling vjps; where it stopped, or that it raised or was taken over."""
    walk_at, given, used, cotangents = sweep.kernels[WALK], 0, 0, 0
    while True:
        if sweep.stops != 0:
            given = allocate(tape.context_class, 0)
            if given == 0:
                clear_error()  # then Python tries
        status = call5_word(walk_at, tape, sweep, 1, given, cotangents)
        if status == ODD_COTANGENT:
            if given != 0:
                release(given)
            return go_on(tape, owner, pair_of(used, cotangents))
        if cotangents != 0:
            release(cotangents)
            release(used)
        if status != VJP_DUE:
            if given != 0:
                release(given)
            return status
        used = given
        cotangents = call_object(tape.call_vjp, 2, owner, used)
        if cotangents == 0:
            release(used)
            return RAISED


@inline
def delivered(tape, sweep):
    """Hand the gradients over; 0 if nothing is left, `DELIVERED` if Python tidies up, `MORE_ROOM` if it delivers, or `RAISED`."""
    is_free = call_object(tape.lock, 1, tape.false, 0)
    if is_free == 0:
        return RAISED
    release(is_free)
    if is_free != tape.true:  # another thread changes gradients
        return MORE_ROOM
    waiting = deliver_all(tape, sweep)
    let_go = call_object0(tape.unlock)
    if let_go != 0:
        release(let_go)
    else:
        clear_error()
    if waiting < 0:
        return MORE_ROOM
    if waiting > 0 and tape.pins != 0:
        return DELIVERED
    release_trash(sweep)
    return DELIVERED if sweep.bar_capacity > LARGEST_KEPT or sweep.offset_capacity > LARGEST_KEPT else 0


@inline
def passed(tape, sweep, owner):
    """Go through a pass that was started; 0 if the working memory may be used again, or as Python has left it."""
    status = walk_through(tape, sweep, owner)
    if status < 0:
        return status
    if status == DONE:
        drop_all_handed(sweep)  # those of rows that took theirs without a vjp
        status = delivered(tape, sweep)
        if status <= 0:
            return status
        if status == MORE_ROOM:
            status = DONE
    return go_on(tape, owner, new_integer(status))


@kernel("int64(Tape,int64,int64,int64)")
def backward_method(tape, t, arguments, named):
    """The method `backward`: compiled without arguments, and else its Python form. A new reference; 0 if that raised.

    With links of leaves in the place of arguments it gives False, with nothing done, where the compiled one cannot be taken.
    """
    address, owner, links = tape.idle_sweep, tape.idle_owner, length_of_tuple(arguments)
    if links != 0 and type_of(item_of_tuple(arguments, 0)) != tape.leaf_link:
        return call_python_form(tape.backward_form, t, arguments, named)
    common = named == 0 and address != 0 and is_common(tape, t)
    if common and tape.reshaped == 0 and tape.tensor_type == tape.plain_tensor:
        sweep = sweep_at(address)
        tape.idle_sweep = 0
        started, rooms = started_from(tape, sweep, t, arguments, links)
        if started == DONE:
            sweep.rooms = rooms
            sweep.takes = 1
            status = passed(tape, sweep, owner)
            if status == RAISED:
                drop_all_handed(sweep)
            if rooms != 0:
                release(rooms)
            if status == 0:
                put_back(tape, address, owner)
            else:
                if status == RAISED:
                    end_pin(tape, sweep)
                release(owner)
            if status == RAISED:
                return 0
            retain(tape.none)
            return tape.none
        if started == MORE_ROOM:
            # Python makes room in this very memory, so the next pass finds it large enough.
            answer = go_on(tape, owner, new_integer(MORE_ROOM))
            release(owner)
            if answer == RAISED:
                return 0
        else:
            put_back(tape, address, owner)
            if started == RAISED:
                return 0
    if links != 0:
        retain(tape.false)
        return tape.false
    return call_python_form(tape.backward_form, t, arguments, named)
