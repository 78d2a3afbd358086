"""Arithmetic on the lanes of one element: `LANES` numbers that stand together. Compiled for each number of lanes there is."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LANES = 1  # the generated text has other numbers here


def _vectors(builder, addresses):
    """Kind of a vector of lanes, and pointers to vectors at addresses."""
    double = ir.DoubleType()
    kind = double if LANES == 1 else ir.VectorType(double, LANES)
    return kind, [builder.inttoptr(address, kind.as_pointer()) for address in addresses]


def _load(builder, pointer):
    value = builder.load(pointer)
    value.align = 8
    return value


def _store(builder, value, pointer):
    builder.store(value, pointer).align = 8


def _repeated(builder, kind, number):
    """A number in every lane."""
    if LANES == 1:
        return number
    vector = ir.Constant(kind, ir.Undefined)
    for lane in range(LANES):
        vector = builder.insert_element(vector, number, ir.Constant(ir.IntType(32), lane))
    return vector


def _product(builder, kind, number, values):
    """A number times the lanes, zero where either factor is zero.

    Lanes need a test for zero only where the number is not finite, which it hardly ever is: 32 of them take up to a third less time
    if that is asked first. A single lane is done sooner than such a question.
    """
    factor, zero = _repeated(builder, kind, number), ir.Constant(kind, 0.0 if LANES == 1 else [0.0] * LANES)

    def masked():
        either = builder.or_(builder.fcmp_ordered("==", factor, zero), builder.fcmp_ordered("==", values, zero))
        return builder.select(either, zero, builder.fmul(factor, values)), builder.block

    if LANES == 1:
        return masked()[0]
    nothing = ir.DoubleType()(0.0)
    finite = builder.fcmp_ordered("==", builder.fsub(number, number), nothing)
    usual = builder.and_(finite, builder.fcmp_ordered("!=", number, nothing))
    with builder.if_else(usual, likely=True) as (then, otherwise):
        with then:
            ways = [(builder.fmul(factor, values), builder.block)]
        with otherwise:
            ways.append(masked())
    product = builder.phi(kind)
    for value, block in ways:
        product.add_incoming(value, block)
    return product


@intrinsic
def add_scaled(context, target, source, factor):
    """``target += factor * source``."""

    def generate(context, builder, signature, arguments):
        kind, (to, at) = _vectors(builder, arguments[:2])
        product = _product(builder, kind, arguments[2], _load(builder, at))
        _store(builder, builder.fadd(_load(builder, to), product), to)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.float64), generate


@intrinsic
def set_scaled(context, target, source, factor):
    """``target = factor * source``."""

    def generate(context, builder, signature, arguments):
        kind, (to, at) = _vectors(builder, arguments[:2])
        _store(builder, _product(builder, kind, arguments[2], _load(builder, at)), to)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.float64), generate


@intrinsic
def set_two(context, target, source, factor, other, weight):
    """``target = factor * source + weight * other``."""

    def generate(context, builder, signature, arguments):
        kind, (to, at, beside) = _vectors(builder, [arguments[0], arguments[1], arguments[3]])
        one = _product(builder, kind, arguments[2], _load(builder, at))
        two = _product(builder, kind, arguments[4], _load(builder, beside))
        _store(builder, builder.fadd(one, two), to)
        return context.get_dummy_value()

    number = types.float64
    return types.void(types.int64, types.int64, number, types.int64, number), generate
