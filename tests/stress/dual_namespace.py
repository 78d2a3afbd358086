"""`numpy`, `math`, `numba` and Python's functions for programs that run on dual numbers instead of being compiled."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import dual_arrays as arrays
import numpy as np
from compiled_programs import Pair, items_of, weighted
from dual_arrays import REDUCTIONS, Array, array, dual, elementwise, made, values
from dual_numbers import BINARY, STEPS, UNARY, Dual, is_real, lgamma, lift, maximum, minimum, power, sinc, unary, value

FLOATS = (float, np.float64, None)


def _over_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        count = 2 if function in BINARY.values() else 1
        if len(given) > count:  # an array for the result
            out, operands = given[-1], given[:-1]
            spread = [np.broadcast_to(a, out.shape) if isinstance(a, np.ndarray) else a for a in operands]
            for place in np.ndindex(out.shape):
                out[place] = function(*(a[place] if isinstance(a, np.ndarray) else a for a in spread))
            return out
        if all(not isinstance(a, np.ndarray) for a in given):
            return function(*given)
        return elementwise(function, *given)

    return call


def _filled(fill: float) -> Callable[..., Any]:
    def make(shape: Any, dtype: Any = None) -> Any:
        shape = (shape,) if isinstance(shape, (int, np.integer)) else shape
        if dtype not in FLOATS:
            return np.full(shape, fill, dtype)
        return made([fill] * math.prod(shape), shape)

    return make


def _like(fill: float) -> Callable[..., Any]:
    def make(a: Any, dtype: Any = None) -> Any:
        if dtype is None and isinstance(a, np.ndarray) and a.dtype.kind in "ib":
            return np.full_like(a, fill)
        return _filled(fill)(a.shape, dtype)

    return make


def _full(shape: Any, fill: Any, dtype: Any = None) -> Any:
    if (isinstance(fill, int) and dtype is None) or dtype not in FLOATS:
        return np.full(shape, fill, dtype)
    out = _filled(0.0)(shape)
    out.fill(fill)
    return out


def _full_like(a: Any, fill: Any) -> Any:
    return _full(a.shape, fill if a.dtype.kind in "ib" else float(fill) if not isinstance(fill, Dual) else fill)


def _without_nan(fold: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    return lambda a: fold([x for x in a.ravel() if value(x) == value(x)])


def _where(*given: Any) -> Any:
    if len(given) == 1:
        return np.where(given[0])
    condition, x, y = given
    if not any(isinstance(a, np.ndarray) for a in given):
        return x if condition else y
    return elementwise(lambda c, a, b: lift(a) if c else lift(b), condition, x, y)


def _linspace(start: Any, stop: Any, count: int = 50) -> Any:
    step = (lift(stop) - lift(start)) * (1.0 / max(count - 1, 1))
    out = [lift(start) + step * float(k) for k in range(count)]
    if count > 1:
        out[-1] = lift(stop)
    return made(out, (count,))


def _test(test: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a: test(values(a)) if isinstance(a, np.ndarray) else bool(test(value(a)))


def _reduced(method: Callable[..., Any], a: Any, *args: Any) -> Any:
    return method(a) if args == (None,) else method(a, *args)


def _joined(name: str) -> Callable[..., Any]:
    return lambda parts, *axis: getattr(np, name)([np.asarray(dual(p)) for p in parts], *axis).view(Array)


def _moved(name: str) -> Callable[..., Any]:
    def call(a: Any, *args: Any) -> Any:
        out = getattr(np, name)(a, *args)
        return out.view(Array) if isinstance(out, np.ndarray) and out.dtype == object else out

    return call


def _diff(a: Any, n: int = 1) -> Any:
    for _ in range(n):
        a = a[..., 1:] - a[..., :-1]
    return a


def _searchsorted(a: Any, v: Any, side: str = "left") -> Any:
    return np.searchsorted(values(a), values(v), side)


def _unique(a: Any) -> Any:
    items = list(arrays.ordered(a.ravel()))
    return made([x for k, x in enumerate(items) if not k or x != items[k - 1]])


def _median(a: Any) -> Any:
    items = sorted(a.ravel(), key=value)
    n = len(items)
    return items[n // 2] if n % 2 else (items[n // 2 - 1] + items[n // 2]) * 0.5


def _percentile(a: Any, q: float) -> Any:
    items = sorted(a.ravel(), key=value)
    place = (len(items) - 1) * q / 100.0
    k = min(int(place), len(items) - 2)
    return items[k] + (items[k + 1] - items[k]) * (place - k)


def _cross(a: Any, b: Any) -> Any:
    return made([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]], (3,))


def _convolve(a: Any, b: Any) -> Any:
    out = _filled(0.0)(len(a) + len(b) - 1)
    for i in range(len(a)):
        for j in range(len(b)):
            out[i + j] = out[i + j] + a[i] * b[j]
    return out


def _trapezoid(y: Any, x: Any = None) -> Any:
    steps = 1.0 if x is None else _diff(x)
    return (steps * (y[1:] + y[:-1]) * 0.5).sum()


class Linalg:
    """What programs use of `numpy.linalg`."""

    norm, det, solve = staticmethod(arrays.norm), staticmethod(arrays.det), staticmethod(arrays.solve)

    @staticmethod
    def inv(a: Any) -> Any:
        """The inverse."""
        return arrays.solve(a, np.eye(len(a)))


class NumPy:
    """NumPy, of dual numbers; what has no place here is NumPy's own, and gives or takes no floats."""

    pi, e, inf, nan = math.pi, math.e, math.inf, math.nan
    float64, int64, bool_, int32, newaxis, ndenumerate = staticmethod(lift), np.int64, np.bool_, np.int64, None, np.ndenumerate
    linalg = Linalg

    def __init__(self) -> None:
        table = {name: _over_arrays(unary(name)) for name in (*UNARY, *STEPS)}
        table |= {name: _over_arrays(function) for name, function in BINARY.items()}
        table |= {
            name: lambda a, axis=None, *more, method=method: _reduced(method, a, axis, *more) for name, method in REDUCTIONS.items()
        }
        table |= {name: _joined(name) for name in ("concatenate", "stack", "vstack", "hstack", "column_stack")}
        moved = "roll flip reshape ravel transpose atleast_1d atleast_2d expand_dims fliplr flipud triu tril diag append rot90"
        table |= {name: _moved(name) for name in moved.split()}
        table |= {
            "negative": table["neg"],
            "absolute": table["abs"],
            "fabs": table["abs"],
            "amax": table["max"],
            "amin": table["min"],
        }
        for name in ("isnan", "isinf", "isfinite"):
            table[name] = _test(getattr(np, name))
        for name in ("sum", "mean", "std", "var", "max", "min", "prod"):
            fold = {"sum": arrays.total, "mean": arrays.average, "prod": arrays.product, "var": arrays.variance}.get(name)
            table[f"nan{name}"] = _without_nan(fold or (lambda items, name=name: REDUCTIONS[name](made(items, (len(items),)))))
        self.__dict__ |= table
        self.__dict__ |= {
            "array": lambda a, *_: array(a), "asarray": lambda a: a if isinstance(a, np.ndarray) else array(a),
            "zeros": _filled(0.0), "ones": _filled(1.0), "empty": _filled(0.0), "zeros_like": _like(0.0), "ones_like": _like(1.0),
            "empty_like": _like(0.0), "full": _full, "full_like": _full_like, "copy": lambda a: a.copy(), "where": _where,
            "eye": lambda n: dual(np.eye(n)), "identity": lambda n: dual(np.eye(n)), "linspace": _linspace,
            "arange": lambda *a: np.arange(*a) if all(isinstance(v, (int, np.integer)) for v in a) else dual(np.arange(*a)),
            "dot": arrays.dot, "vdot": arrays.dot, "outer": lambda a, b: a.reshape(-1, 1) * b.reshape(1, -1),
            "kron": lambda a, b: (a.reshape(-1, 1) * b.reshape(1, -1)).ravel(), "diff": _diff, "ediff1d": _diff,
            "sort": arrays.ordered, "searchsorted": _searchsorted, "median": _median, "percentile": _percentile,
            "interp": lambda x, xs, ys: elementwise(lambda v: arrays.interpolated(v, xs, ys), x),
            "unique": _unique, "sinc": _over_arrays(sinc), "cross": _cross, "convolve": _convolve, "trapezoid": _trapezoid,
            "nancumsum": lambda a: _nan_to(a, 0.0).cumsum(),
            "nan_to_num": lambda a: _nan_to(a, 0.0), "nditer": lambda a: [np.asarray(x) for x in a.ravel()],
            "ndindex": np.ndindex, "sign": _over_arrays(unary("sign")), "round": _over_arrays(unary("rint")),
            "take": lambda a, k: a.ravel()[k], "ascontiguousarray": np.ascontiguousarray, "square": _over_arrays(unary("square")),
            "count_nonzero": lambda a: int(np.count_nonzero(values(a))), "nonzero": lambda a: np.nonzero(values(a)),
            "flatnonzero": lambda a: np.flatnonzero(values(a)), "argwhere": lambda a: np.argwhere(values(a)),
            "digitize": lambda x, bins: np.digitize(values(x), values(bins)), "logical_and": np.logical_and,
            "logical_or": np.logical_or, "logical_not": np.logical_not, "size": np.size, "shape": np.shape,
        }  # fmt: skip


def _nan_to(a: Any, number: float) -> Any:
    return elementwise(lambda x: Dual(number) if value(x) != value(x) else lift(x), a)


class Math:
    """`math`, of dual numbers, outside of domains as C has it."""

    pi, e, inf, nan = math.pi, math.e, math.inf, math.nan
    atan2, hypot, copysign, fmod, pow = (staticmethod(BINARY[n]) for n in ("arctan2", "hypot", "copysign", "fmod", "power"))
    floor = staticmethod(lambda x: math.floor(value(x)))
    ceil = staticmethod(lambda x: math.ceil(value(x)))
    trunc = staticmethod(lambda x: math.trunc(value(x)))
    isnan, isinf, isfinite = (staticmethod(lambda x, test=test: test(value(x))) for test in (math.isnan, math.isinf, math.isfinite))

    def __getattr__(self, name: str) -> Any:
        of = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "atanh": "arctanh", "fabs": "abs"}
        return unary(of.get(name, name)) if name != "lgamma" else lgamma


class TypedList(list[Any]):
    """A typed list."""

    @classmethod
    def empty_list(cls, kind: Any) -> TypedList:
        """An empty one."""
        return cls()


class TypedDict(dict[Any, Any]):
    """A typed dictionary."""

    @classmethod
    def empty(cls, key: Any, value: Any) -> TypedDict:
        """An empty one."""
        return cls()


class Numba:
    """Numba, which compiles nothing."""

    float64, int64, prange = float, int, range

    @staticmethod
    def njit(function: Any = None, **options: Any) -> Any:
        """The function itself."""
        return function if function is not None else lambda f: f

    @staticmethod
    def literal_unroll(items: Any) -> Any:
        """The items."""
        return items

    @staticmethod
    def jitclass(spec: Any) -> Any:
        """The class itself."""
        return lambda made: made


def _fold(pair: Callable[[Any, Any], Any], first: Callable[[list[Any]], int]) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        if len(given) == 1:  # the first of the best in a container
            items = list(given[0])
            return items[first(items)]
        if all(isinstance(x, (int, np.integer)) for x in given):
            return (max if pair is maximum else min)(given)
        out = given[0]
        for x in given[1:]:  # of equal ones Python takes the first
            out = out if value(out) == value(x) else pair(out, x)
        return out

    return call


def _rounded(x: Any, *digits: int) -> Any:
    return round(value(x)) if not digits else Dual(round(value(x), *digits))


def namespace() -> dict[str, Any]:
    """The globals of a program that runs on dual numbers."""
    own = {
        "max": _fold(maximum, arrays.largest), "min": _fold(minimum, arrays.smallest),
        "float": lambda x: lift(x), "int": lambda x: int(value(x)), "round": _rounded, "bool": lambda x: bool(value(x)),
        "abs": lambda x: abs(x) if not isinstance(x, float) else lift(abs(x)), "sum": _sum,
        "sorted": lambda items: sorted(items, key=value),
        "pow": lambda x, y: power(x, y) if not isinstance(x, int) else x**y,
    }  # fmt: skip
    names: dict[str, Any] = {"__builtins__": {**vars(builtins), **own}, "__name__": "program"}
    return names | {"np": NumPy(), "math": Math(), "numba": Numba, "List": TypedList, "Dict": TypedDict, "jitclass": Numba.jitclass,
                    "literal_unroll": Numba.literal_unroll, "items_of": items_of, "weighted": weighted, "Pair": Pair}  # fmt: skip


def _sum(items: Any, start: Any = 0) -> Any:
    out = start
    for x in items:
        out = out + x
    return out


__all__ = ["Array", "is_real", "namespace"]
