"""Where inputs stand among arguments: what the next call's have to be like, and how to take its inputs out, as text."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tapegrad.drivers.containers import Node, restore
from tapegrad.programs.classes import fields_of, parts_of
from tapegrad.programs.quick_calls import Kind, kind_of_input
from tapegrad.programs.snapshots import UNKNOWN
from tapegrad.programs.surroundings import PLAIN
from tapegrad.tensors.tensor import Tensor

__all__ = ["Layout", "layout_of"]

NOTHING = np.empty(0)
MOST_INPUTS = 1000  # beyond, it takes longer to write places out than it saves
NAMES = (str, int)  # types of keys of dicts


class Layout:
    """How arguments are arranged around the numbers and arrays among them.

    Parameters
    ----------
    args : sequence
        Like which others are to be.
    argnums : tuple of int
        What is differentiated by: dataclasses and named tuples are taken apart there, and objects elsewhere.
    fixes : bool
        Whether Python's numbers elsewhere are part of the key.

    Attributes
    ----------
    kinds : list of Kind
        Of the inputs among these.
    is_flat : bool
        Whether they are nothing but numbers and arrays.
    objects : list
        Objects among them, and classes of containers, whose contents are part of the key.
    space : dict
        What the text names.
    """

    __slots__ = (
        "_argnums",
        "_args",
        "_conditions",
        "_fixes",
        "_held",
        "_inputs",
        "_take",
        "_vectors",
        "count",
        "is_flat",
        "kinds",
        "objects",
        "space",
    )

    def __init__(self, args: Sequence[Any], argnums: tuple[int, ...], fixes: bool) -> None:
        self._argnums, self._fixes = argnums, fixes
        self.count, self.is_flat = len(args), True
        self.objects: list[Any] = []
        self.space: dict[str, Any] = {}
        self.kinds: list[Kind] = []
        self._conditions: list[str] = []
        self._inputs: list[str] = []
        self._held: list[tuple[str, int]] = []  # lists, dicts and dataclasses, by name and identity
        self._take: Any = None
        self._vectors = 0
        # The arguments themselves may be changed meanwhile.
        self._args = self._around(args, itertools.repeat(NOTHING))

    def lines(self, behind: str = "") -> list[str]:
        """What makes `args` the tuple of inputs, with others behind those of arguments, or returns None."""
        first = len(self._inputs) - self._vectors
        if self.is_flat:
            return [f"        args = (*args[:{first}], {behind}, *args[{first}:])"] if behind else []
        inputs = [*self._inputs[:first], *([behind] if behind else []), *self._inputs[first:]]
        return [
            f"        if not ({' and '.join([f'len(args) == {self.count}', *self._conditions])}):\n            return None",
            f"        args = ({''.join(f'{one}, ' for one in inputs)})",
        ]

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """The inputs among arguments; None if these are arranged in another way."""
        if self.is_flat:
            return args if len(args) == self.count else None
        if self._take is None:
            space = dict(self.space)
            exec("\n".join(["def take(args):", "    if True:", *self.lines(), "        return args"]), space)
            self._take = space["take"]
        try:
            found: tuple[Any, ...] | None = self._take(args)
        except UNKNOWN:
            return None
        return found

    def with_vectors(self, vectors: Sequence[Any]) -> Layout:
        """The same with vectors behind the arguments."""
        if not vectors:
            return self
        behind = range(self.count, self.count + len(vectors))
        found = layout_of([*self._args, *vectors], (*self._argnums, *behind), self._fixes, self.count)
        assert found is not None  # as the arguments themselves
        found._vectors = len(found.kinds) - len(self.kinds)
        return found

    def arguments(self, inputs: Iterable[Any]) -> tuple[Any, ...]:
        """Arguments around other inputs."""
        return self._around(self._args, iter(inputs))

    def _around(self, args: Sequence[Any], inputs: Iterator[Any]) -> tuple[Any, ...]:
        return tuple([_around(value, inputs, k in self._argnums, self._fixes) for k, value in enumerate(args)])

    def add(self, value: Any, text: str, is_taken: bool) -> bool:
        """Describe a value that stands somewhere; False if no other one is to be like it."""
        kind = type(value)
        if kind is float and self._fixes and not is_taken:
            if not abs(value) > 0.0:
                return False  # zeros of both signs are equal, and nan never is
            return self._ask(f"type({text}) is float and {text} == {self._named(value)}")
        if (input_kind := kind_of_input(value)) is not None:
            self._inputs.append(text)
            self.kinds.append(input_kind)
            return len(self._inputs) <= MOST_INPUTS
        if value is None or kind is bool:
            return self._ask(f"{text} is {value}")
        if kind in PLAIN and kind is not complex:
            return self._ask(f"type({text}) is {self._named(kind)} and {text} == {self._named(value)}")
        if kind in (tuple, list):
            name = self._bound(text, kind)
            if kind is list:
                self._held.append((name, id(value)))
            return self._ask(f"len({name}) == {len(value)}") and self._add_all(value, name, range(len(value)), is_taken)
        if kind is dict:
            return self._add_dict(value, text, is_taken)
        if is_taken and (fields := fields_of(value)) is not None:
            return self._add_fields(value, text, fields, is_taken)
        if kind in PLAIN or isinstance(value, (Tensor, np.ndarray, np.generic)):
            return False
        self.objects.append(value)
        return self._ask(f"{text} is {self._named(value)}")

    def _add_dict(self, value: dict[Any, Any], text: str, is_taken: bool) -> bool:
        names = tuple(value)
        if not all(type(name) in NAMES for name in names):
            return False
        name, own = self._bound(text, dict), self._named(names)
        self._held.append((name, id(value)))
        self.space |= {"same_object": operator.is_, "same_names": _same_names}
        self._ask(f"len({name}) == {len(value)} and (all(map(same_object, {name}, {own})) or same_names({name}, {own}))")
        return self._add_all(value.values(), name, names, is_taken)

    def _add_fields(self, value: Any, text: str, fields: Sequence[str], is_taken: bool) -> bool:
        kind = type(value)
        self.objects.append(kind)
        name = self._bound(text, kind)
        if isinstance(value, tuple):
            return self._add_all(value, name, range(len(value)), is_taken)
        self._held.append((name, id(value)))
        held = vars(value) if kind.__dictoffset__ else {}
        if kind.__dictoffset__:
            self._ask(f"tuple(held_{name} := {name}.__dict__) == {self._named(tuple(held))}")
        # What stands in the instance: a field that was deleted has its default in the class.
        places = [f"held_{name}[{field!r}]" if field in held else f"{name}.{field}" for field in fields]
        return all(self.add(getattr(value, field), place, is_taken) for field, place in zip(fields, places, strict=True))

    def _add_all(self, parts: Iterable[Any], name: str, keys: Iterable[Any], is_taken: bool) -> bool:
        return all(self.add(part, f"{name}[{key!r}]", is_taken) for part, key in zip(parts, keys, strict=True))

    def keep_apart(self) -> bool:
        """Have lists, dicts and dataclasses be others than each other, and than objects; False if they are not."""
        own = {id(one): one for one in self.objects if not isinstance(one, type)}
        if len({one for _, one in self._held}.difference(own)) < len(self._held):
            return False
        names = [*(name for name, _ in self._held), *map(self._named, own.values())]
        if self._held and len(names) > 1:
            self._ask(f"len({{{', '.join(f'id({name})' for name in names)}}}) == {len(names)}")
        return True

    def _bound(self, text: str, kind: type) -> str:
        """A name for a container."""
        name = f"part{len(self._conditions)}"
        self._ask(f"type({name} := {text}) is {self._named(kind)}")
        return name

    def _ask(self, condition: str) -> bool:
        self.is_flat = False
        self._conditions.append(condition)
        return True

    def _named(self, value: Any) -> str:
        name = f"a{len(self.space)}"
        self.space[name] = value
        return name


def layout_of(args: Sequence[Any], argnums: tuple[int, ...], fixes: bool = False, count: int | None = None) -> Layout | None:
    """How arguments are arranged; None if there is something among them that no other one is to be like.

    Behind the first `count` stand vectors, which the function does not get.
    """
    found = Layout(args, argnums, fixes)
    for k, value in enumerate(args):
        if (k == count and not found.keep_apart()) or not found.add(value, f"args[{k}]", k in argnums):
            return None
    return found if count is not None or found.keep_apart() else None


def _around(value: Any, inputs: Iterator[Any], is_taken: bool, fixes: bool) -> Any:
    """Something like a value, around the next inputs."""
    kind = type(value)
    if kind_of_input(value) is not None and not (kind is float and fixes and not is_taken):
        return next(inputs)
    held = parts_of(value) if is_taken or kind in (tuple, list, dict) else None
    if held is None:
        return value
    names, parts = held
    around = [_around(part, inputs, is_taken, fixes) for part in parts]
    return restore(Node(value, names, (None,) * len(around)), iter(around))


def _same_names(value: dict[Any, Any], names: tuple[Any, ...]) -> bool:
    """Whether keys of a dict are these, in their order."""
    return all(type(a) is type(b) and a == b for a, b in zip(value, names, strict=True))
