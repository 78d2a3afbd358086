"""Recording inside compiled code: derivatives of `numba.njit` functions as people write them."""

from tapegrad.nopython.operation import njit_op
from tapegrad.nopython.tape_memory import free_tape_memory, tape_memory

__all__ = ["free_tape_memory", "njit_op", "tape_memory"]
