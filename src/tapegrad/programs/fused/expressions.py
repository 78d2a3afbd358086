"""What a path computes for one element, as nodes of one graph in which equal expressions are one node.

A node is an operation and the numbers of its operands, and has a space: the shape over which it is evaluated, ``()`` for numbers.
What a node of another space needs goes through memory; a part of an array is the same expression at other indices, which is made
again unless it is long.
"""

from __future__ import annotations

import ast
import math
import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.kernels.opcodes import calls_in
from tapegrad.programs.fused.rule_text import ARITHMETIC, BY_LOOPS, COMPARED, EXACT, LIBRARY, SLOW_LOOPS, TEXTS, Unfused, parsed
from tapegrad.programs.fused.single_precision import RoundedNodes
from tapegrad.recording.primal_values import ARRAY_NAMES, BY_LIBRARY, BY_LOOP, BY_POWER, EXPONENTS, forward
from tapegrad.rules.table import RULES

__all__ = ["NUMBERS", "Axis", "Effect", "Expressions", "Node", "Shape", "contiguous"]

Node = tuple[Any, ...]
Shape = tuple[int, ...]
NUMBERS = 0  # the buffer in which numbers stand
CHEAP = 32  # operations up to which a part of an array is computed again instead of read
SHORT, SMALL = 8, 64  # inner elements and multiplications up to which products of matrices are written out
LENGTHS = {"call": 20, "mul0": 5}  # as many operations as these are taken for
# What is done at once where all operands are known; floats are doubles here as there.
FOLDED: dict[str, Callable[..., float]] = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg}
DECIDED: dict[str, Callable[[float, float], bool]] = {
    "oeq": operator.eq, "une": operator.ne, "olt": operator.lt, "ole": operator.le, "ogt": operator.gt, "oge": operator.ge,
}  # fmt: skip


class Axis(NamedTuple):
    """Where an index of an array comes from: ``start + step * index[source]``, or ``start`` alone."""

    start: int
    source: int | None
    step: int


class Effect(NamedTuple):
    """What is written: each element of a node to a place, or their sum over the axes whose stride is zero.

    Attributes
    ----------
    node, buffer, offset : int
    strides : tuple of int
        In elements, one for each dimension of the node's space.
    adds : bool
        Whether values are added up.
    """

    node: int
    buffer: int
    offset: int
    strides: Shape
    adds: bool


def contiguous(shape: Shape) -> Shape:
    """Strides of an array in C order, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


class Expressions(RoundedNodes):
    """A graph of expressions ``(operation, *operands)`` and what is written.

    Attributes
    ----------
    nodes : list of Node
        Operands are numbers of earlier nodes.
    spaces : list of Shape
    constants : dict
        Values of constant nodes.
    effects : list of Effect
    sizes : list of int
        Elements of each buffer; of the first one, `NUMBERS`, as many as there are numbers.
    hosts : list
        What Python does: objects with a method ``run``, which says whether it could.
    required : list of int
        Buffers that are written in each run.
    numbers : dict
        Numbers that are the same in each run and are read from memory, by their places among the numbers.
    fast : bool
        Whether last digits may be others than NumPy's: operations are contracted, and some functions not called.
    has_products : bool
        Whether there are products of matrices, which know no absolute zeros.
    loops : dict
        Loops of NumPy's that are called: the places in the table of addresses of each and of what it is given, with the addresses.
    """

    def __init__(self, fast: bool = False) -> None:
        super().__init__()
        self.fast = fast
        self.nodes: list[Node] = []
        self.spaces: list[Shape] = []
        self.constants: dict[int, float] = {}
        self.effects: list[Effect] = []
        self.sizes = [0]
        self.loops: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {}
        self.has_products = False
        self.hosts: list[Any] = []
        self.required: list[int] = []
        self.numbers: dict[int, float] = {}
        self._given: dict[bytes, int] = {}
        self._numbers: dict[tuple[Node, Shape], int] = {}
        self._kept: dict[int, tuple[int, int]] = {}  # nodes that stand in memory: buffer and offset
        self._parts: dict[tuple[int, tuple[Axis, ...], Shape], int] = {}
        self._lengths: dict[int, int] = {}

    def node(self, operation: str, *operands: Any, space: Shape | None = None) -> int:
        """A node; its space is that of its operands unless it is given."""
        if operation in FOLDED and all(k in self.constants for k in operands):
            return self.constant(FOLDED[operation](*(self.constants[k] for k in operands)))
        if operation == "where" and (asked := self._decided(operands[0])) is not None:
            return int(operands[1] if asked else operands[2])
        space = self._space(operands) if space is None else space
        key = ((operation, *operands), space)
        if key not in self._numbers:
            self._numbers[key] = len(self.nodes)
            self.nodes.append(key[0])
            self.spaces.append(space)
        return self._numbers[key]

    def _decided(self, comparison: int) -> bool | None:
        """The outcome of a comparison of two constants; None for others."""
        operation, *operands = self.nodes[comparison]
        known = [self.constants[k] for k in operands if k in self.constants]
        return bool(DECIDED[operation](*known)) if len(known) == len(operands) else None

    def constant(self, value: float) -> int:
        """A number that is the same in every run."""
        number = self.node("constant", struct.pack("<d", value).hex(), space=())
        self.constants[number] = float(value)
        return number

    def load(self, buffer: int, offset: int, strides: Shape, space: Shape) -> int:
        """What stands in memory."""
        return self.node("load", buffer, offset, strides, space=space)

    def buffer(self, size: int, is_single: bool = False) -> int:
        """A new buffer, of float64 or of float32."""
        self.sizes.append(size)
        if is_single:
            self.singles.add(len(self.sizes) - 1)
        return len(self.sizes) - 1

    def slot(self) -> int:
        """A new place among the numbers."""
        self.sizes[NUMBERS] += 1
        return self.sizes[NUMBERS] - 1

    def host(self, what: Any) -> int:
        """Let Python do something; its number, for nodes ``("host", number, which of its results, *nodes that it reads)``."""
        self.hosts.append(what)
        return len(self.hosts) - 1

    def given(self, value: float) -> int:
        """The place of a number that is the same in each run."""
        key = struct.pack("<d", value)
        if key not in self._given:
            self._given[key] = self.slot()
            self.numbers[self._given[key]] = value
        return self._given[key]

    def write(self, node: int, buffer: int, offset: int, strides: Shape, adds: bool = False) -> None:
        """Write the elements of a node, or add them up."""
        self.effects.append(Effect(node, buffer, offset, strides, adds))

    def product(self, x: int, y: int) -> int:
        """A product, but for those by one."""
        for a, b in ((x, y), (y, x)):
            if self.constants.get(a) == 1.0:
                return b
            if self.constants.get(a) == -1.0:
                return self.node("neg", b)
        return self.node("mul", x, y)

    def contribution(self, adjoint: int, text: str, of_number: bool, names: dict[str, int]) -> int:
        """An adjoint times a partial as in the sweep: with absolute zeros, but for partials of one and minus one on arrays."""
        if not of_number and text in ("1.0", "-1.0"):
            return adjoint if text == "1.0" else self.node("neg", adjoint)
        partial = self.partial(text, of_number, names)
        for a, b in ((adjoint, partial), (partial, adjoint)):
            known = self.constants.get(a)
            if known == 0.0:
                return self.constant(0.0)
            if known is not None and math.isfinite(known):
                # The other factor may be a zero of either sign, and the product is a positive one; others do not vanish by
                # a factor of one or more.
                zero = self.constant(0.0)
                if abs(known) >= 1.0:
                    return self.node("add", self.product(a, b), zero)
                return self.node("where", self.node("oeq", b, zero), zero, self.product(a, b))
        return self.text("mul0(x, y)", {"x": adjoint, "y": partial})

    def partial(self, text: str, of_number: bool, names: dict[str, int]) -> int:
        """A partial of a rule: on numbers by the C library's functions, on arrays by NumPy's loops."""
        calls = calls_in(text)
        is_spread = any(self.spaces[k] for k in names.values())
        if "pow" in calls and not of_number and is_spread:
            # NumPy's loop squares where all elements have one exponent, and the sweep has many.
            each = next(self.node("oeq", k, k) for k in names.values() if self.spaces[k])
            names = {name: self.node("where", each, k, k) if k in self.constants else k for name, k in names.items()}
        return self.text(text, names, by_loops=(not of_number or (self.fast and is_spread)) and not BY_LOOPS.isdisjoint(calls))

    def text(self, text: str, names: dict[str, int], by_loops: bool = False) -> int:
        """Rule text; its functions are the C library's, or NumPy's loops over blocks of elements.

        Raises
        ------
        Unfused
            If it calls a function that there is no code for.
        """
        return self._expand(parsed(text), names, by_loops)

    def _expand(self, tree: Any, names: dict[str, int], by_loops: bool) -> int:
        if isinstance(tree, ast.Name):
            return names[tree.id]
        if isinstance(tree, ast.Constant):
            return self.constant(float(tree.value))  # type: ignore[arg-type]
        if isinstance(tree, ast.UnaryOp):
            x = self._expand(tree.operand, names, by_loops)
            return self.constant(-self.constants[x]) if x in self.constants else self.node("neg", x)
        if isinstance(tree, ast.BinOp):
            operation = ARITHMETIC[type(tree.op)]
            x, y = self._expand(tree.left, names, by_loops), self._expand(tree.right, names, by_loops)
            return self.product(x, y) if operation == "mul" else self.node(operation, x, y)
        if isinstance(tree, ast.Compare):
            if isinstance(tree.left, ast.Compare):  # whether what was asked holds: ``(x == 0.0) != 0.0``
                return self._expand(tree.left, names, by_loops)
            x, y = self._expand(tree.left, names, by_loops), self._expand(tree.comparators[0], names, by_loops)
            return self.node(COMPARED[type(tree.ops[0])], x, y)
        operands = [self._expand(argument, names, by_loops) for argument in tree.args]
        return self._call(tree.func.id, operands, by_loops)

    def _call(self, name: str, operands: list[int], by_loops: bool) -> int:
        if name == "where" or name in EXACT:
            return self.node(name, *operands)
        if name in SLOW_LOOPS:
            by_loops = False
        if by_loops and name in LIBRARY and all(k in self.constants for k in operands):
            with quiet():
                return self.constant(float(ARRAY_NAMES[name](*(np.array([self.constants[k]]) for k in operands))[0]))
        if by_loops and isinstance(ARRAY_NAMES.get(name), np.ufunc) and any(self.spaces[k] for k in operands):
            return self.node("loop", ARRAY_NAMES[name].__name__, *self.level(operands), space=self._space(operands))
        if name in TEXTS:
            return self.text(TEXTS[name], dict(zip("xy", operands, strict=False)), by_loops)
        if name not in LIBRARY:
            raise Unfused(f"no code for {name}")
        return self.node("call", name, *operands, space=self._space(operands))

    def _space(self, operands: Sequence[int]) -> Shape:
        return next((space for k in operands if (space := self.spaces[k])), ())

    def level(self, operands: Sequence[int]) -> list[int]:
        """Operands of one space: numbers are read as if they were arrays; constants stay what they are."""
        space = self._space(operands)
        return [self.at(k, (), space) if space and not self.spaces[k] else k for k in operands]

    def value(self, opcode: int, operands: Sequence[int], of_number: bool, way: int) -> int:
        """The value of a rule; of numbers in one of the ways that they have."""
        rule, operands = RULES[opcode], self.level(operands)
        if of_number and way == BY_LOOP:
            return self.node("loop", forward[opcode].__name__, *operands, space=self._space(operands))
        if of_number and way == BY_POWER:
            return self._call("pow", [*operands, self.constant(EXPONENTS[opcode])], False)
        names = dict(zip("xyw", operands, strict=False))
        by_library = of_number and not (self.fast and self._space(operands))
        if by_library or rule.name in BY_LIBRARY or not calls_in(rule.primal) - EXACT - {"where"}:
            return self.text(rule.primal, names)
        return self.text(rule.primal, names, by_loops=True)

    def kept(self, node: int) -> tuple[int, int]:
        """Buffer and offset at which a node stands in memory, in C order."""
        operation, *operands = self.nodes[node]
        space = self.spaces[node]
        if operation == "load" and operands[2] == contiguous(space):
            return operands[0], operands[1]
        if node not in self._kept:
            place = self.place_for(node)
            self.write(node, *place, contiguous(space))
            self._kept[node] = place
        return self._kept[node]

    def place_for(self, node: int) -> tuple[int, int]:
        """New memory for a node."""
        space = self.spaces[node]
        return (self.buffer(math.prod(space), self.is_single(node)), 0) if space else (NUMBERS, self.slot())

    def reshaped(self, node: int, shape: Shape) -> int:
        """The elements in C order in another shape."""
        if shape == self.spaces[node]:
            return node
        buffer, offset = self.kept(node)
        return self.load(buffer, offset, contiguous(shape), shape)

    def matmul(self, x: int, y: int, is_single: bool = False) -> int:
        """The product of two matrices, of a matrix and a vector, or of two vectors, which stand in memory, of either type."""
        self.has_products = True
        x, y = self.in_memory(x, is_single), self.in_memory(y, is_single)
        space = (*self.spaces[x][:-1], *self.spaces[y][1:])
        inner = self.spaces[x][-1]
        if space and not is_single and inner <= SHORT and inner * math.prod(space) <= SMALL:
            return self._written_out(x, y, space)
        node = self.node("matmul", x, y, space=space)
        if node not in self._kept:
            self._kept[node] = (self.buffer(1, True), 0) if is_single and not space else self.place_for(node)
            self.write(node, *self._kept[node], contiguous(space))
        buffer, offset = self._kept[node]
        return self.load(buffer, offset, contiguous(space), space)

    def _written_out(self, x: int, y: int, space: Shape) -> int:
        """A small product as sums of products, which take less time than a call, and may be computed beside others."""
        rows, columns = len(self.spaces[x]) - 1, len(self.spaces[y]) - 1
        found = self.constant(0.0)  # from which BLAS starts: a sum of zeros with a minus has none
        for k in range(self.spaces[x][-1]):
            own = *(Axis(0, d, 1) for d in range(rows)), Axis(k, None, 0)
            other = Axis(k, None, 0), *(Axis(0, rows + d, 1) for d in range(columns))
            term = self.node("mul", self.at(x, own, space), self.at(y, other, space))
            found = self.node("add", found, term)
        return found

    def in_memory(self, node: int, is_single: bool = False) -> int:
        """A node that reads what a node is, in memory of a type."""
        operation, *operands = self.nodes[node]
        if operation == "load" and all(operands[2]) and (operands[0] in self.singles) == is_single:
            return node
        buffer, offset = self.kept(node)
        if (buffer in self.singles) != is_single:
            buffer, offset = self.buffer(math.prod(self.spaces[node]), is_single), 0
            self.write(node, buffer, offset, contiguous(self.spaces[node]))
        return self.load(buffer, offset, contiguous(self.spaces[node]), self.spaces[node])

    def total(self, node: int, strides: Shape, shape: Shape) -> int:
        """Sums of the elements, over axes whose stride is zero, in C order of the rest; the strides are of the result."""
        if not shape:
            slot = self.slot()
            self.write(node, NUMBERS, slot, strides, adds=True)
            return self.load(NUMBERS, slot, (), ())
        buffer = self.buffer(math.prod(shape))
        self.write(node, buffer, 0, strides, adds=True)
        return self.load(buffer, 0, contiguous(shape), shape)

    def at(self, node: int, axes: tuple[Axis, ...], space: Shape) -> int:
        """The same at other indices: one axis for each dimension of the node's space."""
        if node in self.constants:
            return node
        own = self.spaces[node]
        if own == space and all(axis == Axis(0, d, 1) for d, axis in enumerate(axes)):
            return node
        key = node, axes, space
        if key not in self._parts:
            self._parts[key] = self._at(node, axes, space)
        return self._parts[key]

    def _at(self, node: int, axes: tuple[Axis, ...], space: Shape) -> int:
        operation, *operands = self.nodes[node]
        if operation == "load":
            buffer, offset, strides = operands
            found = [0] * len(space)
            for axis, stride in zip(axes, strides, strict=True):
                offset += axis.start * stride
                if axis.source is not None:
                    found[axis.source] += axis.step * stride
            return self.load(buffer, offset, tuple(found), space)
        own = self.spaces[node]
        if operation in DECIDED or (own and operation != "loop" and self.length(node) <= CHEAP):  # a comparison is no number
            name = operands[:1] if operation == "call" else []
            made = [self.at(k, axes if self.spaces[k] else (), space) for k in operands[len(name) :]]
            return made[0] if operation == "fill" and not space else self.node(operation, *name, *made, space=space)
        buffer, offset = self.kept(node)
        return self.at(self.load(buffer, offset, contiguous(own), own), axes, space)

    def length(self, node: int) -> int:
        """How many operations it takes to compute a node again, or more than are asked for."""
        if node not in self._lengths:
            pending, seen, weight = [node], {node}, 0
            while pending and weight <= CHEAP:
                operation, *operands = self.nodes[pending.pop()]
                if operation not in ("load", "constant", "loop"):
                    weight += LENGTHS.get(operation, 1)
                    fresh = {k for k in operands if isinstance(k, int)} - seen
                    seen |= fresh
                    pending += fresh
            self._lengths[node] = weight
        return self._lengths[node]
