"""Random programs of public functions and methods: what may be called, with which arguments, and how a program is run again.

A program is a list of steps that refer to tensors by number, so that it can be run anew from other values of its leaves.
"""

import copy
import inspect
import operator
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tapegrad as tg
from tapegrad.surface.tensor_methods import PUBLIC, public

# What documentation promises for bad input.
DOCUMENTED = (RuntimeError, TypeError, ValueError, IndexError, OverflowError)  # NotImplementedError is a RuntimeError
WARNINGS = (UserWarning,)

# Attributes of the class that are no operations, and what changes the state of the process.
NOT_CALLED = frozenset(
    [
        "__new__",
        "__init__",
        "__del__",
        "__getattr__",
        "__class__",
        "__hash__",
        "__copy__",
        "__deepcopy__",
        "__reduce__",
        "__reduce_ex__",
        "__setstate__",
        "__getstate__",
    ]
)
NAMES = tuple(name for name in vars(tg.Tensor) if inspect.getattr_static(tg.Tensor, name) is not None and hasattr(tg.Tensor, name))
PROPERTIES = tuple(sorted(name for name in NAMES if isinstance(vars(tg.Tensor)[name], property)))
METHODS = tuple(sorted(name for name in NAMES if callable(vars(tg.Tensor)[name]) and name not in NOT_CALLED))
MORE: dict[str, Callable[..., Any]] = {
    "setitem": operator.setitem,
    "copy": copy.copy,
    "deepcopy": lambda t: copy.deepcopy(t),
    "grad": tg.autograd.grad,
    "autograd.backward": tg.autograd.backward,
    **{f"new {name}": getattr(tg, name) for name in ("tensor", "as_tensor", "full", "zeros_like", "full_like", "arange")},
}
CALLS = (
    *(f"tg.{name}" for name in sorted(PUBLIC) if not isinstance(getattr(tg, name), type)),
    *(f".{name}" for name in METHODS),
    *(f"={name}" for name in PROPERTIES),
    *sorted(MORE),
)
# After these a result depends on a leaf in ways that no gradient is meant to see.
CUTS = frozenset(
    [".detach", ".detach_", "=data", "=grad", ".numpy", ".__array__", ".requires_grad_", ".backward", "copy", "deepcopy", "grad",
     "autograd.backward", ".new_tensor", ".new_full", ".new_empty", ".item", ".tolist"]
)  # fmt: skip

SHAPES = [(), (1,), (2,), (3,), (4,), (2, 3), (3, 2), (2, 2), (3, 3), (1, 3), (2, 1), (0,), (2, 0), (2, 1, 3), (2, 2, 2), (1, 1)]
DTYPES = [tg.float64] * 6 + [tg.float32, tg.float32, tg.int64, tg.int32, tg.bool, tg.float16, tg.uint8]
ODD = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf, np.nan, 1e-300, 1e300, 1e-8, 20.5]
STRINGS = ["mean", "sum", "none", "fro", "nuc", "floor", "trunc", "left", "ij", "constant", "reflect", "", "x"]


@dataclass(frozen=True)
class Ref:
    """The tensor with this number."""

    number: int


@dataclass
class Step:
    call: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass
class Start:
    """A tensor that a program begins with."""

    values: np.ndarray
    tracked: bool
    inner: bool  # whether the program works on a result and not on the leaf itself


@dataclass
class Program:
    starts: list[Start] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)


@dataclass
class Outcome:
    """What running a program gave: leaves, all tensors, and what each step raised."""

    leaves: list[tg.Tensor]
    tensors: list[tg.Tensor]
    raised: list[type[BaseException] | None]


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    kind = rng.integers(4)
    if kind == 0:
        made = rng.choice(ODD, size=shape)
    elif kind == 1:
        made = rng.integers(-2, 4, size=shape).astype(float)
    else:
        made = rng.uniform(0.1, 0.9, size=shape) if kind == 2 else rng.normal(size=shape) * 2.0
    with np.errstate(all="ignore"):
        if np.dtype(dtype).kind != "f":
            made = np.nan_to_num(made, posinf=3.0, neginf=-3.0).clip(-100, 100)
        return np.asarray(made).astype(dtype)


def starts(rng: np.random.Generator) -> list[Start]:
    found = []
    common = SHAPES[rng.integers(len(SHAPES))]
    for _ in range(rng.integers(1, 5)):
        shape = common if rng.random() < 0.6 else SHAPES[rng.integers(len(SHAPES))]
        dtype = DTYPES[rng.integers(len(DTYPES))]
        tracked = np.dtype(dtype) in (tg.float64, tg.float32) and rng.random() < 0.8
        found.append(Start(values(rng, shape, dtype), tracked, rng.random() < 0.5))
    return found


def number(rng: np.random.Generator) -> Any:
    kind = rng.integers(6)
    if kind < 3:
        return int(rng.integers(-3, 5))
    if kind == 3:
        return ODD[rng.integers(len(ODD))]
    return float(rng.normal()) if kind == 4 else [True, False, 2**70, -(2**70), 10**400][rng.integers(5)]


def small(rng: np.random.Generator) -> int:
    return int(rng.integers(-2, 4))


def sizes(rng: np.random.Generator) -> Any:
    if rng.random() < 0.4:
        return SHAPES[rng.integers(len(SHAPES))]
    return tuple(small(rng) for _ in range(rng.integers(0, 4)))


def key(rng: np.random.Generator, tensor: Callable[[], Any]) -> Any:
    def part() -> Any:
        kind = rng.integers(9)
        ends = [None if rng.random() < 0.4 else small(rng) for _ in range(2)]
        several = [small(rng), small(rng)]
        return (small(rng), None, Ellipsis, slice(*ends), slice(*ends, small(rng)), several, tensor(), True, 1.5)[kind]

    return part() if rng.random() < 0.5 else tuple(part() for _ in range(rng.integers(0, 4)))


def argument(rng: np.random.Generator, name: str, tensor: Callable[[], Any]) -> Any:
    """A value for a parameter: mostly of the kind that its name asks for."""
    kind = "any" if rng.random() < 0.12 else name
    if kind in ("key", "k"):
        return key(rng, tensor)
    if kind.startswith(("dim", "axis", "start", "end", "source", "destination", "chunks", "output_nr", "diagonal", "offset")):
        several = rng.random() < 0.2
        return tuple(small(rng) for _ in range(rng.integers(0, 3))) if several else None if rng.random() < 0.1 else small(rng)
    if kind in ("keepdim", "unbiased", "equal_nan", "retain_graph", "create_graph", "allow_unused", "copy", "largest", "sorted"):
        return bool(rng.integers(2))
    if kind in ("shape", "size", "sizes", "dims", "repeats", "split_size"):
        return sizes(rng) if rng.random() < 0.7 else small(rng)
    if kind == "tensors":
        return [tensor() for _ in range(rng.integers(0, 4))]
    if kind == "dtype":
        return DTYPES[rng.integers(len(DTYPES))]
    if kind in ("alpha", "beta", "p", "value", "min", "max", "negative_slope", "rtol", "atol", "correction", "threshold"):
        return number(rng) if rng.random() < 0.75 else tensor()
    if kind in ("rounding_mode", "reduction", "indexing", "mode", "ord"):
        return STRINGS[rng.integers(len(STRINGS))] if rng.random() < 0.8 else None
    if kind != "any":
        return tensor() if rng.random() < 0.8 else number(rng)
    anything: list[Callable[[], Any]] = [
        tensor, lambda: number(rng), lambda: None, lambda: STRINGS[rng.integers(len(STRINGS))], lambda: sizes(rng),
        lambda: [tensor(), tensor()], lambda: [1.0, [2.0]], lambda: values(rng, (2,), tg.float64), lambda: slice(None), dict,
        lambda: np.float32(0.5), lambda: object, lambda: 1j, lambda: tg.float32, lambda: np.array(["a"]), lambda: key(rng, tensor),
    ]  # fmt: skip
    return anything[rng.integers(len(anything))]()


def function_of(call: str) -> Callable[..., Any]:
    if call[0] == ".":
        return lambda t, *args, **kwargs: getattr(t, call[1:])(*args, **kwargs)
    if call[0] == "=":
        return lambda t: getattr(t, call[1:])
    return public(call[3:]) if call.startswith("tg.") else MORE[call]


def signature(call: str) -> list[inspect.Parameter]:
    target = getattr(tg.Tensor, call[1:]) if call[0] == "." else function_of(call)
    try:
        found = list(inspect.signature(target).parameters.values())
    except (ValueError, TypeError):
        found = []
    return found or [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("x", "y")]


def step(rng: np.random.Generator, count: int) -> Step:
    """A random step for a program that has this many tensors."""

    def tensor() -> Ref:
        return Ref(int(rng.integers(count)))

    call = CALLS[rng.integers(len(CALLS))]
    if call[0] == "=":
        return Step(call, (tensor(),), {})
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for k, parameter in enumerate(signature(call)):
        optional = parameter.default is not parameter.empty
        if k == 0 and (call[0] == "." or parameter.name not in ("tensors", "operands")):
            args.append(tensor() if call[0] == "." or rng.random() < 0.95 else argument(rng, "any", tensor))
        elif parameter.kind is parameter.VAR_KEYWORD:
            continue
        elif parameter.kind is parameter.VAR_POSITIONAL:
            args.extend(argument(rng, parameter.name, tensor) for _ in range(rng.integers(1, 4) if rng.random() < 0.5 else 1))
        elif optional and rng.random() < 0.6:
            if parameter.kind is not parameter.KEYWORD_ONLY and rng.random() < 0.5:
                break
        elif parameter.kind is parameter.KEYWORD_ONLY or kwargs or (optional and rng.random() < 0.3):
            kwargs[parameter.name] = argument(rng, parameter.name, tensor)
        else:
            args.append(argument(rng, parameter.name, tensor))
    if rng.random() < 0.03:
        args.append(argument(rng, "any", tensor))
    return Step(call, tuple(args), kwargs)


def resolve(value: Any, tensors: list[tg.Tensor]) -> Any:
    """The value with tensors in place of their numbers."""
    if isinstance(value, Ref):
        return tensors[value.number % len(tensors)]  # a program that runs on other values may have made fewer
    if type(value) in (list, tuple):
        return type(value)(resolve(part, tensors) for part in value)
    return copy.deepcopy(value) if isinstance(value, np.ndarray) else value


def results(value: Any) -> list[tg.Tensor]:
    """The tensors in what a call gave."""
    if isinstance(value, tg.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for part in value for t in results(part)]
    return list(value) if type(value).__name__.endswith("iterator") else []


def begin(program: Program, shift: dict[int, np.ndarray]) -> Outcome:
    """The tensors that a program begins with; some leaves may have other values."""
    outcome = Outcome([], [], [])
    for k, start in enumerate(program.starts):
        x = tg.tensor(shift.get(k, start.values), dtype=start.values.dtype, requires_grad=start.tracked)
        outcome.leaves.append(x)
        outcome.tensors.append(x * 1 if start.inner and start.values.dtype.kind != "b" else x)
    return outcome


def perform(step: Step, outcome: Outcome) -> None:
    """Make one step; exceptions of documented kinds are noted, others come out."""
    args = [resolve(arg, outcome.tensors) for arg in step.args]
    kwargs = {name: resolve(arg, outcome.tensors) for name, arg in step.kwargs.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for kind in WARNINGS:
                warnings.simplefilter("ignore", kind)
            made = results(function_of(step.call)(*args, **kwargs))
    except DOCUMENTED as error:
        if isinstance(error, RecursionError):
            raise
        outcome.raised.append(type(error))
        return
    outcome.raised.append(None)
    outcome.tensors.extend(made)


def run(program: Program, shift: dict[int, np.ndarray]) -> Outcome:
    """Run a whole program."""
    tg.manual_seed(0)
    outcome = begin(program, shift)
    for step in program.steps:
        perform(step, outcome)
    return outcome
