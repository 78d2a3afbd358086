"""NumPy's functions on tensors: NumPy's values and arguments, derivatives, and what is refused."""

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_fixtures import leaf
from numerical import check_gradients

import tapegrad as tg

over = pytest.mark.parametrize
M = np.array([[0.31, 0.82, 0.55, 0.47], [0.66, 0.43, 0.91, 0.38], [0.72, 0.59, 0.34, 0.88]])
V = np.array([0.45, 0.77, 0.62, 0.53])
C = np.linspace(0.3, 0.9, 24)[[5, 0, 17, 9, 22, 3, 11, 14, 8, 20, 1, 16, 6, 19, 12, 2, 23, 10, 4, 15, 7, 21, 13, 18]].reshape(
    2, 3, 4
)
S = np.array([[2.1, 0.4, 0.3], [0.2, 2.5, 0.6], [0.7, 0.1, 2.3]])
NUMBER = np.array(0.7)


def cases(*texts: str) -> Any:
    return over("text", texts)


def function(text: str) -> Callable[..., Any]:
    """What a line of NumPy makes of ``a`` and ``b``, which may be arrays or tensors."""
    return eval(f"lambda a, b=None: {text}", {"np": np, "M": M, "V": V, "C": C, "S": S})


def operands(text: str) -> list[np.ndarray]:
    """The arrays that a line is about: ``a`` is the first that fits its comment, ``b`` the second."""
    names = re.findall(r"# (.*)", text)[0].split()
    return [
        {"M": M, "V": V, "C": C, "S": S, "NUMBER": NUMBER, "N": M.T[:, :2], "B": np.stack([S, S.T, S + 1.0]), "N3": S[:, ::-1]}[
            name
        ]
        for name in names
    ]


def parts(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


DIFFERENTIABLE = (
    """
np.sin(a) # M
np.sqrt(a) # NUMBER
np.absolute(a) # M
np.negative(a) # V
np.positive(a) # V
np.degrees(a) # V
np.log1p(a) # NUMBER
np.arctan2(a, b) # M V
np.power(2.0, a) # V
np.hypot(a, V) # M
np.logaddexp(V, a) # M
np.maximum(a, 0.6) # M
np.fmax(0.6, a) # M
np.logaddexp2(2.0, a) # M
np.divmod(a, 0.2)[1] # V
M + a # V
M - a # V
V * a # M
V / a # NUMBER
V ** a # M
np.float64(1.5) / a # NUMBER
np.float64(1.5) - a # V
np.array(1.5) * a # V
np.arange(4) - a # V
np.int64(3) * a # V
M @ a # V
a @ M # S
np.matmul(C, a) # N
np.add.reduce(a) # M
np.add.reduce(a, axis=(0, 1), keepdims=True) # M
np.multiply.reduce(a, axis=1) # M
np.maximum.reduce(a) # M
np.add.accumulate(a) # M
np.multiply.accumulate(a, axis=1) # M
np.multiply.outer(a, b) # V M
np.subtract.outer([1.0, 2.0], a) # V
np.sum(a, axis=0, keepdims=True) # M
np.sum(a, 1) # M
np.sum(a, axis=()) # M
np.prod(a, axis=()) # M
np.flip(a, axis=()) # M
np.roll(a, 1, axis=()) # M
np.median(a, axis=()) # M
np.expand_dims(a, axis=()) # M
np.squeeze(a[None], axis=()) # M
np.mean(a, axis=(0, 2)) # C
np.var(a) # M
np.var(a, axis=1, ddof=1) # M
np.std(a, 0, ddof=1, keepdims=True) # M
np.max(a, axis=(0, 1)) # C
np.amin(a, axis=-1, keepdims=True) # C
np.ptp(a, axis=0) # M
np.prod(a, axis=(0, 2)) # C
np.cumsum(a) # M
np.nansum(a, axis=1) # M
np.nanmean(np.where(M > 0.5, a, np.nan), axis=0) # M
np.cumprod(a, axis=1) # M
np.sort(a, axis=0) # M
np.sort(a, axis=None) # M
np.average(a, axis=1, weights=b) # M V
np.trace(a, offset=-1, axis1=1, axis2=2) # C
np.linalg.norm(a) # C
np.linalg.norm(a, 1) # V
np.linalg.norm(a, np.inf, axis=0) # M
np.linalg.norm(a, "fro", axis=(1, 2)) # C
np.clip(a, 0.4, 0.7) # M
np.clip(a, None, V) # M
np.round(a, 2) * a # M
np.where(M > 0.5, a, b) # M V
np.where(M > 0.5, 1.0, a) # V
np.reshape(a, (4, -1)) # M
np.ravel(a) # M
np.transpose(a) # C
np.transpose(a, axes=(2, 0, 1)) # C
np.swapaxes(a, 0, 2) # C
np.moveaxis(a, [0, 1], [-1, 0]) # C
np.squeeze(a[:1], axis=0) # M
np.expand_dims(a, (0, -1)) # M
np.broadcast_to(a, (3, 4)) # V
np.copy(a) # M
np.full_like(a, b) # M NUMBER
np.diag(a, k=-1) # V
np.diag(a, 1) # M
np.tril(a, -1) # C
np.triu(a) # M
np.flip(a) # C
np.flip(a, axis=(0, 2)) # C
np.roll(a, 2) # M
np.roll(a, (1, 2), axis=(0, 1)) # M
np.rot90(a, 3, (0, 2)) # C
np.tile(a, (2, 1, 2)) # M
np.repeat(a, 2) # M
np.repeat(a, [1, 2, 0], axis=0) # M
np.take(a, [[0, 2], [1, 1]], axis=1) # M
np.take_along_axis(a, np.argsort(a, axis=0), axis=0) # M
np.diff(a, n=2) # M
np.concatenate([a, b]) # V V
np.concatenate((a, M), axis=None) # V
np.stack([a, V, b], axis=1) # V V
np.hstack([a, b]) # M M
np.vstack([a, b]) # V V
np.column_stack([a, b]) # V V
np.append(a, b) # M V
np.split(a, [1, 3], axis=1) # M
np.array_split(a, 3, axis=1) # M
np.meshgrid(a, b) # V V
np.dot(a, b) # V V
np.dot(a, b) # M N
np.dot(a, b) # V C.T
np.outer(a, b) # M V
np.vdot(a, b) # M M
np.inner(a, b) # C M
np.real(a) # V
np.einsum("ij,j->i", a, b) # M V
np.einsum("ijk,jk", C, a) # M
np.tensordot(a, b, axes=1) # C N
np.kron(a, b) # M V
np.cross(a[:3], b[:3]) # V V
np.vecdot(a, b) # M V
np.linalg.det(a) # S
np.linalg.inv(a) # S
np.linalg.slogdet(a)[1] # S
np.linalg.solve(a, b) # S N3
np.linalg.solve(a, b[0]) # S N3
np.linalg.solve(a, b) # B N3
np.linalg.solve(a, b[0]) # B N3
np.linalg.cholesky(a @ a.T) # S
np.linalg.matrix_power(a, 3) # S
np.linalg.eigvalsh(a + a.T) # S
np.linalg.svd(a, compute_uv=False) # M
np.linalg.qr(a, mode="r") # S
np.linalg.pinv(a) # M
np.linalg.multi_dot([S, a, b]) # M V
np.linalg.norm(a, 1) # M
np.linalg.norm(a, "nuc", axis=(1, 2)) # C
""".strip()
    .replace("V C.T", "C N")
    .splitlines()
)


@over("text", DIFFERENTIABLE)
def test_tensors_give_numpy_s_values_and_their_derivatives(text: str) -> None:
    f, arrays = function(text), operands(text)
    expected = parts(f(*arrays))
    for requires_grad in (False, True):
        results = parts(f(*(tg.tensor(array, requires_grad=requires_grad) for array in arrays)))
        assert [r.requires_grad for r in results] == [requires_grad] * len(expected)
        for result, value in zip(results, expected, strict=True):
            assert result.shape == np.shape(value)
            np.testing.assert_allclose(result.detach().numpy(), value, rtol=1e-13)
    check_gradients(lambda *tensors: parts(f(*tensors)), *arrays, order=1)


@cases(
    "np.argmax(a, axis=1, keepdims=True)",
    "np.argsort(a, axis=None)",
    "np.nonzero(a > 0.5)",
    "np.any(a > 0.9, axis=0)",
    "np.isclose(a, M)",
    "np.isfinite(a)",
    "np.floor(a) + np.ceil(a)",
    "np.floor_divide(a, 0.2)",
    "np.searchsorted(np.sort(V), a)",
    "np.zeros_like(a, shape=(2,))",
    "np.ones_like(a, dtype=int)",
    "np.less(M, a)",
    "V >= a",
)
def test_functions_of_steps_give_tensors(text: str) -> None:
    for result, value in zip(parts(function(text)(leaf(M))), parts(function(text)(M)), strict=True):
        assert isinstance(result, tg.Tensor)
        assert result.dtype == value.dtype
        np.testing.assert_array_equal(result.detach().numpy(), value)


@cases("np.shape(a)", "np.ndim(a)", "np.size(a, 1)", "np.allclose(a, M)", "np.array_equal(a, M)", "np.count_nonzero(a > 0.5)")
def test_functions_that_tell_about_tensors_give_what_numpy_gives(text: str) -> None:
    assert function(text)(leaf(M)) == function(text)(M)


def test_largest_elements_share_the_gradient() -> None:
    x = leaf([3.0, 1.0, 3.0])
    np.max(x).backward()
    assert x.grad.tolist() == [0.5, 0.0, 0.5]


@over("dtype", [np.int64, np.bool_])
def test_mean_of_integers_is_a_float(dtype: Any) -> None:
    assert np.mean(tg.tensor(np.array([1, 0, 1], dtype))).item() == pytest.approx(2 / 3)


@over("left", [V, V.astype(np.float32), np.float64(2.0), np.float32(2.0), np.int64(2), np.array(2.0), np.arange(4)])
@over("operator", ["+", "-", "*", "/", "**", "<", "=="])
def test_what_stands_on_the_left_counts_as_on_the_right(left: Any, operator: str) -> None:
    x = leaf(V)
    forwards = eval(f"left {operator} x", {"left": left, "x": x})
    both = eval(f"tg.as_tensor(left) {operator} x", {"tg": tg, "left": left, "x": x})
    assert isinstance(forwards, tg.Tensor) and forwards.dtype == both.dtype
    assert forwards.tolist() == both.tolist() and forwards.requires_grad == both.requires_grad


def test_reflected_operators_record_their_operand_second() -> None:
    assert (np.ones(2) - leaf([1.0, 2.0])).grad_fn.next_functions[0] == (None, 0)


# out=


def test_out_takes_untracked_results() -> None:
    for out in (tg.zeros(4), np.zeros(4)):
        assert np.multiply(tg.tensor(V), 2, out=out) is out
        np.testing.assert_array_equal(np.asarray(out), V * 2)


def test_out_of_functions_takes_untracked_results() -> None:
    out = tg.zeros(4)
    assert np.sum(tg.tensor(M), axis=0, out=out) is out
    np.testing.assert_allclose(out.numpy(), M.sum(0))


@over("out", [np.zeros(4), tg.zeros(4)])
def test_out_refuses_tracked_results(out: Any) -> None:
    with pytest.raises(RuntimeError, match="functions with out=... arguments don't support automatic differentiation"):
        np.multiply(leaf(V), 2, out=out)
    assert not np.asarray(out).any()


def test_tracked_out_is_refused() -> None:
    out = leaf(V)
    with pytest.raises(RuntimeError, match="functions with out=... arguments don't support automatic differentiation"):
        np.multiply(tg.tensor(V), 2, out=out)
    assert out.tolist() == V.tolist()


def test_tracked_out_is_written_under_no_grad() -> None:
    out = leaf(V)
    with tg.no_grad():
        assert tg.mul(tg.tensor(V), 2.0, out=out) is out
    assert out.tolist() == (V * 2).tolist() and out.requires_grad and out._version == 1


def test_array_is_added_to_in_place() -> None:
    array = V.copy()
    array += tg.tensor(V)
    assert type(array) is np.ndarray and array.tolist() == (V + V).tolist()
    with pytest.raises(RuntimeError, match="an array cannot be tracked"):
        array += leaf(V)


# What is refused


@cases("np.fft.fft(a)", "np.roots(a)", "np.packbits(a)", "np.add.at(a, 0, 1.0)", "np.fill_diagonal(a, 0.0)", "np.put(a, 0, 1.0)")
@over("requires_grad", [False, True])
def test_what_is_not_covered_says_how_to_go_on(text: str, requires_grad: bool) -> None:
    a = tg.tensor(V, requires_grad=requires_grad)
    with pytest.raises(TypeError, match=r"numpy\.\S+ is not covered for Tensors.*(?i:call) t\.detach\(\)\.numpy\(\)") as found:
        function(text)(a)
    assert re.findall(r"np\.([\w.]+)\(", text)[0] in str(found.value)
    assert a.tolist() == V.tolist()


@cases(
    "np.logaddexp.reduce(a, initial=1.0)",
    "np.sin(a, signature='d->d')",
    "np.intersect1d(a, a, return_indices=True)",
)
def test_arguments_that_are_not_covered_are_named(text: str) -> None:
    argument = re.findall(r"(\w+)=", text)[0]
    with pytest.raises(TypeError, match=f"its argument '{argument}' has no counterpart"):
        function(text)(leaf(V))


def test_hint_names_the_function_that_there_is() -> None:
    with pytest.raises(TypeError, match=r"Use tg\.quantile, or call"):
        np.quantile(leaf(V), 0.5, weights=V)


@cases("np.median(a, overwrite_input=True)", "np.put(a, 0, 1.0)", "np.roots(a)")
def test_hint_names_no_function_that_means_something_else(text: str) -> None:
    with pytest.raises(TypeError) as found:
        function(text)(leaf(V))
    assert "Use tg." not in str(found.value)


@cases("np.sum(a, dtype=None, out=None)", "np.sin(a, where=True)", "np.add(a, a, casting='same_kind')", "np.copy(a, order='K')")
def test_numpy_s_defaults_may_be_spelt_out(text: str) -> None:
    np.testing.assert_allclose(function(text)(leaf(V)).detach().numpy(), function(text)(V))


def test_ufuncs_of_others_are_not_taken_for_numpy_s() -> None:
    sin = np.frompyfunc(lambda x: -1.0, 1, 1)
    with pytest.raises(TypeError, match="is not covered for Tensors"):
        sin(leaf(V))


def test_others_that_take_part_in_the_protocols_are_asked() -> None:
    class Other:
        def __array_ufunc__(self, *arguments: Any, **options: Any) -> str:
            return "other"

        def __array_function__(self, *arguments: Any) -> str:
            return "other"

    for call in (lambda x, y: np.add(x, y), lambda x, y: np.hypot(x, y), lambda x, y: np.concatenate([x, y])):
        assert call(leaf(V), Other()) == "other"


def test_errors_are_those_of_tensors() -> None:
    with pytest.raises(RuntimeError, match="The size of tensor a .2. must match the size of tensor b .4."):
        np.ones(2) + leaf(V)
    with pytest.raises(IndexError, match="Dimension out of range"):
        np.sum(leaf(V), axis=1)
    with pytest.raises(ValueError, match="does not result in an equal division"):
        np.split(leaf(V), 3)
    with pytest.raises(ValueError, match="cannot select an axis to squeeze"):
        np.squeeze(leaf(V), axis=0)


# Arrays stay arrays where arrays are asked for


def test_conversions_give_arrays() -> None:
    x = tg.tensor(V)
    for array in (np.asarray(x), np.array(x), np.atleast_1d(x), np.atleast_2d(x)[0]):
        assert type(array) is np.ndarray and array.tolist() == V.tolist()


def test_conversions_of_tracked_tensors_raise() -> None:
    for convert in (np.asarray, np.atleast_1d, np.array2string, lambda x: np.copyto(V.copy(), x)):
        with pytest.raises(RuntimeError, match="Can't call numpy.. on Tensor that requires grad"):
            convert(leaf(V))


@over("method", ["BFGS", "L-BFGS-B", "SLSQP"])
def test_scipy_takes_gradients_that_are_tensors(method: str) -> None:
    from scipy.optimize import minimize

    def value_and_gradient(x: np.ndarray) -> tuple[float, tg.Tensor]:
        t = leaf(x)
        y = ((t - tg.tensor([1.0, -2.0])) ** 2).sum()
        return y.item(), tg.autograd.grad(y, t)[0]

    found = minimize(value_and_gradient, np.zeros(2), jac=True, method=method)
    np.testing.assert_allclose(found.x, [1.0, -2.0], atol=1e-6)


def test_tables_are_loaded_when_they_are_needed() -> None:
    program = (
        "import sys, numpy as np, tapegrad as tg\n"
        "before = 'tapegrad.numpy_protocol.protocols' in sys.modules\n"
        "print(before, (np.ones(2) + tg.ones(2)).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split(maxsplit=1) == ["False", "[2.0, 2.0]\n"]


def test_places_for_several_results_are_refused() -> None:
    places = np.zeros(2), np.zeros(2)
    with pytest.raises(TypeError, match="out= of several results"):
        np.divmod(tg.tensor([5.0, 7.0]), 2.0, out=places)
