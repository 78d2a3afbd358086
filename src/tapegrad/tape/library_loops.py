"""Loops of ours in the place of those of NumPy's that call a library for one element, or for eight: where both have the same bits.

Ours do the arithmetic of one library, several elements at once. Which one a process has, in which version, and what that takes
the processor for, nobody can say; but results can be compared (`tapegrad.tape.loop_comparison`). So a loop is used after its
results at some hundred points were those of NumPy's, bit by bit, and else NumPy's is.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from tapegrad.arrays.numpy_api import inner_loop
from tapegrad.deferred import look_up
from tapegrad.kernels.opcodes import calls_in
from tapegrad.rules.table import Rule
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tape.function_table import replace
from tapegrad.tape.tape import TAPE

__all__ = ["KERNELS", "call", "loop_of", "own_loop", "use_in_rule"]

NUMPYS_EXP, ITS_DATA = inner_loop(np.exp)

# Of each function its loop, and the words that are tried: which products and sums are fused in versions of the C library, or where
# NumPy's loop is, to which exponentials of another kind are left.
KERNELS: dict[Any, tuple[str, tuple[int, ...]]] = {
    np.sin: ("sin_loop", (0,)),
    np.cos: ("cos_loop", (0,)),
    np.exp: ("exp_loop", (NUMPYS_EXP,) if NUMPYS_EXP and not ITS_DATA else ()),
    np.hypot: ("hypot_loop", (0,)),
    np.logaddexp: ("logaddexp_loop", (1, 0)),
    np.logaddexp2: ("logaddexp2_loop", (1, 0, 3, 2)),
}

TOGETHER = (np.sin, np.cos)  # each is the other's derivative
BY_EXP = frozenset(["exp", "logaddexp", "sigmoid"])  # functions of rule text that call it for blocks

_found: dict[Any, tuple[int, int]] = {}  # zeros where NumPy's is used


def loop_of(ufunc: Any, dtype: Any = np.float64) -> tuple[int, int]:
    """What `inner_loop` gives, of a loop of ours where there is one; none is compiled for this alone."""
    if ufunc in KERNELS and dtype == np.float64 and (ufunc in _found or _is_built()):
        own = own_loop(ufunc)
        if own[0]:
            return own
    return inner_loop(ufunc, dtype)


def _is_built() -> bool:
    return not isinstance(TAPE.kernels, ModuleType)


def use_in_rule(rule: Rule) -> None:
    """Let the loops of a rule have their exponentials by ours, if there is one; none is compiled for this alone."""
    if np.exp not in _found and _is_built() and any(text and calls_in(text) & BY_EXP for text in (rule.primal, *rule.partials)):
        own_loop(np.exp)


def own_loop(ufunc: Any) -> tuple[int, int]:
    """Address and last argument of a loop of ours; zeros if its results are not those of NumPy's here."""
    if ufunc not in _found:
        compared = look_up("tape.loop_comparison:compared")
        for one in TOGETHER if ufunc in TOGETHER else (ufunc,):
            name, ways = KERNELS[one]
            loop = getattr(ARRAY_KERNELS, name)
            if one is np.exp and not getattr(TAPE.kernels, "is_wide", True):  # with registers of 256 bits NumPy's is quicker
                ways = ()
            _found[one] = own = compared(one, loop, ways)
            if own[0]:
                replace(TAPE.kernel_table, one.__name__, own)
            if own[0] and one is np.exp:  # the sigmoid is made of it
                replace(TAPE.kernel_table, "sigmoid", (ARRAY_KERNELS.sigmoid_loop, NUMPYS_EXP))
    return _found[ufunc]


def call(loop: tuple[int, int], out: Any, x: Any, y: Any = None) -> None:
    """Call a loop for contiguous float64 arrays; an operand may be a single number."""
    second = x if y is None else y
    ARRAY_KERNELS.call_function(id(out), id(x), id(second), *loop, int(y is not None))
