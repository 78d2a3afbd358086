"""Loads and stores by address, and the fields of NumPy's array header (public C API, `PyArrayObject_fields`)."""

from llvmlite import ir
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from tapegrad.compilation.jit import inline
from tapegrad.engine.structs import words_at

# Size of the interpreter's object header: 16 bytes, more in debug and free-threaded builds.
OBJECT = object.__basicsize__

retain = types.ExternalFunction("Py_IncRef", types.void(types.int64))
release = types.ExternalFunction("Py_DecRef", types.void(types.int64))


def _loader(kind):
    """Load as int64 or float64 whatever the width, so that callers are compiled for one set of types only."""
    wide = types.float64 if isinstance(kind, types.Float) else types.int64

    @intrinsic
    def load(context, address):
        def generate(context, builder, signature, arguments):
            pointer = builder.inttoptr(arguments[0], context.get_value_type(kind).as_pointer())
            return context.cast(builder, builder.load(pointer), kind, wide)

        return wide(types.int64), generate

    return load


def _storer(kind):
    wide = types.float64 if isinstance(kind, types.Float) else types.int64

    @intrinsic
    def store(context, address, value):
        def generate(context, builder, signature, arguments):
            pointer = builder.inttoptr(arguments[0], context.get_value_type(kind).as_pointer())
            builder.store(context.cast(builder, arguments[1], wide, kind), pointer)
            return context.get_dummy_value()

        return types.void(types.int64, wide), generate

    return store


load_i64, load_i32, load_i16, load_i8, load_u8 = (
    _loader(types.int64),
    _loader(types.int32),
    _loader(types.int16),
    _loader(types.int8),
    _loader(types.uint8),
)
load_f64, load_f32 = _loader(types.float64), _loader(types.float32)
store_i64, store_f64, store_f32 = _storer(types.int64), _storer(types.float64), _storer(types.float32)


def _caller(count, result=types.void):
    """An intrinsic that calls a compiled kernel by address: inlined into every caller, kernels took minutes to compile."""

    @intrinsic
    def call(context, address, *words):
        def generate(context, builder, signature, arguments):
            word = ir.IntType(64)
            kernel = ir.FunctionType(word if result is types.int64 else ir.VoidType(), [word] * count)
            words = [builder.extract_value(arguments[1], k) for k in range(count)]
            value = builder.call(builder.inttoptr(arguments[0], kernel.as_pointer()), words)
            return value if result is types.int64 else context.get_dummy_value()

        return result(types.int64, types.StarArgTuple([types.int64] * count)), generate

    return call


call2, call4, call5, call8, call9 = _caller(2), _caller(4), _caller(5), _caller(8), _caller(9)
call6, call7, call10, call11, call15 = _caller(6), _caller(7), _caller(10), _caller(11), _caller(15)
call4_word, call5_word, call11_word = _caller(4, types.int64), _caller(5, types.int64), _caller(11, types.int64)


@intrinsic
def call_loop(context, function, data, count, x, x_stride, y, y_stride, out, out_stride, is_binary):
    """Call an inner loop of a NumPy ufunc on float64 operands; without `is_binary`, y is left out."""

    def generate(context, builder, signature, arguments):
        word = ir.IntType(64)
        pointer = word.as_pointer()
        function, data, count, x, x_stride, y, y_stride, out, out_stride, is_binary = arguments
        zero, one, two = (ir.Constant(word, k) for k in range(3))
        counts = cgutils.alloca_once_value(builder, count)
        operands, strides = cgutils.alloca_once(builder, word, 3), cgutils.alloca_once(builder, word, 3)
        binary = builder.icmp_signed("!=", is_binary, zero)
        second, second_stride = builder.select(binary, y, out), builder.select(binary, y_stride, out_stride)
        for place, operand, stride in ((zero, x, x_stride), (one, second, second_stride), (two, out, out_stride)):
            builder.store(operand, builder.gep(operands, [place]))
            builder.store(stride, builder.gep(strides, [place]))
        kind = ir.FunctionType(ir.VoidType(), [pointer, pointer, pointer, word])
        builder.call(builder.inttoptr(function, kind.as_pointer()), [operands, counts, strides, data])
        return context.get_dummy_value()

    word = types.int64
    return types.void(word, word, word, word, word, word, word, word, word, word), generate


def stack_words(count):
    """An intrinsic that gives the address of so many words of the stack, which are there until the function ends."""

    @intrinsic
    def room(context):
        def generate(context, builder, signature, arguments):
            with builder.goto_entry_block():  # not by Numba's function, which fills it with zeros: a tenth of a microsecond
                words = builder.alloca(ir.ArrayType(ir.IntType(64), count))
            return builder.ptrtoint(words, ir.IntType(64))

        return types.int64(), generate

    return room


@intrinsic
def call_scalar(context, address, kernels, opcode, has_x, has_y, x, y, z, out):
    """Call the compiled partials of a plain row by address."""

    def generate(context, builder, signature, arguments):
        word, double = ir.IntType(64), ir.DoubleType()
        kernel = ir.FunctionType(ir.VoidType(), [word] * 4 + [double] * 3 + [word])
        builder.call(builder.inttoptr(arguments[0], kernel.as_pointer()), arguments[1:])
        return context.get_dummy_value()

    word, double = types.int64, types.float64
    return types.void(word, word, word, word, word, double, double, double, word), generate


@intrinsic
def call_primal(context, address, opcode, x, y):
    """Call the compiled primals of scalars by address."""

    def generate(context, builder, signature, arguments):
        word, double = ir.IntType(64), ir.DoubleType()
        kernel = ir.FunctionType(double, [word, double, double])
        return builder.call(builder.inttoptr(arguments[0], kernel.as_pointer()), arguments[1:])

    return types.float64(types.int64, types.int64, types.float64, types.float64), generate


@intrinsic
def fused(context, x, y, z):
    """``x * y + z``, rounded once."""

    def generate(context, builder, signature, arguments):
        return builder.fma(*arguments)

    number = types.float64
    return number(number, number, number), generate


@intrinsic
def two_to(context, k):
    """Two to the power of an integer from -1022 to 1023: added to a number of 53 bits, it stands in the last ones."""

    def generate(context, builder, signature, arguments):
        word, double = ir.IntType(64), ir.DoubleType()
        shifted = builder.fadd(arguments[0], double(6755399441055744.0 + 1023.0))
        return builder.bitcast(builder.shl(builder.bitcast(shifted, word), word(52)), double)

    return types.float64(types.float64), generate


@intrinsic
def exponent_of(context, x):
    """The integer power of two that a positive normal number is at least: its own bits become the last ones of a number of 53."""

    def generate(context, builder, signature, arguments):
        word, double = ir.IntType(64), ir.DoubleType()
        bits = builder.lshr(builder.bitcast(arguments[0], word), word(52))
        whole = builder.bitcast(builder.or_(bits, word(0x4330000000000000)), double)
        return builder.fsub(whole, double(4503599627370496.0 + 1023.0))

    return types.float64(types.float64), generate


def _pointer(kind):
    @intrinsic
    def pointer(context, address):
        def generate(context, builder, signature, arguments):
            return builder.inttoptr(arguments[0], context.get_value_type(kind).as_pointer())

        return types.CPointer(kind)(types.int64), generate

    return pointer


_f64_pointer, _f32_pointer, _i64_pointer, _u8_pointer = map(_pointer, (types.float64, types.float32, types.int64, types.uint8))


@intrinsic
def bits_of(context, value):
    """The 64 bits of a float as an integer."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def float_of(context, value):
    """The float with these 64 bits."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@inline
def f64(address, n):
    """The float64 numbers at an address as an array."""
    return carray(_f64_pointer(address), (n,))


@inline
def f32(address, n):
    """The float32 numbers at an address as an array."""
    return carray(_f32_pointer(address), (n,))


@inline
def i64(address, n):
    """The int64 numbers at an address as an array."""
    return carray(_i64_pointer(address), (n,))


@inline
def u8(address, n):
    """The bytes at an address as an array."""
    return carray(_u8_pointer(address), (n,))


@inline
def is_float(tape, obj):
    """Whether an object is a Python float (and not an array)."""
    return load_i64(obj + OBJECT - 8) == tape.float_type


@inline
def float_value(obj):
    """Value of a Python float."""
    return load_f64(obj + OBJECT)


@inline
def array_data(obj):
    """Address of an array's first element."""
    return load_i64(obj + OBJECT)


@inline
def array_rank(obj):
    """Number of an array's dimensions."""
    return load_i32(obj + OBJECT + 8)


@inline
def array_dimensions(obj):
    """Address of an array's lengths."""
    return words_at(load_i64(obj + OBJECT + 16))


@inline
def array_strides(obj):
    """Address of an array's strides in bytes."""
    return words_at(load_i64(obj + OBJECT + 24))


@inline
def array_base(obj):
    """Address of the object that an array is a view of; 0 if it owns its memory."""
    return load_i64(obj + OBJECT + 32)


@inline
def array_is_contiguous(obj):
    """Whether an array is one block in C order."""
    return load_i32(obj + OBJECT + 48) & 1 != 0


@inline
def array_is_writeable(obj):
    """Whether an array's memory may be written by it."""
    return load_i32(obj + OBJECT + 48) & 0x0400 != 0


@inline
def array_type_number(obj):
    """Type number of the array's dtype; tensors hold native byte order only."""
    number = load_i32(load_i64(obj + OBJECT + 40) + OBJECT + 12)
    return 7 if number == 9 else number


@inline
def array_has_dtype(obj, dtype):
    """Whether an array's dtype is this very object."""
    return load_i64(obj + OBJECT + 40) == dtype


@inline
def set_array_base(obj, base):
    """Let an array that owns no memory refer to what does; the reference is taken over."""
    store_i64(obj + OBJECT + 32, base)


@inline
def array_size(obj):
    """Number of an array's elements."""
    dimensions = array_dimensions(obj)
    size = 1
    for d in range(array_rank(obj)):
        size *= dimensions[d]
    return size


@inline
def item_bytes(number):
    """Bytes of an element of this type number."""
    if number == 12 or number == 7 or number == 8 or number == 10 or number == 14:
        return 8
    if number == 11 or number == 5 or number == 6:
        return 4
    if number == 3 or number == 4 or number == 23:
        return 2
    return 16 if number == 15 else 1


@inline
def owner(tape_array_type, obj):
    """The object that owns an array's memory: the end of its chain of bases."""
    base = array_base(obj)
    while base != 0:
        obj = base
        if load_i64(obj + OBJECT - 8) != tape_array_type:
            break
        base = array_base(obj)
    return obj
