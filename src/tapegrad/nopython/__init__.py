"""Recording inside compiled code: derivatives of `numba.njit` functions as people write them."""

from tapegrad.nopython.derivatives import grad, value_and_grad
from tapegrad.nopython.tape_memory import free_tape_memory, tape_memory

__all__ = ["free_tape_memory", "grad", "tape_memory", "value_and_grad"]
