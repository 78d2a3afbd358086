"""PyTorch's own samples of its operations: values, dtypes, what is tracked, gradients and second gradients."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed; make oracle installs it")
pytest.importorskip("expecttest", reason="PyTorch's table of samples needs it; make oracle installs it")

from samples_of_pytorch import Form, Sample, as_arrays, forms, tensors_in  # noqa: E402

import tapegrad as tg  # noqa: E402

pytestmark = pytest.mark.oracle

RANDOM = {
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal",
    "multinomial", "normal", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like",
    "uniform", "nn.functional.alpha_dropout", "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout", "nn.functional.rrelu", "nn.functional.scaled_dot_product_attention",
    "empty", "empty_like", "new_empty",
}  # fmt: skip
# Vectors that are determined but for their signs, places of equal elements, and casts that are no functions of tapegrad.
NOT_UNIQUE = {"svd", "linalg.svd", "linalg.eigh", "linalg.qr", "qr", "kthvalue", "mode", "topk", "sort", "argsort", "msort"}
CASTS = {"bool", "double", "float", "half", "int", "long", "short"}
# PyTorch's table calls these in other ways than users do: with a string after the operands, the order of a derivative as the
# second argument, one result of many, a condition as the second argument.
CALLED_OTHERWISE = {
    "einsum",
    "polygamma",
    "linalg.lstsq",
    "linalg.pinv",
    "where",
    "nn.functional.embedding",
    "svd",
    "nn.functional.triplet_margin_with_distance_loss",
}
# Equal but for rounding that PyTorch does in single precision.
ROUGH = {
    "cov",
    "corrcoef",
    "celu",
    "nn.functional.celu",
    "hardsigmoid",
    "nn.functional.hardsigmoid",
    "special.bessel_j0",
    "special.bessel_j1",
    "special.bessel_y0",
    "special.bessel_y1",
}
# What is refused here, or has another meaning: targets that resize, a number of classes that is no dimension, second derivatives
# where the first has a kink, factors that PyTorch truncates, negative powers of integers, bools in arithmetic.
DIFFERENT = {
    "addbmm in place",
    "nn.functional.multi_margin_loss",
    "linalg.norm subgradients_at_zero",
    "as_strided_scatter",  # whose gradient goes to what stays
    "as_strided_scatter as a method",
    "linalg.lu_factor",  # pivots are int64
    "linalg.lu_factor_ex",
}
DIFFERENT_OF_INTEGERS = {
    "addmv", "addbmm", "baddbmm", "cov", "nn.functional.avg_pool1d", "nn.functional.avg_pool2d", "nn.functional.avg_pool3d",
    "nn.functional.local_response_norm", "nn.functional.cosine_embedding_loss", "__rpow__", "sign", "sgn", "prod", "sum_to_size",
}  # fmt: skip
LEFT_OUT = RANDOM | NOT_UNIQUE | CASTS | CALLED_OTHERWISE
FORMS = [form for form in forms() if form.table.name not in LEFT_OUT and str(form) not in DIFFERENT]
OTHERS = [
    (form, dtype)
    for form in FORMS
    for dtype in (torch.float32, torch.int64, torch.bool)
    if dtype in form.table.dtypes and (dtype.is_floating_point or form.table.name not in DIFFERENT_OF_INTEGERS)
]


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


class _RefusedError(Exception):
    """PyTorch refuses the call, or the derivative."""


def results(library: Any, function: Any, sample: Sample) -> list[Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return tensors_in(function(*sample.arguments, **sample.keywords))
    except Exception as error:
        if library is torch:
            raise _RefusedError from error
        raise


def projection(library: Any, tensors: list[Any]) -> Any:
    """One number that depends on every element."""
    total = library.zeros((), dtype=library.float64)
    for number, t in enumerate(tensors):
        weights = np.random.default_rng(number).uniform(0.5, 1.5, tuple(t.shape))
        total = total + (t * library.tensor(np.asarray(weights), dtype=t.dtype)).sum()
    return total


def gradients(library: Any, tensors: list[Any], leaves: list[Any], again: bool) -> list[Any]:
    try:
        total = projection(library, tensors)
        return list(library.autograd.grad(total, leaves, create_graph=again, allow_unused=True, materialize_grads=True))
    except Exception as error:
        if library is torch:
            raise _RefusedError from error
        raise


def assert_same(ours: list[Any], theirs: list[Any], tolerance: float) -> None:
    assert len(ours) == len(theirs)
    for one, other in zip(as_arrays(ours), as_arrays(theirs), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        if other.dtype.kind != "f":
            np.testing.assert_array_equal(one, other)
            continue
        scale = max(1.0, float(np.max(np.abs(np.where(np.isfinite(other), other, 0.0)), initial=0.0)))
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * scale)


def compare(form: Form, dtype: Any, tolerance: float) -> None:
    for ours, theirs in form.samples(dtype):
        try:
            expected = results(torch, form.theirs, theirs)
            found = results(tg, form.ours, ours)
            assert_same(found, expected, tolerance)
            assert [t.requires_grad for t in found] == [t.requires_grad for t in expected]
            if not ours.leaves or dtype is not torch.float64:
                continue
            twice = form.table.supports_gradgrad
            tracked = [k for k, t in enumerate(expected) if t.requires_grad]
            expected = gradients(torch, [expected[k] for k in tracked], theirs.leaves, twice)
            found = gradients(tg, [found[k] for k in tracked], ours.leaves, twice)
            assert_same(found, expected, 10 * tolerance)
            if twice:
                # PyTorch tracks also what is constant.
                tracked = [k for k, t in enumerate(expected) if t.requires_grad]
                expected = gradients(torch, [expected[k] for k in tracked], theirs.leaves, False)
                tracked = [k for k, t in enumerate(found) if t.requires_grad]
                found = gradients(tg, [found[k] for k in tracked], ours.leaves, False) if tracked else [0 * t for t in expected]
                assert_same(found, expected, 100 * tolerance)
        except _RefusedError:
            continue


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_samples_of_an_operation_have_pytorchs_derivatives(form: Form) -> None:
    compare(form, torch.float64, 1e-6 if form.table.name in ROUGH else 1e-10)


@pytest.mark.parametrize(("form", "dtype"), OTHERS, ids=str)
def test_samples_of_other_dtypes_have_pytorchs_values(form: Form, dtype: Any) -> None:
    compare(form, dtype, 1e-4)
