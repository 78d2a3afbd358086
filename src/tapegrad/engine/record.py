"""Recording: one call from Python writes one row and answers with its handle.

Every entry first makes sure that nothing can fail, then writes; a refusal (`FULL`, `NEW_LEAF`, `UNSUPPORTED`) leaves the tape
as it was. The interpreter lock is held throughout, so a row appears whole or not at all, whatever the threads do.
"""

from tapegrad.engine.layout import (
    ARGUMENTS,
    ARITHMETIC_BLOCK,
    ARRAY,
    ARRAY_TYPE,
    CLOCK,
    CONSTANT,
    CONSTANT_CAPACITY,
    CONSTANTS,
    DTYPE,
    ELEMENTWISE_ROW,
    FIRST,
    FLAGS,
    FLOAT32,
    FLOAT64,
    FULL,
    GATHER,
    HANDLE,
    HANDLE_FREE,
    HELD,
    HOST,
    JOIN,
    LEAF,
    LEAVES,
    LENGTH,
    LIMIT,
    NAME,
    NEW_LEAF,
    NOTHING,
    NUMBER,
    OPCODE,
    OVERWRITTEN,
    PAYLOAD,
    RESULT,
    ROW,
    ROWS,
    RULES,
    SAVED_BYTES,
    SAVED_LIMIT,
    SCALE,
    SCATTER,
    SECOND,
    SERIAL,
    SIDE,
    SIDE_CAPACITY,
    SIDE_ROWS,
    SIZE,
    STALE,
    UNSUPPORTED,
    VALUE,
    WIDE,
    WRITTEN,
    WRITTEN_CAPACITY,
    WRITTEN_COUNT,
)
from tapegrad.engine.memory import (
    OBJECT,
    array_data,
    array_dimensions,
    array_is_contiguous,
    array_rank,
    array_size,
    array_strides,
    array_type_number,
    bits_of,
    call7,
    call11_word,
    float_of,
    float_value,
    get,
    is_float,
    item_bytes,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    owner,
    put,
    retain,
    store_f64,
    store_i32,
    store_i64,
    store_u8,
    store_u16,
)
from tapegrad.jit import entry, inline, kernel


@inline
def slot_of(tape, handle):
    """Where the row of a handle stands now; -1 for an untracked operand."""
    return load_i32(get(tape, HANDLE) + 4 * handle) if handle > 0 else -1


@inline
def take_handle(tape, slot):
    """A fresh handle on a row; free handles are chained through the table."""
    handles = get(tape, HANDLE)
    handle = get(tape, HANDLE_FREE)
    put(tape, HANDLE_FREE, -load_i32(handles + 4 * handle) - 2)
    store_i32(handles + 4 * handle, slot)
    hold(tape, slot)
    return handle


@inline
def hold(tape, slot):
    held = get(tape, HELD) + slot
    count = load_u8(held)
    if count < 255:  # 255 stays until the next compaction counts anew
        store_u8(held, (count + 1))


@inline
def unhold(tape, slot):
    held = get(tape, HELD) + slot
    count = load_u8(held)
    if count < 255:
        store_u8(held, (count - 1))


@inline
def write_row(tape, opcode, first, second, value):
    slot = get(tape, ROWS)
    store_u16(get(tape, OPCODE) + 2 * slot, opcode)
    store_u8(get(tape, FLAGS) + slot, 0)
    store_u8(get(tape, HELD) + slot, 0)
    store_i32(get(tape, FIRST) + 4 * slot, first)
    store_i32(get(tape, SECOND) + 4 * slot, second)
    store_f64(get(tape, VALUE) + 8 * slot, value)
    put(tape, ROWS, slot + 1)
    put(tape, CLOCK, get(tape, CLOCK) + 1)
    return slot


@inline
def refuse(tape, rows, words):
    """Whether there is no room for so many rows and record words, one handle, and as many constants as rows."""
    return (
        get(tape, ROWS) + rows > get(tape, LIMIT)
        or get(tape, HANDLE_FREE) < 0
        or get(tape, SIDE_ROWS) + words > get(tape, SIDE_CAPACITY)
        or get(tape, CONSTANTS) + rows > get(tape, CONSTANT_CAPACITY)
    )


@inline
def current_row(tape, handle, value):
    """The row of a scalar operand whose primal is `value` now.

    A tensor may have been changed by a way that records nothing (an optimiser's step on a leaf, memory shared with NumPy).
    Then an alias row with the new primal is put between, and the handle moved to it: rows never change their value.
    """
    slot = slot_of(tape, handle)
    overwritten = load_u8(get(tape, FLAGS) + slot) & OVERWRITTEN != 0
    if load_i64(get(tape, VALUE) + 8 * slot) == bits_of(value) and not overwritten:
        return slot
    if load_u16(get(tape, OPCODE) + 2 * slot) == 0:  # an alias already: a chain of them would grow with every change
        if slot == get(tape, ROWS) - 1 and load_u8(get(tape, HELD) + slot) == 1 and not overwritten:
            store_f64(get(tape, VALUE) + 8 * slot, value)  # nobody has read it yet
            return slot
        slot = load_i32(get(tape, FIRST) + 4 * slot)
    alias = write_row(tape, 0, slot, -1, value)
    unhold(tape, slot_of(tape, handle))
    store_i32(get(tape, HANDLE) + 4 * handle, alias)
    hold(tape, alias)
    return alias


@inline
def fold(tape, value):
    """Reference of a constant folded into a row."""
    index = get(tape, CONSTANTS)
    store_f64(get(tape, CONSTANT) + 8 * index, value)
    put(tape, CONSTANTS, index + 1)
    return -2 - index


@inline
def is_double(tape, handle):
    """Whether a scalar operand's adjoint is float64, as plain rows take for granted."""
    slot = slot_of(tape, handle)
    if load_u16(get(tape, OPCODE) + 2 * slot) & WIDE == 0:
        return True
    return get(get(tape, SIDE) + 8 * load_i32(get(tape, FIRST) + 4 * slot), DTYPE) & 255 == FLOAT64


@entry("int64(int64,int64,int64,float64,float64)")
def scalar1(tape, opcode, handle, x, z):
    """Record ``z = op(x)`` on float64 scalars."""
    if handle < 0:
        return NEW_LEAF
    if refuse(tape, 3, 0):
        return FULL
    if not is_double(tape, handle):
        return UNSUPPORTED
    return take_handle(tape, write_row(tape, opcode, current_row(tape, handle, x), -1, z))


@entry("int64(int64,int64,int64,float64,int64,float64,float64)")
def scalar2(tape, opcode, x_handle, x, y_handle, y, z):
    """Record ``z = op(x, y)`` on float64 scalars; handle 0 is a constant, folded into the row."""
    if x_handle < 0 or y_handle < 0:
        return NEW_LEAF
    if refuse(tape, 3, 0):
        return FULL
    if (x_handle > 0 and not is_double(tape, x_handle)) or (y_handle > 0 and not is_double(tape, y_handle)):
        return UNSUPPORTED
    first = current_row(tape, x_handle, x) if x_handle > 0 else fold(tape, x)
    second = current_row(tape, y_handle, y) if y_handle > 0 else fold(tape, y)
    return take_handle(tape, write_row(tape, opcode, first, second, z))


@entry("int64(int64,int64,int64,float64,float64,float64)")
def scalar_constant(tape, opcode, handle, x, y, z):
    """Record ``z = op(x, y)`` for a tracked float64 scalar and a number."""
    if handle < 0:
        return NEW_LEAF
    if refuse(tape, 3, 0):
        return FULL
    if not is_double(tape, handle):
        return UNSUPPORTED
    first = current_row(tape, handle, x)
    return take_handle(tape, write_row(tape, opcode, first, fold(tape, y), z))


@inline
def begin_record(tape, name, arguments, result, payload, extra):
    """Write the fixed part of a record for the row that comes next; its first word."""
    start = get(tape, SIDE_ROWS)
    record = get(tape, SIDE) + 8 * start
    rank, size, number = 0, 1, FLOAT64
    if not is_float(tape, result):
        rank, size, number = array_rank(result), array_size(result), array_type_number(result)
    words = ARGUMENTS + 2 * arguments + rank + extra
    put(record, LENGTH, words)
    put(record, NAME, name | (arguments << 32))
    put(record, SERIAL, get(tape, CLOCK) + 1)
    put(record, PAYLOAD, payload)
    put(record, SIZE, size)
    put(record, DTYPE, number | (rank << 8))
    put(record, RESULT, 0)
    put(record, SCALE, bits_of(1.0))
    dimensions = ARGUMENTS + 2 * arguments
    for d in range(rank):
        put(record, dimensions + d, load_i64(array_dimensions(result) + 8 * d))
    if payload != 0:
        retain(payload)
    put(tape, SIDE_ROWS, start + words)
    return start


@inline
def primal_of(tape, result):
    """What the value column holds for a result: its value if it is a float64 scalar, else nothing."""
    if is_float(tape, result):
        return float_value(result)
    if array_rank(result) == 0 and array_type_number(result) == FLOAT64:
        return load_f64_at(array_data(result))
    return 0.0


@inline
def load_f64_at(address):
    return float_of(load_i64(address))


@inline
def put_argument(record, k, reference, kind, saved):
    put(record, ARGUMENTS + 2 * k, (reference & 0xFFFFFFFF) | (kind << 32))
    put(record, ARGUMENTS + 2 * k + 1, saved)


@inline
def save_array(tape, record, k, reference, obj):
    """Keep an array alive for the reverse sweep."""
    retain(obj)
    put(tape, SAVED_BYTES, get(tape, SAVED_BYTES) + array_size(obj) * item_bytes(array_type_number(obj)))
    put_argument(record, k, reference, ARRAY, obj)


@inline
def operand_row(tape, handle, obj):
    """The row of an operand, with its current primal if it is a scalar; -1 if untracked."""
    if handle <= 0:
        return -1
    if is_float(tape, obj):
        return current_row(tape, handle, float_value(obj))
    return slot_of(tape, handle)


@inline
def save_operand(tape, record, k, slot, obj, needed, overwritten_by):
    """Store reference and value of one operand of an elementwise row."""
    if is_float(tape, obj):
        if slot >= 0:
            put_argument(record, k, slot, ROW, 0)
        else:
            put_argument(record, k, slot, NUMBER, bits_of(float_value(obj)))
    elif not needed:
        put_argument(record, k, slot, NOTHING, 0)
    elif overwritten_by != 0 and owner(get(tape, ARRAY_TYPE), obj) == overwritten_by:
        put_argument(record, k, slot, STALE, 0)
    else:
        save_array(tape, record, k, slot, obj)


@inline
def widened(tape, obj, number):
    """What a float64 result needs: 1 if this operand explains it (a float64 array), 2 if it speaks against it."""
    if is_float(tape, obj) or array_rank(obj) == 0:
        return 0
    own = array_type_number(obj)
    return 1 if own == FLOAT64 else 2 if own == FLOAT32 else 0


@inline
def is_known(tape, obj):
    """Whether the sweep can read an operand's dtype (`read` in the strided kernels)."""
    return is_float(tape, obj) or array_type_number(obj) <= FLOAT64


@kernel("int64(int64,int64,int64,int64,int64,int64,int64,int64,int64,int64,int64)")
def elementwise_row(tape, opcode, in_place, count, hx, px, hy, py, hw, pw, pz):
    number = FLOAT64 if is_float(tape, pz) else array_type_number(pz)
    if number != FLOAT64 and number != FLOAT32:
        return UNSUPPORTED
    if not is_known(tape, px) or (count > 1 and not is_known(tape, py)) or (count > 2 and not is_known(tape, pw)):
        return UNSUPPORTED
    if number == FLOAT64 and in_place == 0:
        evidence = widened(tape, px, number)
        if count > 1:
            evidence |= widened(tape, py, number)
        if count > 2:
            evidence |= widened(tape, pw, number)
        if evidence == 2:
            return UNSUPPORTED
    rank = 0 if is_float(tape, pz) else array_rank(pz)
    if refuse(tape, 4, ARGUMENTS + 6 + rank) or get(tape, SAVED_BYTES) > get(tape, SAVED_LIMIT):
        return FULL
    x = operand_row(tape, hx, px)
    y = operand_row(tape, hy, py) if count > 1 else -1
    w = operand_row(tape, hw, pw) if count > 2 else -1
    # Four bits a partial: which of x, y, w, z its text uses.
    uses = load_i64(get(tape, RULES) + 32 * opcode)
    need = 0
    if x >= 0:
        need |= uses & 15
    if y >= 0:
        need |= (uses >> 4) & 15
    if w >= 0:
        need |= (uses >> 8) & 15
    start = begin_record(tape, 0, count, pz, 0, 0)
    record = get(tape, SIDE) + 8 * start
    spoiled = owner(get(tape, ARRAY_TYPE), pz) if in_place != 0 else 0
    save_operand(tape, record, 0, x, px, need & 1 != 0, spoiled)
    if count > 1:
        save_operand(tape, record, 1, y, py, need & 2 != 0, spoiled)
    if count > 2:
        save_operand(tape, record, 2, w, pw, need & 4 != 0, spoiled)
    if need & 8 != 0 and not is_float(tape, pz):
        retain(pz)
        put(record, RESULT, pz)
        put(tape, SAVED_BYTES, get(tape, SAVED_BYTES) + array_size(pz) * item_bytes(number))
    return take_handle(tape, write_row(tape, opcode | WIDE, start, -1, primal_of(tape, pz)))


@entry("int64(int64,int64,int64,int64,int64,int64)")
def array1(tape, opcode, hx, px, pz, in_place):
    """Record ``z = op(x)``; `px`, `pz` are addresses of arrays or floats; `in_place`: z overwrote x."""
    if hx < 0:
        return NEW_LEAF
    return call11_word(get(tape, ELEMENTWISE_ROW), tape, opcode, in_place, 1, hx, px, 0, 0, 0, 0, pz)


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64)")
def array2(tape, opcode, hx, px, hy, py, pz, in_place):
    """Record ``z = op(x, y)`` on arrays or floats."""
    if hx < 0 or hy < 0:
        return NEW_LEAF
    return call11_word(get(tape, ELEMENTWISE_ROW), tape, opcode, in_place, 2, hx, px, hy, py, 0, 0, pz)


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64,int64,int64)")
def array3(tape, opcode, hx, px, hy, py, hw, pw, pz, in_place):
    """Record ``z = op(x, y, w)`` on arrays or floats."""
    if hx < 0 or hy < 0 or hw < 0:
        return NEW_LEAF
    return call11_word(get(tape, ELEMENTWISE_ROW), tape, opcode, in_place, 3, hx, px, hy, py, hw, pw, pz)


@inline
def fits(tape, obj, out):
    """Whether an operand is a float, or a C-contiguous float64 array of the result's shape."""
    if is_float(tape, obj):
        return True
    if array_rank(obj) != array_rank(out) or array_type_number(obj) != FLOAT64 or not array_is_contiguous(obj):
        return False
    for d in range(array_rank(out)):
        if load_i64(array_dimensions(obj) + 8 * d) != load_i64(array_dimensions(out) + 8 * d):
            return False
    return True


@inline
def operand_address(tape, obj):
    return obj + OBJECT if is_float(tape, obj) else array_data(obj)


@inline
def operand_step(tape, obj):
    return 0 if is_float(tape, obj) else 1


@entry("int64(int64,int64,int64,int64,int64)")
def compute1(tape, opcode, hx, px, pz):
    """Compute ``z = op(x)`` into a fresh array and record it; 0 if x is untracked (handle 0).

    For small arrays and arithmetic rules: NumPy's own call costs more than all of this.
    """
    if not fits(tape, px, pz):
        return UNSUPPORTED
    if hx < 0:
        return NEW_LEAF
    address = operand_address(tape, px)
    call7(get(tape, ARITHMETIC_BLOCK), opcode, array_size(pz), address, 1, address, 1, array_data(pz))
    return 0 if hx == 0 else call11_word(get(tape, ELEMENTWISE_ROW), tape, opcode, 0, 1, hx, px, 0, 0, 0, 0, pz)


@entry("int64(int64,int64,int64,int64,int64,int64,int64)")
def compute2(tape, opcode, hx, px, hy, py, pz):
    """Compute ``z = op(x, y)`` into a fresh array and record it; 0 if both are untracked."""
    if not (fits(tape, px, pz) and fits(tape, py, pz)):
        return UNSUPPORTED
    if hx < 0 or hy < 0:
        return NEW_LEAF
    x, x_step, y, y_step = (
        operand_address(tape, px),
        operand_step(tape, px),
        operand_address(tape, py),
        operand_step(tape, py),
    )
    call7(get(tape, ARITHMETIC_BLOCK), opcode, array_size(pz), x, x_step, y, y_step, array_data(pz))
    if hx == 0 and hy == 0:
        return 0
    return call11_word(get(tape, ELEMENTWISE_ROW), tape, opcode, 0, 2, hx, px, hy, py, 0, 0, pz)


@entry("int64(int64,int64,int64,int64,int64,int64,int64)")
def view_row(tape, name, handle, px, base, taken, pz):
    """Record a view: ``z[i] = x[offset + strides . i]`` in C order of x.

    `base` is a C-contiguous array of x's shape (x itself, or a stand-in where x is strided) and `taken` the same view of it;
    the map is read off their addresses and strides.
    """
    if handle < 0:
        return NEW_LEAF
    rank = array_rank(taken)
    places = max(rank, 1)
    if refuse(tape, 3, ARGUMENTS + 2 + 2 + 3 * places):
        return FULL
    slot = operand_row(tape, handle, px)
    start = begin_record(tape, name, 1, pz, 0, 2 + 2 * places)
    record = get(tape, SIDE) + 8 * start
    put_argument(record, 0, slot, NOTHING, 0)
    item = item_bytes(array_type_number(base))
    at = ARGUMENTS + 2 + rank
    put(record, at, places)
    put(record, at + 1, (array_data(taken) - array_data(base)) // item)
    for d in range(rank):
        put(record, at + 2 + d, load_i64(array_dimensions(taken) + 8 * d))
        put(record, at + 2 + places + d, load_i64(array_strides(taken) + 8 * d) // item)
    if rank == 0:
        put(record, at + 2, 1)
        put(record, at + 3, 1)
    return take_handle(tape, write_row(tape, GATHER | WIDE, start, -1, primal_of(tape, pz)))


@entry("int64(int64,int64,int64,int64,int64,int64,float64,int64)")
def map_row(tape, scatters, name, handle, px, geometry, scale, pz):
    """Record a strided linear map given in words: rank, offset, dimensions, strides (elements).

    Gather: ``z[i] = scale * x[offset + strides . i]``; scatter: ``z[offset + strides . i] += scale * x[i]``.
    """
    if handle < 0:
        return NEW_LEAF
    places = load_i64(geometry)
    rank = 0 if is_float(tape, pz) else array_rank(pz)
    if refuse(tape, 3, ARGUMENTS + 2 + 2 + rank + 2 * places):
        return FULL
    slot = operand_row(tape, handle, px)
    start = begin_record(tape, name, 1, pz, 0, 2 + 2 * places)
    record = get(tape, SIDE) + 8 * start
    put_argument(record, 0, slot, NOTHING, 0)
    put(record, SCALE, bits_of(scale))
    at = ARGUMENTS + 2 + rank
    for word in range(2 + 2 * places):
        put(record, at + word, load_i64(geometry + 8 * word))
    opcode = SCATTER if scatters != 0 else GATHER
    return take_handle(tape, write_row(tape, opcode | WIDE, start, -1, primal_of(tape, pz)))


@entry("int64(int64,int64,int64,int64,int64,float64,int64)")
def reduce_row(tape, name, handle, px, axes, scale, pz):
    """Record ``z = scale * sum(x)`` over the axes whose bits are set in `axes` (all: -1)."""
    if handle < 0:
        return NEW_LEAF
    scalar = is_float(tape, px)
    x_rank = 0 if scalar else array_rank(px)
    flat = axes == -1 or x_rank == 0
    places = 1 if flat else x_rank
    rank = 0 if is_float(tape, pz) else array_rank(pz)
    if refuse(tape, 3, ARGUMENTS + 2 + 2 + rank + 2 * places):
        return FULL
    slot = operand_row(tape, handle, px)
    start = begin_record(tape, name, 1, pz, 0, 2 + 2 * places)
    record = get(tape, SIDE) + 8 * start
    put_argument(record, 0, slot, NOTHING, 0)
    put(record, SCALE, bits_of(scale))
    at = ARGUMENTS + 2 + rank
    put(record, at, places)
    put(record, at + 1, 0)
    if flat:
        put(record, at + 2, 1 if scalar else array_size(px))
        put(record, at + 3, 0)
    else:
        stride = 1
        for d in range(x_rank - 1, -1, -1):
            extent = load_i64(array_dimensions(px) + 8 * d)
            put(record, at + 2 + d, extent)
            if (axes >> d) & 1:
                put(record, at + 2 + places + d, 0)
            else:
                put(record, at + 2 + places + d, stride)
                stride *= extent
    return take_handle(tape, write_row(tape, SCATTER | WIDE, start, -1, primal_of(tape, pz)))


@entry("int64(int64,int64,int64,int64,int64,int64,int64)")
def join_row(tape, name, count, handles, objects, inner, pz):
    """Record a concatenation. Word k of `handles`, `objects`, `inner`: handle, array, and elements of input k per outer index."""
    for k in range(count):
        if load_i64(handles + 8 * k) < 0:
            return NEW_LEAF
    rank = array_rank(pz)
    if refuse(tape, 1 + count, ARGUMENTS + 3 * count + rank):
        return FULL
    for k in range(count):
        operand_row(tape, load_i64(handles + 8 * k), load_i64(objects + 8 * k))
    start = begin_record(tape, name, count, pz, 0, count)
    record = get(tape, SIDE) + 8 * start
    at = ARGUMENTS + 2 * count + rank
    for k in range(count):
        put_argument(record, k, slot_of(tape, load_i64(handles + 8 * k)), NOTHING, 0)
        put(record, at + k, load_i64(inner + 8 * k))
    return take_handle(tape, write_row(tape, JOIN | WIDE, start, -1, 0.0))


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64,int64)")
def host_row(tape, name, count, handles, objects, save, payload, save_result, pz):
    """Record an operation whose derivative Python computes; `payload` is the Python object that knows how.

    Word k of `save` says whether the value of input k (an array or a float) is needed.
    """
    for k in range(count):
        if load_i64(handles + 8 * k) < 0:
            return NEW_LEAF
    rank = 0 if is_float(tape, pz) else array_rank(pz)
    if refuse(tape, 1 + count, ARGUMENTS + 2 * count + rank) or get(tape, SAVED_BYTES) > get(tape, SAVED_LIMIT):
        return FULL
    for k in range(count):
        operand_row(tape, load_i64(handles + 8 * k), load_i64(objects + 8 * k))
    start = begin_record(tape, name, count, pz, payload, 0)
    record = get(tape, SIDE) + 8 * start
    for k in range(count):
        slot = slot_of(tape, load_i64(handles + 8 * k))
        obj = load_i64(objects + 8 * k)
        if load_i64(save + 8 * k) == 0:
            put_argument(record, k, slot, NOTHING, 0)
        elif is_float(tape, obj):
            put_argument(record, k, slot, NUMBER, bits_of(float_value(obj)))
        else:
            save_array(tape, record, k, slot, obj)
    if save_result != 0 and not is_float(tape, pz):
        retain(pz)
        put(record, RESULT, pz)
        put(tape, SAVED_BYTES, get(tape, SAVED_BYTES) + array_size(pz) * item_bytes(array_type_number(pz)))
    return take_handle(tape, write_row(tape, HOST | WIDE, start, -1, primal_of(tape, pz)))


@entry("int64(int64,int64,int64)")
def leaf_row(tape, payload, px):
    """Register a leaf; `payload` leads back to its tensor."""
    rank = 0 if is_float(tape, px) else array_rank(px)
    if refuse(tape, 1, ARGUMENTS + rank):
        return FULL
    start = begin_record(tape, 0, 0, px, payload, 0)
    put(tape, LEAVES, get(tape, LEAVES) + 1)
    return take_handle(tape, write_row(tape, LEAF | WIDE, start, -1, primal_of(tape, px)))


@entry("int64(int64,int64)")
def another_handle(tape, slot):
    """A further handle on a row."""
    if get(tape, HANDLE_FREE) < 0:
        return FULL
    return take_handle(tape, slot)


@inline
def find_written(tape, key):
    """Place of an owner in the table of written arrays (open addressing), or of the empty entry where it would go."""
    mask = get(tape, WRITTEN_CAPACITY) - 1
    table = get(tape, WRITTEN)
    place = ((key >> 4) * 0x9E3779B97F4A7C1) & mask
    while True:
        found = load_i64(table + 16 * place)
        if found == key or found == 0:
            return table + 16 * place
        place = (place + 1) & mask


@inline
def note_written(tape, obj):
    key = owner(get(tape, ARRAY_TYPE), obj)
    place = find_written(tape, key)
    if load_i64(place) == 0:
        store_i64(place, key)
        put(tape, WRITTEN_COUNT, get(tape, WRITTEN_COUNT) + 1)
    store_i64(place + 8, get(tape, CLOCK))


@entry("int64(int64,int64,int64,int64)")
def move_written(tape, target, capacity, oldest):
    """Use a larger (zeroed) table of written arrays from now on, without the entries that are older than every record."""
    source, before = get(tape, WRITTEN), get(tape, WRITTEN_CAPACITY)
    put(tape, WRITTEN, target)
    put(tape, WRITTEN_CAPACITY, capacity)
    put(tape, WRITTEN_COUNT, 0)
    for k in range(before):
        key, time = load_i64(source + 16 * k), load_i64(source + 16 * k + 8)
        if key != 0 and time >= oldest:
            place = find_written(tape, key)
            store_i64(place, key)
            store_i64(place + 8, time)
            put(tape, WRITTEN_COUNT, get(tape, WRITTEN_COUNT) + 1)
    return 0


@entry("int64(int64,int64)")
def mark_written(tape, obj):
    """Note that the memory of an array was written now: rows recorded before that saved it are stale."""
    if 2 * get(tape, WRITTEN_COUNT) >= get(tape, WRITTEN_CAPACITY):
        return FULL
    note_written(tape, obj)
    return 0
