"""Eight float64 numbers in vector registers, as a type of Numba: for loops that keep sums there while another index runs.

LLVM makes vectors of innermost loops, whose sums go to memory and come back at each step of the loop around them. What is of this
type stays in a register of 512 bits, or in two of 256. Operations are those of float64 on each number; none is fused.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.cgutils import get_or_insert_function
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

__all__ = [
    "VECTOR_BYTES", "VECTOR_LENGTH", "all_between", "all_of", "are_less", "bits_apart", "bits_in_both", "bits_in_either",
    "bits_shifted", "both", "chosen", "columns_of_four", "fused_vectors", "guarded_products", "have_common_bits", "larger_of",
    "larger_or_none", "magnitudes", "negative_sizes", "not_less", "of_sixteen", "one_unless_negative", "rounded_down", "signs_of",
    "square_roots", "times_power_in", "vector_at", "vector_of", "vector_of_bits", "write_vector", "zero_below",
]  # fmt: skip

VECTOR_LENGTH = 8
VECTOR_BYTES = 8 * VECTOR_LENGTH
VALUE = ir.VectorType(ir.DoubleType(), VECTOR_LENGTH)
BITS = ir.VectorType(ir.IntType(64), VECTOR_LENGTH)


class Vector(types.Type):
    """Eight numbers."""

    def __init__(self) -> None:
        super().__init__("Vector")


VECTOR = Vector()


@register_model(Vector)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VALUE)


class Choices(types.Type):
    """Yes or no for each of eight numbers."""

    def __init__(self) -> None:
        super().__init__("Choices")


CHOICES = Choices()
ANSWERS = ir.VectorType(ir.IntType(1), VECTOR_LENGTH)


@register_model(Choices)
class _ChoicesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ANSWERS)


class _OfTwo(AbstractTemplate):
    def generic(self, arguments: Any, keywords: Any) -> Any:
        return signature(VECTOR, VECTOR, VECTOR) if tuple(arguments) == (VECTOR, VECTOR) else None


def _arithmetic(function: Callable[..., Any], instruction: str) -> None:
    infer_global(function)(type("_Arithmetic", (_OfTwo,), {"key": function}))

    @lower_builtin(function, Vector, Vector)
    def lower(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return getattr(builder, instruction)(*arguments)


_arithmetic(operator.add, "fadd")
_arithmetic(operator.iadd, "fadd")
_arithmetic(operator.sub, "fsub")
_arithmetic(operator.mul, "fmul")
_arithmetic(operator.truediv, "fdiv")


class _OfOne(AbstractTemplate):
    key = operator.neg

    def generic(self, arguments: Any, keywords: Any) -> Any:
        return signature(VECTOR, VECTOR) if tuple(arguments) == (VECTOR,) else None


infer_global(operator.neg)(_OfOne)


@lower_builtin(operator.neg, Vector)
def _negated(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
    return builder.fneg(arguments[0])


def _pointer(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, VALUE.as_pointer())


def _constant(number: float) -> Any:
    return ir.Constant(VALUE, [number] * VECTOR_LENGTH)


def _function(instructions: Callable[..., Any], *kinds: Any, result: Any = VECTOR) -> Any:
    """What is made of arguments of these types by ``instructions(builder, *values)``."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return instructions(builder, *arguments)

    if len(kinds) == 1:

        @intrinsic
        def of_one(context: Any, x: Any) -> Any:
            return result(*kinds), generate

        return of_one

    if len(kinds) == 2:

        @intrinsic
        def of_two(context: Any, x: Any, y: Any) -> Any:
            return result(*kinds), generate

        return of_two

    @intrinsic
    def of_three(context: Any, x: Any, y: Any, z: Any) -> Any:
        return result(*kinds), generate

    return of_three


def _load(builder: Any, address: Any) -> Any:
    return builder.load(_pointer(builder, address), align=8)


def _stretched(builder: Any, x: Any) -> Any:
    number = ir.IntType(32)
    one = builder.insert_element(ir.Constant(VALUE, ir.Undefined), x, number(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(number, VECTOR_LENGTH), [0] * VECTOR_LENGTH))


def _called(builder: Any, name: str, *arguments: Any) -> Any:
    kind = ir.FunctionType(VALUE, [argument.type for argument in arguments])
    return builder.call(get_or_insert_function(builder.module, kind, name), arguments)


def _by_name(name: str) -> Callable[..., Any]:
    return lambda builder, *values: _called(builder, f"{name}.v{VECTOR_LENGTH}f64", *values)


def _bits(number: int) -> Any:
    return ir.Constant(BITS, [number] * VECTOR_LENGTH)


def _signs(builder: Any, x: Any) -> Any:
    rest = builder.select(builder.fcmp_ordered("<", x, _constant(0.0)), _constant(-1.0), x)
    return builder.select(builder.fcmp_ordered(">", x, _constant(0.0)), _constant(1.0), rest)


def _guarded(builder: Any, x: Any, y: Any) -> Any:
    counts = [builder.fcmp_unordered("!=", value, _constant(0.0)) for value in (x, y)]
    return builder.select(builder.and_(*counts), builder.fmul(x, y), _constant(0.0))


def _larger(builder: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", y, x), y, x)


def _larger_or_none(builder: Any, x: Any, y: Any) -> Any:
    taken = builder.or_(builder.fcmp_ordered(">", y, x), builder.fcmp_unordered("!=", y, y))
    return builder.select(taken, y, x)


def _all(builder: Any, answers: Any) -> Any:
    bits = ir.IntType(VECTOR_LENGTH)
    return builder.icmp_unsigned("==", builder.bitcast(answers, bits), bits(2**VECTOR_LENGTH - 1))


def _between(builder: Any, x: Any, low: Any, high: Any) -> Any:
    low, high = _stretched(builder, low), _stretched(builder, high)
    return _all(builder, builder.and_(builder.fcmp_ordered(">=", x, low), builder.fcmp_ordered("<=", x, high)))


def _zero_below(builder: Any, values: Any, x: Any, least: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", x, _stretched(builder, least)), _constant(0.0), values)


def _one_unless_negative(builder: Any, x: Any, other: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">=", x, _constant(0.0)), _constant(1.0), other)


def _negative_sizes(builder: Any, x: Any) -> Any:
    return builder.bitcast(builder.or_(builder.bitcast(x, BITS), _bits(-(2**63))), VALUE)


def _times_power(builder: Any, x: Any, places: Any) -> Any:
    power = builder.shl(builder.bitcast(places, BITS), _bits(48))
    return builder.bitcast(builder.add(builder.bitcast(x, BITS), power), VALUE)


def _common(builder: Any, x: Any, y: Any) -> Any:
    return builder.icmp_unsigned("!=", builder.and_(builder.bitcast(x, BITS), builder.bitcast(y, BITS)), _bits(0))


def _by_bits(instruction: str) -> Callable[..., Any]:
    def combined(builder: Any, x: Any, y: Any) -> Any:
        return builder.bitcast(getattr(builder, instruction)(builder.bitcast(x, BITS), builder.bitcast(y, BITS)), VALUE)

    return combined


def _stretched_bits(builder: Any, number: Any) -> Any:
    return _stretched(builder, builder.bitcast(number, ir.DoubleType()))


def _shifted(builder: Any, x: Any, count: Any) -> Any:
    counts = builder.bitcast(_stretched_bits(builder, count), BITS)
    return builder.bitcast(builder.shl(builder.bitcast(x, BITS), counts), VALUE)


def _shuffled(builder: Any, x: Any, y: Any, places: Sequence[int]) -> Any:
    return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), list(places)))


def _columns(builder: Any, address: Any, places: Any) -> list[Any]:
    four, places = ir.VectorType(ir.DoubleType(), 4).as_pointer(), builder.inttoptr(places, ir.IntType(64).as_pointer())
    rows = []
    for k in range(VECTOR_LENGTH):
        row = builder.add(address, builder.load(builder.gep(places, [ir.IntType(32)(k)])))
        rows.append(builder.load(builder.inttoptr(row, four), align=8))
    # Two rows to a register, in an order in which numbers stay within 128 bits then, before such halves move as a whole.
    first, second, third, fourth = (_shuffled(builder, rows[k], rows[k + 2], range(8)) for k in (0, 1, 4, 5))
    columns = []
    for half in (0, 2):
        for number in (0, 1):
            paired = [at + number for at in (0, 8, 2, 10, 4, 12, 6, 14)]
            left, right = _shuffled(builder, first, second, paired), _shuffled(builder, third, fourth, paired)
            columns.append(_shuffled(builder, left, right, [at + half + k for at in (0, 4, 8, 12) for k in (0, 1)]))
    return columns


@intrinsic
def columns_of_four(context: Any, address: Any, places: Any) -> Any:
    """Four vectors, of the numbers in eight rows of four: each row is so many bytes behind an address, as words at `places` say.

    To load rows and exchange numbers takes less time than to gather each number: half of it, or a quarter, on AMD's Zen 4.
    """
    result = types.UniTuple(VECTOR, 4)

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return context.make_tuple(builder, result, _columns(builder, *arguments))

    return result(types.int64, types.int64), generate


def _has_wide_registers(context: Any) -> bool:
    """Whether code is made for processors with instructions of AVX-512, as these families have them or features say."""
    _, name, features = context.codegen().magic_tuple()
    return name == "x86-64-v4" or "+avx512f" in features.split(",")


def _rounded_down(context: Any, builder: Any, x: Any, y: Any, z: Any) -> Any:
    if _has_wide_registers(context):
        return _called(builder, "llvm.x86.avx512.vfmadd.pd.512", x, y, z, ir.IntType(32)(11))  # towards zero
    nearest = _called(builder, f"llvm.fma.v{VECTOR_LENGTH}f64", x, y, z)
    found = builder.fsub(nearest, z)
    lack = _called(builder, f"llvm.fma.v{VECTOR_LENGTH}f64", x, y, builder.fsub(_constant(-0.0), found))
    is_above = builder.sext(builder.fcmp_ordered("<", lack, _constant(0.0)), BITS)
    return builder.bitcast(builder.add(builder.bitcast(nearest, BITS), is_above), VALUE)


def _of_sixteen(context: Any, builder: Any, first: Any, second: Any, places: Any) -> Any:
    places = builder.bitcast(places, BITS)
    if _has_wide_registers(context):
        return _called(builder, "llvm.x86.avx512.vpermi2var.pd.512", first, places, second)
    index = ir.IntType(32)
    order = ir.Constant(ir.VectorType(index, 2 * VECTOR_LENGTH), list(range(2 * VECTOR_LENGTH)))
    both, taken = builder.shuffle_vector(first, second, order), builder.and_(places, _bits(15))
    found = ir.Constant(VALUE, ir.Undefined)
    for k in range(VECTOR_LENGTH):
        one = builder.extract_element(both, builder.extract_element(taken, index(k)))
        found = builder.insert_element(found, one, index(k))
    return found


def _for_processor(instructions: Callable[..., Any]) -> Any:
    """A function of three vectors by ``instructions(context, builder, *values)``, which differ among processors."""

    @intrinsic
    def of_three(context: Any, x: Any, y: Any, z: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
            return instructions(context, builder, *arguments)

        return VECTOR(VECTOR, VECTOR, VECTOR), generate

    return of_three


@intrinsic
def write_vector(context: Any, address: Any, value: Any) -> Any:
    """Put numbers at an address, as `vector_at` takes them."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        builder.store(arguments[1], _pointer(builder, arguments[0]), align=8)
        return context.get_dummy_value()

    return types.void(types.int64, VECTOR), generate


vector_at = _function(_load, types.int64)  # of an address, which need be a multiple of eight only
vector_of = _function(_stretched, types.float64)  # one number, eight times
magnitudes = _function(_by_name("llvm.fabs"), VECTOR)
negative_sizes = _function(_negative_sizes, VECTOR)  # ``-abs(x)``
one_unless_negative = _function(_one_unless_negative, VECTOR, VECTOR)  # 1 where x is not negative, else, and of nan, the second one
square_roots = _function(_by_name("llvm.sqrt"), VECTOR)
signs_of = _function(_signs, VECTOR)  # 1, -1, or what is neither positive nor negative itself
guarded_products = _function(_guarded, VECTOR, VECTOR)  # zero if either factor is, also beside numbers that are not finite
larger_of = _function(_larger, VECTOR, VECTOR)  # the first one if they cannot be compared
larger_or_none = _function(_larger_or_none, VECTOR, VECTOR)  # nan if either is
fused_vectors = _function(_by_name("llvm.fma"), VECTOR, VECTOR, VECTOR)  # ``x * y + z``, rounded once
rounded_down = _for_processor(_rounded_down)  # the same, not rounded up; it is positive, and subtracting z from it loses nothing
of_sixteen = _for_processor(_of_sixteen)  # numbers of the first and of the second vector, by the last four bits of the third
times_power_in = _function(_times_power, VECTOR, VECTOR)  # x with the last 16 bits of the second added to its first ones
zero_below = _function(_zero_below, VECTOR, VECTOR, types.float64)  # the first one, or zero where the second is less than a number
all_between = _function(_between, VECTOR, types.float64, types.float64, result=types.boolean)  # with the ends
are_less = _function(lambda builder, x, y: builder.fcmp_ordered("<", x, y), VECTOR, VECTOR, result=CHOICES)
not_less = _function(lambda builder, x, y: builder.fcmp_ordered(">=", x, y), VECTOR, VECTOR, result=CHOICES)
have_common_bits = _function(_common, VECTOR, VECTOR, result=CHOICES)
both = _function(lambda builder, *choices: builder.and_(*choices), CHOICES, CHOICES, result=CHOICES)
all_of = _function(_all, CHOICES, result=types.boolean)
chosen = _function(lambda builder, *values: builder.select(*values), CHOICES, VECTOR, VECTOR)  # numbers of the first one where yes
bits_apart, bits_in_both, bits_in_either = (_function(_by_bits(name), VECTOR, VECTOR) for name in ("xor", "and_", "or_"))
bits_shifted = _function(_shifted, VECTOR, types.int64)  # to the left
vector_of_bits = _function(_stretched_bits, types.int64)  # the number that has these bits, eight times
