"""Functions whose derivatives the user gives: `primitive`, `defvjp`, `defjvp`.

A primitive's function works on plain values. Its derivatives are called with plain values in a plain pass, and with arrays that are
differentiated themselves where second derivatives are wanted, so that they can be of any order. Derivatives in forward mode are
those in reverse mode, transposed; a function that has only one of the two has the other by transposing it as well.

Where numbers are complex, a row has their real and imaginary parts; what the user gave sees complex numbers, and gradients as
autograd has them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tapegrad.as_autograd.complex_numbers import Parts, apart, as_cotangent, as_gradient, together
from tapegrad.as_autograd.given_derivatives import cotangents_of, defgrad, defvjp_is_zero, defvjp_of_old, primitive_vjps
from tapegrad.as_autograd.remembered import remembered
from tapegrad.as_autograd.tracing import getval, isbox
from tapegrad.as_autograd.vector_spaces import SparseObject, vspace
from tapegrad.as_autograd.wrapping import get_name
from tapegrad.autograd.function import Function
from tapegrad.drivers.containers import Structure, flatten, flatten_like, restore
from tapegrad.numpy_arrays.array import Array, as_arrays
from tapegrad.numpy_arrays.complex_arrays import ComplexArray, is_complex, made, parts
from tapegrad.ops.namespaces import PLAIN
from tapegrad.recording.casting import cast
from tapegrad.recording.strided_maps import sum_to
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, is_recording, wrap
from tapegrad.tensors.untracked_values import at_depth, depth

__all__ = ["primitive"]


def primitive(f_raw: Callable[..., Any]) -> Callable[..., Any]:
    """A function of plain values as one operation, whose derivatives `defvjp` or `defjvp` give.

    Parameters
    ----------
    f_raw : callable
        Gets NumPy's arrays and numbers in place of what is differentiated, and returns an array, a float, or a container of these.
        Positional arguments can be differentiated by, alone or in lists, tuples and dicts.

    Returns
    -------
    callable
        Takes the same arguments. Raises NotImplementedError when a derivative is wanted that nobody gave.
    """
    constant = False
    op = _operation(f_raw)
    given = f_raw
    if isinstance(f_raw, np.ufunc) and f_raw.nin > 1 and f_raw.nout == 1 and getattr(np, f_raw.__name__, None) is not f_raw:
        f_raw = remembered(f_raw)

    @functools.wraps(given, assigned=("__name__", "__qualname__", "__doc__", "__module__"), updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        for arg in args:
            kind = type(arg)
            if kind is Array or kind is Tensor or kind is list or kind is tuple or kind is dict or kind is Parts:
                return f_raw(*_plain(args), **_plain(kwargs)) if constant else _traced(call, op, f_raw, args, kwargs)
            if kind is ComplexArray:
                return f_raw(*_plain(args), **_plain(kwargs)) if constant else _by_parts(call, f_raw, args, kwargs)
        return f_raw(*args, **(_constants(f_raw, kwargs) if kwargs else kwargs))

    def without_derivative() -> None:
        nonlocal constant
        constant = True

    result: Any = call
    result.fun, result.without_derivative, result.of_parts = given, without_derivative, None
    result.defgrad, result.defvjp = functools.partial(defgrad, result, {}), functools.partial(defvjp_of_old, result, {})
    result.defvjp_is_zero = functools.partial(defvjp_is_zero, result)
    return call


def _by_parts(primitive: Any, f_raw: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A call in which numbers are complex: one of a primitive of their real and imaginary parts."""
    if primitive.of_parts is None:
        primitive.of_parts = _of_parts(primitive, f_raw)
    return together(primitive.of_parts(*map(_apart_if_tracked, args), **kwargs))


def _apart_if_tracked(x: Any) -> Any:
    if type(x) is ComplexArray:
        return apart(x) if isbox(x) and is_recording() else getval(x)
    if type(x) in (list, tuple):
        return type(x)(map(_apart_if_tracked, x))
    return {name: _apart_if_tracked(value) for name, value in x.items()} if type(x) is dict else x


def _of_parts(whole: Any, f_raw: Any) -> Any:
    """The primitive whose arguments and results are `Parts` where those of another one are complex."""

    def value_of(*args: Any, **kwargs: Any) -> Any:
        return apart(f_raw(*map(together, args), **kwargs))

    def pulled(argnums: Sequence[int], value: Any, args: Any, kwargs: Any) -> Callable[[Any], Any]:
        result, arguments = together(value), tuple(map(together, args))

        def pull(g: Any) -> list[Any]:
            found = cotangents_of(whole, tuple(argnums), as_gradient(g), result, arguments, kwargs)
            return [_apart_like(args[argnum], c) for argnum, c in zip(argnums, found, strict=True)]

        return pull

    value_of.__name__ = get_name(f_raw)
    of_parts = primitive(value_of)
    primitive_vjps[of_parts] = pulled
    return of_parts


def _apart_like(argument: Any, cotangent: Any) -> Any:
    """A cotangent of complex numbers, with zeros in an imaginary part that it lacks; of real ones, the real part."""
    if cotangent is None or isinstance(cotangent, SparseObject):
        return cotangent
    if type(argument) is Parts:
        return as_cotangent(argument, made(*parts(cotangent)))
    if type(argument) in (list, tuple) and isinstance(cotangent, (list, tuple)):
        return type(argument)([_apart_like(a, c) for a, c in zip(argument, cotangent, strict=True)])
    if type(argument) is dict and isinstance(cotangent, dict):
        return {name: _apart_like(argument.get(name), c) for name, c in cotangent.items()}
    return parts(cotangent)[0] if is_complex(cotangent) else cotangent


def _plain(values: Any) -> Any:
    if isinstance(values, Tensor) or type(values) is ComplexArray:
        return getval(values)
    if type(values) in (list, tuple):
        return type(values)(map(_plain, values))
    return {name: _plain(value) for name, value in values.items()} if type(values) is dict else values


def _constants(f: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments as plain values.

    Raises
    ------
    TypeError
        If one is being differentiated.
    """
    leaves: list[Any] = []
    flatten(kwargs, leaves)
    if is_recording() and any(isbox(leaf) for leaf in leaves):
        raise TypeError(f"{get_name(f)}: keyword arguments of a primitive are constants; what is differentiated goes by position")
    plain: dict[str, Any] = _plain(kwargs)
    return plain


class _Call:
    """A call of a primitive: its arguments, with gaps for those in which something is tracked."""

    __slots__ = ("argnums", "args", "f_raw", "kwargs", "made", "primitive", "structures")
    made: Structure  # of the result, where that is a container

    def __init__(self, primitive: Any, f_raw: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        self.primitive, self.f_raw, self.args, self.kwargs = primitive, f_raw, args, kwargs
        self.argnums: list[int] = []
        self.structures: list[Structure] = []

    def arguments(self, leaves: Iterable[Any]) -> list[Any]:
        """All arguments, around these leaves."""
        args, rest = self.args.copy(), iter(leaves)
        for argnum, structure in zip(self.argnums, self.structures, strict=True):
            args[argnum] = next(rest) if structure is None else restore(structure, rest)
        return args

    def cotangents(self, g: Any, value: Any, leaves: Sequence[Any], needs: Sequence[bool]) -> list[Any]:
        """Cotangents of the leaves; None where they are zero or not wanted."""
        args = self.arguments(leaves)
        places, wanted = [], []
        done = 0
        for argnum, structure in zip(self.argnums, self.structures, strict=True):
            count = 1 if structure is None else _count(structure)
            places.append((done, done + count))
            if any(needs[done : done + count]):
                wanted.append(argnum)
            done += count
        found: list[Any] = [None] * done
        pulled = dict(zip(wanted, cotangents_of(self.primitive, tuple(wanted), g, value, tuple(args), self.kwargs), strict=True))
        for argnum, structure, (start, stop) in zip(self.argnums, self.structures, places, strict=True):
            cotangent = pulled.get(argnum)
            if isinstance(cotangent, SparseObject):
                cotangent = cotangent.mut_add(vspace(args[argnum]).zeros())
            if cotangent is None or structure is None:
                found[start:stop] = [cotangent] * (stop - start)
            else:
                parts: list[Any] = []
                flatten_like(structure, cotangent, parts, f"the cotangent of argument {argnum} of {get_name(self.f_raw)}")
                found[start:stop] = parts
        return found


def _count(structure: Structure) -> int:
    return 1 if structure is None else sum(map(_count, structure.children))


def _traced(primitive: Any, op: Structural, f_raw: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A call of which an argument may be tracked."""
    if primitive.of_parts is not None:  # it gave complex numbers before, and is not called only to see that
        return _by_parts(primitive, f_raw, args, kwargs)
    kwargs = _constants(f_raw, kwargs) if kwargs else kwargs
    recording = is_recording()
    call = _Call(primitive, f_raw, list(args), kwargs)
    tensors: list[Tensor] = []
    for argnum, arg in enumerate(args):
        kind = type(arg)
        if kind is Array or kind is Tensor:
            if arg._row and recording:
                call.argnums.append(argnum)
                call.structures.append(None)
                tensors.append(arg)
            else:
                call.args[argnum] = getval(arg)
        elif kind is list or kind is tuple or kind is dict or kind is Parts:
            leaves: list[Any] = []
            structure = flatten(arg, leaves)
            if any(type(leaf) is ComplexArray for leaf in leaves):
                return _by_parts(primitive, f_raw, args, kwargs)
            if recording and any(isinstance(leaf, Tensor) and leaf._row for leaf in leaves):
                call.argnums.append(argnum)
                call.structures.append(structure)
                tensors.extend(leaf if isinstance(leaf, Tensor) else wrap(np.asarray(leaf)) for leaf in leaves)
            else:
                call.args[argnum] = _plain(arg)
    if not tensors:
        return f_raw(*call.args, **kwargs)
    value = _at_depth_0(f_raw, *call.arguments(map(getval, tensors)), **kwargs)
    contains = isinstance(value, (list, tuple, dict))
    if not contains and np.iscomplexobj(value):
        return _by_parts(primitive, f_raw, args, kwargs)
    if not contains and len(tensors) <= MOST_SAVED:
        return as_arrays(apply(op, tensors, _own(value), call)) if _is_real(value) else getval(value)
    leaves = []
    call.made = flatten(value, leaves)
    if any(map(np.iscomplexobj, leaves)):
        return _by_parts(primitive, f_raw, args, kwargs)
    results = _Containers.apply(call, leaves, *tensors)
    return restore(call.made, iter([as_arrays(result) for result in results]))


def _at_depth_0(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function as if nothing were differentiated around it: arrays that it makes are NumPy's."""
    if not depth():
        return function(*args, **kwargs)
    return at_depth(0, functools.partial(function, *args, **kwargs))


def _is_real(leaf: Any) -> bool:
    return isinstance(leaf, (float, Tensor)) or getattr(getattr(leaf, "dtype", None), "kind", "") == "f"


def _own(value: Any) -> Any:
    """A result on memory of its own."""
    if isinstance(value, Tensor):
        value = value._data
    return np.array(value) if issubclass(type(value), np.ndarray) else value


def _sent(g: Tensor, ctx: Context) -> list[Any]:
    """Cotangents in a pass: by plain values, or by arrays where the pass is recorded."""
    call: _Call = ctx.attrs
    if ctx.on is PLAIN or not is_recording():
        # The cotangent is on memory that the pass uses again.
        prepared: Callable[[Any], Any] = getval
        given, level = np.array(g._data) if type(g._data) is not float else np.float64(g._data), 0
    else:
        prepared = _as_array
        given, level = _as_array(g), max(1, depth())
    leaves, value = [prepared(t) for t in ctx.inputs], prepared(ctx.result)
    if depth() == level:
        found = call.cotangents(given, value, leaves, ctx.needs)
    else:
        found = at_depth(level, call.cotangents, given, value, leaves, ctx.needs)
    return [
        None if part is None else cast(sum_to(_as_cotangent(part, call), shape), dtype)
        for part, shape, dtype in zip(found, ctx.shapes, ctx.dtypes, strict=True)
    ]


MOST_SAVED = 32  # inputs of a row whose values are kept by their numbers
_USES = ((*range(MOST_SAVED), "z"),)


def _operation(f_raw: Any) -> Structural:
    return Structural(f"{get_name(f_raw)}Backward0", _USES, _sent)


class _Containers(Function):
    """The rows of calls that gave a container."""

    @staticmethod
    def forward(ctx: Any, call: _Call, results: list[Any], *tensors: Tensor) -> tuple[Any, ...]:
        """The results."""
        outputs = tuple(wrap(_own(leaf)) if _is_real(leaf) else getval(leaf) for leaf in results)
        ctx.call = call
        ctx.constants = [None if isinstance(output, Tensor) else output for output in outputs]
        ctx.save_for_backward(*tensors, *(output for output in outputs if isinstance(output, Tensor)))
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        """Cotangents of the arguments by the functions that were given for them."""
        plain = not is_recording()
        prepared = getval if plain else _as_array
        saved = [prepared(t) for t in ctx.saved_tensors]
        call: _Call = ctx.call
        count = len(saved) - sum(constant is None for constant in ctx.constants)
        results = iter(saved[count:])
        value = restore(call.made, iter([next(results) if constant is None else constant for constant in ctx.constants]))
        g = restore(call.made, iter([prepared(t) if isinstance(t, Tensor) else t for t in gradients]))
        level = 0 if plain else max(1, depth())
        found = at_depth(level, call.cotangents, g, value, saved[:count], ctx.needs_input_grad[2:])
        return None, None, *(None if part is None else _as_cotangent(part, call) for part in found)


def _as_array(t: Tensor) -> Any:
    """A tensor that a pass gives, as an array; one that somebody may have keeps its class."""
    return as_arrays(t * 1.0 if type(t) is Tensor and t._row else t)


def _as_cotangent(value: Any, call: _Call) -> Tensor:
    if isinstance(value, Tensor):
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"the derivative of {get_name(call.f_raw)} gave {array.dtype.name} for a real argument; take the real part of it"
        )
    return wrap(array.astype(np.float64) if array.dtype.kind != "f" else array)
