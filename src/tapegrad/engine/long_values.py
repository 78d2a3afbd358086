"""Values of rules written over large arrays, block after block, by NumPy's loop or by one of ours.

What was there is copied meanwhile, where a derivative reads it: a block is in the nearest cache then.
"""

from tapegrad.compilation.jit import inline
from tapegrad.compilation.memory_types import address_of
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_data, array_size, call10, call_loop, is_float
from tapegrad.engine.objects import call_object
from tapegrad.engine.operator_results import start_of
from tapegrad.engine.own_values import elements_or_block, value_loops
from tapegrad.engine.structs import doubles_at

NUMPYS_BLOCK = 4 * BLOCK  # elements that a loop of NumPy's is given, whose call takes as long as it computes a hundred


@inline
def has_long_values(tape, opcode):
    """Whether compiled code has a rule's values on large arrays."""
    way = tape.long_ways[opcode]
    if way == BY_NUMPYS_LOOP:
        return tape.loops[opcode].function != 0
    if way == 0 or tape.value_room == 0 or (way == BY_STAGES and tape.kernel_table[FUNCTIONS_READY] == 0):
        return False
    return value_loops(tape, opcode) != 0


@inline
def large_like(tape, data):
    """A new array like a large one, on memory that was used before; 0 without memory, or if something was raised."""
    return call_object(tape.large_like, 1, data, 0)


@inline
def copy_doubles(source, target, count):
    """Copy numbers from one address to another."""
    x, z = doubles_at(source), doubles_at(target)
    for j in range(count):
        z[j] = x[j]


@inline
def write_by_numpys_loop(tape, opcode, count, old, b, out):
    """Values of one or two operands by the loop that the ufunc has."""
    loop, size, x, z = tape.loops[opcode], array_size(out), array_data(old), array_data(out)
    y, y_step = start_of(tape, b), 0 if is_float(tape, b) else 8
    if x == z:
        call_loop(loop.function, loop.data, size, x, 8, y, y_step, z, 8, count - 1)
        return
    for start in range(0, size, NUMPYS_BLOCK):
        n, at = min(NUMPYS_BLOCK, size - start), 8 * start
        copy_doubles(z + at, x + at, n)
        call_loop(loop.function, loop.data, n, x + at, 8, y + y_step * start, y_step, z + at, 8, count - 1)


@inline
def write_by_own_loop(tape, opcode, way, old, b, c, out):
    """Values of up to three operands by a loop of ours; the second and third are the first again if there are none."""
    kernels, size, x, z = tape.kernel_table, array_size(out), array_data(old), array_data(out)
    loops, number = value_loops(tape, opcode), opcode if opcode < COMMON else PRIMAL_LOOP
    functions = address_of(kernels, FUNCTIONS_AT) if way == BY_STAGES else 0
    y, w = elements_or_block(tape, 1, b, size), elements_or_block(tape, 2, c, size)
    y_step, w_step = 0 if is_float(tape, b) else 8, 0 if is_float(tape, c) else 8
    for start in range(0, size, BLOCK):
        n, at, to = min(BLOCK, size - start), x + 8 * start, z + 8 * start
        if x == z:  # loops whose operands lie apart are several times as fast
            at = tape.value_room + 8 * BLOCK * ROOM_BLOCKS
        copy_doubles(to, at, n)
        second = at if b == old else y + y_step * start
        third = at if c == old else w + w_step * start
        call10(loops, number, n, at, second, third, to, to, to, functions, tape.value_room)


@inline
def write_long_values(tape, opcode, count, old, b, c, out):
    """Write values of what a large array has, with further operands, over it; `old` gets what was there, or is it."""
    way = tape.long_ways[opcode]
    if way == BY_NUMPYS_LOOP:
        write_by_numpys_loop(tape, opcode, count, old, b if count > 1 else out, out)
    else:
        write_by_own_loop(tape, opcode, way, old, b if count > 1 else old, c if count > 2 else old, out)
