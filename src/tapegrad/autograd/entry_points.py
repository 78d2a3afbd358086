"""`backward` and `grad`: checks, roots, seeds, and the choice of pass."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.autograd.batched_gradients import gradients_of_batch
from tapegrad.autograd.decoded_rows import object_at, origin, record_of
from tapegrad.autograd.edges import GradientEdge, has_edges, listed
from tapegrad.autograd.former_rows import rows_of_inputs
from tapegrad.autograd.gradient_delivery import check_leaf
from tapegrad.autograd.recorded_sweep import call_finished_recorded, recorded_sweep, replace_gradients
from tapegrad.autograd.sweep import check_used, release, sweep, sweep_towards
from tapegrad.engine.layout import LIMIT, ROWS
from tapegrad.frames import frames_of_package
from tapegrad.recording.casting import cast
from tapegrad.tape.tape import TAPE, Claim, words_of
from tapegrad.tensors.retained_gradients import watch
from tapegrad.tensors.tensor import Tensor, array_of, is_leaf, make, register_leaf

__all__ = ["backward", "grad"]

_ADDRESS = TAPE.address
_warned = False
_tape_words = words_of(TAPE.header)
Tensors = Tensor | GradientEdge | Sequence[Tensor | GradientEdge]


def _seed(index: int, root: Tensor, given: Any) -> Tensor:
    """The seed of a root.

    Raises
    ------
    RuntimeError
        If none is given and the root does not have one element, or its shape differs from the root's.
    TypeError
        If it is not a tensor.
    """
    data = root._data
    if given is None:
        if type(data) is float:
            return make(1.0, 0)
        if data.size != 1:
            raise RuntimeError(
                f"grad can be implicitly created only for scalar outputs, but output {index} has shape {list(data.shape)}. "
                "Pass gradient=... of that shape, or reduce the output first, for example with .sum()."
            )
        return make(np.ones(data.shape, data.dtype), 0)
    if not isinstance(given, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(given).__name__}. Convert it with tg.tensor(...).")
    shape, own = np.shape(given._data), np.shape(data)
    if shape != own:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {list(shape)} and output[{index}] has a shape of {list(own)}."
        )
    if type(given._data) is not float and given._data.dtype.kind != "f":
        raise RuntimeError(f"grad_output[{index}] must be floating point, but is {dtypes.type_name(given._data.dtype)}")
    return cast(given, dtypes.float64 if type(data) is float else data.dtype)


def _roots(tensors: Any, seeds: Any, name: str) -> tuple[list[Tensor], list[Tensor]]:
    if seeds is None and isinstance(tensors, Tensor) and tensors._row:
        return [tensors], [_seed(0, tensors, None)]
    roots = listed(tensors, name)
    given = [None] * len(roots) if seeds is None else listed(seeds, "grad_tensors")
    if len(given) < len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(given)} gradients")
    for index, root in enumerate(roots):
        if not isinstance(root, Tensor):
            raise TypeError(f"element {index} of {name} must be a Tensor, but got {type(root).__name__}")
    made = [_seed(index, root, seed) for index, (root, seed) in enumerate(zip(roots, given, strict=False))]
    for index, root in enumerate(roots):
        if root._row == 0:
            raise RuntimeError(
                f"element {index} of tensors does not require grad and does not have a grad_fn. Set requires_grad=True on an input "
                "before computing it, and check that it was not computed under no_grad()."
            )
    return roots, made


def _inputs(inputs: Any, function: str) -> list[Tensor]:
    found = listed(inputs, "inputs")
    for t in found:
        if not isinstance(t, Tensor):
            raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(t).__name__}")
    if not found:
        raise RuntimeError(f"`inputs` argument to `{function}()` cannot be empty.")
    return found


def _pinned(records: bool = False) -> Claim:
    """A claim for the time of a pass."""
    if not TAPE.ready:
        TAPE.load()
    # A pass that is recorded adds many rows while nothing can be reclaimed, so dead ones are looked for before it.
    if records and 4 * _tape_words[ROWS] > 3 * _tape_words[LIMIT]:
        TAPE.collect()
    return TAPE.claim()


def _slots(tensors: Sequence[Tensor]) -> list[int]:
    for t in tensors:
        if t._row < 0:
            register_leaf(t)
    return [TAPE.slot(t._row) for t in tensors]


def _warn_cycle() -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which "
            "can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use "
            "this function, make sure to reset the .grad fields of your parameters to None after use to break the cycle and avoid "
            "the leak.",
            UserWarning,
            stacklevel=frames_of_package() + 1,
        )


def backward(
    tensors: Tensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Accumulate the gradients of tensors into the leaves they depend on.

    Parameters
    ----------
    tensors : Tensor, GradientEdge, or sequence of these
        What to differentiate.
    grad_tensors : Tensor, None or sequence of these, optional
        Seed of each, of its shape; None stands for 1 and is allowed for one element only.
    retain_graph : bool, optional
        Keep saved values, so that the graph can be walked again. Default: the value of `create_graph`.
    create_graph : bool
        Record the pass itself, for higher derivatives.
    inputs : Tensor, GradientEdge, or sequence of these, optional
        Accumulate into these tensors (leaves or results) only. Results among them retain their gradient from then on.

    Raises
    ------
    RuntimeError
        If a root is not tracked, a seed does not fit, or values that are needed were released or overwritten. Every ``.grad`` is
        then as it was.
    TypeError
        If a seed is not a tensor.

    Notes
    -----
    Time and memory are proportional to the rows reached.

    Examples
    --------
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> tg.autograd.backward([x.sum(), (x * x).sum()])
    >>> x.grad
    tensor([3., 5.])
    """
    roots, seeds = _roots(tensors, grad_tensors, "tensors")
    chosen = None if inputs is None else _inputs(inputs, "backward")
    for t in chosen or ():
        if t._row == 0:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if not roots:
        return
    retain = create_graph if retain_graph is None else bool(retain_graph)
    if create_graph:
        _warn_cycle()
    for t in chosen or ():
        if not (is_leaf(t) or t.retains_grad):
            watch(t)
    with _pinned(create_graph):
        slots = _slots(roots)
        if chosen is not None:
            _backward_to(chosen, slots, seeds, retain, create_graph)
        elif create_graph:
            found, shown, finished = recorded_sweep(slots, seeds, None)
            if TAPE.reshaped:
                _check_leaves(found)
            leaves = [(object_at(record_of(slot).payload)(), g) for slot, g in found.items()]
            replace_gradients([*shown, *((t, g) for t, g in leaves if t is not None)])
            if not retain:
                release(slots, None)
            call_finished_recorded(finished)
        else:
            _plain_pass(slots, seeds, None, retain)


def _check_leaves(slots: Iterable[int]) -> None:
    for slot in slots:
        record = record_of(slot)
        t = object_at(record.payload)()
        if t is not None and t._row:
            check_leaf(t, record, None)


def _backward_to(chosen: list[Tensor], slots: list[int], seeds: list[Tensor], retain: bool, create_graph: bool) -> None:
    rows = rows_of_inputs(chosen, [origin(slot) for slot in _slots(chosen)], slots)
    wanted = [slot for own in rows for slot in own]
    if not wanted:
        return
    # A retained gradient is added when the pass comes by.
    own_rows = {id(t): (t, own) for t, own in zip(chosen, rows, strict=True)}
    targets = [(t, slot) for t, own in own_rows.values() if not t.retains_grad for slot in own]
    if create_graph:
        recorded, shown, finished = recorded_sweep(slots, seeds, wanted)
        replace_gradients([*shown, *((t, recorded[slot]) for t, slot in targets if slot in recorded)])
        if not retain:
            _release(slots, wanted)
        call_finished_recorded(finished)
        return
    _plain_pass(slots, seeds, wanted, retain, into=targets)


def _plain_pass(slots: list[int], seeds: list[Tensor], wanted: list[int] | None, retain: bool, **options: Any) -> Any:
    if TAPE.anomalies:
        from tapegrad.autograd.anomaly_walk import walk

        return walk(slots, seeds, wanted, retain, **options)
    return sweep(slots, [seed._data for seed in seeds], wanted, retain, **options)


def _release(slots: list[int], wanted: list[int]) -> None:
    """Free what a plain pass between these rows would have freed."""
    if slots and wanted:
        release(slots, wanted)


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Gradients of the sum of outputs (weighted by seeds) with respect to inputs, returned and not accumulated.

    Parameters
    ----------
    outputs, inputs : Tensor, GradientEdge, or sequence of these
    grad_outputs : Tensor, None or sequence of these, optional
        Seed of each output.
    retain_graph : bool, optional
        Keep saved values. Default: the value of `create_graph`.
    create_graph : bool
        Record the pass itself, so that its results can be differentiated.
    allow_unused : bool, optional
        Give None for an input that the outputs do not depend on, instead of raising.
    is_grads_batched : bool
        Take the first dimension of each seed for several seeds: the gradients have it too, and are computed pass by pass.
    materialize_grads : bool
        Give zeros there, which a batch does not repeat.

    Returns
    -------
    tuple of Tensor or None
        One for each input, of its shape and dtype.

    Raises
    ------
    RuntimeError
        If a tensor is not tracked or unused, a seed does not fit, or needed values were released or overwritten.
    ValueError
        If `materialize_grads` is combined with ``allow_unused=False``.

    Examples
    --------
    >>> x = tg.tensor([3.0], requires_grad=True)
    >>> (g,) = tg.autograd.grad(x.pow(2), x, create_graph=True)
    >>> tg.autograd.grad(g, x)
    (tensor([2.]),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    if materialize_grads and has_edges(inputs):
        raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
    if is_grads_batched:
        outputs, inputs = listed(outputs, "outputs"), listed(inputs, "inputs")
        unused = allow_unused or materialize_grads
        batched = gradients_of_batch(
            lambda seeds, keeps: grad(outputs, inputs, seeds, keeps, create_graph, unused),
            outputs,
            [None] * len(outputs) if grad_outputs is None else listed(grad_outputs, "grad_outputs"),
            retain_graph,
        )
        return _with_zeros(inputs, batched) if materialize_grads else batched
    if type(outputs) is Tensor and type(inputs) is Tensor and grad_outputs is None and not (create_graph or retain_graph):
        alone = None if allow_unused or materialize_grads else _gradient_of_leaf(outputs, inputs)
        if alone is not None:
            return (alone,)
    roots, seeds = _roots(outputs, grad_outputs, "outputs")
    chosen = _inputs(inputs, "grad")
    for t in chosen:
        if t._row == 0:
            raise RuntimeError("One of the differentiated Tensors does not require grad. Set requires_grad=True before using it.")
    retain = create_graph if retain_graph is None else bool(retain_graph)
    demand = not (allow_unused or materialize_grads)
    found: dict[int, Any] = {}
    with _pinned(create_graph):
        slots = _slots(roots)
        rows = rows_of_inputs(chosen, [origin(slot) for slot in _slots(chosen)], slots)
        wanted = [slot for own in rows for slot in own]
        if demand:
            check_used(rows, bool)
        if slots and wanted:
            if create_graph:
                found, shown, _ = recorded_sweep(slots, seeds, wanted, demand, accumulates=False)
                if shown:
                    replace_gradients(shown)
            else:
                found = _plain_pass(slots, seeds, wanted, retain, demand=demand) or {}
        if demand:
            check_used(wanted, found.__contains__)
        if create_graph and not retain:
            _release(slots, wanted)
    results = (_total([found[slot] for slot in own if slot in found], wanted.count(own[0]) > 1 if own else False) for own in rows)
    return _with_zeros(chosen, results) if materialize_grads else tuple(results)


def _gradient_of_leaf(output: Tensor, leaf: Tensor) -> Tensor | None:
    """The gradient of a number by the one leaf that it depends on; None, with nothing done, for all else.

    Raises
    ------
    RuntimeError
        If values that it needs were released or overwritten, or every contribution is undefined.
    """
    meta = leaf._meta
    if type(output._data) is not float or output._row <= 0 or leaf._row <= 0 or meta is None or meta.leaf is None or meta.left:
        return None
    if is_leaf(output) or TAPE.anomalies or TAPE.tracers or TAPE.observers or TAPE.packers:
        return None
    found = sweep_towards(output._row, (leaf,))
    if found is None:
        return None
    check_used(found, lambda gradient: gradient is not None)
    return _total(found, False)


def _with_zeros(chosen: Sequence[Tensor], gradients: Iterable[Tensor | None]) -> tuple[Tensor, ...]:
    return tuple(make(np.zeros_like(array_of(t)), 0) if g is None else g for t, g in zip(chosen, gradients, strict=True))


def _total(parts: list[Any], is_shared: bool) -> Tensor | None:
    """Sum of adjoints, arrays or tensors, as a tensor; a copy if others get the same ones."""
    if not parts:
        return None
    value = sum(parts[1:], parts[0])
    if isinstance(value, Tensor):
        return value
    scalar = value.ndim == 0 and value.dtype == np.float64
    return make(value.item() if scalar else value.copy() if is_shared else value, 0)
