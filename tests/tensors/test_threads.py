"""Threads: each has its own graphs on the one tape, gradients of shared leaves lose nothing, errors stay where they are."""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf, numbers

import tapegrad as tg

THREADS, ROUNDS = 6, 400
PATIENCE = 60.0  # seconds until a thread counts as stuck


@pytest.fixture(autouse=True)
def _frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(work: Callable[[int], None]) -> list[BaseException]:
    """Run `work` in several threads at once; what they raised."""
    raised: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads), "threads wait for each other"
    return raised


def test_scalar_graphs_of_several_threads_do_not_meet() -> None:
    def work(number: int) -> None:
        x = leaf(0.5 + number)
        expected = 2 * x.item() ** 2 * np.cos(x.item() ** 2) + np.sin(x.item() ** 2)
        for _ in range(ROUNDS):
            x.grad = None
            (tg.sin(x * x) * x).backward()
            np.testing.assert_allclose(x.grad.item(), expected, rtol=1e-12)

    assert in_threads(work) == []


def test_array_graphs_of_several_threads_do_not_meet() -> None:
    def work(number: int) -> None:
        start = np.arange(1.0, 4.0) + number
        x = leaf(start)
        for _ in range(ROUNDS):
            (g,) = tg.autograd.grad((x * x * x[0]).sum(), x)
            expected = 2 * start * start[0]
            expected[0] += (start * start).sum()
            assert_values(g, expected)

    assert in_threads(work) == []


def test_rows_of_several_threads_are_reclaimed_while_others_record() -> None:
    def work(number: int) -> None:
        x = leaf(1.0 + number)
        for _ in range(ROUNDS // 20):
            y = x * 1.0
            for _ in range(50):
                y = y + x
            tg.tape.default_tape().collect()
            assert_values(tg.autograd.grad(y, x)[0], 51.0)

    assert in_threads(work) == []


@pytest.mark.point(77)
@pytest.mark.parametrize("start", [1.0, [1.0, 2.0, 3.0]], ids=["scalar", "array"])
def test_accumulation_into_one_leaf_loses_nothing(start: float | list[float]) -> None:
    shared = leaf(start)

    def work(number: int) -> None:
        for _ in range(ROUNDS):
            (shared * 2.0).sum().backward()

    assert in_threads(work) == []
    assert_values(shared.grad, np.full(np.shape(start), 2.0 * THREADS * ROUNDS))


@pytest.mark.point(77)
@pytest.mark.parametrize("start", [1.0, [1.0, 2.0, 3.0]], ids=["scalar", "array"])
def test_first_gradients_of_shared_leaves_lose_nothing(start: float | list[float]) -> None:
    leaves = [leaf(start) for _ in range(ROUNDS // 2)]
    together = threading.Barrier(THREADS)

    def work(number: int) -> None:
        together.wait(PATIENCE)
        for x in leaves:
            (x * 2.0).sum().backward()

    assert in_threads(work) == []
    np.testing.assert_array_equal([x.grad.tolist() for x in leaves], np.full((len(leaves), *np.shape(start)), 2.0 * THREADS))


@pytest.mark.parametrize("start", [1.0, [1.0, 2.0]])
def test_leaf_first_used_by_several_threads_has_one_row(start: float | list[float]) -> None:
    leaves = [leaf(start) for _ in range(4 * ROUNDS)]
    together = threading.Barrier(THREADS)

    def work(number: int) -> None:
        together.wait(PATIENCE)
        for x in leaves:
            assert_values(tg.autograd.grad((x * 2.0).sum(), x)[0], np.full_like(start, 2.0))

    assert in_threads(work) == []


def test_passes_that_stop_for_python_do_not_meet() -> None:
    def work(number: int) -> None:
        start = np.array([[0.5, 1.0], [2.0, -1.0]]) * (1 + number)
        x = leaf(start)
        for _ in range(ROUNDS // 4):
            loss = (x @ x).logsumexp(1).sum()
            x.grad = None
            loss.backward()
            weights = (x.detach() @ x.detach()).softmax(1).numpy()
            assert_values(x.grad, weights @ start.T + start.T @ weights, rtol=1e-9, atol=1e-12)

    assert in_threads(work) == []


def test_recorded_passes_of_several_threads_do_not_meet() -> None:
    def work(number: int) -> None:
        x = leaf(1.0 + number)
        for _ in range(ROUNDS // 8):
            (g,) = tg.autograd.grad(x**3, x, create_graph=True)
            assert_values(tg.autograd.grad(g, x)[0], 6.0 * (1.0 + number))

    assert in_threads(work) == []


@pytest.mark.point(77)
def test_one_retained_graph_is_run_by_several_threads() -> None:
    x = leaf([1.0, 2.0])
    loss = (tg.exp(x) * x).sum()

    def work(number: int) -> None:
        for _ in range(ROUNDS):
            loss.backward(retain_graph=True)

    assert in_threads(work) == []
    np.testing.assert_allclose(x.grad.numpy(), THREADS * ROUNDS * np.exp([1.0, 2.0]) * np.array([2.0, 3.0]), rtol=1e-11)


def two_layers() -> tuple[tuple[tg.Tensor, ...], tg.Tensor]:
    """Leaves and a loss with rows of all kinds: scalars, arrays, views, sums, and derivatives in Python."""
    x, w, s = leaf([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]]), leaf([[0.3, -0.7], [1.1, 0.2], [-0.4, 0.9]]), leaf(0.7)
    hidden = tg.tanh(x @ w * s)
    loss = (hidden.softmax(1) * x[:, :2]).sum() + tg.exp(s) * hidden[0, 1] + tg.cat([hidden, hidden * 2.0]).logsumexp(0).sum()
    return (x, w, s), loss


def bits(tensors: Sequence[tg.Tensor]) -> list[bytes]:
    return [numbers(t).tobytes() for t in tensors]


@pytest.mark.point(77)
def test_one_retained_graph_gives_every_thread_the_bits_of_a_serial_run() -> None:
    leaves, loss = two_layers()
    serial = bits(tg.autograd.grad(loss, leaves, retain_graph=True))

    def work(number: int) -> None:
        for _ in range(ROUNDS // 8):
            assert bits(tg.autograd.grad(loss, leaves, retain_graph=True)) == serial

    assert in_threads(work) == []


def test_graphs_of_several_threads_give_the_bits_of_a_serial_run() -> None:
    def run() -> list[bytes]:
        leaves, loss = two_layers()
        loss.backward()
        return bits([loss, *(t.grad for t in leaves)])

    serial = run()

    def work(number: int) -> None:
        for _ in range(ROUNDS // 8):
            assert run() == serial

    assert in_threads(work) == []


def test_threads_extend_one_graph() -> None:
    x = leaf([1.0, 2.0])
    common = tg.exp(x) * x

    def work(number: int) -> None:
        for _ in range(ROUNDS // 4):
            (g,) = tg.autograd.grad((common * (number + 1.0)).sum(), x, retain_graph=True)
            assert_values(g, (number + 1.0) * np.exp([1.0, 2.0]) * np.array([2.0, 3.0]))

    assert in_threads(work) == []


def test_passes_over_one_graph_that_frees_it_contribute_completely_or_raise() -> None:
    for _ in range(ROUNDS // 4):
        x, s = leaf([1.0, 2.0]), leaf(3.0)
        loss = (tg.exp(x) * x * s).logsumexp(0) * s + s * s
        once = tg.autograd.grad(loss, (x, s), retain_graph=True)
        together = threading.Barrier(THREADS)

        def work(number: int, loss: tg.Tensor = loss, together: threading.Barrier = together) -> None:
            together.wait(PATIENCE)
            loss.backward()

        raised = in_threads(work)
        assert all("second time" in str(error) for error in raised)
        for got, one in zip((x.grad, s.grad), once, strict=True):
            assert_values(got, numbers(one) * (THREADS - len(raised)))


@pytest.mark.point(77)
def test_error_stays_in_its_thread() -> None:
    def work(number: int) -> None:
        x = leaf(2.0)
        for _ in range(ROUNDS):
            y = x * x
            y.backward()
            if number == 0:
                y.backward()

    raised = in_threads(work)
    assert len(raised) == 1
    assert "second time" in str(raised[0])


def test_results_dropped_by_another_thread_leave_the_tape_whole() -> None:
    made: list[tg.Tensor] = []
    x = leaf(2.0)

    def work(number: int) -> None:
        for k in range(ROUNDS):
            if number % 2 == 0:
                made.append(tg.sin(x * float(k)))
            elif len(made) > THREADS:
                made.pop(0)

    assert in_threads(work) == []
    assert_values(tg.autograd.grad(x * x, x)[0], 4.0)


def test_modes_that_threads_switch_at_once_are_counted() -> None:
    tape = tg.tape.default_tape()
    before = tape.recording_off

    def work(number: int) -> None:
        x = leaf([1.0])
        for _ in range(ROUNDS):
            with tg.no_grad():
                assert not (x * 2.0).requires_grad
                with tg.enable_grad():
                    assert (x * 2.0).requires_grad
            assert (x * 2.0).requires_grad
            with tg.inference_mode():
                assert not (x * 2.0).requires_grad

    assert in_threads(work) == []
    assert tape.recording_off == before
