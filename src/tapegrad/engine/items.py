"""``x[key]`` of arrays, compiled: views by slices and numbers along the first dimension, and single elements as numbers.

Common are tracked arrays of contiguous float64 while nobody looks at each operation. Everything else, and every refusal of the
tape, is left to the Python form. All objects are made first, since making them may let the collector run, and with it any code;
what was read is looked at again after that.
"""

from tapegrad.compilation.jit import inline, kernel
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    OBJECT,
    array_data,
    array_dimensions,
    array_is_contiguous,
    array_rank,
    array_type_number,
    is_float,
    load_f64,
    load_i64,
    release,
    retain,
)
from tapegrad.engine.objects import (
    allocate,
    attribute,
    call_object,
    clear_error,
    data_of,
    handle_of,
    has_error,
    integer_value,
    item_of,
    item_of_tuple,
    length_of_tuple,
    new_float,
    new_tuple,
    prepared,
    set_item_of_tuple,
    type_of,
)
from tapegrad.engine.operator_results import deliver_tensor
from tapegrad.engine.record_structural import write_map
from tapegrad.engine.view_families import (
    MOST_DIMENSIONS,
    is_of_usual_family,
    meta_of,
    prepare_family,
    refused,
    taken_in_family,
    view_in_family,
)


@inline
def is_bound(tape, obj):
    """Whether an end of a slice is None or an integer, which runs no code."""
    return obj == tape.none or type_of(obj) == tape.int_type


@inline
def is_plain_slice(tape, key):
    """Whether a key is a slice without a step."""
    if type_of(key) != tape.slice_type or load_i64(key + OBJECT + 16) != tape.none:
        return False
    return is_bound(tape, load_i64(key + OBJECT)) and is_bound(tape, load_i64(key + OBJECT + 8))


@inline
def is_part_of_key(tape, part):
    """Whether a part of a key is a number or a slice without a step."""
    return type_of(part) == tape.int_type or is_plain_slice(tape, part)


@inline
def whole_key(tape, key):
    """A key as a tuple that ends in an ellipsis, so that it never gives a number; 0 for keys that are left to Python."""
    single = type_of(key) == tape.int_type or type_of(key) == tape.slice_type
    if not single and type_of(key) != tape.tuple_type:
        return 0
    count = 1 if single else length_of_tuple(key)
    for k in range(count):
        if not is_part_of_key(tape, key if single else item_of_tuple(key, k)):
            return 0
    whole = new_tuple(count + 1)
    if whole == 0:
        clear_error()
        return 0
    for k in range(count):
        part = key if single else item_of_tuple(key, k)
        retain(part)
        set_item_of_tuple(whole, k, part)
    retain(tape.ellipsis)
    set_item_of_tuple(whole, count, tape.ellipsis)
    return whole


@inline
def name_of_part(tape, whole, is_single, data, part):
    """The number of the name of a view's node: that of its last step that takes a part of the elements, or of a slice alone."""
    name, own = tape.alias_name, 0
    for k in range(length_of_tuple(whole) - 1):
        if type_of(item_of_tuple(whole, k)) == tape.int_type:
            name = tape.select_name
            continue
        if is_single or array_dimensions(part)[own] != array_dimensions(data)[k]:
            name = tape.slice_name
        own += 1
    return name


@inline
def is_taken(tape, data):
    """Whether data are an array from which parts are taken here."""
    if data == 0 or is_float(tape, data) or type_of(data) != tape.array_type or array_type_number(data) != FLOAT64:
        return False
    return array_is_contiguous(data) and 0 < array_rank(data) <= MOST_DIMENSIONS


@inline
def element(tape, x, handle, data, place):
    """A new array of no dimension: an element as a number."""
    t = prepared(tape, allocate(tape.array_class, 0))
    if t == 0 or handle_of(tape, x) != handle or data_of(tape, x) != data:
        return refused(t, 0)
    number = new_float(load_f64(array_data(data) + 8 * place))
    if number == 0:
        return refused(t, 0)
    geometry = tape.lengths
    geometry[0], geometry[1], geometry[2], geometry[3] = 1, place, 1, 1
    return deliver_tensor(tape, t, number, write_map(tape, 0, tape.select_name, handle, data, geometry, 1.0, number))


@inline
def part_in_family(tape, x, handle, data, key, is_single, theirs, base, family):
    """The same of the part that a whole key names."""
    if not prepare_family(tape, theirs, family) or data_of(tape, x) != data:
        return refused(0, 0)
    part = item_of(data, key)
    if part == 0:
        clear_error()  # the Python form says what is wrong
        return 0
    name, take = name_of_part(tape, key, is_single, data, part), call_object(tape.take_class, 1, key, key)
    return view_in_family(tape, x, handle, data, part, name, take, type_of(x), theirs, base, family)


@inline
def view_of(tape, x, handle, data, key, is_single, name, take):
    """A new view by a whole key, of a slice alone or not, or by what takes it, if there is that; as `item` answers."""
    theirs = meta_of(tape, x)
    if theirs == 0:
        return refused(0, 0)
    base = attribute(tape, theirs, META_BASE)
    base = x if base == tape.none else base
    family = load_i64(base + tape.meta_at)
    if family == tape.none or type_of(theirs) != tape.meta_class or not is_of_usual_family(tape, theirs):
        return 0
    retain(base)
    if take != 0:
        t = taken_in_family(tape, x, handle, data, name, take, theirs, base, family)
    else:
        t = part_in_family(tape, x, handle, data, key, is_single, theirs, base, family)
    release(base)
    return t


@inline
def names_element(tape, whole, data):
    """Whether a whole key has a number for each dimension."""
    count = length_of_tuple(whole) - 1
    for k in range(count):
        if type_of(item_of_tuple(whole, k)) != tape.int_type:
            return False
    return count == array_rank(data)


@inline
def part_by_key(tape, x, handle, data, key, of_array):
    """The view that numbers and slices name, as `item` answers; elements of arrays, which are numbers, are left to Python."""
    whole = whole_key(tape, key)
    if whole == 0:
        return 0
    t = 0
    if not (of_array and names_element(tape, whole, data)):
        t = view_of(tape, x, handle, data, whole, type_of(key) == tape.slice_type, 0, 0)
    release(whole)
    return t


@inline
def item(tape, x, key):
    """``x[key]``; 0 if this is not a common case, -1 if an exception is set."""
    of_array = type_of(x) == tape.array_class
    watched = tape.tensor_type != tape.plain_tensor or not (of_array or type_of(x) == tape.plain_tensor)
    if watched or tape.recording_off != 0 or tape.items_ready == 0:
        return 0
    data, handle = data_of(tape, x), handle_of(tape, x)
    if handle <= 0 or not is_taken(tape, data):
        return 0
    if not of_array or type_of(key) != tape.int_type or array_rank(data) > 1:
        return part_by_key(tape, x, handle, data, key, of_array)
    place, extent = integer_value(key), array_dimensions(data)[0]
    if place == -1 and has_error() != 0:
        clear_error()
        return 0
    if place < -extent or place >= extent:
        return 0
    return element(tape, x, handle, data, place + extent if place < 0 else place)


@kernel("int64(Tape,int64,int64)")
def item_method(tape, x, key):
    """The method ``__getitem__`` of arrays: a new reference, 0 if the Python form raised."""
    t = item(tape, x, key)
    if t != 0:
        return 0 if t == -1 else t
    return call_object(tape.item_form if type_of(x) == tape.array_class else tape.item_form_of_tensors, 2, x, key)
