"""One path through a function, as it was recorded: its inputs, its steps, and the rows of the tape that they keep up to date."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave
from tapegrad.drivers.containers import restore
from tapegrad.drivers.derivatives import Outputs, cut, derivative_of, sizes_of
from tapegrad.drivers.gradients import gradients, scalar_output
from tapegrad.drivers.jacobians import jacobian_matrix
from tapegrad.drivers.leaves import Call
from tapegrad.engine.layout import MOVES
from tapegrad.ops.products import product_again
from tapegrad.programs.fused.kinds import LATER, kind_of, split_kind
from tapegrad.programs.fused.paths import FusedMatrix, FusedPath
from tapegrad.programs.instructions import Instructions
from tapegrad.programs.kept_products import KeptProducts
from tapegrad.programs.recorded_calls import Results
from tapegrad.programs.recorder import Recorder
from tapegrad.programs.steps import Guard, Step, Structured, Value
from tapegrad.tape.locks import changing
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["Trace", "all_after", "has_code"]


class Trace:
    """A recorded path.

    Attributes
    ----------
    inputs : list of Value
        Where the values of the arguments' leaves go, in their order.
    made : Call
        What the driver knows of the recorded call: leaves and output stay the same tensors in all runs.
    has_value : bool
        Whether `value` is what the function itself returns.
    structure : Structure
        Of that.
    fused : FusedPath
        Its machine code.
    is_running : bool
        Whether somebody runs the path or reads what it gave: another thread, or a function that calls itself, does not wait for it.
        No lock, which an interrupt can leave locked: between a look at an attribute and its change no other thread has its turn.
    """

    __slots__ = (
        "_columns", "_elements", "_fast", "_floats", "_instructions", "_known", "_matrices", "_moves", "_numbers", "_results",
        "_slots", "following", "fused", "has_value", "inputs", "is_running", "made", "recorder", "steps", "structure",
    )  # fmt: skip

    def __init__(self, recorder: Recorder, inputs: list[Value], made: Call, results: Results, fast: bool = False) -> None:
        self.recorder, self.inputs, self.made = recorder, inputs, made
        self.steps = recorder.steps
        self.is_running = False
        self.following: dict[tuple[int, Any], Trace] = {}  # by the guard that failed and what it observed
        self._numbers = np.zeros(len(recorder.values))
        for k, value in enumerate(recorder.values):
            value.array = self._numbers[k : k + 1].reshape(())
        self._instructions = Instructions(self.steps, self._numbers)
        self.structure, self._results = results.structure, results.leaves
        self.has_value = results.own
        for t, value, _ in self._results:
            value.array[...] = t._data
        self._floats = [(t, value) for t, value, _ in results.leaves if type(t._data) is float]
        numbers = sorted(dict(recorder.handles).items())
        self._columns = np.array([number for number, _ in numbers], np.intp), [t for _, t in numbers]
        self._slots, self._moves = np.zeros(0, np.intp), -1
        leaves = [recorder.value_of(leaf) for leaf in made.leaves]
        known = [leaf for leaf in leaves if leaf is not None]
        given = [value for t, value, _ in results.leaves if _is_number(t._data, value)]
        whole = len(results.leaves) == len(given) == 1 and len(known) == len(leaves)
        self._known = known if len(known) == len(leaves) else None
        self._elements = sum(sizes_of(made.leaves))
        self._matrices: dict[str, FusedMatrix] = {}
        self.fused = FusedPath(self.steps, inputs, known, given[0] if whole else None, fast)
        self._fast = fast
        if all(map(_has_one_structure, self.steps)):
            made.structures = {}

    def run(self, values: Sequence[Any]) -> tuple[int, Any] | None:
        """Do the steps for other values of the inputs; None, or the number of the guard that failed and what it observed."""
        self.made.gradients = self.made.matrix = self.made.products = None  # of machine code, whose caller was interrupted
        for value, given in zip(self.inputs, values, strict=True):
            value.array[...] = given
        token = enter(IGNORING)
        try:
            k = self._instructions.run()
        finally:
            leave(token)
        if k >= 0:
            step = self.steps[k]
            return k, step.observed() if isinstance(step, Guard) else None
        self._update_rows()
        return None

    def has_run(self, values: Sequence[Any]) -> bool:
        """Whether the path can be taken for other values of the inputs, and was."""
        try:
            return self.run(values) is None
        except Exception:  # which the function itself raises with its own words
            return False

    def _ran(self, what: str, code: Any, values: Sequence[Any]) -> bool:
        """Let machine code compute something for the driver; whether it did."""
        found = code.gradient(values)
        if found is None:
            return False
        self.take(what, found)
        return True

    def take(self, what: str, found: tuple[float, list[Any]]) -> None:
        """Let the driver find what machine code gave: value and gradient, or the outputs and a matrix."""
        value, parts = found
        if not what:
            self.made.gradients = parts
            output = self.made.output
            if type(output._data) is float:
                output._data = value
            else:  # of float32: rows have that memory
                output._data[...] = value
            return
        self.made.matrix = None if what == "value" else parts.pop()
        if split_kind(what)[0] in ("jvp", "hvp"):  # without values
            return
        for (t, place, _), own in zip(self._results, parts or [value][: len(self._results)], strict=True):
            place.array[...] = own
            if type(t._data) is float:
                t._data = own
            elif t._data is not place.array:
                t._data[...] = own

    def code_for(self, what: str, along: Sequence[Any]) -> Any:
        """Machine code of something, and of so many vectors of that kind; None if there is none yet."""
        fused = self.code_of(what)
        if fused is None or (what in LATER and not along) or (along and {vector.size for vector in along} != {self._elements}):
            return None
        return fused.code

    def has_fused(self, values: Sequence[Any], needs: Any, fuses: bool) -> bool:
        """Whether machine code gave the gradient, or what else a driver `needs`; it is made by and by if the program `fuses`."""
        what, along = kind_of(needs)
        if what in LATER and not along:
            return self._has_products(values, what, fuses)
        fused = self.code_of(what)
        if fused is None or (along and {vector.size for vector in along} != {self._elements}):
            return False
        if fused.code is not None:
            return self._ran(what, fused.code, [*values, *along])
        if fuses:
            self._make(fused, what, values, along)
        return False

    def _make(self, fused: FusedPath, what: str, values: Sequence[Any], along: Sequence[Any]) -> None:
        """Count a run towards machine code, or compare it with the steps when it is there."""
        if fused.refused:
            return
        if not fused.waits:
            fused.ran()
        elif self.has_run(values):
            expected = functools.partial(self.matrix_of_steps, what, along) if what else self.value_and_gradient
            fused.try_out([*values, *along], expected)

    def _has_products(self, values: Sequence[Any], what: str, fuses: bool) -> bool:
        """Whether machine code gave the value, and gives products with vectors that are known later."""
        codes = {name: self.code_of(name) for name in ("value", what)}
        value, product = codes["value"], codes[what]
        if value is None or not isinstance(product, FusedMatrix):
            return False
        if value.code is not None and product.code is not None:
            if not self._ran("value", value.code, values):
                return False
            kept = [given.copy() if type(given) is np.ndarray else given for given in values]
            self.made.products = KeptProducts(self, what, product, kept)
            return True
        for name, fused in codes.items():
            if fuses and fused is not None and fused.code is None:
                size = self._elements if what == "jvp" else sum(value.array.size for _, value, _ in self._results)
                self._make(fused, name, values, [np.ones(size)] if name == what else [])
        return False

    def code_of(self, what: str) -> FusedPath | None:
        """Machine code of the gradient, or of a kind of `FusedMatrix`; None for what there is none of."""
        if not what or what == "rows":
            return None if what else self.fused
        if what not in self._matrices:
            outputs = [value for _, value, _ in self._results]
            is_number = len(outputs) == 1 and _is_number(self._results[0][0]._data, outputs[0])
            if self._known is None or (split_kind(what)[0] in ("hessian", "hvp") and not is_number):
                return None
            self._matrices[what] = FusedMatrix(self.steps, self.inputs, self._known, outputs, what, self._fast)
        return self._matrices[what]

    def compile(self, needs: Iterable[str]) -> None:
        """Make machine code of these kinds, and of what it was asked for besides: usual calls do not note that elsewhere."""
        for code in filter(None, map(self.code_of, sorted({*needs, *self._matrices}))):
            code.compile()

    def matrix_of_steps(self, what: str, along: Sequence[Any]) -> tuple[float, list[Any]]:
        """The same by what the rows give after a run."""
        outputs = Outputs(self.made, what)
        values = [array_of(t).copy() for t in outputs.tensors]  # code on trial may write where the rows have theirs
        if what == "value":
            return 0.0, values
        name = split_kind(what)[0]
        derivative = derivative_of(self.made, outputs.tensors, second=name in ("hessian", "hvp"), once=what == "hvp")
        if along and what != "vjp":
            given = np.stack([vector.reshape(-1) for vector in along], axis=1)
            products = (derivative.curve if name == "hvp" else derivative.push)(given).T
            return 0.0, [*(values if name == "value_jvp" else ()), products]
        if what == "vjp":
            found = derivative.pull(along[0].reshape(-1, 1))[:, 0]
            parts = cut(found, sizes_of(self.made.leaves))
            return 0.0, [g.reshape(shape) for g, shape in zip(parts, self.leaf_shapes(), strict=True)]
        if what == "hessian":
            return float(values[0]), [derivative.curve(np.eye(derivative.inputs))]
        return 0.0, [*values, jacobian_matrix(derivative)]

    def leaf_shapes(self) -> list[tuple[int, ...]]:
        """Shapes of what it is differentiated by."""
        return self.fused.shapes()

    def kind_of_value(self) -> str:
        """Name of the type that the function itself returns; empty if that is not known."""
        return self._results[0][2].__name__ if self.has_value and len(self._results) == 1 else ""

    def kinds_of_results(self) -> list[Any] | None:
        """Types of what the function itself returns, if they can be made of what code computes: numbers, and arrays in C order."""
        kinds: list[Any] = []
        for _, value, kind in self._results if self.has_value else ():
            array = value.array
            if kind is Tensor or (array.ndim and (kind is not np.ndarray or not array.flags.c_contiguous)):
                return None
            if kind is np.ndarray and not array.ndim and array.dtype != np.float64:  # of which code has a number of float64
                return None
            kinds.append(kind if array.ndim or kind in (float, np.ndarray) else array.dtype.type)
        return kinds if self.has_value else None

    def value_and_gradient(self) -> tuple[float, list[Any]]:
        """What the rows give after a run: the value, and the gradient by each leaf."""
        output = scalar_output(self.made, "grad")
        return float(array_of(output)), [np.asarray(g) for g in gradients(self.made, output)]

    def _update_rows(self) -> None:
        """Let the rows of numbers, and the tensors that hold one, have their present values."""
        numbers, tensors = self._columns
        if len(tensors):
            with changing:  # no other thread moves rows or columns meanwhile
                moves = int(TAPE.header[MOVES])
                if moves != self._moves:
                    self._slots = np.array([TAPE.slot(t._row) for t in tensors], np.intp)
                    self._moves = moves
                TAPE.columns["value"][self._slots] = self._numbers[numbers]
        for t, value in self._floats:
            t._data = float(value.array)

    def value(self) -> Any:
        """What the function itself returns, in types of its own, after a run."""
        return restore(self.structure, (_plain(value, kind) for _, value, kind in self._results))

    def described(self) -> dict[str, Any]:
        """Plain data about the path."""
        return {
            "inputs": [value.array.shape for value in self.inputs],
            "steps": [f"{step.describe()}  # {step.line}" for step in self.steps],
            "guards": [step.line for step in self.steps if isinstance(step, Guard)],
            "machine code": "; ".join(
                [self.fused.described(), *(f"{what}: {code.described()}" for what, code in self._matrices.items())]
            ),
        }


def all_after(first: Trace) -> Iterator[Trace]:
    """A path and those that leave it at a guard."""
    pending = [first]
    while pending:
        trace = pending.pop()
        yield trace
        pending += trace.following.values()


def _has_one_structure(step: Step) -> bool:
    """Whether its derivative's structure is the same in each run, if it has machine code: zeros of a factor may come and go."""
    is_product = isinstance(step, Structured) and step.operation.forward is product_again
    return not is_product or all(value.tracked or value.constant for value in step.operands)  # type: ignore[attr-defined]


def has_code(firsts: Sequence[Trace], what: str, fuses: bool) -> bool | None:
    """Whether one of the paths has machine code of something, or has some on trial; None if none ever will.

    Where there is none yet, it counts as a run, after enough of which the code is made.
    """
    codes = [trace.code_of(what) for first in firsts for trace in all_after(first)]
    known = [code for code in codes if code is not None and not code.refused]
    if any(code.code is not None or code.waits for code in known):
        return True
    if not known or not fuses:
        return None
    for code in known:
        code.ran()
    return False


def _is_number(data: Any, value: Value) -> bool:
    """Whether a result is one number."""
    return value.number >= 0 if type(data) is float else not data.ndim and data.dtype == np.float32


def _plain(value: Value, kind: type) -> Any:
    """A value of one of the types that functions return."""
    array = value.array
    if kind is Tensor:
        return wrap(array.copy("K") if array.ndim or array.dtype != np.float64 else array.item())
    return array.copy("K") if kind is np.ndarray else array.item() if kind is float else array[()]
