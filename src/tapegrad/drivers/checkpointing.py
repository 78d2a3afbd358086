"""Checkpoints: functions that are run again in the backward pass, so that nothing they record is kept until then."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.autograd.decoded_rows import arguments_of
from tapegrad.autograd.function import Function
from tapegrad.autograd.subgraph import Mark, holds_value, pull, tensors_at
from tapegrad.drivers.containers import Structure, flatten, restore
from tapegrad.drivers.leaves import is_tracked, recorder_of
from tapegrad.numpy_arrays.array import Array
from tapegrad.numpy_arrays.classes import answering, class_given
from tapegrad.tape.tape import TAPE
from tapegrad.tensors import random
from tapegrad.tensors.grad_mode import set_grad_enabled, with_recording
from tapegrad.tensors.modes import is_recording_on
from tapegrad.tensors.tensor import FLOATS, Tensor, array_of, is_recording, make
from tapegrad.tensors.untracked_values import at_depth, depth

__all__ = ["checkpoint"]

DETERMINISM_CHECKS = ("default", "none")


def checkpoint(f: Callable[..., Any], *, preserve_rng_state: bool = True, determinism_check: str = "default") -> Callable[..., Any]:
    """Function that computes the same and keeps nothing but its arguments: the backward pass runs it again.

    Parameters
    ----------
    f : callable
        Takes and returns tensors, containers of these, and anything else.
    preserve_rng_state : bool
        Whether the random numbers of `tapegrad.random` and of NumPy's global functions are the same in the second run.
    determinism_check : {"default", "none"}
        Whether a second run that gives other values is an error.

    Returns
    -------
    callable
        Takes the arguments of `f` and gives its results.

    Raises
    ------
    ValueError
        If `determinism_check` is another one.

    Notes
    -----
    Time for memory: a chain of ``n`` operations that is cut into pieces of ``sqrt(n)``, each of them checkpointed, needs memory for
    ``2 sqrt(n)`` and one more forward run [1]_. Checkpoints can be nested, and differentiated as often as `f`.

    Gradients of all tracked tensors arrive that the results depend on, be they arguments or variables around the function (the
    parameters of a layer). The backward pass raises RuntimeError if one of them was changed in place, or if the second run depends
    on other tensors or gives other values than the first one. Inside of `f`, ``tensor.detach()`` and ``no_grad`` mean what they
    mean elsewhere. Results are never views of an argument: those that would be are copied.

    References
    ----------
    .. [1] T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training deep nets with sublinear memory cost", arXiv:1604.06174, 2016.

    Examples
    --------
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> y = tg.checkpoint(lambda x: (x * x).exp())(x)
    >>> y.sum().backward()
    >>> x.grad
    tensor([  5.4366, 218.3926])
    """
    if determinism_check not in DETERMINISM_CHECKS:
        known = " or ".join(map(repr, DETERMINISM_CHECKS))
        raise ValueError(f"checkpoint: determinism_check must be {known}, but got {determinism_check!r}")

    @functools.wraps(f, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        if not is_recording():
            return f(*args, **kwargs)
        record = recorder_of(f) if is_tracked((args, kwargs)) else f
        piece = _Piece(record, (args, kwargs), preserve_rng_state, determinism_check != "none")
        return piece.first_run()

    return checkpointed


class _Trace(NamedTuple):
    """What one result was like: enough to notice that another run gave another one."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    total: float
    size: float

    @classmethod
    def of(cls, t: Tensor) -> _Trace:
        values = array_of(t)
        wide = values.astype(np.float64, copy=False)
        with np.errstate(all="ignore"):
            return cls(values.shape, values.dtype, float(wide.sum()), float(np.abs(wide).sum()))

    def is_like(self, other: _Trace, with_values: bool) -> bool:
        if (self.shape, self.dtype) != (other.shape, other.dtype):
            return False
        if not with_values:
            return True
        # Threads of a linear algebra library may add in another order.
        rounding = 1e-4 if self.dtype.itemsize == 4 else 1e-9
        return bool(
            np.allclose([self.total, self.size], [other.total, other.size], rtol=0.0, atol=rounding * self.size, equal_nan=True)
            if np.isfinite(self.size)
            else np.array_equal([self.total, self.size], [other.total, other.size], equal_nan=True)
        )


class _Piece:
    """A function and what it was called with, without the tensors."""

    __slots__ = ("checks", "classes", "f", "generators", "given", "level", "saved", "structure", "traces")
    traces: list[_Trace]
    saved: list[int | None]

    def __init__(self, f: Callable[..., Any], arguments: Any, keeps_random_state: bool, checks: bool) -> None:
        self.f, self.checks, self.level = f, checks, depth()
        self.given: list[Any] = []
        self.structure: Structure = flatten(arguments, self.given)
        self.classes = [class_given(value) if type(value) is Array else None for value in self.given]
        self.generators = _generators() if keeps_random_state else None

    def run(self, leaves: Sequence[Any]) -> tuple[Structure, list[Any], list[int], Mark]:
        """Run the function; its results, the numbers of those that it recorded, and the moment before."""
        arguments, named = restore(self.structure, iter(leaves))
        mark = Mark()
        found: list[Any] = []
        structure = flatten(self.f(*arguments, **named), found)
        return structure, found, [k for k, t in enumerate(found) if isinstance(t, Tensor) and mark.is_newer(t)], mark

    def first_run(self) -> Any:
        """Results with one row instead of those that were recorded."""
        structure, found, recorded, mark = self.run(self.given)
        if not recorded:
            return restore(structure, iter(found))
        results = [found[k] for k in recorded]
        kinds = [type(t) for t in results]
        self.traces = [_Trace.of(t) for t in results]
        given = [t for t in self.given if isinstance(t, Tensor)]
        with TAPE.claim():
            boundary = tensors_at(mark.boundary(results), given)
        values = tuple(make(_own(t), 0) for t in results)
        for k in recorded:
            found[k] = None
        del results, mark  # and with them what was recorded
        # Values are saved to see that nobody writes to them, and those of arguments to run the function again.
        kept = {id(t): k for k, t in enumerate(boundary) if holds_value(t)}
        extra = [t for t in given if id(t) not in kept]
        order = [*kept.values(), *range(len(boundary), len(boundary) + len(extra))]
        place = {id(t): k for k, t in enumerate([*(boundary[k] for k in kept.values()), *extra])}
        self.saved = [place[id(t)] if isinstance(t, Tensor) else None for t in self.given]
        self.given = [None if isinstance(t, Tensor) else t for t in self.given]
        made = CheckpointFunction.apply(self, len(boundary), tuple(order), values, *boundary, *extra)
        for k, t, kind in zip(recorded, made, kinds, strict=True):
            found[k] = t
            t.__class__ = kind
        return restore(structure, iter(found))

    def run_again(self, saved: Sequence[Any]) -> tuple[list[Tensor], Mark]:
        """The recorded results of another run.

        Raises
        ------
        RuntimeError
            If they are others than those of the first run.
        """
        leaves = [given if k is None else saved[k] for given, k in zip(self.given, self.saved, strict=True)]
        for leaf, kind in zip(leaves, self.classes, strict=True):
            if kind is not None:
                leaf.__class__ = Array  # as what was given was, so that methods mean the same again
                answering(leaf, kind)
        with _replayed(self.generators):
            _, found, recorded, mark = with_recording(at_depth, self.level, self.run, leaves)
        results = [found[k] for k in recorded]
        traces = [_Trace.of(t) for t in results]
        if len(traces) != len(self.traces):
            raise _differs(self.f, f"{len(traces)} tracked results instead of {len(self.traces)}")
        for number, (now, before) in enumerate(zip(traces, self.traces, strict=True)):
            if not before.is_like(now, self.checks):
                same = (now.shape, now.dtype) == (before.shape, before.dtype)
                what = "other values" if same else f"{now.dtype} of shape {now.shape} instead of {before.dtype} of {before.shape}"
                raise _differs(self.f, f"{what} for tracked result {number}")
        return results, mark


def _differs(f: Any, what: str) -> RuntimeError:
    return RuntimeError(
        f"checkpoint: {getattr(f, '__name__', 'the function')} was run again for the backward pass and gave {what}. It must do the "
        "same each time: variables around it that change in between, and generators of its own, are to be arguments."
    )


def _own(t: Tensor) -> Any:
    """The value of a result, in memory that it shares with no argument."""
    if type(t._data) is float:
        return t._data
    shared = t._data.base is not None or (t._meta is not None and t._meta.base is not None)
    return t._data.copy() if shared else t._data


class CheckpointFunction(Function):
    """The row of a checkpointed function."""

    @staticmethod
    def forward(ctx: Any, piece: _Piece, count: int, order: tuple[int, ...], values: tuple[Tensor, ...], *tensors: Tensor) -> Any:
        """Hand out what was computed."""
        ctx.piece, ctx.count = piece, count
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*(tensors[k] for k in order))
        ctx.mark_non_differentiable(*(t for t in values if np.dtype(array_of(t).dtype) not in FLOATS))
        return values

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Run the function again, recorded, and pull the gradients through that."""
        records = is_recording_on()
        piece: _Piece = ctx.piece
        saved = ctx.saved_tensors
        with TAPE.claim():
            slots = [argument.slot for argument in arguments_of(TAPE.slot(ctx._row))[: ctx.count]]
            results, mark = piece.run_again(saved)
            if mark.boundary(results) != sorted(set(slots)):
                raise _differs(piece.f, "results that depend on other tensors")
            pairs = [(t, g) for t, g in zip(results, gradients, strict=True) if g is not None]
            with set_grad_enabled(records):
                found = pull([t for t, _ in pairs], [g for _, g in pairs], slots)
        rest = len(ctx.needs_input_grad) - 4 - ctx.count
        return (None,) * 4 + tuple(found) + (None,) * rest


def _generators() -> tuple[Any, Any]:
    """States of the generators that functions draw from."""
    return random.state(), np.random.get_state() if "numpy.random" in sys.modules else None  # noqa: NPY002 - users call it


@contextlib.contextmanager
def _replayed(states: tuple[Any, Any] | None) -> Iterator[None]:
    """Let generators stand where they stood, and go on later as if nothing had been drawn."""
    if states is None:
        yield
        return
    before = _generators()
    try:
        _set_generators(states)
        yield
    finally:
        _set_generators(before)


def _set_generators(states: tuple[Any, Any]) -> None:
    random.set_state(states[0])
    if states[1] is not None:
        np.random.set_state(states[1])  # noqa: NPY002
