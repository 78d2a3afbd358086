"""Every operation that has a case: values, derivatives, layouts, dtypes, and writes into what it took and gave.

The cases stand in the modules ``cases_*.py`` beside this one; a new module is tested by being there.
"""

import importlib
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_fixtures import numbers
from many_cases import each
from numerical import check_gradients
from operation_case import Case, as_tuple

import tapegrad as tg
from tapegrad.rules.table import RULES
from tapegrad.surface.public_names import FAMILIES
from tapegrad.surface.tensor_methods import METHODS

CASES: list[Case] = [
    case for path in sorted(Path(__file__).parents[1].glob("cases_*.py")) for case in importlib.import_module(path.stem).CASES
]
DIFFERENTIABLE = [case for case in CASES if case.order]
ORDERS = [(case, order) for case in DIFFERENTIABLE for order in range(1, min(case.order, 2) + 1)]
EXPANDABLE = [case for case in CASES if case.expands and any(a.ndim and a.shape[0] > 1 for a in case.arrays)]

# What a write may answer, and what backward may say after one.
REFUSALS = (
    "modified by an inplace operation",
    "is a view and is being modified inplace",
    "is a view and its base or another view of its base has been modified",
    "more than one element of the written-to tensor refers to a single memory location",
)

Gradients = list[np.ndarray]


def test_no_two_cases_have_one_name() -> None:
    ids = [str(case) for case in CASES]
    assert sorted(ids) == sorted(set(ids))


# Public functions that take no tracked tensor, give none that depends on it smoothly, or give another one each time.
UNTRACKED = [
    "DoubleTensor", "FloatTensor", "LongTensor", "Variable", "arange", "as_tensor", "empty", "empty_like", "eye", "from_numpy",
    "full", "full_like", "linspace", "normal",
    "ones", "ones_like", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like",
    "randperm", "tensor", "tril_indices", "triu_indices", "zeros", "zeros_like",
    "asarray", "conj", "conj_physical", "histc", "logspace", "resolve_conj", "resolve_neg", "scalar_tensor", "unravel_index",
    "allclose", "broadcast_shapes", "can_cast", "checked", "equal", "manual_seed", "bernoulli", "multinomial", "numel", "real",
    "promote_types", "result_type",
    "bitwise_not", "bitwise_or", "bitwise_xor", "floor_divide", "gt", "heaviside", "isinf", "isreal", "le", "logical_and",
    "logical_not", "logical_or", "ne", "unique", "unique_consecutive",
    "alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout", "gumbel_softmax",
]  # fmt: skip


def public_functions() -> dict[str, Any]:
    modules = {"": tg, "functional.": tg.nn.functional, "linalg.": tg.linalg}
    drivers = {name for names in FAMILIES.values() for name in names.split()} | set(METHODS)
    found = {
        prefix + name: getattr(module, name)
        for prefix, module in modules.items()
        for name in set(dir(module)) - drivers
        if not name.startswith(("_", "is_", "get_", "set_"))
    }
    return {name: value for name, value in found.items() if callable(value) and not isinstance(value, type)}


@pytest.mark.point(44)
def test_every_function_has_a_case_or_a_rule() -> None:
    functions = public_functions()
    tested = {case.name for case in CASES} | {rule.name for rule in RULES} | set(UNTRACKED)
    known = {name for name in functions if {name, name.split(".")[-1]} & tested}
    same = {id(functions[name]) for name in known}
    assert sorted(name for name, value in functions.items() if name not in known and id(value) not in same) == []


def leaves_at(case: Case, dtype: Any = None) -> list[tg.Tensor]:
    return [
        tg.tensor(array, dtype=dtype, requires_grad=True) if array.dtype.kind == "f" else tg.tensor(array) for array in case.arrays
    ]


def results_at(case: Case, operands: list[tg.Tensor]) -> tuple[tg.Tensor, ...]:
    return as_tuple(case.call(*operands))


def weights(result: tg.Tensor, number: int) -> tg.Tensor:
    """Numbers that tell the elements of a result apart."""
    rng = np.random.default_rng([number, zlib.crc32(str(tuple(result.shape)).encode())])
    return tg.tensor(rng.uniform(0.5, 1.5, tuple(result.shape)), dtype=result.dtype)


def projection(results: tuple[Any, ...]) -> tg.Tensor:
    """One number that depends on every element of every tracked result, and keeps none of them."""
    total = tg.tensor(0.0)
    for number, result in enumerate(results):
        if result is not None and result.requires_grad:
            total = total + (result * weights(result, number)).sum()
    return total


def derivatives(total: tg.Tensor, wanted: list[tg.Tensor], order: int) -> list[Gradients]:
    """Gradients, then those of their projection, with respect to what is tracked."""
    found: list[Gradients] = []
    tracked = [t for t in wanted if t.requires_grad]
    for level in range(1, order + 1):
        if not total.requires_grad:
            found.append([np.zeros(tuple(t.shape)) for t in tracked])
            continue
        gradients = tg.autograd.grad(total, tracked, create_graph=level < order, allow_unused=True, materialize_grads=True)
        found.append([numbers(g) for g in gradients])
        total = projection(gradients)
    return found


def assert_same(got: list[Gradients], expected: list[Gradients], rtol: float = 1e-11) -> None:
    for level, (one, other) in enumerate(zip(got, expected, strict=True), 1):
        for g, e in zip(one, other, strict=True):
            scale = max(1.0, float(np.max(np.abs(e), initial=0.0)))
            np.testing.assert_allclose(g, e, rtol=0, atol=rtol * scale, err_msg=f"order {level}")


@each("case", CASES, ids=str)
def test_values_are_those_of_the_reference(case: Case) -> None:
    results = results_at(case, leaves_at(case))
    expected = as_tuple(case.reference(*case.arrays))
    assert len(results) == len(expected)
    for got, want in zip(results, expected, strict=True):
        assert tuple(got.shape) == np.shape(want)
        assert got.dtype.kind == np.asarray(want).dtype.kind
        np.testing.assert_allclose(numbers(got), want, rtol=1e-9, atol=1e-11)


@each("case", CASES, ids=str)
def test_results_are_tracked_where_they_have_derivatives(case: Case) -> None:
    tracked = [result.requires_grad for result in results_at(case, leaves_at(case))]
    kinds = [result.dtype.kind for result in results_at(case, leaves_at(case))]
    assert any(tracked) == (case.order > 0)
    assert not any(flag for flag, kind in zip(tracked, kinds, strict=True) if kind != "f")


@each("case", DIFFERENTIABLE, ids=str)
def test_derivatives_agree_with_differences(case: Case) -> None:
    check_gradients(case.call, *case.arrays, order=case.order, tolerance=case.tolerance)


def transposed(array: np.ndarray, tracked: bool) -> tg.Tensor:
    axes = tuple(reversed(range(array.ndim)))
    return tg.tensor(array.transpose(axes), requires_grad=tracked).permute(*axes)


def spaced(array: np.ndarray, tracked: bool) -> tg.Tensor:
    """Every third element of a longer last dimension, not from the first on."""
    if not array.ndim:
        return tg.tensor(np.repeat(array, 3), requires_grad=tracked)[1]
    wide = np.repeat(array, 3, axis=-1)
    wide[..., ::3] = wide[..., 2::3] = 1
    return tg.tensor(wide, requires_grad=tracked)[..., 1::3]


def expanded(array: np.ndarray, tracked: bool) -> tg.Tensor:
    """The first slice in place of all, with stride zero."""
    return tg.tensor(array[:1] if array.ndim else array, requires_grad=tracked).expand(array.shape)


LAYOUTS: dict[str, Callable[[np.ndarray, bool], tg.Tensor]] = {"transposed": transposed, "spaced": spaced}


def assert_layout_changes_nothing(case: Case, layout: Callable[[np.ndarray, bool], tg.Tensor]) -> None:
    views = [layout(array, array.dtype.kind == "f") for array in case.arrays]
    copies = [tg.tensor(numbers(view), requires_grad=view.requires_grad) for view in views]
    got, expected = results_at(case, views), results_at(case, copies)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-12, atol=1e-14)
    if case.order:
        order = min(case.order, 2)
        assert_same(derivatives(projection(got), views, order), derivatives(projection(expected), copies, order))


@each("layout", LAYOUTS)
@each("case", CASES, ids=str)
def test_strided_operands_are_as_good_as_contiguous_ones(case: Case, layout: str) -> None:
    assert_layout_changes_nothing(case, LAYOUTS[layout])


@each("case", EXPANDABLE, ids=str)
def test_expanded_operands_are_as_good_as_contiguous_ones(case: Case) -> None:
    assert_layout_changes_nothing(case, expanded)


@each("case", [case for case in CASES if case.float32], ids=str)
def test_float32_is_kept_and_near(case: Case) -> None:
    single, double = leaves_at(case, tg.float32), leaves_at(case)
    got, expected = results_at(case, single), results_at(case, double)
    for one, other in zip(got, expected, strict=True):
        assert one.dtype == (tg.float32 if other.dtype == tg.float64 else other.dtype)
        np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-4, atol=1e-4)
    if case.order:
        first = derivatives(projection(got), single, 1)
        assert {g.dtype for g in first[0]} == {np.dtype(np.float32)}
        assert_same(first, derivatives(projection(expected), double, 1), 2e-4)


def other_values(t: tg.Tensor) -> None:
    """Write into a tensor so that every element changes."""
    if t.dtype.kind == "f":
        t.mul_(2.0).add_(0.5)
    elif t.dtype.kind == "b":
        t.copy_(~t)
    else:
        t.add_(1)


def inner_operands(case: Case) -> tuple[list[tg.Tensor], list[tg.Tensor]]:
    """Leaves, and results with their values for the operation to take."""
    leaves = leaves_at(case)
    return leaves, [leaf * 1.0 if leaf.requires_grad else leaf for leaf in leaves]


def is_harmless(attempt: Callable[[], list[Gradients]], expected: list[Gradients]) -> None:
    """Assert that the attempt raises what a write may raise, or gives the expected derivatives."""
    try:
        got = attempt()
    except RuntimeError as error:
        if not any(words in str(error) for words in REFUSALS):
            raise
    else:
        assert_same(got, expected)


def attempts(case: Case, order: int) -> Iterator[Callable[[], list[Gradients]]]:
    """One write each, after the operation (and, for a higher order, after its recorded derivative) and before the last pass."""
    _, inner = inner_operands(case)
    count = len(inner) + len(results_at(case, inner))
    for victim in range(count):

        def attempt(victim: int = victim) -> list[Gradients]:
            leaves, inner = inner_operands(case)
            results = results_at(case, inner)
            total = projection(results)
            tracked = [leaf for leaf in leaves if leaf.requires_grad]
            for _ in range(order - 1):
                if not total.requires_grad:
                    break
                total = projection(tg.autograd.grad(total, tracked, create_graph=True, allow_unused=True))
            other_values([*inner, *results][victim])
            return derivatives(total, leaves, 1)

        yield attempt


@pytest.mark.point(44)
@each(("case", "order"), ORDERS, ids=lambda pair: f"{pair[0]}, order {pair[1]}")
def test_a_later_write_is_refused_or_harmless(case: Case, order: int) -> None:
    leaves, inner = inner_operands(case)
    expected = derivatives(projection(results_at(case, inner)), leaves, order)[-1:]
    for attempt in attempts(case, order):
        is_harmless(attempt, expected)


@pytest.mark.point(44)
@each("case", DIFFERENTIABLE, ids=str)
def test_a_result_written_before_its_use_has_the_derivatives_of_the_new_value(case: Case) -> None:
    def gradients(victim: int, scale: Callable[[tg.Tensor], tg.Tensor]) -> list[Gradients]:
        leaves, inner = inner_operands(case)
        results = list(results_at(case, inner))
        if results[victim].requires_grad:
            results[victim] = scale(results[victim])
        return derivatives(projection(tuple(results)), leaves, 1)

    for victim in range(len(results_at(case, leaves_at(case)))):
        is_harmless(lambda victim=victim: gradients(victim, lambda t: t.mul_(3.0)), gradients(victim, lambda t: t * 3.0))


@pytest.mark.point(44)
@each("case", DIFFERENTIABLE, ids=str)
def test_a_write_through_a_view_is_refused_or_harmless_to_what_saved_the_memory(case: Case) -> None:
    def gradients(write: Callable[[tg.Tensor], object]) -> list[Gradients]:
        leaves, inner = inner_operands(case)
        floats = [t for t in inner if t.requires_grad]
        total = projection(tuple(t * t for t in floats))
        for view in results_at(case, inner):
            if any(np.may_share_memory(view.detach().numpy(), t.detach().numpy()) for t in floats):
                write(view)
        return derivatives(total, leaves, 1)

    is_harmless(lambda: gradients(other_values), gradients(lambda t: None))
