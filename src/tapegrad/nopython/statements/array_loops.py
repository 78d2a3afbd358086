"""Statements on whole arrays: one loop for the statement, and one row of the tape an element.

The loop evaluates the statement on scalars, with NumPy's functions in place of Python's operators: they do not raise on division by
zero. Parts without arrays are evaluated once, before the loop.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.errors import TypingError

from tapegrad.nopython.formulas.expression_tree import Leaf, Node, Op
from tapegrad.nopython.formulas.rule_names import IN_PLACE
from tapegrad.nopython.numba_interface.linking import part
from tapegrad.nopython.types.variable import ComplexVariable, Variable, has_narrow

__all__ = ["is_elementwise", "leaves_of", "loops", "renumbered"]

UFUNC: dict[Any, Any] = {
    operator.add: np.add, operator.sub: np.subtract, operator.mul: np.multiply, operator.truediv: np.true_divide,
    operator.mod: np.mod, operator.floordiv: np.floor_divide, operator.neg: np.negative, builtins.abs: np.absolute,
    operator.lt: np.less, operator.le: np.less_equal, operator.gt: np.greater, operator.ge: np.greater_equal,
    operator.eq: np.equal, operator.ne: np.not_equal, operator.not_: np.logical_not,
}  # fmt: skip
SCALAR = (types.Number, types.Boolean, Variable, ComplexVariable)


def is_elementwise(kinds: tuple[types.Type, ...]) -> bool:
    """Whether operands are arrays, and numbers beside them."""
    arrays = [isinstance(kind, types.Array) for kind in kinds]
    return any(arrays) and all(array or isinstance(kind, SCALAR) for array, kind in zip(arrays, kinds, strict=True))


class _Parts:
    """A statement taken apart: what is computed before the loop, and what in it."""

    def __init__(self, tree: Node, kinds: tuple[types.Type, ...]) -> None:
        self.kinds = kinds
        self.before: list[Op] = []
        self.places: dict[Node, Leaf] = {}
        self.inner = self._inside(tree)

    def _has_array(self, node: Node) -> bool:
        if isinstance(node, Leaf):
            return isinstance(self.kinds[node.number], types.Array)
        return isinstance(node, Op) and any(self._has_array(arg) for arg in node.args)

    def _inside(self, node: Node) -> Node:
        if not isinstance(node, Op):
            return node
        if not self._has_array(node):
            if node not in self.places:
                self.places[node] = Leaf(len(self.kinds) + len(self.before))
                self.before.append(node)
            return self.places[node]
        function = IN_PLACE.get(node.function, node.function)
        return Op(UFUNC.get(function, function), tuple(self._inside(arg) for arg in node.args), node.static)


def leaves_of(node: Node) -> list[int]:
    """Numbers of the leaves of a part of a statement."""
    if isinstance(node, Leaf):
        return [node.number]
    return sorted({n for arg in node.args for n in leaves_of(arg)}) if isinstance(node, Op) else []


def _calls(node: Node, function: Any) -> bool:
    return isinstance(node, Op) and (node.function is function or any(_calls(arg, function) for arg in node.args))


def renumbered(node: Node, numbers: list[int]) -> Node:
    """A part of a statement as one of its own, whose leaves are those of these numbers."""
    if isinstance(node, Leaf):
        return Leaf(numbers.index(node.number))
    return node._replace(args=tuple(renumbered(arg, numbers) for arg in node.args)) if isinstance(node, Op) else node


@part
def joint_size(n, m):
    """Size of an axis of two operands together."""
    if n == m or m == 1:
        return n
    if n == 1:
        return m
    raise ValueError("operands could not be broadcast together with remapped shapes")


def loops(tree: Node, kinds: tuple[types.Type, ...], statement: Callable[[Node], Any]) -> Any:
    """A compiled function of the tape and the leaves: the statement on whole arrays."""
    if any(map(has_narrow, kinds)) and _calls(tree, np.sinc):
        raise TypingError(
            "[tapegrad] np.sinc of a float32 array is rounded in another way than that of a number; write "
            "np.sinc(x.astype(np.float64))"
        )
    in_place = isinstance(tree, Op) and tree.function in IN_PLACE and isinstance(kinds[0], types.Array)
    if in_place and isinstance(tree.args[1], Op) and any(isinstance(kinds[n], types.Array) for n in leaves_of(tree.args[1])):
        return _in_place_in_two_steps(tree, statement, len(kinds))
    parts = _Parts(tree, kinds)
    ndim = max(kind.ndim for kind in kinds if isinstance(kind, types.Array))
    names = [f"l{k}" for k in range(len(kinds))]
    space: dict[str, Any] = {"joint_size": joint_size}
    lines = [f"def loop({', '.join(['tape', *names])}):"]
    for k, node in enumerate(parts.before):
        numbers = leaves_of(node)
        space[f"part{k}"] = statement(renumbered(node, numbers))
        lines.append(f"    l{len(kinds) + k} = part{k}({', '.join(['tape', *(f'l{n}' for n in numbers)])})")
    sizes = [f"n{axis}" for axis in range(ndim)]
    arrays = [k for k, kind in enumerate(kinds) if isinstance(kind, types.Array)]
    for axis in range(ndim):
        lines.append(f"    n{axis} = 1")
        for k in arrays:
            own = axis - (ndim - kinds[k].ndim)
            if own >= 0:
                lines.append(
                    f"    n{axis} = {f'l{k}.shape[{own}]' if k == arrays[0] else f'joint_size(n{axis}, l{k}.shape[{own}])'}"
                )
    for k in arrays:
        for own in range(kinds[k].ndim):
            axis = own + ndim - kinds[k].ndim
            if len(arrays) > 1:
                lines.append(f"    m{k}_{own} = 0 if l{k}.shape[{own}] == 1 and n{axis} != 1 else 1")
    many = len(arrays) > 1

    def item(number: int, indices: list[str]) -> str:
        if number >= len(kinds) or not isinstance(kinds[number], types.Array):
            return f"l{number}"
        if not kinds[number].ndim:
            return f"l{number}[()]"
        rank = kinds[number].ndim
        places = [f"{i} * m{number}_{own}" if many else i for own, i in enumerate(indices[ndim - rank :])]
        return f"l{number}[{', '.join(places) or '()'}]"

    numbers = leaves_of(parts.inner)
    space["inner"] = statement(renumbered(parts.inner, numbers))
    counters = [f"i{axis}" for axis in range(ndim)]

    def value(indices: list[str]) -> str:
        return f"inner({', '.join(['tape', *(item(n, indices) for n in numbers)])})"

    if not ndim:  # arrays of no dimensions give a number, as in Numba
        lines += [f"    l0[()] = {value([])}", "    return l0"] if in_place else [f"    return {value([])}"]
        return _compiled(lines, space)
    if in_place:
        for axis in range(ndim):
            lines.append(f"    if n{axis} != l0.shape[{axis}]:")
            lines.append('        raise ValueError("the operand does not fit into the array it is written to")')
        lines.append("    out = l0")
    else:
        # The type of an item is found by typing an access that never happens.
        lines.append("    out = _empty(({},), ({},))".format(", ".join(sizes), ", ".join(f"l{n}" for n in numbers)))
        space["_empty"] = _allocator(statement(renumbered(parts.inner, numbers)), ndim, _layout(tree, kinds) or "C")
    indent = "    "
    for axis in range(ndim):
        lines.append(f"{indent}for i{axis} in range(n{axis}):")
        indent += "    "
    lines.append(f"{indent}out[{', '.join(counters) or '()'}] = {value(counters)}")
    lines.append("    return out")
    return _compiled(lines, space)


def _compiled(lines: list[str], space: dict[str, Any]) -> Any:
    exec(compile("\n".join(lines), "<tapegrad elementwise>", "exec"), space)
    return part(space["loop"])


def _layout(node: Node, kinds: tuple[types.Type, ...]) -> str | None:
    """The memory order of a node's array, as Numba chooses it operation by operation; None for a number."""
    if isinstance(node, Leaf):
        kind = kinds[node.number]
        return kind.layout if isinstance(kind, types.Array) else None
    layouts = {_layout(arg, kinds) for arg in node.args} - {None} if isinstance(node, Op) else set()
    if not layouts:
        return None
    return "F" if "F" in layouts and "C" not in layouts else "C"


def _allocator(statement: Any, ndim: int, layout: str) -> Any:
    """An array for the statement's values: their type is that of the statement on items of the operands."""

    @numba.extending.intrinsic
    def empty(typingctx, shape, operands):
        items = tuple(item.dtype if isinstance(item, types.Array) else item for item in operands)
        result = statement._numba_type_.get_call_type(typingctx, (types.int64, *items), {}).return_type
        kind = types.Array(result, ndim, layout)

        def write(context, builder, sig, args):
            from numba.core import cgutils
            from numba.np.arrayobj import _empty_nd_impl

            return _empty_nd_impl(context, builder, kind, cgutils.unpack_tuple(builder, args[0]))._getvalue()

        return kind(shape, operands), write

    return empty


def _in_place_in_two_steps(tree: Op, statement: Callable[[Node], Any], count: int) -> Any:
    """The operand may share memory with what is written, so it is computed first, as a whole."""
    numbers = leaves_of(tree.args[1])
    space = {
        "operand": statement(renumbered(tree.args[1], numbers)),
        "write": statement(Op(tree.function, (Leaf(0), Leaf(1)), tree.static)),
    }
    given = ", ".join(["tape", *(f"l{n}" for n in numbers)])
    head = f"def loop({', '.join(['tape', *(f'l{k}' for k in range(count))])}):"
    return _compiled([head, f"    return write(tape, l0, operand({given}))"], space)
