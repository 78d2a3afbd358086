"""Memory: loops run for ever in constant space, and what is kept pins only itself."""

import gc
import subprocess
import sys
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf, live_rows

import tapegrad as tg
from tapegrad.autograd import sweep_memory
from tapegrad.engine import layout

ROUNDS = 4000
SLACK_ROWS = 20_000  # rows that may wait for reclamation
SLACK_BYTES = 8_000_000


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Start without the garbage of the tests before."""
    gc.collect()
    yield
    gc.collect()


def scalar_loss(w: tg.Tensor, k: int) -> tg.Tensor:
    y = w
    for j in range(8):
        y = tg.sin(y * 0.5 + j) * w - k * 1e-4
    return y * y


def array_loss(w: tg.Tensor, data: tg.Tensor) -> tg.Tensor:
    hidden = tg.tanh(data @ w.view(8, 8))
    return ((hidden[:, 1:] - tg.cat([hidden[:, :4], hidden[:, 5:]], 1)) ** 2).mean() + (w * w).sum()


def train_scalar(rounds: int) -> Iterator[None]:
    w = leaf(0.3)
    for k in range(rounds):
        scalar_loss(w, k).backward()
        with tg.no_grad():
            w -= 1e-3 * w.grad
        w.grad.zero_()
        yield


def evaluate_scalar(rounds: int) -> Iterator[None]:
    w = leaf(0.3)
    total = 0.0
    for k in range(rounds):
        total += scalar_loss(w, k).item()
        yield


def settled_rows() -> int:
    """Living rows, with those that earlier tests left behind reclaimed."""
    gc.collect()
    tg.tape.default_tape().collect()
    return live_rows()


def train_array(rounds: int) -> Iterator[None]:
    w, data = leaf(np.linspace(-1.0, 1.0, 64)), tg.tensor(np.cos(np.arange(128.0)).reshape(16, 8))
    for _ in range(rounds):
        array_loss(w, data).backward()
        with tg.no_grad():
            w -= 1e-3 * w.grad
        w.grad = None
        yield


def evaluate_array(rounds: int) -> Iterator[None]:
    w, data = leaf(np.linspace(-1.0, 1.0, 64)), tg.tensor(np.cos(np.arange(128.0)).reshape(16, 8))
    total = 0.0
    for _ in range(rounds):
        total += array_loss(w, data).item()
        yield


def train_recorded(rounds: int) -> Iterator[None]:
    w = leaf(0.3)
    for k in range(rounds):
        (g,) = tg.autograd.grad(scalar_loss(w, k), w, create_graph=True)
        (h,) = tg.autograd.grad(g, w)
        with tg.no_grad():
            w -= 1e-3 * g / (h.abs() + 1.0)
        yield


def train_in_place(rounds: int) -> Iterator[None]:
    w = leaf([0.3, 0.4])
    for _ in range(rounds):
        out = tg.zeros(4)
        out[:2] = w * w
        out[2:] += w
        out.mul_(2.0)
        out.sum().backward()
        w.grad.zero_()
        yield


def train_with_retained_graph(rounds: int) -> Iterator[None]:
    w = leaf(0.3)
    for k in range(rounds):
        loss = scalar_loss(w, k)
        loss.backward(retain_graph=True)
        loss.backward(retain_graph=True)
        w.grad.zero_()
        yield


# Name: loop, iterations. The slower a loop makes rows, the longer it takes until it needs no more of them.
LOOPS: dict[str, tuple[Callable[[int], Iterator[None]], int]] = {
    "training on scalars": (train_scalar, 12_000),
    "evaluation on scalars": (evaluate_scalar, 4000),
    "training on arrays": (train_array, 4000),
    "evaluation on arrays": (evaluate_array, 4000),
    "training with recorded gradients": (train_recorded, 1200),
    "training with in-place writes": (train_in_place, 3000),
    "training with a retained graph": (train_with_retained_graph, 4000),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loop_holds_the_number_of_rows(name: str) -> None:
    loop, rounds = LOOPS[name]
    before = settled_rows()
    counts = [live_rows() for _ in loop(rounds)]
    assert max(counts[rounds // 2 :]) <= max(counts[: rounds // 2])
    assert max(counts) <= before + SLACK_ROWS


@pytest.mark.parametrize("name", LOOPS)
def test_loop_holds_its_bytes(name: str) -> None:
    loop, rounds = LOOPS[name][0], 600
    tracemalloc.start()
    try:
        sizes = [tracemalloc.get_traced_memory()[0] for _ in loop(rounds)]
    finally:
        tracemalloc.stop()
    assert max(sizes[rounds // 2 :]) - max(sizes[: rounds // 2]) < 200_000


def test_loop_holds_the_number_of_rows_after_a_long_graph_has_stretched_the_tape() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(200_000):
        y = y * x
    del y
    before = settled_rows()
    counts = [live_rows() for _ in train_recorded(1200)]
    assert max(counts) <= before + SLACK_ROWS


RESIDENT = """
import sys
sys.path[:0] = {folders!r}
import os, resource
import test_memory

def resident():
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

for loop in (test_memory.LOOPS[name][0] for name in {names!r}):
    sizes = []
    for k, _ in enumerate(loop(6_000)):
        if k % 300 == 299:
            sizes.append(resident())
    print(max(sizes[10:]) - max(sizes[:10]))
"""


def test_training_and_evaluation_hold_the_resident_memory_of_the_process() -> None:
    names = ["training on scalars", "evaluation on scalars", "training on arrays", "evaluation on arrays"]
    code = RESIDENT.format(folders=[str(folder) for folder in Path(__file__).parents[:2]], names=names)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    growth = [int(line) for line in done.stdout.split()]
    assert max(growth) < 1_000_000  # 333 bytes a round


def test_kept_losses_pin_only_themselves() -> None:
    w, before = leaf(0.3), live_rows()
    losses = []
    for k in range(2000):
        loss = scalar_loss(w, k)
        loss.backward()
        losses.append(loss)
    assert live_rows() - before <= 2 * len(losses) + SLACK_ROWS


def test_kept_losses_keep_their_values() -> None:
    w = leaf(0.3)
    losses, expected = [], []
    for k in range(2000):
        loss = scalar_loss(w, k)
        loss.backward()
        losses.append(loss)
        expected.append(scalar_loss(w, k).item())
    assert [loss.item() for loss in losses] == expected


def test_kept_array_losses_let_go_of_what_was_saved() -> None:
    w = leaf(np.ones(1000))
    losses = []
    tracemalloc.start()
    try:
        for _ in range(500):
            loss = (w.sin() * w.cos()).sum()
            loss.backward()
            losses.append(loss)
        size = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert size < SLACK_BYTES  # the operands of all 500 would be 16 MB


def test_kept_detached_predictions_pin_no_rows() -> None:
    w = leaf(0.3)
    kept = []
    counts = []
    for k in range(ROUNDS):
        kept.append(scalar_loss(w, k).detach())
        counts.append(live_rows())
    assert max(counts[ROUNDS // 2 :]) <= 1.1 * max(counts[: ROUNDS // 2])


def test_kept_results_made_under_no_grad_pin_no_rows() -> None:
    w, before = leaf(0.3), live_rows()
    with tg.no_grad():
        kept = [scalar_loss(w, k) for k in range(200)]
    assert live_rows() <= before and len(kept) == 200


def test_kept_view_keeps_its_values_while_the_tape_moves_on() -> None:
    w = leaf([1.0, 2.0, 3.0])
    view = (w * w)[1:]
    for _ in range(ROUNDS):
        (w * w).sum().backward()
    assert view.tolist() == [4.0, 9.0]


def test_kept_view_is_still_differentiable_while_the_tape_moves_on() -> None:
    w = leaf([1.0, 2.0, 3.0])
    view = (w * w)[1:]
    for _ in range(ROUNDS):
        (w * w).sum().backward()
    w.grad = None
    view.sum().backward()
    assert_values(w.grad, [0.0, 4.0, 6.0])


def test_old_graph_is_right_after_many_newer_ones_were_reclaimed() -> None:
    x, w = leaf(0.7), leaf(0.3)
    old = tg.exp(tg.sin(x * x) * 2.0)
    for k in range(ROUNDS):
        scalar_loss(w, k).backward()
    old.backward()
    np.testing.assert_allclose(x.grad.item(), np.exp(2 * np.sin(0.49)) * 2 * np.cos(0.49) * 1.4, rtol=1e-13)


def test_old_graph_below_does_not_stop_reclamation_of_newer_ones() -> None:
    x, w = leaf(0.7), leaf(0.3)
    old = tg.exp(x * x)
    before = live_rows()
    for k in range(ROUNDS):
        scalar_loss(w, k).backward()
    assert live_rows() - before <= SLACK_ROWS and old.requires_grad


def test_new_graph_above_does_not_stop_reclamation_of_older_ones() -> None:
    w = leaf(0.3)
    before = live_rows()
    carried = w * 1.0
    for k in range(ROUNDS):
        loss = scalar_loss(w, k)
        carried = w * (k + 1.0)  # always newer than the loss that dies next
        del loss
    assert live_rows() - before <= SLACK_ROWS
    carried.backward()
    assert_values(w.grad, float(ROUNDS))


def test_interleaved_graphs_are_reclaimed_apart() -> None:
    x, w = leaf(1.01), leaf(0.99)
    kept, dropped = x * 1.0, w * 1.0
    before = live_rows()
    for _ in range(20_000):
        dropped = dropped * w
        dropped = dropped + 0.5
    del dropped
    for k in range(200):
        scalar_loss(w, k)
    assert live_rows() - before <= SLACK_ROWS
    kept.backward()
    assert_values(x.grad, 1.0)


def test_interleaved_graphs_have_right_gradients_after_one_was_dropped() -> None:
    x, w = leaf(1.001), leaf(0.999)
    kept, dropped = x * 1.0, w * 1.0
    for _ in range(3000):
        kept = kept * x
        dropped = dropped * w
    del dropped
    for k in range(1000):
        scalar_loss(w, k)
    kept.backward()
    np.testing.assert_allclose(x.grad.item(), 3001 * 1.001**3000, rtol=1e-10)


def test_graphs_kept_for_a_while_have_right_gradients() -> None:
    w = leaf(0.5)
    waiting: deque[tuple[tg.Tensor, int]] = deque()
    for k in range(2000):
        waiting.append((tg.exp(w * (k * 1e-3)), k))
        if len(waiting) > 50:
            loss, made = waiting.popleft()
            w.grad = None
            loss.backward()
            np.testing.assert_allclose(w.grad.item(), made * 1e-3 * np.exp(0.5 * made * 1e-3), rtol=1e-13)


def test_graphs_kept_for_a_while_hold_the_number_of_rows() -> None:
    w = leaf(0.5)
    waiting: deque[tg.Tensor] = deque(maxlen=50)
    counts = []
    for k in range(ROUNDS):
        waiting.append(scalar_loss(w, k))
        counts.append(live_rows())
    assert max(counts[ROUNDS // 2 :]) <= 1.1 * max(counts[: ROUNDS // 2])


@pytest.mark.parametrize("seed", range(5))
def test_graphs_dropped_in_random_order_leave_the_others_right(seed: int) -> None:
    rng = np.random.default_rng(seed)
    leaves = [leaf(float(v)) for v in rng.uniform(0.5, 1.5, 4)]
    alive: list[tuple[tg.Tensor, np.ndarray]] = [(x * 1.0, np.eye(4)[k]) for k, x in enumerate(leaves)]
    for _ in range(4000):
        i, j = rng.integers(len(alive), size=2)
        a, b = rng.uniform(-0.6, 0.6, 2)
        alive.append((alive[i][0] * a + alive[j][0] * b, alive[i][1] * a + alive[j][1] * b))
        if len(alive) > 30:
            del alive[int(rng.integers(len(alive)))]
    for tensor, expected in alive:
        got = tg.autograd.grad(tensor, leaves, retain_graph=True, materialize_grads=True)
        np.testing.assert_allclose([g.item() for g in got], expected, rtol=1e-9, atol=1e-12)


def test_dropped_leaves_release_their_rows() -> None:
    counts = []
    for k in range(ROUNDS):
        (leaf(float(k)) * 2.0).backward()
        counts.append(live_rows())
    assert max(counts[ROUNDS // 2 :]) <= 1.1 * max(counts[: ROUNDS // 2])


@pytest.fixture
def small_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts as a large graph has some thousand rows."""
    monkeypatch.setattr(sweep_memory, "LARGEST_KEPT_BUFFER", 1000)


def long_chain(x: tg.Tensor, rows: int) -> tg.Tensor:
    y = x * 1.0
    for _ in range(rows):
        y = y * x
    return y


def test_small_passes_after_a_large_graph_ask_for_little_memory(small_buffers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    x = leaf(1.0)
    long_chain(x, 50_000).backward()
    asked: list[int] = []

    def allocate(length: int, dtype: Any) -> np.ndarray:
        asked.append(length)
        return np.empty(length, dtype)

    monkeypatch.setattr(tg.tape.column_memory, "allocate", allocate)
    for _ in range(3):
        (x * 2.0).backward()
    assert sum(asked) < 10_000


def test_small_passes_beside_a_large_graph_use_the_memory_again(small_buffers: None) -> None:
    x = leaf(1.0)
    alive = long_chain(x, 50_000)
    (x * 2.0).backward()
    before = sweep_memory._pool[-1].offsets
    (x * 2.0).backward()
    assert sweep_memory._pool[-1].offsets is before
    assert alive.requires_grad


def test_handles_once_in_use_are_not_looked_through_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tg.tape.tape, "HANDLES_A_ROW", 1)
    tape = tg.tape.default_tape()
    x = leaf(1.0)
    many = [x * 1.0 for _ in range(20_000)]
    del many
    tape.collect()
    assert tape.header[layout.LIMIT] >= 20_000
