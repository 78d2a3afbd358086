"""One call of a function on leaves and arrays in the places of its arguments, followed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapegrad.autograd.sweep import check_saved
from tapegrad.drivers.calling import refuse_written, take_apart
from tapegrad.drivers.containers import flatten
from tapegrad.drivers.leaves import Call, copied, tensor_like
from tapegrad.errors import OverwrittenError
from tapegrad.numpy_arrays.array import Array, as_arrays
from tapegrad.numpy_arrays.classes import answering
from tapegrad.programs.classes import parts_of
from tapegrad.programs.live_arrays import LiveArrays
from tapegrad.programs.recorder import Recorder
from tapegrad.programs.steps import Value
from tapegrad.tape.tape import TAPE
from tapegrad.tensors import untracked_values
from tapegrad.tensors.tensor import FLOATS, Tensor, make, meta_of, register_new_leaf

__all__ = ["Own", "Results", "are_alike", "recorded_call"]


def recorded_call(
    recorder: Recorder,
    function: Callable[..., Any],
    args: Any,
    kwargs: Any,
    argnums: tuple[int, ...],
    has_aux: bool,
    live: LiveArrays | None = None,
    is_fixed: bool = False,
) -> tuple[Call, list[Value]]:
    """One call of the function, followed: the call as drivers know it, and where its inputs stand.

    Numbers of Python's that nothing is differentiated by are constants if they are fixed.
    """
    made = Call()
    made.inside = made.arrays = False
    made.many = True
    # Containers of gradients are like copies: those that are given may have other attributes by the next call.
    arguments = [copied(value) if k in argnums else value for k, value in enumerate(args)]
    take_apart(made, arguments, argnums, "program", True)
    known: dict[int, Tensor] = {}
    for leaf in made.leaves:
        leaf.__class__ = Array
        register_new_leaf(leaf, meta_of(leaf)).of_call = True
    if not made.leaves:
        recorder.refuse("there is no number in what it is differentiated by")
    if np.float32 in made.kinds:  # which the key has by its value
        recorder.refuse("a number of float32 among its arguments")
    of_python: set[int] | None = None if is_fixed else set()
    given_args = [value if k in argnums else wrapped(value, of_python) for k, value in enumerate(arguments)]
    named = {name: wrapped(value, of_python) for name, value in kwargs.items()}
    numbers = {id(leaf) for leaf, kind in zip(made.leaves, made.kinds, strict=True) if kind is float} | (of_python or set())
    inputs: list[Value] = []
    found: list[Any] = []
    given_live = [] if live is None else [wrapped(value, of_python) for value in live.values()]
    flatten((tuple(given_args), named, tuple(given_live)), found)
    if live is not None:
        function = live.function_of(given_live)
    for t in found:
        if isinstance(t, Tensor) and id(t) not in known:
            known[id(t)] = t
            value = recorder.number() if type(t._data) is float else Value(t._data)
            recorder.know(t._data, value, TAPE.slot(t._row) if t._row > 0 else -1)
            inputs.append(value)
            if of_python is not None and id(t) in of_python:
                recorder.python_numbers.add(value)
            if id(t) in numbers:
                recorder.all_python_numbers.add(value)
            if value.array is not None:
                recorder.given_arrays.append(value)
    given = containers_in((given_args, named))
    output, places = recorder.call(untracked_values.watched, function, given_args, named)
    if given != containers_in((given_args, named)):
        recorder.refuse("it changes a list or dict among its arguments")
    if has_aux:
        if not isinstance(output, tuple) or len(output) != 2:
            raise TypeError("with has_aux=True the function must return a pair")
        output, made.aux = output
        recorder.refuse("it returns something besides its value")
    else:
        made.aux = None
    made.output = output
    _check_overwritten(recorder, output)
    if places:
        refuse_written(places.written, "program")
        recorder.refuse("a value left it as a number")
    return made, inputs


def _check_overwritten(recorder: Recorder, output: Any) -> None:
    """Refuse what drivers call again with copies of all that operations save."""
    found: list[Any] = []
    flatten(output, found)
    try:
        check_saved([TAPE.slot(t._row) for t in found if isinstance(t, Tensor) and t._row > 0])
    except OverwrittenError:
        recorder.refuse("its derivative needs what it writes over")


def wrapped(value: Any, of_python: set[int] | None) -> Any:
    """An argument that is not differentiated by, as it is followed: numbers as leaves, arrays as arrays of ours.

    Identities of numbers that are Python's are added to the set; without one they stay as they are.
    """
    kind = type(value)
    if kind is float and of_python is None:
        return value
    if kind is float or kind is np.float64:
        leaf, _ = tensor_like(value, "program", "an argument", False)
        leaf.__class__ = Array
        register_new_leaf(leaf, meta_of(leaf)).of_call = True
        if kind is float and of_python is not None:
            of_python.add(id(leaf))
        return leaf
    if kind is np.ndarray and value.dtype.kind in "fiub":
        return answering(as_arrays(make(value.copy("K"), 0)), kind)
    if kind in (tuple, list):
        return kind(wrapped(part, of_python) for part in value)
    return {name: wrapped(part, of_python) for name, part in value.items()} if kind is dict else value


def containers_in(value: Any) -> list[Any]:
    """What lists, dicts and dataclasses among arguments hold, by identity."""
    if isinstance(value, dict):
        return [(name, id(part), containers_in(part)) for name, part in value.items()]
    if isinstance(value, (list, tuple)):
        return [(id(part), containers_in(part)) for part in value]
    held = parts_of(value)
    return [] if held is None else [*held[0], *((id(part), containers_in(part)) for part in held[1])]


class Own(NamedTuple):
    """The function's own value, and whether it has the types that the function returns outside of drivers."""

    value: Any
    has_types: bool


class Results:
    """What a call returned.

    Attributes
    ----------
    structure : Structure
    leaves : list of (Tensor, Value, type)
        Tensors, where their values stand, and of what type the function's own results in their places are.
    own : bool
        Whether that is known: a function may take nothing but what drivers give it.
    """

    __slots__ = ("leaves", "own", "structure")

    def __init__(self, recorder: Recorder, made: Call, expected: Any, own_types: bool) -> None:
        self.own = own_types
        found: list[Any] = []
        own: list[Any] = []
        flatten(made.output, found)
        self.structure = flatten(copied(expected), own)  # the caller has these containers
        self.leaves: list[tuple[Tensor, Value, type]] = []
        for t, result in zip(found, own, strict=True):
            value = recorder.value_of(t) if isinstance(t, Tensor) else None
            known = type(result) in (float, np.float64, np.float32, Tensor) or (
                type(result) is np.ndarray and result.dtype in FLOATS
            )
            if value is None or not known:
                recorder.refuse(f"it returns {type(result).__name__}")
                return
            self.leaves.append((t, value, type(result)))


def are_alike(found: Any, expected: Any) -> bool:
    """Whether results agree but for the order of sums."""
    own: list[Any] = []
    other: list[Any] = []
    flatten(found, own)
    flatten(expected, other)
    return len(own) == len(other) and all(map(_alike, own, other))


def _alike(a: Any, b: Any) -> bool:
    if issubclass(type(a), (float, np.ndarray, np.floating)):
        rtol, atol = (1e-12, 1e-14) if np.asarray(a).dtype == np.asarray(b).dtype == np.float64 else (1e-5, 1e-7)
        return np.shape(a) == np.shape(b) and bool(np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True))
    return bool(np.array_equal(a, b))
