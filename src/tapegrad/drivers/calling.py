"""A function called once on leaves: the graph that the call recorded."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.drivers.containers import Node, around, flat_structure, flatten, numbers_in, refuse_computed_attributes, restore
from tapegrad.drivers.leaves import (
    FLOAT64,
    Argnums,
    Call,
    Callee,
    array_leaf,
    check_argnums,
    is_tracked,
    plain_tree,
    recorder_of,
    tensor_like,
)
from tapegrad.numpy_arrays.array import Array
from tapegrad.tape.tape import TAPE
from tapegrad.tensors import untracked_values
from tapegrad.tensors.grad_mode import with_recording
from tapegrad.tensors.tensor import Tensor, is_recording, meta_of, register_new_leaf

__all__ = ["call", "finished_call", "note_needing_copies", "refuse_written", "take_apart"]

ndarray = np.ndarray
# Functions that overwrite what their derivative needs (`overwritten_values.py`).
NEEDING_COPIES: weakref.WeakSet[Any] = weakref.WeakSet()
_any_needing = False  # whether there ever was one: to ask the set takes a microsecond


def call(
    f: Callable[..., Any] | Callee,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    argnums: Argnums,
    has_aux: bool,
    name: str,
    second: bool = False,
    cut: bool = False,
    along: Any = None,
    beside: Call | None = None,
) -> Call:
    """Call a function on leaves in place of the arguments that `argnums` names.

    Parameters
    ----------
    f : callable
        Or what was made of it once, for many calls.
    args, kwargs
        Its arguments; those that `argnums` does not name are passed as they are.
    argnums : int or sequence of int
    has_aux : bool
        Whether it returns a pair of which the first is differentiated.
    name : str
        Of the driver, for messages.
    second : bool
        Whether second derivatives will be asked for, which recordings of compiled functions must know.
    along : object
        The only direction that second derivatives will be asked for, in the structure of the arguments, if there is only one.
    cut : bool
        Whether what surrounds the call is not being recorded, so that its results are constants there.
    beside : Call, optional
        Another function's, of the same kind: this one gets its leaves in the place of the first argument, and both are one graph.

    Raises
    ------
    TypeError
        If an argument cannot be differentiated by, or the function does not return a pair where it should.
    """
    callee = f if isinstance(f, Callee) else Callee(f)
    record = callee.record
    if callee.compiled:
        if not (is_recording() and is_tracked((tuple(args), kwargs))):
            from tapegrad.drivers.compiled import compiled_call

            return compiled_call(callee.function, args, kwargs, argnums, has_aux, name, second, along)
        record = recorder_of(record)
    if TAPE.recording_off and not is_recording():
        return with_recording(call, callee, args, kwargs, argnums, has_aux, name, False, True, None, beside)
    made = Call()
    made.inside = not cut and untracked_values.depth() > 0
    made.many = not isinstance(argnums, (int, np.integer))
    arguments = list(args)
    if beside is not None:
        made.leaves, made.kinds, made.structure, made.numbers = beside.leaves, beside.kinds, beside.structure, beside.numbers
        made.arrays, made.inside = beside.arrays, beside.inside
        arguments[0] = made.arranged(made.leaves)
    elif argnums == 0 and not made.many and arguments and type(arguments[0]) in (ndarray, float):
        leaf, kind = tensor_like(arguments[0], name, "argument 0", False)
        made.arrays = made.inside  # what is constant here, the function computes with NumPy's meaning too
        made.leaves, made.kinds, made.structure, made.numbers = [leaf], [kind], None, (0,)
        arguments[0] = leaf
    else:
        take_apart(made, arguments, check_argnums(argnums, len(arguments), name), name, cut)
    for leaf in made.leaves:
        leaf.__class__ = callee.kind
        if leaf._row < 0:  # here for all, since most operations that meet a new leaf have to be begun twice
            register_new_leaf(leaf, leaf._meta or meta_of(leaf)).of_call = True
    writes = untracked_values.writes()
    if _any_needing and callee.kind is Array and _is_in(callee.function, NEEDING_COPIES):
        output, places = look_up("drivers.overwritten_values:called_with_copies")(record, arguments, kwargs)
    else:
        output, places = untracked_values.watched(record, arguments, kwargs, False, made.leaves)
        if untracked_values.writes() != writes and callee.kind is Array and not callee.compiled:
            rewritten = look_up("drivers.overwritten_values:kept_apart")
            output, places = rewritten(callee.function, record, arguments, kwargs, (output, places))
    made.aux = None
    if has_aux:
        if not isinstance(output, tuple) or len(output) != 2:
            raise TypeError(f"{name}: with has_aux=True the function must return a pair (output, aux), not {_named(output)}")
        output, aux = output
        made.aux = plain_tree(aux, made.inside)
    made.output = output
    if places:
        refuse_written(places.written, name)
    if places and _has_lost(output):
        raise TypeError(
            f"{name}: the function returned a result without a derivative, because a tracked value left the graph as a Python "
            f"number at {places[0]}. Keep what indexing and NumPy's functions give (leave out .item(), .tolist(), "
            "float() and functions of the math module; np.sin and np.stack record)."
        )
    return made


def finished_call(
    f: Callable[..., Any] | Callee,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    argnums: Argnums,
    has_aux: bool,
    name: str,
    finish: Callable[[Call], Any],
    second: bool = False,
    along: Any = None,
    needs: Any = "rows",
) -> Any:
    """What `finish` makes of a call, which is that of `call`; a program does what it recorded again where it can.

    Rows of a program have their values until it returns only (`Call.kept`). Where it gives `NotImplemented` for them, the function
    is called. With `needs` "jacobian" or "hessian", or ``("jvp", *vectors)`` or ``("hvp", *vectors)`` for products with vectors
    over all inputs, it may be given that instead of rows (`Call.matrix`), without values unless it is ``"value_jvp"``. With "jvp"
    or "vjp" it may be given the value, and what gives products with vectors that are known later (`Call.products`).
    """
    callee = f if isinstance(f, Callee) else Callee(f)
    if callee.replay is not None:
        done = callee.replay(args, kwargs, argnums, has_aux, finish, needs)
        if done is not None and done[1] is not NotImplemented:
            return done[1]
    return finish(call(callee, args, kwargs, argnums, has_aux, name, second, along=along))


def note_needing_copies(function: Any) -> None:
    """Let calls of a function have copies of what it overwrites from now on."""
    global _any_needing
    NEEDING_COPIES.add(written_as(function))
    _any_needing = True


def written_as(function: Any) -> Any:
    """What a bound method, which is another object each time, was made from; other functions as they are."""
    return getattr(function, "__func__", function)


def _is_in(function: Any, known: weakref.WeakSet[Any]) -> bool:
    try:
        return written_as(function) in known
    except TypeError:  # without a hash
        return False


def _named(value: Any) -> str:
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else type(value).__name__


class _Place:
    """Where the next leaf stands in the arguments, as text that is put together when it is asked for."""

    __slots__ = ("made",)

    def __init__(self, made: Call) -> None:
        self.made = made

    def __str__(self) -> str:
        return self.made.places()[len(self.made.leaves)]


def take_apart(made: Call, arguments: list[Any], numbers: tuple[int, ...], name: str, cut: bool) -> None:
    """Put fresh leaves in the places of what is differentiated by."""
    made.leaves, made.kinds = leaves, kinds = [], []
    made.numbers = numbers
    if (numbers_alone := numbers_in([arguments[n] for n in numbers] if made.many else arguments[numbers[0]])) is not None:
        flat = Node((), numbers, (None,) * len(numbers)) if made.many else flat_structure(arguments[numbers[0]])
        made.arrays, made.structure = made.inside, flat
        for value in numbers_alone:
            if type(value) is ndarray and value.dtype is FLOAT64 and value.ndim:
                leaf, kind = array_leaf(value), ndarray
            else:
                leaf, kind = tensor_like(value, name, _Place(made), False)
            leaves.append(leaf)
            kinds.append(kind)
        if made.many:
            rest = iter(leaves)
            for n in numbers:
                arguments[n] = next(rest)
        else:
            arguments[numbers[0]] = around(flat, leaves)
        return
    values: list[Any] = []
    structures = [flatten(arguments[n], values) for n in numbers]
    for structure in structures:
        if structure is not None:
            refuse_computed_attributes(structure, name)
    tensors = [value for value in values if isinstance(value, Tensor)]
    made.inside = inside = not cut and (made.inside or (bool(tensors) and any(t._row for t in tensors)))
    made.arrays = any(isinstance(t, Array) for t in tensors) if tensors else inside
    made.structure = Node((), tuple(range(len(numbers))), tuple(structures)) if made.many else structures[0]
    place = _Place(made)
    for value in values:
        leaf, kind = tensor_like(value, name, place, inside)
        leaves.append(leaf)
        kinds.append(kind)
    if not made.many:
        arguments[numbers[0]] = made.arranged(leaves)
        return
    rest = iter(leaves)
    for n, structure in zip(numbers, structures, strict=True):
        arguments[n] = next(rest) if structure is None else restore(structure, rest)


def refuse_written(place: str, name: str) -> None:
    """Raise if a tracked value went into an array of NumPy's at a place.

    Raises
    ------
    TypeError
        If there is such a place.
    """
    if place:
        raise TypeError(
            f"{name}: a tracked value was written into an array of NumPy's at {place}, where it has no derivative. Make the array "
            "with np.zeros_like(x) of the x that is differentiated by, or with tg.zeros, or collect the values with np.stack."
        )


def _has_lost(output: Any) -> bool:
    """Whether a result can hold a number that has left the graph: it is one, or has no derivative at all."""
    found: list[Any] = []
    flatten(output, found)
    return any(issubclass(type(leaf), float) for leaf in found) or not any(isinstance(leaf, Tensor) and leaf._row for leaf in found)
