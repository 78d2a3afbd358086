"""Complex numbers under autograd's operators: gradients are u_x - i u_y of a real function u, and cotangents are such gradients."""

from typing import Any

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import elementwise_grad, grad, hessian, holomorphic_grad, jacobian, make_hvp, make_jvp, make_vjp, value_and_grad
from autograd.core import vspace
from autograd.extend import defvjp, primitive
from autograd.scipy.special import erf
from autograd.test_util import check_grads
from autograd.tracer import getval, isbox
from many_cases import each

RNG = onp.random.default_rng(3)
Z = RNG.normal(size=4) + 1j * RNG.normal(size=4)
W = RNG.normal(size=4) + 1j * RNG.normal(size=4)
M = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))
HOLOMORPHIC = """
sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh exp exp2 expm1 log log2 log10 log1p sqrt square reciprocal
"""
REAL = {
    "abs": lambda z: np.abs(z),
    "angle": lambda z: np.angle(z),
    "imaginary part of the conjugate": lambda z: np.imag(np.conj(z)),
    "var": lambda z: np.var(z),
    "std": lambda z: np.std(np.reshape(z, (2, 2)), axis=0, ddof=1),
    "norm": lambda z: np.linalg.norm(z),
    "norm of order 3": lambda z: np.linalg.norm(z, 3),
    "inverse transform of a half": lambda z: np.fft.irfft(z),
}
COMPLEX = {
    "powers": lambda z: z**3 + z**-1.5 + z ** (1 + 2j) + (2 - 1j) ** z,
    "quotients": lambda z: W / z + z / W - 2.0 / z,
    "prod": lambda z: np.prod(np.reshape(z, (2, 2)), axis=1, keepdims=True) * np.prod(z),
    "largest and smallest": lambda z: np.max(z) * np.min(np.reshape(z, (2, 2)), axis=0),
    "products": lambda z: np.dot(M, z) + M @ z**2 + np.tensordot(M, z, axes=([1], [0])),
    "einsum": lambda z: np.einsum("ij,j,j->i", M, z, z * 1j) + np.einsum("j,j", z, onp.arange(4.0)),
    "transform": lambda z: np.fft.ifft(np.fft.fft(z, 5)[1:]),
    "pieces": lambda z: np.concatenate([z[::-1], z[1:2] * z, np.where(np.real(z) > 0, z, 2.0)]),
    "conjugates": lambda z: np.conj(z) * z**2,
    "erf": lambda z: erf(0.5 * z),
}


def by_differences(u: Any, z: Any) -> Any:
    step = 1e-6
    return onp.array(
        [
            (u(z + step * e) - u(z - step * e)) / (2 * step) - 1j * (u(z + 1j * step * e) - u(z - 1j * step * e)) / (2 * step)
            for e in onp.eye(z.size)
        ]
    )


@each("name", HOLOMORPHIC.split())
def test_holomorphic_functions_have_their_derivative_on_every_branch(name: str) -> None:
    ours, numpys = getattr(np, name), getattr(onp, name)
    for z in (1.5 + 0.4j, -1.5 + 0.4j, -0.3 - 1.2j, 0.4 - 0.3j):
        wanted = (numpys(z + 1e-6) - numpys(z - 1e-6)) / 2e-6
        assert holomorphic_grad(ours)(z) == pytest.approx(wanted, rel=1e-7)
        derivative = holomorphic_grad(ours)
        assert holomorphic_grad(derivative)(z) == pytest.approx((derivative(z + 1e-6) - derivative(z - 1e-6)) / 2e-6, rel=1e-6)
        assert ours(z) == numpys(z)


@each("name", REAL | COMPLEX)
def test_gradients_are_those_of_differences_in_both_orders_and_modes(name: str) -> None:
    f = (REAL | COMPLEX)[name]
    check_grads(f, order=2)(Z)
    total = lambda z: np.sum(np.real(f(z)) ** 2) + np.sum(np.imag(f(z)) * 3.0)  # noqa: E731
    value, gradient = value_and_grad(total)(Z)
    assert value == pytest.approx(total(Z), rel=1e-14)
    onp.testing.assert_allclose(gradient, by_differences(total, Z), rtol=1e-6, atol=1e-7)


def test_real_arguments_beside_complex_ones_have_real_gradients() -> None:
    def f(p: Any) -> Any:
        return np.sum(np.abs(p["z"] * p["x"] + p["n"]))

    found = grad(f)({"z": Z, "x": onp.arange(4.0), "n": 2.0 - 1.0j})
    assert found["x"].dtype == float and found["z"].dtype == complex and type(found["n"]) is onp.complex128
    check_grads(lambda z, x: z * x, (0, 1))(Z, onp.arange(4.0))


def test_dtypes_are_those_of_the_argument() -> None:
    single = Z.astype(onp.complex64)
    assert grad(lambda z: np.sum(np.abs(z)))(single).dtype == onp.complex64
    assert make_vjp(lambda z: z * 2)(single)[1].dtype == onp.complex64


def test_products_take_and_give_complex_vectors() -> None:
    vjp, value = make_vjp(lambda z: z**2)(Z)
    onp.testing.assert_allclose(value, Z**2)
    onp.testing.assert_allclose(vjp(W), W * 2 * Z)
    onp.testing.assert_allclose(vjp(onp.ones(4)), 2 * Z)
    onp.testing.assert_allclose(make_jvp(lambda z: z**2)(Z)(W)[1], W * 2 * Z)
    onp.testing.assert_allclose(make_vjp(lambda x: x * W)(onp.ones(4))[0](Z), onp.real(Z * W))


def test_rows_of_a_jacobian_are_gradients() -> None:
    f = lambda z: np.real(np.outer(z, z[:2])) + np.abs(z[0])  # noqa: E731
    found = jacobian(f)(Z)
    assert found.shape == (4, 2, 4)
    for place in onp.ndindex(4, 2):
        onp.testing.assert_allclose(found[place], by_differences(lambda z, place=place: f(z)[place], Z), rtol=1e-7, atol=1e-8)
    with pytest.raises(TypeError, match="real-valued outputs"):
        jacobian(np.sin)(Z)


def test_elementwise_gradients_are_of_real_results() -> None:
    onp.testing.assert_allclose(elementwise_grad(np.abs)(Z), onp.conj(Z) / onp.abs(Z))
    with pytest.raises(TypeError, match="real scalar-output"):
        elementwise_grad(np.sin)(Z)


def test_complex_values_are_seen_as_such_on_the_way() -> None:
    def f(z: Any) -> Any:
        assert isbox(z) and vspace(z).iscomplex and np.iscomplexobj(z) and np.iscomplex(z).all() and not np.isreal(z).any()
        assert getval(z).tolist() == Z.tolist()
        return np.real(z[0])

    assert grad(f)(Z).tolist() == [1, 0, 0, 0]


def test_inner_gradients_are_differentiated() -> None:
    f = lambda z: np.sum(np.abs(grad(lambda w: np.sum(np.real(w**3)))(z)))  # noqa: E731
    onp.testing.assert_allclose(grad(f)(Z), 6 * onp.conj(Z), rtol=1e-12)


@each("operator", [hessian, make_hvp])
def test_second_derivatives_are_by_real_arguments(operator: Any) -> None:
    with pytest.raises(TypeError, match="real"):
        operator(lambda z: np.sum(np.abs(z)))(Z)


@primitive
def solve(a: Any, b: Any) -> Any:
    return onp.linalg.solve(a, b)


defvjp(
    solve,
    lambda x, a, b: lambda g: -np.outer(solve(a.T, g), x),
    lambda x, a, b: lambda g: solve(a.T, g),
)


@primitive
def turned(pair: Any) -> Any:
    """A list of two, to a tuple of a complex and a real array."""
    return onp.asarray(pair[0]) * onp.asarray(pair[1]) * 1j, onp.real(pair[0])


defvjp(turned, lambda ans, pair: lambda g: [g[0] * 1j * pair[1] + np.real(g[1]), g[0] * 1j * pair[0]])

THROUGH_PRIMITIVES = {
    "complex matrix and vector": lambda z: solve(M[:, :3] + np.outer(z[:3], W[:3]), z[1:]),
    "complex matrix, real vector": lambda z: solve(M[:, :3] + np.outer(z[:3], W[:3]), np.abs(z[1:])),
    "real matrix, complex vector": lambda z: solve(np.eye(3) + np.outer(np.real(z[:3]), np.imag(z[1:])), z[:3]),
    "a matrix that is constant": lambda z: solve(M[:, :3], z[:3] ** 2),
    "lists and tuples": lambda z: turned([z, z**2])[0] + turned([z * W, np.abs(z)])[1],
}


@each("name", THROUGH_PRIMITIVES)
def test_primitives_take_and_give_complex_numbers(name: str) -> None:
    f = THROUGH_PRIMITIVES[name]
    total = lambda z: np.sum(np.abs(f(z)) ** 2) + np.sum(np.imag(f(z)) * onp.arange(1.0, 1.0 + onp.size(f(Z))))  # noqa: E731
    assert total(Z) == pytest.approx(value_and_grad(total)(Z)[0], rel=1e-14)
    onp.testing.assert_allclose(grad(total)(Z), by_differences(total, Z), rtol=1e-6, atol=1e-6)
    check_grads(f, order=2)(Z)


def test_a_complex_cotangent_of_a_real_argument_counts_with_its_real_part() -> None:
    f = lambda x: np.sum(np.imag(turned([x + 0j, x])[0]) ** 2)  # noqa: E731
    onp.testing.assert_allclose(grad(f)(onp.array([2.0, -1.0])), [4 * 8.0, -4.0])


def test_a_primitive_that_gives_complex_numbers_is_called_once_for_each_call() -> None:
    seen = []
    turn = primitive(lambda x: seen.append(x) or x * 1j)
    defvjp(turn, lambda ans, x: lambda g: g * 1j)
    for count in (1, 2, 3):
        assert grad(lambda x: np.imag(turn(x)) ** 2)(3.0) == 6.0
        assert len(seen) == count + 1  # the first is called a second time, as it is then known


def test_constants_of_a_primitive_stay_complex_arrays_of_numpys() -> None:
    seen = []
    kept = primitive(lambda a, x: seen.append(type(a)) or a @ x)
    defvjp(kept, None, lambda ans, a, x: lambda g: a.T @ g)
    onp.testing.assert_allclose(grad(lambda x: np.sum(np.real(kept(M, x))))(onp.ones(4)), onp.real(M).sum(0))
    assert set(seen) == {onp.ndarray}


def test_what_is_not_covered_is_refused_by_name() -> None:
    for f in (np.floor, lambda z: np.linalg.qr(z[None])):
        with pytest.raises(TypeError, match="not covered for complex"):
            grad(lambda z, f=f: np.real(f(z)))(Z)
