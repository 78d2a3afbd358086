"""The tree of a statement: arithmetic over the variables of a function."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Const", "Leaf", "Node", "Op", "Shared"]


class Leaf(NamedTuple):
    """The statement's argument of this number."""

    number: int


class Const(NamedTuple):
    """A number in the user's text; its spelling tells 1 from 1.0 and True, and 0.0 from -0.0, which compare equal."""

    value: Any
    spelling: str


class Op(NamedTuple):
    """An operation; `static` is the value of a constant right operand, as Numba's rewrites found it."""

    function: Any
    args: tuple[Any, ...]
    static: Any = None


class Shared(NamedTuple):
    """An operation that has a name in the user's text: what is equal is one, and computed once."""

    node: Node


Node = Leaf | Const | Op | Shared
