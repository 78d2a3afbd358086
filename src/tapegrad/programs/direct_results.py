"""What drivers return of a path, written out as text over the memory that its machine code writes into."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tapegrad.drivers.containers import Node, Structure, restore
from tapegrad.drivers.derivatives import Outputs, sizes_of, symmetric
from tapegrad.drivers.jacobians import own_block
from tapegrad.programs.kept_products import LaterProducts
from tapegrad.programs.recorded_paths import as_asked
from tapegrad.programs.traces import Trace
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["DirectResult", "NotDirectError"]

FLOAT64 = np.dtype(np.float64)


class NotDirectError(Exception):
    """There is no direct call: somebody else has to arrange the results."""


class DirectResult:
    """The lines that come before code runs, and the expression of what is returned.

    Parameters
    ----------
    made_code : MachineCode or MatrixCode
    trace : Trace
    what : str
        What is asked for: "" (value and gradient), "value", "jacobian" (with the value), "hessian", "value_jvp", "hvp", "push" or
        "pull" (products with the Jacobian), or "jvp" or "vjp" (the value, and what gives these products later).
    many : bool
        Whether derivatives come in a tuple for several arguments.

    Raises
    ------
    NotDirectError
        If there is more to do.

    Attributes
    ----------
    before : list of str
    conditions : list of str
        What has to be true of what the code wrote.
    after : list of str
        Lines that come then.
    text : str
    space : dict
        What they name.
    """

    def __init__(self, made_code: Any, trace: Trace, what: str, many: bool, later: LaterProducts | None = None) -> None:
        self._code, self._trace = made_code.alone(), trace
        self._has_products = what not in ("", "value") and made_code.has_products
        self.before: list[str] = []
        self.conditions: list[str] = []
        self.after: list[str] = []
        self.space: dict[str, Any] = {}
        # What the value belongs to is differentiated by several arguments, it may be, whose gradients come in a tuple.
        made = trace.made if what == "value" else as_asked(trace.made, many)
        if made.arrays or made.inside:
            raise NotDirectError
        self._made = made
        self.text = self._written(what, later)

    def _written(self, what: str, later: LaterProducts | None) -> str:
        code, trace, made = self._code, self._trace, self._made
        if what == "value":
            kinds = trace.kinds_of_results()
            if kinds is None:
                raise NotDirectError
            return self._arranged(self._all(code.results, kinds), trace.structure)
        if what in ("", "hvp", "pull"):
            parts = self._all(code.results, made.kinds, made.leaves)
            if what == "hvp":
                self._needs_finite(parts)
            found = self._arranged(parts, made.structure)
            return found if what else f"item({code.value}), {found}"
        if what == "hessian":
            return self._hessian(self._bands(code.results))
        outputs = Outputs(made, what)
        if what == "push":
            return self._products(self._bands(code.results)[0], outputs)
        count = len(outputs.tensors)
        kinds = [np.ndarray if np.shape(t._data) else float for t in outputs.tensors]
        value = self._arranged(self._all(code.results[:count], kinds, outputs.tensors), outputs.structure)
        if later is not None:
            self.space["later"] = later
            return f"(value := {value}), later.at(args, value)"
        (matrix,) = self._bands(code.results[count:])
        return f"{value}, {(self._products if what == 'value_jvp' else self._jacobian)(matrix, outputs)}"

    def _products(self, matrix: np.ndarray[Any, Any] | str, outputs: Outputs) -> str:
        """Of the Jacobian with one vector."""
        tensors = outputs.tensors
        if isinstance(matrix, str):
            self._needs_finite([matrix])
            parts = [self._block(f"{matrix}[:, {first}:{last}]", matrix, t) for t, (first, last) in _pieces(tensors)]
        else:
            self._needs_finite([self._named(matrix)])
            parts = [self._copied(part, t) for part, t in zip(_cut(matrix[0], tensors), tensors, strict=True)]
        return self._arranged(parts, outputs.structure)

    def _bands(self, results: Sequence[Any]) -> list[np.ndarray[Any, Any] | str]:
        """Memory of matrices, or names of large ones, whose memory is another one in each run."""
        return [self._fresh(room) if own is None else own for _, own, room in results]

    def _fresh(self, room: Any) -> str:
        name = self._named(room.fresh)
        self.before.append(f"        new_{name} = {name}()")
        return f"new_{name}"

    def _all(self, results: Sequence[Any], kinds: Sequence[Any], tensors: Sequence[Tensor] = ()) -> list[str]:
        """Results of code as they stand, in the dtypes of tensors."""
        if len(results) != len(kinds):
            raise NotDirectError
        found = [self._result(result, kind) for result, kind in zip(results, kinds, strict=True)]
        for k, ((_, own, room), t) in enumerate(zip(results, tensors, strict=False)):
            memory = room if own is None else own
            if memory is not None and memory.dtype != array_of(t).dtype:
                found[k] = f"{found[k]}.astype({self._named(array_of(t).dtype)})"
        return found

    def _result(self, result: tuple[int, Any, Any], kind: Any) -> str:
        slot, own, room = result
        if slot >= 0 or (kind is not np.ndarray and own is not None):
            number = f"item({slot})" if slot >= 0 else f"{self._named(own.item)}()"
            return number if kind is float else f"{self._named(np.array if kind is np.ndarray else kind)}({number})"
        if kind is not np.ndarray:
            raise NotDirectError
        if own is not None:
            return f"{self._named(own.copy)}()"
        return self._fresh(room)

    def _copied(self, view: np.ndarray[Any, Any], *tensors: Tensor) -> str:
        """A copy of memory, in the shapes of tensors, and in the dtype of the last one."""
        dtype = array_of(tensors[-1]).dtype
        shape = tuple(length for t in tensors for length in np.shape(t._data))
        view = _reshaped(view, shape)
        if not shape:
            return f"{self._named(view.item)}()"
        return f"{self._named(view.copy)}()" if dtype == FLOAT64 else f"{self._named(view.astype)}({self._named(dtype)}, 'C')"

    def _jacobian(self, matrix: np.ndarray[Any, Any] | str, outputs: Outputs) -> str:
        leaves, tensors = self._made.leaves, outputs.tensors
        count = sum(sizes_of(leaves))
        self._needs_finite([f"{matrix if isinstance(matrix, str) else self._named(matrix)}[:, :{count}]"])
        if isinstance(matrix, str):
            rows = [
                [self._block(f"{matrix}[{first}:{last}, {left}:{right}]", matrix, t, x) for x, (left, right) in _pieces(leaves)]
                for t, (first, last) in _pieces(tensors)
            ]
        else:
            rows = [
                [self._copied(block.T, t, x) for block, x in zip(_cut(band.T, leaves), leaves, strict=True)]
                for band, t in zip(_cut(matrix, tensors), tensors, strict=True)
            ]
        return self._arranged([self._arranged(row, self._made.structure) for row in rows], outputs.structure)

    def _hessian(self, bands: Sequence[np.ndarray[Any, Any] | str]) -> str:
        leaves, structure = self._made.leaves, self._made.structure
        count = sum(sizes_of(leaves))
        rows = [
            f"{band}.reshape({size}, -1)[:, :{count}]" if isinstance(band, str) else self._named(band.reshape(size, -1)[:, :count])
            for band, size in zip(bands, sizes_of(leaves), strict=True)
        ]
        self._needs_finite(rows)
        self.space |= {"symmetric": symmetric, "concatenate": np.concatenate}
        whole = rows[0] if len(rows) == 1 else f"concatenate(({', '.join(rows)}))"
        self.after.append(f"        full = symmetric({whole})")
        if len(leaves) == 1 and np.shape(leaves[0]._data) and array_of(leaves[0]).dtype == FLOAT64:  # it is that already
            shape = np.shape(leaves[0]._data)
            return self._arranged(
                [self._arranged(["full" if len(shape) == 1 else f"full.reshape({shape * 2})"], structure)], structure
            )
        return self._arranged(
            [
                self._arranged(
                    [self._block(f"full[{first}:{last}, {left}:{right}]", "full", x, y) for y, (left, right) in _pieces(leaves)],
                    structure,
                )
                for x, (first, last) in _pieces(leaves)
            ],
            structure,
        )

    def _block(self, text: str, whole: str, *tensors: Tensor) -> str:
        """A block of a matrix that nobody else has, in the shapes of tensors, and in the dtype of the last one."""
        shape, dtype = tuple(length for t in tensors for length in np.shape(t._data)), array_of(tensors[-1]).dtype
        if not shape:
            return f"{text}.item()"
        self.space["own_block"] = own_block
        return f"own_block({text}, {whole}, {self._named(dtype)}).reshape({shape})"

    def _needs_finite(self, texts: Iterable[str]) -> None:
        """Leave what is not finite to the steps where products of matrices know no absolute zeros."""
        if self._has_products:
            from tapegrad.programs.fused.matrices import is_finite

            self.space["is_finite"] = is_finite
            self.conditions += [f"is_finite({text})" for text in texts]

    def _named(self, value: Any) -> str:
        name = f"r{len(self.space)}"
        self.space[name] = value
        return name

    def _arranged(self, parts: Sequence[str], structure: Structure) -> str:
        """An expression of results in a structure."""
        rest = iter(parts)
        return self._in(structure, rest)

    def _in(self, structure: Structure, parts: Iterator[str]) -> str:
        if structure is None:
            return next(parts)
        kind = type(structure.like)
        inner = [self._in(child, parts) for child in structure.children]
        if structure.like is None:
            return "None"
        if kind is tuple:
            return f"({', '.join(inner)}{',' * bool(inner)})"
        if kind is list:
            return f"[{', '.join(inner)}]"
        if kind is dict:
            return f"{{{', '.join(f'{self._named(key)}: {part}' for key, part in zip(structure.keys, inner, strict=True))}}}"
        flat = self._named(Node(structure.like, structure.keys, (None,) * len(inner)))
        return f"{self._named(restore)}({flat}, {self._named(iter)}([{', '.join(inner)}]))"


def _cut(array: np.ndarray[Any, Any], tensors: Sequence[Tensor]) -> Iterator[np.ndarray[Any, Any]]:
    """Pieces along the first axis with the elements of tensors."""
    done = 0
    for size in sizes_of(tensors):
        yield array[done : done + size]
        done += size


def _pieces(tensors: Sequence[Tensor]) -> list[tuple[Tensor, tuple[int, int]]]:
    """Tensors with the places where their elements begin and end."""
    ends = [0, *itertools.accumulate(sizes_of(tensors))]
    return list(zip(tensors, itertools.pairwise(ends), strict=True))


def _reshaped(view: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Memory in another shape; never a copy."""
    found = view.reshape(shape)
    if not np.may_share_memory(found, view):
        raise NotDirectError
    return found
