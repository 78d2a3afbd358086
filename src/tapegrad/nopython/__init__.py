"""Recording inside compiled code: derivatives of `numba.njit` functions as people write them."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from tapegrad.deferred import NamesOnDemand as _NamesOnDemand
from tapegrad.deferred import places as _places

if _TYPE_CHECKING:
    from tapegrad.nopython.compiled_derivative import njit_derivative
    from tapegrad.nopython.compiled_operation import njit_op
    from tapegrad.nopython.compiled_tangents import dual
    from tapegrad.nopython.registered_derivatives import register_derivative
    from tapegrad.nopython.tape.held_memory import free_tape_memory, tape_memory

__all__ = ["dual", "free_tape_memory", "njit_derivative", "njit_op", "register_derivative", "tape_memory"]

_names = _NamesOnDemand(
    globals(),
    _places(
        {
            "nopython.tape.held_memory": "free_tape_memory tape_memory",
            "nopython.compiled_derivative": "njit_derivative",
            "nopython.compiled_operation": "njit_op",
            "nopython.compiled_tangents": "dual",
            "nopython.registered_derivatives": "register_derivative",
        }
    ),
)


def __getattr__(name: str) -> _Any:
    return _names.get(name)


def __dir__() -> list[str]:
    return _names.listed()
