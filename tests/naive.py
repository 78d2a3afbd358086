"""The slow twin of the engine: a tape of plain Python scalars, short enough to be read as obviously right."""

import math
from collections.abc import Callable

Number = float
Partial = Callable[..., Number]

# name: (primal, one partial per argument); every function takes the primals of the arguments.
OPERATIONS: dict[str, tuple[Partial, tuple[Partial, ...]]] = {
    "add": (lambda x, y: x + y, (lambda x, y: 1.0, lambda x, y: 1.0)),
    "sub": (lambda x, y: x - y, (lambda x, y: 1.0, lambda x, y: -1.0)),
    "mul": (lambda x, y: x * y, (lambda x, y: y, lambda x, y: x)),
    "div": (lambda x, y: x / y, (lambda x, y: 1.0 / y, lambda x, y: -x / (y * y))),
    "pow": (lambda x, y: x**y, (lambda x, y: y * x ** (y - 1.0), lambda x, y: x**y * math.log(x) if x > 0.0 else 0.0)),
    "neg": (lambda x: -x, (lambda x: -1.0,)),
    "abs": (abs, (lambda x: math.copysign(1.0, x) if x else 0.0,)),
    "exp": (math.exp, (math.exp,)),
    "log": (math.log, (lambda x: 1.0 / x,)),
    "sin": (math.sin, (math.cos,)),
    "tanh": (math.tanh, (lambda x: 1.0 - math.tanh(x) ** 2,)),
    "sqrt": (math.sqrt, (lambda x: 0.5 / math.sqrt(x),)),
}


class Variable:
    """A primal and the slot of the row that made it."""

    def __init__(self, tape: "Tape", slot: int, primal: Number) -> None:
        self.tape, self.slot, self.primal = tape, slot, primal


class Tape:
    """Rows in a list; a row is the (slot, partial) pairs of one operation."""

    def __init__(self) -> None:
        self.rows: list[list[tuple[int, Number]]] = []

    def leaf(self, primal: Number) -> Variable:
        return self._append(primal, [])

    def apply(self, name: str, *arguments: Variable | Number) -> Variable:
        primal, partials = OPERATIONS[name]
        primals = [x.primal if isinstance(x, Variable) else x for x in arguments]
        pairs = zip(arguments, partials, strict=True)
        return self._append(primal(*primals), [(x.slot, d(*primals)) for x, d in pairs if isinstance(x, Variable)])

    def gradient(self, seeds: dict[int, Number], magnitude: bool = False) -> list[Number]:
        """Adjoints of all rows; with `magnitude` the sum of the absolute path products, a scale for rounding errors."""
        adjoints = [0.0] * len(self.rows)
        for slot, seed in seeds.items():
            adjoints[slot] += abs(seed) if magnitude else seed
        for slot in range(len(self.rows) - 1, -1, -1):
            for argument, partial in self.rows[slot]:
                adjoints[argument] += adjoints[slot] * (abs(partial) if magnitude else partial)
        return adjoints

    def _append(self, primal: Number, row: list[tuple[int, Number]]) -> Variable:
        self.rows.append(row)
        return Variable(self, len(self.rows) - 1, primal)
