"""Custom functions: operations whose value and derivative the user writes."""

from __future__ import annotations

import sys
import warnings
import weakref
from typing import Any, ClassVar

import numpy as np

from tapegrad.autograd.custom_rows import (
    bind,
    definition,
    new_ctx,
    record_function,
    record_new,
    record_output,
    saved_tensors,
)
from tapegrad.autograd.custom_state import State
from tapegrad.autograd.nodes import Node
from tapegrad.autograd.once_differentiable import once_differentiable
from tapegrad.engine.layout import CLOCK
from tapegrad.ops.overwriting import replace
from tapegrad.ops.views import alias, version_of, view
from tapegrad.recording.structural import Structural
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.grad_mode import without_recording
from tapegrad.tensors.tensor import FLOATS, Tensor, is_leaf, is_recording, make, meta_of

__all__ = ["Function", "FunctionCtx", "once_differentiable"]

_FLOAT64 = np.dtype(np.float64)


def _references() -> int:
    """How many references to an object are counted where one function has it, in one variable."""
    held = object()
    return sys.getrefcount(held)


HELD_HERE = _references()


class FunctionCtx(Node):
    """The ``ctx`` of a custom function: what ``forward`` leaves for ``backward``, and the node that ``grad_fn`` shows.

    Attributes that ``forward`` sets on it live as long as the recorded operation. Don't set outputs as attributes: they would keep
    themselves alive. `save_for_backward` has no such restriction.

    Attributes
    ----------
    needs_input_grad : tuple of bool
        For each argument of ``forward``, whether it is a tracked tensor.
    saved_tensors : tuple of Tensor or None
        What `save_for_backward` was given.
    """

    __slots__ = ("__dict__", "_state")
    _state: State
    _forward_cls: ClassVar[type[Function]]

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """For each argument of ``forward``, whether it is a tracked tensor."""
        return self._state.needs

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What `save_for_backward` was given.

        Raises
        ------
        RuntimeError
            If it was released by a backward pass, or overwritten.
        """
        return saved_tensors(self._row, self._state) if self._row > 0 else ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs, outputs and other tensors for ``backward``; checked for in-place writes, released by a backward pass."""
        self._state.to_save = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs ``forward`` writes in place; each of them must be returned."""
        self._state.dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs are not differentiable: they are untracked."""
        self._state.untracked = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Say whether ``backward`` is given zeros (the default) or None for outputs without gradient."""
        self._state.materialize = bool(value)

    def apply(self, *gradients: Tensor | None) -> Any:
        """Call the ``backward`` of the function."""
        function = self._forward_cls
        if function.vjp is not Function.vjp:
            if function.backward is not Function.backward:
                raise RuntimeError(
                    "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of "
                    "them."
                )
            return function.vjp(self, *gradients)
        return function.backward(self, *gradients)

    def _count_outputs(self) -> int:
        return len(self._state.outputs)


class Function:
    """Base class of custom functions.

    A subclass has static methods ``forward(ctx, *args)`` (or ``forward(*args)`` and ``setup_context(ctx, inputs, output)``) and
    ``backward(ctx, *gradients)``, and is called by ``apply``. Both run with recording off; in a pass with ``create_graph=True``
    ``backward`` is recorded.

    Examples
    --------
    >>> class Exp(tg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         y = tg.exp(x)
    ...         ctx.save_for_backward(y)
    ...         return y
    ...
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (y,) = ctx.saved_tensors
    ...         return g * y
    >>> x = tg.tensor(0.0, requires_grad=True)
    >>> Exp.apply(x).backward()
    >>> x.grad
    tensor(1.)
    """

    _ctx: ClassVar[type[FunctionCtx]]
    _definitions: ClassVar[dict[int, Structural]]  # by what is saved
    _nodes: ClassVar[dict[int, Structural]]  # the same of several outputs
    _binds: ClassVar[Any] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name = f"{cls.__name__}Backward"
        cls._ctx = type(name, (FunctionCtx,), {"__slots__": (), "_forward_cls": cls, "__doc__": f"The ctx of `{cls.__name__}`."})
        cls._definitions, cls._nodes = {0: definition(name, 0)}, {0: definition(name, 0, several=True)}
        cls._binds = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Not for use: functions are called by ``apply``."""
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with "
            f"static forward method: {type(self).__name__}.apply(...)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Prepare `ctx`, if ``forward`` is not given it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute a gradient, or None, for each argument of ``forward``."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode "
            "AD."
        )

    vjp = backward

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call the function.

        Parameters
        ----------
        *args, **kwargs
            Arguments of ``forward``. Tensors among them are tracked, those inside lists and other containers are not.

        Returns
        -------
        object
            What ``forward`` returned; tensors, alone or in a tuple, are tracked if an argument is.
        """
        separate = cls.setup_context is not Function.setup_context
        if kwargs:
            args = cls._bind(separate, args, kwargs)
        state = State(cls._ctx, args)
        ctx = new_ctx(state)
        if separate:
            output = without_recording(cls.forward, *args)
            without_recording(cls.setup_context, ctx, args, output)
        else:
            output = without_recording(cls.forward, ctx, *args)
        try:
            outputs = output if isinstance(output, tuple) else (output,)
            definitions = cls._definitions if len(outputs) == 1 else cls._nodes
            if _are_new(outputs, state, args):
                row = record_new(definitions, cls._ctx.__name__, state, _inputs(state, args), outputs)
                if row > 0:
                    state.outputs = [_kind(o) for o in outputs]
                    if sys.getrefcount(ctx) > HELD_HERE:
                        _bind(ctx, row)
                    if len(outputs) == 1:
                        outputs[0]._row = row
                    else:
                        _attach(outputs, make(0.0, row))
                    return output
            held = weakref.ref(ctx)
            del ctx  # few keep it; the row makes another one when it is asked for
            made = _record(definitions[0], state, held, args, outputs)
        finally:
            state.to_save = state.dirty = state.untracked = ()
        return made if isinstance(output, tuple) else made[0]

    @classmethod
    def _bind(cls, separate: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Arguments by position."""
        if cls._binds is None:
            import inspect

            cls._binds = inspect.signature(cls.forward)
        bound = cls._binds.bind(*(() if separate else (None,)), *args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            names = ", ".join(bound.kwargs)
            raise TypeError(f"{cls.__name__}.apply(): keyword-only arguments of forward are not supported: {names}")
        return tuple(bound.args if separate else bound.args[1:])


def _are_new(outputs: tuple[Any, ...], state: State, args: tuple[Any, ...]) -> bool:
    """Whether a function gave tensors of floats that nobody else has a part in, each once, and said nothing about them."""
    if state.dirty or state.untracked or True not in state.needs or not outputs:
        return False
    for o in outputs:
        if type(o) is not Tensor or o._row or o._meta is not None or _is_in(o, args):
            return False
        if type(o._data) is not float and o._data.dtype not in FLOATS:
            return False
    return len(outputs) == 1 or len(set(map(id, outputs))) == len(outputs)


def _attach(outputs: tuple[Tensor, ...], node: Tensor) -> None:
    """Give new outputs their rows behind that of the function's node."""
    for number, o in enumerate(outputs):
        o._row = record_output(node, number, len(outputs), o._data)
        if number:
            meta_of(o).output_nr = number


def _inputs(state: State, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tensors among the arguments."""
    return args if len(state.positions) == len(args) else tuple([args[k] for k in state.positions])


def _bind(ctx: FunctionCtx, row: int) -> None:
    """Make a `ctx` that somebody holds the view of a row with this handle."""
    with TAPE.claim():  # a further handle may need room, and the row must not move while room is made
        bind(ctx, TAPE.slot(row))


def _kind(o: Any) -> tuple[tuple[int, ...], np.dtype[Any]] | None:
    """Shape and dtype of a tensor, None for anything else."""
    if not isinstance(o, Tensor):
        return None
    data = o._data
    return ((), _FLOAT64) if type(data) is float else (data.shape, data.dtype)


def _is_in(t: Any, among: tuple[Any, ...]) -> bool:
    for other in among:  # noqa: SIM110 - a generator takes three times as long
        if other is t:
            return True
    return False


def _record(
    op: Structural, state: State, held: weakref.ref[FunctionCtx], args: tuple[Any, ...], outputs: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The outputs as they are handed out, and the rows for them. The `ctx` is bound to its row if somebody holds it."""
    inputs = [args[k] for k in state.positions]
    tracked = True in state.needs and is_recording()
    for t in state.dirty:
        if not _is_in(t, outputs):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
                "inplace must all be outputs of the Function."
            )
        if not _is_in(t, args):
            warnings.warn(
                "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be "
                "passed to ctx.mark_dirty().",
                UserWarning,
                stacklevel=4,
            )
        if tracked and t._row and is_leaf(t):
            raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
        if not isinstance(t._data, float):
            TAPE.note_written(t._data)
        version_of(t).note(int(TAPE.header[CLOCK]))
    state.outputs = [_kind(o) for o in outputs]
    state.untracked += tuple([o for o, kind in zip(outputs, state.outputs, strict=True) if kind and kind[1] not in FLOATS])
    leaving = [k for k, kind in enumerate(state.outputs) if kind and not _is_in(outputs[k], state.untracked)]
    if not tracked or not leaving:
        return tuple(_untracked(o, inputs, state, tracked) if isinstance(o, Tensor) else o for o in outputs)
    only = outputs[0] if len(outputs) == 1 else None
    node = make(0.0, record_function(op, state, inputs, outputs, 0.0 if only is None else only._data))
    ctx = held()
    if ctx is not None:
        _bind(ctx, node._row)
    if only is None:  # one behind the other, since saved outputs are looked for there
        rows = {number: record_output(node, number, len(outputs), outputs[number]._data) for number in leaving}
    else:
        rows, node._row = {0: node._row}, 0
    made = []
    for number, o in enumerate(outputs):
        if number in rows:
            made.append(_tracked(o, rows[number], number, op.name.removesuffix("Backward"), inputs, state))
        else:
            made.append(_untracked(o, inputs, state, True) if isinstance(o, Tensor) else o)
    return tuple(made)


def _untracked(o: Tensor, inputs: list[Any], state: State, recording: bool) -> Tensor:
    if not _is_in(o, tuple(inputs)):
        return o
    if not _is_in(o, state.dirty):
        return alias(o, shares_version=True) if o._row and recording else without_recording(_same, o)
    if o._row and recording:
        replace(o, 0)  # its row is that of the value that was overwritten
    return o


def _same(x: Tensor) -> Tensor:
    """A view of the whole."""
    return view(x, "AliasBackward0", lambda array: array[...])


def _tracked(o: Tensor, row: int, number: int, name: str, inputs: list[Any], state: State) -> Tensor:
    """An output with its row."""
    is_input = _is_in(o, tuple(inputs))
    if is_input and _is_in(o, state.dirty):
        replace(o, row)
        return o
    if is_input:
        o = without_recording(_same, o)
    elif o._row:
        o = alias(o, shares_version=True)
    o._row = row
    if o._meta is not None and o._meta.base is not None:
        # A write to it, or to what it is a view of, would override the derivative given for it.
        o._meta.one_of_many, o._meta.made_without_grad = name, ""
    if number:
        meta_of(o).output_nr = number
    return o
