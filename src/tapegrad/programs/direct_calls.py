"""Calls like the latest one in a single function: what is looked at, what code does and what is returned are written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import get_default_dtype
from tapegrad.arrays.floating_point_warnings import errors_raise
from tapegrad.drivers.containers import Structure, restore
from tapegrad.programs.conditions import ASKED, ASKED_OF
from tapegrad.programs.quick_calls import QuickCall
from tapegrad.programs.recorded_paths import as_asked
from tapegrad.programs.snapshots import UNKNOWN
from tapegrad.programs.traces import Trace
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["direct_call"]

MOST_ARRAYS = 6  # of which each pair is compared: a function may ask whether ``x is y``


def direct_call(program: Any, usual: Any, trace: Trace, what: str, live: Any) -> Callable[[tuple[Any, ...]], Any] | None:
    """A function that does all of a usual call, if its result is made of nothing but what machine code writes.

    Parameters
    ----------
    program : Program
    usual : Usual
        What calls are alike in.
    trace : Trace
        The path that they take.
    what : {"", "value", "hvp"}
        Value and gradient, the function's value, or a product with the Hessian.
    live : LiveArrays or None
        Arrays that are read where they are.
    """
    quick: QuickCall = usual.quick[what]
    code = quick.code
    result = None if code is None or usual.numbers else _result(code, trace, what, usual.many)
    if result is None:
        return None
    fresh, returned, space = result
    own, terms = usual.snapshot.terms()
    space |= own | ASKED_OF
    space |= {
        "trace": trace, "program": program, "take": TAPE.take_inputs, "place": quick.place, "replay": TAPE.replay,
        "address": TAPE.address, "step": code.step, "item": code.number, "dtype": usual.dtype, "default": get_default_dtype,
        "UNKNOWN": UNKNOWN, "errors_raise": errors_raise,
        "owners": (quick, code),  # of what addresses name, while another thread may let go of them
    }  # fmt: skip
    given = len(usual.kinds) - (0 if live is None else len(live.names))
    distinct = _distinct([k for k, (_, shape, _) in enumerate(usual.kinds) if shape is not None], usual.snapshot.arrays, space)
    if distinct is None:
        return None
    lines = [
        # Whether it is running is looked at last: after a call another thread may have had its turn.
        f"def direct(args):\n    if program.check or {ASKED} or {'errors_raise() or ' * (what == 'value')}trace.is_running:",
        "        return None\n    trace.is_running = True\n    try:",
    ]
    if live is not None:
        space["live"] = live.values
        lines.append(f"        args = (*args[:{given}], *live(), *args[{given}:])")
    asked = " and ".join(["take(place, id(args))", *distinct, "default() is dtype", *terms])
    lines += [f"        if not ({asked}):\n            return None", *fresh, "        replay(address, step, 0, 1)"]
    if code.guards >= 0:
        lines.append(f"        if item({code.guards}):\n            return None")
    lines += [returned, "    except UNKNOWN:\n        return None\n    finally:\n        trace.is_running = False"]
    exec("\n".join(lines), space)
    found: Callable[[tuple[Any, ...]], Any] = space["direct"]
    return found


def _distinct(places: Sequence[int], around: Sequence[tuple[Any, Any]], space: dict[str, Any]) -> list[str] | None:
    """What says that no array is there twice."""
    if len(places) + len(around) > MOST_ARRAYS:
        return None
    space |= {f"around{k}": array for k, (array, _) in enumerate(around)}
    names = [*(f"args[{k}]" for k in places), *(f"around{k}" for k in range(len(around)))]
    return [f"{a} is not {b}" for k, a in enumerate(names[: len(places)]) for b in names[k + 1 :]]


def _result(code: Any, trace: Trace, what: str, many: bool) -> tuple[list[str], str, dict[str, Any]] | None:
    """Lines that come before the code runs, and the one that returns the result, with what they name."""
    made = trace.made
    if made.arrays or made.inside:
        return None
    kinds: Sequence[Any] | None
    if what == "value":
        kinds, structure = trace.kinds_of_results(), trace.structure
    else:
        kinds, structure = made.kinds, as_asked(made, many).structure
    if not kinds or len(kinds) != len(code.results) or (what == "hvp" and (structure is not None or kinds != [np.ndarray])):
        return None
    if what != "value" and not all(map(_has_dtype, made.leaves, code.results)):
        return None
    space: dict[str, Any] = {}
    before, parts = [], []
    for k, (kind, (slot, own, room)) in enumerate(zip(kinds, code.results, strict=True)):
        space |= {f"kind{k}": np.array if kind is np.ndarray else kind}
        if slot >= 0:
            parts.append(f"item({slot})" if kind is float else f"kind{k}(item({slot}))")
        elif kind is not np.ndarray:
            return None
        elif own is not None:
            space[f"copied{k}"] = own.copy
            parts.append(f"copied{k}()")
        else:
            space[f"fresh{k}"] = room.fresh
            before.append(f"        new{k} = fresh{k}()")
            parts.append(f"new{k}")
    text = _arranged(parts, structure, space)
    if what == "hvp" and trace.code_for(what, ()).has_products:
        from tapegrad.programs.fused.matrices import is_finite

        space["is_finite"], text = is_finite, f"found if is_finite(found := {text}) else None"
    return before, f"        return {f'item({code.value}), {text}' if not what else text}", space


def _has_dtype(leaf: Tensor, place: tuple[int, Any, Any]) -> bool:
    """Whether code writes a result in the dtype of a leaf."""
    _, own, room = place
    memory = room if own is None else own
    return memory is None or memory.dtype == array_of(leaf).dtype


def _arranged(parts: Sequence[str], structure: Structure, space: dict[str, Any]) -> str:
    """An expression of results in the structure of arguments."""
    if structure is None:
        return parts[0]
    if type(structure.like) is tuple and not any(structure.children):
        return f"({', '.join(parts)},)"
    space |= {"restore": restore, "structure": structure}
    return f"restore(structure, iter(({', '.join(parts)},)))"
