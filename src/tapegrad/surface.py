"""The table of names: which function is which method, operator and attribute of `Tensor`.

Methods are attached here and not written in the class, so each operation stands in one place and the class stays what the
operations need of it.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from tapegrad import (
    activations,
    affine,
    arithmetic,
    attributes,
    comparing,
    conversions,
    copying,
    counting,
    diagonals,
    differences,
    einsum,
    extremes,
    grids,
    indexing,
    inference_tensors,
    inplace,
    joining,
    missing_values,
    moments,
    normalising,
    norms,
    order_statistics,
    piecewise,
    products,
    rearranging,
    reductions,
    running_extremes,
    scans,
    scattering,
    searching,
    selecting,
    shaping,
    slice_writing,
    sorting,
    splitting,
    subviews,
    tiling,
    transcendental,
    transposing,
    triangles,
    turning,
    undifferentiable,
    vectors,
    writing,
)
from tapegrad.array_attributes import ABSENT
from tapegrad.autograd.backward import tensor_backward
from tapegrad.autograd.nodes import register_hook, register_post_accumulate_grad_hook
from tapegrad.elementwise import FUNCTIONS, METHODS, REFLECTED
from tapegrad.linalg import chains, determinants, exponential, factorisations, least_squares, solving, spectral
from tapegrad.numpy_names import numpy_names, renamed, with_numpy_names
from tapegrad.opcodes import OPCODES
from tapegrad.rules import RULES
from tapegrad.tensor import Tensor, as_operand

__all__ = ["PUBLIC", "attach"]

MODULES = (
    affine, comparing, counting, diagonals, differences, einsum, extremes, grids, indexing, joining, missing_values, moments,
    normalising, norms, order_statistics, products, rearranging, reductions, running_extremes, scans, scattering, searching,
    selecting, shaping, slice_writing, sorting, splitting, subviews, tiling, transcendental, transposing, triangles,
    undifferentiable, vectors, arithmetic,
)  # fmt: skip

# Functions of tensors among others, which look at their operands themselves.
UNCHECKED = frozenset(
    [*joining.__all__, *comparing.__all__, *arithmetic.__all__, *grids.__all__, "bucketize", "isin", "searchsorted"]
) - {"combinations"}

# PyTorch's other names for rules.
ALIASES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "divide": "div", "fix": "trunc", "multiply": "mul", "negative": "neg",
    "positive": "_alias",
    "subtract": "sub", "true_divide": "div", "sgn": "sign", "special_expit": "sigmoid", "expit": "sigmoid",
}  # fmt: skip

PUBLIC: dict[str, Any] = {rule.name: FUNCTIONS[rule.name] for rule in RULES if not rule.name.startswith("_")}
PUBLIC |= {name: FUNCTIONS[rule] for name, rule in ALIASES.items() if not rule.startswith("_")}


def _of_tensors(name: str, function: Any) -> Any:
    """The function form of a method: it must be given a tensor first."""
    names = numpy_names(function)

    @functools.wraps(function)
    def call(input: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(input, Tensor):
            raise TypeError(
                f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}. Use tg.tensor(...)."
            )
        if names and kwargs:
            kwargs = renamed(name, kwargs, names)
        return function(input, *args, **kwargs)

    return call


for _module in MODULES:
    for _name in _module.__all__:
        _function = getattr(_module, _name)
        checked = _name not in UNCHECKED and callable(_function) and not isinstance(_function, type)
        PUBLIC[_name] = _of_tensors(_name, _function) if checked else with_numpy_names(_function)
for _module, _names in ((piecewise, ("hardshrink", "prelu", "rrelu", "threshold")), (activations, ("celu", "selu"))):
    for _name in _names:
        PUBLIC[_name] = _of_tensors(_name, getattr(_module, _name))
PUBLIC["clone"] = attributes.clone
# What PyTorch has both here and in `linalg`, sometimes in an older form.
LINEAR_ALGEBRA: dict[str, Any] = {
    "cholesky": factorisations.legacy_cholesky, "cholesky_inverse": factorisations.cholesky_inverse,
    "cholesky_solve": factorisations.cholesky_solve, "det": determinants.det, "inverse": solving.inv,
    "logdet": determinants.logdet, "matrix_exp": exponential.matrix_exp, "matrix_power": chains.matrix_power,
    "pinverse": least_squares.pinverse, "qr": factorisations.legacy_qr, "slogdet": determinants.slogdet,
    "svd": spectral.legacy_svd,
}  # fmt: skip
PUBLIC |= {name: _of_tensors(name, function) for name, function in LINEAR_ALGEBRA.items()}
PUBLIC |= {"chain_matmul": chains.chain_matmul, "einsum": einsum.einsum}
PUBLIC["subtract"], PUBLIC["divide"], PUBLIC["true_divide"] = arithmetic.sub, arithmetic.div, arithmetic.div
for _name in ("H", "T", "linear", "mT", "one_hot", "repeat", "storage_offset", "unfold"):
    PUBLIC.pop(_name, None)

# Functions of the package that are no methods of a tensor.
NOT_METHODS = frozenset([
    *joining.__all__, *grids.__all__, "bucketize", "celu", "chain_matmul", "cumulative_trapezoid", "einsum", "getitem", "isin",
    "rrelu", "searchsorted", "selu", "std_mean", "tensordot", "threshold", "trapezoid", "trapz", "var_mean", "where",
])  # fmt: skip

PROPERTIES: dict[str, tuple[Any, ...]] = {
    "shape": (attributes.shape,),
    "dtype": (attributes.dtype,),
    "device": (attributes.device_of,),
    "is_cpu": (attributes.is_cpu,),
    "is_cuda": (attributes.is_cuda,),
    "ndim": (attributes.ndim,),
    "itemsize": (attributes.itemsize,),
    "nbytes": (attributes.nbytes,),
    "real": (attributes.conj,),
    "requires_grad": (attributes.get_requires_grad, attributes.set_requires_grad),
    "is_leaf": (inplace.is_leaf,),
    "grad": (attributes.get_grad, attributes.set_grad, attributes.del_grad),
    "grad_fn": (attributes.get_grad_fn,),
    "retains_grad": (attributes.retains_grad,),
    "output_nr": (attributes.output_nr,),
    "_version": (attributes.version,),
    "_base": (attributes.base,),
    "data": (attributes.get_data, attributes.set_data),
    "H": (transposing.H,),
    "T": (transposing.T,),
    "mH": (transposing.mT,),
    "mT": (transposing.mT,),
}


class OnTheClass:
    """A method that is found on the class, where NumPy looks for its protocols, and is None on a tensor.

    Masked arrays ask the tensor. They would compute with its data alone, and None tells them to leave the operation to us.
    """

    def __init__(self, function: Any) -> None:
        self.function = function

    def __get__(self, t: Any, owner: Any) -> Any:
        return self.function if t is None else None


def _by_protocol(name: str) -> Any:
    """One of NumPy's protocols, which the first call loads."""

    def protocol(t: Tensor, *args: Any, **kwargs: Any) -> Any:
        importlib.import_module("tapegrad.numpy_protocols")
        return getattr(Tensor, name)(t, *args, **kwargs)

    return OnTheClass(protocol)


METHODS_OF_ITS_OWN: dict[str, Any] = {
    "backward": tensor_backward,
    "register_hook": register_hook,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
    "size": attributes.size,
    "dim": attributes.ndim,
    "ndimension": attributes.ndim,
    "numel": attributes.numel,
    "nelement": attributes.numel,
    "stride": attributes.stride,
    "is_inference": inference_tensors.is_inference,
    "is_contiguous": attributes.is_contiguous,
    "requires_grad_": attributes.requires_grad_,
    "retain_grad": attributes.retain_grad,
    "detach": attributes.detach,
    "detach_": attributes.detach_,
    "clone": attributes.clone,
    "conj": attributes.conj,
    "item": conversions.item,
    "tolist": conversions.tolist,
    "numpy": conversions.numpy,
    "to": conversions.to,
    "cpu": conversions.to_cpu,
    "get_device": attributes.get_device,
    "data_ptr": attributes.data_ptr,
    "_is_view": attributes.is_view,
    "type": conversions.to,
    "float": conversions.to_float,
    "double": conversions.to_double,
    "long": conversions.to_long,
    "int": conversions.to_int,
    "bool": conversions.to_bool,
    "repeat": tiling.repeat,
    "storage_offset": subviews.storage_offset,
    "unfold": subviews.unfold,
    "zero_": inplace.zero_,
    "fill_": inplace.fill_,
    "fill_diagonal_": diagonals.fill_diagonal_,
    "copy_": inplace.copy_,
    "__setitem__": inplace.setitem,
    "__getitem__": indexing.getitem,
    "__format__": conversions.as_format,
    "__repr__": attributes.describe,
    "__str__": attributes.describe,
    "__len__": attributes.length,
    "__iter__": attributes.iterate,
    "__contains__": attributes.contains,
    "__bool__": conversions.as_bool,
    "__float__": conversions.as_float,
    "__int__": conversions.as_int,
    "__index__": conversions.as_index,
    "__array__": conversions.as_array,
    "__array_ufunc__": _by_protocol("__array_ufunc__"),
    "__array_function__": _by_protocol("__array_function__"),
    "__copy__": copying.shallow_copy,
    "__deepcopy__": copying.deep_copy,
    "__reduce_ex__": copying.reduce,
    "__setstate__": copying.set_state,
    "__hash__": object.__hash__,
    "__pos__": lambda t: t,
}

IN_PLACE_RULES = tuple(rule.name for rule in RULES if not rule.name.startswith("_") and rule.name not in ("where", "polygamma"))


# Operations besides the rules that have an in-place form.
WRITTEN = (
    "addcdiv", "addcmul", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "cumprod", "cumsum", "div", "divide", "eq", "erfinv", "float_power", "floor_divide", "gcd", "ge", "greater",
    "greater_equal", "gt", "heaviside", "lcm", "le", "less", "less_equal", "logical_and", "logical_not", "logical_or",
    "logical_xor", "logit", "lt", "nan_to_num", "ne", "not_equal", "round", "sinc", "true_divide",
)  # fmt: skip

BITWISE = {
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip

_divided = REFLECTED[OPCODES["div"]]


def _reciprocal_divide(x: Tensor, y: Any) -> Any:
    return FUNCTIONS["mul"](FUNCTIONS["reciprocal"](x), y) if isinstance(y, (int, float)) else _divided(x, y)


def _compare(name: str) -> Any:
    function = getattr(comparing, name)

    def operate(x: Tensor, y: Any) -> Any:
        if isinstance(y, (Tensor, int, float)) or hasattr(y, "__array__"):
            return function(x, y)
        return NotImplemented

    return operate


def _in_place(name: str) -> Any:
    function = inplace.in_place(OPCODES[name])
    function.__name__ = f"{name}_"
    function.__doc__ = f"In-place form of `tapegrad.{name}`: writes into the tensor and returns it."
    return function


def _written(name: str) -> Any:
    function = with_numpy_names(getattr(PUBLIC[name], "__wrapped__", PUBLIC[name]))

    def operate(t: Tensor, *others: Any, **options: Any) -> Tensor:
        return inplace.written_by(function, t, *others, **options)

    operate.__name__, operate.__doc__ = f"{name}_", f"In-place form of `tapegrad.{name}`: writes into the tensor and returns it."
    return operate


def _scaled_in_place(name: str) -> Any:
    function = _in_place(name)

    def operate(t: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
        result: Tensor = function(t, arithmetic.scaled(other, alpha))
        return result

    operate.__name__, operate.__doc__ = function.__name__, function.__doc__
    return operate


def _plainly(rule: Any, with_options: Any) -> Any:
    """The in-place form of a rule, which is the quicker one, unless options ask for more than the rule."""

    def operate(t: Tensor, *others: Any, **options: Any) -> Tensor:
        result: Tensor = with_options(t, *others, **options) if options else rule(t, *others)
        return result

    operate.__name__, operate.__doc__ = rule.__name__, rule.__doc__
    return operate


def _clamp_in_place(t: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """In-place form of `tapegrad.clamp`."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if attributes.dtype(t).kind in "iu":  # which have no infinity
        return inplace.written_by(arithmetic.clamp, t, min, max)
    infinite = (float("-inf"), float("inf"))
    result: Tensor = inplace.in_place(OPCODES["_clamp"])(
        t, infinite[0] if min is None else min, infinite[1] if max is None else max
    )
    return result


def _exchanged(function: Any) -> Any:
    def operate(x: Tensor, y: Any) -> Any:
        return function(y, x)

    return operate


def _where(self: Tensor, condition: Any, other: Any) -> Any:
    """The tensor where the condition holds, else `other`."""
    return arithmetic.where(condition, self, other)


def _polygamma(self: Tensor, n: int) -> Any:
    """Derivative of order `n` of `tapegrad.digamma`."""
    return FUNCTIONS["polygamma"](n, self)


def _like_new(name: str) -> Any:
    def make_new(t: Tensor, *given: Any, dtype: Any = None, **options: Any) -> Tensor:
        from tapegrad import factories

        made: Tensor = getattr(factories, name)(*given, dtype=t.dtype if dtype is None else dtype, **options)
        return made

    make_new.__doc__ = f"Like `tapegrad.{name}`, with this tensor's dtype unless another is given."
    return make_new


def attach() -> None:
    """Give `Tensor` its methods, operators and properties."""
    table: dict[str, Any] = {name: getattr(f, "__wrapped__", f) for name, f in PUBLIC.items() if name not in NOT_METHODS}
    # Methods skip the look at their first operand that functions need.
    unary = [rule.name for rule in RULES if len(rule.args) == 1]  # those of two take the second by its name as well
    table |= {name: METHODS[name] for name in unary if not name.startswith("_") and PUBLIC[name] is FUNCTIONS[name]}
    table |= {f"{name}_": _in_place(name) for name in IN_PLACE_RULES}
    table |= {f"{alias}_": table[f"{name}_"] for alias, name in ALIASES.items() if f"{name}_" in table}
    rules = {name: table[name] for name in ("div_", "round_")}
    table |= {f"{name}_": _written(name) for name in WRITTEN}
    for name, rule in rules.items():
        table[name] = _plainly(rule, table[name])
    table |= {
        "add_": _scaled_in_place("add"),
        "sub_": _scaled_in_place("sub"),
        "clamp_": _clamp_in_place,
        "clip_": _clamp_in_place,
    }
    table |= writing.FORMS | METHODS_OF_ITS_OWN | {name: getattr(turning, name) for name in turning.__all__}
    table |= {f"new_{name}": _like_new(name) for name in ("zeros", "ones", "empty", "full", "tensor")}
    for operation in ("add", "sub", "mul", "pow"):
        table[f"__{operation}__"] = METHODS[operation]
        table[f"__r{operation}__"] = METHODS[operation] if operation in ("add", "mul") else REFLECTED[OPCODES[operation]]
        table[f"__i{operation}__"] = table[f"{operation}_"]
    table |= {"__truediv__": METHODS["div"], "__rtruediv__": _reciprocal_divide, "__itruediv__": rules["div_"]}
    table |= {"__mod__": METHODS["remainder"], "__rmod__": REFLECTED[OPCODES["remainder"]]}
    table |= {"__floordiv__": undifferentiable.floor_divide, "__rfloordiv__": _exchanged(undifferentiable.floor_divide)}
    table |= {"__neg__": METHODS["neg"], "__abs__": METHODS["abs"], "__matmul__": products.matmul}
    table |= {"__rmatmul__": lambda x, y: products.matmul(as_operand(y), x)}
    table |= {f"__{name}__": _compare(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
    for operator, name in BITWISE.items():
        table[f"__{operator}__"] = getattr(comparing, name)
        table[f"__r{operator}__"] = _exchanged(getattr(comparing, name))
        table[f"__i{operator}__"] = table[f"{name}_"]
    table |= {"__invert__": comparing.bitwise_not, "__imod__": table["remainder_"], "__ifloordiv__": table["floor_divide_"]}
    table |= {"where": _where, "polygamma": _polygamma, "subtract_": table["sub_"]}
    for name, function in table.items():
        setattr(Tensor, name, with_numpy_names(function))
    for name, accessors in PROPERTIES.items():
        setattr(Tensor, name, property(*accessors))
    for name, absent in ABSENT.items():
        setattr(Tensor, name, absent)
