"""The ends of the tape: more rows than can be numbered, no memory to grow, and what a row costs."""

import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf, live_rows

import tapegrad as tg
from tapegrad.engine import layout as at
from tapegrad.tape import column_memory

FULL = "(?i)tape is full.*rows"


@pytest.fixture
def few_rows() -> Iterator[int]:
    """A tape on which only some rows more can be numbered."""
    tape = tg.tape.default_tape()
    (leaf(1.0) * 2.0).backward()
    tape.collect()
    before = tape.row_limit
    tape.row_limit = live_rows() + 1000
    yield tape.row_limit
    tape.row_limit = before


def scalar_chain(x: tg.Tensor) -> Iterator[tg.Tensor]:
    y = x
    while True:
        y = y * x
        yield y


def constant_chain(x: tg.Tensor) -> Iterator[tg.Tensor]:
    y = x
    while True:
        y = y * 1.0000001
        yield y


def array_chain(x: tg.Tensor) -> Iterator[tg.Tensor]:
    y = x.reshape(1)
    while True:
        y = y + x
        yield y


def structural_chain(x: tg.Tensor) -> Iterator[tg.Tensor]:
    y = x.reshape(1)
    while True:
        y = tg.cat([y, x.reshape(1)])[1:] + y
        yield y


CHAINS: dict[str, Callable[[tg.Tensor], Iterator[tg.Tensor]]] = {
    "scalars": scalar_chain,
    "scalars and constants": constant_chain,
    "arrays": array_chain,
    "structural operations": structural_chain,
}


def fill(chain: Iterator[tg.Tensor]) -> tuple[tg.Tensor, int]:
    """Run a chain until there is no room; its last result and its length."""
    last, length = tg.tensor(0.0), 0
    try:
        for y in chain:
            last = y
            length += 1
    except (RuntimeError, MemoryError):
        return last, length
    raise AssertionError("the chain ended")


@pytest.mark.parametrize("name", CHAINS)
def test_more_rows_than_can_be_numbered_raise(few_rows: int, name: str) -> None:
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match=FULL):
        deque(CHAINS[name](x), maxlen=1)
    assert live_rows() <= few_rows


def test_full_tape_names_the_limit(few_rows: int) -> None:
    with pytest.raises(RuntimeError, match=str(few_rows)):
        deque(scalar_chain(leaf(1.0)), maxlen=1)


def test_graph_on_a_full_tape_runs_backward(few_rows: int) -> None:
    x = leaf(1.0)
    y, length = fill(scalar_chain(x))
    y.backward()
    assert_values(x.grad, length + 1.0)


def test_full_tape_records_again_after_backward(few_rows: int) -> None:
    x = leaf(1.0)
    y, _ = fill(scalar_chain(x))
    y.backward()
    x.grad = None
    (x * x).backward()
    assert_values(x.grad, 2.0)


def test_full_tape_records_again_after_a_drop(few_rows: int) -> None:
    x = leaf(1.0)
    y, _ = fill(scalar_chain(x))
    del y
    (x * x).backward()
    assert_values(x.grad, 2.0)


def test_dead_rows_do_not_fill_the_tape(few_rows: int) -> None:
    x = leaf(1.0)
    for _ in range(10_000):
        y = x * x * x
    y.backward()
    assert_values(x.grad, 3.0)


def test_untracked_work_goes_on_while_the_tape_is_full(few_rows: int) -> None:
    x = leaf(1.0)
    y, _ = fill(scalar_chain(x))
    with tg.no_grad():
        assert (y * 2.0).item() == 2.0


def out_of_memory(*arguments: object) -> np.ndarray:
    raise MemoryError("no memory for the columns")


def exhaust(name: str, keep: bool) -> None:
    """Run a chain until the columns cannot grow, then ask whether everything recorded is still right."""
    x, twin = leaf(1.0), leaf(1.0)
    kept: deque[tg.Tensor] = deque(maxlen=None if keep else 1)
    length, allocate = 0, column_memory.allocate
    (x * x).backward()
    x.grad = None
    column_memory.allocate = out_of_memory
    try:
        for y in CHAINS[name](x):
            kept.append(y)
            length += 1
    except MemoryError:
        pass
    else:
        raise AssertionError("the columns never grew")
    finally:
        column_memory.allocate = allocate
    assert length > 100
    (expected,) = islice(CHAINS[name](twin), length - 1, length)
    assert kept[-1].item() == expected.item()
    kept[-1].backward()
    expected.backward()
    assert x.grad.item() == twin.grad.item()
    assert kept[0].requires_grad


@pytest.mark.parametrize("keep", [False, True], ids=["dropped", "kept"])
@pytest.mark.parametrize("name", CHAINS)
def test_running_out_of_memory_loses_nothing(name: str, keep: bool) -> None:
    assert_process_succeeds(f"import test_tape_limits; test_tape_limits.exhaust({name!r}, {keep})")


def record_again() -> None:
    """Fail to grow, then record and sweep a longer graph with memory back."""
    x, allocate = leaf(1.0), column_memory.allocate
    (x * x).backward()
    x.grad = None
    column_memory.allocate = out_of_memory
    y, length = fill(scalar_chain(x))
    column_memory.allocate = allocate
    for _ in range(length):
        y = y * x
    y.backward()
    assert x.grad.item() == 2.0 * length + 1.0


def test_tape_grows_again_when_there_is_memory_again() -> None:
    assert_process_succeeds("import test_tape_limits; test_tape_limits.record_again()")


def assert_process_succeeds(code: str) -> None:
    """Run in a process of its own, whose columns are still small."""
    folders = [*map(str, Path(__file__).parents[:2]), str(Path(tg.__file__).parents[1])]
    code = f"import sys; sys.path[:0] = {folders!r}\n{code}"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_scalar_row_takes_at_most_32_bytes() -> None:
    assert tg.tape.default_tape().memory()["row_bytes"] <= 32


def measure_columns() -> None:
    """Half a million scalar rows, half of them with a constant of their own."""
    x = leaf(1.0)
    y = x * 1.0
    for _ in range(250_000):
        y = y * 1.000001
        y = y + x
    memory = tg.tape.default_tape().memory()
    assert memory["rows"] >= 500_000
    assert memory["used_bytes"] <= 32 * memory["rows"]
    assert memory["column_bytes"] <= 2 * 32 * memory["rows"]  # they grow geometrically


def test_rows_of_a_long_chain_with_constants_take_at_most_32_bytes() -> None:
    assert_process_succeeds("import test_tape_limits; test_tape_limits.measure_columns()")


COLUMNS = {
    "side": (at.SIDE, at.SIDE_ROWS, at.SIDE_CAPACITY),
    "constant": (at.CONSTANT, at.CONSTANTS, at.CONSTANT_CAPACITY),
    "held": (at.HELD, at.ROWS, at.CAPACITY),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_that_a_destructor_let_grow_meanwhile_stays_the_larger_one(name: str) -> None:
    """A destructor may run between allocating a column and using it, and record more than was asked for."""
    tape = tg.tape.default_tape()
    word, used, capacity = COLUMNS[name]
    before, size = tape.columns[name], int(tape.header[capacity])
    smaller = np.zeros(size, before.dtype)
    tape._move("move_column", name, smaller, word, before.itemsize, used, 0, capacity, size, True)
    assert tape.columns[name] is before
    assert int(tape.header[capacity]) == size
