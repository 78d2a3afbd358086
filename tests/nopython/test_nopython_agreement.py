"""One function has one derivative, in compiled code and on tensors: value, gradient and Hessian of all functions of arrays.

At regular points and at ties, nodes, zeros of either sign, infinities, nan and singular matrices. Functions of numbers are in
`test_nopython_kinks`. What takes the time is compiling, so the functions of a group are one compiled function.

Values are those of the compiled function to the bit. Where the value is nan, an element may be nan in one world alone.
"""

from __future__ import annotations

import ast
import builtins
import functools
import math
import operator
import random
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from test_nopython_kinks import ELEMENTWISE
from test_nopython_overloads import TABLE as ALONE
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

import tapegrad as tg
from tapegrad.deferred import look_up
from tapegrad.nopython.functions.reductions import FUNCTIONS, METHODS
from tapegrad.numpy_protocol import protocols

INF, NAN = np.inf, np.nan


class Entry(NamedTuple):
    """A function as it is called, and at what points; arrays are weighed, so that each element counts otherwise."""

    text: str
    points: list[list[float]]


def weigh(a):
    """A number of which the elements are parts."""
    items = np.ravel(a)
    k = np.arange(np.size(items))
    return ((1.0 + 0.5 * k * (k + 1.0)) * items).sum()


def weigh_by_a_loop(a):
    """The same in the same order, which is compiled sooner."""
    items, total = np.ravel(a), 0.0
    for k in range(len(items)):
        total += (1.0 + 0.5 * k * (k + 1.0)) * items[k]
    return total


def pair(parts):
    """A number of which two arrays are parts; vectors may have either sign."""
    return weigh(parts[0]) + weigh(parts[1] * parts[1])


def triple(parts):
    return weigh(parts[0] * parts[0]) + weigh(parts[1]) + weigh(parts[2] * parts[2])


REGULAR = [[1.3, 0.7, 2.1, -0.4]]
TIES = [*REGULAR, [1, 1, 1], [2, 1, 2], [0, 0, 0], [0, -0.0, 1], [1, 2, 3], [1, 1, 2], [3, -3, 3], [5], [1, 2, 2, 3]]
INFINITE = [[INF, 1, INF], [-INF, 1, -INF], [INF, -INF, 1]]
MISSING = [[1, NAN, 1], [NAN, 2, NAN, 2]]
EVERY = [*TIES, *INFINITE, *MISSING]
M = "x.reshape(2, 2)"
SQUARES = [
    [1.3, 0.7, 2.1, -0.4],
    [1, 0, 0, 1],
    [1, 1, 1, 1],
    [1, -1, -1, 1],
    [1, 2, 2, 1],
    [1, 2, 3, 4],
    [0, 0, 0, 0],
    [0, 1, 0, 0],
]
REGULARS = [*REGULAR, [1, 0, 0, 1], [1, 2, 2, 1], [1, 2, 3, 4], [0, 1, 2, 0]]
A, TALL = "x.reshape(len(x) // 2, 2)", [[1.3, 0.7, 2.1, -0.4, 0.2, 0.9], [1, 0, 0, 2, 0, 0]]  # wide, square and tall
SYMMETRIC = [[2, 1, 1, 3], [1, 0, 0, 2], [1, 1, 1, 1], [0, 2, 2, 0]]
SINGLE = [*REGULAR, [3, 4], *TALL, [1, 0, 0, 2], [1, 1, 1, 1], [0, 1, 2, 0]]
RANKS = [*SINGLE, [1, 0, 0, 1], [0, 0, 0, 0], [1, 2, 1, 2, 1, 2]]
POSITIVE = [[2, 1, 1, 3], [1, 0, 0, 1], [2, 0.5, 1.5, 3]]
FOURS = [*REGULAR, [1, 1, 2, 2], [0, -0.0, INF, 1], [NAN, 1, 2, 1]]
MOVES = """append(x,x[0]) array_split(x,3)[0] broadcast_arrays(x[:2],M)[0] broadcast_to(x[:2],(3,2)) column_stack((x,x*x))
    concatenate((x,x*x)) conj(x) conjugate(x) copy(x) delete(x,1) diag(M) diag(x,1) diagflat(x,1) dsplit(C,2)[1]
    dstack((x,x*x)) expand_dims(x,0) extract(x>0.5,x) flip(x) fliplr(M) flipud(M) full_like(x,x[1]) hsplit(M,2)[1]
    hstack((x,x*x)) imag(x) insert(x,1,x[2]) moveaxis(C,0,-1) permute_dims(C,(2,0,1)) ravel(M) real(x) repeat(x,2)
    reshape(x,(2,2)) resize(x,(3,2)) roll(x,1) rot90(M) split(x,2)[1] stack((x,x*x)) swapaxes(C,0,2) take(x,np.array([2,0,0]))
    take_along_axis(M,np.array([[1],[0]]),1) transpose(M) tril(M) triu(M,1) trim_zeros(x) vsplit(M,2)[1] vstack((x,x*x))
    bincount(np.array([0,2,2,1]),x) unique(x) union1d(x,x*x) intersect1d(x,x[:2]) setdiff1d(x,x[:2]) setxor1d(x,x[:2])"""
MOVES = MOVES.replace("M", "x.reshape(2,2)").replace("C", "x.reshape(1,2,2)")
TABLES, HEIGHTS = "np.arange(0.0, 7.0)", "np.array([0.0, 3.0, 4.0, 9.0, 2.0, 3.0, 7.0])"

SUMS = "sum mean prod nansum nanprod nanmean std var nanstd nanvar trapezoid"
BOUNDS = ("0.0, 1.0", "None, 1.0", "0.0, None", "1.0, 1.0", "2.0, 1.0")
GROUPS: dict[str, list[Entry]] = {
    "sums": [
        *(Entry(f"np.{name}(x)", EVERY) for name in SUMS.split()),
        *(Entry(f"x.{name}()", EVERY) for name in ("sum", "mean", "prod", "std", "var")),
        *(Entry(f"weigh(x.{name}())", EVERY) for name in ("cumsum", "cumprod")),
        *(Entry(f"weigh(np.sum({M}, {axis}))", SQUARES) for axis in (0, -1)),
        Entry("np.average(x, weights=np.arange(1.0, len(x) + 1))", EVERY),
        *(Entry(f"weigh(np.sum(x.reshape(1, 2, 1, 2), {axis}))", [[1, 2, 3, 4]]) for axis in (1, -3)),
        Entry(f"np.trace({M})", SQUARES),
        *(Entry(f"weigh({name})", EVERY) for name in ("np.cumsum(x)", "np.cumprod(x)", "np.nancumsum(x)", "np.nancumprod(x)")),
        *(Entry(f"weigh(np.{name}(x))", EVERY) for name in ("diff", "ediff1d", "vander")),
    ],
    "extremes": [
        *(Entry(f"np.{name}(x)", EVERY) for name in ["max", "min", "amax", "amin", "nanmax", "nanmin", "ptp"]),
        *(Entry(f"x.{name}()", EVERY) for name in ["max", "min"]),
        *(Entry(f"{name}({given})", TIES) for name in ("max", "min") for given in ("x", "[x[0], 1.0]", "(x[0], x[-1], 1.0)")),
    ],
    "ranks": [
        Entry("np.median(x)", [*TIES, *INFINITE]),
        Entry("np.nanmedian(x)", EVERY),
        Entry("weigh(np.quantile(x, np.array([0.0, 0.25, 0.4, 1.0])))", TIES),
        *(Entry(f"np.{name}", [*TIES, *MISSING]) for name in ("nanpercentile(x, 30.0)", "nanquantile(x, 0.7)")),
        Entry("np.percentile(x, 40.0)", TIES),
        Entry("weigh(np.sort(x))", EVERY),
    ],
    "pieces": [
        *(Entry(f"weigh(np.clip(x, {bounds}))", EVERY) for bounds in BOUNDS),
        Entry("weigh(np.clip(x[:2], x[2], x[3]))", [[NAN, 1, 0, 2], [NAN, NAN, 2, 1]]),
        Entry("weigh(np.clip(np.ones(3), x[:3], 2.0))", [[1, 1, 1], [0, 0, 0], [1.5, 1, 0.5], [3, 0, 1]]),
        Entry("weigh(np.clip(np.ones(3), 0.0, x[:3]))", [[1, 1, 1], [2, 2, 2], [1.5, 1, 0.5], [-1, 0, 1]]),
        Entry(
            "weigh(np.clip(np.zeros(2), x[:2], x[2:]))",
            [[1, 1, 1, 1], [1, 2, 1, 1], [2, 0, 1, 0], [-1, -1, -1, 0], [-2, 0, -1, 1], [0, -1, 0, -1]],
        ),
        Entry("x.clip(0.0, 2.0).sum()", EVERY),
        Entry("weigh(np.unwrap(x * np.pi))", TIES),
        Entry("weigh(np.unwrap(x, period=2.0))", TIES),
        Entry("weigh(np.where(x > 1.0, x * x, np.sqrt(x)))", EVERY),
        Entry("weigh(np.select([x > 1, x < 1], [x * x, 2 * x], 0.0))", EVERY),
        Entry("weigh(np.interp(x, np.arange(3.0), np.arange(3.0) ** 2))", [*TIES, *INFINITE, [-1, 0, 2.5]]),
        Entry(f"weigh(np.interp(x * x, {TABLES}, {HEIGHTS}))", [[0, 1, 2], [1.5, 2.2, 3], [NAN, 1]]),
        Entry("np.interp(1.0, x, np.arange(1.0, len(x) + 1) ** 2)", [[0, 1, 2], [1, 2, 3], [-1, 0, 1], [1, 1, 2], [0.5, 1.2], [1]]),
        Entry("np.interp(1.0, np.arange(0.0, len(x)), x)", [[5, 6], [5, 6, 8], [INF, 1, INF], [3, 1, INF], [5]]),
        Entry("weigh(np.sinc(x))", TIES),
        Entry("weigh(np.nan_to_num(x * x, nan=2.0))", EVERY),
        Entry("weigh(np.angle(x))", EVERY),
        *(Entry(f"weigh(np.{name}(x[0], x[2], 4))", REGULAR) for name in ("linspace", "logspace", "geomspace")),
        Entry("weigh(np.round(x, 1) * x)", TIES),
        Entry("weigh(np.around(x) * x)", TIES),
        Entry("weigh(np.ldexp(x, 2))", EVERY),
    ],
    "moves": [
        *(Entry(f"weigh(np.{call})", FOURS) for call in MOVES.split()),
        Entry("np.partition(x, 2)[2]", [REGULAR[0], [4, 1, 3, 2]]),  # of equal elements either is there
    ],
    "products": [
        *(Entry(f"np.{name}(x, x * x)", EVERY) for name in ["dot", "vdot"]),
        Entry("x.dot(x)", EVERY),
        *(Entry(f"weigh(np.{name}(x, x * x))", TIES) for name in ["outer", "kron", "convolve", "correlate"]),
        *(Entry(f"weigh({M}.T @ {other})", SQUARES) for other in (M, "x[1:3]")),
        Entry(f"weigh(x[1:3] @ {M}.T)", SQUARES),
        Entry("weigh(np.cross(x[:3], x[:3] * x[:3]))", [[1.3, 0.7, 2.1], [0, 0, 0], [1, 1, 1]]),
        Entry("np.cov(x, x * x)[0, 1]", [[1.3, 0.7, 2.1, -0.4], [1, 1, 1], [1, 2, 3]]),
        Entry("np.corrcoef(x, x * x)[0, 1]", REGULAR),
    ],
    "norms": [
        *(Entry(f"np.linalg.norm(x{order})", EVERY) for order in ("", ", 2", ", 1", ", 0", ", 3", ", 0.5", ", 1.5")),
        *(Entry(f"np.linalg.norm(x, {order})", [*TIES, *INFINITE]) for order in ("np.inf", "-np.inf")),
        Entry("np.linalg.norm(x=x, ord=-1)", [*REGULAR, [1, 2, 2, 3], [1, 1, 1], [1, INF, 2]]),
        Entry(f"np.linalg.norm({M})", SQUARES),
    ],
    "norms of matrices": [Entry(f"np.linalg.norm({M}, {order})", SQUARES) for order in ("1", "-1", "np.inf", "-np.inf")],
    "decompositions": [
        Entry(f"pair(np.linalg.eigh({M}))", SYMMETRIC),
        Entry(f"triple(np.linalg.svd({A}, False))", SINGLE),
        Entry(f"pair(np.linalg.qr({A}))", [*REGULARS, [3, 4], *TALL]),
        Entry(f"weigh(np.linalg.pinv({A}))", RANKS),
    ],
    "equal spectra": [
        Entry(f"np.linalg.norm({M}, 2)", SQUARES),
        Entry(f"(np.linalg.eigvalsh({M}) ** 3).sum()", [[1, 0, 0, 1], [0, 0, 0, 0], [2, 1, 1, 3]]),
        Entry(f"np.linalg.cond({A})", SINGLE[:3]),
        Entry(f"pair(np.linalg.lstsq({A}, {A})[:2])", RANKS),
    ],
    "matrices": [
        Entry(f"np.linalg.det({M})", SQUARES),
        Entry(f"np.linalg.slogdet({M})[1]", SQUARES),
        Entry(f"weigh(np.linalg.inv({M}))", REGULARS),
        Entry(f"weigh(np.linalg.solve({M}, x[1:3]))", REGULARS),
        Entry(f"weigh(np.linalg.solve({M}, {M}.T * x[0]))", REGULARS),
        *(Entry(f"np.linalg.matrix_power({M}, {n})[0, 1]", REGULARS) for n in (0, 5, -2)),
        Entry(f"weigh(np.linalg.cholesky({M}))", POSITIVE),
    ],
}  # fmt: skip
ALL = [(group, k) for group, entries in GROUPS.items() for k in range(len(entries))]
NAMES = [entry.text for entries in GROUPS.values() for entry in entries]


@functools.cache
def of_group(group: str) -> Any:
    """A function of the point and the number of an entry."""
    lines = ["def f(x, k):"]
    for k, entry in enumerate(GROUPS[group]):
        lines += [f"    if k == {k}:", f"        return float({entry.text})"]
    space: dict[str, Any] = {"np": np, "weigh": numba.njit(weigh_by_a_loop)}
    space |= {f.__name__: numba.njit(FunctionType(f.__code__, space)) for f in (pair, triple)}
    exec("\n".join([*lines, "    return 0.0 * x[0]"]), space)
    return numba.njit(error_model="numpy")(space["f"])


@functools.cache
def value_and_gradient(group: str) -> Any:
    return tg.value_and_grad(of_group(group))


@functools.cache
def hessian(group: str) -> Any:
    return tg.hessian(of_group(group))


def of_tensors(text: str) -> Callable[..., Any]:
    space: dict[str, Any] = {"np": np, "weigh": weigh, "pair": pair, "triple": triple}
    exec(f"def f(x):\n    return {text}", space)
    return space["f"]  # type: ignore[no-any-return]


def agree(found: Any, expected: Any, value: float) -> bool:
    left_out = np.isnan(value) & (np.isnan(found) | np.isnan(expected))
    return np.allclose(np.where(left_out, 0.0, found), np.where(left_out, 0.0, expected), rtol=1e-10, atol=1e-12, equal_nan=True)


def points(group: str, k: int) -> list[np.ndarray]:
    return [np.array(numbers, float) for numbers in GROUPS[group][k].points]


@pytest.mark.parametrize(("group", "k"), ALL, ids=NAMES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_value_and_gradient_are_those_of_tensors(group: str, k: int) -> None:
    f, text = of_group(group), GROUPS[group][k].text
    for point in points(group, k):
        value, gradient = value_and_gradient(group)(point, k)
        expected_value, expected = tg.value_and_grad(of_tensors(text))(point)
        np.testing.assert_equal(value, f(point, k), err_msg=str(point))
        np.testing.assert_allclose(value, expected_value, rtol=1e-12, err_msg=str(point))
        assert agree(gradient, expected, value), (point, gradient, expected)


@pytest.mark.parametrize(("group", "k"), [(g, k) for g, k in ALL if g not in ("equal spectra", "moves")])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_hessian_is_that_of_tensors(group: str, k: int) -> None:
    f = of_tensors(GROUPS[group][k].text)
    for point in points(group, k):
        found, expected = hessian(group)(point, k), tg.hessian(f)(point)
        known = of_group(group)(point, k) + np.sum(0.0 * tg.grad(f)(point))  # nan where the gradient is infinite or nan
        assert agree(found, expected, known), (point, found, expected)


# What is not compared: results are no real numbers that change, or one world has no derivative.
WITHOUT_DERIVATIVE = "floor_divide histogram iscomplex isreal shape size"
STEPS = [
    *(f"np.{name}(x)" for name in ("argmax", "argmin", "count_nonzero", "nanargmax", "nanargmin")),
    *(f"np.{name}(x).sum()" for name in ("argsort", "argwhere", "flatnonzero", "floor", "ceil", "trunc", "rint", "sign")),
    *(f"np.{name}(x).sum()" for name in ("isreal", "isnan", "signbit")),
    "np.nonzero(x)[0].sum()", "x.nonzero()[0].sum()", "np.where(x)[0].sum()", "np.where(x > 1.0)[0].sum()", "x.imag.sum()",
    "np.searchsorted(x, 1.0)", "np.digitize(x, np.ones(1)).sum()", "np.histogram(x, 3)[0][1]",
    "np.isclose(x, 1.0).sum()", "np.floor_divide(x, 0.7).sum()",
    "np.iscomplex(x).sum()", "np.size(x)", "np.shape(x)[0]",
    "np.isclose(x, x, x[0], 0.0, True).sum()", "int(np.allclose(x, x))", "int(np.isclose(x[0], 0.3))",
    "int(np.all(x))", "int(np.any(x))", "int(x.all())", "int(x.any())", "x.argmax()", "x.argmin()",
    "int(x[0])", "round(x[0])", "x[0] // 0.7", "np.linalg.matrix_rank(x.reshape(1, 3))",
]  # fmt: skip
COMPILED_ALONE = """complex np.complex128 math.gamma np.fill_diagonal np.random.normal np.random.uniform random.gauss
    random.normalvariate random.uniform"""
REFUSED = ("np.linalg.eig(x)[0]", "np.linalg.eigvals(x)", "np.nextafter(x, 2.0)", "np.spacing(x)")


def known_to_numba(function: Any) -> bool:
    try:
        return numba.core.registry.cpu_target.typing_context.resolve_value_type(function) is not None
    except ValueError:
        return False


def of_both_worlds() -> dict[str, Any]:
    """Functions of NumPy that Numba compiles and that tensors have, by their names."""
    numba.core.registry.cpu_target.typing_context.refresh()
    tables = [look_up(place) for place in protocols.TABLES]
    places = {name: getattr(np, name) for name in dir(np)} | {f"linalg.{name}": getattr(np.linalg, name) for name in dir(np.linalg)}
    elementwise = {*protocols.OPERATORS, *protocols.UFUNCS, *protocols.UNARY, *protocols.OWN}
    return {
        name: function
        for name, function in places.items()
        if callable(function)
        and not isinstance(function, type)
        and (any(name in table for table in tables) or (isinstance(function, np.ufunc) and function in elementwise))
        and known_to_numba(function)
    }


class Calls(NamedTuple):
    """What an expression calls with the point: functions, and names of methods."""

    functions: set[Any]
    methods: set[str]


def calls(texts: list[str]) -> Calls:
    found = Calls({operator.matmul} if any("@" in text for text in texts) else set(), set())
    for node in (node for text in texts for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        name = ast.unparse(node.func)
        if name.partition(".")[0] in ("np", "math", "random", "poly", *vars(builtins)):
            if any(map(depends_on_the_point, given)):
                found.functions.add(eval(name, {"np": np, "math": math, "random": random, "poly": np.polynomial.polynomial}))
        elif isinstance(node.func, ast.Attribute) and depends_on_the_point(node.func.value):
            found.methods.add(node.func.attr)
    return found


def depends_on_the_point(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Name) and part.id == "x" for part in ast.walk(node))


COMPARED = calls([*NAMES, *ELEMENTWISE])


def has_real_results(function: Any) -> bool:
    """Whether a ufunc has real results for real numbers; what is no ufunc may have."""
    return not isinstance(function, np.ufunc) or any(set(kind) <= set("d->") for kind in function.types)


def test_every_function_of_both_worlds_is_compared() -> None:
    both = of_both_worlds()
    exempt = {both[name] for name in WITHOUT_DERIVATIVE.split()} | calls(list(REFUSED)).functions
    missing = [name for name, f in both.items() if f not in COMPARED.functions | exempt and has_real_results(f)]
    assert len(both) > 150
    assert sorted(missing) == []


def test_every_function_that_records_in_its_own_way_is_compared() -> None:
    others = calls([*STEPS, *(entry.text for entry in ALONE)])
    alone = {eval(name, {"np": np, "math": math, "random": random}) for name in COMPILED_ALONE.split()}
    missing = {f for f in FUNCTIONS if f.__module__ != "numba.np.linalg"} - COMPARED.functions - others.functions - alone
    assert missing == set()
    assert set(METHODS) - COMPARED.methods - others.methods == {"conj", "conjugate", "item"}


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_not_compared_is_refused(call: str) -> None:
    space: dict[str, Any] = {"np": np}
    exec(f"def f(x):\n    return np.sum({call})", space)
    with pytest.raises(tg.CompileError, match=call.partition("(")[0].rpartition(".")[2]):
        tg.grad(numba.njit(space["f"]))(np.eye(2))


def test_steps_have_the_derivative_zero() -> None:
    total = " + ".join(f"float({text})" for text in STEPS)
    space: dict[str, Any] = {"np": np}
    exec(f"def f(x):\n    return x[1] * x[2] + {total}", space)
    assert tg.grad(numba.njit(space["f"]))(np.array([0.3, 1.2, 2.5])).tolist() == [0.0, 2.5, 1.2]
