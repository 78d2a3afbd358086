"""What functions of the user's depend on: arguments, and tracked tensors around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.subgraph import Mark
from tapegrad.deferred import look_up
from tapegrad.drivers.calling import refuse_written
from tapegrad.drivers.containers import flatten, restore
from tapegrad.drivers.leaves import is_compiled, recorder_of, takes_tensors
from tapegrad.errors import OverwrittenError
from tapegrad.numpy_arrays.array import Array
from tapegrad.numpy_arrays.classes import answering, class_of
from tapegrad.recording.casting import cast
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, is_recording, make, register_leaf, wrap
from tapegrad.tensors.untracked_values import Places, at_depth, pass_on, watched

__all__ = [
    "constants", "depends_on_tracked", "flat", "frozen", "leaf_of", "none_tracked", "recorded", "refuse_escapes", "tracked_in",
]  # fmt: skip

FLOAT64 = np.dtype(np.float64)


def constants(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments for the iterations, of which nobody takes a derivative: tracked tensors without their rows."""
    return _changed(arguments, lambda leaf: leaf.detach() if isinstance(leaf, Tensor) and leaf._row else leaf)


def frozen(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments that stay as they are: arrays and untracked tensors are copied."""

    def copied(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            return leaf if leaf._row or type(leaf._data) is float else make(leaf._data.copy(), 0)
        return leaf.copy() if issubclass(type(leaf), np.ndarray) else leaf

    return _changed(arguments, copied)


def _changed(arguments: Sequence[Any], change: Callable[[Any], Any]) -> tuple[Any, ...]:
    leaves: list[Any] = []
    structure = flatten(tuple(arguments), leaves)
    return tuple(restore(structure, map(change, leaves)))


def tracked_in(value: Any) -> list[Tensor]:
    """The tracked tensors in something."""
    leaves: list[Any] = []
    flatten(value, leaves)
    return [leaf for leaf in leaves if isinstance(leaf, Tensor) and leaf._row]


def recorded(f: Callable[..., Any], *arguments: Any, variables: slice = slice(1)) -> Any:
    """The result of a function of the user's, recorded; it gets the variables, by default its first argument, as arrays."""
    if takes_tensors(f) or is_compiled(f):
        return recorder_of(f)(*arguments)
    given = list(arguments)
    given[variables] = [_of_kind(Array, value) for value in given[variables]]
    return _of_kind(Tensor, recorder_of(f)(*given))


def _of_kind(kind: type[Tensor], value: Any) -> Any:
    """Something with tensors for its arrays, or arrays for its tensors: others of the same values, which are recorded."""
    leaves: list[Any] = []
    structure = flatten(value, leaves)
    for k, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor) and type(leaf) is not kind:
            other = leaf * 1.0 if leaf._row else make(leaf._data, 0)
            other.__class__ = kind
            leaves[k] = other if leaf._meta is None or np.ndim(leaf._data) else answering(other, class_of(leaf))
    return restore(structure, iter(leaves))


def flat(value: Any, name: str) -> Tensor:
    """All numbers of a function's result as one vector in float64.

    Raises
    ------
    TypeError
        If there is something else in it.
    """
    leaves: list[Any] = []
    flatten(value, leaves)
    parts = []
    for leaf in leaves:
        if not issubclass(type(leaf), (Tensor, np.ndarray, np.generic, float, int)):
            raise TypeError(f"{name} requires real-valued outputs (arrays or floats), but got {type(leaf).__name__}")
        t = leaf if isinstance(leaf, Tensor) else wrap(np.asarray(leaf, np.float64))
        parts.append(cast(t, FLOAT64).reshape(-1))
    if not parts:
        return wrap(np.empty(0))
    if len(parts) == 1:
        return parts[0]
    from tapegrad.ops.joining import cat

    return cat(parts)


def leaf_of(z: np.ndarray) -> Tensor:
    """A leaf with the values of an array."""
    return make(z.copy(), -1)


def older(mark: Mark, tensors: Iterable[Tensor], apart_from: Tensor) -> set[int]:
    """Slots, for the time of a claim, of what tensors depend on that is older than a mark; a tensor may be that itself."""
    tensors = [t for t in tensors if t._row]
    for t in tensors:
        if t._row < 0:  # a leaf that was compared, and nothing else yet
            register_leaf(t)
    own = {TAPE.slot(t._row) for t in tensors if t is not apart_from and not mark.is_newer(t) and not mark.is_of_a_call(t)}
    return own | set(mark.boundary(tensors, [apart_from]))


def refuse_escapes(places: Places, mark: Mark, apart_from: Tensor, name: str) -> None:
    """Raise if a tracked value went into an array, and say to the driver around where one left its graph as a number.

    Raises
    ------
    TypeError
        If there is such a value.
    """
    refuse_written(places.written, name)
    if places:
        with TAPE.claim():
            lost = older(mark, places.left, apart_from)
        if lost:
            pass_on(places[0])


def depends_on_tracked(functions: Callable[[Tensor], Any], z: np.ndarray, name: str) -> bool:
    """Whether what functions give or decide depends on a tracked tensor, be it an argument or a variable around them."""
    if not is_recording():
        return False
    try:
        return _depends(functions, z, name)
    except OverwrittenError:  # of values that copies keep
        with look_up("drivers.overwritten_values:copies")():
            return _depends(functions, z, name)


def _depends(functions: Callable[[Tensor], Any], z: np.ndarray, name: str) -> bool:
    mark, leaf = Mark(), leaf_of(z)
    found, places = at_depth(0, watched, functions, (leaf,), {}, True)
    refuse_escapes(places, mark, leaf, name)
    assert places.decided is not None
    with TAPE.claim():
        return bool(older(mark, [*tracked_in(found), *places.decided], leaf))


def none_tracked(f: Callable[..., Any], arguments: Sequence[Any]) -> bool:
    """Whether it is known without a call that tracked tensors have no part in a result.

    Compiled functions, and programs from files, see only arguments.
    """
    return (is_compiled(f) or getattr(f, "sees_only_arguments", False)) and not tracked_in(tuple(arguments))
