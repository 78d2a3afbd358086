"""What dies when: saved arrays at backward and with their graph, everything else by reference count."""

import gc
import threading
import tracemalloc
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf, numbers, settled_rows

import tapegrad as tg

ROUNDS = 4000
TAPE = tg.tape.default_tape()


def big() -> tuple[tg.Tensor, "weakref.ref[np.ndarray]"]:
    """A tensor over a NumPy array of which only the tensor, or whoever saves it, keeps hold."""
    array = np.ones(1000)
    return tg.from_numpy(array), weakref.ref(array)


def test_array_lives_while_its_graph_does() -> None:
    w = leaf(np.ones(1000))
    c, watched = big()
    y = w * c
    del c
    assert watched() is not None and y.requires_grad


@pytest.mark.point(76)
def test_saved_array_dies_at_backward() -> None:
    w = leaf(np.ones(1000))
    c, watched = big()
    y = (w * c).sum()
    del c
    y.backward()
    assert watched() is None


@pytest.mark.point(76)
def test_saved_array_dies_at_grad() -> None:
    w = leaf(np.ones(1000))
    c, watched = big()
    y = (w * c).sum()
    del c
    tg.autograd.grad(y, w)
    assert watched() is None


def test_saved_array_outlives_a_pass_that_retains_the_graph() -> None:
    w = leaf(np.ones(1000))
    c, watched = big()
    y = (w * c).sum()
    del c
    y.backward(retain_graph=True)
    assert watched() is not None


@pytest.mark.point(76)
def test_saved_array_dies_with_a_dropped_graph() -> None:
    w = leaf(np.ones(1000))
    c, watched = big()
    y = (w * c).sum()
    del c, y
    assert watched() is None


def test_saved_array_of_a_dropped_graph_below_a_living_one_dies_when_rows_are_collected() -> None:
    w = leaf(np.ones(1000))
    c, watched = big()
    y = (w * c).sum()
    newer = w * 2.0
    del c, y
    tg.tape.default_tape().collect()
    assert watched() is None and newer.requires_grad


def test_bytes_saved_by_dropped_graphs_below_a_living_one_are_bounded() -> None:
    w = leaf(np.ones(100_000))
    tracemalloc.start()
    try:
        carried = w.sum()
        sizes = []
        for _ in range(200):
            y = (w.sin() * w.cos()).sum()
            carried = w.sum()  # newer than the graph that is dropped
            del y
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert carried.requires_grad and max(sizes) < 80_000_000  # all 200 graphs would save 480 MB


@pytest.mark.point(76)
def test_array_saved_by_a_structural_operation_dies_at_backward() -> None:
    w = leaf(np.ones((10, 100)))
    array = np.ones((100, 10))
    c, watched = tg.from_numpy(array), weakref.ref(array)
    y = (w @ c).sum()
    del array, c
    y.backward()
    assert watched() is None


def test_array_under_a_scalar_loss_that_is_kept_dies_at_backward() -> None:
    w = leaf(np.ones(1000))
    kept = []
    for _ in range(3):
        c, watched = big()
        loss = ((w * c) * (w * c)).sum()
        del c
        loss.backward()
        kept.append(loss)
        assert watched() is None


def test_detached_result_does_not_keep_what_its_graph_saved() -> None:
    w = leaf(np.ones(1000))
    c, watched = big()
    prediction = (w * c).sum().detach()
    del c
    assert watched() is None and prediction.item() == 1000.0


def test_grad_fn_keeps_its_graph() -> None:
    w = leaf(np.ones(1000))
    c, watched = big()
    node = (w * c).grad_fn
    del c
    assert watched() is not None and node.name() == "MulBackward0"


def recorded_gradient() -> tg.Tensor:
    x = leaf([1.0, 2.0])
    return tg.autograd.grad((x**3).sum(), x, create_graph=True)[0]


def retained_gradient() -> tg.Tensor:
    y = leaf([1.0, 2.0]) * 2
    y.retain_grad()
    y.sum().backward()
    return y


def error_at_backward() -> None:
    y = leaf([1.0]) * leaf([2.0])
    y.backward()
    try:
        y.backward()
    except RuntimeError:
        return


CYCLE_FREE: dict[str, Callable[[], object]] = {
    "a scalar graph": lambda: tg.sin(leaf(0.3) * 2.0) ** 2,
    "an array graph": lambda: tg.sum(leaf([1.0, 2.0]) ** 2),
    "a scalar graph after backward": lambda: tg.autograd.backward(tg.sin(leaf(0.3) * 2.0) ** 2),
    "an array graph after backward": lambda: (leaf([1.0, 2.0]) ** 2).sum().backward(),
    "a view and its base": lambda: (leaf([1.0, 2.0]) * 2)[:1],
    "a written view": lambda: (leaf([1.0, 2.0]) * 2)[:1].mul_(3.0),
    "an assignment": lambda: tg.zeros(2).__setitem__(0, leaf(1.0)),
    "split views": lambda: (leaf([1.0, 2.0]) * 2).split(1),
    "a leaf's node": lambda: (leaf([1.0]) * 2).grad_fn.next_functions[0][0],
    "a recorded gradient": recorded_gradient,
    "a retained gradient": retained_gradient,
    "a structural graph": lambda: tg.cat([leaf([[1.0]]) @ leaf([[2.0]]), tg.ones(1, 1)]).softmax(0),
    "an error at backward": error_at_backward,
}


@pytest.mark.point(3, 76)
@pytest.mark.parametrize("name", CYCLE_FREE)
def test_everything_dies_by_reference_count(name: str) -> None:
    for _ in range(20):  # whatever is loaded on the way is loaded by now
        CYCLE_FREE[name]()
    gc.collect()
    gc.disable()
    try:
        CYCLE_FREE[name]()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_leaf_dropped_before_its_result_still_passes_through() -> None:
    x = leaf(2.0)
    inner = x * 1.0
    y = inner * inner
    del x
    assert_values(tg.autograd.grad(y, inner)[0], 4.0)


def test_array_kept_by_the_user_survives_the_tape() -> None:
    w = leaf([1.0, 2.0])
    array = (w * 2).detach().numpy()
    for _ in range(ROUNDS):
        (w * 3).sum().backward()
    assert array.tolist() == [2.0, 4.0]


def test_gradient_kept_by_the_user_survives_the_tape() -> None:
    w = leaf([1.0, 2.0])
    (g,) = tg.autograd.grad((w * w).sum(), w)
    for _ in range(ROUNDS):
        tg.autograd.grad((w * 3).sum(), w)
    assert numbers(g).tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    "function", [lambda v: tg.exp(-v), lambda v: v * 2.0, lambda v: v[1:] + 1.0], ids=["exp", "product", "slice"]
)
def test_recorded_gradients_leave_no_handles_behind(function: Callable[[tg.Tensor], tg.Tensor]) -> None:
    v = leaf([0.1, 0.2, 0.3])

    def rows_after(calls: int) -> int:
        for _ in range(calls):
            tg.autograd.grad(function(v).sum(), v, create_graph=True)
        return settled_rows()

    rows_after(1)
    assert rows_after(20) == rows_after(1)


def test_what_dies_in_a_collection_may_wait_for_another_thread() -> None:
    w = leaf(np.ones(1000))
    c, watched = big()
    y = (w * c).sum()
    newer = w * 2.0
    done: list[bool] = []

    def work() -> None:
        TAPE.collect()
        done.append(True)

    def wait_for_another() -> None:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(10.0)

    weakref.finalize(watched(), wait_for_another)
    del c, y
    TAPE.collect()
    assert done == [True] and newer.requires_grad
