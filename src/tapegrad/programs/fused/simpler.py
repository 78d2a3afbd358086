"""Expressions of the same bits with fewer operations: signs of zeros are left as they come where nobody sees them.

An absolute-zero product looks whether its factors are zero, not at their signs; a sum has a minus before its zero only if both
terms have one. What is there for such a sign alone, like the addition of a zero, falls away, and signs are drawn out of products
so that differences take them in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tapegrad.programs.fused.expressions import Effect, Expressions
from tapegrad.programs.fused.rule_text import COMPARED
from tapegrad.programs.fused.single_precision import ROUNDED

__all__ = ["simplified"]

SIGNED, UNSIGNED, NEVER_NEGATIVE = 0, 1, 2  # what is known of a node: any number, or no zero with a minus, or nothing with one
COMPARISONS = frozenset(COMPARED.values())
POSITIVE = frozenset(["exp", "exp2", "cosh"])
UNSEEN = COMPARISONS | {"abs", "mul0"}  # signs of zeros are not seen by these,
PASSED_ON = frozenset(["neg", "mul", "sqrt", "fill", ROUNDED])  # nor by these if their own are not
OPERANDS = {"call": 1, "loop": 1, "host": 2}  # how many words stand before the operands


def simplified(graph: Expressions, nodes: Sequence[int], effects: Sequence[Effect]) -> list[Effect]:
    """The same effects of simpler nodes, which are added to the graph.

    Parameters
    ----------
    graph : Expressions
    nodes : sequence of int
        What the effects need, operands first.
    effects : sequence of Effect
    """
    return _Simpler(graph, nodes, effects).effects


class _Simpler:
    def __init__(self, graph: Expressions, nodes: Sequence[int], effects: Sequence[Effect]) -> None:
        self.graph = graph
        self.known: dict[int, int] = {}
        self.products = {k: pair for k in nodes if (pair := self._zero_product(k)) is not None}
        for k in nodes:
            self._learn(k)
        self.seen = {effect.node for effect in effects if not effect.adds}  # sums start from a zero without a minus
        for k in reversed(nodes):
            self._look(k)
        self.new: dict[int, int] = {}
        for k in nodes:
            self.new[k] = self._made(k)
            self._learn(self.new[k])
        self.effects = [effect._replace(node=self.new[effect.node]) for effect in effects]

    def _is_zero(self, node: int) -> bool:
        return self.graph.constants.get(node) == 0.0

    def _zero_product(self, k: int) -> tuple[int, int] | None:
        """The factors of an absolute-zero product; None for other nodes."""
        nodes = self.graph.nodes
        factors, node = [], k
        for _ in range(2):
            if nodes[node][0] != "where":
                return None
            _, asked, zero, node = nodes[node]
            if nodes[asked][0] != "oeq" or not self._is_zero(nodes[asked][2]) or not self._is_zero(zero):
                return None
            factors.append(nodes[asked][1])
        return (factors[0], factors[1]) if nodes[node] == ("mul", *factors) else None

    def _learn(self, k: int) -> None:
        if k not in self.known:
            self.known[k] = self._known(k)

    def _known(self, k: int) -> int:
        """What is known of a node, whose operands are known."""
        operation, *own = self.graph.nodes[k]
        if operation == "constant":
            value = self.graph.constants[k]
            return NEVER_NEGATIVE if math.copysign(1.0, value) > 0.0 else UNSIGNED if value else SIGNED
        if operation in ("call", "loop"):
            return NEVER_NEGATIVE if own[0] in POSITIVE else SIGNED
        if operation == ROUNDED:
            return self.known[own[0]] if self.known[own[0]] == NEVER_NEGATIVE else SIGNED  # what is tiny may become a zero
        if operation == "abs" or (operation in ("mul", "mul0") and own[0] == own[1]):
            return NEVER_NEGATIVE
        if operation in ("add", "sub", "mul", "mul0", "div", "where", "sqrt"):
            first, *rest = (self.known[x] for x in own[operation == "where" :])
            if operation == "sub":
                return UNSIGNED if first else SIGNED
            if operation == "where":
                return min(first, *rest)
            if first == NEVER_NEGATIVE and all(other == NEVER_NEGATIVE for other in rest):
                return NEVER_NEGATIVE
            if operation == "add":
                return UNSIGNED if first or rest[0] else SIGNED
        return SIGNED

    def _look(self, k: int) -> None:
        """Find which signs of zeros a node sees among those of its operands."""
        operation, *own = self.graph.nodes[k]
        if operation in ("load", "constant") or operation in UNSEEN or k in self.products:
            return
        if operation in ("div", "copysign"):
            self.seen.add(own[1])
        if operation in PASSED_ON or operation in ("add", "sub", "where", "div"):
            if k not in self.seen:
                return
            if operation == "add" and self.known[own[1]] and not self._ends_with_zero(own[1]):
                self.seen.add(own[1])  # has no minus, and keeps it so
            elif operation in ("add", "sub") and self.known[own[0]]:
                self.seen.add(own[0])
            elif operation == "add" and self.known[own[1]]:
                self.seen.add(own[1])
            elif operation == "div":
                self.seen.add(own[0])
            else:
                self.seen.update(own[operation == "where" :])
        elif operation != "copysign":
            self.seen.update(own[OPERANDS.get(operation, 0) :])

    def _ends_with_zero(self, k: int) -> bool:
        operation, *own = self.graph.nodes[k]
        return operation == "add" and any(map(self._is_zero, own))

    # New nodes.

    def _made(self, k: int) -> int:
        graph = self.graph
        operation, *own = graph.nodes[k]
        if operation in ("load", "constant"):
            return k
        space = graph.spaces[k]
        if k in self.products:
            x, y = (self.new[x] for x in self.products[k])
            if k in self.seen:
                return graph.node("mul0", x, y, space=space)
            return self._signed("mul0", x, y, space)
        words = OPERANDS.get(operation, 0)
        own = [*own[:words], *(self.new[x] for x in own[words:])]
        if operation in ("add", "sub"):
            return self._sum(operation, own[0], own[1], k in self.seen, space)
        if operation == "mul":
            x, y = self._merged(own[0], own[1])
            return self._signed("mul", x, y, space)
        if operation == "div":
            return self._signed("div", own[0], own[1], space)
        if operation == "neg" and graph.nodes[own[0]][0] == "neg":
            return int(graph.nodes[own[0]][1])
        return graph.node(operation, *own, space=space)

    def _do(self, operation: str, *own: int, space: tuple[int, ...]) -> int:
        made = self.graph.node(operation, *own, space=space)
        self._learn(made)
        return made

    def _sum(self, operation: str, x: int, y: int, is_seen: bool, space: tuple[int, ...]) -> int:
        graph = self.graph
        if operation == "add":
            for a, b in ((x, y), (y, x)):
                if self._is_zero(b) and graph.spaces[a] == space and (self.known[a] or not is_seen):
                    return a
            if graph.nodes[x][0] == "neg":
                x, y = y, x
        if graph.nodes[y][0] == "neg":
            operation, y = "sub" if operation == "add" else "add", int(graph.nodes[y][1])
        if operation == "sub" and graph.nodes[x][0] == "neg" and not is_seen:
            return self._do("neg", self._do("add", int(graph.nodes[x][1]), y, space=space), space=space)
        return graph.node(operation, x, y, space=space)

    def _signed(self, operation: str, x: int, y: int, space: tuple[int, ...]) -> int:
        """A product or quotient, with the signs of its operands before it."""
        negative = False
        operands = []
        for k in (x, y):
            while self.graph.nodes[k][0] == "neg":
                k, negative = self.graph.nodes[k][1], not negative
            operands.append(k)
        made = self._do(operation, *operands, space=space)
        return self._do("neg", made, space=space) if negative else made

    def _merged(self, x: int, y: int) -> tuple[int, int]:
        """Factors of a product, of which those with a constant and a power of two are one.

        No digit is lost by a power of two of one or more, and what is too large then stays so.
        """
        constants, nodes = self.graph.constants, self.graph.nodes
        for a, b in ((x, y), (y, x)):
            if a not in constants or nodes[b][0] != "mul" or not 1.0 <= abs(constants[a]) < math.inf:
                continue
            for power, z in (nodes[b][1:], nodes[b][:0:-1]):
                value = constants.get(power, 0.0)
                if value >= 1.0 and math.frexp(value)[0] == 0.5 and math.isfinite(merged := value * constants[a]):
                    made = self.graph.constant(merged)
                    self._learn(made)
                    return made, z
        return x, y
