"""Arrays of dual numbers: NumPy's own object arrays, so views and indices are NumPy's, with arithmetic item by item."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from dual_numbers import BINARY, Dual, add, depends, div, lift, mul, power, sub, unary, value

ORDER = np.float64


class Array(np.ndarray[Any, Any]):
    """An array of dual numbers that does what Numba compiles: items in order, also where operands share memory."""

    __array_priority__ = 1000.0

    def __setitem__(self, index: Any, given: Any) -> None:
        if isinstance(given, np.ndarray):
            super().__setitem__(index, dual(given).copy() if given.dtype != object else given.copy())
        elif isinstance(given, (list, tuple)):
            super().__setitem__(index, array(given))
        else:
            super().__setitem__(index, lift(given))

    def fill(self, given: Any) -> None:
        """Every item."""
        self[...] = given

    def copy(self, order: Any = "C") -> Any:
        """Another array."""
        return np.ndarray.copy(self, order)

    def astype(self, dtype: Any, **options: Any) -> Any:
        """Another array, of floats or what is not differentiated."""
        if np.dtype(dtype) == np.float64:
            return self.copy()
        return values(self).astype(dtype)

    def item(self, *index: Any) -> Any:
        """One number."""
        return np.ndarray.item(self, *index)

    @property
    def real(self) -> Any:  # type: ignore[override]
        """The same array."""
        return self


def values(a: Any) -> Any:
    """The values of an array, or of a number."""
    if isinstance(a, np.ndarray) and a.dtype == object:
        return np.array([value(x) for x in a.ravel()], float).reshape(a.shape)
    if isinstance(a, Dual):
        return a.value
    return a


def array(given: Any) -> Any:
    """An array of what lists and arrays hold."""
    if isinstance(given, np.ndarray):
        return dual(given).copy() if given.dtype.kind in "fO" else given.copy()
    shape: tuple[int, ...] = ()
    items = [given]
    while (
        items and isinstance(items[0], (list, tuple, np.ndarray)) and not (isinstance(items[0], np.ndarray) and not items[0].ndim)
    ):
        shape += (len(items[0]),)
        items = list(itertools.chain.from_iterable(items))
    if not items or not any(isinstance(x, (Dual, float)) for x in items):
        return np.array(given)
    return made(items, shape)


def made(items: Any, shape: Any = None) -> Array:
    """An array of numbers."""
    shape = len(items) if shape is None else shape
    out = np.empty(len(items), object)
    for k, x in enumerate(items):
        out[k] = lift(x)
    return out.reshape(shape).view(Array)


def dual(a: Any) -> Any:
    """An array, or a number, with derivatives."""
    if isinstance(a, Array):
        return a
    if isinstance(a, np.ndarray):
        if a.dtype == object:
            return a.view(Array)
        return made(list(a.ravel()), a.shape)
    return lift(a)


def elementwise(function: Callable[..., Any], *given: Any) -> Any:
    """A function of numbers on arrays that are broadcast."""
    operands = [a if isinstance(a, np.ndarray) else _boxed(a) for a in given]
    spread = np.broadcast_arrays(*operands)
    shape = spread[0].shape
    out = [function(*items) for items in zip(*(list(a.ravel()) for a in spread), strict=True)]
    if not any(isinstance(a, np.ndarray) and a.ndim for a in given):
        return out[0] if out else None
    if all(isinstance(x, (bool, np.bool_)) for x in out):
        return np.array(out, bool).reshape(shape)
    if "F" in {_order(a) for a in given} and "C" not in {_order(a) for a in given}:
        return np.asfortranarray(made(out, shape)).view(Array)
    return made(out, shape)


def _order(a: Any) -> str | None:
    if not isinstance(a, np.ndarray) or not a.ndim:
        return None
    return "C" if a.flags.c_contiguous else "F" if a.flags.f_contiguous else "C"


def _boxed(x: Any) -> Any:
    box = np.empty((), object)
    box[()] = x
    return box


def _methods() -> None:
    table = {
        "add": add,
        "sub": sub,
        "mul": mul,
        "truediv": div,
        "pow": power,
        "mod": BINARY["mod"],
        "floordiv": BINARY["floor_divide"],
    }

    def binary(function: Any) -> tuple[Any, Any, Any]:
        def forward(self: Any, other: Any) -> Any:
            return elementwise(function, self, other)

        def backward(self: Any, other: Any) -> Any:
            return elementwise(function, other, self)

        def in_place(self: Any, other: Any) -> Any:
            other = np.broadcast_to(other if isinstance(other, np.ndarray) else _boxed(other), self.shape)
            for place in np.ndindex(self.shape):  # in order: Numba looks for no overlap here
                self[place] = function(self[place], other[place])
            return self

        return forward, backward, in_place

    for name, function in table.items():
        for prefix, method in zip(("", "r", "i"), binary(function), strict=True):
            setattr(Array, f"__{prefix}{name}__", method)
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        compare = getattr(operator, name)

        def method(self: Any, other: Any, compare: Any = compare) -> Any:
            return elementwise(lambda x, y: compare(value(x), value(y)), self, other)

        setattr(Array, f"__{name}__", method)
    for name, of in (("neg", "neg"), ("abs", "abs"), ("pos", "positive")):
        setattr(Array, f"__{name}__", lambda self, of=of: elementwise(unary(of), self))
    Array.__matmul__ = Array.dot = lambda self, other: dot(self, other)  # type: ignore[method-assign,assignment]
    Array.__rmatmul__ = lambda self, other: dot(other, self)  # type: ignore[method-assign]
    for name in ("sum", "prod", "mean", "var", "std", "max", "min", "ptp", "cumsum", "cumprod", "argmax", "argmin", "argsort",
                 "clip", "trace", "repeat", "any", "all"):  # fmt: skip
        setattr(Array, name, REDUCTIONS[name])
    Array.sort = _sort  # type: ignore[method-assign,assignment]


def _sort(self: Any) -> None:
    for place in np.ndindex(self.shape[:-1]):
        self[place] = ordered(self[place])


def _key(x: Any) -> tuple[bool, float]:
    return (True, 0.0) if value(x) != value(x) else (False, value(x))


def ordered(a: Any) -> Any:
    """Sorted along the last axis; equal numbers stay in order."""
    out = dual(a).copy()
    for place in np.ndindex(out.shape[:-1]):
        row = list(out[place])
        out[place] = made(sorted(row, key=_key), (len(row),))
    return out


def _axis(fold: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """A reduction of everything, or along one axis."""

    def call(a: Any, axis: Any = None) -> Any:
        a = a if isinstance(a, np.ndarray) else array(a)
        if axis is None:
            return fold(list(a.ravel()))
        moved = np.moveaxis(a, axis, -1)
        out = [fold(list(moved[place])) for place in np.ndindex(moved.shape[:-1])]
        if not moved.shape[:-1]:
            return out[0]
        return made(out, moved.shape[:-1]) if isinstance(out[0], Dual) else np.array(out).reshape(moved.shape[:-1])

    return call


def total(items: list[Any]) -> Any:
    """The sum of numbers; of integers it is one."""
    if items and all(isinstance(x, (int, np.integer, np.bool_)) for x in items):
        return sum(map(int, items))
    out: Any = Dual(0.0)
    for x in items:
        out = add(out, x)
    return out


def product(items: list[Any]) -> Any:
    """The product of numbers."""
    out: Any = Dual(1.0)
    for x in items:
        out = mul(out, x)
    return out


def average(items: list[Any]) -> Any:
    """The mean of numbers."""
    return div(total(items), float(len(items)))


def variance(items: list[Any]) -> Any:
    """The mean square about the mean."""
    middle = average(items)
    apart = [sub(x, middle) for x in items]
    return average([mul(x, x) for x in apart])


def best(better: Callable[[float, float], bool]) -> Callable[[list[Any]], int]:
    """The place of the first of the best; of nan, if there is one."""

    def place(items: list[Any]) -> int:
        chosen = 0
        for k, x in enumerate(items):
            if value(x) != value(x):
                return k
            if better(value(x), value(items[chosen])):
                chosen = k
        return chosen

    return place


largest, smallest = best(operator.gt), best(operator.lt)


def running(function: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """A sum or product of everything before."""

    def call(a: Any) -> Any:
        items = list(a.ravel())
        if not isinstance(a, Array) and a.dtype.kind in "ib":
            return (np.cumsum if function is add else np.cumprod)(a)
        return made(list(itertools.accumulate(items, function)), (len(items),))

    return call


def dot(a: Any, b: Any) -> Any:
    """Products of vectors and matrices."""
    if a.ndim == b.ndim == 1:
        if a.shape != b.shape:
            raise ValueError("shapes")
        return total([mul(x, y) for x, y in zip(a, b, strict=True)])
    if a.ndim == 2 and b.ndim == 1:
        return made([dot(row, b) for row in a], (len(a),))
    if a.ndim == 1:
        return made([dot(a, column) for column in b.T], (b.shape[1],))
    return made([dot(row, column) for row in a for column in b.T], (len(a), b.shape[1]))


def argsort(a: Any) -> Any:
    """The order of items; equal ones stay as they are."""
    items = list(a)
    return np.array(sorted(range(len(items)), key=lambda k: _key(items[k])), np.int64)


def clip(a: Any, low: Any, high: Any) -> Any:
    """Within bounds, as a larger and a smaller of two; what is equal to a bound is taken, and not the bound."""
    out = a
    for name, bound in (("fmax", low), ("fmin", high)):
        if bound is not None:
            choice = BINARY[name]
            out = elementwise(lambda x, y, choice=choice: x if value(x) != value(x) else choice(x, y), out, bound)
    return out


def _place(of: Callable[[list[Any]], int]) -> Callable[..., Any]:
    return _axis(lambda items: of(items))


def _truth(of: Callable[[Any], bool]) -> Callable[..., Any]:
    return lambda a: of(bool(x) for x in a.ravel())


def _shared(place: Callable[[Any], int]) -> Callable[[Any], Any]:
    """A largest or smallest item, whose derivative equal ones share evenly."""

    def extreme(items: Any) -> Any:
        found = items[place(items)]
        equal = [item for item in items if value(item) == value(found)]
        return average(equal) if len(equal) > 1 and not isinstance(found, (int, np.integer, np.bool_)) else found

    return extreme


_largest, _smallest = _shared(largest), _shared(smallest)
REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": _axis(total), "prod": _axis(product), "mean": _axis(average), "var": _axis(variance),
    "std": _axis(lambda items: unary("sqrt")(variance(items))),
    "max": _axis(_largest), "min": _axis(_smallest), "ptp": _axis(lambda items: sub(_largest(items), _smallest(items))),
    "cumsum": running(add), "cumprod": running(mul), "argmax": _place(largest), "argmin": _place(smallest), "argsort": argsort,
    "clip": clip, "trace": lambda a: total([a[k, k] for k in range(min(a.shape))]),
    "repeat": lambda a, n: a.ravel()[np.repeat(np.arange(a.size), n)], "any": _truth(any), "all": _truth(all),
}  # fmt: skip
_methods()


def solve(a: Any, b: Any) -> Any:
    """A linear system by elimination, so its derivatives are those of arithmetic."""
    n = len(a)
    rows = [[lift(x) for x in a[i]] + [lift(x) for x in np.atleast_1d(b[i])] for i in range(n)]
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k].value))
        if rows[pivot][k].value == 0.0:
            raise np.linalg.LinAlgError("singular")
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(n):
            if i != k:
                factor = div(rows[i][k], rows[k][k])
                rows[i] = [sub(x, mul(factor, y)) for x, y in zip(rows[i], rows[k], strict=True)]
    return made([div(x, rows[k][k]) for k in range(n) for x in rows[k][n:]], b.shape)


def det(a: Any) -> Any:
    """A determinant by its first row."""
    if len(a) == 1:
        return lift(a[0, 0])
    rest = [np.delete(np.asarray(a)[1:], k, axis=1) for k in range(len(a))]
    parts = [mul(a[0, k], det(minor)) for k, minor in enumerate(rest)]
    return total([x if k % 2 == 0 else unary("neg")(x) for k, x in enumerate(parts)])


def norm(a: Any, order: Any = None) -> Any:
    """The length of all items as one vector, with derivatives zero at the origin."""
    items = list(a.ravel())
    z = float(np.linalg.norm(values(a)))
    if z == 0.0 or order is not None:
        return Dual(z) if order is None else _norm(items, order)
    return unary("sqrt")(total([mul(x, x) for x in items]))


def _norm(items: list[Any], order: float) -> Any:
    sizes = [unary("abs")(x) for x in items]
    if np.isinf(order):
        return sizes[(largest if order > 0 else smallest)(sizes)]
    return total(sizes) if order == 1 else power(total([power(x, order) for x in sizes]), 1.0 / order)


def interpolated(x: Any, xs: Any, ys: Any) -> Any:
    """Piecewise linear interpolation at one point."""
    at, knots = value(x), [value(v) for v in xs]
    if at != at:
        return Dual(at)
    if at >= knots[-1]:
        return depends(value(ys[-1]), [(lift(ys[-1]), 1.0)])
    if at < knots[0]:
        return depends(value(ys[0]), [(lift(ys[0]), 1.0)])
    k = max(i for i in range(len(knots)) if knots[i] <= at)
    slope = div(sub(ys[k + 1], ys[k]), sub(xs[k + 1], xs[k]))
    return add(mul(slope, sub(x, xs[k])), ys[k])
