"""What PyTorch's semantics say about values, gradients and errors, worked out slowly and apart from the engine.

Values are NumPy arrays that alias as the tensors do. Gradients are those of the naive tape: every tensor has an array of naive
variables of its own. Errors come from nodes that note which memory they saved at which version, and whether they were freed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from naive import OPERATIONS, Tape, Variable

import tapegrad as tg

Take = Callable[[Any], Any]
NO, MAYBE, YES = 0, 1, 2


class RecordingTape(Tape):
    """The naive tape, remembering operations so that gradients can be recorded as well."""

    def __init__(self) -> None:
        super().__init__()
        self.history: list[tuple[str, tuple[Variable | float, ...], Variable]] = []

    def apply(self, name: str, *arguments: Variable | float) -> Variable:
        z = super().apply(name, *arguments)
        self.history[-1] = (name, arguments, z)
        return z

    def _append(self, primal: float, row: list[tuple[int, float]]) -> Variable:
        v = super()._append(primal, row)
        self.history.append(("leaf", (), v))
        return v

    def alias(self, v: Variable, primal: float | None = None) -> Variable:
        """Another variable through which everything flows to `v`; the primal is another one if memory was written unseen."""
        z = self._append(v.primal if primal is None else primal, [(v.slot, 1.0)])
        self.history[-1] = ("alias", (v,), z)
        return z

    def recorded_gradient(self, seeds: dict[int, float], wanted: Iterable[int]) -> dict[int, Variable]:
        """Adjoints as variables, made of recorded operations."""
        adjoints: dict[int, Variable | float] = dict(seeds)
        for slot in range(max(seeds), -1, -1):
            if slot not in adjoints:
                continue
            name, arguments, z = self.history[slot]
            for argument, partial in zip(arguments, self._partials(name, arguments, z), strict=True):
                if isinstance(argument, Variable):
                    c = self._times(adjoints[slot], partial)
                    before = adjoints.get(argument.slot)
                    adjoints[argument.slot] = c if before is None else self._plus(before, c)
        return {s: v if isinstance(v := adjoints.get(s, 0.0), Variable) else self.leaf(v) for s in wanted}

    def _times(self, a: Variable | float, b: Variable | float) -> Variable | float:
        return self.apply("mul", a, b) if isinstance(a, Variable) or isinstance(b, Variable) else a * b

    def _plus(self, a: Variable | float, b: Variable | float) -> Variable | float:
        return self.apply("add", a, b) if isinstance(a, Variable) or isinstance(b, Variable) else a + b

    def _partials(self, name: str, arguments: tuple[Any, ...], z: Variable) -> tuple[Variable | float, ...]:
        if name == "mul":
            return arguments[1], arguments[0]
        if name == "sin":
            return (self.apply("sin", self.apply("add", arguments[0], math.pi / 2)),)
        if name == "exp":
            return (z,)
        if name == "tanh":
            return (self.apply("sub", 1.0, self.apply("mul", z, z)),)
        constant = {"add": (1.0, 1.0), "sub": (1.0, -1.0), "neg": (-1.0,), "alias": (1.0,), "leaf": ()}
        return constant[name]


@dataclass(eq=False)
class Memory:
    """A piece of memory: how often it was written, and what lies on it."""

    writes: int = 0
    twins: list[Twin] = field(default_factory=list)


@dataclass(eq=False)
class Saved:
    """Memory that a node needs for the cotangents of some of its inputs."""

    memory: Memory
    version: int
    inputs: frozenset[int]
    sure: bool  # whether writing it must be refused, or may also do no harm


@dataclass(eq=False)
class Node:
    """One recorded operation."""

    inputs: tuple[Node | None, ...]
    origin: np.ndarray  # the naive variables that it made
    saved: list[Saved] = field(default_factory=list)
    frees: int = NO  # whether running it releases something
    freed: int = NO
    leaf: Twin | None = None
    comparable: bool = True  # whether its edges are the same in the tape
    name: str = ""
    opaque: bool = False  # whether it stands for rows that are not known one by one

    def leads_nowhere(self) -> bool:
        """Whether every way down may end in what was freed: then collecting rows may drop the references of those above."""
        below = [node for node in self.inputs if node is not None]
        return self.leaf is None and (self.freed != NO or (bool(below) and all(node.leads_nowhere() for node in below)))


@dataclass(eq=False)
class Twin:
    """What is known of a tensor."""

    tensor: tg.Tensor | None
    data: np.ndarray
    variables: np.ndarray
    memory: Memory
    node: Node | None = None
    base: Twin | None = None
    replay: Take | None = None
    views: list[Twin] = field(default_factory=list)
    many: bool = False
    spoiled: bool = False
    without_grad: bool = False
    vague: bool = False  # whether it is open which node stands for it
    grad: np.ndarray | None = None

    @property
    def expands(self) -> bool:
        """Whether elements share memory."""
        return any(s == 0 and n > 1 for s, n in zip(self.data.strides, self.data.shape, strict=True))

    @property
    def leaf(self) -> bool:
        return self.node is None or self.node.leaf is not None


def each(function: Callable[..., Any], *arrays: Any) -> np.ndarray:
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), dtype=object)


def primals(variables: np.ndarray) -> np.ndarray:
    return np.array([v.primal for v in variables.ravel()], dtype=float).reshape(variables.shape)


def slots(variables: np.ndarray) -> list[int]:
    return [v.slot for v in variables.ravel()]


Run = dict[int, tuple["Node", list[int]]]  # nodes that a pass runs, and to which of its inputs each sends something


@dataclass
class Verdict:
    """Which errors a pass must raise (each with its reason), and whether it may raise one."""

    must: list[str]
    may: bool


class Model:
    """All tensors of a program, dropped ones included as far as others need them."""

    def __init__(self) -> None:
        self.tape = RecordingTape()

    def constants(self, data: np.ndarray) -> np.ndarray:
        return each(self.tape.leaf, data)

    def make(self, tensor: tg.Tensor, variables: np.ndarray, node: Node | None) -> Twin:
        memory = Memory()
        twin = Twin(tensor, primals(variables), variables, memory, node)
        memory.twins.append(twin)
        return twin

    def make_leaf(self, tensor: tg.Tensor, data: np.ndarray, tracked: bool) -> Twin:
        variables = self.constants(data)
        twin = self.make(tensor, variables, None)
        if tracked:
            twin.node = Node((), variables, leaf=twin)
        return twin

    def alias(self, x: Twin, tensor: tg.Tensor) -> Twin:
        """An untracked tensor on the same memory."""
        twin = Twin(tensor, x.data, self.constants(x.data), x.memory)
        x.memory.twins.append(twin)
        return twin

    def view(self, x: Twin, tensor: tg.Tensor, take: Take, recording: bool, many: bool = False) -> Twin:
        twin = Twin(tensor, take(x.data), each(self.tape.alias, take(x.variables)), x.memory)
        if x.node is not None and recording:
            twin.node = Node((x.node,), twin.variables, comparable=not many)
        else:
            twin.variables = self.constants(twin.data)
        twin.base = x.base or x
        before = x.replay
        twin.replay = take if before is None else lambda array: take(before(array))
        twin.base.views.append(twin)
        twin.many = many or x.many
        twin.without_grad = x.without_grad or not recording
        x.memory.twins.append(twin)
        return twin

    def saved(self, x: Twin, inputs: Iterable[int], sure: bool = True) -> Saved:
        return Saved(x.memory, x.memory.writes, frozenset(inputs), sure and x.data.ndim > 0)  # numbers are kept by value

    def node_of(self, name: str, x: Twin, y: Twin | None, variables: np.ndarray, result: Twin | None) -> Node | None:
        """The node of an operation on `x` and maybe `y`, whose result is (or overwrites) `result`."""
        tracked = [t.node is not None for t in (x, y) if t is not None]
        if not any(tracked):
            return None
        node = Node((x.node,) if y is None else (x.node, y.node), variables, name=name + "_" * (result is x))
        if name in ("double", "shift"):
            node.inputs = (x.node, None)
        in_place = result is x
        if name == "mul":
            assert y is not None
            if x.node is not None:
                node.saved.append(self.saved(y, [0], not (in_place and y.memory is x.memory)))
            if y.node is not None and not in_place:
                node.saved.append(self.saved(x, [1]))
        elif name == "sin" and not in_place:
            node.saved.append(self.saved(x, [0]))
        node.frees = YES if name in ("mul", "sin", "exp", "tanh", "double") else NO
        return node

    def keep_result(self, name: str, node: Node | None, result: Twin) -> None:
        """Note a saved result, at the version that it has once it is there."""
        if node is not None and name in ("exp", "tanh"):
            node.saved.append(self.saved(result, [0]))

    def compute(self, name: str, x: Twin, y: Twin | None) -> np.ndarray:
        a = x.variables
        if name == "sum":
            total = self.tape.leaf(0.0)
            for v in a.ravel():
                total = self.tape.apply("add", total, v)
            return np.asarray(total, dtype=object)
        if name == "clone":
            return each(self.tape.alias, a)
        if name in ("double", "shift"):
            operation = {"double": "mul", "shift": "add"}[name]
            return each(lambda v: self.tape.apply(operation, v, 2.0), a)
        return each(lambda *vs: self.tape.apply(name, *vs), *(t.variables for t in (x, y) if t is not None))

    # Writing

    def refusal(self, t: Twin, value_tracked: bool, recording: bool, one_value: bool) -> str:
        """The key words of the error that writing into `t` raises; empty if it is fine."""
        if recording:
            base = t.base
            if t.node is not None and t.node.leaf is not None and not t.spoiled:
                return "a leaf Variable that requires grad"
            if base is not None and (value_tracked or t.node is not None or base.node is not None):
                if t.many:
                    return "is a view and"
                if t.without_grad:
                    return "created in no_grad mode"
            if base is not None and base.node is not None and base.leaf:
                return "a view of a leaf Variable"
        if t.expands and not one_value:
            return "more than one element"
        return ""

    def write(self, t: Twin, variables: np.ndarray, node: Node | None) -> None:
        """Let `t` have new values, by a recorded operation if there is a node for it."""
        t.memory.writes += 1
        t.data[...] = primals(variables)
        base = t.base or t
        before = {id(v): v.node for v in base.views}
        if node is not None:
            if t.base is None:
                t.variables, t.node = variables, node
            else:
                assert t.replay is not None
                whole = each(self.tape.alias, base.variables)
                t.replay(whole)[...] = variables
                base.node = Node((base.node, node), whole, frees=MAYBE, comparable=False)
                base.variables = whole
        for twin in t.memory.twins:
            if twin is base and node is not None:
                continue
            if twin.base is base and base.node is not None and (node is not None or before[id(twin)] is not None):
                twin.spoiled |= twin.many
                assert twin.replay is not None
                twin.variables = each(self.tape.alias, twin.replay(base.variables))
                twin.node = Node((base.node,), twin.variables)
                if node is None:  # the primals follow below
                    twin.node.origin = twin.variables
            if twin.base is not base and twin is not t:
                twin.vague |= twin.base is not None
            if twin.node is None:
                twin.variables = self.constants(twin.data)
            elif not np.array_equal(primals(twin.variables), twin.data):
                twin.variables = each(self.tape.alias, twin.variables, twin.data)

    # Passes

    def reached(self, roots: Iterable[Node]) -> list[Node]:
        met: dict[int, Node] = {}
        waiting = list(roots)
        while waiting:
            node = waiting.pop()
            if id(node) not in met:
                met[id(node)] = node
                waiting.extend(n for n in node.inputs if n is not None)
        return list(met.values())

    def running(self, root: Node, requested: list[Node] | None) -> Run:
        """The nodes that a pass runs, and to which inputs each sends something."""
        everything = self.reached([root])
        if requested is None:
            leads = {id(n) for n in everything}
        else:
            leads = {id(n) for n in requested}
            grown = True
            while grown:
                grown = False
                for n in everything:
                    if id(n) not in leads and any(m is not None and id(m) in leads for m in n.inputs):
                        leads.add(id(n))
                        grown = True
        found = {}
        for n in everything:
            sends = [k for k, m in enumerate(n.inputs) if m is not None and id(m) in leads]
            if sends:
                found[id(n)] = (n, sends)
        return found

    def certain(self, root: Node, run: Run) -> set[int]:
        """The nodes that run for sure: those that are reached without passing through an opaque one."""
        met: set[int] = set()
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if id(node) in run and id(node) not in met:
                met.add(id(node))
                if not node.opaque:
                    waiting.extend(node.inputs[k] for k in run[id(node)][1])
        return met

    def verdict(self, root: Node, run: Run) -> Verdict:
        must, may = [], False
        certain = self.certain(root, run)
        for node, sends in run.values():
            if node.freed == YES and id(node) in certain:
                must.append(f"{node.name} {node.origin.shape} was freed")
            may |= node.freed != NO
            for saved in node.saved:
                stale = saved.memory.writes != saved.version
                may |= stale
                if stale and saved.sure and id(node) in certain and saved.inputs.intersection(sends):
                    must.append(f"what {node.name} {node.origin.shape} saved was written")
        # What a freed row depended on may be reclaimed, and then a pass that comes by is refused to be on the safe side.
        may |= any(node.freed != NO for node in self.reached([root]))
        return Verdict(must, may or bool(must))

    def free(self, root: Node, run: Run) -> None:
        certain = self.certain(root, run)
        for node, _ in run.values():
            node.freed = max(node.freed, node.frees if id(node) in certain else min(node.frees, MAYBE))

    def gradients(self, root: Twin, wanted: list[Node]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Gradients of the sum of `root`, and the sizes of the terms in them."""
        seeds = dict.fromkeys(slots(root.variables), 1.0)
        adjoints, sizes = self.tape.gradient(seeds), self.tape.gradient(seeds, magnitude=True)
        found = []
        for node in wanted:
            places = slots(node.origin)
            shape = node.origin.shape
            found.append((np.array(adjoints)[places].reshape(shape), np.array(sizes)[places].reshape(shape)))
        return found

    def opaque(self, run: Run, variables: np.ndarray) -> Node:
        """The node of a recorded gradient: what it is made of is left open, so that it may need all that the pass went through."""
        nodes = [node for node, _ in run.values()]
        saved = [Saved(s.memory, s.memory.writes, frozenset(), False) for n in nodes for s in n.saved]
        inputs = {id(n): n for n in (*nodes, *(m for n in nodes for m in n.inputs if m is not None))}
        return Node(tuple(inputs.values()), variables, saved, MAYBE, comparable=False, opaque=True)


assert {"add", "sub", "mul", "neg", "sin", "exp", "tanh"} <= OPERATIONS.keys()
