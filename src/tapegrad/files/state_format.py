"""State as a table of nodes and numbered arrays, and back: the content of the files of `saving`.

Everything that has an identity (containers, tensors, arrays) is a node, named by its number; a node refers to earlier nodes only,
so what is read back can neither contain itself nor nest too deeply for the reader. Numbers and strings stand where they are used.
JSON keeps finite floats exactly, through their shortest decimal form; what it cannot keep is written as bits.
"""

from __future__ import annotations

import math
import reprlib
import struct
from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tapegrad.nn.parameter import Parameter
from tapegrad.surface.copying import rebuild
from tapegrad.tensors.inference_tensors import class_of
from tapegrad.tensors.tensor import Tensor, is_leaf

__all__ = ["decode", "encode"]

DTYPE_KINDS = "biufcSUMm"  # of arrays; what has objects in it would need pickle
SCALAR_KINDS = "biufcMm"  # of NumPy's scalars; its strings lose trailing zeros as arrays
CONTAINERS: dict[Any, str] = {list: "list", tuple: "tuple", dict: "dict", OrderedDict: "ordered dict"}
TENSORS: dict[Any, str] = {Tensor: "tensor", Parameter: "parameter"}
CLASSES = {name: kind for kind, name in TENSORS.items()}
KEY_DEPTH, KEY_ITEMS = 100, 100_000
Place = tuple[Any, Any] | None  # where in the state: the place of the container, and the key


def _name(place: Place) -> str:
    keys = []
    while place is not None:
        place, key = place
        keys.append(f"[{reprlib.repr(key)}]")
    return "state" + "".join(reversed(keys))


def _key(key: Any) -> Any:
    """A dict's key, unless to hash it would take for ever: tuples recurse, and visit what they share again each time."""
    level = [key] if type(key) is tuple else []
    for _ in range(KEY_DEPTH):
        level = list(islice((item for part in level if type(part) is tuple for item in part), KEY_ITEMS + 1))
        if len(level) > KEY_ITEMS:
            break
        if not level:
            return key
    raise ValueError(f"a tuple that is a key of a dict nests deeper than {KEY_DEPTH} levels or has more than {KEY_ITEMS} items")


class _Encoder:
    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.numbers: dict[int, int] = {}  # by id: the state keeps all of them alive
        self.open: set[int] = set()
        self.arrays: list[np.ndarray] = []
        self.users: list[dict[str, Any]] = []  # of each array, in the same order

    def value(self, value: Any, place: Place) -> Any:
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int:
            return value if -(2**63) <= value < 2**63 else {"int": hex(value)}
        if kind is float:
            return value if math.isfinite(value) else {"float": struct.pack(">d", value).hex()}
        if kind is complex:
            return {"complex": [self.value(value.real, place), self.value(value.imag, place)]}
        if issubclass(type(value), np.generic) and value.dtype.kind in SCALAR_KINDS:
            return {"scalar": [value.dtype.str, value.tobytes().hex()]}
        if id(value) not in self.numbers:
            if id(value) in self.open:
                raise ValueError(f"{_name(place)} contains itself, so it cannot be saved")
            self.open.add(id(value))
            node = self.container(value, place) if kind in CONTAINERS else self.array(value, place)
            self.open.discard(id(value))
            self.numbers[id(value)] = len(self.nodes)
            self.nodes.append(node)
        return {"node": self.numbers[id(value)]}

    def container(self, value: Any, place: Place) -> dict[str, Any]:
        if isinstance(value, dict):
            items: list[Any] = [
                [self.value(_key(key), (place, key)), self.value(item, (place, key))] for key, item in value.items()
            ]
        else:
            items = [self.value(item, (place, index)) for index, item in enumerate(value)]
        return {CONTAINERS[type(value)]: items}

    def array(self, value: Any, place: Place) -> dict[str, Any]:
        kind = class_of(value)
        if kind in TENSORS:
            body = {"requires_grad": value._row != 0 and is_leaf(value)}
            if type(value._data) is float:
                body["value"] = self.value(value._data, place)
            else:
                self.keep(value._data, body)
            return {TENSORS[kind]: body}
        body = {}
        if kind is np.ndarray and value.dtype.kind in DTYPE_KINDS and value.dtype.itemsize:
            self.keep(value, body)
            return {"array": body}
        what = f"an array of {value.dtype}" if kind is np.ndarray else f"of type {kind.__module__}.{kind.__qualname__}"
        hint = "save its state_dict() instead" if hasattr(value, "state_dict") else "convert it, or leave it out"
        raise TypeError(
            f"{_name(place)} is {what}, but a file holds only tensors, arrays of numbers or text, numbers, strings, None, and "
            f"lists, tuples and dicts of them; {hint}"
        )

    def keep(self, array: np.ndarray, user: dict[str, Any]) -> None:
        self.arrays.append(array)
        self.users.append(user)


def _repeats(array: np.ndarray) -> bool:
    """Whether elements share memory, as in an expanded tensor."""
    if array.size == 0:
        return False
    low, high = byte_bounds(array)
    return high - low < array.nbytes or any(s == 0 and n > 1 for n, s in zip(array.shape, array.strides, strict=True))


def _once(array: np.ndarray) -> np.ndarray:
    """An array without the repetitions of an expanded one, of which there may be more than memory could hold."""
    return array[tuple(slice(1) if s == 0 else slice(None) for s in array.strides)]


def _clusters(arrays: Sequence[np.ndarray]) -> list[list[int]]:
    """Numbers of the arrays whose memory lies together, in the order of the first ones."""
    bounds = [byte_bounds(array) if array.size else (0, 0) for array in arrays]
    clusters: list[list[int]] = []
    end = 0
    for number in sorted(range(len(arrays)), key=lambda k: (bounds[k], k)):
        low, high = bounds[number]
        if low < end:
            clusters[-1].append(number)
        else:
            clusters.append([number])
        end = max(end, high)
    return sorted(clusters, key=min)


def _place(arrays: Sequence[np.ndarray], users: Sequence[dict[str, Any]]) -> list[np.ndarray]:
    """The arrays to write; each user is told the number of its own, and which view of it is meant.

    What shares memory is written once. Where it does so in different ways, bytes are written and each user is a view of them; bytes
    that no user sees are zero.
    """
    written: list[np.ndarray] = []
    for cluster in _clusters(arrays):
        layouts = {(a.ctypes.data, a.shape, a.strides, a.dtype.str) for a in (arrays[k] for k in cluster)}
        first = arrays[cluster[0]]
        for number in cluster:
            users[number]["memory"] = len(written)
        if len(layouts) == 1 and not _repeats(first):
            written.append(first)
            continue
        low = min(byte_bounds(arrays[k])[0] for k in cluster)
        memory = np.zeros(max(byte_bounds(arrays[k])[1] for k in cluster) - low, np.uint8)
        for number in cluster:
            array = arrays[number]
            offset = array.ctypes.data - low
            _once(np.ndarray(array.shape, array.dtype, memory, offset, array.strides))[...] = _once(array)
            users[number]["view"] = [array.dtype.str, offset, list(array.shape), list(array.strides)]
        written.append(memory)
    return written


def encode(state: Any) -> tuple[dict[str, Any], list[np.ndarray]]:
    """A description of a state that JSON can hold, and its arrays.

    Raises
    ------
    TypeError
        For values that cannot be saved.
    ValueError
        If a container contains itself, or nests hundreds of levels deep.
    """
    encoder = _Encoder()
    try:
        value = encoder.value(state, None)
    except RecursionError:
        raise ValueError("the state is nested too deeply to be saved") from None
    arrays = _place(encoder.arrays, encoder.users)
    return {"arrays": len(arrays), "nodes": encoder.nodes, "state": value}, arrays


def _need(condition: bool, reason: str) -> None:
    if not condition:
        raise ValueError(reason)


def _integer(value: Any, limit: int, what: str) -> int:
    _need(type(value) is int and 0 <= value < limit, f"there is no {what} {value!r}")
    return int(value)


def _only_item(value: Any) -> tuple[str, Any]:
    _need(type(value) is dict and len(value) == 1, f"a malformed value {reprlib.repr(value)}")
    ((kind, body),) = value.items()
    return kind, body


def _checked(array: np.ndarray) -> np.ndarray:
    # NumPy counts true elements by adding bytes, so others than 0 and 1 lead it out of its memory.
    if array.dtype.kind == "b":
        once = _once(array)
        low, high = byte_bounds(once)
        # Overlapping windows may have any number of elements; then the bytes that they lie on are looked at.
        seen = once if once.size <= high - low or once.base is None else once.base
        _need(seen.view(np.uint8).max(initial=0) <= 1, "bools that are neither true nor false")
    return array


class _Decoder:
    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self.arrays = arrays
        self.made: list[Any] = []

    def value(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, float, str):
            return value
        kind, body = _only_item(value)
        if kind == "node":
            return self.made[_integer(body, len(self.made), "earlier node")]
        if kind == "int":
            return int(body, 16)
        if kind == "float":
            return struct.unpack(">d", bytes.fromhex(body))[0]
        if kind == "scalar":
            name, content = body
            dtype = np.dtype(name)
            _need(dtype.kind in SCALAR_KINDS, f"a scalar of {dtype}")
            (scalar,) = _checked(np.frombuffer(bytes.fromhex(content), dtype))
            return scalar
        _need(kind == "complex", f"an unknown kind of value {kind!r}")
        real, imaginary = (self.value(part) for part in body)
        return complex(real, imaginary)

    def node(self, node: Any) -> Any:
        kind, body = _only_item(node)
        if kind in ("list", "tuple", "dict", "ordered dict"):
            _need(type(body) is list, f"a {kind} without items")
            if kind in ("list", "tuple"):
                items = [self.value(item) for item in body]
                return items if kind == "list" else tuple(items)
            pairs = [(_key(self.value(key)), self.value(item)) for key, item in body]
            made = dict(pairs) if kind == "dict" else OrderedDict(pairs)
            _need(len(made) == len(pairs), "a dict with the same key twice")
            return made
        _need(type(body) is dict, f"a malformed {kind}")
        if kind in CLASSES:
            tracked = body["requires_grad"]
            _need(type(tracked) is bool, f"a requires_grad that is {tracked!r}")
            if "value" not in body:
                return rebuild(CLASSES[kind], self.array(body), tracked)
            number = self.value(body["value"])
            _need(type(number) is float, f"a tensor that is {number!r}")
            return rebuild(CLASSES[kind], number, tracked)
        _need(kind == "array", f"an unknown kind of node {kind!r}")
        return self.array(body)

    def array(self, body: dict[str, Any]) -> np.ndarray:
        memory = self.arrays[_integer(body["memory"], len(self.arrays), "array")]
        if "view" not in body:
            return _checked(memory.view())
        name, offset, shape, strides = body["view"]
        dtype = np.dtype(name)
        _need(dtype.kind in DTYPE_KINDS and dtype.itemsize > 0, f"an array of {dtype}")
        _need(memory.dtype == np.uint8 and memory.ndim == 1, "a view of what is not bytes")
        _need(all(type(number) is int for number in (offset, *shape, *strides)), "a view with odd numbers")
        _need(len(shape) == len(strides) and min(shape, default=0) >= 0, "a view with a wrong shape")
        reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)] if 0 not in shape else []
        low, high = offset + sum(r for r in reach if r < 0), offset + sum(r for r in reach if r > 0) + dtype.itemsize
        _need(low >= 0 and high <= memory.size, f"a view of bytes {low} to {high}, where there are {memory.size}")
        return _checked(np.ndarray(tuple(shape), dtype, memory, offset, tuple(strides)))


def decode(description: Any, arrays: Sequence[np.ndarray]) -> Any:
    """The state that was encoded.

    Raises
    ------
    ValueError, TypeError, KeyError, OverflowError, RuntimeError
        If the description is not one that `encode` gives.
    """
    decoder = _Decoder(arrays)
    for node in description["nodes"]:
        decoder.made.append(decoder.node(node))
    return decoder.value(description["state"])
