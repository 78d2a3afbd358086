"""Expressions of paths as plain data, and back: what a file says is checked before any of it is compiled."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.kernels.opcodes import call_of
from tapegrad.programs.fused.expressions import NUMBERS, Effect, Expressions, Node, Shape, contiguous
from tapegrad.programs.fused.machine_code import Compilable
from tapegrad.programs.fused.rule_text import ARITHMETIC, EXACT, LIBRARY, Unfused
from tapegrad.programs.fused.schedule import COMPARISONS
from tapegrad.programs.fused.single_precision import OF_SINGLES, ROUNDED
from tapegrad.programs.steps import Step, Value
from tapegrad.recording.primal_values import ARRAY_NAMES
from tapegrad.rules.table import RULES

__all__ = ["SavedPath", "decoded", "encoded"]

Place = tuple[int, int]
# Operations on elements, by how many operands they have.
COUNTS = dict.fromkeys([*ARITHMETIC.values(), *COMPARISONS, "copysign"], 2) | {"neg": 1, "where": 3}
COUNTS |= dict.fromkeys([*EXACT - {"copysign"}, ROUNDED], 1)
CALLS = dict.fromkeys(LIBRARY, 1) | {"pow": 2, "atan2": 2}
LOOPS = {f.__name__: f.nin for f in ARRAY_NAMES.values() if isinstance(f, np.ufunc) and f.nout == 1 and f.nin <= 2}
LOOPS |= {name: len(rule.args) for rule in RULES if isinstance(getattr(np, name := call_of(rule), None), np.ufunc)}
LOOPS |= {name + OF_SINGLES: count for name, count in LOOPS.items()}
MOST_RANK, MOST_ELEMENTS = 32, 40_000_000


class SavedPath:
    """What `MachineCode` is made of, from a file.

    Attributes
    ----------
    graph, inputs, gradients, value, guards, has_guards, arrays
        As those of `PathExpressions`.
    shapes : list of Shape
        Of the gradients.
    """

    graph: Expressions
    inputs: list[Place]
    gradients: list[Place]
    value: Place
    guards: Place
    has_guards: bool
    arrays: list[tuple[int, np.ndarray[Any, Any]]]
    shapes: list[Shape]
    before: list[Step]
    before_inputs: list[tuple[int, Value]]


def encoded(path: Compilable, shapes: Sequence[Shape]) -> dict[str, Any]:
    """A path as dicts of text, arrays and numbers.

    Raises
    ------
    Unfused
        If NumPy computes something of it.
    """
    if path.before:
        raise Unfused(f"{path.before[0].describe()}, of arguments that nothing is differentiated by")
    if path.graph.hosts:
        raise Unfused(f"{path.graph.hosts[0].describe()}, which Python does")
    if any(buffer < 0 for buffer, _ in path.inputs):
        raise Unfused("an argument that is not of floats in C order")
    graph = path.graph
    names, operands = [], []
    for operation, *own in graph.nodes:
        names.append(f"{operation}:{own[0]}" if operation in ("call", "loop") else operation)
        if operation == "load":
            own = [*own[:2], *own[2]]
        operands.append([k for k in own if isinstance(k, int)] if operation != "constant" else [])
    return {
        "operations": " ".join(names),
        "operands": _flat(operands),
        "spaces": _flat(graph.spaces),
        "constants": np.array([graph.constants[k] for k in range(len(graph.nodes)) if k in graph.constants]),
        "effects": _flat([(e.node, e.buffer, e.offset, int(e.adds), *e.strides) for e in graph.effects]),
        "sizes": np.array(graph.sizes, np.int64),
        "singles": np.array(sorted(graph.singles), np.int64),
        "inputs": _flat(path.inputs),
        "gradients": _flat(path.gradients),
        "shapes": _flat(shapes),
        "results": _flat([path.value, path.guards, (int(path.has_guards),)]),
        "buffers": np.array([buffer for buffer, _ in path.arrays], np.int64),
        "arrays": [array for _, array in path.arrays],
    }


def _flat(rows: Sequence[Sequence[int]]) -> dict[str, Any]:
    return {
        "numbers": np.array([number for row in rows for number in row], np.int64),
        "lengths": np.array([len(row) for row in rows], np.int64),
    }


def need(holds: bool, what: str) -> None:
    """Refuse a file.

    Raises
    ------
    ValueError
        If something does not hold.
    """
    if not holds:
        raise ValueError(what)


def _integers(value: Any) -> list[int]:
    need(isinstance(value, np.ndarray) and value.dtype == np.int64 and value.ndim == 1, "integers are no array of them")
    found: list[int] = value.tolist()
    return found


def _rows(value: Any) -> list[tuple[int, ...]]:
    need(isinstance(value, dict) and set(value) == {"numbers", "lengths"}, "rows of integers are no such rows")
    numbers, lengths = _integers(value["numbers"]), _integers(value["lengths"])
    need(all(0 <= n <= MOST_RANK + 4 for n in lengths) and sum(lengths) == len(numbers), "rows have other lengths")
    rest = iter(numbers)
    return [tuple(itertools.islice(rest, n)) for n in lengths]


def decoded(state: Any) -> SavedPath:
    """A path again.

    Raises
    ------
    ValueError
        If the data are not of one, or read or write outside of their memory.
    """
    need(isinstance(state, dict), "a path is no dict")
    path, graph = SavedPath(), Expressions()
    path.graph = graph
    graph.sizes = _integers(state["sizes"])
    need(bool(graph.sizes) and all(0 <= n <= MOST_ELEMENTS for n in graph.sizes), "buffers have no such sizes")
    need(all(n > 0 for n in graph.sizes[1:]) and sum(graph.sizes) <= MOST_ELEMENTS, "buffers have no such sizes")
    graph.singles = set(_integers(state["singles"])) if "singles" in state else set()
    need(all(0 < buffer < len(graph.sizes) for buffer in graph.singles), "there is no such buffer of float32")
    _decode_nodes(state, graph)
    _decode_effects(_rows(state["effects"]), graph)
    path.inputs = [_place(row, graph) for row in _rows(state["inputs"])]
    path.gradients = [_place(row, graph) for row in _rows(state["gradients"])]
    path.shapes = _rows(state["shapes"])
    need(len(path.shapes) == len(path.gradients), "there are other numbers of gradients and of shapes")
    for (buffer, _), shape in zip(path.gradients, path.shapes, strict=True):
        need(all(n > 0 for n in shape), "a gradient has no such shape")
        need(not shape if buffer == NUMBERS else math.prod(shape) == graph.sizes[buffer], "a gradient has no such shape")
    value, guards, flags = _rows(state["results"])
    path.value, path.guards, path.has_guards = _place(value, graph), _place(guards, graph), flags == (1,)
    need(path.value[0] == path.guards[0] == NUMBERS, "the value is no number")
    _decode_arrays(state, path)
    written = {effect.buffer for effect in graph.effects}
    given = [buffer for buffer, _ in (*path.inputs, *path.arrays) if buffer != NUMBERS]
    results = [buffer for buffer, _ in path.gradients if buffer != NUMBERS]
    need(len(set(given)) == len(given) and not written & set(given), "it writes into its arguments")
    need(len(set(results)) == len(results) and not set(results) & set(given), "gradients share memory")
    return path


def _place(row: Sequence[int], graph: Expressions) -> Place:
    need(len(row) == 2, "a place is no pair")
    buffer, slot = row
    need(0 <= buffer < len(graph.sizes), "there is no such buffer")
    need(0 <= slot < graph.sizes[NUMBERS] if buffer == NUMBERS else slot == -1, "there is no such number")
    return buffer, slot


def _decode_arrays(state: dict[str, Any], path: SavedPath) -> None:
    buffers, arrays = _integers(state["buffers"]), state["arrays"]
    need(isinstance(arrays, list) and len(arrays) == len(buffers), "there are other numbers of arrays and of buffers")
    path.arrays, path.before, path.before_inputs = [], [], []
    for buffer, array in zip(buffers, arrays, strict=True):
        need(0 < buffer < len(path.graph.sizes) and isinstance(array, np.ndarray), "an array has no buffer")
        need(array.dtype == (np.float32 if buffer in path.graph.singles else np.float64), "an array is not of its buffer's type")
        need(array.size == path.graph.sizes[buffer], "an array has not the size of its buffer")
        path.arrays.append((buffer, np.ascontiguousarray(array)))


def _within(graph: Expressions, buffer: int, offset: int, strides: Shape, space: Shape) -> None:
    """Check that a strided walk stays in a buffer."""
    need(0 <= buffer < len(graph.sizes) and len(strides) == len(space), "there is no such buffer")
    ends = [stride * (extent - 1) for stride, extent in zip(strides, space, strict=True)]
    low, high = offset + sum(e for e in ends if e < 0), offset + sum(e for e in ends if e > 0)
    need(low >= 0 and high < graph.sizes[buffer], "it reads or writes outside of a buffer")


def _decode_nodes(state: dict[str, Any], graph: Expressions) -> None:
    need(isinstance(state["operations"], str), "operations are no text")
    names, operands, spaces = state["operations"].split(), _rows(state["operands"]), _rows(state["spaces"])
    constants = state["constants"]
    need(isinstance(constants, np.ndarray) and constants.dtype == np.float64 and constants.ndim == 1, "constants are no numbers")
    need(len(names) == len(operands) == len(spaces), "there are other numbers of operations and of operands")
    rest = iter(constants.tolist())
    for number, (name, own, space) in enumerate(zip(names, operands, spaces, strict=True)):
        need(len(space) <= MOST_RANK and all(0 < n <= MOST_ELEMENTS for n in space), "there is no such shape")
        operation, _, called = name.partition(":")
        node: Node
        if operation == "constant":
            value = next(rest, None)
            need(value is not None and not own and not space, "a constant without a value")
            graph.constants[number] = float(value)  # type: ignore[arg-type]
            node = (operation, float(value).hex())  # type: ignore[arg-type]
        elif operation == "load":
            need(len(own) >= 2, "a load without a place")
            _within(graph, own[0], own[1], own[2:], space)
            node = (operation, own[0], own[1], own[2:])
        else:
            _check_operands(graph, operation, called, own, space)
            node = (operation, called, *own) if called else (operation, *own)
        graph.nodes.append(node)
        graph.spaces.append(space)
    need(next(rest, None) is None, "there are more constants than nodes of them")


def _check_operands(graph: Expressions, operation: str, called: str, own: Sequence[int], space: Shape) -> None:
    """Check an operation on earlier nodes: its name, their number and shapes, and that comparisons are operands of where only."""
    need(all(0 <= k < len(graph.nodes) for k in own), "an operand does not come before its operation")
    kinds = [graph.nodes[k][0] for k in own]
    need("matmul" not in kinds, "a product is not read from memory")
    if operation == "matmul":
        need(len(own) == 2 and kinds == ["load", "load"] and not called, "a product of something else than memory")
        x, y = (graph.spaces[k] for k in own)
        need(1 <= len(x) <= 2 and 1 <= len(y) <= 2 and x[-1] == y[0] and space == (*x[:-1], *y[1:]), "a product of other shapes")
        need(all(all(graph.nodes[k][3]) for k in own), "a product of repeated elements")
        need(len({graph.nodes[k][1] in graph.singles for k in own}) == 1, "a product of both types")
        return
    if operation == "fill":
        need(len(own) == 1 and kinds == ["constant"] and bool(space) and not called, "a constant is no constant")
        return
    known = {"call": CALLS, "loop": LOOPS}.get(operation, COUNTS)
    need((operation in ("call", "loop")) == bool(called), "an operation without its name")
    need(known.get(called or operation) == len(own), f"there is no operation {operation} {called} of {len(own)} operands")
    need(all(graph.spaces[k] == space or kind == "constant" for k, kind in zip(own, kinds, strict=True)), "shapes do not agree")
    asks = [kind in COMPARISONS for kind in kinds]
    need(asks == [operation == "where" and place == 0 for place in range(len(own))], "a comparison is no number")


def _decode_effects(rows: Sequence[tuple[int, ...]], graph: Expressions) -> None:
    first: dict[Place, int] = {}  # the first node that reads each place
    for number, known in enumerate(graph.nodes):
        if known[0] == "load":
            first.setdefault((known[1], known[2] if known[1] == NUMBERS else 0), number)
    for row in rows:
        need(len(row) >= 4, "an effect without a place")
        node, buffer, offset, adds, *strides = row
        need(0 <= node < len(graph.nodes) and adds in (0, 1), "an effect of no node")
        operation, space = graph.nodes[node][0], graph.spaces[node]
        need(operation not in COMPARISONS, "a comparison is no number")
        _within(graph, buffer, offset, tuple(strides), space)
        if operation == "matmul":
            need(not adds and tuple(strides) == contiguous(space), "a product is written in another order")
            factor = graph.nodes[graph.nodes[node][1]][1]
            need((buffer in graph.singles) == (factor in graph.singles), "a product is written as another type")
        elif not space:
            need(not adds, "a sum of a number")
        need(not (adds and buffer in graph.singles), "a sum is not of float64")
        if buffer == NUMBERS:
            need(not any(strides), "arrays do not stand among numbers")
        reader = first.get((buffer, offset if buffer == NUMBERS else 0))
        need(reader is None or node < reader, "something is read before it is written")
        graph.effects.append(Effect(node, buffer, offset, tuple(strides), bool(adds)))
