"""Rules by their loops: those of the common rules are one kernel, and each other rule has one, which is loaded when it is used."""

from tapegrad.compilation.jit import entry, inline, kernel
from tapegrad.compilation.memory_types import address_of
from tapegrad.engine.layout import *
from tapegrad.engine.memory import call10, f64


@inline
def own_loops(kernels, opcode):
    """Address of the loops of a rule that is not among the common ones; 0 if they are not loaded."""
    return kernels[KERNEL_COUNT + opcode - COMMON]


@inline
def loops_of(kernels, opcode):
    """Address of the kernel that has the loops of a rule's partials."""
    return kernels[PARTIAL_BLOCK] if opcode < COMMON else own_loops(kernels, opcode)


@inline
def functions_for(kernels, rank):
    """Address of those of NumPy's loops that partials of an array call; 0 for a number, which has the C library's functions."""
    return address_of(kernels, FUNCTIONS_AT) if rank > 0 and kernels[FUNCTIONS_READY] != 0 else 0


@inline
def has_loops(tape, opcode):
    """Whether the loops of a rule are loaded: without them no row of it is recorded."""
    return opcode < COMMON or own_loops(tape.kernel_table, opcode) != 0


@inline
def value_by_loop(tape, opcode, x, y):
    """A rule's value on scalars by its own loops."""
    x_at, y_at, z_at = address_of(tape, OPERAND_X), address_of(tape, OPERAND_Y), address_of(tape, VALUE_OF_LOOP)
    tape.operand_x = x
    tape.operand_y = y
    call10(own_loops(tape.kernel_table, opcode), PRIMAL_LOOP, 1, x_at, y_at, y_at, y_at, y_at, z_at, 0, 0)
    return tape.value_of_loop


@kernel("void(Words,int64,int64,int64,float64,float64,float64,Doubles)")
def other_scalars(kernels, opcode, has_x, has_y, x, y, z, out):
    """Both partials of a plain row whose rule is not among the common ones, into two words that three more follow."""
    loops = own_loops(kernels, opcode)
    out[2], out[3], out[4], out[5] = x, y, z, 1.0
    out[0], out[1] = 1.0, 1.0
    x_at, y_at, z_at, one = address_of(out, 2), address_of(out, 3), address_of(out, 4), address_of(out, 5)
    if has_x:
        call10(loops, 0, 1, x_at, y_at, y_at, z_at, one, out, 0, 0)
    if has_y:
        call10(loops, 1, 1, x_at, y_at, y_at, z_at, one, address_of(out, 1), 0, 0)


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64,int64,int64)")
def call_loop_of_rule(loops, number, n, x_at, y_at, w_at, out_at, numbers, functions, room):
    """A loop by the address of a kernel of rules' loops, for one that needs no result and no adjoint.

    Bit k of `numbers` says that operand k is one number: a block of it is used again and again. The result may be written over the
    first operand. `functions` is the address of NumPy's loops, or 0, and `room` has a block more than those loops use.
    """
    x_step, y_step, w_step = 0 if numbers & 1 else 8, 0 if numbers & 2 else 8, 0 if numbers & 4 else 8
    for start in range(0, n, BLOCK):
        count = min(BLOCK, n - start)
        out = out_at + 8 * start
        x, y, w = x_at + x_step * start, y_at + y_step * start, w_at + w_step * start
        if x == out:  # loops whose operands lie apart are several times as fast
            x = room + 8 * BLOCK * ROOM_BLOCKS
            kept, values = f64(x, count), f64(out, count)
            for j in range(count):
                kept[j] = values[j]
        call10(loops, number, count, x, y, w, out, out, out, functions, room)
    return 0
