"""Calls like the latest one in a single function: what is looked at, what code does and what is returned are written out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import get_default_dtype
from tapegrad.arrays.floating_point_warnings import errors_raise
from tapegrad.drivers.derivatives import Outputs
from tapegrad.programs.argument_layouts import layout_of
from tapegrad.programs.conditions import ASKED, ASKED_OF
from tapegrad.programs.direct_results import DirectResult, NotDirectError
from tapegrad.programs.fused.kinds import LATER
from tapegrad.programs.kept_products import LaterProducts
from tapegrad.programs.quick_calls import Kind, QuickCall, quick_call
from tapegrad.programs.recorded_paths import as_asked
from tapegrad.programs.snapshots import UNKNOWN
from tapegrad.programs.traces import Trace
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor

__all__ = ["direct_call"]

FLOAT64 = np.dtype(np.float64)
MOST_PAIRS = 6  # arrays of which each pair is compared: a function may ask whether ``x is y``
DirectCall = Callable[[tuple[Any, ...]], Any]


def direct_call(program: Any, usual: Any, trace: Trace, what: str, argnums: Any, live: Any) -> DirectCall | None:
    """A function that does all of a usual call, if its result is made of nothing but what machine code writes.

    Parameters
    ----------
    program : Program
    usual : Usual
        What calls are alike in.
    trace : Trace
        The path that they take.
    what : str
        What they ask for, see `DirectResult`; vectors of "value_jvp" and "hvp" follow the arguments.
    argnums : int, tuple or range of int
        What is differentiated by.
    live : LiveArrays or None
        Arrays that are read where they are.
    """
    try:
        return _written(program, usual, trace, what, argnums, live)
    except NotDirectError:
        return None


def _written(program: Any, usual: Any, trace: Trace, what: str, argnums: Any, live: Any) -> DirectCall:
    later = _later(program, usual, trace, what, argnums) if what in LATER else None
    made_code = _code_for(trace, "value" if later is not None else what)
    vectors, along = _vectors(trace, usual.many) if what in ("value_jvp", "hvp") else ([], [])
    result = DirectResult(made_code, trace, what, usual.many, later)
    quick = _quick(made_code, usual.kinds, along)
    own, terms = usual.snapshot.terms()
    layout = usual.layout.with_vectors(vectors)
    space = layout.space | result.space | own | {"default": get_default_dtype, "dtype": usual.dtype, "program": program}
    distinct = _distinct([k for k, (_, shape, _) in enumerate(usual.kinds) if shape is not None], usual.snapshot.arrays, space)
    if live is not None:
        space["live"] = live.values
    asked = f"program.check or {ASKED} or {'errors_raise() or ' * (what == 'value')}"
    lines = layout.lines("" if live is None else "*live()")
    return _function(asked, lines, [*distinct, "default() is dtype", *terms], result, quick, trace, space)


def _function(
    asked: str,
    lines: Sequence[str],
    terms: Sequence[str],
    result: DirectResult,
    quick: QuickCall,
    trace: Trace,
    space: dict[str, Any],
) -> DirectCall:
    """Conditions, inputs, the run, guards and results in one function."""
    code: Any = quick.code
    space |= ASKED_OF
    space |= {
        "trace": trace, "take": TAPE.compiled("take_inputs"), "place": quick.place,
        "replay": TAPE.compiled("replay"), "address": TAPE.address,
        "step": code.step, "item": code.number, "UNKNOWN": UNKNOWN, "errors_raise": errors_raise,
        "owners": (quick, code),  # of what addresses name, while another thread may let go of them
    }  # fmt: skip
    text = [
        # Whether it is running is looked at last: after a call another thread may have had its turn.
        f"def direct(args):\n    if {asked}trace.is_running:\n        return None\n    trace.is_running = True\n    try:",
        *lines,
        f"        if not ({' and '.join(['take(place, id(args))', *terms])}):\n            return None",
        *result.before,
        "        replay(address, step, 0, 1)",
    ]
    conditions = [*([f"not item({code.guards})"] if code.guards >= 0 else []), *result.conditions]
    if conditions:
        text.append(f"        if not ({' and '.join(conditions)}):\n            return None")
    text += [
        *result.after,
        f"        return {result.text}",
        "    except UNKNOWN:\n        return None\n    finally:\n        trace.is_running = False",
    ]
    exec("\n".join(text), space)
    found: DirectCall = space["direct"]
    return found


def _code_for(trace: Trace, what: str) -> Any:
    """Code of the inputs alone that nothing stops.

    Raises
    ------
    NotDirectError
        If there is none.
    """
    fused = trace.code_of(what)
    if fused is None or fused.code is None or fused.code.alone() is None:
        raise NotDirectError
    return fused.code


def _quick(made_code: Any, kinds: Sequence[Kind], along: Sequence[Kind]) -> QuickCall:
    """The code as it takes its inputs, and vectors behind them in parts."""
    quick = quick_call(made_code, kinds, along)
    if quick is None:
        raise NotDirectError
    return quick


def _vectors(trace: Trace, many: bool) -> tuple[list[Any], list[Kind]]:
    """Vectors like what is differentiated by, and the kinds of the numbers and arrays in them, which are of float64."""
    made = as_asked(trace.made, many)
    kinds = [_kind_of(t, kind) for t, kind in zip(made.leaves, made.kinds, strict=True)]
    like = made.arranged([_zero_of(kind) for kind in kinds])
    return list(like) if many else [like], kinds


def _kind_of(t: Tensor, kind: Any) -> Kind:
    return (np.ndarray, np.shape(t._data), FLOAT64) if kind is np.ndarray else (kind, None, None)


def _zero_of(kind: Kind) -> Any:
    return kind[0](0.0) if kind[1] is None else np.zeros(kind[1])


def _later(program: Any, usual: Any, trace: Trace, what: str, argnums: Any) -> LaterProducts:
    """What gives products later, by code that is given the inputs again."""
    made_code = _code_for(trace, what)
    if not made_code.is_pure:
        raise NotDirectError
    made = copy.copy(as_asked(trace.made, usual.many))
    outputs = Outputs(made, what)
    if what == "vjp":
        along = [_kind_of(t, np.ndarray if np.shape(t._data) else float) for t in outputs.tensors]
        vectors = [outputs.arranged(map(_zero_of, along))]
    else:
        vectors, along = _vectors(trace, usual.many)
    like = [*map(_zero_of, usual.kinds), *vectors]
    layout = layout_of(like, tuple(range(len(like))), count=len(usual.kinds))
    if layout is None:
        raise NotDirectError
    quick = _quick(made_code, usual.kinds, along)
    result = DirectResult(made_code, trace, "pull" if what == "vjp" else "push", usual.many)
    run = _function("", layout.lines(), [], result, quick, trace, layout.space | result.space)
    made = outputs.detached_from(made)
    return LaterProducts(program, trace, made, trace.code_of(what), run, usual.layout.arguments, (what, argnums))


def _distinct(places: Sequence[int], around: Sequence[tuple[Any, Any]], space: dict[str, Any]) -> list[str]:
    """What says that no array is there twice."""
    space |= {f"around{k}": array for k, (array, _) in enumerate(around)}
    names = [*(f"args[{k}]" for k in places), *(f"around{k}" for k in range(len(around)))]
    if len(names) <= MOST_PAIRS:
        return [f"{a} is not {b}" for k, a in enumerate(names[: len(places)]) for b in names[k + 1 :]]
    return [f"len({{{', '.join(f'id({name})' for name in names)}}}) == {len(names)}"]
