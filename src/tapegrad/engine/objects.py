"""Python objects from compiled code: tensors, floats, integers and small arrays, through the C API of Python and NumPy.

Objects are addresses. What a function answers with is a new reference or 0; operands are borrowed.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tapegrad.compilation.jit import inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    OBJECT,
    array_dimensions,
    array_rank,
    load_i32,
    load_i64,
    release,
    retain,
    set_array_base,
    store_i64,
)

allocate = types.ExternalFunction("PyType_GenericAlloc", types.int64(types.int64, types.int64))
is_subtype = types.ExternalFunction("PyType_IsSubtype", types.int32(types.int64, types.int64))
new_float = types.ExternalFunction("PyFloat_FromDouble", types.int64(types.float64))
new_integer = types.ExternalFunction("PyLong_FromLongLong", types.int64(types.int64))
integer_value = types.ExternalFunction("PyLong_AsLongLong", types.int64(types.int64))
float_of_integer = types.ExternalFunction("PyLong_AsDouble", types.float64(types.int64))
has_error = types.ExternalFunction("PyErr_Occurred", types.int64())
is_collected = types.ExternalFunction("PyObject_GC_IsFinalized", types.int32(types.int64))  # in a destructor: who calls it
call_with = types.ExternalFunction("PyObject_Call", types.int64(types.int64, types.int64, types.int64))
clear_error = types.ExternalFunction("PyErr_Clear", types.void())
new_tuple = types.ExternalFunction("PyTuple_New", types.int64(types.int64))
set_item_of_tuple = types.ExternalFunction("PyTuple_SetItem", types.int32(types.int64, types.int64, types.int64))
item_of_tuple = types.ExternalFunction("PyTuple_GetItem", types.int64(types.int64, types.int64))
length_of_tuple = types.ExternalFunction("PyTuple_Size", types.int64(types.int64))
item_of = types.ExternalFunction("PyObject_GetItem", types.int64(types.int64, types.int64))
new_list = types.ExternalFunction("PyList_New", types.int64(types.int64))
append_to_list = types.ExternalFunction("PyList_Append", types.int32(types.int64, types.int64))
length_of_list = types.ExternalFunction("PyList_Size", types.int64(types.int64))
item_of_list = types.ExternalFunction("PyList_GetItem", types.int64(types.int64, types.int64))
set_slice_of_list = types.ExternalFunction("PyList_SetSlice", types.int32(types.int64, types.int64, types.int64, types.int64))
set_in_dict = types.ExternalFunction("PyDict_SetItem", types.int32(types.int64, types.int64, types.int64))
new_weak_reference = types.ExternalFunction("PyWeakref_NewRef", types.int64(types.int64, types.int64))


@intrinsic
def call_object(context, function, count, x, y):
    """Call a Python function with one or two positional operands."""

    def generate(context, builder, signature, arguments):
        word = ir.IntType(64)
        function, count, *operands = arguments
        kind = ir.FunctionType(word, [word, word.as_pointer(), word, word])
        vectorcall = cgutils.get_or_insert_function(builder.module, kind, "PyObject_Vectorcall")
        places = cgutils.alloca_once(builder, word, 2)
        for k, operand in enumerate(operands):
            builder.store(operand, builder.gep(places, [ir.Constant(word, k)]))
        return builder.call(vectorcall, [function, places, count, ir.Constant(word, 0)])

    return types.int64(types.int64, types.int64, types.int64, types.int64), generate


@intrinsic
def call_method_form(context, function, x, operands, count, names):
    """Call the Python form of a method with what its C function was given: operands in words, and names of the last of them."""

    def generate(context, builder, signature, arguments):
        word = ir.IntType(64)
        pointer, one, none = word.as_pointer(), ir.Constant(word, 1), ir.Constant(word, 0)
        function, x, operands, count, names = arguments
        kind = ir.FunctionType(word, [word])
        length_of = cgutils.get_or_insert_function(builder.module, kind, "PyTuple_Size")
        named = cgutils.alloca_once_value(builder, none)
        with builder.if_then(builder.icmp_signed("!=", names, none)):
            builder.store(builder.call(length_of, [names]), named)
        whole = builder.add(count, builder.load(named))
        places = builder.alloca(word, builder.add(whole, one))
        builder.store(x, places)
        source = builder.inttoptr(operands, pointer)
        with cgutils.for_range(builder, whole) as loop:
            builder.store(builder.load(builder.gep(source, [loop.index])), builder.gep(places, [builder.add(loop.index, one)]))
        kind = ir.FunctionType(word, [word, pointer, word, word])
        vectorcall = cgutils.get_or_insert_function(builder.module, kind, "PyObject_Vectorcall")
        return builder.call(vectorcall, [function, places, builder.add(count, one), names])

    word = types.int64
    return word(word, word, word, word, word), generate


@intrinsic
def call_with_words(context, function, operands, count):
    """Call a Python function with operands in words."""

    def generate(context, builder, signature, arguments):
        word = ir.IntType(64)
        function, operands, count = arguments
        kind = ir.FunctionType(word, [word, word.as_pointer(), word, word])
        vectorcall = cgutils.get_or_insert_function(builder.module, kind, "PyObject_Vectorcall")
        places = builder.inttoptr(operands, word.as_pointer())
        return builder.call(vectorcall, [function, places, count, ir.Constant(word, 0)])

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def call_object0(context, function):
    """Call a Python function without operands."""

    def generate(context, builder, signature, arguments):
        word = ir.IntType(64)
        kind = ir.FunctionType(word, [word])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, "PyObject_CallNoArgs"), arguments)

    return types.int64(types.int64), generate


@intrinsic
def _new_array(context, function, array_type, rank, dimensions, number, strides, data, flags):
    def generate(context, builder, signature, arguments):
        word, short = ir.IntType(64), ir.IntType(32)
        function, array_type, rank, dimensions, number, strides, data, flags = arguments
        kind = ir.FunctionType(word, [word, short, word, short, word, word, short, short, word])
        none, zero = ir.Constant(word, 0), ir.Constant(short, 0)
        rank, number, flags = (builder.trunc(value, short) for value in (rank, number, flags))
        operands = [array_type, rank, dimensions, number, strides, data, zero, flags, none]
        return builder.call(builder.inttoptr(function, kind.as_pointer()), operands)

    word = types.int64
    return word(word, word, word, word, word, word, word, word), generate


@inline
def type_of(obj):
    """Address of an object's type."""
    return load_i64(obj + OBJECT - 8)


@inline
def reference_count(obj):
    """How often an object is referred to."""
    return load_i32(obj + OBJECT - 16)


@inline
def is_common(tape, obj):
    """Whether an object is a tensor or an array, and of no other subclass."""
    kind, wanted = type_of(obj), tape.tensor_type
    return kind == wanted or (kind == tape.array_class and wanted == tape.tensor_class)


@inline
def is_tensor(tape, obj):
    """Whether an object is a tensor, or of a subclass."""
    return is_common(tape, obj) or (type_of(obj) != tape.float_type and is_subtype(type_of(obj), tape.tensor_type) != 0)


@inline
def data_of(tape, t):
    """A tensor's array or float."""
    return load_i64(t + tape.data_at)


@inline
def handle_of(tape, t):
    """A tensor's handle; 0 if it is untracked."""
    return integer_value(load_i64(t + tape.row_at))


@inline
def new_array_like(tape, obj):
    """An uninitialised float64 array of the shape of another, in C order."""
    return _new_array(tape.new_array, tape.array_type, array_rank(obj), array_dimensions(obj), FLOAT64, 0, 0, 0)


@inline
def new_array(tape, number, rank, dimensions):
    """An uninitialised array in C order."""
    return _new_array(tape.new_array, tape.array_type, rank, dimensions, number, 0, 0, 0)


@inline
def new_view(tape, number, rank, dimensions, strides, data, flags, base):
    """An array on memory that another object owns, whose reference it takes over; without strides in C order."""
    array = _new_array(tape.new_array, tape.array_type, rank, dimensions, number, strides, data, flags)
    if array == 0:
        release(base)
    else:
        set_array_base(array, base)
    return array


@inline
def prepared(tape, t):
    """A tensor that was just allocated, untracked."""
    if t != 0:
        retain(tape.none)
        store_i64(t + tape.meta_at, tape.none)
        store_i64(t + tape.row_at, new_integer(0))  # small integers always exist
    return t


@inline
def new_tensor(tape):
    """An untracked tensor whose data is still to be set. The collector may run."""
    return prepared(tape, allocate(tape.tensor_type, 0))


@inline
def tensor_around(tape, data):
    """An untracked tensor with these data, of which it takes the reference; 0 without memory, or if there are no data."""
    if data == 0:
        clear_error()
        return 0
    t = prepared(tape, allocate(tape.plain_tensor, 0))
    if t == 0:
        clear_error()
        release(data)
    else:
        store_i64(t + tape.data_at, data)
    return t


@inline
def new_meta(tape):
    """What only some tensors have, as it is at first; 0 without memory."""
    meta = allocate(tape.meta_class, 0)
    if meta != 0:
        for k in range(tape.meta_words):
            value = load_i64(tape.meta_template + OBJECT + 8 * k)
            if value != 0:
                retain(value)
                store_i64(meta + OBJECT + 8 * k, value)
    return meta


@inline
def attribute(tape, obj, which):
    """An attribute in a slot of an object, borrowed; 0 if it is not set."""
    return load_i64(obj + tape.offsets[which])


@inline
def set_attribute(tape, obj, which, value):
    """Set an attribute that has no value yet; the reference is taken over."""
    store_i64(obj + tape.offsets[which], value)


@inline
def change_attribute(tape, obj, which, value):
    """Set an attribute that has a value; the reference is taken over."""
    before = attribute(tape, obj, which)
    set_attribute(tape, obj, which, value)
    release(before)


@inline
def as_operand(tape, count, x, y, t):
    """A result: an array if one of the operands is one, unless somebody else has it already."""
    own, plain = tape.array_class, tape.tensor_class
    if own == 0 or t == 0:
        return t
    if (type_of(x) == own or (count == 2 and type_of(y) == own)) and type_of(t) == plain and reference_count(t) == 1:
        retain(own)
        store_i64(t + 8, own)
        release(plain)
    return t


@inline
def set_handle(tape, t, handle):
    """Track a new tensor; False if there is no memory for the number."""
    number = new_integer(handle)
    if number == 0:
        return False
    release(load_i64(t + tape.row_at))
    store_i64(t + tape.row_at, number)
    return True


@inline
def call_python_form(form, x, arguments, named):
    """Call the Python form of a method with what the method was given."""
    count = length_of_tuple(arguments)
    whole = new_tuple(count + 1)
    if whole == 0:
        return 0
    retain(x)
    set_item_of_tuple(whole, 0, x)
    for k in range(count):
        item = item_of_tuple(arguments, k)
        retain(item)
        set_item_of_tuple(whole, k + 1, item)
    answer = call_with(form, whole, named)
    release(whole)
    return answer
