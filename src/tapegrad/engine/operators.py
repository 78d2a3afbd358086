"""Operators of `Tensor`, compiled: the common cases of an elementwise operation in one call, from operands to new tensor.

The common cases are float64 scalars and small contiguous float64 arrays of one shape, with Python numbers. For everything else,
and for every refusal of the tape, the operator calls its Python form, which is always right. Nothing here raises: running out
of memory is left to the Python form too.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tapegrad.compilation.jit import entry, inline, kernel
from tapegrad.engine.handles import slot_of
from tapegrad.engine.layout import *
from tapegrad.engine.long_sums import add_by_numpys_loop, rows_in_memory, sum_of_long, sum_of_rows_apart
from tapegrad.engine.memory import (
    OBJECT,
    array_data,
    array_size,
    call2,
    float_of,
    float_value,
    is_float,
    load_i64,
    release,
    retain,
    store_i64,
)
from tapegrad.engine.new_leaves import register_new
from tapegrad.engine.objects import (
    as_operand,
    call_object,
    call_python_form,
    clear_error,
    data_of,
    float_of_integer,
    handle_of,
    has_error,
    integer_value,
    is_collected,
    is_common,
    is_tensor,
    length_of_tuple,
    new_float,
    new_integer,
    new_tensor,
    type_of,
)
from tapegrad.engine.operator_results import computed, deliver_tensor, is_doubles_in_order, number_in, recording, same_shape
from tapegrad.engine.record_structural import write_sum
from tapegrad.engine.strided_sums import copy_in_memory_order, is_strided_block


@inline
def registered_handle(tape, t, handle):
    """The handle of an operand, which is registered if it is a new leaf."""
    if handle >= 0:
        return handle
    register_new(tape, t)
    return handle_of(tape, t)


@inline
def fit_together(tape, x, x_is_number, y, y_is_number):
    """Whether an operation on these cannot fail: new leaves get rows from operations that succeed."""
    if x_is_number or y_is_number:
        return True
    a, b = data_of(tape, x), data_of(tape, y)
    return a != 0 and b != 0 and (is_float(tape, a) or is_float(tape, b) or same_shape(a, b))


@inline
def result(tape, opcode, count, x, y, by_numpy, exponent):
    """New tensor ``op(x, y)``, or ``op(x)`` with `y` the same, for tensors and floats.

    0 if this is not a common case, -1 if an exception is set.
    """
    x_is_number, y_is_number = type_of(x) == tape.float_type, type_of(y) == tape.float_type
    tracking = recording(tape)  # first, because this may run Python, which may change what tensors are
    if tracking < 0:
        return -1
    if not (x_is_number or is_tensor(tape, x)) or not (y_is_number or is_tensor(tape, y)):
        return 0
    t = new_tensor(tape)  # first, because destructors that the collector runs may change the operands
    if t == 0:
        clear_error()
        return 0
    x_handle = handle_of(tape, x) if tracking > 0 and not x_is_number else 0
    y_handle = handle_of(tape, y) if tracking > 0 and not y_is_number and count == 2 else 0
    if (x_handle < 0 or y_handle < 0) and fit_together(tape, x, x_is_number, y, y_is_number):
        x_handle, y_handle = registered_handle(tape, x, x_handle), registered_handle(tape, y, y_handle)
    a, b = (x if x_is_number else data_of(tape, x)), (y if y_is_number else data_of(tape, y))
    if a == 0 or b == 0:  # a subclass's initialiser has not set the data
        release(t)
        return 0
    x_number = number_in(tape, a)
    y_number = 0 if b == a else number_in(tape, b)
    if b == a and x_number != 0:
        b = x_number
    elif y_number != 0:
        b = y_number
    if x_number != 0:
        a = x_number
    t = computed(tape, opcode, count, t, a, b, x_handle, y_handle, by_numpy, exponent)
    if x_number != 0:
        release(x_number)
    if y_number != 0:
        release(y_number)
    return t


@inline
def float_from(tape, obj):
    """A new float for an integer; 0 if the object is none, or too large."""
    if type_of(obj) != tape.int_type:
        return 0
    value = float_of_integer(obj)
    if value == -1.0 and has_error() != 0:
        clear_error()
        return 0
    number = new_float(value)
    if number == 0:
        clear_error()
    return number


@inline
def is_number(tape, x):
    """Whether a tensor's data is a float."""
    data = data_of(tape, x)
    return data != 0 and is_float(tape, data)


@kernel("int64(Tape,int64,int64,int64,int64,int64)")
def operate(tape, opcode, count, exchanged, x, y):
    """Operator of a tensor `x`: ``op(x)``, ``op(x, y)``, or ``op(y, x)`` if exchanged.

    A new reference; 0 if the Python form, which has all cases that are not common, raised.
    """
    first, second, number = x, x, 0
    rule, operands, exponent = opcode, count, 0.0
    by_numpy = type_of(x) == tape.array_class
    if count == 2:  # there is no `y` otherwise
        by_numpy = by_numpy or type_of(y) == tape.array_class
        number = float_from(tape, y)
        second = number if number != 0 else y
        if exchanged != 0:
            first, second = second, x
        elif type_of(second) == tape.float_type:
            value = float_value(second)
            product = product_of_power(opcode, value)
            # Arrays have NumPy's bits, which is two roundings for `x * x * x` where NumPy has one; numbers those of its `**`.
            if product >= 0 and (value != 3.0 or not by_numpy or is_number(tape, x)):
                rule, operands, second = product, 1, x
                exponent = value if by_numpy else 0.0
    if by_numpy:
        t = result(tape, rule, operands, first, second, True, exponent)
    else:  # by itself, since the commonest way has to be the shortest
        t = result(tape, rule, operands, first, second, False, 0.0)
    if number != 0:
        release(number)
    if t != 0:
        return 0 if t == -1 else as_operand(tape, count, x, y, t)
    form = tape.fallbacks[2 * opcode + exchanged]
    return as_operand(tape, count, x, y, call_object(form, count, x, y))


@inline
def sum_of_number(tape, t, x, tracking):
    """The same of a number, into a new tensor."""
    handle, data = registered_handle(tape, x, handle_of(tape, x)) if tracking > 0 else 0, data_of(tape, x)
    if handle < 0 or (handle > 0 and tape.sums_ready == 0) or not is_float(tape, data):
        release(t)
        return 0
    retain(data)
    if handle > 0:
        handle = write_sum(tape, tape.sum_name, handle, data, -1, 1.0, data)
    return deliver_tensor(tape, t, data, handle)


@inline
def sum_of(tape, x):
    """New tensor of the sum of an array; as `result` answers."""
    tracking = recording(tape)  # first, because this may run Python
    if tracking < 0:
        return -1
    if not is_common(tape, x):
        return 0
    t = new_tensor(tape)
    if t == 0:
        clear_error()
        return 0
    if is_number(tape, x):
        return sum_of_number(tape, t, x, tracking)
    handle = registered_handle(tape, x, handle_of(tape, x)) if tracking > 0 else 0
    a = data_of(tape, x)
    size = array_size(a) if a != 0 and not is_float(tape, a) else 0
    in_order, row, rows, step = size > 0 and is_doubles_in_order(a), 0, 0, 0
    if in_order:
        common = size < MANY or tape.sums_rows_by_two != 0
    elif size > LARGEST_BLOCK:
        row, rows, step = rows_in_memory(tape, a)
        common = row != 0
    else:
        common = size > 0 and tape.sum_room != 0 and is_strided_block(a)
    if not common or handle < 0 or (handle > 0 and tape.sums_ready == 0):
        release(t)
        return 0
    if row != 0:
        data = sum_of_rows_apart(tape, array_data(a), row, rows, step)
    elif size >= MANY:
        data = sum_of_long(tape, a)
    else:
        data = new_float(float_of(tape.sum_start))
        if data != 0:
            add_by_numpys_loop(tape, array_data(a) if in_order else copy_in_memory_order(tape, a), size, data + OBJECT)
    if data != 0 and handle > 0:
        handle = write_sum(tape, tape.sum_name, handle, a, -1, 1.0, data)
    return deliver_tensor(tape, t, data, handle)


@kernel("int64(Tape,int64,int64,int64)")
def sum_method(tape, x, arguments, named):
    """The method `sum`: compiled without arguments, and else its Python form. A new reference; 0 if that raised."""
    if length_of_tuple(arguments) == 0 and named == 0:
        t = sum_of(tape, x)
        if t != 0:
            return 0 if t == -1 else as_operand(tape, 1, x, x, t)
    return call_python_form(tape.sum_form, x, arguments, named)


@inline
def is_leaf_row(tape, slot):
    """Whether a row is that of a leaf, or an alias of it."""
    opcodes, first = tape.opcode, tape.first
    while opcodes[slot] == 0:
        slot = first[slot]
    return opcodes[slot] == LEAF | WIDE


@kernel("int64(Tape,int64,int64)")
def finalize(tape, t, nothing):
    """Destructor of tensors: gives the handle back.

    If the collector calls it, destructors of other objects in the cycle may see the tensor after this, and keep it. A leaf is
    registered anew then; a result has lost its graph, and recording with it is refused.
    """
    number = load_i64(t + tape.row_at)
    if number != 0:
        handle = integer_value(number)
        if handle > 0:
            left = 0
            if is_collected(t) != 0:
                left = UNREGISTERED if is_leaf_row(tape, slot_of(tape, handle)) else COLLECTED
            store_i64(t + tape.row_at, new_integer(left))
            release(number)
            call2(tape.give_back, tape, handle)
    retain(tape.none)
    return tape.none


@intrinsic
def write_thunks(context, tape, table):
    """Make a C function of each operator for method descriptors and write its address into the table.

    A thunk knows its opcode and calls `operate`; it finds the tape in a variable of this module. One kernel an
    operator would cost 50 ms each.
    """

    def generate(context, builder, signature, arguments):
        word = ir.IntType(64)
        home = ir.GlobalVariable(builder.module, word, "tapegrad.tape")
        home.linkage, home.initializer = "internal", ir.Constant(word, 0)
        builder.store(arguments[0], home)

        def thunk(name, header_word, constants, count=2):
            function = ir.Function(builder.module, ir.FunctionType(word, [word] * count), f"tapegrad.{name}")
            function.linkage = "internal"
            body = ir.IRBuilder(function.append_basic_block())
            tape = body.load(home)
            place = body.gep(body.inttoptr(tape, word.as_pointer()), [ir.Constant(word, header_word)])
            operands = [tape, *(ir.Constant(word, constant) for constant in constants), *function.args]
            target = ir.FunctionType(word, [word] * len(operands))
            body.ret(body.call(body.inttoptr(body.load(place), target.as_pointer()), operands))
            return function

        table = builder.inttoptr(arguments[1], word.as_pointer())
        for opcode, count in OPERATORS:
            if count == 3:
                function = thunk(f"operator.{opcode}", OPERATE_THREE, (opcode,), 3)
                builder.store(builder.ptrtoint(function, word), builder.gep(table, [ir.Constant(word, 2 * opcode)]))
                continue
            for exchanged in range(count):
                function = thunk(f"operator.{opcode}.{exchanged}", OPERATE, (opcode, count, exchanged))
                place = builder.gep(table, [ir.Constant(word, 2 * opcode + exchanged)])
                builder.store(builder.ptrtoint(function, word), place)
        others = (
            thunk("finalize", FINALIZE, ()),
            thunk("sum", SUM, (), 3),
            thunk("backward", BACKWARD, (), 3),
            thunk("item", ITEM, ()),
        )
        writes = [thunk(f"write.{opcode}", WRITE_RULE, (opcode, count), 4) for opcode, count in OPERATORS]
        wholes = [thunk(f"write.whole.{which}", WRITE_WHOLE, (which,), 4) for which in range(WHOLE_WRITES)]
        others = (*others, *wholes, thunk("write.item", WRITE_ITEM, (), 3))
        for k, function in enumerate(others):
            builder.store(builder.ptrtoint(function, word), builder.gep(table, [ir.Constant(word, 2 * RULE_COUNT + k)]))
        for (opcode, _), function in zip(OPERATORS, writes, strict=True):
            place = builder.gep(table, [ir.Constant(word, 2 * RULE_COUNT + len(others) + opcode)])
            builder.store(builder.ptrtoint(function, word), place)
        hosted = [thunk("apply", APPLY, (), 3), thunk("product", PRODUCT, (), 3)]
        hosted += [thunk(f"plain.{which}", PLAIN_OPERATION, (which,), 3) for which in range(PLAIN_COUNT)]
        hosted += [thunk("outputs", OUTPUTS, (), 3), thunk("view", VIEW, (), 3), thunk("reduced", REDUCED, (), 3)]
        for k, function in enumerate(hosted):
            place = builder.gep(table, [ir.Constant(word, 3 * RULE_COUNT + len(others) + k)])
            builder.store(builder.ptrtoint(function, word), place)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@entry("int64(Tape,int64)")
def operators(tape, table):
    """Fill a table with C functions: two words a rule (method, reflected form; 0: none), then destructor, `sum`,
    `backward` and ``x[key]``, the writes to whole tensors, ``x[key] = value``, a word a rule (in place), and then functions:
    `apply`, products, what vjps are written with, operations with several outputs, views, and sums.
    """
    write_thunks(tape, table)
    return 0
