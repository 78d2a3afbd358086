"""NumPy's functions on tensors: what ``np.sin(t)``, ``array + t`` and ``np.concatenate([t, u])`` mean.

NumPy hands its calls over by two protocols, one for ufuncs and one for its other functions. Both look into tables: from ufuncs to
operators or names of the package, and from functions to those of `functions` and its neighbours, which take NumPy's arguments.
What is in no table raises: a tensor is not turned into an array behind the caller's back, since that would lose its gradient.

The module is imported by the first such call.
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.arrays.memory_pool import SMALL, pooled_copy
from tapegrad.deferred import MadeOnDemand, look_up
from tapegrad.frames import is_inside_driver
from tapegrad.numpy_protocol.operands import NotCovered, as_tensors, named, one, with_large_matrix
from tapegrad.ops.elementwise import deliver_to
from tapegrad.rules.table import RULES
from tapegrad.surface import functions as tg
from tapegrad.surface.tensor_methods import OnTheClass
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import KINDS, Tensor, array_of, as_operand, make

__all__ = ["array_function", "array_ufunc", "of_scipy"]


def _elementwise(name: str) -> Callable[[Any], Any]:
    """A function of another file, which its first call imports."""

    def call(x: Any) -> Any:
        return look_up(f"numpy_protocol.elementwise:{name}")(x)

    return call


OPERATORS: dict[Any, Callable[[Any, Any], Any]] = {
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul, np.divide: operator.truediv,
    np.floor_divide: operator.floordiv, np.remainder: operator.mod, np.power: operator.pow, np.matmul: operator.matmul,
    np.less: operator.lt, np.less_equal: operator.le, np.greater: operator.gt, np.greater_equal: operator.ge,
    np.equal: operator.eq, np.not_equal: operator.ne,
}  # fmt: skip

# Ufuncs by the names of what they are here. Another library's ufunc may have one of these names and mean something else.
_SAME_NAME = (
    "arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and bitwise_or bitwise_xor gcd isfinite isinf isnan "
    "lcm logical_and logical_not logical_or logical_xor signbit"
)
_RULES = [rule.name for rule in RULES if isinstance(getattr(np, rule.name, None), np.ufunc)]
UFUNCS: dict[Any, str] = {getattr(np, name): name for name in (*_RULES, *_SAME_NAME.split())}
UFUNCS |= {
    np.degrees: "rad2deg", np.fabs: "abs", np.float_power: "float_power", np.invert: "bitwise_not", np.radians: "deg2rad",
    np.left_shift: "bitwise_left_shift", np.right_shift: "bitwise_right_shift", np.rint: "round",
}  # fmt: skip
UNARY: dict[Any, Callable[[Any], Any]] = {
    np.absolute: operator.abs, np.conjugate: operator.pos, np.modf: _elementwise("modf"),
    np.negative: operator.neg, np.positive: operator.pos,
}  # fmt: skip

# Ufuncs that are made of several operations.
OWN: dict[Any, str] = {
    getattr(np, name): f"{file}:{name}"
    for file, names in (("stepping_ufuncs", "frexp heaviside ldexp nextafter spacing"), ("products", "vecdot matvec vecmat"))
    for name in names.split()
    if hasattr(np, name)
}


def _direct(ufunc: Any) -> Callable[..., Any] | None:
    """What computes a ufunc of tensors and numbers with nothing more to be done; None if there is no such thing."""
    made_of_others = ufunc in OPERATORS or ufunc in UNARY or ufunc in OWN or ufunc is np.divmod
    return None if made_of_others or ufunc not in UFUNCS else named(UFUNCS[ufunc])


DIRECT: dict[Any, Callable[..., Any] | None] = MadeOnDemand(_direct)

# What depends on values only by steps, or not at all: NumPy computes it, and arrays in the result become untracked tensors.
_NAMES_OF_VALUES = (
    "all allclose any argmax argmin argpartition argsort argwhere array_equal array_equiv can_cast common_type count_nonzero "
    "diag_indices_from digitize einsum_path empty_like flatnonzero isclose iscomplexobj isin isneginf isposinf isrealobj "
    "lexsort linalg.matrix_rank may_share_memory nanargmax nanargmin ndim nonzero ones_like result_type searchsorted "
    "shares_memory tril_indices_from triu_indices_from unravel_index zeros_like"
)
# What shows, stores or converts arrays: of untracked tensors only, as `numpy.asarray`. SciPy converts what the functions that it
# minimises return by `numpy.atleast_1d`, and needs arrays from then on.
_NAMES_OF_ARRAYS = "array2string array_repr array_str atleast_1d atleast_2d atleast_3d save savetxt savez savez_compressed"


def _found(name: str) -> Any:
    place: Any = np
    for part in name.split("."):
        place = getattr(place, part, None)
    return place


_OF_VALUES = frozenset(map(_found, _NAMES_OF_VALUES.split()))
_OF_SHAPES = frozenset([np.zeros_like, np.ones_like, np.empty_like])
_OF_ARRAYS = frozenset(map(_found, _NAMES_OF_ARRAYS.split()))


@functools.cache
def _taken(function: Callable[..., Any]) -> tuple[tuple[str, ...], float]:
    """Names of the arguments that a function takes, and how many can be given by position."""
    parameters = inspect.signature(function).parameters.values()
    many = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    places = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    return tuple(p.name for p in parameters), float("inf") if many else places


# By the names that NumPy has for them. The common ones come first: a table is imported when those before it have not answered.
TABLES = (
    "numpy_protocol.reductions:REDUCTIONS",
    "numpy_protocol.functions:COUNTERPARTS",
    "numpy_protocol.products:PRODUCTS",
    "numpy_protocol.padding:PADDING",
    "numpy_protocol.rearranging:REARRANGING",
    "numpy_protocol.elementwise:ELEMENTWISE",
    "numpy_protocol.statistics:STATISTICS",
    "numpy_protocol.sampled_functions:SAMPLED",
    "numpy_protocol.polynomials:POLYNOMIALS",
    "numpy_protocol.along_axes:ALONG_AXES",
    "numpy_protocol.ranges:RANGES",
)
_read: set[str] = set()
FUNCTIONS: dict[Any, Callable[..., Any]] = {}  # of the tables that were read


def function_for(function: Any) -> Callable[..., Any]:
    """What the tables have for a NumPy function.

    Raises
    ------
    NotCovered
        If none has it.
    """
    if function in FUNCTIONS:
        return FUNCTIONS[function]
    for place in TABLES:
        if place not in _read:
            FUNCTIONS.update({_found(name): own for name, own in look_up(place).items() if _found(name)})
            _read.add(place)
        if function in FUNCTIONS:
            return FUNCTIONS[function]
    raise NotCovered


def _by_values(function: Any) -> Callable[..., Any] | None:
    """What computes with the values of tensors, for the functions of the two lists."""
    kind = "of_shapes" if function in _OF_SHAPES else "of_values" if function in _OF_VALUES else "of_arrays"
    if kind == "of_arrays" and function not in _OF_ARRAYS:
        return None
    found: Callable[..., Any] = look_up(f"numpy_protocol.functions_of_values:{kind}")(function)
    return found


# By NumPy's functions, each made when it is first asked for; None for those whose meaning is in the tables.
VALUES: dict[Any, Callable[..., Any] | None] = MadeOnDemand(_by_values)

# Arguments spelt out as NumPy would take them by itself.
NEUTRAL = (
    ("casting", "same_kind"),
    ("order", "C"),
    ("order", "K"),
    ("where", True),
    ("overwrite_input", False),
    ("writeable", False),
    ("sorted", True),
)

# Functions of the package that have the name of one of NumPy's and mean something else.
_OTHERWISE = "cross load max median min nanmedian nonzero put save select sort split std take transpose unique var"
OTHERWISE = frozenset(_OTHERWISE.split())

FAMILIAR = frozenset([Tensor, np.ndarray, np.float64, float, int])
_Float64 = np.float64
_float64 = np.dtype(np.float64)


def array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy's protocol for ufuncs; also how ``array + tensor`` arrives here.

    Raises
    ------
    TypeError
        If the ufunc, its method or one of the arguments is not covered.
    RuntimeError
        If ``out=`` is given and something is tracked.
    """
    if method == "__call__" and not kwargs:
        operate = OPERATORS.get(ufunc)
        x, y = inputs if len(inputs) == 2 else (None, None)
        if operate is not None and not (_is_foreign(x) or _is_foreign(y)):
            if ufunc is np.matmul and (product := with_large_matrix(x, y)) is not None:
                return product
            return operate(x if isinstance(x, Tensor) else _plain(x), y if isinstance(y, Tensor) else _plain(y))
    if any(map(_is_foreign, inputs)):
        return NotImplemented
    out = kwargs.pop("out", (None,))
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    if getattr(np, ufunc.__name__, None) is ufunc:
        name = f"numpy.{name}"
    try:
        if method not in _METHODS:
            raise NotCovered
        if len(out) > 1 and any(place is not None for place in out):
            raise NotCovered("out= of several results")
        where = kwargs.pop("where", True) if method == "__call__" else True
        result = _METHODS[method](ufunc, *inputs, **kwargs)
        if where is not True:
            result = _where(where, result, out[0])
    except NotCovered as why:
        raise TypeError(_advice(name, str(why))) from None
    return _deliver(out[0] if len(out) == 1 else None, result)


def array_function(self: Tensor, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """NumPy's protocol for functions that are not ufuncs.

    Raises
    ------
    TypeError
        If the function or one of the arguments is not covered.
    RuntimeError
        If ``out=`` is given and something is tracked.
    """
    for kind in types:
        if kind not in KINDS and kind is not np.ndarray and not issubclass(kind, (Tensor, np.ndarray)):
            return NotImplemented
    out = None
    try:
        if not kwargs and function in _simple and len(args) <= _simple[function][1]:
            return _simple[function][0](*args)
        kwargs = {name: value for name, value in kwargs.items() if value is not np._NoValue}
        out = kwargs.pop("out", None)
        result = _call(function, *args, **kwargs)
    except NotCovered as why:
        raise TypeError(_advice(f"{function.__module__}.{function.__name__}", str(why))) from None
    return _deliver(out, result)


def _is_foreign(x: Any) -> bool:
    """Whether an operand is of another library that takes part in the protocol: it is asked next."""
    kind = type(x)
    return kind not in FAMILIAR and hasattr(kind, "__array_ufunc__") and not issubclass(type(x), (Tensor, np.ndarray, np.generic))


def _plain(x: Any) -> Any:
    """An operand that is no tensor as one that Python's operators hand on to the tensor and not back to NumPy."""
    kind = type(x)
    if kind is np.ndarray and x.dtype is _float64 and x.ndim and not TAPE.tracers:
        # The caller may write into it before the derivative is taken.
        return make(x.copy() if x.size <= SMALL else pooled_copy(x), 0)
    if kind is _Float64:
        return float(x)
    if kind is float or kind is int or kind is bool:
        return x
    return as_operand(x if issubclass(type(x), (np.generic, np.ndarray)) else np.asarray(x))


# What tables had, and how many arguments it takes by position as they are.
_simple: dict[Any, tuple[Callable[..., Any], float]] = {}


def _call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """What the tables have for a NumPy function, called with NumPy's arguments."""
    of_values = VALUES[function]
    if of_values is not None:
        return of_values(*args, **kwargs)
    own = function_for(function)
    names, positional = _taken(own)
    _simple[function] = own, positional
    if len(args) > positional:
        raise NotCovered("fewer of its arguments than given can be given by position")
    if "dtype" in names:
        place = names.index("dtype")
        _simple[function] = own, min(positional, place)
        if isinstance(kwargs.get("dtype"), str):  # which is a name to NumPy alone
            kwargs["dtype"] = np.dtype(kwargs["dtype"])
        elif len(args) > place and isinstance(args[place], str):
            args = (*args[:place], np.dtype(args[place]), *args[place + 1 :])
    for name in kwargs:
        if name not in names:
            check_arguments(names, kwargs)
            return own(*args, **{name: value for name, value in kwargs.items() if name in names})
    return own(*args, **kwargs)


def check_arguments(known: tuple[str, ...], kwargs: dict[str, Any]) -> None:
    """Raise if a keyword argument that is not known says anything but what NumPy does anyhow."""
    for name, value in kwargs.items():
        neutral = value is None or name == "subok" or (isinstance(value, (bool, str)) and (name, value) in NEUTRAL)
        if name not in known and not neutral:
            raise NotCovered(f"its argument {name!r} has no counterpart")


def _apply(ufunc: Any, *inputs: Any, dtype: Any = None, casting: str = "same_kind", **kwargs: Any) -> Any:
    if dtype is not None:
        inputs = look_up("numpy_protocol.ufunc_methods:in_dtype")(np.dtype(dtype), inputs)
    if ufunc in OWN:
        return look_up(f"numpy_protocol.{OWN[ufunc]}")(*inputs, **kwargs)
    check_arguments((), kwargs)
    if ufunc.nin == 3 and ufunc.__name__ == "clip":  # what the method of arrays calls; NumPy has no public name for it
        return _call(np.clip, *inputs)
    if ufunc is np.divmod:
        return _apply(np.floor_divide, *inputs), _apply(np.remainder, *inputs)
    if ufunc in OPERATORS:
        return OPERATORS[ufunc](*(x if isinstance(x, Tensor) else _plain(x) for x in inputs))
    if ufunc in UNARY:
        return UNARY[ufunc](as_tensors(*inputs)[0])
    if ufunc not in UFUNCS:
        name = of_scipy(ufunc)
        return named(name)(*as_tensors(*inputs)) if name else look_up("numpy_protocol.scipy_special:special")(ufunc)(*inputs)
    return named(UFUNCS[ufunc])(*as_tensors(*inputs))


# Ufuncs of `scipy.special` by the names of what they are here.
SCIPY = {
    "digamma": "digamma", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "expit": "sigmoid", "expm1": "expm1", "exp2": "exp2",
    "gammaln": "lgamma", "log1p": "log1p", "logit": "logit", "psi": "digamma", "xlogy": "xlogy",
}  # fmt: skip


def ufunc_of_scipy(name: str) -> Any:
    """The ufunc of `scipy.special`; None if it has none, or has not been imported.

    With ``SCIPY_ARRAY_API=1`` the public name is that of a function around it, which asks for the namespace of arrays.
    """
    module: Any = sys.modules.get("scipy.special")
    found = getattr(module, name, None) or getattr(getattr(module, "_ufuncs", None), name, None)
    return getattr(found, "__wrapped__", found)


def of_scipy(ufunc: Any) -> str:
    """The name here of a ufunc of SciPy, which has been imported if it is one of its own; empty if it has none."""
    name = SCIPY.get(ufunc.__name__, "")
    return name if name and ufunc_of_scipy(ufunc.__name__) is ufunc else ""


def _by(method: str) -> Callable[..., Any]:
    """A method of ufuncs."""

    def call(ufunc: Any, *args: Any, **kwargs: Any) -> Any:
        return look_up(f"numpy_protocol.ufunc_methods:{method}")(ufunc, *args, **kwargs)

    return call


_METHODS: dict[str, Callable[..., Any]] = {
    "__call__": _apply,
    **{name: _by(name) for name in ("reduce", "accumulate", "outer", "reduceat")},
}


def _where(where: Any, result: Any, out: Any) -> Any:
    if out is None:
        raise NotCovered("where= without out= leaves elements without a value; write np.where(mask, np.f(x), 0.0)")
    return tg.where(one(where), one(result), one(out))


def _deliver(out: Any, result: Any) -> Any:
    """The result, written into what was given as ``out=``."""
    if out is None:
        return result
    if isinstance(out, Tensor):
        return deliver_to(out, as_operand(result))
    if not isinstance(result, Tensor):
        raise TypeError("out= cannot hold a result that is no tensor")
    if result._row:
        raise RuntimeError(
            "functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad, and "
            "an array cannot be tracked. Leave out=... away (write x = x + t for x += t)"
            + ("." if is_inside_driver() else ", or use t.detach().")
        )
    np.copyto(out, array_of(result), casting="same_kind")
    return out


def _advice(name: str, why: str) -> str:
    short = name.removeprefix("numpy.")
    found: Any = tg
    for part in short.split("."):
        found = getattr(found, part, None)
    known = callable(found) and short not in OTHERWISE
    refusal = f"{name} is not covered for Tensors{': ' + why if why else ''}."
    if is_inside_driver():
        instead = f"tg.{short}, or " if known else ""
        return f"{refusal} It is called on what is being differentiated: write it with {instead}functions that have derivatives."
    here = f"Use tg.{short}, or call" if known else "Call"
    return f"{refusal} {here} t.detach().numpy() to work on the values alone, without gradients."


for _protocol in (array_ufunc, array_function):
    setattr(Tensor, f"__{_protocol.__name__}__", OnTheClass(_protocol))
