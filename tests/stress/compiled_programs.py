"""Random programs for Numba: a function with its helpers as text, and arguments to call it with. A seed gives one program."""

from __future__ import annotations

import collections
from dataclasses import dataclass
from typing import Any

import numpy as np
from program_containers import Containers
from program_expressions import Scope

SPECIAL = np.array([0.0, 1.0, -1.0, 0.5, 2.0, 0.0, 1.0, -0.0, 1.5])
HEAD = "FACTOR = {factor}\nTABLE = np.array([0.5, -1.0, 2.0, 0.25])\n"
Pair = collections.namedtuple("Pair", "first second")


def items_of(a):  # type: ignore[no-untyped-def]
    """Products of items with the first one, and the last one: what is written meanwhile is seen."""
    for v in a:
        yield v * a[0]
    yield a[-1]


def weighted(a):  # type: ignore[no-untyped-def]
    """A number that depends on each item of an array in another way."""
    s = 0.0
    for v in a.flat:
        s = s * 0.75 + v * (v + 1.0)
    return s


NESTED = {
    "recursive": """
@numba.njit
def {0}(u, n):
    if n <= 0 or u {1} 1.5:
        return {2}
    return {0}(u * 0.5, n - 1) + u * n
""",
    "star": """
@numba.njit
def {0}(*args):
    s = 0.0
    for a in args:
        s = s * 0.5 + a * {1}
    return s
""",
    "applied": """
@numba.njit
def inner_{0}(u):
    return u * u - {1}

@numba.njit
def twice_{0}(g, u):
    return g(g(u))

@numba.njit
def {0}(u):
    return twice_{0}(inner_{0}, u) * {2}
""",
    "closure": """
@numba.njit
def {0}(u):
    k = u * {1}
    def inner(t):
        return t * k + FACTOR
    return inner(u) - inner({2})
""",
    "made": """
def make_{0}(k):
    @numba.njit
    def inner(u, p=2.0):
        return np.tanh(u) * k + u * p
    return inner
{0} = make_{0}({1})
""",
    "class": """
@jitclass([("total", numba.float64), ("count", numba.int64)])
class Sum_{0}:
    def __init__(self, start):
        self.total = start
        self.count = 0
    def add(self, v):
        self.total = self.total * 0.5 + v * v
        self.count += 1
        return self.total

@numba.njit
def {0}(u):
    s = Sum_{0}(u * {1})
    s.add(u)
    s.total += {2}
    return s.add(1.0) * s.count
""",
}
CALLS = {
    "recursive": "{}({{}}, 3)",
    "star": "{}({{}}, {{}}, 1.0)",
    "applied": "{}({{}})",
    "closure": "{}({{}})",
    "made": "{}({{}}, p={{}})",
}


@dataclass
class Program:
    """The text of a program whose function is `f(x, c, n)`, the kind of its result, and points for `x` and `c`."""

    seed: int
    text: str
    points: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], int]]
    number: bool


class Programs(Containers):
    """Puts functions together."""

    def numbers_helper(self, known: list[tuple[str, str]]) -> str:
        """A helper of numbers."""
        kind = self.pick([*NESTED, "plain", "plain", "plain"])
        name = self.name("g")
        if kind != "plain":
            known.append((name, CALLS.get(kind, "{}({{}})").format(name)))
            fill = [
                name,
                self.pick(["<", ">", "=="]) if kind == "recursive" else self.pick(["0.5", "1.5", "1.0"]),
                self.pick(["u", "0.25", "u * u"]),
            ]
            if kind in ("closure", "class"):
                fill[2] = self.pick(["2.0", "0.25"])
            return str(NESTED[kind].format(*fill))
        scope = Scope(floats=["u", "h", "acc"], functions=list(known), depth=1)
        first = [f"if {self.truth(scope)}:", f"    {self.returned(scope)}"] if self.chance(0.5) else []
        lines = ["acc = 0.0", *first, *self.block(scope, 2)]
        body = "\n".join(f"    {line}" for line in [*lines, f"{self.returned(scope)} + acc"])
        known.append(
            (name, self.pick([f"{name}({{}} * 1.0, {{}} * 1.0)", f"{name}({{}} * 1.0)", f"{name}(h={{}} * 1.0, u={{}} * 1.0)"]))
        )
        return f"\n@numba.njit\ndef {name}(u, h=0.5):\n{body}\n"

    def arrays_helper(self, known: list[tuple[str, str]], n: int) -> str:
        """A helper that writes into its arrays, and gives one of them or a view."""
        name, shape = self.name("h"), self.pick([(n,), (n,), (3,), (2, 3)])
        shapes = [shape] * int(self.rng.integers(1, 3))
        names = ["wa", "wb"][: len(shapes)]
        scope = Scope(floats=["u", "acc"], arrays=dict(zip(names, shapes, strict=True)), functions=list(known), depth=1)
        lines = ["acc = 0.0", *self.block(scope, 2)]
        result = self.pick([names[0], names[-1], f"{names[0]}[::-1]", f"{names[0]} * 2.0"])
        body = "\n".join(f"    {line}" for line in [*lines, f"return {result}"])
        self.procedures.append((name, shapes))
        return f"\n@numba.njit\ndef {name}({', '.join(names)}, u):\n{body}\n"

    def program(self, seed: int) -> Program:
        """Everything, from a seed."""
        n = int(self.pick([4, 5, 6, 6]))
        matrix = self.chance(0.25)
        self.sizes, self.usual = [n], int(self.pick([1, 1, 1, 2]))
        parts, known = [HEAD.format(factor=self.pick(["2.5", "0.5", "2"]))], list[tuple[str, str]]()
        if self.chance(0.5):
            parts.append(self.numbers_helper(known))
        if self.chance(0.25):
            early, self.early = self.early, self.branch  # type: ignore[method-assign]
            parts.append(self.arrays_helper(known, n))
            self.early = early  # type: ignore[method-assign]
        shape = (2, 3) if matrix else (n,)
        scope = Scope(floats=["FACTOR", "acc"], ints=["n"], arrays={"x": shape, "c": (n,), "TABLE": (4,)}, functions=known)
        scope.fixed |= {"FACTOR", "TABLE"} if self.chance(0.25) else {"FACTOR", "TABLE", "c"}
        number = self.chance(0.85)
        if not number:
            self.early = self.branch  # type: ignore[method-assign]
        lines = ["acc = 0.0", *self.block(scope, int(self.rng.integers(2, 4)))]
        arrays = [a for a in scope.arrays if a not in scope.fixed]
        used = [*(f"{s}" for s in scope.floats[2:][-3:]), *(f"weighted({a})" for a in dict.fromkeys([arrays[0], *arrays[-2:]]))]
        result = " + ".join(["acc", *used])
        if number:
            lines.append(f"return {result}")
        else:
            vectors = self.arrays_of(scope, 1)
            lines.append(f"return {self.array(scope, scope.arrays[self.pick(vectors)])} * 1.0")
        option = "(parallel=True)" if self.chance(0.01) else "(error_model='numpy')" if self.chance(0.06) else ""
        parts.append(f"\n@numba.njit{option}\ndef f(x, c, n):\n" + "\n".join(f"    {line}" for line in lines) + "\n")
        return Program(seed, "".join(parts), self.points(shape, n), number)

    def points(self, shape: tuple[int, ...], n: int) -> list[tuple[Any, Any, int]]:
        """One point without equal numbers, some with many."""
        rng = self.rng
        layout = int(rng.integers(8))
        found = []
        for k in range(1 if self.ambiguous else 10):
            x = rng.uniform(-1.5, 2.5, size=shape) if k == 0 else rng.choice(SPECIAL, size=shape)
            c = rng.uniform(-1.0, 2.0, size=n) if k % 4 == 0 else rng.choice(SPECIAL, size=n)
            if k % 3 == 2:
                x = np.full(shape, rng.choice(SPECIAL))
            if k % 3 == 0:
                x = np.where(rng.random(size=shape) < 0.5, rng.uniform(-1.5, 2.5, size=shape), x)
            if layout == 1:
                x = np.asfortranarray(x)
            if layout == 2:
                x = np.stack([x, x], axis=-1)[..., 0]
            found.append((x, c, int(rng.integers(-1, 4))))
        return found


def program(seed: int) -> Program:
    """The program of a seed."""
    return Programs(seed).program(seed)


if __name__ == "__main__":
    import sys

    print(program(int(sys.argv[1])).text)
