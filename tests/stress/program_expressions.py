"""Random expressions of numbers, integers, truth values and arrays, as people write them for Numba.

Every array has a shape that is known while the text is made, so programs are valid, whatever values they meet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Shape = tuple[int, ...]

SMOOTH = [
    "np.sin({})",
    "np.cos({})",
    "math.sin({})",
    "np.tanh({})",
    "math.tanh({})",
    "np.arctan({})",
    "math.atan({})",
    "np.exp(-abs({}))",
]
SCALAR = [
    *SMOOTH, "math.exp(min({}, 1.0))", "np.sqrt(1.0 + {} ** 2)", "math.sqrt(abs({}) + 0.5)", "np.log(2.0 + abs({}))",
    "math.log1p(abs({}))", "np.log1p({} ** 2)", "math.cos({})", "abs({})", "np.abs({})", "-({})", "({}) ** 2", "({}) ** 3",
    "1.0 / (1.0 + {} ** 2)", "math.erf({})", "np.square({})", "math.fabs({})", "np.floor({})", "math.floor({})", "np.sign({})",
    "float({})", "np.expm1(-abs({}))", "np.arcsinh({})", "math.asinh({})", "round({}, 1)", "math.sqrt(abs({}))",
    "np.sinh(np.tanh({}))", "math.lgamma(abs({}) + 1.0)", "np.degrees({})", "np.exp2(np.tanh({}))", "np.rint({})", "math.erfc({})",
    "np.reciprocal(abs({}) + 1.0)", "np.log2(abs({}) + 1.0)", "np.log10(abs({}) + 1.0)", "(+({}))", "np.float64({})",
    "abs({}) ** 0.5",
    "2.0 ** np.tanh({})", "np.sinc({})", "np.positive({})", "int({})", "math.trunc({})",
]  # fmt: skip
PAIRS = [
    "({}) + ({})", "({}) - ({})", "({}) * ({})", "({}) / (abs({}) + 0.5)", "({}) / (1.0 + ({}) ** 2)", "min({}, {})", "max({}, {})",
    "np.maximum({}, {})", "np.minimum({}, {})", "math.hypot({}, {})", "np.hypot({}, {})", "math.atan2({}, {})",
    "np.arctan2({}, {})",
    "np.fmax({}, {})", "np.fmin({}, {})", "({}) % (abs({}) + 1.3)", "({}) // (abs({}) + 1.3)", "math.copysign({}, {})",
    "np.copysign({}, {})", "np.logaddexp({}, {})", "np.fmod({}, abs({}) + 1.3)", "(abs({}) + 0.5) ** np.tanh({})",
    "np.power(abs({}) + 0.5, np.cos({}))", "math.pow(abs({}) + 0.5, np.sin({}))", "({}) and ({})", "({}) or ({})",
    "np.add({}, {})", "np.multiply({}, {})", "np.subtract({}, {})", "({}) / (({}) + 0.25)", "({}) + ({}) * 2", "({}) * 0.5 - ({})",
]  # fmt: skip
WHOLE = [
    "np.sin({})", "np.cos({})", "np.tanh({})", "np.exp(-np.abs({}))", "np.sqrt(1.0 + {} ** 2)", "np.abs({})", "-({})", "({}) ** 2",
    "({}) * 0.5", "({}) + 1.0", "np.log(2.0 + np.abs({}))", "np.square({})", "np.sign({})", "np.floor({})", "np.sqrt(np.abs({}))",
    "1.0 / (1.0 + ({}) ** 2)", "2.0 - ({})", "({}) ** 3", "np.maximum({}, 0.0)", "np.minimum({}, 0.5)", "({}) * 2 + 1",
    "np.arctan({})",
    "np.negative({})", "({}) % 1.3", "({}) / 2", "2.0 ** np.tanh({})", "np.fabs({})", "abs({})",
]  # fmt: skip
WHOLE_PAIRS = [
    "({}) + ({})", "({}) - ({})", "({}) * ({})", "({}) / (np.abs({}) + 0.5)", "np.maximum({}, {})", "np.minimum({}, {})",
    "np.hypot({}, {})", "np.arctan2({}, {})", "({}) / (1.0 + ({}) ** 2)", "np.add({}, {})", "np.multiply({}, {})",
    "np.fmax({}, {})",
    "np.fmin({}, {})", "np.copysign({}, {})", "np.logaddexp({}, {})", "np.power(np.abs({}) + 0.5, np.cos({}))",
    "np.fmod({}, np.abs({}) + 1.3)",
    "({}) * 0.5 + ({}) * 2",
]  # fmt: skip
REDUCED = [
    "{}.sum()", "np.sum({})", "{}.mean()", "np.mean({})", "{}.max()", "np.max({})", "{}.min()", "np.min({})", "np.prod({})",
    "{}.prod()",
    "np.var({})", "{}.std()", "np.std({})", "np.ptp({})", "np.nansum({})", "np.nanmean({})", "np.nanmax({})", "np.nanmin({})",
    "np.linalg.norm({})", "np.nanvar({})", "np.nanstd({})", "np.nanprod({})",
]  # fmt: skip
VECTORS = [
    "np.cumsum({})", "np.sort({})", "np.roll({}, 1)", "{}[::-1]", "np.flip({})", "{}[np.argsort({})]", "np.cumprod({})",
    "{}.cumsum()",
    "np.append({}[1:], {}[0])", "np.concatenate(({}[2:], {}[:2]))", "np.clip({}, -0.5, 1.0)", "np.nan_to_num({})",
    "np.nancumsum({})",
    "{}[np.argsort({})[::-1]]", "np.hstack(({}[:1], {}[1:]))", "np.ravel({})", "np.asarray({})", "np.ascontiguousarray({})",
    "np.append(np.diff({}.copy()), 0.5)", "np.take({}, np.arange(len({}))[::-1])", "np.round({})", "{}.copy()",
    "{}.clip(-0.5, 1.0)",
]  # fmt: skip
DEAR = frozenset(
    ["np.linalg", "np.median", "np.percentile", "np.where", "np.unique", "np.kron", "np.convolve", "np.interp", "stack"]
)
LITERALS = ["0.5", "2.0", "1.0", "-1.0", "0.0", "0.25", "1.5", "3.0", "1", "2"]


@dataclass
class Scope:
    """The names that a place in a program knows."""

    floats: list[str] = field(default_factory=list)
    ints: list[str] = field(default_factory=list)  # of any sign
    arrays: dict[str, Shape] = field(default_factory=dict)
    indices: dict[str, Shape] = field(default_factory=dict)  # arrays of integers from zero on
    functions: list[tuple[str, str]] = field(default_factory=list)  # helpers of numbers, and the form of a call
    fixed: set[str] = field(default_factory=set)  # what a loop counts with, and constants of the module
    depth: int = 0
    inner: bool = False  # whether it is the body of a loop

    def inside(self, loop: bool = False) -> Scope:
        """The names in a block: what it makes is not known after it."""
        return Scope(
            list(self.floats), list(self.ints), dict(self.arrays), dict(self.indices), list(self.functions), set(self.fixed),
            self.depth + 1, self.inner or loop,
        )  # fmt: skip


class Expressions:
    """Makes expressions from a stream of random numbers."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.count = 0
        self.ambiguous = False  # whether equal numbers leave open whose derivative counts
        self.usual = 1  # how deep expressions are if nothing else is said
        self.dear = 1  # how many functions that take seconds to compile are still allowed

    def name(self, kind: str) -> str:
        """A new name."""
        self.count += 1
        return f"{kind}{self.count}"

    def pick(self, items: Sequence[Any]) -> Any:
        """One of several."""
        return items[int(self.rng.integers(len(items)))]

    def chance(self, p: float) -> bool:
        """True as often as `p` says."""
        return bool(self.rng.random() < p)

    def _form(self, forms: list[str], *parts: str) -> str:
        form = self.pick(forms)
        while any(word in form for word in DEAR) and not self.dear:
            form = self.pick(forms)
        if any(word in form for word in DEAR):
            self.dear -= 1
        self.ambiguous |= "nanmax" in form or "nanmin" in form
        holes = form.count("{}")
        return form.format(*(parts[k % len(parts)] for k in range(holes)))

    def arrays_of(self, scope: Scope, ndim: int | None = None, shape: Shape | None = None) -> list[str]:
        """Names of arrays of a number of dimensions or a shape."""
        return [n for n, s in scope.arrays.items() if (ndim is None or len(s) == ndim) and (shape is None or s == shape)]

    def place(self, scope: Scope, shape: Shape) -> str:
        """An index of one item."""
        return ", ".join(self.index(scope, n) for n in shape)

    def index(self, scope: Scope, n: int) -> str:
        """A valid index of an axis, also from its end."""
        if scope.ints and self.chance(0.5):
            return f"{self.pick(scope.ints)} % {n}"
        return str(int(self.rng.integers(-n, n)))

    def integer(self, scope: Scope) -> str:
        """An integer of any sign."""
        kind = self.rng.integers(8)
        if kind < 3 and scope.ints:
            return str(self.pick(scope.ints))
        if kind == 3:
            return f"int({self.number(scope, 1)})"
        if kind == 4 and scope.ints:
            a = self.pick(scope.ints)
            return str(self.pick([f"({a} + 1)", f"({a} * 2)", f"({a} - 1)", f"({a} // 2)", f"({a} % 3)", f"abs({a})"]))
        if kind == 5 and scope.arrays:
            a = self.pick(list(scope.arrays))
            return str(self.pick([f"np.argmax({a})", f"{a}.argmin()", f"len({a})", f"{a}.size", f"{a}.shape[0]"]))
        if kind == 6 and scope.indices:
            a = self.pick(list(scope.indices))
            return f"{a}[{self.place(scope, scope.indices[a])}]"
        if kind == 7 and self.arrays_of(scope, 1):
            a = self.pick(self.arrays_of(scope, 1))
            forms = [
                f"np.searchsorted(np.sort({a}), {self.number(scope, 0)})",
                f"np.count_nonzero({a} > 0.5)",
                f"np.sum({a} > 0.5)",
            ]
            return str(self.pick(forms))
        return str(int(self.rng.integers(0, 4)))

    def truth(self, scope: Scope, depth: int = 1) -> str:
        """A condition."""
        kind = self.rng.integers(10)
        a, b = self.number(scope, depth), self.number(scope, 0)
        if kind < 5:
            return f"{a} {self.pick(['<', '>', '<=', '>=', '==', '!='])} {b}"
        if kind == 5:
            return f"{b} < {a} < 2.0"
        if kind == 6:
            return f"({self.truth(scope, 0)}) {self.pick(['and', 'or'])} not ({self.truth(scope, 0)})" if depth else f"{a} > {b}"
        if kind == 7 and scope.ints:
            return f"{self.pick(scope.ints)} % 2 == 0"
        if kind == 8 and scope.arrays:
            c = self.pick(list(scope.arrays))
            return f"{self.pick(['np.any', 'np.all'])}({c} {self.pick(['>', '<=', '!='])} {b})"
        return str(self.pick([f"{a} > {b}", f"bool({a})", f"np.isnan({a})", f"math.isfinite({a})"]))

    def number(self, scope: Scope, depth: int | None = None) -> str:
        """A float64, or an integer in its place."""
        depth = self.usual if depth is None else depth
        kind = self.rng.integers(20) if depth > 0 else self.rng.integers(5)
        if kind < 2 and scope.floats:
            return str(self.pick(scope.floats))
        if kind < 4 and scope.arrays:
            a = self.pick(list(scope.arrays))
            return f"{a}[{self.place(scope, scope.arrays[a])}]"
        if kind < 5:
            return str(self.pick(scope.ints)) if scope.ints and self.chance(0.3) else str(self.pick(LITERALS))
        if kind < 8:
            return self._form(SCALAR, self.number(scope, depth - 1))
        if kind < 13:
            return self._form(PAIRS, self.number(scope, depth - 1), self.number(scope, depth - 1))
        if kind == 13:
            return f"({self.number(scope, depth - 1)} if {self.truth(scope, 0)} else {self.number(scope, depth - 1)})"
        if kind == 14 and scope.functions:
            form = self.pick(scope.functions)[1]
            return str(form.format(*(self.number(scope, depth - 1) for _ in range(form.count("{}")))))
        if kind < 18 and scope.arrays:
            return self.reduced(scope, depth - 1)
        if kind == 18:
            return self.sum_of_items(scope, depth)
        return f"({self.number(scope, depth - 1)}) * {self.number(scope, 0)}"

    def sum_of_items(self, scope: Scope, depth: int) -> str:
        """A comprehension."""
        if not scope.arrays:
            return "1.0"
        a, v = self.pick(list(scope.arrays)), self.name("v")
        inner = scope.inside()
        inner.floats.append(v)
        source = a if len(scope.arrays[a]) == 1 else f"{a}.flat"
        return f"{self.pick(['sum', 'max', 'min'])}([{self.number(inner, depth - 1)} * 1.0 for {v} in {source}])"

    def reduced(self, scope: Scope, depth: int) -> str:
        """An array made into a number."""
        kind = self.rng.integers(9)
        vectors, matrices = self.arrays_of(scope, 1), self.arrays_of(scope, 2)
        if kind < 4:
            shape = scope.arrays[self.pick(list(scope.arrays))]
            return self._form(REDUCED, f"({self.array(scope, shape, depth)})")
        if kind == 4 and vectors:
            shape = scope.arrays[self.pick(vectors)]
            a, b = self.array(scope, shape, depth), self.array(scope, shape, depth)
            return self._form(["np.dot({}, {})", "(({}) @ ({}))", "({}).dot({})", "np.trapezoid({}, np.cumsum({}))"], a, b)
        if kind == 5 and matrices:
            m = self.pick(matrices)
            rows, columns = scope.arrays[m]
            forms = ["np.trace({})", "({} @ {}.T).sum()", "np.dot({}.T, {})[0, 1]", "{}.sum(axis=0)[1]", "np.sum({}, axis=1)[0]",
                     "{}.T.ravel()[1]", "{}.T.mean()", "{}.reshape({})[{}]", "np.diag({}).sum()", "np.linalg.norm({})"]  # fmt: skip
            form = self.pick(forms)
            if "reshape" in form:
                return f"{m}.copy().reshape({rows * columns})[{self.index(scope, rows * columns)}]"
            if rows == columns and self.dear and self.chance(0.3):
                self.dear -= 1
                regular = f"({m} * 0.1 + np.eye({rows}) * 3.0)"
                return str(self.pick([f"np.linalg.det({regular})", f"np.linalg.inv({regular})[0, 1]",
                                      f"np.linalg.solve({regular}, {m}[0]).sum()",
                                      f"np.linalg.solve({regular}, {m})[0, 1]"]))  # fmt: skip
            return str(form.replace("{}", m))
        if kind == 6 and vectors:
            a = self.pick(vectors)
            bound = self.number(scope, 0)
            forms = [f"{a}[{a} > {bound}].sum()", f"np.median({a})", f"np.percentile({a}, 40.0)", f"np.unique({a}).sum()",
                     f"np.sum(np.diff({a}.copy()) ** 2)", f"np.interp({bound}, np.array([-1.0, 0.5, 2.0]), {a}[:3])",
                     f"{a}[np.nonzero({a})[0]].sum()",
                     f"np.where({a} > {bound}, {a}, 0.25).sum()", f"np.outer({a}, {a})[0, 1]",
                     f"np.convolve({a}, {a})[2]"]  # fmt: skip
            form = self.pick(forms)
            self.ambiguous |= "median" in form or "percentile" in form
            if any(word in form for word in DEAR):
                if not self.dear:
                    return f"{a}.sum()"
                self.dear -= 1
            return str(form)
        if kind == 7 and vectors:
            a, k = self.pick(vectors), self.name("k")
            inner = scope.inside()
            inner.ints.append(k)
            items = f"[{self.number(inner, depth)} * 1.0 for {k} in range({scope.arrays[a][0]})]"
            return f"np.array({items}).{self.pick(['sum', 'max', 'mean'])}()"
        a = self.pick(list(scope.arrays))
        return self._form(REDUCED, a)

    def array(self, scope: Scope, shape: Shape, depth: int | None = None) -> str:
        """An array of a shape."""
        depth = self.usual if depth is None else depth
        known = self.arrays_of(scope, shape=shape)
        views = self.views(scope, shape) if depth > 0 or not known else []
        if depth <= 0 or self.chance(0.25):
            if known and (not views or self.chance(0.6)):
                return str(self.pick(known))
            if views:
                return str(self.pick(views))
            return self.fresh(scope, shape, 0)
        kind = self.rng.integers(12)
        if kind < 3:
            return self._form(WHOLE, self.array(scope, shape, depth - 1))
        if kind < 7:
            return self._form(WHOLE_PAIRS, self.array(scope, shape, depth - 1), self.array(scope, shape, depth - 1))
        if kind == 7:
            left, right = self.array(scope, shape, depth - 1), self.number(scope, 1)
            return self._form(["({}) * ({})", "({}) + ({})", "({}) - ({})"], *self.pick([(left, right), (right, left)]))
        if kind == 8 and len(shape) == 1 and shape[0] > 2:
            inner = self.pick(known) if known else self.fresh(scope, shape, 0)
            return self._form(VECTORS, inner)
        if kind == 9 and len(shape) == 2:
            row = self.array(scope, shape[1:], depth - 1)
            return f"({self.array(scope, shape, depth - 1)}) {self.pick(['*', '+'])} ({row})"
        if kind == 10 and len(shape) == 1:
            found = [n for n, s in scope.arrays.items() if len(s) == 2 and shape[0] in s]
            if found:
                m = self.pick(found)
                axis = scope.arrays[m].index(shape[0])
                return str(self.pick([f"{m}.sum(axis={1 - axis})", f"np.sum({m}, {1 - axis})"]))
        if kind == 11 and self.dear and self.chance(0.5):
            self.dear -= 1
            a, b = self.array(scope, shape, 0), self.array(scope, shape, 0)
            return f"np.where({a} > {self.number(scope, 0)}, {a}, {b})"
        return self.fresh(scope, shape, depth)

    def fresh(self, scope: Scope, shape: Shape, depth: int) -> str:
        """A new array."""
        size = str(shape) if len(shape) != 1 else str(shape[0])
        kinds = [f"np.zeros({size})", f"np.ones({size})", f"np.full({size}, {self.number(scope, 1)} * 1.0)"]
        same = self.arrays_of(scope, shape=shape)
        if same:
            a = self.pick(same)
            kinds += [
                f"{a}.copy()",
                f"np.zeros_like({a})",
                f"np.ones_like({a})",
                f"np.full_like({a}, 0.5)",
                f"np.copy({a})",
                f"({a} * 1.0)",
            ]
        if len(shape) == 1:
            n = shape[0]
            items = ", ".join(self.number(scope, 1 if depth else 0) for _ in range(n))
            kinds += [
                f"np.array([{items}, 0.5])[:{n}]",
                f"np.linspace(0.0, 1.0, {n})",
                f"(np.arange({n}) * 0.5)",
                f"np.arange({n} * 1.0)",
            ]
        if len(shape) == 2 and shape[0] == shape[1]:
            kinds.append(f"np.eye({shape[0]})")
        return str(self.pick(kinds))

    def views(self, scope: Scope, shape: Shape) -> list[str]:
        """Texts of views of a shape of arrays that there are."""
        found = []
        for a, own in scope.arrays.items():
            if len(own) == 1 and len(shape) == 1:
                n, k = own[0], shape[0]
                if n == k:
                    found.append(f"{a}[::-1]")
                elif n > k:
                    start = int(self.rng.integers(0, n - k + 1))
                    found += [f"{a}[{start}:{start + k}]", f"{a}[{start - n}:][:{k}]", f"{a}[{k}::-1][:{k}]"]
                    if n >= 2 * k:
                        found.append(f"{a}[::2][:{k}]")
            if len(own) == 2 and len(shape) == 1:
                if own[1] == shape[0]:
                    found += [f"{a}[{self.index(scope, own[0])}]", f"{a}[{self.index(scope, own[0])}, :]"]
                if own[0] == shape[0]:
                    found.append(f"{a}[:, {self.index(scope, own[1])}]")
                if math.prod(own) == shape[0]:
                    found += [f"{a}.copy().reshape({shape[0]})", f"{a}.flatten()", f"{a}.T.ravel()"]
            if len(own) == 1 and len(shape) == 2 and own[0] >= math.prod(shape):
                found.append(f"{a}[:{math.prod(shape)}].copy().reshape({shape})")
            if len(own) == 2 and len(shape) == 2:
                if own == shape[::-1]:
                    found.append(f"{a}.T")
                if own[0] >= shape[0] and own[1] >= shape[1]:
                    found.append(f"{a}[:{shape[0]}, {own[1] - shape[1]}:]")
            if len(own) == 3 and own[1:] == shape:
                found.append(f"{a}[{self.index(scope, own[0])}]")
        return found
