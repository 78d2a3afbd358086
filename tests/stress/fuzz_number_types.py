"""Runs random compiled functions of complex numbers and of float32, and compares derivatives with central differences.

``python tests/stress/fuzz_number_types.py SEED`` shows and runs one again; ``FIRST COUNT SECONDS`` runs many. A function of float32
is compared with the same text in float64. NUMBA_OPT=0 with a NUMBA_CACHE_DIR of its own makes it faster.
"""

from __future__ import annotations

import cmath
import gc
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

import tapegrad as tg
from tapegrad.compilation.compiler_room import with_room
from tapegrad.errors import CompileError

SIZE = 4
SECOND_ORDER = 5  # every how manieth function has its Hessian compared
STEPS = (1e-5, 5e-6)

REAL = ["np.sin({})", "np.tanh({})", "({}) * ({})", "({}) + ({})", "({}) - ({})", "np.exp(-abs({}))", "({}) ** 2",
        "np.sqrt(({}) ** 2 + 0.5)", "({}) / (abs({}) + 1.0)", "max({}, {})", "min({}, 0.5)", "np.maximum({}, {})"]  # fmt: skip
OF_COMPLEX = ["abs({})", "({}).real", "({}).imag", "np.angle(({}) + 3.0)", "np.abs({}) ** 2", "np.real({})", "np.imag({})",
              "(({0}) * ({0}).conjugate()).real", "cmath.phase(({}) + 2.5)"]  # fmt: skip
COMPLEX = ["np.exp(({}) * 0.3)", "np.sin(({}) * 0.5)", "np.cos(({}) * 0.4)", "np.sqrt(({}) + 3.0)", "np.log(({}) + 4.0)", "-({})",
           "np.tanh(({}) * 0.3)", "np.conj({})", "({}).conjugate()", "({}) ** 2", "({}) ** 3 * 0.1", "(({}) + 3.0) ** 0.5",
           "cmath.exp(({}) * 0.2)", "np.sinh(({}) * 0.3)", "({}) + ({})", "({}) - ({})", "({}) * ({})", "({}) / (({}) + 5.0)",
           "(({}) + 4.0) ** -1", "np.arctan(({}) * 0.2)", "cmath.sqrt(({}) + 4.0)", "np.square({})",
           "np.expm1(({}) * 0.1)"]  # fmt: skip
NARROW = ["F({})", "({}) * F(0.5)", "({}) / F(3)", "({}) * 2.0", "({}) * 2", "F({}) * F({})", "float({})", "abs(F({}))",
          "np.cos(F({}))", "F({}) - ({})", "narrow({}, {})", "declared({})"]  # fmt: skip
CONSTANTS = ["(0.5 - 1j)", "2j", "(1.0 + 0j)", "0.3"]


class Functions:
    """Makes the text of a function from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.complex = seed % 2 == 0
        self.numbers: list[str] = []
        self.arrays: list[str] = []
        self.index: str = ""

    def pick(self, items: Any) -> Any:
        """One of several."""
        return items[int(self.rng.integers(len(items)))]

    def place(self) -> str:
        """The index of an item."""
        return self.index if self.index and self.rng.random() < 0.5 else str(int(self.rng.integers(-SIZE, SIZE)))

    def fill(self, form: str, part: Callable[[int], str], depth: int) -> str:
        """A form with parts."""
        return form.format(*(part(depth - 1) for _ in range(2)))

    def real(self, depth: int) -> str:
        """A real number."""
        if depth <= 0:
            return f"x[{self.place()}]" if self.rng.random() < 0.8 or self.complex else self.narrow(0)
        if self.rng.random() < 0.5:
            return self.fill(self.pick(REAL), self.real, depth)
        return self.fill(self.pick(OF_COMPLEX), self.number, depth) if self.complex else self.narrow(depth)

    def narrow(self, depth: int) -> str:
        """A number that may be a float32."""
        if depth <= 0:
            known = [*self.numbers, *(f"{a}[{self.place()}]" for a in self.arrays), f"F(x[{self.place()}])", "F(0.75)"]
            return str(self.pick(known))
        return self.fill(self.pick([*NARROW, *REAL]), self.narrow, depth)

    def number(self, depth: int) -> str:
        """A number of the kind that the function is about."""
        if not self.complex:
            return self.narrow(depth)
        if depth <= 0:
            known = [*self.numbers, *(f"{a}[{self.place()}]" for a in self.arrays)] * 2
            known += [
                f"complex({self.real(0)}, {self.real(0)})",
                f"{self.real(0)} * 1j",
                f"c[{self.place()}]",
                self.pick(CONSTANTS),
            ]
            return str(self.pick(known))
        return self.fill(self.pick(COMPLEX), self.number, depth)

    def statement(self, depth: int = 0) -> list[str]:
        """Lines of one statement."""
        kind = int(self.rng.integers(9 if depth == 0 else 5))
        dtype = "np.complex128" if self.complex else "F"
        if kind == 0 or not self.numbers:
            name = f"s{len(self.numbers)}"
            text = f"{name} = ({self.number(2)}) * 0.5"
            if depth == 0:
                self.numbers.append(name)
                return [text]
            return [f"acc += {self.result()}"]
        if kind == 1 or (kind == 2 and not self.arrays):
            s = self.pick(self.numbers)
            return [f"{s} = {s} * 0.5 + {self.number(1)}"]
        if kind == 2:
            a = self.pick(self.arrays)
            forms = [f"{a}[{self.place()}] = {self.number(1)}", f"{a}[1:] += {self.number(1)}", f"{a} *= {self.pick(self.numbers)}",
                     f"{a}[:2] = {a}[2:] * {self.number(0)}"]  # fmt: skip
            forms += [f"{a}.imag[{self.place()}] = {self.real(0)}"] if self.complex else []
            return [str(self.pick(forms))]
        if kind == 3:
            return [f"acc += np.tanh({self.real(2)})"]
        if kind == 4:
            return [f"acc += {self.result()}"]
        if kind == 5:
            name = f"w{len(self.arrays)}"
            makes = [f"np.zeros({SIZE}, {dtype})", f"x.astype({dtype})", f"np.full({SIZE}, {self.number(1)})"]
            makes += [f"{a} * {self.number(1)} + {a}" for a in self.arrays] + ["x * c" if self.complex else "y * x"]
            text = str(self.pick(makes))
            self.arrays.append(name)
            return [f"{name} = {text}"]
        inner: list[str] = []
        if kind == 6:
            self.index = "k"
            inner = [line for _ in range(2) for line in self.statement(1)]
            self.index = ""
            return [f"for k in range({SIZE}):", *(f"    {line}" for line in inner)]
        if kind == 7:
            inner, other = self.statement(1), self.statement(1)
            return [f"if {self.real(1)} > 0.3:", *(f"    {v}" for v in inner), "else:", *(f"    {v}" for v in other)]
        s = self.pick(self.numbers)
        return [f"for item in [{self.number(1)}, {self.number(1)}]:", f"    {s} = {s} * 0.5 + item * 0.25"]

    def result(self) -> str:
        """A real number of bounded size."""
        if self.arrays and self.rng.random() < 0.5:
            a = self.pick(self.arrays)
            whole = ["np.sum({})", "{}.sum()", "np.dot({}, {})", "{}.mean()"]
            forms = [f"abs({form})" for form in whole] + ["np.abs({}).sum()", "np.vdot({}, {}).real", "({} * {}).real.sum()"]
            real = [*whole, "{}.max()", "np.cumsum({})[2]", "np.std({})", "{}.astype(np.float64).sum()", "np.linalg.norm({})"]
            return f"np.tanh({self.pick(forms if self.complex else real).format(a, a)})"
        return f"np.tanh({self.real(2)})"

    def text(self) -> str:
        """The whole function."""
        lines = ["acc = 0.0"]
        for _ in range(int(self.rng.integers(4, 9))):
            lines += self.statement()
        lines += [f"acc += {self.result()}" for _ in range(3)]
        return "def f(x, y, c):\n" + "".join(f"    {line}\n" for line in lines) + "    return acc\n"


HELPERS = """
def narrow(a, b):
    t = F(a) * F(2)
    return t + b * t

def declared(a):
    return a * a - F(1.5)
"""


def compiled(text: str, kind: Any) -> Any:
    """The function with F as some type."""
    space: dict[str, Any] = {"np": np, "cmath": cmath, "F": kind}
    exec(HELPERS, space)
    space["narrow"] = numba.njit(space["narrow"])
    named = "float32" if kind is np.float32 else "float64"
    space["declared"] = numba.njit(f"{named}({named})")(space["declared"])
    exec(text, space)
    return numba.njit(error_model="numpy")(space["f"])


def differences(f: Any, x: np.ndarray, step: float) -> np.ndarray:
    """Central differences by each element."""
    return np.array([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(len(x))])


def far(found: np.ndarray, expected: np.ndarray, tolerance: float) -> bool:
    """Whether derivatives are not what differences say."""
    return not np.allclose(found, expected, rtol=tolerance, atol=tolerance * (1.0 + np.abs(expected).max()))


def run(seed: int, show: bool) -> str:
    """What becomes of one function: compared, unsure, refused, invalid."""
    maker = Functions(seed)
    text = maker.text()
    if show:
        print(text)
    rng = np.random.default_rng(seed)
    x, c = rng.uniform(-1.2, 1.4, SIZE), rng.normal(size=SIZE) + 1j * rng.normal(size=SIZE)
    x = x.astype(np.float32).astype(float)
    y = x.astype(np.float32)
    try:
        f = compiled(text, np.float32)
        value = f(x, y, c)
    except (numba.core.errors.NumbaError, ZeroDivisionError) as error:
        if show:
            print(error)
        return "invalid"
    try:
        found, gradient = tg.value_and_grad(f)(x, y, c)
    except CompileError as error:
        if show or "Numba does not compile" in str(error):
            print(seed, error, file=sys.stderr)
        return "refused"
    same = found == value or (found != found and value != value)
    # Whole complex arrays are evaluated in another way than Numba fuses them.
    assert same or (maker.complex and np.isclose(found, value, rtol=1e-10)), f"value {found!r}, but {value!r}"
    oracle = f if maker.complex else compiled(text, np.float64)
    wide = y if maker.complex else y.astype(float)
    if not np.isfinite(value) or abs(oracle(x, wide, c) - value) > 1e-4:
        return "unsure"

    def of(point: np.ndarray) -> Any:
        return oracle(point, wide, c)

    rough, fine = (differences(of, x, step) for step in STEPS)
    if not np.isfinite(fine).all() or far(rough, fine, 1e-6):
        return "unsure"
    tolerance = 1e-6 if maker.complex else 2e-3
    assert not far(gradient, fine, tolerance), f"gradient {gradient}, but {fine}"
    if seed % SECOND_ORDER == 0:
        hessian = tg.hessian(f)(x, y, c)
        of_gradient = tg.grad(f)
        rough, fine = (differences(lambda p: of_gradient(p, y, c), x, step) for step in STEPS)
        if maker.complex and np.isfinite(fine).all() and not far(rough, fine, 1e-6):
            assert not far(hessian, fine, 1e-5), f"Hessian {hessian}, but {fine}"
    return "compared"


def main() -> int:
    """Run one function, or many."""
    warnings.simplefilter("ignore")
    if len(sys.argv) == 2:
        print(run(int(sys.argv[1]), True))
        return 0
    first, count, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    end, numbers = time.monotonic() + seconds, dict.fromkeys(["compared", "unsure", "refused", "invalid"], 0)
    failures = 0
    for seed in range(first, first + count):
        if time.monotonic() > end:
            break
        try:
            numbers[run(seed, False)] += 1
        except Exception:
            failures += 1
            print(f"seed {seed}", file=sys.stderr)
            traceback.print_exc()
    print(sum(numbers.values()) + failures, numbers["compared"], numbers["refused"], numbers["invalid"], failures)
    return int(failures > 0)


if __name__ == "__main__":
    gc.set_threshold(1_000_000, 10, 10)  # what compiles makes much that stays
    sys.exit(with_room(main))
