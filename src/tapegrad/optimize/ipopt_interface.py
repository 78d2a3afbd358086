"""IPOPT by its own C interface, in the library that the package ``cyipopt`` is linked with.

The package itself imports `scipy.optimize` with its interface to SciPy, and hands entries of derivatives over one by one as Python
objects: half of the time of a small problem. Of its extension module nothing is run here but what IPOPT's library exports, so for
whoever imports the package it is what it always is.

What Python raises while C code is around it is kept until IPOPT has come back, interrupts too: most of these come in IPOPT, and
are raised where the next function of ours begins, before anything in it could catch them. There `sys.unraisablehook` hears of them.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader, PathFinder
from importlib.util import find_spec
from typing import Any

import numpy as np

from tapegrad.arrays.addresses import address_of

__all__ = ["CyIpoptEvaluationError", "Problem", "ipopt_library"]

Vector = np.ndarray[Any, Any]
# A product of vectors in IPOPT's library, until and since its version 3.14: that it is there under this name tells that indices are
# int and numbers double, which not all builds have.
KNOWN_TYPES = ("_ZN5Ipopt10IpBlasDdotEiPKdiS1_i", "_ZN5Ipopt9IpBlasDotEiPKdiS1_i")
MESSAGES = {
    0: "solved to the tolerance",
    1: "solved to the acceptable tolerance, not to the one that was asked for",
    2: "converged to a point where constraints cannot be met nearby",
    3: "the steps became too small",
    4: "the iterates diverge",
    5: "stopped by the user",
    6: "a feasible point of a square problem was found",
    -1: "the maximum number of iterations was reached",
    -2: "the restoration phase failed",
    -3: "a step could not be computed",
    -4: "the maximum processor time was reached",
    -5: "the maximum time was reached",
    -10: "there are more equality constraints than variables",
    -11: "the problem is not well defined",
    -12: "an option has a value that it cannot have",
    -13: "a function or derivative is nan or infinite, or could not be computed",
    -100: "IPOPT raised an exception: lower bounds may be above upper ones",
    -101: "an exception was raised that is not IPOPT's",
    -102: "there is not enough memory",
    -199: "an internal error",
}
INT, DOUBLE, ADDRESS = ctypes.c_int, ctypes.c_double, ctypes.c_void_p
CALLS: dict[str, tuple[Any, ...]] = {  # in the order in which they are given, each with an address of data behind
    "objective": (INT, ADDRESS, INT, ADDRESS),
    "constraints": (INT, ADDRESS, INT, INT, ADDRESS),
    "gradient": (INT, ADDRESS, INT, ADDRESS),
    "jacobian": (INT, ADDRESS, INT, INT, INT, ADDRESS, ADDRESS, ADDRESS),
    "hessian": (INT, ADDRESS, INT, DOUBLE, INT, ADDRESS, INT, INT, ADDRESS, ADDRESS, ADDRESS),
    "intermediate": (INT, INT, *[DOUBLE] * 8, INT),
}


class CyIpoptEvaluationError(ArithmeticError):
    """What a method of a problem raises where it has no value; the name is cyipopt's."""


def ipopt_library() -> Any:
    """What has ``Problem`` and ``CyIpoptEvaluationError``: what is here, or else the package ``cyipopt``.

    Raises
    ------
    ImportError
        If that is not installed, or a library that it needs is not there.
    """
    if (found := _direct()) is not None:
        return found
    import cyipopt  # type: ignore[import-not-found,import-untyped,unused-ignore]

    return cyipopt


def _direct() -> Any:
    """This interface; None where IPOPT's library is not to be found, or not known to have its numbers as they are here."""
    try:
        package, beside = find_spec("cyipopt"), find_spec("ipopt_wrapper")
    except ValueError:  # a module that somebody made, and that nobody finds
        return None
    if package is None or package.submodule_search_locations is None:
        return None
    inside = PathFinder.find_spec("cyipopt.ipopt_wrapper", package.submodule_search_locations)
    for found in (inside, beside):  # where it is, and was before cyipopt 1.7
        if found is not None and isinstance(found.loader, ExtensionFileLoader) and found.origin is not None:
            try:
                library = ctypes.PyDLL(found.origin)  # with the interpreter's lock: IPOPT's solvers are not for several threads
            except OSError:
                return None
            return (
                _Direct(library) if any(hasattr(library, name) for name in KNOWN_TYPES) and hasattr(library, "IpoptSolve") else None
            )
    return None


class _Direct:
    """What `ipopt_library` gives, in the place of the package."""

    CyIpoptEvaluationError = CyIpoptEvaluationError

    def __init__(self, library: ctypes.PyDLL) -> None:
        self.Problem = functools.partial(Problem, library)


class Problem:
    """A problem of IPOPT's, to be solved once, with the interface of ``cyipopt.Problem``.

    Parameters
    ----------
    library : ctypes.PyDLL
    n, m : int
        Numbers of variables and of constraints.
    given : object
        Has the methods of `tapegrad.optimize.interior_point.Problem`; that it has no ``hessian`` means an approximation.
    lb, ub : ndarray, shape (n,)
    cl, cu : ndarray, shape (m,)
    """

    _problem = ADDRESS()
    _point: Vector | None = None  # where IPOPT asked for something before

    def __init__(self, library: ctypes.PyDLL, n: int, m: int, given: Any, lb: Vector, ub: Vector, cl: Vector, cu: Vector) -> None:
        self._library, self._n, self._m, self._given = library, n, m, given
        self._error: BaseException | None = None
        second = hasattr(given, "hessian")
        self._first_places = _places(given.jacobianstructure())
        self._second_places = _places(given.hessianstructure() if second else ((), ()))
        self._calls = [
            ctypes.PYFUNCTYPE(INT, *types, ADDRESS)(functools.partial(self._call, getattr(self, f"_{name}")))
            for name, types in CALLS.items()
        ]
        limits = [np.array(side, np.float64) for side in (lb, ub, cl, cu)]  # which IPOPT copies
        addresses = [ADDRESS(side.ctypes.data) for side in limits]
        library.CreateIpoptProblem.restype = ADDRESS
        sizes = len(self._first_places[0]), len(self._second_places[0])
        self._problem = ADDRESS(library.CreateIpoptProblem(n, *addresses[:2], m, *addresses[2:], *sizes, 0, *self._calls[:-1]))
        if not self._problem:
            raise ValueError("minimize: IPOPT does not take the problem; has it variables?")
        library.SetIntermediateCallback(self._problem, self._calls[-1])
        if not second:
            self.add_option("hessian_approximation", "limited-memory")

    def add_option(self, name: str, value: Any) -> None:
        """Take an option.

        Raises
        ------
        TypeError
            If there is none of this name with such values; the problem is of no use then.
        """
        library, word = self._library, name.encode()
        kind, done = type(value), 0
        if kind is str or kind is bytes:
            done = library.AddIpoptStrOption(self._problem, word, value.encode() if kind is str else value)
        elif kind is int and abs(value) < 1 << 31:
            done = library.AddIpoptIntOption(self._problem, word, value)
        if not done & 0xFF and (kind is float or kind is int):  # an int, and a bool since IPOPT 3.14
            done = library.AddIpoptNumOption(self._problem, word, DOUBLE(value))
        if not done & 0xFF:
            self._free()
            raise TypeError("IPOPT has none of this name with such values: a str, a float, or an int of 32 bits")

    def solve(self, x: Vector) -> tuple[Vector, dict[str, Any]]:
        """Where IPOPT ends from a point, and what it says.

        Raises
        ------
        BaseException
            What was raised outside of the problem's own methods, as an interrupt.
        """
        x, n, m = np.array(x, np.float64), self._n, self._m
        found = [np.zeros(size) for size in (m, 1, m, n, n)]  # values of constraints and objective, multipliers
        try:
            _watch(self)
            status = self._library.IpoptSolve(self._problem, *(ADDRESS(a.ctypes.data) for a in (x, *found)), None)
        finally:
            _leave(self)
            self._free()
        if self._error is not None:
            raise self._error
        said = MESSAGES.get(status, f"IPOPT failed with status {status}")
        return x, {"status": status, "status_msg": said, "mult_g": found[2], "mult_x_L": found[3], "mult_x_U": found[4]}

    def _free(self) -> None:
        """Give back what IPOPT keeps, unless that was done."""
        problem, self._problem = self._problem, ADDRESS()
        if problem:
            self._library.FreeIpoptProblem(problem)
        self._calls = []  # which hold this object

    def _call(self, method: Callable[..., bool | None], *arguments: Any) -> int:
        """Call what IPOPT asked for; whether it went well."""
        try:
            return int(self._error is None and method(*arguments) is not False)
        except CyIpoptEvaluationError:
            return 0
        except BaseException as error:  # C code is around this
            self._error = error
            return 0

    def _at(self, x: int, n: int, new: int) -> Vector:
        """Where IPOPT asks for something: one array, which nobody can write into, as long as it is the same point."""
        if new & 0xFF or self._point is None:
            self._point = _taken(x, n)
            self._point.flags.writeable = False
        return self._point

    def _objective(self, n: int, x: int, new: int, value: int, *_: Any) -> None:
        _give(value, 1, self._given.objective(self._at(x, n, new)))

    def _constraints(self, n: int, x: int, new: int, m: int, values: int, *_: Any) -> None:
        if m:
            _give(values, m, self._given.constraints(self._at(x, n, new)))

    def _gradient(self, n: int, x: int, new: int, values: int, *_: Any) -> None:
        _give(values, n, self._given.gradient(self._at(x, n, new)))

    def _jacobian(self, n: int, x: int, new: int, m: int, count: int, rows: int, columns: int, values: int, *_: Any) -> None:
        if not count:
            return
        if values:
            _give(values, count, self._given.jacobian(self._at(x, n, new)))
        else:
            _ints(rows, count)[:], _ints(columns, count)[:] = self._first_places

    def _hessian(
        self, n: int, x: int, new: int, factor: float, m: int, multipliers: int, newer: int, count: int, rows: int, columns: int,
        values: int, *_: Any,
    ) -> None:  # fmt: skip
        if not count:
            return
        if values:
            _give(values, count, self._given.hessian(self._at(x, n, new), _taken(multipliers, m), factor))
        else:
            _ints(rows, count)[:], _ints(columns, count)[:] = self._second_places

    def _intermediate(self, *state: Any) -> bool:
        going_on: bool = self._given.intermediate(*state[:-1])
        return going_on


_CALL = Problem._call.__code__
_solving: list[Problem] = []  # of all threads
_former: Any = None  # who hears of exceptions that nobody can catch, besides


def _hear(said: Any) -> None:
    """Keep what was raised where a function of a problem that is being solved began; the rest is somebody else's."""
    frame = None if said.exc_traceback is None else said.exc_traceback.tb_frame
    problem: Any = frame.f_locals.get("self") if frame is not None and frame.f_code is _CALL else None
    if any(one is problem for one in _solving):
        problem._error = said.exc_value
    else:
        _former(said)


def _watch(problem: Problem) -> None:
    """Hear of a problem from now on."""
    global _former
    _solving.append(problem)
    if sys.unraisablehook is not _hear:
        _former, sys.unraisablehook = sys.unraisablehook, _hear


def _leave(problem: Problem) -> None:
    """Hear of it no more, and with the last one of nothing."""
    _solving[:] = [one for one in _solving if one is not problem]
    if not _solving and sys.unraisablehook is _hear:
        sys.unraisablehook = _former


def _places(given: Any) -> tuple[Vector, Vector]:
    rows, columns = given
    return np.asarray(rows, np.int32), np.asarray(columns, np.int32)


def _taken(address: int, count: int) -> Vector:
    """A copy of numbers of IPOPT's."""
    made = np.empty(count)
    if count:
        ctypes.memmove(address_of(made), address, made.nbytes)  # in half of the time of an array on its memory
    return made


def _give(address: int, count: int, found: Any) -> None:
    """Numbers for IPOPT.

    Raises
    ------
    ValueError
        If there are not as many as it asked for.
    """
    numbers = np.ascontiguousarray(found, np.float64)
    if numbers.size != count:
        raise ValueError(f"minimize: IPOPT asked for {count} numbers and got {numbers.size}")
    ctypes.memmove(address, address_of(numbers), numbers.nbytes)


def _ints(address: int, count: int) -> Vector:
    memory: Any = (INT * count).from_address(address)
    return np.frombuffer(memory, np.int32)
