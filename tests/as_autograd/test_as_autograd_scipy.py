"""SciPy's functions under autograd's names: values are SciPy's, derivatives those of differences, to second order."""

from typing import Any

import autograd.numpy as np
import numpy as onp
import pytest
import scipy
import scipy.integrate
import scipy.signal
from autograd import grad, jacobian
from autograd.scipy import integrate, linalg, special, stats
from autograd.scipy.signal import convolve
from autograd.test_util import check_grads

P = onp.array([0.4, 1.3, 2.2])
U = onp.array([0.2, 0.5, 0.8])
SPECIAL = {
    "digamma psi gammaln gamma rgamma erf erfc expit ndtr log_ndtr j0 j1 y0 y1 i0 i1": (P,),
    "erfinv erfcinv logit": (U,),
    "beta betaln": (P, P[::-1] + 0.5),
}
OF_LAST = {
    "polygamma": (onp.array([0, 1, 2]), P), "jn": (2, P), "yn": (2, P), "iv": (1.5, P), "ive": (1.5, P), "gammainc": (P[::-1], P),
    "gammaincc": (P[::-1], P), "betainc": (P[::-1], P, U),
}  # fmt: skip
CASES = [(name, args, tuple(range(len(args)))) for names, args in SPECIAL.items() for name in names.split()]
CASES += [(name, args, (len(args) - 1,)) for name, args in OF_LAST.items()] + [("multigammaln", (P + 2.0, 3), (0,))]


@pytest.mark.parametrize(("name", "args", "argnums"), CASES, ids=[name for name, *_ in CASES])
def test_special_function(name: str, args: Any, argnums: Any) -> None:
    function = getattr(special, name)
    onp.testing.assert_allclose(function(*args), getattr(scipy.special, name)(*args), rtol=1e-14)
    check_grads(function, argnums)(*args)


@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"axis": 1, "keepdims": True}, {"axis": 0, "b": onp.ones((2, 3)) * 0.5}])
def test_logsumexp(options: Any) -> None:
    x = onp.array([P, U])
    f = lambda x: special.logsumexp(x, **options)  # noqa: E731
    found: list[Any] = []
    jacobian(lambda x: found.append(f(x)) or found[0])(x)
    onp.testing.assert_allclose(onp.asarray(found[0].detach()), scipy.special.logsumexp(x, **options), rtol=1e-14)
    check_grads(f)(x)


DISTRIBUTIONS = {
    "norm.pdf norm.logpdf norm.cdf norm.logcdf norm.sf norm.logsf": ((P, U, P), (0, 1, 2)),
    "t.pdf t.logpdf": ((P, P + 1.0, U, P), (0, 1, 2, 3)),
    "t.cdf t.logcdf": ((P, 2.5, U, P), (0, 2, 3)),
    "gamma.pdf gamma.logpdf chi2.pdf chi2.logpdf": ((P, P + 1.0), (0, 1)),
    "gamma.cdf chi2.cdf": ((P, P + 1.0), (0,)),
    "beta.pdf beta.logpdf": ((U, P, P + 1.0), (0, 1, 2)),
    "beta.cdf": ((U, P, P + 1.0), (0,)),
    "poisson.pmf poisson.logpmf poisson.cdf": ((onp.array([0.0, 1.0, 4.0]), P), (1,)),
}
DRAWN = [(name, args, argnums) for names, (args, argnums) in DISTRIBUTIONS.items() for name in names.split()]


@pytest.mark.parametrize(("name", "args", "argnums"), DRAWN, ids=[name for name, *_ in DRAWN])
def test_distribution(name: str, args: Any, argnums: Any) -> None:
    distribution, _, function = name.partition(".")
    own, theirs = (getattr(getattr(module, distribution), function) for module in (stats, scipy.stats))
    onp.testing.assert_allclose(own(*args), theirs(*args), rtol=1e-13)
    check_grads(own, argnums)(*args)
    # Where something is differentiated, values are computed in another way.
    values: list[Any] = []
    grad(lambda x: np.sum(values.append(own(*args[: argnums[0]], x, *args[argnums[0] + 1 :])) or values[0]))(args[argnums[0]])
    onp.testing.assert_allclose(onp.asarray(values[0].detach()), theirs(*args), rtol=1e-12)


COVARIANCE = onp.array([[2.0, 0.4], [0.4, 1.0]])
POINTS = onp.array([[0.1, 0.2], [1.0, -1.0], [0.4, 0.3]])


@pytest.mark.parametrize("name", ["pdf", "logpdf"])
def test_multivariate_normal(name: str) -> None:
    own, theirs = getattr(stats.multivariate_normal, name), getattr(scipy.stats.multivariate_normal, name)
    for x in (POINTS, POINTS[0]):
        f = lambda x, m, c, own=own: own(x, m, np.dot(c.T, c))  # noqa: E731
        check_grads(f, (0, 1, 2))(x, POINTS[1], COVARIANCE)
        onp.testing.assert_allclose(own(x, POINTS[1], COVARIANCE), theirs(x, POINTS[1], COVARIANCE))


def test_singular_covariances_are_taken_on_request() -> None:
    half = onp.array([[1.0], [2.0]])
    f = lambda a: stats.multivariate_normal.logpdf(np.ravel(a) * 0.3, onp.zeros(2), np.dot(a, a.T), True)  # noqa: E731
    values: list[Any] = []
    grad(lambda a: values.append(f(a)) or values[0])(half)
    wanted = scipy.stats.multivariate_normal.logpdf(half.ravel() * 0.3, onp.zeros(2), half @ half.T, True)
    assert float(values[0].detach()) == pytest.approx(wanted)
    check_grads(f, modes=["rev"], order=1)(half)


def test_entropy_of_a_multivariate_normal() -> None:
    check_grads(lambda c: stats.multivariate_normal.entropy(POINTS[0], np.dot(c.T, c)))(COVARIANCE)


def test_dirichlet() -> None:
    x = onp.array([0.2, 0.3, 0.5])
    for function in (stats.dirichlet.pdf, stats.dirichlet.logpdf):
        check_grads(lambda a, function=function: function(x, a))(P)
        # On the simplex only, where the density is defined.
        check_grads(lambda y, function=function: function(np.array([y[0], y[1], 1.0 - y[0] - y[1]]), P))(x[:2])


MATRICES = {
    "sqrtm": lambda a: linalg.sqrtm(np.dot(a, a.T) + 3.0 * np.eye(3)),
    "sqrtm that is complex": lambda a: linalg.sqrtm(a + a.T),
    "solve_sylvester": lambda a: linalg.solve_sylvester(np.dot(a, a.T) + np.eye(3), a, a * 2.0),
    "solve_triangular": lambda a: linalg.solve_triangular(a + 3.0 * np.eye(3), a[:, :2]),
    "solve_triangular of a vector": lambda a: linalg.solve_triangular(a + 3.0 * np.eye(3), a[0], trans="T", lower=True),
    "solve_banded": lambda a: linalg.solve_banded((1, 1), a + onp.array([[0.0], [5.0], [0.0]]), a[1]),
    "solve_banded of a matrix": lambda a: linalg.solve_banded((0, 2), a + onp.array([[0.0], [0.0], [5.0]]), a),
}


@pytest.mark.parametrize("name", MATRICES)
def test_matrix_function(name: str) -> None:
    check_grads(MATRICES[name])(onp.random.default_rng(0).normal(size=(3, 3)))


def _several(a: Any) -> Any:
    return np.stack([a, 2.0 * a, a.T]) + 3.0 * onp.eye(3)


OF_SEVERAL = {
    "sqrtm": lambda a: linalg.sqrtm(np.stack([a @ a.T, a.T @ a, a @ a.T + 1.0]) + 3.0 * onp.eye(3)),
    "sqrtm that is complex": lambda a: linalg.sqrtm(np.stack([a + a.T, a @ a.T - 0.3, a + a.T + 0.5])),
    "solve_sylvester": lambda a: linalg.solve_sylvester(_several(a), a @ a.T + onp.eye(3), _several(a.T)),
    "solve_sylvester, other numbers of matrices": lambda a: linalg.solve_sylvester(_several(a)[:, None], a @ a.T, _several(a)[:2]),
    "solve_triangular": lambda a: linalg.solve_triangular(_several(a), _several(a.T), trans="T"),
    "solve_triangular, one right side": lambda a: linalg.solve_triangular(_several(a), a[0], lower=True),
    "solve_triangular, one matrix": lambda a: linalg.solve_triangular(
        a + 3.0 * onp.eye(3), _several(a), trans=1, unit_diagonal=True
    ),
    "solve_banded": lambda a: linalg.solve_banded(
        (1, 1), _several(a)[:, [1, 0, 2]] + onp.array([[0.0], [5.0], [0.0]]), _several(a.T)
    ),
    "solve_banded, one right side": lambda a: linalg.solve_banded((1, 1), _several(a) + onp.array([[0.0], [5.0], [0.0]]), a[0]),
}


@pytest.mark.skipif(np.lib.NumpyVersion(scipy.__version__) < "1.15.0", reason="this SciPy takes one matrix")
@pytest.mark.parametrize("name", OF_SEVERAL)
def test_matrix_function_of_several_matrices(name: str) -> None:
    check_grads(OF_SEVERAL[name])(onp.random.default_rng(0).normal(size=(3, 3)))


def test_the_root_of_a_complex_matrix_that_is_not_differentiated_is_an_array_of_numpys() -> None:
    matrix = onp.array([[2.0, 1.0j], [-1.0j, 3.0]])
    root = linalg.sqrtm(matrix)
    assert type(root) is onp.ndarray
    onp.testing.assert_allclose(root @ root, matrix, atol=1e-14)


CONVOLUTIONS = {
    "full": ((5,), (3,), {}),
    "valid": ((5, 4), (3, 2), {"mode": "valid"}),
    "valid, the shorter first": ((3,), (5,), {"mode": "valid"}),
    "same": ((5, 4), (4, 3), {"mode": "same"}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution_is_scipys(name: str) -> None:
    a_shape, b_shape, options = CONVOLUTIONS[name]
    rng = onp.random.default_rng(0)
    a, b = rng.normal(size=a_shape), rng.normal(size=b_shape)
    onp.testing.assert_allclose(convolve(a, b, **options), scipy.signal.convolve(a, b, **options), atol=1e-14)
    check_grads(lambda a, b: convolve(a, b, **options), (0, 1))(a, b)


def test_convolution_with_axes_of_products_and_axes_of_its_own() -> None:
    rng = onp.random.default_rng(0)
    a, b = rng.normal(size=(2, 3, 6, 5)), rng.normal(size=(3, 4, 2, 3))
    f = lambda a, b: convolve(a, b, axes=([2, 3], [2, 3]), dot_axes=([1], [0]), mode="valid")  # noqa: E731
    wanted = [[sum(scipy.signal.convolve(a[i, k], b[k, j], "valid") for k in range(3)) for j in range(4)] for i in range(2)]
    onp.testing.assert_allclose(f(a, b), wanted, atol=1e-13)
    check_grads(f, (0, 1), order=1)(a, b)


def test_solutions_of_differential_equations() -> None:
    decay = lambda y, t, k, c: -k * y + c * np.sin(t)  # noqa: E731
    times = onp.linspace(0.0, 1.0, 4)
    f = lambda y, t, k: integrate.odeint(decay, y, t, (k, 0.5), rtol=1e-10, atol=1e-10)  # noqa: E731
    onp.testing.assert_allclose(f(P, times, 0.7), scipy.integrate.odeint(decay, P, times, (0.7, 0.5)), rtol=1e-6)
    check_grads(f, (0, 1, 2), modes=["rev"], order=1)(P, times, 0.7)
    check_grads(lambda k: f(P[:1], times[:2], k)[1], modes=["rev"])(0.7)
