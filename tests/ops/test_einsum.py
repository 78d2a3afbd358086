"""Einsum and its relatives: random equations against NumPy, derivatives by linearity, views, errors."""

import re
from typing import Any

import numpy as np
import pytest
from engine_fixtures import numbers
from hypothesis import given
from hypothesis import strategies as st

import tapegrad as tg

SIZES = {"a": 2, "b": 3, "c": 1, "A": 2, "B": 4}
ELLIPSIS = (2, 3)


@st.composite
def equations(draw: st.DrawFn) -> tuple[str, list[np.ndarray]]:
    """An equation that NumPy understands too, and operands for it."""
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    terms, arrays = [], []
    for _ in range(draw(st.integers(1, 4))):
        letters = draw(st.lists(st.sampled_from(sorted(SIZES)), max_size=3))
        covered = draw(st.sampled_from([None, None, 0, 1, 2]))
        at = draw(st.integers(0, len(letters)))
        shape = [SIZES[k] if letters.count(k) > 1 or draw(st.booleans()) else draw(st.sampled_from([SIZES[k], 1])) for k in letters]
        if covered is None:
            terms.append("".join(letters))
        else:
            terms.append("".join(letters[:at]) + "..." + "".join(letters[at:]))
            shape[at:at] = [draw(st.sampled_from([n, 1])) for n in ELLIPSIS[2 - covered :]]
        arrays.append(rng.normal(size=shape))
    equation = ",".join(terms)
    known = sorted(set(equation) & set(SIZES))
    output = draw(st.permutations(draw(st.lists(st.sampled_from(known), unique=True)))) if known else []
    at = draw(st.integers(0, len(output)))
    ellipsis = "..." if "..." in equation else ""
    return equation + "->" + "".join(output[:at]) + ellipsis + "".join(output[at:]), arrays


@given(equations())
def test_value_is_that_of_numpy(given_: tuple[str, list[np.ndarray]]) -> None:
    equation, arrays = given_
    got = tg.einsum(equation, *(tg.tensor(a) for a in arrays))
    expected = np.einsum(equation, *arrays)
    assert tuple(got.shape) == expected.shape
    np.testing.assert_allclose(numbers(got), expected, rtol=1e-10, atol=1e-12)


@given(equations())
def test_gradients_are_the_transpose_of_the_map(given_: tuple[str, list[np.ndarray]]) -> None:
    # The value is linear in each operand: its change for another operand is the product of gradient and operand.
    equation, arrays = given_
    leaves = [tg.tensor(a, requires_grad=True) for a in arrays]
    result = tg.einsum(equation, *leaves)
    rng = np.random.default_rng(0)
    weights = rng.normal(size=tuple(result.shape))
    (result * tg.tensor(weights)).sum().backward()
    for k, leaf in enumerate(leaves):
        other = rng.normal(size=arrays[k].shape)
        moved = np.einsum(equation, *arrays[:k], other, *arrays[k + 1 :])
        np.testing.assert_allclose((numbers(leaf.grad) * other).sum(), (weights * moved).sum(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("equation", "shapes", "expected"),
    [
        ("ij", [(2, 3)], (2, 3)),
        ("ji", [(2, 3)], (3, 2)),
        ("bA", [(2, 3)], (3, 2)),
        ("ij,jk", [(2, 3), (3, 4)], (2, 4)),
        ("...ij", [(5, 2, 3)], (5, 2, 3)),
        ("j...i", [(5, 2, 3)], (2, 3, 5)),
        ("i...,...", [(2, 3), (3,)], (3, 2)),
        ("ij->i...", [(2, 3)], (2,)),
        (" i j , j k -> i k ", [(2, 3), (3, 4)], (2, 4)),
        ("", [()], ()),
        (",", [(), ()], ()),
        ("ij,jk,kl", [(2, 0), (0, 3), (3, 4)], (2, 4)),
    ],
)
def test_shape_without_and_with_an_output(equation: str, shapes: list[tuple[int, ...]], expected: tuple[int, ...]) -> None:
    assert tuple(tg.einsum(equation, *(tg.ones(*s) if s else tg.tensor(1.0) for s in shapes)).shape) == expected


def test_operands_may_be_one_list() -> None:
    x = tg.ones(2, 2)
    np.testing.assert_array_equal(tg.einsum("ij,jk", [x, x]).numpy(), 2.0 * np.ones((2, 2)))


def test_sublists_mean_what_letters_mean() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    got = tg.einsum(tg.tensor(x), [..., 7, 3], tg.tensor(y), [3, 9], [9, ..., 7])
    np.testing.assert_array_equal(got.numpy(), (x @ y).T)


@pytest.mark.parametrize("dtype", [np.int64, np.bool_])
def test_integers_and_bools_are_multiplied_and_added(dtype: Any) -> None:
    x = np.array([[1, 0], [1, 1]], dtype)
    got = tg.einsum("ij,jk->ik", tg.tensor(x), tg.tensor(x))
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.numpy(), x @ x)


def test_a_diagonal_is_a_view() -> None:
    x = tg.zeros(3, 3)
    tg.einsum("ii->i", x).fill_(1.0)
    np.testing.assert_array_equal(x.numpy(), np.eye(3))


def test_an_exact_zero_wins_a_product_of_elements() -> None:
    x = tg.tensor([0.0, 2.0], requires_grad=True)
    y = tg.tensor([np.inf, 3.0])
    (tg.einsum("i,i->i", x, y)[1]).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, 3.0])


X = tg.ones(2, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: tg.einsum("ij,jk", X, X),
            "subscript j has size 2 for operand 1 which does not broadcast with previously seen size 3",
        ),
        (lambda: tg.einsum("i...,i...->...", X, tg.ones(2, 2)), "dimension 0 covered by ellipsis in operand 1"),
        (lambda: tg.einsum("ii", X), "subscript i is repeated for operand 0 but the sizes don't match, 3 != 2"),
        (lambda: tg.einsum("ijk", X), "number of subscripts in the equation (3) does not match the number of dimensions (2)"),
        (lambda: tg.einsum("ijk...", X), "the number of subscripts in the equation (3) is more than the number of dimensions (2)"),
        (lambda: tg.einsum("ij,jk", X), "fewer operands were provided than specified in the equation"),
        (lambda: tg.einsum("ij", X, X), "more operands were provided than specified in the equation"),
        (lambda: tg.einsum("ij->k", X), "output subscript k does not appear in the equation for any input operand"),
        (lambda: tg.einsum("ij->ii", X), "output subscript i appears more than once in the output"),
        (lambda: tg.einsum("i1", X), "invalid subscript given at index 1 in the equation string, subscripts must be in [a-zA-Z]"),
        (lambda: tg.einsum("ij->i->j", X), "invalid subscript given at index 5 in the equation string"),
        (lambda: tg.einsum("i.j", X), "found '.' for operand 0 that is not part of any ellipsis"),
        (lambda: tg.einsum("......", X), "found '.' for operand 0 for which an ellipsis was already found"),
        (lambda: tg.einsum(X, [..., ...]), "more than one ellipsis"),
        (lambda: tg.einsum("ij,jk", X, tg.ones(3, 2, dtype=tg.float32)), "expected scalar type Double but found Float"),
        (
            lambda: tg.tensordot(X, X, dims=1),
            "contracted dimensions need to match, but first has size 3 in dim 1 and second has size 2",
        ),
        (lambda: tg.tensordot(X, X, dims=-1), "tensordot expects dims >= 0, but got dims=-1"),
        (lambda: tg.tensordot(X, X, dims=3), "tensordot expects dims < ndim_a or ndim_b, but got dims=3"),
        (lambda: tg.tensordot(X, X, dims=([0], [0, 1])), "both dimension lists should have same length"),
        (lambda: tg.tensordot(X, X, dims=([0, 0], [0, 1])), "dim 0 appears multiple times in the list of dims"),
        (lambda: tg.tensordot(X, X, dims=None), "expects dims to be int or a pair of lists"),
        (lambda: tg.tensordot(X, X.to(tg.float32)), "both inputs should have same dtype"),
        (lambda: tg.inner(X, tg.ones(2)), "the last dimension must match on both input tensors but got shapes [2, 3] and [2]"),
        (lambda: tg.inner(X, X.to(tg.float32)), "both inputs should have same dtype"),
    ],
)
def test_errors_say_what_does_not_fit(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=re.escape(message)):
        call()


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: tg.einsum("ij"), ValueError, "must specify the equation string and at least one operand"),
        (lambda: tg.einsum(X, [0, 52]), ValueError, "not within the valid range [0, 52)"),
        (lambda: tg.einsum(X, [0, "j"]), TypeError, "are integers or Ellipsis, not str"),
        (lambda: tg.einsum(X, X), TypeError, "expected a list of subscripts after each operand"),
        (lambda: tg.einsum("i", 3.0), TypeError, "expected Tensor as element 0 in argument 1, but got float"),
        (lambda: tg.tensordot(X, X, dims=([2], [0])), IndexError, "Dimension out of range"),
    ],
)
def test_bad_arguments_raise_what_they_raise_in_pytorch(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        call()


def test_tensordot_stretches_sizes_of_one() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.arange(4.0).reshape(1, 4)
    got = tg.tensordot(tg.tensor(x), tg.tensor(y), dims=([0], [0]))
    np.testing.assert_allclose(got.numpy(), np.outer(x.sum(0), y[0]))


def test_kron_of_empty_tensors_is_empty() -> None:
    assert tuple(tg.kron(tg.ones(0, 2), tg.ones(3, 2)).shape) == (0, 4)
