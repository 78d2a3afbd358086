"""What `Tensor` and the package have of the table of names: functions, methods, operators and attributes.

Methods are attached here and not written in the class, so each operation stands in one place and the class stays what the
operations need of it. What the table names is imported when it is first asked for.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from tapegrad.autograd.tensor_backward import tensor_backward
from tapegrad.deferred import Deferred, look_up
from tapegrad.kernels.opcodes import OPCODES
from tapegrad.ops.elementwise import FUNCTIONS, method
from tapegrad.ops.operators import OPERATORS
from tapegrad.recording.axis_names import numpy_names, renamed, with_numpy_names
from tapegrad.rules.table import RULES
from tapegrad.surface.array_attributes import ABSENT
from tapegrad.surface.public_names import (
    ALIASES,
    FUNCTIONS_IN_PLACE,
    IN_PLACE_VIEWS,
    NEVER_TRUE,
    NOT_METHODS,
    PLACES,
    UNCHECKED,
    WRITTEN,
    WRITTEN_COPIES,
    WRITTEN_DIRECTLY,
)
from tapegrad.tensors import factories
from tapegrad.tensors.tensor import Tensor, as_operand

__all__ = ["PUBLIC", "attach", "public"]


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


def _handing_on(name: str) -> Any:
    """A method as a function, whichever it is when it is called: compiled methods take the place of their Python forms later."""

    @functools.wraps(getattr(Tensor, name))
    def call(t: Tensor, *args: Any, **kwargs: Any) -> Any:
        return getattr(Tensor, name)(t, *args, **kwargs)

    return call


@functools.cache  # one function, wherever it is asked for
def public(name: str) -> Any:
    """The package's function of a name."""
    if name in METHODS:
        return _of_tensors(name, _handing_on(name))
    if name not in PLACES:
        return FUNCTIONS[_RULES[name]]
    function = look_up(PLACES[name])
    of_any = name in UNCHECKED or isinstance(function, type)
    made = with_numpy_names(function) if of_any else _of_tensors(name, function)
    if made is not function:
        made.__module__, made.__qualname__ = "tapegrad", name  # where a pickle of it looks
    return made


_RULES = {rule.name: rule.name for rule in RULES if not rule.name.startswith("_")}
_RULES |= {name: rule for name, rule in ALIASES.items() if not rule.startswith("_")}
# Methods that are functions, too.
METHODS = dict.fromkeys([f"{name}_" for name, rule in _RULES.items() if len(RULES[OPCODES[rule]].args) == 1])
METHODS |= dict.fromkeys(FUNCTIONS_IN_PLACE)
PUBLIC = {**_RULES, **PLACES, **METHODS}.keys()

# By the functions that get, set and delete them, which are imported when one is first asked for.
PROPERTIES: dict[str, str] = {
    "shape": "surface.attributes:shape",
    "dtype": "surface.attributes:dtype",
    "device": "surface.attributes:device_of",
    "is_cpu": "surface.attributes:is_cpu",
    "is_cuda": "surface.attributes:is_cuda",
    "ndim": "surface.attributes:ndim",
    "itemsize": "surface.attributes:itemsize",
    "nbytes": "surface.attributes:nbytes",
    "real": "surface.attributes:conj",
    "requires_grad": "surface.attributes:get_requires_grad surface.attributes:set_requires_grad",
    "is_leaf": "tensors.tensor:is_leaf",
    "grad": "surface.attributes:get_grad surface.attributes:set_grad surface.attributes:del_grad",
    "grad_fn": "surface.attributes:get_grad_fn",
    "retains_grad": "surface.attributes:retains_grad",
    "output_nr": "surface.attributes:output_nr",
    "_version": "surface.attributes:version",
    "_base": "surface.attributes:base",
    "data": "surface.attributes:get_data surface.attributes:set_data",
    **dict.fromkeys(NEVER_TRUE, "surface.questions:never"),
    "H": "ops.transposing:H",
    "T": "ops.transposing:T",
    "mH": "ops.transposing:mT",
    "mT": "ops.transposing:mT",
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
        importlib.import_module("tapegrad.numpy_protocol.protocols")
        return getattr(Tensor, name)(t, *args, **kwargs)

    return OnTheClass(protocol)


METHODS_OF_ITS_OWN: dict[str, Any] = {
    "backward": tensor_backward,
    "__array_ufunc__": _by_protocol("__array_ufunc__"),
    "__array_function__": _by_protocol("__array_function__"),
    "__hash__": object.__hash__,
    "__pos__": lambda t: t,
}
DRAWN = ("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "normal", "random", "uniform")
IN_OTHER_FILES: dict[str, str] = {
    "size": "surface.attributes:size",
    "dim": "surface.attributes:ndim",
    "ndimension": "surface.attributes:ndim",
    "numel": "surface.attributes:numel",
    "nelement": "surface.attributes:numel",
    "stride": "surface.attributes:stride",
    "is_contiguous": "surface.attributes:is_contiguous",
    "requires_grad_": "surface.attributes:requires_grad_",
    "retain_grad": "surface.attributes:retain_grad",
    "detach": "surface.attributes:detach",
    "detach_": "surface.attributes:detach_",
    "clone": "ops.cloning:clone",
    "conj_physical_": "surface.attributes:conj",
    "get_device": "surface.attributes:get_device",
    "data_ptr": "surface.attributes:data_ptr",
    "_is_view": "surface.attributes:is_view",
    "__repr__": "surface.attributes:describe",
    "__str__": "surface.attributes:describe",
    "_repr_html_": "surface.html_tables:tensor_table",
    "__len__": "surface.attributes:length",
    "__iter__": "surface.attributes:iterate",
    "__contains__": "surface.attributes:contains",
    "register_hook": "autograd.nodes:register_hook",
    "register_post_accumulate_grad_hook": "autograd.nodes:register_post_accumulate_grad_hook",
    "is_inference": "tensors.inference_tensors:is_inference",
    "item": "surface.conversions:item",
    "tolist": "surface.conversions:tolist",
    "numpy": "surface.conversions:numpy",
    "to": "surface.conversions:to",
    "cpu": "surface.conversions:to_cpu",
    "type": "surface.conversions:to",
    "float": "surface.conversions:to_float",
    "double": "surface.conversions:to_double",
    "long": "surface.conversions:to_long",
    "int": "surface.conversions:to_int",
    "bool": "surface.conversions:to_bool",
    "repeat": "ops.tiling:repeat",
    "storage_offset": "ops.subviews:storage_offset",
    "unfold": "ops.subviews:unfold",
    **{f"{name}_": f"ops.sampling:{name}_" for name in DRAWN},
    "element_size": "surface.attributes:itemsize",
    "type_as": "surface.questions:type_as",
    "fill_diagonal_": "ops.diagonals:fill_diagonal_",
    "__format__": "surface.conversions:as_format",
    "__bool__": "surface.conversions:as_bool",
    "__float__": "surface.conversions:as_float",
    "__int__": "surface.conversions:as_int",
    "__index__": "surface.conversions:as_index",
    "__array__": "surface.conversions:as_array",
    "__copy__": "surface.copying:shallow_copy",
    "__deepcopy__": "surface.copying:deep_copy",
    "__reduce_ex__": "surface.copying:reduce",
    "__setstate__": "surface.copying:set_state",
}

IN_PLACE_OPERATORS = {"truediv": "div", "pow": "pow", "mul": "mul", "mod": "remainder"}
IN_PLACE_RULES = tuple(rule.name for rule in RULES if not rule.name.startswith("_") and rule.name not in ("where", "polygamma"))
# Rules without a name of their own, which functions with more arguments write by.
IN_PLACE_RULES += (
    "_celu",
    "_clamp",
    "_elu",
    "_hardsigmoid",
    "_hardswish",
    "_hardtanh",
    "_leaky_relu",
    "_mish",
    "_rrelu",
    "_threshold",
)


_WITH_OPTIONS = ("div", "logit", "round")  # rules whose forms in place may be asked for more

BITWISE = {
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip


def _compare(name: str) -> Any:
    function = look_up(f"ops.comparing:{name}")

    def operate(x: Tensor, y: Any) -> Any:
        if isinstance(y, (Tensor, int, float)) or hasattr(y, "__array__"):
            return function(x, y)
        return NotImplemented

    return operate


def _in_place(name: str) -> Any:
    """The in-place method of a rule, whatever its name: it may have options that the rule does not have."""
    form = _scaled if name in ("add", "sub") else _plainly if name in _WITH_OPTIONS else _of_rule
    return look_up("ops.compiled_writes:method_of_rule")(f"{name}_", name, form(name))


def _filled(name: str) -> Any:
    return look_up("ops.compiled_writes:method_of_whole")(name, _named(f"ops.in_place:{name}"))


def _assigned(place: str) -> Any:
    return look_up("ops.compiled_writes:method_item_assignment")(Tensor, _named(place))


def _taken(place: str) -> Any:
    return look_up("ops.compiled_items:method_item_of_tensors")(_named(place))


def _of_rule(name: str) -> Any:
    function = look_up("ops.in_place:in_place")(OPCODES[name])
    function.__name__ = f"{name}_"
    function.__doc__ = f"In-place form of `tapegrad.{name}`: writes into the tensor and returns it."
    return function


def _written(name: str) -> Any:
    function, written_by = _method(name), look_up("ops.in_place:written_by")

    def operate(t: Tensor, *others: Any, **options: Any) -> Tensor:
        result: Tensor = written_by(function, t, *others, **options)
        return result

    operate.__name__, operate.__doc__ = f"{name}_", f"In-place form of `tapegrad.{name}`: writes into the tensor and returns it."
    return operate


@functools.cache
def _scaled(name: str) -> Any:
    function, scaled = _of_rule(name), look_up("ops.arithmetic:scaled")

    def operate(t: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
        result: Tensor = function(t, scaled(other, alpha, t))
        return result

    operate.__name__, operate.__doc__ = function.__name__, function.__doc__
    return operate


def _written_copy(name: str) -> Any:
    into = look_up(WRITTEN_DIRECTLY[name]) if name in WRITTEN_DIRECTLY else None
    return look_up("ops.in_place_copies:writes")(f"{name}_", _method(name), into)


@functools.cache
def _plainly(name: str) -> Any:
    """The in-place form of a rule, which is the quicker one, unless options ask for more than the rule."""
    rule, with_options, wanted = _of_rule(name), _written(name), len(RULES[OPCODES[name]].args) - 1

    def operate(t: Tensor, *others: Any, **options: Any) -> Tensor:
        result: Tensor = with_options(t, *others, **options) if options or len(others) > wanted else rule(t, *others)
        return result

    operate.__name__, operate.__doc__ = rule.__name__, rule.__doc__
    return operate


def _clamp_in_place(t: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """In-place form of `tapegrad.clamp`."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if t.dtype.kind in "iu":  # which have no infinity
        return look_up("ops.in_place:written_by")(look_up("ops.arithmetic:clamp"), t, min, max)
    infinite = (float("-inf"), float("inf"))
    result: Tensor = t._clamp_(infinite[0] if min is None else min, infinite[1] if max is None else max)
    return result


def _exchanged(name: str) -> Any:
    function = _method(name)

    def operate(x: Tensor, y: Any) -> Any:
        return function(y, x)

    return operate


def _exchanged_products(name: str) -> Any:
    function = _method(name)

    def operate(x: Tensor, y: Any) -> Any:
        return function(as_operand(y), x)

    return operate


def _named(place: str) -> Any:
    return with_numpy_names(look_up(place))


def _property(places: str) -> Any:
    return property(*map(look_up, places.split()))


def _where(place: str) -> Any:
    function = look_up(place)

    def where(self: Tensor, condition: Any, other: Any) -> Any:
        """The tensor where the condition holds, else `other`."""
        return function(condition, self, other)

    return where


def _polygamma(self: Tensor, n: int) -> Any:
    """Derivative of order `n` of `tapegrad.digamma`."""
    return FUNCTIONS["polygamma"](n, self)


def _polygamma_in_place(self: Tensor, n: int) -> Any:
    """In-place form of `Tensor.polygamma`."""
    return look_up("ops.in_place:written_by")(_polygamma, self, n)


def _like_new(name: str) -> Any:
    def make_new(t: Tensor, *given: Any, dtype: Any = None, **options: Any) -> Tensor:
        made: Tensor = getattr(factories, name)(*given, dtype=t.dtype if dtype is None else dtype, **options)
        return made

    make_new.__doc__ = f"Like `tapegrad.{name}`, with this tensor's dtype unless another is given."
    return make_new


def _rule(name: str) -> Any:
    """A rule as a method: what takes one argument checks nothing more than its operator does."""
    rule = _RULES[name]
    return method(rule) if len(RULES[OPCODES[rule]].args) == 1 else _method(name)


def _method(name: str) -> Any:
    """The method of a public function, which skips the look at its first operand that functions need."""
    function = public(name)
    return with_numpy_names(getattr(function, "__wrapped__", function))


def _sum(name: str) -> Any:
    return look_up("ops.compiled_operators:method_sum")(_method(name))


# What makes an attribute of `Tensor` when it is first asked for, and of what.
Made = dict[str, tuple[Callable[[str], Any], str]]


def _operators() -> Made:
    """Operators that are no rules."""
    made: Made = {f"__{name}__": (_compare, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
    for operator, name in BITWISE.items():
        made[f"__{operator}__"] = _method, name
        made[f"__r{operator}__"] = _exchanged, name
        made[f"__i{operator}__"] = _written, name
    return made | {
        "__invert__": (_method, "bitwise_not"),
        "__floordiv__": (_method, "floor_divide"),
        "__rfloordiv__": (_exchanged, "floor_divide"),
        "__ifloordiv__": (_written, "floor_divide"),
        "__matmul__": (_method, "matmul"),
        "__rmatmul__": (_exchanged_products, "matmul"),
    }


def _on_demand() -> Made:
    """Attributes that few processes ask for."""
    table: Made = {name: (_rule, name) for name in _RULES if name not in NOT_METHODS}
    table |= {name: (_method, name) for name in PLACES if name not in NOT_METHODS}
    table |= {f"{name}_": (_in_place, name) for name in IN_PLACE_RULES}
    table |= {f"{alias}_": (_in_place, name) for alias, name in ALIASES.items() if f"{name}_" in table}
    table |= {f"__i{operator}__": (_in_place, name) for operator, name in IN_PLACE_OPERATORS.items()}
    table |= {f"{name}_": (_written, name) for name in WRITTEN}
    table |= {f"{name}_": (_in_place, name) for name in _WITH_OPTIONS}
    table |= {f"{name}_": (_written_copy, name) for name in WRITTEN_COPIES}
    table |= {name: (_named, f"ops.in_place_shapes:{name}") for name in IN_PLACE_VIEWS}
    for name in ("add", "sub"):
        table[f"__i{name}__"] = _in_place, name
    table |= {"subtract_": table["sub_"], "where": (_where, "ops.arithmetic:where"), "sum": (_sum, "sum")}
    table |= {name: (_filled, name) for name in ("zero_", "fill_", "copy_")}
    table["__setitem__"] = _assigned, "ops.in_place:setitem"
    table["__getitem__"] = _taken, "ops.indexing:getitem"
    table |= {name: (_named, place) for name, place in IN_OTHER_FILES.items()}
    table |= {name: (_property, places) for name, places in PROPERTIES.items()}
    return table | _operators()


def attach() -> None:
    """Give `Tensor` its methods, operators and properties."""
    table: dict[str, Any] = {}
    table |= {"__init__": factories.initialise, "clamp_": _clamp_in_place, "clip_": _clamp_in_place}
    table |= {"polygamma": _polygamma, "polygamma_": _polygamma_in_place}
    table |= {name: with_numpy_names(function) for name, function in METHODS_OF_ITS_OWN.items()}
    table |= {f"new_{name}": _like_new(name) for name in ("zeros", "ones", "empty", "full", "tensor")}
    table |= OPERATORS
    table |= ABSENT
    table |= {name: Deferred(Tensor, name, *made) for name, made in _on_demand().items() if name not in table}
    for name, attribute in table.items():
        setattr(Tensor, name, attribute)
