"""The order of evaluation: what is computed together, in one walk over the elements of a space."""

from __future__ import annotations

from collections.abc import Collection

from tapegrad.programs.fused.expressions import NUMBERS, Effect, Expressions, Node, Shape, contiguous
from tapegrad.programs.fused.rule_text import COMPARED
from tapegrad.programs.fused.simpler import simplified
from tapegrad.programs.fused.split_sums import with_split_sums

__all__ = ["COMPARISONS", "Group", "cleared", "host_of", "is_product", "scheduled"]

COMPARISONS = frozenset(COMPARED.values())
MANY = 20_000  # nodes from which on they are taken as they are
QUICK = 4  # operations that are done again instead of being kept in memory


class Group:
    """Effects over one space, none of which reads what another one of them writes.

    Attributes
    ----------
    graph : Expressions
    space : Shape
    effects : list of Effect
    """

    def __init__(self, schedule: _Schedule, level: int, space: Shape) -> None:
        self._schedule, self._level = schedule, level
        self.graph, self.space = schedule.graph, space
        self.effects: list[Effect] = []
        self._read: dict[int, Node] = {}

    @property
    def reads_numbers(self) -> bool:
        """Whether it reads numbers from memory that are the same in each run."""
        return bool(self._read)

    def read(self, constant: int, slot: int) -> None:
        """Let a number be read from memory."""
        self._read[constant] = "load", NUMBERS, slot, (0,) * len(self.space)

    def parts(self) -> list[Group]:
        """Groups of effects that have nothing in common but constants and what stands in memory."""
        roots: dict[int, int] = {}

        def root(k: int) -> int:
            while roots[k] != k:
                roots[k] = roots[roots[k]]
                k = roots[k]
            return k

        for k in self.needed():
            if self.node(k)[0] not in ("load", "constant"):
                roots[k] = k
                for x in self.operands_of(k):
                    if x in roots:
                        roots[root(x)] = k
        found: dict[int, Group] = {}
        for number, effect in enumerate(self.effects):
            key = root(effect.node) if effect.node in roots else -1 - number
            if key not in found:
                found[key] = Group(self._schedule, self._level, self.space)
            found[key].effects.append(effect)
        return list(found.values())

    def node(self, k: int) -> Node:
        """A node as this group sees it: what an earlier one has kept is read from memory."""
        if k in self._schedule.kept and self._schedule.levels[k] < self._level:
            return ("load", *self._schedule.kept[k], contiguous(self.graph.spaces[k]))
        return self._read[k] if k in self._read else self.graph.nodes[k]

    def operands_of(self, k: int) -> list[int]:
        """The nodes that a node is computed from; what it loads is in memory already."""
        return _operands_in(self.node(k))

    def needed(self) -> list[int]:
        """The nodes that its effects need, operands first."""
        pending = [effect.node for effect in self.effects]
        found = set(pending)
        while pending:
            for k in self.operands_of(pending.pop()):
                if k not in found:
                    found.add(k)
                    pending.append(k)
        return sorted(found)


def _operands_in(node: Node) -> list[int]:
    operation, *operands = node
    if operation in ("load", "constant"):
        return []
    return operands[{"call": 1, "loop": 1, "host": 2}.get(operation, 0) :]


def _place(buffer: int, offset: int) -> tuple[int, int]:
    return buffer, offset if buffer == NUMBERS else 0


class _Schedule:
    """Which nodes are needed, after how many others each can be computed, and which of them stand in memory for later ones."""

    def __init__(self, graph: Expressions, wanted: list[tuple[int, int]]) -> None:
        self.graph = graph
        self.effects, self.nodes = graph.effects, set[int]()
        self._need(wanted)
        if len(self.nodes) < MANY:
            self.effects = with_split_sums(graph, self.nodes, self.effects)
            self._need(wanted)
            self.effects = simplified(graph, sorted(self.nodes), self.effects)
            self._need(wanted)
        self.levels: dict[int, int] = {}
        for node in sorted(self.nodes):
            self._find_level(node)
        self.kept: dict[int, tuple[int, int]] = {}
        self._keep()

    def _find_level(self, node: int) -> None:
        """Number a node, after its operands and what writes the memory that it reads."""
        pending = [node]
        while pending:
            k = pending[-1]
            place = self._read(k)
            before = _operands_in(self.graph.nodes[k]) if place is None else [e.node for e in self._writers.get(place, ())]
            missing = [x for x in before if x not in self.levels]
            if missing:
                pending += missing
                continue
            pending.pop()
            self.levels[k] = max((self.levels[x] + (place is not None) for x in before), default=0)

    def _read(self, node: int) -> tuple[int, int] | None:
        operation, *operands = self.graph.nodes[node]
        return _place(operands[0], operands[1]) if operation == "load" else None

    def _need(self, wanted: list[tuple[int, int]]) -> None:
        """Leave out what nobody needs."""
        self._writers: dict[tuple[int, int], list[Effect]] = {}
        for effect in self.effects:
            self._writers.setdefault(_place(effect.buffer, effect.offset), []).append(effect)
        pending = [effect for place in wanted for effect in self._writers.get(place, ())]
        live, seen = list(pending), set(wanted)
        nodes: set[int] = set()
        while pending:
            stack = [pending.pop().node]
            while stack:
                node = stack.pop()
                if node in nodes:
                    continue
                nodes.add(node)
                stack += _operands_in(self.graph.nodes[node])
                place = self._read(node)
                if place is not None and place not in seen:
                    seen.add(place)
                    pending += self._writers.get(place, ())
                    live += self._writers.get(place, ())
        self.effects, self.nodes = live, nodes

    def _keep(self) -> None:
        """Find what is computed at one level and needed at a later one, and let it be written."""
        graph = self.graph
        written = {e.node: e for e in self.effects if not e.adds and e.strides == contiguous(graph.spaces[e.node])}
        for node in sorted(self.nodes):
            pending = _operands_in(graph.nodes[node])
            while pending:
                k = pending.pop()
                if self.levels[k] == self.levels[node] or k in self.kept or graph.nodes[k][0] in ("load", "constant", "fill"):
                    continue
                if graph.nodes[k][0] in COMPARISONS or graph.length(k) <= QUICK:  # made again; what they are made of may be long
                    pending += _operands_in(graph.nodes[k])
                elif k in written:
                    self.kept[k] = written[k].buffer, written[k].offset
                else:
                    self.kept[k] = graph.place_for(k)
                    self.effects.append(Effect(k, *self.kept[k], contiguous(graph.spaces[k]), False))


def scheduled(graph: Expressions, buffers: Collection[int], slots: Collection[int]) -> list[Group]:
    """The groups in which buffers and numbers are computed, in their order; what nobody needs is left out."""
    schedule = _Schedule(graph, [(buffer, 0) for buffer in buffers] + [(NUMBERS, slot) for slot in slots])
    groups: dict[tuple[int, Shape, int], Group] = {}
    for effect in schedule.effects:
        node = graph.nodes[effect.node]
        # Products are groups of their own, and so is what Python does.
        own = effect.node if node[0] == "matmul" else -2 - node[1] if node[0] == "host" else -1
        key = schedule.levels[effect.node], graph.spaces[effect.node], own
        if key not in groups:
            groups[key] = Group(schedule, *key[:2])
        groups[key].effects.append(effect)
    return [group for _, group in sorted(groups.items(), key=lambda item: item[0][0])]


def cleared(group: Group) -> list[int]:
    """Buffers into which sums are added, which are zero before."""
    return [e.buffer for e in group.effects if e.adds and e.buffer != NUMBERS]


def is_product(group: Group) -> bool:
    """Whether a group is a product of matrices."""
    return bool(group.graph.nodes[group.effects[0].node][0] == "matmul")


def host_of(group: Group) -> int:
    """The number of what Python does in a group; -1 if it is machine code."""
    operation, *operands = group.graph.nodes[group.effects[0].node]
    return operands[0] if operation == "host" else -1
