"""Operators of `Tensor`, compiled: the common cases of an elementwise operation in one call, from operands to new tensor.

The common cases are float64 scalars and small contiguous float64 arrays of one shape, with Python numbers. For everything else,
and for every refusal of the tape, the operator calls its Python form, which is always right. Nothing here raises: running out
of memory is left to the Python form too.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tapegrad.engine.layout import (
    DATA_AT,
    ELEMENTWISE_ROW,
    FALLBACKS,
    FLOAT64,
    FLOAT_TYPE,
    INT_TYPE,
    IS_RECORDING,
    LARGEST_BLOCK,
    LOOPS,
    NONE,
    OPERATE1,
    OPERATE2,
    PINS,
    PRIMAL,
    RECORDING_OFF,
    ROW_AT,
    ROWS,
    RULES,
    SCALARS_READY,
    TRUE,
    UNSUPPORTED,
)
from tapegrad.engine.memory import (
    OBJECT,
    array_data,
    array_dimensions,
    array_is_contiguous,
    array_rank,
    array_size,
    array_type_number,
    call11_word,
    call_primal,
    float_value,
    get,
    is_float,
    load_f64,
    load_i64,
    put,
    release,
    retain,
    store_f64,
    store_i64,
)
from tapegrad.engine.objects import (
    call_loop,
    call_object0,
    call_object1,
    call_object2,
    clear_error,
    data_of,
    float_of_integer,
    handle_of,
    has_error,
    integer_value,
    is_tensor,
    new_array_like,
    new_float,
    new_tensor,
    set_handle,
    type_of,
)
from tapegrad.engine.reclaim import free_handle, truncate
from tapegrad.engine.record_scalars import record_scalar1, record_scalar2
from tapegrad.jit import entry, inline, kernel


@inline
def recording(tape):
    """Whether this thread records; asks Python only while some thread does not."""
    if get(tape, RECORDING_OFF) == 0:
        return True
    answer = call_object0(get(tape, IS_RECORDING))
    if answer == 0:
        clear_error()
        return True
    release(answer)
    return answer == get(tape, TRUE)


@inline
def forms_of(tape, opcode):
    """Bits that say which compiled forms a rule's value has."""
    return load_i64(get(tape, RULES) + 32 * opcode)


@inline
def is_block(tape, obj):
    """Whether data is a small array that loops can read as one block."""
    if array_type_number(obj) != FLOAT64 or not array_is_contiguous(obj) or array_rank(obj) == 0:
        return False
    return array_size(obj) <= LARGEST_BLOCK


@inline
def same_shape(obj, other):
    if array_rank(obj) != array_rank(other):
        return False
    for d in range(array_rank(obj)):
        if load_i64(array_dimensions(obj) + 8 * d) != load_i64(array_dimensions(other) + 8 * d):
            return False
    return True


@inline
def give_back(tape, handle):
    """Free a handle, and the tail of the tape if that is dead now."""
    if free_handle(tape, handle) == get(tape, ROWS) - 1 and get(tape, PINS) == 0:
        truncate(tape)


@inline
def deliver_tensor(tape, t, data, handle):
    """Put value and handle into a new tensor. 0 if the tape refused or memory is out: then nothing is left of it."""
    if data != 0 and handle >= 0:
        store_i64(t + get(tape, DATA_AT), data)
        if handle == 0 or set_handle(tape, t, handle):
            return t
        clear_error()
        give_back(tape, handle)
        release(t)
        return 0
    if data != 0:
        release(data)
    else:
        clear_error()
    release(t)
    return 0


@inline
def scalar_result1(tape, opcode, t, a, handle):
    if forms_of(tape, opcode) & HAS_SCALAR == 0 or (handle != 0 and get(tape, SCALARS_READY) == 0):
        return deliver_tensor(tape, t, 0, 0)
    x = float_value(a)
    z = call_primal(get(tape, PRIMAL), opcode, x, 0.0)
    data = new_float(z)
    if data != 0 and handle != 0:
        handle = record_scalar1(tape, opcode, handle, x, z)
    return deliver_tensor(tape, t, data, handle)


@inline
def scalar_result2(tape, opcode, t, a, b, x_handle, y_handle):
    tracked = x_handle != 0 or y_handle != 0
    if forms_of(tape, opcode) & HAS_SCALAR == 0 or (tracked and get(tape, SCALARS_READY) == 0):
        return deliver_tensor(tape, t, 0, 0)
    x, y = float_value(a), float_value(b)
    z = call_primal(get(tape, PRIMAL), opcode, x, y)
    data = new_float(z)
    handle = 0
    if data != 0 and tracked:
        handle = record_scalar2(tape, opcode, x_handle, x, y_handle, y, z)
    return deliver_tensor(tape, t, data, handle)


@inline
def start_of(tape, obj):
    return obj + OBJECT if is_float(tape, obj) else array_data(obj)


@inline
def compute(tape, opcode, count, a, b, out):
    """Values on small arrays: by NumPy's own loop, or by the compiled primal where that rounds in the same way.

    False if the rule has neither.
    """
    n, x, y, z = array_size(out), start_of(tape, a), start_of(tape, b), array_data(out)
    x_stride, y_stride = (0 if is_float(tape, a) else 8), (0 if is_float(tape, b) else 8)
    loop = get(tape, LOOPS) + 16 * opcode
    if load_i64(loop) != 0:
        call_loop(load_i64(loop), load_i64(loop + 8), n, x, x_stride, y, y_stride, z, count - 1)
    elif forms_of(tape, opcode) & HAS_EXACT != 0:
        for j in range(n):
            value = call_primal(get(tape, PRIMAL), opcode, load_f64(x + x_stride * j), load_f64(y + y_stride * j))
            store_f64(z + 8 * j, value)
    else:
        return False
    return True


@inline
def array_result(tape, opcode, t, count, a, b, x_handle, y_handle):
    """Result on small arrays; `b` is `a` again if there is one operand."""
    row = get(tape, ELEMENTWISE_ROW)
    tracked = x_handle != 0 or y_handle != 0
    if x_handle < 0 or y_handle < 0 or (tracked and row == 0):
        return deliver_tensor(tape, t, 0, 0)
    data = new_array_like(tape, b if is_float(tape, a) else a)
    handle = 0
    if data != 0:
        if not compute(tape, opcode, count, a, b, data):
            handle = UNSUPPORTED
        elif tracked:
            handle = call11_word(row, tape, opcode, 0, count, x_handle, a, y_handle, b, 0, 0, data)
    return deliver_tensor(tape, t, data, handle)


@inline
def result1(tape, opcode, x):
    """New tensor ``op(x)``, or 0 if this is not one of the common cases."""
    if not is_tensor(tape, x):
        return 0
    tracking = recording(tape)
    t = new_tensor(tape)  # first, because destructors that the collector runs may change the operand
    if t == 0:
        clear_error()
        return 0
    a = data_of(tape, x)
    handle = handle_of(tape, x) if tracking else 0
    if is_float(tape, a):
        return scalar_result1(tape, opcode, t, a, handle)
    if is_block(tape, a):
        return array_result(tape, opcode, t, 1, a, a, handle, 0)
    release(t)
    return 0


@inline
def result2(tape, opcode, x, y):
    """New tensor ``op(x, y)`` for operands that are tensors or floats, or 0 if this is not one of the common cases."""
    x_is_number, y_is_number = type_of(x) == get(tape, FLOAT_TYPE), type_of(y) == get(tape, FLOAT_TYPE)
    if not (x_is_number or is_tensor(tape, x)) or not (y_is_number or is_tensor(tape, y)):
        return 0
    tracking = recording(tape)
    t = new_tensor(tape)
    if t == 0:
        clear_error()
        return 0
    a, b = (x if x_is_number else data_of(tape, x)), (y if y_is_number else data_of(tape, y))
    x_handle = handle_of(tape, x) if tracking and not x_is_number else 0
    y_handle = handle_of(tape, y) if tracking and not y_is_number else 0
    if is_float(tape, a):
        if is_float(tape, b):
            return scalar_result2(tape, opcode, t, a, b, x_handle, y_handle)
        fitting = is_block(tape, b)
    elif is_float(tape, b):
        fitting = is_block(tape, a)
    else:
        fitting = is_block(tape, a) and same_shape(a, b) and is_block(tape, b)
    if fitting:
        return array_result(tape, opcode, t, 2, a, b, x_handle, y_handle)
    release(t)
    return 0


@kernel("int64(int64,int64,int64)")
def operate1(tape, opcode, x):
    """Operator or method without operands: new reference, or 0 with the Python form's exception."""
    t = result1(tape, opcode, x)
    if t != 0:
        return t
    return call_object1(load_i64(get(tape, FALLBACKS) + 16 * opcode), x)


@inline
def with_number(tape, opcode, x, y):
    """``op(x, y)`` for a number `y`: a power that is a product or a root is that."""
    product = product_of_power(opcode, float_value(y))
    return result1(tape, product, x) if product >= 0 else result2(tape, opcode, x, y)


@kernel("int64(int64,int64,int64,int64,int64)")
def operate2(tape, opcode, exchanged, x, y):
    """Operator with one operand: ``op(x, y)`` for a tensor `x`, ``op(y, x)`` if exchanged."""
    number = 0
    if type_of(y) == get(tape, INT_TYPE):
        value = float_of_integer(y)
        if value == -1.0 and has_error() != 0:
            clear_error()
        else:
            number = new_float(value)
    other = number if number != 0 else y
    if exchanged != 0:
        t = result2(tape, opcode, other, x)
    elif type_of(other) == get(tape, FLOAT_TYPE):
        t = with_number(tape, opcode, x, other)
    else:
        t = result2(tape, opcode, x, other)
    if number != 0:
        release(number)
    if t != 0:
        return t
    return call_object2(load_i64(get(tape, FALLBACKS) + 16 * opcode + 8 * exchanged), x, y)


@kernel("int64(int64,int64,int64)")
def finalize(tape, t, nothing):
    """Destructor of tensors: gives the handle back."""
    number = load_i64(t + get(tape, ROW_AT))
    if number != 0:
        handle = integer_value(number)
        if handle > 0:
            give_back(tape, handle)
    retain(get(tape, NONE))
    return get(tape, NONE)


@intrinsic
def write_thunks(context, tape, table):
    """Make a C function of each operator for method descriptors and write its address into the table.

    A thunk knows its opcode and calls `operate1` or `operate2`; it finds the tape in a variable of this module. One kernel an
    operator would cost 50 ms each.
    """

    def generate(context, builder, signature, arguments):
        word = ir.IntType(64)
        home = ir.GlobalVariable(builder.module, word, "tapegrad.tape")
        home.linkage, home.initializer = "internal", ir.Constant(word, 0)
        builder.store(arguments[0], home)

        def thunk(name, header_word, constants):
            kind = ir.FunctionType(word, [word, word])
            function = ir.Function(builder.module, kind, f"tapegrad.{name}")
            function.linkage = "internal"
            body = ir.IRBuilder(function.append_basic_block())
            tape = body.load(home)
            place = body.gep(body.inttoptr(tape, word.as_pointer()), [ir.Constant(word, header_word)])
            operands = [tape, *(ir.Constant(word, constant) for constant in constants), *function.args]
            operands = operands[:-1] if header_word == OPERATE1 else operands
            target = ir.FunctionType(word, [word] * len(operands))
            body.ret(body.call(body.inttoptr(body.load(place), target.as_pointer()), operands))
            return function

        table = builder.inttoptr(arguments[1], word.as_pointer())
        for opcode, count in OPERATORS:
            forms = [("method", OPERATE1, (opcode,))]
            if count == 2:
                forms = [("method", OPERATE2, (opcode, 0)), ("reflected", OPERATE2, (opcode, 1))]
            for form, (name, header_word, constants) in enumerate(forms):
                function = thunk(f"{name}.{opcode}", header_word, constants)
                place = builder.gep(table, [ir.Constant(word, 2 * opcode + form)])
                builder.store(builder.ptrtoint(function, word), place)
        destructor = thunk("finalize", FINALIZE, ())
        builder.store(builder.ptrtoint(destructor, word), builder.gep(table, [ir.Constant(word, 2 * RULE_COUNT)]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@entry("int64(int64,int64)")
def operators(tape, table):
    """Fill a table with C functions: two words a rule (method, reflected form; 0: none), then the destructor."""
    write_thunks(tape, table)
    return 0
