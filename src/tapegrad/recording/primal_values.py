"""Values of elementwise rules: the rule's text evaluated on Python floats and on NumPy arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.addresses import address_of
from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave
from tapegrad.arrays.memory_pool import SMALL, large_empty
from tapegrad.arrays.sizes import stretched_number, stretches_to
from tapegrad.deferred import MadeOnDemand
from tapegrad.engine.layout import BLOCK, BY_NUMPYS_LOOP, BY_OWN_LOOP, BY_STAGES, ROOM_BLOCKS
from tapegrad.kernels.entries import KERNEL_WORDS
from tapegrad.kernels.opcodes import (
    EXACT,
    MATH,
    OPCODES,
    OWN_BLOCKS,
    PRIMAL_LOOP,
    call_of,
    calls_in,
    has_staged_value,
    has_value_loop,
    is_numpys,
)
from tapegrad.recording.stretched_operands import OPERATIONS, combined
from tapegrad.recording.whole_operands import block_or_spread, number_or_whole, one_number_or_whole
from tapegrad.rules import special
from tapegrad.rules.table import COMMON, POWERS, RULES, Rule
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tape.function_table import functions_in
from tapegrad.tape.library_loops import KERNELS, call, own_loop
from tapegrad.tape.magnitudes import are_finite_and_not_zero
from tapegrad.tape.tape import TAPE

__all__ = [
    "BY_LIBRARY", "BY_LOOP", "BY_POWER", "BY_TEXT", "EXPONENTS", "LARGE", "OPERATORS", "READS_AGAIN", "choose",
    "float_at_the_edge", "forward", "long_way", "number_forward", "own_way", "scalar_forward", "way_of", "writers",
]  # fmt: skip


def choose(condition: Any, x: Any, y: Any) -> Any:
    """`np.where`, which takes ten times as long where a branch at each element goes this way and that."""
    if type(condition) is np.ndarray and condition.size > SMALL and condition.dtype == bool and condition.flags.c_contiguous:
        shape = condition.shape
        first, second = number_or_whole(x, shape), number_or_whole(y, shape)
        if first is not None and second is not None:
            out = large_empty(shape, dtypes.float64)
            ARRAY_KERNELS.choose_elements(id(out), id(condition), id(first), id(second))
            return out
    return np.where(condition, x, y)


def _np_sigmoid(x: Any) -> Any:
    size = np.abs(x)
    e = np.exp(-size if size.dtype.kind != "b" else -1.0 * size)
    return choose(x >= 0.0, 1.0, e) / (1.0 + e)


def _np_mul0(x: Any, y: Any) -> Any:
    if type(x) is np.ndarray and x.size > SMALL:
        a, b = (one_number_or_whole(operand, x.shape) for operand in (x, y))
        if a is not None and b is not None and (a.ndim or b.ndim):
            return _loop_of_own(OPCODES["_mul0"])(a, b)
        if a is not None and not a.ndim and type(y) is np.ndarray and y.dtype is x.dtype and y.size <= SMALL:
            part = y * a.item() if are_finite_and_not_zero(a.item()) else _np_mul0(stretched_number(a, y.shape, y.dtype), y)
            if stretches_to(y.shape, x.shape):
                z = large_empty(x.shape, dtypes.float64)
                z[...] = part
                return z
    if type(x) is type(y) is np.ndarray and max(x.size, y.size) > SMALL:
        few = x if x.size < y.size else y
        if 8 * few.size <= max(x.size, y.size) and are_finite_and_not_zero(few):  # then no product differs
            found = combined(OPERATIONS[np.multiply], x, y) if x.dtype is y.dtype is dtypes.float64 else None
            return x * y if found is None else found
    # 0 * inf and 0 * nan are the only products that differ, and they are nan.
    z = x * y
    return np.where((x == 0.0) | (y == 0.0), 0.0, z) if np.isnan(np.add.reduce(z, None)) else z


# What rule text means on arrays and on floats.
ARRAY_NAMES: dict[str, Any] = {
    "abs": np.absolute, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atan2": np.arctan2, "atanh": np.arctanh, "ceil": np.ceil, "copysign": np.copysign, "cos": np.cos, "cosh": np.cosh,
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "floor": np.floor, "fmax": np.fmax, "fmin": np.fmin, "fmod": np.fmod,
    "hypot": np.hypot, "log": np.log,
    "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "logaddexp": np.logaddexp,
    "maximum": np.maximum, "minimum": np.minimum, "mul0": _np_mul0, "pow": np.power, "remainder": np.remainder,
    "round": np.round, "sigmoid": _np_sigmoid, "sign": np.sign, "sin": np.sin, "sinh": np.sinh,
    "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh, "trunc": np.trunc, "where": choose,
}  # fmt: skip

FLOAT_NAMES: dict[str, Any] = {name: getattr(math, name) for name in MATH}
FLOAT_NAMES |= {name: getattr(special, name) for name in special.__all__}
FLOAT_NAMES |= {
    "abs": abs,
    # Python's integers know no -0.0.
    "ceil": lambda x: math.copysign(math.ceil(x), x),
    "floor": lambda x: math.copysign(math.floor(x), x),
    "trunc": lambda x: math.copysign(math.trunc(x), x),
    "round": lambda x: math.copysign(round(x), x),
    "remainder": operator.mod,
}

UFUNCS = {
    "x + y": np.add,
    "x - y": np.subtract,
    "x * y": np.multiply,
    "x / y": np.true_divide,
    "-x": np.negative,
    "x * x": np.square,
}
OPERATORS: dict[str, Any] = {
    "x + y": operator.add,
    "x - y": operator.sub,
    "x * y": operator.mul,
    "x / y": operator.truediv,
    "-x": operator.neg,
}


def _by_own_loop(ufunc: Any) -> Callable[..., Any]:
    """Values of a function that NumPy computes by the C library, an element at a time."""

    def values(*operands: Any, out: Any) -> Any:
        loop = own_loop(ufunc)
        if (loop[0] or ufunc is np.logaddexp) and out.flags.c_contiguous:
            places = [block_or_spread(a, out.shape) for a in operands]
            if all(a is not None for a in places):
                if loop[0]:
                    call(loop, out, *places)
                else:
                    ARRAY_KERNELS.log_add_exponentials(id(out), *map(id, places))
                return out
        return ufunc(*operands, out=out)

    return values


def _by_remainders(function: Any, wanted: int) -> Callable[..., Any]:
    def values(x: Any, y: Any, out: Any = None) -> Any:
        if out is None:
            out = np.empty(np.broadcast_shapes(x.shape, y.shape), x.dtype)
        a, b = block_or_spread(x, out.shape), block_or_spread(y, out.shape)
        if a is None or b is None or not out.flags.c_contiguous:
            return function(x, y, out=out)
        ARRAY_KERNELS.remainders_of(id(out), id(a), id(b), wanted)
        return out

    return values


def _next_numbers(x: Any, y: Any, out: Any = None) -> Any:
    """`np.nextafter`, which calls the C library for each element."""
    out = large_empty(np.broadcast_shapes(x.shape, y.shape), dtypes.float64) if out is None else out
    a, b = block_or_spread(x, out.shape), block_or_spread(y, out.shape)
    if a is None or b is None or out.size <= SMALL or not out.flags.c_contiguous:
        return np.nextafter(x, y, out=out)
    ARRAY_KERNELS.next_numbers(id(out), id(a), id(b))
    return out


def _signs(x: Any, out: Any) -> Any:
    loop = _loop_of_own(OPCODES["sign"])
    return loop(x, out=out) if number_or_whole(x, out.shape) is not None and out.flags.c_contiguous else np.sign(x, out=out)


# Ufuncs whose values on large float64 arrays are computed faster here, with the same bits.
LARGE: dict[Any, Callable[..., Any]] = {
    np.sign: _signs, np.fmod: _by_remainders(np.fmod, 0), np.remainder: _by_remainders(np.remainder, 1),
    np.floor_divide: _by_remainders(np.floor_divide, 2), np.nextafter: _next_numbers,
} | {ufunc: _by_own_loop(ufunc) for ufunc in KERNELS}  # fmt: skip
# Those that read operands again after the first element was written: the result must have memory of its own.
READS_AGAIN = frozenset(LARGE.values()) - {_signs, LARGE[np.exp]}


def _writer(opcode: int) -> Callable[..., Any] | None:
    """What puts a rule's value on large contiguous float64 arrays at once into ``out``; None if only several passes do."""
    function, rule = forward[opcode], RULES[opcode]
    if function is np.round:
        return np.rint
    if isinstance(function, np.ufunc):
        return LARGE.get(function, function)
    has_numpys = all(_on_arrays(name) for name in calls_in(rule.primal)) and rule.name not in BY_LIBRARY
    return _by_loop(opcode, rule) if not has_numpys or _has_loop(opcode, rule) else None


# Rules that SciPy computes with the C library's functions, also on arrays.
BY_LIBRARY = frozenset(["xlogy"])


def _on_floats(name: str) -> Callable[..., float]:
    """A function of rule text on floats: where `math` and `special` lack it, NumPy's."""
    own = FLOAT_NAMES.get(name) or getattr(math, name, None) or _by_numpy(getattr(np, name))
    FLOAT_NAMES[name] = own
    return own


def _by_numpy(function: Callable[..., Any]) -> Callable[..., float]:
    """A function of NumPy's on floats, without its warnings."""

    def value(*numbers: float) -> float:
        token = enter(IGNORING)
        try:
            return float(function(*numbers))
        finally:
            leave(token)

    return value


def _on_arrays(name: str) -> Callable[..., Any] | None:
    """A function of rule text on arrays; None if NumPy lacks it."""
    if name not in ARRAY_NAMES and name not in special.__all__ and hasattr(np, name):
        ARRAY_NAMES[name] = getattr(np, name)
    return ARRAY_NAMES.get(name)


def _by_loop(opcode: int, rule: Rule) -> Callable[..., Any]:
    """Values by the rule's compiled loop, for functions that NumPy lacks."""
    name, number = (f"loops_of_{rule.name}", PRIMAL_LOOP) if opcode >= COMMON else ("value_block", opcode)
    word, alone = KERNEL_WORDS[name], len(rule.args) == 1
    is_staged = has_staged_value(rule) and rule.name not in BY_LIBRARY
    has_own_bits = calls_in(rule.primal) <= EXACT | OWN_BLOCKS  # then a few elements go one by one

    def forward(*operands: Any, out: Any = None) -> Any:
        loops = TAPE.kernel_table.item(word)
        if not loops:
            TAPE.need(name)
            loops = TAPE.kernel_table.item(word)
        x, functions, room = operands[0], 0, 0
        if (is_staged and not (has_own_bits and all(map(_is_few, operands)))) or x is out:
            functions, kept = functions_in(TAPE.kernel_table) if is_staged else 0, np.empty(BLOCK * (ROOM_BLOCKS + 1))
            room = address_of(kept)
        if alone and type(x) is np.ndarray and x.dtype == dtypes.float64 and x.flags.c_contiguous:
            out = large_empty(x.shape, dtypes.float64) if out is None else out
            at, to = address_of(x), address_of(out)
            TAPE.call_loop_of_rule(loops, number, x.size, at, at, at, to, 0, functions, room)
            return out
        are_doubles, shapes, numbers = True, set(), 0
        for k, a in enumerate(operands):
            if type(a) is float or not a.ndim:
                numbers |= 1 << k
            else:
                shapes.add(a.shape)
            if type(a) is not float and a.dtype is not dtypes.float64:
                are_doubles = False
        if out is None:
            shape = shapes.pop() if len(shapes) == 1 else np.broadcast(*operands).shape
            out = large_empty(shape, dtypes.float64)
        arrays = [_stretched(a, out.shape) for a in operands]
        to = address_of(out)
        x_at, y_at, w_at, *_ = (*[address_of(a) for a in arrays], to, to, to)
        TAPE.call_loop_of_rule(loops, number, out.size, x_at, y_at, w_at, to, numbers, functions, room)
        if are_doubles:
            return out
        dtype = np.result_type(*operands)
        return out.astype(dtype, copy=False) if dtype in (dtypes.float32, dtypes.float16) else out

    return forward


@cache
def _loop_of_own(opcode: int) -> Callable[..., Any]:
    return _by_loop(opcode, RULES[opcode])


def _is_few(operand: Any) -> bool:
    return type(operand) is float or operand.size <= 16


def _stretched(operand: Any, shape: tuple[int, ...]) -> Any:
    """A contiguous float64 array of a shape that the operand broadcasts to; of a number, a block that serves for all."""
    if type(operand) is float or not operand.ndim:
        return np.full(min(BLOCK, math.prod(shape)), operand, np.float64)
    if type(operand) is np.ndarray and operand.shape == shape:
        return np.ascontiguousarray(operand, np.float64)
    whole = np.empty(shape)
    whole[...] = operand
    return whole


def _evaluated(rule: Rule, names: dict[str, Any]) -> Any:
    # Rule text is ours, never a user's.
    return eval(f"lambda {', '.join(rule.args)}: {rule.primal}", names)


def _forward(opcode: int) -> Callable[..., Any]:
    rule = RULES[opcode]
    if rule.primal in UFUNCS:
        return UFUNCS[rule.primal]
    if rule.name in BY_LIBRARY:
        return _by_loop(opcode, rule)
    called = {name: _on_arrays(name) for name in calls_in(rule.primal)}
    if None in called.values():
        return _by_loop(opcode, rule)
    function = called.get(call_of(rule))
    if function is not None and not has_staged_value(rule):
        return function
    return _by_loop_if_large(opcode, rule, function or _evaluated(rule, ARRAY_NAMES))


def _has_loop(opcode: int, rule: Rule) -> bool:
    """Whether the rule's compiled loop has the very bits that NumPy's functions give one after the other."""
    if has_staged_value(rule):
        return functions_in(TAPE.kernel_table) != 0
    return has_value_loop(rule) if opcode < COMMON else calls_in(rule.primal) <= EXACT


def _by_loop_if_large(opcode: int, rule: Rule, by_numpy: Callable[..., Any]) -> Callable[..., Any]:
    """One pass over large arrays in the place of one for each function."""
    if not _has_loop(opcode, rule):
        return by_numpy
    by_loop = _by_loop(opcode, rule)

    def forward(*operands: Any) -> Any:
        x = operands[0]
        if type(x) is not np.ndarray or x.size <= SMALL or number_or_whole(x, x.shape) is None:
            return by_numpy(*operands)
        for a in operands[1:]:
            if number_or_whole(a, x.shape) is None:
                return by_numpy(*operands)
        return by_loop(*operands)

    return forward


def own_way(opcode: int) -> int:
    """How a loop of ours has the bits that `forward` gives on small arrays: 0 if none has, or there is no need of one."""
    rule, function, called = RULES[opcode], forward[opcode], calls_in(RULES[opcode].primal)
    if isinstance(function, np.ufunc) or function is np.round:
        return 0
    if has_staged_value(rule) and rule.name not in BY_LIBRARY and functions_in(TAPE.kernel_table):
        return BY_STAGES
    is_ours = rule.name in BY_LIBRARY or None in map(_on_arrays, called)
    return BY_OWN_LOOP if is_ours or (len(rule.args) > 2 and called <= EXACT) else 0


def long_way(opcode: int) -> int:
    """How compiled code writes a rule's values over a large array: by NumPy's loop or by one of ours; 0 if it does not."""
    function = forward[opcode]
    if isinstance(function, np.ufunc) and function in LARGE and function is not np.exp:
        return BY_OWN_LOOP if LARGE[function] is _signs else 0
    if isinstance(function, np.ufunc) or function is np.round:
        return BY_NUMPYS_LOOP
    rule = RULES[opcode]
    return own_way(opcode) or (BY_OWN_LOOP if not has_staged_value(rule) and _has_loop(opcode, rule) else 0)


def _scalar_forward(opcode: int) -> Callable[..., float]:
    rule = RULES[opcode]
    if rule.primal in OPERATORS:
        return OPERATORS[rule.primal]
    called = {name: _on_floats(name) for name in calls_in(rule.primal)}
    return called.get(call_of(rule)) or _evaluated(rule, FLOAT_NAMES)


# How a rule's value on numbers is computed: by its text, by the loop of NumPy's ufunc, or as a power with the exponent that the
# rule stands for. Numbers of arrays have the bits of NumPy's, whose `**` is the C library's power.
BY_TEXT, BY_LOOP, BY_POWER = range(3)
EXPONENTS = {OPCODES[name]: exponent for exponent, name in POWERS.items()}


def way_of(opcode: int, of_numpy: bool) -> int:
    """How a rule's value on numbers is computed, among which there is one of NumPy's or not."""
    return BY_LOOP if of_numpy and is_numpys(RULES[opcode]) and isinstance(forward[opcode], np.ufunc) else BY_TEXT


def _number_forward(key: tuple[int, int]) -> Callable[..., float]:
    way, opcode = key
    if way == BY_TEXT:
        return scalar_forward[opcode]
    if way == BY_LOOP:
        return _by_numpy(forward[opcode])
    exponent = np.float64(EXPONENTS[opcode])
    return _by_numpy(lambda x: np.float64(x) ** exponent)


# By opcode, each made when it is first asked for.
forward: Mapping[int, Callable[..., Any]] = MadeOnDemand(_forward)
scalar_forward: Mapping[int, Callable[..., float]] = MadeOnDemand(_scalar_forward)
writers: Mapping[int, Callable[..., Any] | None] = MadeOnDemand(_writer)
# By way and opcode.
number_forward: Mapping[tuple[int, int], Callable[..., float]] = MadeOnDemand(_number_forward)


def float_at_the_edge(opcode: int, *values: float) -> float:
    """A float result where Python's own function raises: overflow, poles, domain; IEEE values as on arrays."""
    token = enter(IGNORING)
    try:
        return float(forward[opcode](*(np.array([value]) for value in values))[0])
    finally:
        leave(token)
