"""Operations that the tests have a case of, as benchmarks: forward and backward, on tapegrad and from the same text on PyTorch."""

from __future__ import annotations

import importlib
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .idioms import IDIOMS
from .workloads import Step, load

TESTS = Path(__file__).parents[2] / "tests"
SCRIPT = 8  # elements of a vector, and rows and columns of a matrix, in an optimisation script
POINTS = 4  # ways to make larger points of a case's own; the last one is that itself

Arrays = tuple[np.ndarray, ...]


class Operation(NamedTuple):
    """One operation on one library.

    Attributes
    ----------
    group : str
        Of the table that it is from.
    name : str
    call : callable
        Maps tensors to a tensor or a tuple of them, or for an idiom makes its step of the library and a size.
    arrays : tuple of ndarray, or None
        The point of a case.
    """

    group: str
    name: str
    call: Callable[..., Any]
    arrays: Arrays | None


def operations(library: str) -> list[Operation]:
    """All of them, in the same order for each library."""
    for folder in (TESTS, TESTS / "oracle"):
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
    module = load(library)
    found = [Operation("idioms", idiom.name, idiom.build, None) for idiom in IDIOMS]
    for path in sorted(TESTS.glob("cases_*.py")):
        cases = _cases(library, path)
        group = path.stem.removeprefix("cases_")
        found += [Operation(group, str(case), case.call, case.arrays) for case in cases if case.order]
    return found + list(_rules(module))


def _cases(library: str, path: Path) -> Sequence[Any]:
    if library == "torch":
        return importlib.import_module("twin_cases").on_torch(path).CASES
    return importlib.import_module(path.stem).CASES


def _rules(module: Any) -> Iterator[Operation]:
    """Rows of the table of rules, and their in-place forms."""
    rule_samples, rule_cases = (importlib.import_module(name) for name in ("rule_samples", "rule_cases"))
    tensor = importlib.import_module("tapegrad").Tensor
    for rule in rule_samples.PUBLIC:
        case = rule_cases.as_case(module, rule, rule_samples.columns(rule, SCRIPT))
        yield Operation("elementwise", rule.name, case.call, case.arrays)
        name = f"{rule.name}_"
        if len(case.arrays) == len(rule.args) and hasattr(tensor, name):
            yield Operation("in place", name, _written(name), case.arrays)


def _written(name: str) -> Callable[..., Any]:
    return lambda x, *others: getattr(x.clone(), name)(*others)


def build(library: str, operation: Operation, size: int, point: int) -> tuple[Step, list[float]]:
    """A step, forward and backward, and numbers that other libraries should find as well.

    Parameters
    ----------
    size : int
        Elements of an array; `SCRIPT` for what scripts have.
    point : int
        Which way to make arrays of this size, below `POINTS`.
    """
    module = load(library)
    if operation.arrays is None:
        step, found = operation.call(module, size)
        step()
        return step, [total(t) for t in found()]
    call = operation.call
    leaves, tracked, results, wanted = placed(module, operation, size, point)
    single = not isinstance(call(*leaves), (tuple, list))
    scalar = single and not results[0].shape

    def step() -> object:
        for leaf in tracked:
            leaf.grad = None
        result = call(*leaves)
        if scalar:
            result.backward()
        elif single:
            result.sum().backward()
        else:
            summed = result[wanted[0]].sum()
            for k in wanted[1:]:
                summed = summed + result[k].sum()
            summed.backward()
        return result

    step()
    gradients = [leaf.grad for leaf in tracked if leaf.grad is not None]
    return step, [total(t) for t in (*(results[k] for k in wanted), *gradients)]


def placed(module: Any, operation: Operation, size: int, point: int) -> tuple[list[Any], list[Any], tuple[Any, ...], list[int]]:
    """All operands, those that are tracked, the results, and the numbers of those that are tracked.

    Raises
    ------
    ValueError
        If none is.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        size = _of_results(module, operation, size, point)
        leaves = [module.tensor(array.copy()) for array in enlarged(operation.arrays or (), size, point)]
        tracked = [leaf.requires_grad_() for leaf in leaves if leaf.dtype in (module.float64, module.float32)]
        results = as_tuple(operation.call(*leaves))
    wanted = [k for k, t in enumerate(results) if t is not None and getattr(t, "requires_grad", False)]
    if not wanted:
        raise ValueError(f"{operation.name} gives nothing that is tracked")
    return leaves, tracked, results, wanted


def _of_results(module: Any, operation: Operation, size: int, point: int) -> int:
    """Elements of operands whose results have about so many, where results grow faster than operands, as outer products do."""
    if size <= SCRIPT or point == POINTS - 1 or operation.arrays is None:
        return size
    counts = []
    for small in (32, 64):
        made = enlarged(operation.arrays, small, point)
        results = as_tuple(operation.call(*(module.tensor(array) for array in made)))
        counts.append((max(map(np.size, made)), max(math.prod(t.shape) for t in results if t is not None)))
    (operands, results), (more_operands, more_results) = counts
    if more_operands == operands or results == 0:
        return size
    growth = math.log(more_results / results) / math.log(more_operands / operands)
    return size if growth < 1.5 else round(size ** (1.0 / growth))


def as_tuple(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def total(t: Any) -> float:
    values = np.asarray(t.detach().numpy(), np.float64)
    weights = np.linspace(0.5, 1.5, values.size).reshape(values.shape)
    return float((weights * values).sum())


def enlarged(arrays: Arrays, size: int, point: int) -> Arrays:
    """A case's point with more elements: drawn from where its own are, of square blocks, all stretched alike, or as it is.

    Raises
    ------
    ValueError
        If it should be larger than in a script, and this way leaves it as it is.
    """
    if point == POINTS - 1:
        return arrays
    rng = np.random.default_rng(5)
    if point == 2:
        factor = _factor(arrays, size)
        made = tuple(_of_shape(a, tuple(round(n * factor) if n > 1 else n for n in a.shape), rng) for a in arrays)
    else:
        blocks = [point == 1 and a.ndim == 2 and a.shape[0] == a.shape[1] for a in arrays]
        made = tuple(_blocks(a, size) if square else _drawn(a, size, rng) for a, square in zip(arrays, blocks, strict=True))
    if size > SCRIPT and all(a.shape == b.shape for a, b in zip(arrays, made, strict=True)):
        raise ValueError("arrays that cannot be made larger in this way")
    return made


def _factor(arrays: Arrays, size: int) -> float:
    """By which all dimensions are stretched, so that those that belong together still do."""
    largest = max(arrays, key=np.size, default=np.empty(0))
    free = sum(n > 1 for n in largest.shape)
    return float(max(1.0, (size / largest.size) ** (1 / free))) if free else 1.0


def _extent(rank: int, size: int) -> int:
    if size == SCRIPT:
        return SCRIPT if rank < 3 else 0
    return max(1, round(size ** (1 / rank)))


def _drawn(array: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    extent = _extent(array.ndim, size) if array.ndim else 0
    return _of_shape(array, tuple(extent if n > 1 and extent else n for n in array.shape), rng)


def _of_shape(array: np.ndarray, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if array.dtype.kind != "f":
        return np.resize(array, shape)
    if shape == array.shape:
        return array
    return rng.uniform(array.min(), array.max(), shape).astype(array.dtype)


def _blocks(array: np.ndarray, size: int) -> np.ndarray:
    """The matrix over and over again along the diagonal: what is symmetric, positive or triangular stays so."""
    extent = _extent(2, size)
    count = math.ceil(extent / len(array))
    return np.kron(np.eye(count), array)[:extent, :extent].astype(array.dtype)
