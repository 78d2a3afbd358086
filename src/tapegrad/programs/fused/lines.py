"""Lines of LLVM's text for operations on a number, or on eight of them at once."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from tapegrad.programs.fused.rule_text import COMPARED, EXACT
from tapegrad.programs.fused.single_precision import ROUNDED

__all__ = ["LANES", "Lines", "number_text"]

LANES = 8
OPERATIONS = {
    "add": "fadd {t} {0}, {1}",
    "sub": "fsub {t} {0}, {1}",
    "mul": "fmul {t} {0}, {1}",
    "div": "fdiv {t} {0}, {1}",
    "neg": "fneg {t} {0}",
    "where": "select {c} {0}, {t} {1}, {t} {2}",
}
OPERATIONS |= {name: f"fcmp {name} {{t}} {{0}}, {{1}}" for name in COMPARED.values()}
CONTRACTED = frozenset(["add", "sub", "mul"])  # products and sums that may be one operation where that is asked for
INTRINSICS = {name: name for name in EXACT} | {"abs": "fabs", "round": "rint", "fma": "fma"}


def number_text(value: float) -> str:
    """A number, exactly."""
    return f"0x{struct.pack('>d', value).hex()}"


class Lines:
    """Lines of one function; with `contracts` a product and a sum may become one operation, with one rounding.

    Attributes
    ----------
    lines : list of str
    declared : set of str
        Declarations of what it calls.
    """

    def __init__(self, contracts: bool = False) -> None:
        self._contracts = contracts
        self.lines: list[str] = []
        self.declared: set[str] = set()
        self._count = 0

    def do(self, text: str) -> None:
        """A line without a result."""
        self.lines.append(text)

    def new(self, text: str) -> str:
        """A line with a result; its name."""
        self._count += 1
        self.lines.append(f"%v{self._count} = {text}")
        return f"%v{self._count}"

    def label(self) -> str:
        """A new name for a block."""
        self._count += 1
        return f"b{self._count}"

    def constant(self, value: float, lanes: int) -> str:
        """A number, in each lane."""
        text = number_text(value)
        return text if lanes == 1 else f"<{', '.join([f'double {text}'] * lanes)}>"

    def operation(self, name: str, operands: Sequence[str], lanes: int) -> str:
        """An operation of the processor."""
        t, c = ("double", "i1") if lanes == 1 else (f"<{lanes} x double>", f"<{lanes} x i1>")
        if name in OPERATIONS:
            text = OPERATIONS[name].format(*operands, t=t, c=c)
            return self.new(text.replace(" ", " contract ", 1) if self._contracts and name in CONTRACTED else text)
        if name == ROUNDED:
            return self.widened(self.narrowed(operands[0], lanes), lanes)
        if name == "power":
            return self._power(operands[0], lanes)
        if name == "mul0":
            return self._zero_product(operands[0], operands[1], lanes)
        called = f"llvm.{INTRINSICS[name]}.{'f64' if lanes == 1 else f'v{lanes}f64'}"
        self.declared.add(f"declare {t} @{called}({', '.join([t] * len(operands))})")
        return self.new(f"call {t} @{called}({', '.join(f'{t} {x}' for x in operands)})")

    def narrowed(self, value: str, lanes: int) -> str:
        """A number in float32."""
        wide, narrow = ("double", "float") if lanes == 1 else (f"<{lanes} x double>", f"<{lanes} x float>")
        return self.new(f"fptrunc {wide} {value} to {narrow}")

    def widened(self, value: str, lanes: int) -> str:
        """A number of float32 in float64."""
        wide, narrow = ("double", "float") if lanes == 1 else (f"<{lanes} x double>", f"<{lanes} x float>")
        return self.new(f"fpext {narrow} {value} to {wide}")

    def read(self, place: str, lanes: int, is_single: bool = False) -> str:
        """What stands at a place, of either type, in float64."""
        kind = "float" if is_single else "double"
        found = self.new(f"load {kind if lanes == 1 else f'<{lanes} x {kind}>'}, ptr {place}, align {4 if is_single else 8}")
        return self.widened(found, lanes) if is_single else found

    def store(self, value: str, place: str, lanes: int, is_single: bool = False) -> None:
        """Write a number of float64 to a place of either type."""
        kind = "float" if is_single else "double"
        value = self.narrowed(value, lanes) if is_single else value
        self.do(f"store {kind if lanes == 1 else f'<{lanes} x {kind}>'} {value}, ptr {place}, align {4 if is_single else 8}")

    def _zero_product(self, x: str, y: str, lanes: int) -> str:
        """A product that is zero where a factor is."""
        t, c = ("double", "i1") if lanes == 1 else (f"<{lanes} x double>", f"<{lanes} x i1>")
        zero = self.constant(0.0, lanes)
        asked = [self.operation("une", [value, zero], lanes) for value in (x, y)]
        both = self.new(f"and {c} {asked[0]}, {asked[1]}")
        return self.new(f"select {c} {both}, {t} {self.operation('mul', [x, y], lanes)}, {t} {zero}")

    def _power(self, value: str, lanes: int) -> str:
        """Two to the power of an integer, which is the last digits of a number."""
        t, i = ("double", "i64") if lanes == 1 else (f"<{lanes} x double>", f"<{lanes} x i64>")
        shift, one = (str(x) if lanes == 1 else f"<{', '.join([f'i64 {x}'] * lanes)}>" for x in (52, 1023 << 52))
        bits = self.new(f"bitcast {t} {value} to {i}")
        power = self.new(f"add {i} {self.new(f'shl {i} {bits}, {shift}')}, {one}")
        return self.new(f"bitcast {i} {power} to {t}")

    def call(self, name: str, operands: Sequence[str], lanes: int) -> str:
        """A function of the C library, lane by lane."""
        self.declared.add(f"declare double @{name}({', '.join(['double'] * len(operands))})")
        if lanes == 1:
            return self.new(f"call double @{name}({', '.join(f'double {x}' for x in operands)})")
        found = "undef"
        for k in range(lanes):
            own = [self.new(f"extractelement <{lanes} x double> {x}, i64 {k}") for x in operands]
            one = self.new(f"call double @{name}({', '.join(f'double {x}' for x in own)})")
            found = self.new(f"insertelement <{lanes} x double> {found}, double {one}, i64 {k}")
        return found

    def called_loop(
        self, loop: tuple[str, str], places: Sequence[tuple[str, int]], count: Any, rooms: tuple[str, str, str]
    ) -> None:
        """A loop of NumPy's over elements at places with steps, of which the result's is the last.

        Parameters
        ----------
        loop : tuple of str
            Its address, and what it is given.
        rooms : tuple of str
            For its pointers, its count and its steps.
        """
        pointers, counts, strides = rooms
        for number, (place, stride) in enumerate(places):
            self.do(f"store ptr {place}, ptr {self.new(f'getelementptr ptr, ptr {pointers}, i64 {number}')}, align 8")
            self.do(f"store i64 {stride}, ptr {self.new(f'getelementptr i64, ptr {strides}, i64 {number}')}, align 8")
        self.do(f"store i64 {count}, ptr {counts}, align 8")
        self.do(f"call void {loop[0]}(ptr {pointers}, ptr {counts}, ptr {strides}, ptr {loop[1]})")

    def splat(self, value: str, lanes: int) -> str:
        """A number in each lane."""
        if lanes == 1:
            return value
        first = self.new(f"insertelement <{lanes} x double> undef, double {value}, i64 0")
        return self.new(f"shufflevector <{lanes} x double> {first}, <{lanes} x double> undef, <{lanes} x i32> zeroinitializer")

    def rearranged(self, first: str, second: str, places: Sequence[int]) -> str:
        """Lanes of two values, of which those of the second one are counted on."""
        kind = f"<{len(places)} x double>"
        mask = ", ".join(f"i32 {place}" for place in places)
        return self.new(f"shufflevector {kind} {first}, {kind} {second}, <{len(places)} x i32> <{mask}>")

    def whole(self, value: str, lanes: int) -> str:
        """The sum of the lanes, pair by pair."""
        if lanes == 1:
            return value
        parts = [self.new(f"extractelement <{lanes} x double> {value}, i64 {k}") for k in range(lanes)]
        while len(parts) > 1:
            parts = [self.new(f"fadd double {a}, {b}") for a, b in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    def element(self, pointer: str, index: Any, is_single: bool = False) -> str:
        """Address of an element."""
        return (
            pointer if index == 0 else self.new(f"getelementptr {'float' if is_single else 'double'}, ptr {pointer}, i64 {index}")
        )

    def integer(self, operation: str, x: Any, y: Any) -> str:
        """Arithmetic on integers, done at once where both are known."""
        if isinstance(x, int) and isinstance(y, int):
            return {"add": x + y, "mul": x * y, "sub": x - y}[operation]  # type: ignore[return-value]
        if operation == "mul" and 1 in (x, y):
            return y if x == 1 else x
        if (operation == "mul" and 0 in (x, y)) or (operation == "add" and 0 in (x, y)):
            return 0 if operation == "mul" else y if x == 0 else x  # type: ignore[return-value]
        return self.new(f"{operation} i64 {x}, {y}")

    def least(self, x: str, y: int) -> str:
        """The smaller one of two integers."""
        return self.new(f"select i1 {self.new(f'icmp slt i64 {x}, {y}')}, i64 {x}, i64 {y}")

    def loop(
        self, start: Any, stop: Any, step: int, states: Sequence[str], kind: str, body: Callable[[str, list[str]], list[str]]
    ) -> list[str]:
        """A loop that carries states of a kind along; the last ones."""
        before, head, inside, after = (self.label() for _ in range(4))
        i, carried = self.label(), [self.label() for _ in states]
        self.do(f"br label %{before}")
        self.do(f"{before}:")
        self.do(f"br label %{head}")
        self.do(f"{head}:")
        place = len(self.lines)
        self.lines += [""] * (1 + len(states))
        self.do(f"br i1 {self.new(f'icmp slt i64 %{i}, {stop}')}, label %{inside}, label %{after}")
        self.do(f"{inside}:")
        results = body(f"%{i}", [f"%{name}" for name in carried])
        following = self.new(f"add i64 %{i}, {step}")
        last = self.label()
        self.do(f"br label %{last}")
        self.do(f"{last}:")
        self.do(f"br label %{head}")
        self.lines[place] = f"%{i} = phi i64 [{start}, %{before}], [{following}, %{last}]"
        for k, (name, first, result) in enumerate(zip(carried, states, results, strict=True), 1):
            self.lines[place + k] = f"%{name} = phi {kind} [{first}, %{before}], [{result}, %{last}]"
        self.do(f"{after}:")
        return [f"%{name}" for name in carried]
