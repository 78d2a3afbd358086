"""A walk over the elements of a space as loops: blocks of elements, eight at a time, between calls of NumPy's loops."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from tapegrad.programs.fused.carried_values import carried_values, in_order
from tapegrad.programs.fused.expressions import Effect, Shape
from tapegrad.programs.fused.lines import LANES, Lines
from tapegrad.programs.fused.own_functions import LIMITS, own_function
from tapegrad.programs.fused.own_loops import own_loop, replace_large
from tapegrad.programs.fused.rule_text import Unfused
from tapegrad.programs.fused.schedule import Group, cleared
from tapegrad.programs.fused.shared_functions import Places
from tapegrad.programs.fused.single_precision import FLOAT32, loop_named

__all__ = ["loop_code"]

BLOCK = 512  # elements that NumPy's loops are called for at once
LONG_BLOCK = 4096  # elements that are added up one after the other
STACK, LEAST = 1 << 18, 8  # bytes for blocks, of which loops of many operations have shorter ones: threads may have half a megabyte


def loop_code(group: Group, places: Places) -> tuple[list[str], set[str]]:
    """Lines of a function, and declarations."""
    walk = _Walk(group, places)
    walk.clear()
    walk.outer(0, [])
    for effect in walk.totals:
        walk.finish(effect)
    return [*walk.head.lines, *walk.lines.lines], walk.lines.declared


class _Walk:
    def __init__(self, group: Group, places: Places) -> None:
        self.graph, self.group, self.effects, self._places = group.graph, group, group.effects, places
        self.lines, self.head = Lines(group.graph.fast), Lines()
        self.nodes = group.needed()
        self.dims, self._kept = _collapsed(self.nodes, group)
        self.stages = self._staged()
        self.called = dict.fromkeys(k for k in self.nodes if group.node(k)[0] == "loop")
        self._blocks: dict[tuple[int, bool], str] = {}  # of nodes, and whether they are of float32
        self._stored: dict[int, bool] = {}  # nodes that stand in their blocks
        self._constants: dict[tuple[int, bool], str] = {}
        self.totals = [e for e in self.effects if e.adds and not any(self.strides(e.strides))]
        self._sums: dict[Effect, str] = {}
        for effect in self.totals:
            self._sums[effect] = place = f"%sum{len(self._sums)}"
            self.head.do(f"{place} = alloca [2 x double], align 16")
            self.head.do(f"store [2 x double] zeroinitializer, ptr {place}, align 16")
        self.rows: dict[tuple[int, int, Shape], str] = {}
        self.spread: dict[int, dict[int, str]] = {}
        inner = [self.strides(s)[-1] for s in self._all_strides()]
        self.lanes = LANES if all(stride in (0, 1) for stride in inner) and self.dims[-1] >= LANES else 1
        self._carried: dict[int, tuple[int, int]] = {}
        if self.lanes > 1 and not self.called:
            wanted = [e.node for e in self.effects]
            self._carried = carried_values(group, self.nodes, wanted, lambda strides: self.strides(strides)[-1], self.lanes)
        self.made = self._operands_in_blocks()
        kept = [*((k, self._is_single(k)) for k in self.called), *self.made]
        self._block = _elements_at_once(len(kept) + self.graph.fast) if self.called else LONG_BLOCK
        count = min(self._block, self.dims[-1])
        for k, is_single in kept:
            name = f"%block{k}{'f' if is_single else ''}"
            self.head.do(f"{name} = alloca [{count} x {'float' if is_single else 'double'}], align 64")
            self._blocks[k, is_single] = name
        if self.called:
            self.head.do("%places = alloca [3 x ptr]")
            self.head.do("%count = alloca i64")
            self.head.do("%strides = alloca [3 x i64]")
            if self.graph.fast:
                self.head.do(f"%large = alloca [{count} x double], align 64")

    def _is_single(self, node: int) -> bool:
        """Whether what is called for a node is a loop over float32."""
        return loop_named(self.group.node(node)[1])[1] == FLOAT32

    def _operands_in_blocks(self) -> list[tuple[int, bool]]:
        """Operands of loops that stand nowhere as the loops read them, and whether these read float32."""
        found: set[tuple[int, bool]] = set()
        for node in self.called:
            is_single = self._is_single(node)
            for k in self.group.operands_of(node):
                operation, *own = self.group.node(k)
                stands = operation == "constant" or (operation == "load" and (own[0] in self.graph.singles) == is_single)
                if not stands and not (k in self.called and self._is_single(k) == is_single):
                    found.add((k, is_single))
        return sorted(found)

    def _stage_of(self, operand: int) -> int:
        """The stage at which an operand of a loop is computed, or put into a block of another type."""
        return self.stages[operand] + (operand in self.called)

    def strides(self, strides: Shape) -> Shape:
        """Strides along the dimensions that are left."""
        return tuple(strides[d] for d in self._kept) if self._kept else (0,)

    def _all_strides(self) -> list[Shape]:
        found = [self.group.node(k)[3] for k in self.nodes if self.group.node(k)[0] == "load"]
        return found + [effect.strides for effect in self.effects]

    def _staged(self) -> dict[int, int]:
        stages: dict[int, int] = {}
        for k in self.nodes:
            own = self.group.operands_of(k)
            stages[k] = max((stages[x] + (self.group.node(x)[0] == "loop") for x in own), default=0)
        return stages

    def clear(self) -> None:
        """Write zeros where sums are added up."""
        for buffer in cleared(self.group):
            place, _ = self._places.pointer(buffer, 0)
            self.lines.declared.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
            count = 8 * self.graph.sizes[buffer]
            self.lines.do(f"call void @llvm.memset.p0.i64(ptr {place}, i8 0, i64 {count}, i1 false)")

    def outer(self, d: int, indices: list[Any]) -> None:
        """The loop over one dimension; the innermost one in blocks."""
        if d < len(self.dims) - 1:
            self.lines.loop(0, self.dims[d], 1, [], "", functools.partial(self._inner, d, indices))
            return
        self.rows, self.spread = {}, {}
        for effect in self.effects:
            self._row(effect.buffer, effect.offset, effect.strides, indices)
        for k in self.nodes:
            if self.group.node(k)[0] == "load":
                _, buffer, offset, strides = self.group.node(k)
                place = self._row(buffer, offset, strides, indices)
                if not self.strides(strides)[-1]:
                    number = self.lines.read(place, 1, buffer in self.graph.singles)
                    self.spread[k] = {1: number}
                    if self.lanes > 1:
                        self.spread[k][self.lanes] = self.lines.splat(number, self.lanes)
        n, block = self.dims[-1], self._block
        if n <= block:
            self.block(0, n)
        else:
            self.lines.loop(0, n, block, [], "", functools.partial(self._one_block, n, block))

    def _inner(self, d: int, indices: list[Any], i: str, states: list[str]) -> list[str]:
        self.outer(d + 1, [*indices, i])
        return states

    def _one_block(self, n: int, block: int, start: str, states: list[str]) -> list[str]:
        size: Any = self.lines.least(self.lines.integer("sub", n, start), block) if n % block else block
        self.block(start, size)
        return states

    def _row(self, buffer: int, offset: int, strides: Shape, indices: Sequence[Any]) -> str:
        key = buffer, offset, strides
        if key not in self.rows:
            pointer, rest = self._places.pointer(buffer, offset)
            place: Any = rest
            for index, stride in zip(indices, self.strides(strides)[:-1], strict=True):
                place = self.lines.integer("add", place, self.lines.integer("mul", index, stride))
            self.rows[key] = self.lines.element(pointer, place, buffer in self.graph.singles)
        return self.rows[key]

    def block(self, start: Any, size: Any) -> None:
        """The elements of one block, stage by stage."""
        last = max(self.stages[e.node] + (self.group.node(e.node)[0] == "loop") for e in self.effects)
        for stage in range(last + 1):
            wanted = [one for one in self.made if self._stage_of(one[0]) == stage and stage < last]
            stored = {k: single for k, single in self.made if self._stage_of(k) < stage and self.group.node(k)[0] != "load"}
            self._stored = stored | {k: self._is_single(k) for k in self.called}
            if wanted or stage == last:
                self._elements(start, size, wanted, self.effects if stage == last else [])
            for k in self.called:
                if self.stages[k] == stage:
                    self._call(k, start, size)

    def _parts(self, size: Any, lanes: int) -> list[tuple[int, Any, Any]]:
        """Loops over the elements of a block: how many at once, from where and to where."""
        if lanes == 1:
            return [(1, 0, size)]
        if isinstance(size, int):
            whole: Any = size - size % lanes
            return [part for part in ((lanes, 0, whole), (1, whole, size)) if part[1] != part[2]]
        whole = self.lines.new(f"and i64 {size}, -{lanes}")
        return [(lanes, 0, whole), (1, whole, size)] if self.dims[-1] % lanes else [(lanes, 0, whole)]

    def _elements(self, start: Any, size: Any, wanted: Sequence[tuple[int, bool]], effects: Sequence[Effect]) -> None:
        summed = [e for e in effects if e.adds and not self.strides(e.strides)[-1]]
        totals: dict[Effect, str] = {}
        for lanes, first, stop in self._parts(size, self.lanes):
            kind = "double" if lanes == 1 else f"<{lanes} x double>"
            body = functools.partial(self._body, start, lanes, wanted, effects, summed)
            states = [self.lines.constant(0.0, lanes)] * len(summed)
            if lanes > 1:
                states += [self._before(k, start) for k in self._carried]
            found = self.lines.loop(first, stop, lanes, states, kind, body)[: len(summed)]
            for effect, state in zip(summed, found, strict=True):
                one = self.lines.whole(state, lanes)
                totals[effect] = self.lines.new(f"fadd double {totals[effect]}, {one}") if effect in totals else one
        for effect, total in totals.items():
            self._add_up(effect, total)

    def _before(self, node: int, start: Any) -> str:
        """What is carried into the first elements, in the last lanes; where there are none, it is not read outside of arrays."""
        if self.dims[-1] % self.lanes and not isinstance(start, int):
            start = self.lines.least(start, self.dims[-1] - self.lanes)
        names: dict[int, str] = {}
        for k in in_order(self.group, [node], {}):
            names[k] = self._value(k, self.lanes, start, start, names)
        first = self.lanes - self._carried[node][1]
        return self.lines.rearranged(names[node], names[node], [max(k - first, 0) for k in range(self.lanes)])

    def _body(
        self,
        start: Any,
        lanes: int,
        wanted: Sequence[tuple[int, bool]],
        effects: Sequence[Effect],
        summed: Sequence[Effect],
        i: str,
        states: list[str],
    ) -> list[str]:
        index = self.lines.integer("add", start, i)
        names: dict[int, str] = {}
        kind = "double" if lanes == 1 else f"<{lanes} x double>"
        carried = self._carried if lanes > 1 else {}
        before_them = dict(zip(carried, states[len(summed) :], strict=True))
        for k in in_order(self.group, [*(k for k, _ in wanted), *(e.node for e in effects)], carried, self._stored):
            if k in carried:
                other, by = carried[k]
                names[k] = self.lines.rearranged(before_them[k], names[other], range(lanes - by, 2 * lanes - by))
            else:
                names[k] = self._value(k, lanes, index, i, names)
        for k, is_single in wanted:
            self.lines.store(names[k], self.lines.element(self._blocks[k, is_single], i, is_single), lanes, is_single)
        results: list[str] = []
        for effect in effects:
            value = names[effect.node]
            if effect in summed:
                results.append(self.lines.new(f"fadd {kind} {states[len(results)]}, {value}"))
                continue
            place = self._address(effect.buffer, effect.offset, effect.strides, index)
            if effect.adds:
                value = self.lines.new(f"fadd {kind} {self.lines.read(place, lanes)}, {value}")
            self.lines.store(value, place, lanes, effect.buffer in self.graph.singles)
        return [*results, *(names[other] for other, _ in carried.values())]

    def _address(self, buffer: int, offset: int, strides: Shape, index: Any) -> str:
        row = self.rows[buffer, offset, strides]
        return self.lines.element(row, self.lines.integer("mul", index, self.strides(strides)[-1]), buffer in self.graph.singles)

    def _value(self, node: int, lanes: int, index: Any, local: str, names: dict[int, str]) -> str:
        operation, *operands = self.group.node(node)
        if operation == "constant":
            return self.lines.constant(self.graph.constants[node], lanes)
        if operation == "fill":
            return names[operands[0]]
        if operation == "load":
            if node in self.spread:
                return self.spread[node][lanes]
            place = self._address(operands[0], operands[1], operands[2], index)
            return self.lines.read(place, lanes, operands[0] in self.graph.singles)
        if node in self._stored:
            is_single = self._stored[node]
            return self.lines.read(self.lines.element(self._blocks[node, is_single], local, is_single), lanes, is_single)
        if operation == "call":
            return self.lines.call(operands[0], [names[k] for k in operands[1:]], lanes)
        return self.lines.operation(operation, [names[k] for k in operands], lanes)

    def _call(self, node: int, start: Any, size: Any) -> None:
        """NumPy's loop over a block, or another one that takes less time where that may be."""
        _, name, *operands = self.group.node(node)
        function, target = own_function(name) if self.graph.fast else None, self._blocks[node, self._is_single(node)]
        if function is None or not (source := self._next_to_each_other(operands[0], start)):
            self._call_numpys(node, start, size, target)
            return
        lines, limit = self.lines, LIMITS.get(name)
        is_large = own_loop(lines, self._parts(size, LANES), function, source, target, limit)
        if limit is not None:
            again, after = lines.label(), lines.label()
            lines.do(f"br i1 {is_large}, label %{again}, label %{after}")
            lines.do(f"{again}:")
            self._call_numpys(node, start, size, "%large")
            replace_large(lines, size, source, target, "%large", limit)
            lines.do(f"br label %{after}")
            lines.do(f"{after}:")

    def _call_numpys(self, node: int, start: Any, size: Any, target: str) -> None:
        _, name, *operands = self.group.node(node)
        called, is_single = self._places.loop(name), self._is_single(node)
        item = 4 if is_single else 8
        places: list[tuple[str, int]] = []
        for k in operands:
            operation, *own = self.group.node(k)
            if operation == "constant":
                places.append((self._constant(k, is_single), 0))
            elif (k, is_single) in self._blocks:
                places.append((self._blocks[k, is_single], item))
            else:
                # Of a single element too: NumPy's loops take another way for steps of zero, with other last digits.
                stride = self.strides(own[2])[-1] if self._kept else 1
                places.append((self._address(own[0], own[1], own[2], start), item * stride))
        places.append((target, item))
        self.lines.called_loop(called, places, size, ("%places", "%count", "%strides"))

    def _next_to_each_other(self, node: int, start: Any) -> str:
        """Where the elements of a block are that a node is read from; empty if they are not in a row."""
        operation, *own = self.group.node(node)
        if (node, False) in self._blocks:
            return self._blocks[node, False]
        if operation != "load":
            return ""
        is_row = self._kept and self.strides(own[2])[-1] == 1
        return self._address(own[0], own[1], own[2], start) if is_row else ""

    def _constant(self, node: int, is_single: bool) -> str:
        if (node, is_single) not in self._constants:
            self._constants[node, is_single] = name = f"%constant{node}{'f' if is_single else ''}"
            kind = "float" if is_single else "double"  # the text of a number, which has few digits then, is the same
            self.head.do(f"{name} = alloca {kind}, align 8")
            self.head.do(f"store {kind} {self.head.constant(self.graph.constants[node], 1)}, ptr {name}, align 8")
        return self._constants[node, is_single]

    def _add_up(self, effect: Effect, total: str) -> None:
        """Add the sum of a block to what there is: of all elements with what was lost by rounding (Neumaier, ZAMM 54, 1974)."""
        lines = self.lines
        if effect not in self._sums:
            place = self.rows[effect.buffer, effect.offset, effect.strides]
            before = lines.new(f"load double, ptr {place}, align 8")
            lines.do(f"store double {lines.new(f'fadd double {before}, {total}')}, ptr {place}, align 8")
            return
        place = self._sums[effect]
        rest = lines.element(place, 1)
        before, lost = (lines.new(f"load double, ptr {p}, align 8") for p in (place, rest))
        found = lines.new(f"fadd double {before}, {total}")
        back = lines.new(f"fsub double {found}, {before}")
        own = lines.new(f"fsub double {found}, {back}")
        error = lines.new(f"fadd double {lines.new(f'fsub double {before}, {own}')}, {lines.new(f'fsub double {total}, {back}')}")
        lines.do(f"store double {found}, ptr {place}, align 8")
        lines.do(f"store double {lines.new(f'fadd double {lost}, {error}')}, ptr {rest}, align 8")

    def finish(self, effect: Effect) -> None:
        """Write a sum of all elements; what was lost by rounding is nan where the sum is infinite."""
        lines, place = self.lines, self._sums[effect]
        found = lines.new(f"load double, ptr {place}, align 8")
        lost = lines.new(f"load double, ptr {lines.element(place, 1)}, align 8")
        known = lines.new(f"fcmp ord double {lost}, {lost}")
        both = lines.new(f"fadd double {found}, {lost}")
        value = lines.new(f"select i1 {known}, double {both}, double {found}")
        at = lines.element(*self._places.pointer(effect.buffer, effect.offset))
        lines.do(f"store double {value}, ptr {at}, align 8")


def _elements_at_once(count: int) -> int:
    """How many elements there are in so many blocks that stand on the stack.

    Raises
    ------
    Unfused
        If there is no room for them.
    """
    size = BLOCK
    while 8 * size * count > STACK and size > LEAST:
        size //= 2
    if 8 * size * count > 4 * STACK:
        raise Unfused("a loop of too many operations")
    return size


def _collapsed(nodes: Sequence[int], group: Group) -> tuple[list[int], list[int]]:
    """Extents of the dimensions that are left when those that can be walked as one are, and which ones they are."""
    every = [group.node(k)[3] for k in nodes if group.node(k)[0] == "load"] + [effect.strides for effect in group.effects]
    dims: list[int] = []
    kept: list[int] = []
    for d, extent in enumerate(group.space):
        if extent == 1:
            continue
        if kept and all(strides[kept[-1]] == strides[d] * extent for strides in every):
            dims[-1] *= extent
            kept[-1] = d
        else:
            dims.append(extent)
            kept.append(d)
    return dims or [1], kept
