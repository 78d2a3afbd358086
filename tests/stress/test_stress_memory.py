"""Loops of every kind in constant memory: resident bytes of the process and rows of the tape."""

import gc
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from forked_processes import run
from fresh_processes import environment
from scenarios import LOOPS

import tapegrad as tg
from tapegrad.autograd.decoded_rows import arguments_of, opcode_of, record_of
from tapegrad.engine import layout

TAPE = tg.tape.default_tape()

Figure = Callable[[str, int, float, float], None]

MOST_BYTES, MOST_ROWS = 4_000_000, 10_000  # growth after the warm-up


@pytest.mark.parametrize("name", LOOPS)
def test_loop_runs_in_constant_memory(name: str, long: bool, figure: Figure) -> None:
    iterations = 100_000 if long else 3000  # of fewer, the first third does not hold the warm-up
    script = str(Path(__file__).with_name("scenarios.py"))
    grown, rows = map(int, run(script, environment(), name, str(iterations)).stdout.split())
    figure(f"{name}: rows", iterations, rows, MOST_ROWS)
    figure(f"{name}: resident bytes", iterations, grown, MOST_BYTES)


def saved_array(x: tg.Tensor, power: float = 2.0) -> tuple[tg.Tensor, "weakref.ref[np.ndarray]"]:
    """A result whose row keeps an array that nobody else holds."""
    inner = x * 2.0
    link = weakref.ref(inner._data)
    return (inner**power).sum(), link


@pytest.fixture
def x() -> tg.Tensor:
    return tg.tensor(np.arange(1.0, 5.0), requires_grad=True)


def test_a_saved_array_lives_as_long_as_its_graph(x: tg.Tensor) -> None:
    loss, link = saved_array(x)
    gc.collect()
    assert link() is not None
    del loss
    gc.collect()
    assert link() is None


def test_a_saved_array_dies_with_the_backward_pass(x: tg.Tensor) -> None:
    loss, link = saved_array(x)
    loss.backward()
    assert link() is None
    assert loss.item() == 120.0


def test_a_saved_array_lives_through_a_pass_that_retains(x: tg.Tensor) -> None:
    loss, link = saved_array(x)
    loss.backward(retain_graph=True)
    assert link() is not None
    loss.backward()
    assert link() is None


def test_a_saved_array_dies_with_grad(x: tg.Tensor) -> None:
    loss, link = saved_array(x)
    tg.autograd.grad(loss, x)
    assert link() is None


def test_a_saved_array_lives_as_long_as_a_recorded_gradient(x: tg.Tensor) -> None:
    loss, link = saved_array(x, 3.0)  # whose second derivative needs it
    (g,) = tg.autograd.grad(loss, x, create_graph=True)
    del loss
    assert link() is not None
    del g
    gc.collect()
    assert link() is None


def test_a_saved_array_lives_while_a_node_is_held(x: tg.Tensor) -> None:
    loss, link = saved_array(x)
    node = loss.grad_fn
    del loss
    gc.collect()
    assert link() is not None and node is not None
    del node
    gc.collect()
    assert link() is None


# Graphs that were begun and dropped in any order: a later graph that lives keeps nothing of an earlier one.


def leaf() -> tg.Tensor:
    return tg.tensor(np.arange(1.0, 5.0), requires_grad=True)


def plain(x: tg.Tensor) -> tg.Tensor:
    return (x**3).sum()


def views(x: tg.Tensor) -> tg.Tensor:
    inner = (x * 2.0).view(2, 2)
    return (inner[0] * inner[:, 1]).sum()


def to_scalars(x: tg.Tensor) -> tg.Tensor:
    y = (x * x).prod()
    for k in range(5):
        y = tg.sin(y) * y + float(k)
    return y


def host_rows(x: tg.Tensor) -> tg.Tensor:
    return tg.cumsum(tg.softmax(x, 0), 0).prod()


def fans(x: tg.Tensor) -> tg.Tensor:
    return tg.cat([x * float(k) for k in range(400)]).pow(2).sum()


def written(x: tg.Tensor) -> tg.Tensor:
    out = tg.zeros(8)
    out[:4] = x * x
    out[2:6].mul_(3.0)
    return (out * out).sum()


BODIES = [plain, views, to_scalars, host_rows, fans, written]


def dropped(loss: tg.Tensor, x: tg.Tensor) -> None:
    pass


def swept(loss: tg.Tensor, x: tg.Tensor) -> None:
    loss.backward()


def swept_and_retained(loss: tg.Tensor, x: tg.Tensor) -> None:
    loss.backward(retain_graph=True)


def recorded(loss: tg.Tensor, x: tg.Tensor) -> None:
    (g,) = tg.autograd.grad(loss, x, create_graph=True)
    (g * g).sum().backward()


@pytest.mark.parametrize("end", [dropped, swept, swept_and_retained, recorded], ids=lambda end: end.__name__)
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_the_leaf_of_a_graph_that_was_dropped_is_gone_while_a_later_graph_lives(
    body: Callable[[tg.Tensor], tg.Tensor], end: Callable[[tg.Tensor, tg.Tensor], None]
) -> None:
    first = leaf()
    link, before = weakref.ref(first._data), TAPE.memory()["saved_bytes"]
    loss = body(first)
    later = body(kept := leaf())
    held = TAPE.memory()["saved_bytes"] - before
    end(loss, first)
    del loss, first
    assert link() is None
    assert TAPE.memory()["saved_bytes"] - before <= held / 2
    later.backward()
    again = body(other := leaf())
    again.backward()
    assert kept.grad.tolist() == other.grad.tolist()


def test_what_a_dropped_graph_saved_is_gone_while_a_later_graph_lives(x: tg.Tensor) -> None:
    loss, link = saved_array(x, 3.0)
    later, kept = saved_array(x, 3.0)
    del loss
    assert link() is None and kept() is not None
    later.backward()
    assert x.grad.tolist() == (24.0 * np.arange(1.0, 5.0) ** 2).tolist()


def test_graphs_that_are_interleaved_keep_what_is_theirs(x: tg.Tensor) -> None:
    tensors, links = [x * 1.0, x * 1.0, x * 1.0], [[], [], []]  # type: ignore[var-annotated]
    for k in range(30):
        tensors[k % 3] = tensors[k % 3] ** 2 * 0.5
        links[k % 3].append(weakref.ref(tensors[k % 3]._data))
    tensors[1] = None  # type: ignore[call-overload]
    assert {link() for link in links[1]} == {None}
    assert None not in {id(link()) if link() is not None else None for link in links[0][:-1] + links[2][:-1]}


@pytest.mark.parametrize("order", ["first first", "last first", "every other"])
def test_many_graphs_are_gone_as_they_are_dropped(x: tg.Tensor, order: str) -> None:
    graphs = [saved_array(x, 3.0) for _ in range(300)]
    links = [link for _, link in graphs]
    numbers = list(range(300))
    numbers = {"first first": numbers, "last first": numbers[::-1], "every other": numbers[::2] + numbers[1::2]}[order]
    for done, k in enumerate(numbers, 1):
        graphs[k] = None  # type: ignore[call-overload]
        if done % 50 == 0:
            assert [link() is None for link in links] == [n in numbers[:done] for n in range(300)]


def test_a_graph_that_is_dropped_in_a_pass_of_another_is_gone_after_it(x: tg.Tensor) -> None:
    loss, link = saved_array(x, 3.0)
    graphs = [loss]
    del loss
    later = (x * x).sum()
    x.register_hook(lambda g: graphs.clear())
    later.backward()
    del later
    assert link() is None
    assert x.grad.tolist() == [2.0, 4.0, 6.0, 8.0]


def test_releasing_a_deep_graph_of_arrays_takes_no_recursion(x: tg.Tensor) -> None:
    y = x * 1.0
    link = weakref.ref(y._data)
    for _ in range(100_000):
        y = y * y
        y = y.clamp(-1.0, 1.0)
    later = (x * x).sum()
    del y
    assert link() is None
    later.backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0, 8.0]


def test_references_to_a_row_are_counted() -> None:
    """What is counted step by step is what a count of all handles and references finds."""
    x = leaf()
    held = [body(x) for body in BODIES]
    kept = [held[k] for k in (0, 2, 5)]
    counted = reference_counts()
    assert counted == expected_counts()
    del held
    (g,) = tg.autograd.grad(kept[1], x, create_graph=True)
    kept[0].backward()
    assert reference_counts() == expected_counts()
    TAPE.collect()
    assert reference_counts() == expected_counts()
    del kept, g


@pytest.mark.parametrize("slot", [-1, layout.GONE, 2**31 - 1])
def test_no_handle_is_given_on_a_slot_without_a_row(slot: int, x: tg.Tensor) -> None:
    y = x * 2.0
    before = reference_counts()
    with pytest.raises(IndexError, match="no row stands at slot"):
        TAPE.new_handle(slot)
    assert reference_counts() == before
    del y


def living() -> list[int]:
    return [slot for slot in range(TAPE.rows) if TAPE.has_row(slot)]


def reference_counts() -> dict[int, int]:
    return {slot: int(TAPE.columns["held"][slot]) for slot in living()}


def expected_counts() -> dict[int, int]:
    counts = dict.fromkeys(living(), 0)
    for slot in counts:
        for argument in record_of(slot).arguments if opcode_of(slot)[1] else arguments_of(slot):
            if argument.slot >= 0:
                counts[argument.slot] += 1
    handles = TAPE.columns["handle"][1 : int(TAPE.header[layout.HANDLE_CAPACITY])]
    for slot in handles[handles >= 0].tolist():
        counts[slot] += 1
    return counts
