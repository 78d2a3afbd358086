"""What was recorded as a graph of nodes: of a tensor, of a call of a function, of the recorded paths of a program."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from math import isfinite, prod
from typing import Any

import numpy as np

from tapegrad.autograd.decoded_rows import (
    arguments_of,
    dtype_of,
    name_of,
    object_at,
    opcode_of,
    payload_at,
    record_of,
    shape_of,
)
from tapegrad.autograd.recording_stacks import trace_at
from tapegrad.drivers.calling import call
from tapegrad.drivers.containers import flatten
from tapegrad.drivers.leaves import Argnums, is_compiled, recorder_of
from tapegrad.engine import layout as at
from tapegrad.inspection.observing import Observer, each_adjoint, observed
from tapegrad.inspection.source_lines import SourceLine, is_users_file
from tapegrad.inspection.values_as_text import described, duration_in_words, size_in_words
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor

__all__ = ["GUARD", "HOST", "LEAF", "ROW", "Graph", "GraphNode", "graph_of_call", "graph_of_program", "graph_of_tensors"]

LEAF, ROW, HOST, GUARD = "leaf", "row", "host", "guard"


class GraphNode:
    """A row, or a group of rows.

    Attributes
    ----------
    name : str
    kind : {"leaf", "row", "host", "guard"}
        A host row is one whose derivative is Python.
    parents : list of int
        Numbers of the nodes that it is computed from; of a row they are lower than its own.
    shape : tuple of int or None
    value, gradient : str
        In a few words; empty where they are not known.
    line : SourceLine or None
    saved : int
        Bytes of the result.
    seconds : float
        That passed since the row before was recorded.
    is_odd, has_odd_gradient : bool
        Whether its value, or its gradient, is not finite.
    is_result : bool
    members : int
        How many rows it stands for.
    contents : str
        Their operations.
    """

    __slots__ = (
        "contents", "gradient", "has_odd_gradient", "is_odd", "is_result", "kind", "line", "members", "name", "parents", "saved",
        "seconds", "shape", "value",
    )  # fmt: skip

    def __init__(self, name: str, kind: str, parents: list[int], line: SourceLine | None = None) -> None:
        self.name, self.kind, self.parents, self.line = name, kind, parents, line
        self.shape: tuple[int, ...] | None = None
        self.value = self.gradient = self.contents = ""
        self.saved, self.seconds, self.members = 0, 0.0, 1
        self.is_odd = self.has_odd_gradient = self.is_result = False

    def show_value(self, value: Any) -> None:
        """Take a value for what is shown."""
        self.value, self.is_odd = described(value), _is_odd(value)

    def show_gradient(self, value: Any) -> None:
        """Take a gradient for what is shown."""
        self.gradient, self.has_odd_gradient = described(value), _is_odd(value)

    @property
    def details(self) -> list[str]:
        """Everything that is known of it, line by line."""
        found = [self.name if self.members == 1 else f"{self.name}: {self.members} rows"]
        found += [self.contents] if self.contents else []
        found += [f"shape {self.shape}"] if self.shape is not None else []
        found += [f"value {self.value}"] if self.value else []
        found += [f"gradient {self.gradient}"] if self.gradient else []
        found += [str(self.line)] if self.line is not None else []
        found += ["its derivative is Python"] if self.kind == HOST else []
        found += [size_in_words(self.saved)] if self.saved else []
        found += [f"{duration_in_words(self.seconds)} to record"] if self.seconds else []
        return found


class Graph:
    """Nodes, each after those that it is computed from."""

    def __init__(self, title: str, nodes: list[GraphNode]) -> None:
        self.title, self.nodes = title, nodes

    @property
    def edges(self) -> list[tuple[int, int]]:
        """From each node to those that are computed from it."""
        return [(parent, k) for k, node in enumerate(self.nodes) for parent in dict.fromkeys(node.parents)]


def _is_odd(value: Any) -> bool:
    if type(value) is float:
        return not isfinite(value)
    data = np.asarray(value)
    return data.dtype.kind == "f" and not np.isfinite(data).all()


def _reached(tops: list[int]) -> list[int]:
    """Slots from which results are computed, with the results, in the order of the tape."""
    waiting: list[int] = []
    seen = set()
    for slot in tops:
        if slot not in seen:
            seen.add(slot)
            heappush(waiting, -slot)
    found = []
    while waiting:
        slot = -heappop(waiting)
        found.append(slot)
        if opcode_of(slot)[0] != at.LEAF:
            for argument in arguments_of(slot):
                if argument.slot >= 0 and argument.slot not in seen:
                    seen.add(argument.slot)
                    heappush(waiting, -argument.slot)
    return found[::-1]


def _node_at(slot: int, numbers: dict[int, int]) -> GraphNode:
    opcode, wide = opcode_of(slot)
    is_leaf = opcode == at.LEAF
    parents = [] if is_leaf else [numbers[a.slot] for a in arguments_of(slot) if a.slot >= 0]
    kind = LEAF if is_leaf else HOST if wide and opcode == at.HOST else ROW
    node = GraphNode("leaf" if is_leaf else name_of(slot).partition("Backward")[0], kind, parents)
    node.shape = shape_of(slot)
    node.saved = dtype_of(slot).itemsize * prod(node.shape)
    return node


def graph_of_tensors(tensors: list[Tensor]) -> Graph:
    """The graph behind tensors. Values are shown where rows kept them, lines where anomaly detection noted them.

    Raises
    ------
    ValueError
        If no tensor is tracked.
    """
    tracked = [t for t in tensors if t._row > 0]
    if not tracked:
        raise ValueError("draw: the tensor has no graph; draw what was computed from tensors with requires_grad=True")
    with TAPE.claim():
        tops = {TAPE.slot(t._row): t for t in tracked}
        slots = _reached(sorted(tops))
        numbers = {slot: k for k, slot in enumerate(slots)}
        nodes = []
        for slot in slots:
            node = _node_at(slot, numbers)
            _show_kept(node, slot)
            if slot in tops:
                node.is_result = True
                node.show_value(tops[slot]._data)
            nodes.append(node)
    return Graph(f"{len(nodes)} rows", nodes)


def _show_kept(node: GraphNode, slot: int) -> None:
    """Show what a row itself has kept."""
    opcode, wide = opcode_of(slot)
    trace = trace_at(slot)
    if trace is not None:
        lines = [(code, number) for code, number in trace.stack if is_users_file(code.co_filename)]
        if lines:
            code, number = lines[-1]
            node.line = SourceLine(code.co_filename, number, code.co_name)
    if opcode == at.LEAF:
        leaf = payload_at(slot)()
        node.show_value(payload_at(slot).data)
        if leaf is not None and leaf.grad is not None:
            node.show_gradient(leaf.grad._data)
    elif not node.shape:
        node.show_value(TAPE.columns["value"].item(slot))
    elif wide and opcode < at.STRUCTURAL and record_of(slot).result:
        node.show_value(object_at(record_of(slot).result))


class _Shown(Observer):
    """Keeps the text of each value, and how long it took to come to the next row."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[int, tuple[str, bool]] = {}

    def row(self, row: Any) -> None:
        super().row(row)
        self.values[row.slot] = described(row.value), _is_odd(row.value)
        row.value, row.operands = None, []


def graph_of_call(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Argnums) -> Graph:
    """The graph of one call of a function, with values, gradients of the sum of its results, and lines."""
    observer = _Shown()
    with observed(observer):
        made = call(recorder_of(f) if is_compiled(f) else f, args, kwargs, argnums, False, "draw")
        found: list[Any] = []
        flatten(made.output, found)
        tracked = [t for t in found if isinstance(t, Tensor) and t._row > 0]
        if not tracked:
            raise ValueError("draw: the result of the function does not depend on its arguments, so there is no graph")
        tops = {TAPE.slot(t._row) for t in tracked}
        slots = _reached(sorted(tops))
        numbers = {slot: k for k, slot in enumerate(slots)}
        places = {TAPE.slot(leaf._row): place for leaf, place in zip(made.leaves, made.places(), strict=True)}
        nodes = []
        for slot in slots:
            node = _node_at(slot, numbers)
            node.is_result = slot in tops
            row = observer.rows.get(slot)
            if row is None:
                node.name = places.get(slot, node.name)
                if node.kind == LEAF:
                    node.show_value(payload_at(slot).data)
            else:
                node.line, node.seconds = row.line, row.seconds
                node.value, node.is_odd = observer.values[slot]
            nodes.append(node)
        for slot, g, _ in each_adjoint(tracked):
            nodes[numbers[slot]].show_gradient(g)
    return Graph(f"{getattr(f, '__name__', 'function')}: {len(nodes)} rows", nodes)


def graph_of_program(program: Any) -> Graph:
    """The steps of the recorded paths of a program, one after the other.

    Raises
    ------
    ValueError
        If nothing was recorded yet.
    """
    nodes: list[GraphNode] = []
    paths = 0
    for trace in program._recorded():
        paths += 1
        numbers: dict[int, int] = {}
        for k, value in enumerate(trace.inputs):
            numbers[id(value)] = len(nodes)
            node = GraphNode(f"input {k}", LEAF, [])
            node.shape = value.array.shape
            nodes.append(node)
        for step in trace.steps:
            _add_step(nodes, numbers, step)
        for _, value, _ in trace._results:
            if id(value) in numbers:
                nodes[numbers[id(value)]].is_result = True
    if not nodes:
        raise ValueError("draw: the program has recorded nothing yet; call it, or a driver of it, or draw(program, x)")
    return Graph(f"{paths} recorded path{'s' if paths > 1 else ''}: {len(nodes)} steps", nodes)


def _values_in(step: Any) -> list[Any]:
    """Where a step reads and writes."""
    from tapegrad.programs.steps import Value

    found: list[Any] = []

    def look(thing: Any) -> None:
        if isinstance(thing, Value):
            found.append(thing)
        elif isinstance(thing, (tuple, list)):
            for one in thing:
                look(one)
        elif isinstance(thing, dict):
            look(list(thing.values()))

    for kind in type(step).__mro__:
        for name in getattr(kind, "__slots__", ()):
            look(getattr(step, name, None))
    return found


def _add_step(nodes: list[GraphNode], numbers: dict[int, int], step: Any) -> None:
    from tapegrad.programs.steps import Guard

    result = step.results_in
    parents = []
    for value in _values_in(step):
        source = result.of if value is result else value
        while source is not None and id(source) not in numbers:
            source = source.of
        if source is not None:
            parents.append(numbers[id(source)])
    text = step.describe()
    node = GraphNode(text.partition("=")[2].strip() or text, GUARD if isinstance(step, Guard) else ROW, parents)
    file, _, number = step.line.rpartition(", line ")
    if number.isdigit():
        node.line = SourceLine(file, int(number), "")
    if result is not None:
        node.shape = result.array.shape
        node.saved = result.array.nbytes
        numbers[id(result)] = len(nodes)
    nodes.append(node)
