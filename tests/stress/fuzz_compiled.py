"""Runs random compiled programs and compares values with the plain calls, and derivatives with dual numbers.

``python tests/stress/fuzz_compiled.py SEED`` shows and runs one program again; ``FIRST COUNT SECONDS`` runs many, and with ``-v``
tells what was refused and where dual numbers had no answer. NUMBA_OPT=0 with a NUMBA_CACHE_DIR of its own makes it faster.
"""

from __future__ import annotations

import collections
import faulthandler
import gc
import linecache
import math
import sys
import time
import traceback
import warnings
from typing import Any

import numba
import numpy as np
from compiled_programs import Pair, Program, items_of, program, weighted
from dual_arrays import Array, dual, made
from dual_namespace import namespace
from dual_numbers import inputs, lift, value
from numba.core.errors import NumbaWarning
from numba.experimental import jitclass
from numba.typed import Dict, List

import tapegrad as tg
from tapegrad.compilation.compiler_room import with_room

SLOWEST = 300.0  # seconds after which a program counts as hanging
CLOSE = 1e-9  # how far values on dual numbers may be from those of the compiled function
STEP = 1e-5
BITS = 3  # every how manieth program is compared with the plain call to the bit
SECOND_ORDER = 7  # every how manieth program has its second derivatives compared


_items_of, _weighted = numba.njit(items_of), numba.njit(weighted)  # compiled once for all programs


class BrokenPromiseError(Exception):
    """What was promised does not hold."""


def compiled(text: str, seed: int) -> Any:
    """The function of a program, compiled by Numba."""
    names: dict[str, Any] = {
        "np": np,
        "math": math,
        "numba": numba,
        "List": List,
        "Dict": Dict,
        "jitclass": jitclass,
        "__name__": "p",
    }
    names |= {"literal_unroll": numba.literal_unroll, "items_of": _items_of, "weighted": _weighted, "Pair": Pair}
    place = f"<program {seed}>"
    linecache.cache[place] = (len(text), None, text.splitlines(True), place)
    exec(compile(text, place, "exec"), names)
    return names["f"]


def by_dual_numbers(text: str, point: tuple[Any, ...]) -> Any:
    """The result of a program on dual numbers; None where they do not know how."""
    names = namespace()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(text, "<dual>", "exec"), names)
            x, c, n = point
            flat = inputs([float(v) for v in x.ravel()])
            given = made(flat, x.shape)
            if x.ndim > 1 and x.flags.f_contiguous:
                given = np.asfortranarray(given).view(Array)
            return names["f"](given, dual(c.copy()), n)
    except (RecursionError, MemoryError):
        return None
    except Exception as error:
        return error


def outcome(call: Any, *args: Any) -> Any:
    """What a call gives, or what it raises."""
    try:
        return call(*args)
    except Exception as error:
        return error


def copies(point: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments in arrays of their own, of the same layout."""
    made = []
    for a in point:
        if isinstance(a, np.ndarray) and not (a.flags.c_contiguous or a.flags.f_contiguous):
            wide = np.stack([a, a], axis=-1)
            made.append(wide[..., 0])
        else:
            made.append(a.copy(order="K") if isinstance(a, np.ndarray) else a)
    return tuple(made)


def bits(result: Any) -> bytes:
    """The bits of a result; all that are no numbers are one."""
    a = np.array(result, float)
    return np.where(np.isnan(a), np.nan, a).tobytes()


def parts(result: Any, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Jacobian and Hessians of what a program gave on dual numbers."""
    items = [lift(v) for v in (result.ravel() if isinstance(result, np.ndarray) else [result])]
    first = np.array([np.zeros(size) if v.first is None else v.first for v in items])
    second = np.array([np.zeros((size, size)) if v.second is None else v.second for v in items])
    return first, second


def far(found: Any, expected: Any, rtol: float) -> bool:
    """Whether finite expectations are missed."""
    found, expected = np.asarray(found, float).ravel(), np.asarray(expected, float).ravel()
    if found.shape != expected.shape:
        return True
    sure = np.isfinite(expected)
    scale = 1.0 + np.max(np.abs(expected[sure]), initial=0.0)
    return bool((np.abs(found - expected)[sure] > rtol * scale).any() or np.isnan(found[sure]).any())


def agree(found: Any, result: Any) -> bool:
    """Whether dual numbers have the value of the compiled function."""
    if result is None or isinstance(result, Exception):
        return False
    found = np.array(found, float).ravel()
    values = np.array([value(v) for v in (result.ravel() if isinstance(result, np.ndarray) else [result])])
    return found.shape == values.shape and not far(found, values, CLOSE) and np.array_equal(np.isnan(found), np.isnan(values))


def differences(f: Any, point: tuple[Any, ...], step: float) -> Any:
    """Central differences, one column an input."""
    x, columns = point[0], []
    for place in np.ndindex(x.shape):
        ends = []
        for sign in (1.0, -1.0):
            given = copies(point)
            given[0][place] += sign * step
            ends.append(np.array(f(*given), float).ravel())
        if ends[0].shape != ends[1].shape:
            return None
        columns.append((ends[0] - ends[1]) / (2 * step))
    return np.array(columns).T


class Check:
    """One program at all of its points."""

    def __init__(self, p: Program, count: collections.Counter[str]) -> None:
        self.p, self.count = p, count
        self.f = compiled(p.text, p.seed)
        self.first = tg.value_and_grad(self.f) if p.number else tg.value_and_jacobian(self.f)
        self.refused = False

    def run(self) -> None:
        """All points, and the first one again."""
        results = []
        for number, point in enumerate(self.p.points):
            results.append(self.at(point, number))
            if self.refused:
                return
        again = outcome(self.first, *copies(self.p.points[0]))
        pairs = [] if isinstance(again, Exception) or isinstance(results[0], Exception) else zip(again, results[0], strict=True)
        if any(bits(now) != bits(before) for now, before in pairs):
            raise BrokenPromiseError("the first point gives something else after other calls")

    def at(self, point: tuple[Any, ...], number: int) -> Any:
        """Values, derivatives and exceptions at a point.

        The plain call takes as long to compile as the recorded one, so in most programs it is made only where dual numbers do not
        tell what it would give.
        """
        where = f"at point {number}: x = {point[0]!r}, c = {point[1]!r}, n = {point[2]}"
        given = copies(point)
        found = outcome(self.first, *given)
        result = by_dual_numbers(self.p.text, point)
        if isinstance(found, tg.CompileError):
            plain = outcome(self.f, *copies(point))
            self.count["not compiled" if isinstance(plain, Exception) else "refused"] += 1
            self.refused = True
            self.reason = plain if isinstance(plain, Exception) else found
            return found
        sure = type(found) is type(result) if isinstance(found, Exception) else agree(found[0], result)
        plain = outcome(self.f, *copies(point)) if not sure or self.p.seed % BITS == 0 else None
        if isinstance(found, Exception) or isinstance(plain, Exception):
            if plain is not None and type(plain) is not type(found):
                raise BrokenPromiseError(f"{where}: {plain!r} by the plain call, {found!r} by the driver")
            self.count["raised"] += 1
            return found
        for before, after in zip(point, given, strict=True):
            if isinstance(before, np.ndarray) and before.tobytes() != after.tobytes():
                raise BrokenPromiseError(f"{where}: an argument was written into")
        if plain is not None:
            if bits(plain) != bits(found[0]):
                raise BrokenPromiseError(f"{where}: the value is {found[0]!r}, that of the plain call {plain!r}")
            self.count["bits"] += 1
        self.derivatives(point, result, found, where)
        return found

    def derivatives(self, point: tuple[Any, ...], result: Any, found: Any, where: str) -> None:
        """First derivatives by dual numbers or differences, second ones by dual numbers."""
        if not agree(found[0], result):
            self.count["unknown" if result is None or isinstance(result, Exception) else "other value"] += 1
            self.unknown = f"{where}: {found[0]!r} compiled, {result!r} on dual numbers"
            self.by_differences(point, found, where)
            return
        first, second = parts(result, point[0].size)
        if not np.isfinite(found[0]).all() or np.abs(found[0]).max(initial=0.0) > 1e12:
            self.count["not finite"] += 1
            return
        if far(found[1], first, 1e-7):
            raise BrokenPromiseError(
                f"{where}: the derivative is\n{found[1]!r}\nby dual numbers\n{first!r}\nby differences\n{self.estimate(point)!r}"
            )
        self.count["compared"] += 1
        if self.p.number and self.p.seed % SECOND_ORDER == 0:
            self.curvature(point, second[0], where)

    def curvature(self, point: tuple[Any, ...], second: Any, where: str) -> None:
        """The Hessian, and its product with a vector."""
        size = point[0].size
        hessian = outcome(tg.hessian(self.f), *copies(point))
        if isinstance(hessian, tg.CompileError):
            self.count["second order refused"] += 1
            return
        if isinstance(hessian, Exception):
            raise BrokenPromiseError(f"{where}: the Hessian raises {hessian!r}") from hessian
        if far(hessian.reshape(size, size), second, 1e-6):
            raise BrokenPromiseError(f"{where}: the Hessian is\n{hessian.reshape(size, size)!r}\nby dual numbers\n{second!r}")
        self.count["Hessians"] += 1
        if self.p.seed % (2 * SECOND_ORDER) == 0 and where.startswith("at point 0") and np.isfinite(second).all():
            direction = np.cos(np.arange(size)).reshape(point[0].shape)
            x, c, n = copies(point)
            f = self.f
            product = outcome(tg.hvp, numba.njit(lambda x: f(x, c.copy(), n)), x, direction)
            if isinstance(product, tg.CompileError):
                self.count["second order refused"] += 1
                return
            if isinstance(product, Exception) or far(product, second @ direction.ravel(), 1e-6):
                raise BrokenPromiseError(
                    f"{where}: the product with the Hessian is {product!r}, by dual numbers {second @ direction.ravel()!r}"
                )
            self.count["products"] += 1

    def estimate(self, point: tuple[Any, ...]) -> Any:
        """Differences, or why there are none."""
        return outcome(differences, self.f, point, STEP)

    def by_differences(self, point: tuple[Any, ...], found: Any, where: str) -> None:
        """Differences of two step sizes, where they agree."""
        coarse, fine = self.estimate(point), outcome(differences, self.f, point, STEP / 4)
        if any(a is None or isinstance(a, Exception) or not np.isfinite(a).all() for a in (coarse, fine)) or far(
            coarse, fine, 1e-6
        ):
            return
        if far(found[1], fine, 1e-4):
            raise BrokenPromiseError(f"{where}: the derivative is\n{found[1]!r}\nby differences\n{fine!r}")
        self.count["by differences"] += 1


def shown(seed: int, error: BaseException) -> str:
    """A failure with its program."""
    lines = "".join(traceback.format_exception(error)[-4:]) if not isinstance(error, BrokenPromiseError) else str(error)
    return f"seed {seed} failed: {lines}\n{program(seed).text}"


def fuzz(first: int, programs: int, seconds: float) -> None:
    """Run programs until their number or the time is up."""
    warnings.simplefilter("ignore", NumbaWarning)
    warnings.simplefilter("ignore", RuntimeWarning)
    gc.disable()  # what compiles makes cycles all the time, and much that stays
    end, seed, failed = time.monotonic() + seconds, first, 0
    count: collections.Counter[str] = collections.Counter()
    while seed < first + programs and time.monotonic() < end:
        print(seed, flush=True)
        faulthandler.dump_traceback_later(SLOWEST, exit=True)
        try:
            check = Check(program(seed), count)
            check.run()
            if VERBOSE and hasattr(check, "reason"):
                print("REFUSED", seed, type(check.reason).__name__, str(check.reason)[:600].replace("\n", " | "), flush=True)
            if VERBOSE and hasattr(check, "unknown"):
                print("UNKNOWN", seed, repr(check.unknown)[:300], flush=True)
        except Exception as error:
            failed += 1
            print(shown(seed, error), file=sys.stderr, flush=True)
        seed += 1
        if seed % 20 == 0:
            gc.collect()
            gc.freeze()
    faulthandler.cancel_dump_traceback_later()
    print(dict(count), file=sys.stderr, flush=True)
    print(seed - first, count["compared"], count["refused"] + count["not compiled"], failed)
    sys.exit(bool(failed))


VERBOSE = "-v" in sys.argv

if __name__ == "__main__":
    given = [float(a) for a in sys.argv[1:] if a != "-v"]
    if len(given) == 1:
        print(program(int(given[0])).text)
        VERBOSE = True
        with_room(fuzz, int(given[0]), 1, 3600.0)
    else:
        with_room(fuzz, int(given[0]), int(given[1]), given[2])
