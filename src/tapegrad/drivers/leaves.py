"""Arguments of a driver's function as fresh leaves, and results made plain again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import as_dtype
from tapegrad.arrays.foreign_arrays import plain_array
from tapegrad.deferred import look_up
from tapegrad.drivers.containers import Structure, around, flatten, items_of, places_in, restore
from tapegrad.drivers.numba_arguments import refuse_in_numba
from tapegrad.numpy_arrays.array import Array, as_arrays
from tapegrad.numpy_arrays.classes import answering, class_given
from tapegrad.tensors.number_entries import NumberEntries
from tapegrad.tensors.tensor import FLOATS, Meta, Tensor, make

__all__ = [
    "FLOAT64",
    "Argnums",
    "Call",
    "Callee",
    "array_leaf",
    "called",
    "check_argnums",
    "copied",
    "finish",
    "is_compiled",
    "is_tracked",
    "mappable",
    "plain",
    "plain_tree",
    "recorder_of",
    "takes_tensors",
    "tensor_like",
]

ndarray, float64 = np.ndarray, np.float64
FLOAT64 = np.dtype(np.float64)
Argnums = int | Sequence[int]


class Call:
    """What one call of a function recorded.

    Attributes
    ----------
    leaves : list of Tensor
        What the function was given in place of the arrays and numbers that it is differentiated by.
    kinds : list
        What each result of a leaf's shape is to be: ``float``, a NumPy scalar type, or an array.
    structure : Structure
        Of the differentiated argument; of the tuple of them if `many`.
    many : bool
        Whether there may be several.
    numbers : tuple of int
        Which arguments these are.
    output : object
        What the function returned.
    aux : object
        What it returned besides, made plain.
    arrays : bool
        Whether it was differentiated by an array of another driver, or by NumPy's inside of one: then results are arrays too.
    inside : bool
        Whether the call is part of a graph: of a function that another driver is differentiating, or of the caller's, who gave a
        tracked tensor to differentiate by. Results stay tracked tensors then.
    recording : Recording or None
        The tape of a compiled function; leaves and output are plain values then.
    kept : bool
        Whether the graph is used again, so that a pass releases nothing.
    gradients : list or None
        Gradients of the output by the leaves, where they are known already.
    matrix : ndarray or None
        The Jacobian of all elements of the output by all of the leaves, or the products of the Hessian with all unit vectors, where
        a driver that asked for it is given it; or products with the vectors that it gave, one a row.
    products : callable or None
        Where a driver asked for products with vectors that are known later: gives them for "jvp" or "vjp" and a vector, or None.
    structures : dict or None
        Of a program's call whose derivatives have the same structure in each run: what is known of it, by order.
    """

    __slots__ = (
        "arrays", "aux", "gradients", "inside", "kept", "kinds", "leaves", "many", "matrix", "numbers", "output", "products",
        "recording", "structure", "structures",
    )  # fmt: skip
    kept: bool
    leaves: list[Tensor]
    kinds: list[Any]
    structure: Structure
    many: bool
    output: Any
    aux: Any
    arrays: bool
    inside: bool
    numbers: tuple[int, ...]
    recording: Any

    def __init__(self) -> None:
        self.recording, self.kept = None, False
        self.gradients: list[Any] | None = None
        self.matrix: Any = None
        self.products: Any = None
        self.structures: dict[bool, bytes] | None = None

    def places(self) -> list[str]:
        """Where the leaves stand in the arguments."""
        if self.many:
            assert self.structure is not None, "the tuple of all"
            pairs = zip(self.structure.children, self.numbers, strict=True)
            return [place for structure, n in pairs for place in places_in(structure, f"argument {n}")]
        return places_in(self.structure, f"argument {self.numbers[0]}")

    def arranged(self, results: Sequence[Any]) -> Any:
        """Results for the leaves in the structure of the differentiated arguments."""
        structure = self.structure
        if structure is None:
            return results[0]
        return around(structure, results) if structure.flat else restore(structure, iter(results))

    def finished(self, results: Sequence[Any]) -> Any:
        """Gradients (arrays, or tensors in a call inside another) as plain ones in the structure of the arguments."""
        if self.structure is None and not self.arrays:
            return finish(results[0], self.kinds[0])
        if not self.arrays and list(map(type, results)) == self.kinds:
            return self.arranged(results)
        pairs = zip(results, self.kinds, strict=True)
        made = [result if type(result) is kind else finish(result, kind) for result, kind in pairs]
        return self.arranged(as_arrays(made) if self.arrays else made)

    def like_the_arguments(self, results: Any) -> Any:
        """Results of any structure, as arrays if the arguments were arrays of another driver."""
        if self.arrays:
            found: list[Any] = []
            flatten(results, found)
            as_arrays(found)
        return results


def is_compiled(f: Any) -> bool:
    """Whether a callable is a compiled function of Numba's."""
    return hasattr(f, "py_func") and hasattr(f, "signatures")


def called(f: Callable[..., Any]) -> Callable[..., Any]:
    """What is to be called for a function: of programs of compiled functions and modules these, which have ways of their own."""
    found: Callable[..., Any] = getattr(f, "__called__", f)
    return found


def mappable(
    driver: Callable[..., Any], f: Callable[..., Any], place: str, *options: Any, argnums: Argnums | None = None, parts: str = ""
) -> Callable[..., Any]:
    """What a driver gives for a function; for a program it has a method `map` too.

    Workers make it of the driver's place, the function and the options. With `parts` ("value and gradient", or "gradient") programs
    may compute these for many points at once.
    """
    if hasattr(f, "__replay__"):
        many = functools.partial(f.__points__, argnums, parts) if parts and hasattr(f, "__points__") else None
        driver.__many__ = many  # type: ignore[attr-defined]
        driver.map = look_up("drivers.mapping:map_of")(driver, many, (place, f, *options))  # type: ignore[attr-defined]
    return driver


def takes_tensors(f: Callable[..., Any]) -> bool:
    """Whether a function is written for tensors: a module of layers, or a method of one."""
    if isinstance(f, functools.partial):
        return takes_tensors(f.func)
    return hasattr(type(getattr(f, "__self__", f)), "named_parameters")


def recorder_of(f: Callable[..., Any]) -> Callable[..., Any]:
    """What calls a function so that its operations are recorded in the graph of tensors.

    A compiled function of a tracked tensor is one operation of that graph.

    Raises
    ------
    TypeError
        If it is not callable, or a ufunc of Numba's.
    """
    if is_compiled(f):
        from tapegrad.nopython.compiled_operation import njit_op

        return njit_op(f)
    if isinstance(f, functools.partial) and is_compiled(f.func):
        return functools.partial(recorder_of(f.func), *f.args, **f.keywords)
    if not callable(f):
        raise TypeError(f"a driver differentiates a function, but got {type(f).__name__}")
    if hasattr(f, "build_ufunc"):
        raise TypeError(
            f"{f.__name__} is made by numba.vectorize, which is not recorded; write a loop or array code with numba.njit"
        )
    return f


class Callee:
    """A function as drivers call it, looked at once.

    Attributes
    ----------
    function : callable
    compiled : bool
        Whether it is a compiled function of Numba's.
    record : callable
        What records its operations; not of a compiled one, whose own recording is asked for with `recorder_of` where it is needed.
    kind : type
        Of what it is given: tensors for modules of layers, else arrays.
    replay : callable or None
        ``replay(args, kwargs, argnums, has_aux, finish, needs)`` of a program: whether it was run again, and ``finish(made)`` of
        its `Call`, whose rows are up to date if it `needs` "rows"; or None if the function has to be called.

    Raises
    ------
    TypeError
        As `recorder_of`.
    """

    __slots__ = ("compiled", "function", "kind", "record", "replay")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.replay = getattr(function, "__replay__", None)
        function = called(function)
        self.function, self.compiled = function, is_compiled(function)
        self.record = function if self.compiled else recorder_of(function)
        self.kind: type[Tensor] = Tensor if takes_tensors(function) else Array
        refuse_in_numba()


def check_argnums(argnums: Argnums, count: int, name: str) -> tuple[int, ...]:
    """Positions of the differentiated arguments.

    Raises
    ------
    TypeError
        If they are no integers.
    ValueError
        If there is no such argument, or one twice.
    """
    if type(argnums) is int and 0 <= argnums < count:
        return (argnums,)
    if type(argnums) is tuple and _are_places(argnums, count):
        return argnums
    if isinstance(argnums, (float, str)):
        raise TypeError(f"{name}: argnums must be an integer or a sequence of integers, but got {argnums!r}")
    given = (argnums,) if isinstance(argnums, (int, np.integer)) else tuple(argnums)
    for number in given:
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
            raise TypeError(f"{name}: argnums must be an integer or a sequence of integers, but got {argnums!r}")
        if not -count <= number < count:
            raise ValueError(
                f"{name}: argnums={argnums!r} asks for positional argument {number}, but the function was called with {count}. "
                "Arguments given by keyword are constants."
            )
    places = tuple(int(number) % count for number in given)
    if len(set(places)) < len(places):
        raise ValueError(f"{name}: argnums={argnums!r} names an argument twice")
    if not places:
        raise ValueError(f"{name}: argnums must name an argument at least")
    return places


def _are_places(numbers: tuple[Any, ...], count: int) -> bool:
    """Whether these are different places already."""
    for number in numbers:
        if type(number) is not int or not 0 <= number < count:
            return False
    return 0 < len(numbers) == len(set(numbers))


def _refuse(name: str, dtype: Any, place: object) -> TypeError:
    advice = "Pass floats" if np.dtype(dtype).kind in "iub" else "Pass real numbers, real and imaginary parts apart"
    return TypeError(
        f"{name} requires real-valued inputs (a dtype of floats), but got {np.dtype(dtype).name} for {place}. {advice}: "
        f"{'2.0 instead of 2, or ' if np.dtype(dtype).kind in 'iub' else ''}x.astype(float)."
    )


def array_leaf(value: np.ndarray) -> Tensor:
    """A fresh leaf with the value of an array of NumPy's of float64, with dimensions."""
    leaf = make(value.copy(), 0)  # a copy for the reason that `tensor_like` gives
    leaf._meta, leaf._row = NumberEntries(), -1
    return leaf


def tensor_like(value: Any, name: str, place: object, inside: bool) -> tuple[Tensor, Any]:
    """A fresh leaf with a value, and what its gradient is to be.

    Raises
    ------
    TypeError
        If the value is no array or number of floats.
    """
    kind: Any = ndarray
    data: Any
    if type(value) is ndarray and value.dtype is FLOAT64 and value.ndim:
        return array_leaf(value), kind
    if isinstance(value, Tensor):
        data = value._data
        kind = float if type(data) is float else ndarray
        if type(data) is not float and data.dtype not in FLOATS:
            raise _refuse(name, data.dtype, place)
        if inside and value._row:
            # A product and no alias: an alias is the tensor itself, with whatever the function gets of it by other ways.
            leaf = value * 1.0
            return leaf if type(data) is ndarray and data.ndim else answering(leaf, class_given(value)), kind
        if type(data) is not float:
            data = data.copy()
    elif isinstance(value, float):
        data, kind = float(value), float
    elif isinstance(value, (ndarray, np.generic)):
        if value.dtype.kind != "f" or value.dtype.itemsize < 4:
            if value.dtype.kind == "f":
                as_dtype(value.dtype)
            raise _refuse(name, value.dtype, place)
        # A copy: the function may know the array by another name, and write into it what derivatives must not see.
        data = np.array(plain_array(value), value.dtype.newbyteorder("="), order="C")
        if isinstance(value, np.generic):
            kind = type(value)
        if data.ndim == 0 and data.dtype == float64:
            data = data.item()
    elif isinstance(value, (bool, int)):
        raise _refuse(name, bool if isinstance(value, bool) else np.int64, place)
    elif isinstance(value, complex):
        raise _refuse(name, np.complex128, place)
    else:
        raise TypeError(
            f"{name}: {place} must be an array or a number, or a container (dict, list, tuple, dataclass) of these, but it is "
            f"{type(value).__name__}. Constants of other kinds go by keyword, or as an argument that argnums does not name."
        )
    leaf = make(data, 0)
    if type(data) is ndarray and data.dtype is FLOAT64:
        leaf._meta = NumberEntries()
    else:
        leaf._meta = meta = Meta()
        given = class_given(value)
        if given is not None:
            meta.given_as = given
    leaf._row = -1
    return leaf, kind


def is_tracked(output: Any) -> bool:
    """Whether there is a tracked tensor in something."""
    if isinstance(output, Tensor):
        return output._row != 0
    return any(map(is_tracked, items_of(output)))


def copied(value: Any) -> Any:
    """A container with copies of its arrays: what is differentiated later must not change meanwhile."""
    leaves: list[Any] = []
    structure = flatten(value, leaves)
    return restore(structure, iter([leaf.copy() if issubclass(type(leaf), ndarray) else leaf for leaf in leaves]))


def finish(result: Any, kind: Any) -> Any:
    """A gradient as what its input was: a float, a NumPy scalar or an array; a tensor that is tracked stays one."""
    if isinstance(result, Tensor):
        if result._row:
            return result
        result = result._data
    if kind is float:
        return float(result)
    if kind is ndarray:
        return np.array(result) if type(result) is float else result
    return kind(result)


def plain(value: Any, inside: bool = False) -> Any:
    """A result as a plain float or a fresh array; a tracked tensor stays one inside another driver's function."""
    if isinstance(value, Tensor):
        if inside and value._row:
            return value
        data = value._data
        if type(data) is float:
            return data
        return data.item() if data.ndim == 0 else data.copy()
    return value


def plain_tree(value: Any, inside: bool = False) -> Any:
    """The same for whatever a container holds; what is no tensor stays as it is."""
    if isinstance(value, Tensor):
        return plain(value, inside)
    found: list[Any] = []
    structure = flatten(value, found)
    if not any(isinstance(leaf, Tensor) for leaf in found):
        return value
    rest: Iterator[Any] = (plain(leaf, inside) for leaf in found)
    return restore(structure, rest)
