"""Operations whose derivative is Python, where compiled code records them: what must be as in their Python forms."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

RNG = np.random.default_rng(5)
SQUARE, POSITIVE = RNG.normal(size=(4, 4)), RNG.uniform(1.0, 2.0, (4, 4))
Call = Callable[[tg.Tensor], Any]

CALLS: dict[str, Call] = {
    "product of matrices": lambda a: a @ a,
    "product with a vector": lambda a: a @ tg.tensor(POSITIVE[0]),
    "product of vectors": lambda a: a[0] @ a[1],
    "view": lambda a: a.diagonal() * 2.0,
    "permuted": lambda a: a.permute(1, 0) * a,
    "reshaped": lambda a: a.reshape(2, 8),
    "inverse": tg.linalg.inv,
    "factors": lambda a: tg.linalg.qr(a).R,
    "both factors": lambda a: tg.linalg.qr(a).Q @ tg.linalg.qr(a).R.mT,
    "logarithm of the determinant": lambda a: tg.linalg.slogdet(a).logabsdet,
    "determinant": tg.linalg.det,
    "triangular": lambda a: tg.linalg.solve_triangular(a, a, upper=False),
    "contraction": lambda a: tg.einsum("ij,kj->ki", a, a),
    "largest": lambda a: a.amax((0, 1)),
    "cross product": lambda a: tg.linalg.cross(a[:, :3], a[:, 1:]),
}


def gradient(call: Call) -> np.ndarray:
    leaf = tg.tensor(SQUARE, requires_grad=True)
    call(leaf).sum().backward()
    return leaf.grad.numpy()  # type: ignore[no-any-return]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_new_leaf_gets_its_gradient(call: Call) -> None:
    step = 1e-6
    expected = np.zeros_like(SQUARE)
    for place in np.ndindex(SQUARE.shape):
        moved = [SQUARE.copy(), SQUARE.copy()]
        moved[0][place] += step
        moved[1][place] -= step
        above, below = (float(call(tg.tensor(array)).sum()) for array in moved)
        expected[place] = (above - below) / (2.0 * step)
    np.testing.assert_allclose(gradient(call), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_thread_without_gradients_records_nothing(call: Call) -> None:
    with tg.no_grad():
        assert call(tg.tensor(SQUARE, requires_grad=True)).grad_fn is None


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_hooks_that_pack_see_what_is_saved_and_give_the_same_gradient(call: Call) -> None:
    expected, seen = gradient(call), 0

    def pack(saved: tg.Tensor) -> tg.Tensor:
        nonlocal seen
        seen += 1
        return saved

    with tg.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved):
        found = gradient(call)
    np.testing.assert_array_equal(found, expected)


def test_outputs_of_one_operation_are_numbered() -> None:
    factors = tg.linalg.qr(tg.tensor(SQUARE, requires_grad=True))
    assert [(output.output_nr, output.grad_fn.name()) for output in factors] == [(0, "LinalgQrBackward0"), (1, "LinalgQrBackward0")]


def test_a_write_to_one_output_leaves_the_others_and_the_derivative() -> None:
    leaf = tg.tensor(SQUARE, requires_grad=True)
    tg.linalg.qr(leaf).R.sum().backward()
    expected, leaf.grad = leaf.grad, None
    Q, R = tg.linalg.qr(leaf)
    Q.zero_()
    R.sum().backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), expected.numpy())


def test_a_view_of_a_view_follows_what_is_written_to_their_base() -> None:
    leaf = tg.tensor(POSITIVE, requires_grad=True)
    base = leaf * 1.0
    diagonal = base.diagonal()
    part = diagonal.reshape(2, 2)
    base.mul_(3.0)
    assert part._base is base
    assert part._version == base._version == 1
    part.sum().backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), 3.0 * np.eye(4))


def test_an_equation_that_does_not_fit_is_refused_each_time() -> None:
    a, b = tg.ones(2, 3), tg.ones(4, 5)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="does not broadcast"):
            tg.einsum("ij,jk->ik", a, b)
    assert tg.einsum("ij,jk->ik", a, b[:3]).shape == (2, 5)


def test_products_that_do_not_fit_are_refused_each_time() -> None:
    a = tg.ones(2, 3, requires_grad=True)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            a @ a


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_triangular_equations_have_the_bits_of_the_general_solver(upper: bool, unit: bool, left: bool) -> None:
    a, b = RNG.normal(size=(5, 6, 6)) + 4.0 * np.eye(6), RNG.normal(size=(5, 6, 6))
    system = np.triu(a) if upper else np.tril(a)
    if unit:
        system[:, range(6), range(6)] = 1.0
    system, sides = (system, b) if left else (system.swapaxes(-1, -2), b.swapaxes(-1, -2))
    if upper != left:  # counted from the end a lower triangle is an upper one
        expected = np.linalg.solve(system[:, ::-1, ::-1], sides[:, ::-1])[:, ::-1]
    else:
        expected = np.linalg.solve(system, sides)
    found = tg.linalg.solve_triangular(tg.tensor(a), tg.tensor(b), upper=upper, left=left, unitriangular=unit)
    np.testing.assert_array_equal(found.numpy(), expected if left else expected.swapaxes(-1, -2))


def test_a_singular_triangle_gives_infinities() -> None:
    a = np.tril(POSITIVE)
    a[2, 2] = 0.0
    found = tg.linalg.solve_triangular(tg.tensor(a), tg.tensor(POSITIVE), upper=False).numpy()
    assert not np.isfinite(found[2]).any()
    first = POSITIVE[0] / a[0, 0]
    np.testing.assert_allclose(found[:2], [first, (POSITIVE[1] - a[1, 0] * first) / a[1, 1]])


@pytest.mark.parametrize("scale", [1.0, 1e-200])
def test_the_gradient_of_a_determinant_is_that_of_its_cofactors(scale: float) -> None:
    x = tg.tensor(scale * SQUARE[:3, :3], requires_grad=True)
    tg.linalg.det(x).backward()
    a = x.detach().numpy() / scale
    cofactors = [[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(3)] for i in range(3)]
    np.testing.assert_allclose(x.grad.numpy(), scale**2 * np.array(cofactors), rtol=1e-9, atol=0.0)


def test_sums_of_numbers_are_recorded() -> None:
    x = tg.tensor(3.0, requires_grad=True)
    y = x.sum()
    assert y.grad_fn.name() == "SumBackward0"
    (y * y).backward()
    assert x.grad.item() == 6.0
