"""Rules by their loops: those of the common rules are one kernel, and each other rule has one, which is loaded when it is used."""

from tapegrad.compilation.jit import entry, inline, kernel
from tapegrad.engine.layout import *
from tapegrad.engine.memory import call8, get, load_f64, store_f64


@inline
def own_loops(kernels, opcode):
    """Address of the loops of a rule that is not among the common ones; 0 if they are not loaded."""
    return get(kernels, KERNEL_COUNT + opcode - COMMON)


@inline
def loops_of(kernels, opcode):
    """Address of the kernel that has the loops of a rule's partials."""
    return get(kernels, PARTIAL_BLOCK) if opcode < COMMON else own_loops(kernels, opcode)


@inline
def has_loops(tape, opcode):
    """Whether the loops of a rule are loaded: without them no row of it is recorded."""
    return opcode < COMMON or own_loops(get(tape, KERNEL_TABLE), opcode) != 0


@inline
def value_by_loop(tape, opcode, x, y):
    """A rule's value on scalars by its own loops."""
    x_at, y_at, z_at = tape + 8 * OPERAND_X, tape + 8 * OPERAND_Y, tape + 8 * VALUE_OF_LOOP
    store_f64(x_at, x)
    store_f64(y_at, y)
    call8(own_loops(get(tape, KERNEL_TABLE), opcode), PRIMAL_LOOP, 1, x_at, y_at, y_at, y_at, y_at, z_at)
    return load_f64(z_at)


@kernel("void(int64,int64,int64,int64,float64,float64,float64,int64)")
def other_scalars(kernels, opcode, has_x, has_y, x, y, z, out):
    """Both partials of a plain row whose rule is not among the common ones, into two words that three more follow."""
    loops, x_at, y_at, z_at, one = own_loops(kernels, opcode), out + 16, out + 24, out + 32, out + 40
    store_f64(x_at, x)
    store_f64(y_at, y)
    store_f64(z_at, z)
    store_f64(one, 1.0)
    store_f64(out, 1.0)
    store_f64(out + 8, 1.0)
    if has_x:
        call8(loops, 0, 1, x_at, y_at, y_at, z_at, one, out)
    if has_y:
        call8(loops, 1, 1, x_at, y_at, y_at, z_at, one, out + 8)


@entry("int64(int64,int64,int64,int64,int64,int64,int64)")
def call_loop_of_rule(loops, number, n, x_at, y_at, w_at, out_at):
    """A loop by the address of a rule's own loops, for one that needs no result and no adjoint."""
    call8(loops, number, n, x_at, y_at, w_at, out_at, out_at, out_at)
    return 0
