"""Values, gradients and second gradients of every operation that has a case or a rule, beside those of PyTorch."""

import tomllib
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed; make oracle installs it")

from operation_case import Case, as_tuple  # noqa: E402
from rule_cases import as_case  # noqa: E402
from rule_samples import PUBLIC, Rule, columns, differentiable, edge_columns, names  # noqa: E402
from twin_cases import NotInPyTorchError, Twins, twins  # noqa: E402

import tapegrad as tg  # noqa: E402

pytestmark = pytest.mark.oracle
over = pytest.mark.parametrize


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def numbers(t: Any) -> np.ndarray:
    return np.array(t.detach().numpy(force=True) if isinstance(t, torch.Tensor) else t.detach().numpy())


def projection(library: Any, results: tuple[Any, ...]) -> Any:
    """One number that depends on every element of every tracked result."""
    total = library.tensor(0.0)
    for number, result in enumerate(results):
        if result is not None and result.requires_grad:
            shape = tuple(result.shape)
            rng = np.random.default_rng([number, zlib.crc32(str(shape).encode())])
            total = total + (result * library.tensor(rng.uniform(0.5, 1.5, shape))).sum()
    return total


def derivatives(library: Any, case: Case, order: int) -> list[list[np.ndarray]]:
    """Values, gradients, gradients of the projection of these, and so on."""
    leaves = [library.tensor(array.copy()) for array in case.arrays]
    tracked = [leaf.requires_grad_() for leaf in leaves if leaf.dtype == library.float64]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = as_tuple(case.call(*leaves))
    found = [[numbers(result) for result in results]]
    for level in range(1, order + 1):
        total = projection(library, results)
        if not total.requires_grad:
            found.append([np.zeros(tuple(t.shape)) for t in tracked])
            continue
        results = library.autograd.grad(total, tracked, create_graph=level < order, allow_unused=True, materialize_grads=True)
        found.append([numbers(g) for g in results])
    return found


def assert_same(ours: list[list[np.ndarray]], theirs: list[list[np.ndarray]], tolerance: float = 1e-10) -> None:
    for level, (some, others) in enumerate(zip(ours, theirs, strict=True)):
        for one, other in zip(some, others, strict=True):
            assert (one.shape, one.dtype.kind) == (other.shape, other.dtype.kind)
            finite = np.where(np.isfinite(other), other, 0.0)
            scale = max(1.0, float(np.max(np.abs(finite), initial=0.0)))
            np.testing.assert_allclose(one, other, rtol=0, atol=10.0**level * tolerance * scale, err_msg=f"order {level}")


# The order to which PyTorch differentiates, where ours is higher.
THEIR_ORDER = {
    "hardsigmoid": 1, "multilabel_margin_loss": 1, "multi_margin_loss": 1, "multi_margin_loss-one sample": 1,
    "multi_margin_loss-one sample in a row": 1,
    "scatter": 0, "scatter_": 0, "scatter-add": 0, "index_fill": 0, "bincount": 0,
    "cdist": 1, "cdist-1": 1, "pdist": 1,
    "vander": 0, "vander-increasing": 0,  # it writes into what its gradient needs
    "ldexp-integers": 0,  # its gradient takes 2**-2 for an integer, zero
    "special.bessel_j0": 0, "special.bessel_j1": 0, "special.modified_bessel_k0": 0, "special.scaled_modified_bessel_k1": 0,
    "linalg.cond-fro": 0, "linalg.cond-inf": 0, "linalg.cond--inf": 0, "linalg.cond-1": 0, "linalg.cond--1": 0,
}  # fmt: skip
# PyTorch rounds the numbers in the first two to float32, sums a short series in the third, and has nine digits of the last two.
ROUGH = ["celu", "hardsigmoid", "polygamma", "special.bessel_j0", "special.bessel_j1"]
CASES = twins()
NOT_IN_PYTORCH = {"cbrt"}
PLACES = (torch, torch.nn.functional, torch.special)
SHARED = [rule for rule in PUBLIC if rule.name not in NOT_IN_PYTORCH]


def differing() -> list[str]:
    """Cases that differ on purpose."""
    table = tomllib.loads((Path(__file__).parents[2] / "docs" / "pytorch-points.toml").read_text(encoding="utf-8"))
    return [case for difference in table["difference"] for case in difference.get("cases", [])]


def tolerance(name: str) -> float:
    return 1e-7 if name in ROUGH else 1e-10


def compare(case: Twins) -> None:
    order = min(case.ours.order, 2, THEIR_ORDER.get(str(case), 2))
    try:
        theirs = derivatives(torch, case.theirs, order)
    except NotInPyTorchError as error:
        pytest.skip(f"PyTorch has no {error}")
    assert_same(derivatives(tg, case.ours, order), theirs, tolerance(str(case)))


@over("case", [case for case in CASES if str(case) not in differing()], ids=str)
def test_derivatives_are_those_of_pytorch(case: Twins) -> None:
    compare(case)


@over("case", [case for case in CASES if str(case) in differing()], ids=str)
def test_derivatives_that_differ_on_purpose_differ(case: Twins) -> None:
    with pytest.raises(AssertionError, match="order 1"):
        compare(case)


def test_rules_that_are_left_out_are_not_in_pytorch() -> None:
    assert {rule.name for rule in PUBLIC if not any(hasattr(place, rule.name) for place in PLACES)} == NOT_IN_PYTORCH


def test_differences_are_cases() -> None:
    assert set(differing()) | set(THEIR_ORDER) <= {str(case) for case in CASES}


@over("rule", SHARED, ids=names(SHARED))
def test_derivatives_of_rules_are_those_of_pytorch(rule: Rule) -> None:
    ours, theirs = (derivatives(library, as_case(library, rule, columns(rule)), 2) for library in (tg, torch))
    assert_same(ours, theirs, tolerance(rule.name))


@over("rule", SHARED, ids=names(SHARED))
def test_rules_at_their_edges_are_pytorchs_where_these_are_finite(rule: Rule) -> None:
    points = edge_columns(rule)
    ours, theirs = (derivatives(library, as_case(library, rule, points), 1) for library in (tg, torch))
    finite = np.all([np.isfinite(points[k]) for k in differentiable(rule)], axis=0)
    for level, (some, others) in enumerate(zip(ours, theirs, strict=True)):
        for one, other in zip(some, others, strict=True):
            kept = finite & np.isfinite(other) & (np.abs(other) < 1e30)  # not at poles
            np.testing.assert_allclose(one[kept], other[kept], rtol=1e-9, atol=1e-12, err_msg=f"order {level}")
