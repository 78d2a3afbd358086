"""Values of rules on small arrays by loops of ours, where NumPy has no loop for the whole of a rule.

The loop of a rule is given NumPy's loops for the functions that NumPy has, block after block, or does everything itself. Both have
the bits of the Python form, which says which of them a rule has.
"""

from tapegrad.compilation.jit import inline
from tapegrad.compilation.memory_types import address_of
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_data, array_size, call10, f64, float_value, is_float
from tapegrad.engine.rule_loops import own_loops


@inline
def value_loops(tape, opcode):
    """Address of the kernel that has the loop of a rule's value; 0 if it is not loaded."""
    return tape.kernel_table[VALUE_BLOCK] if opcode < COMMON else own_loops(tape.kernel_table, opcode)


@inline
def has_own_values(tape, opcode):
    """Whether a rule's values on arrays are those of a loop of ours, which is loaded."""
    loop = tape.loops[opcode]
    if loop.function != 0 or loop.data == 0 or tape.value_room == 0:
        return False
    if loop.data == BY_STAGES and tape.kernel_table[FUNCTIONS_READY] == 0:
        return False
    return value_loops(tape, opcode) != 0


@inline
def elements_or_block(tape, k, obj, count):
    """Address of an array's elements; of a number, a block of it, in a place for the operand `k`."""
    if not is_float(tape, obj):
        return array_data(obj)
    place = tape.value_room + 8 * BLOCK * (ROOM_BLOCKS + k)
    block, value = f64(place, BLOCK), float_value(obj)
    for j in range(min(count, BLOCK)):
        block[j] = value
    return place


@inline
def own_values(tape, opcode, a, b, c, out):
    """Values of up to three operands, arrays of the result's shape or numbers; where there are less, the last one is repeated."""
    kernels, size = tape.kernel_table, array_size(out)
    loops, number = value_loops(tape, opcode), opcode if opcode < COMMON else PRIMAL_LOOP
    functions = address_of(kernels, FUNCTIONS_AT) if tape.loops[opcode].data == BY_STAGES else 0
    x, y, w = elements_or_block(tape, 0, a, size), elements_or_block(tape, 1, b, size), elements_or_block(tape, 2, c, size)
    x_step, y_step, w_step = 0 if is_float(tape, a) else 8, 0 if is_float(tape, b) else 8, 0 if is_float(tape, c) else 8
    for start in range(0, size, BLOCK):
        count, z = min(BLOCK, size - start), array_data(out) + 8 * start
        places = x + x_step * start, y + y_step * start, w + w_step * start
        call10(loops, number, count, places[0], places[1], places[2], z, z, z, functions, tape.value_room)
