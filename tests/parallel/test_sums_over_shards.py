"""Sums over shards have the values and derivatives of the whole, with the same bits whoever computes them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import parallel_functions as functions
import pytest

import tapegrad as tg
from tapegrad.parallel import workers

W = np.array([0.3, -0.5, 0.2])
CLOSE: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, mp_context=get_context("forkserver")) as executor:
        yield executor


@pytest.fixture
def total() -> Any:
    return tg.parallel.sum_over(functions.loss, functions.SHARDS)


def test_value_and_derivatives_are_those_of_the_whole(total: Any) -> None:
    v = np.array([1.0, 0.5, -2.0])
    np.testing.assert_allclose(total(W), functions.whole(W), **CLOSE)
    np.testing.assert_allclose(tg.grad(total)(W), tg.grad(functions.whole)(W), **CLOSE)
    np.testing.assert_allclose(tg.hessian(total)(W), tg.hessian(functions.whole)(W), **CLOSE)
    np.testing.assert_allclose(tg.hvp(total, W, v), tg.hvp(functions.whole, W, v), **CLOSE)
    np.testing.assert_allclose(total.hessian(W), tg.hessian(functions.whole)(W), **CLOSE)
    np.testing.assert_allclose(total.hvp(W, v), tg.hvp(functions.whole, W, v), **CLOSE)
    tg.check_grads(total, (W,), order=2)


def test_it_is_a_part_of_larger_functions(total: Any) -> None:
    def penalised(f: Any) -> Any:
        return lambda w: np.sqrt(f(2.0 * w)) + (w * w).sum()

    np.testing.assert_allclose(tg.grad(penalised(total))(W), tg.grad(penalised(functions.whole))(W), **CLOSE)
    np.testing.assert_allclose(tg.hessian(penalised(total))(W), tg.hessian(penalised(functions.whole))(W), **CLOSE)


def test_tensors_are_taken_too(total: Any) -> None:
    w = tg.tensor(W, requires_grad=True)
    total(w).backward()
    assert w.grad is not None
    np.testing.assert_allclose(w.grad.numpy(), tg.grad(functions.whole)(W), **CLOSE)


def test_a_third_derivative_is_refused(total: Any) -> None:
    with pytest.raises(NotImplementedError, match="this would be a third"):
        tg.grad(lambda w: tg.grad(lambda u: tg.grad(total)(u).sum())(w).sum())(W)


def test_variables_may_be_containers() -> None:
    total = tg.parallel.sum_over(functions.of_container, functions.SHARDS)
    p, v = {"w": W, "b": 0.5}, {"w": np.ones(3), "b": 1.0}
    value, gradient = tg.value_and_grad(total)(p)
    expected_value, expected = tg.value_and_grad(functions.whole_of_container)(p)
    np.testing.assert_allclose(value, expected_value, **CLOSE)
    for name in p:
        np.testing.assert_allclose(gradient[name], expected[name], **CLOSE)
        np.testing.assert_allclose(total.hvp(p, v)[name], tg.hvp(functions.whole_of_container, p, v)[name], **CLOSE)
        np.testing.assert_allclose(tg.hvp(total, p, v)[name], tg.hvp(functions.whole_of_container, p, v)[name], **CLOSE)
    with pytest.raises(TypeError, match="hessian of a sum takes an array, not dict"):
        total.hessian(p)


def test_compiled_functions_and_optimisers() -> None:
    total = tg.parallel.sum_over(functions.compiled, functions.SHARDS)
    expected = np.linalg.lstsq(functions.POINTS, functions.LABELS, rcond=None)[0]
    for method in ("BFGS", "trust-ncg"):
        np.testing.assert_allclose(tg.optimize.minimize(total, np.zeros(3), method=method, tol=1e-10).x, expected, atol=1e-6)


def test_squares_have_gauss_newton_parts() -> None:
    total = tg.parallel.sum_over(functions.residual, functions.SHARDS, squares=True)
    model = tg.gauss_newton(lambda w: functions.residual(w, functions.POINTS, functions.LABELS), W)
    matrix, gradient = total.gauss_newton(W)
    np.testing.assert_allclose(matrix, model.matrix(), **CLOSE)
    np.testing.assert_allclose(gradient, model.gradient, **CLOSE)
    np.testing.assert_allclose(tg.grad(total)(W), model.gradient, **CLOSE)
    np.testing.assert_allclose(total.gauss_newton_product(W, W), model.product(W), **CLOSE)
    with pytest.raises(TypeError, match=r"say sum_over\(..., squares=True\)"):
        tg.parallel.sum_over(functions.loss, functions.SHARDS).gauss_newton(W)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_give_the_same_bits(total: Any, threads: int) -> None:
    with ThreadPoolExecutor(threads) as executor:
        other = tg.parallel.sum_over(functions.loss, functions.SHARDS, executor)
        for _ in range(3):
            value, gradient = other.value_and_grad(W)
            assert value == total.value_and_grad(W)[0]
            np.testing.assert_array_equal(gradient, total.value_and_grad(W)[1])
        np.testing.assert_array_equal(tg.hessian(other)(W), tg.hessian(total)(W))


def test_processes_give_the_same_bits(total: Any, processes: Executor) -> None:
    other = tg.parallel.sum_over(functions.loss, functions.SHARDS, processes)
    for w in (W, 2.0 * W):
        np.testing.assert_array_equal(tg.grad(other)(w), tg.grad(total)(w))
        np.testing.assert_array_equal(other.hvp(w, W), total.hvp(w, W))
    fit, expected = (tg.optimize.minimize(f, np.zeros(3), method="BFGS") for f in (other, total))
    np.testing.assert_array_equal(fit.x, expected.x)


def test_shards_may_be_made_where_they_are_needed(total: Any, processes: Executor) -> None:
    shards = [functions.SHARDS[0], functions.second_shard, *functions.SHARDS[2:]]
    for executor in (None, processes):
        made = tg.parallel.sum_over(functions.loss, shards, executor)
        np.testing.assert_array_equal(tg.grad(made)(W), tg.grad(total)(W))


def test_shards_are_shipped_once_and_again_where_they_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    own = workers._Pool._shard

    def shard(self: Any, number: int, ships: bool) -> Any:
        sent.extend([number] * ships)
        return own(self, number, ships)

    monkeypatch.setattr(workers._Pool, "_shard", shard)
    with ThreadPoolExecutor(2) as executor:
        total = tg.parallel.sum_over(functions.loss, functions.SHARDS, executor)
        expected = total.value_and_grad(W)
        assert sent == [0, 1, 2, 3, 4]
        total.value_and_grad(W)
        assert sent == [0, 1, 2, 3, 4]
        token = total._workers._token
        del workers._held[token][3]
        np.testing.assert_array_equal(total.value_and_grad(W)[1], expected[1])
        assert sent == [0, 1, 2, 3, 4, 3]
        del total
        assert token not in workers._held


def test_workers_hold_a_limited_number_of_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "MOST_SUMS", 2)
    with ThreadPoolExecutor(1) as executor:
        totals = [tg.parallel.sum_over(functions.loss, functions.SHARDS, executor) for _ in range(4)]
        values = [total(W) for total in totals] + [total(W) for total in totals]
    assert len(set(values)) == 1
    assert len(workers._held) <= 2


def test_errors_of_the_function_are_raised_here_and_leave_the_sum_usable() -> None:
    with ThreadPoolExecutor(1) as executor:
        total = tg.parallel.sum_over(functions.loss, functions.SHARDS, executor)
        with pytest.raises(ValueError, match="matmul"):
            total(np.zeros(2))
        assert np.isfinite(total(W))


def test_what_is_no_executor_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"an executor is one of concurrent\.futures, a distributed\.Client, a joblib\.Parallel, 'joblib'"
    ):
        tg.parallel.sum_over(functions.loss, functions.SHARDS, 2)
    with pytest.raises(ValueError, match="no shard"):
        tg.parallel.sum_over(functions.loss, [])


def test_best_of_many_starts_is_the_same_for_any_workers(processes: Executor) -> None:
    starts = [[-4.0], [0.8], [3.0], [1.0]]
    with ThreadPoolExecutor(3) as threads:
        found = [tg.optimize.multistart(functions.wavy, starts, executor) for executor in (None, threads, processes)]
    assert [best.start for best in found] == [found[0].start] * 3
    assert all(best.x.tobytes() == found[0].x.tobytes() for best in found)
    assert found[0].fun == min(result.fun for result in found[0].results)
    assert len(found[0].results) == 4 and len(found[2].history) > 1


def test_multistart_of_least_squares_and_what_it_refuses() -> None:
    best = tg.optimize.multistart(functions.wavy_residual, [[3.0], [0.1]], solver="least_squares")
    assert best.cost == min(result.cost for result in best.results)
    with pytest.raises(ValueError, match="no starting point"):
        tg.optimize.multistart(functions.wavy, [])
    with pytest.raises(ValueError, match="the solver is one of minimize, least_squares, not 'root'"):
        tg.optimize.multistart(functions.wavy, [[0.0]], solver="root")
