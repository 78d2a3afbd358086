"""Graphs of millions of rows: bytes and time a row, deep chains, wide fans, many paths, and the end of the numbers."""

import gc
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import tapegrad as tg

Figure = Callable[[str, int, float, float], None]

BYTES_A_ROW = """
import sys
import tapegrad as tg
sys.setrecursionlimit(200)
rows = int(sys.argv[1])
x = tg.tensor(1.0, requires_grad=True)
y = x * 1.0
tape = tg.tape.default_tape()
before = tape.memory()["used_bytes"], tape.rows
for _ in range(rows):
    y = y * x
after = tape.memory()["used_bytes"], tape.rows
y.backward()
assert x.grad.item() == rows + 1, x.grad
print((after[0] - before[0]) / (after[1] - before[1]))
"""


def test_bytes_of_a_scalar_row_in_a_long_chain(long: bool, figure: Figure) -> None:
    rows = 50_000_000 if long else 500_000
    done = subprocess.run([sys.executable, "-c", BYTES_A_ROW, str(rows)], capture_output=True, text=True, check=True)
    figure("bytes of a scalar row", rows, float(done.stdout), 32)


def test_a_chain_of_array_rows(long: bool, figure: Figure) -> None:
    rows = 1_000_000 if long else 50_000
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x
    for _ in range(rows):
        y = y + x
    y.sum().backward()
    figure("array rows in one chain: error of the gradient", rows, float(np.abs(x.grad.numpy() - (rows + 1)).max()), 0)


def seconds_a_row(rows: int) -> tuple[float, float]:
    x = tg.tensor(1.0, requires_grad=True)
    y = x
    gc.disable()
    try:
        start = time.perf_counter()
        for _ in range(rows):
            y = y * x
        recorded = time.perf_counter()
        y.backward()
        return (recorded - start) / rows, (time.perf_counter() - recorded) / rows
    finally:
        gc.enable()


def test_time_of_a_row_is_that_of_a_short_graph(long: bool, figure: Figure) -> None:
    """Only at the full size: smaller ones take too little time to say anything on a shared machine."""
    sizes = [10_000, 100_000, 1_000_000, 10_000_000] if long else [1000, 10_000]
    gc.collect()
    seconds_a_row(max(sizes))
    times = [min(sum(seconds_a_row(rows)) for _ in range(5)) for rows in sizes]
    for rows, taken in zip(sizes[1:], times[1:], strict=True):
        figure(f"time of a row relative to {sizes[0]:,} rows", rows, taken / times[0], 1.2 if long else float("inf"))


def test_time_of_a_small_graph_is_the_same_after_a_large_one(long: bool, figure: Figure) -> None:
    """Only at the full size."""
    rows = 10_000_000 if long else 10_000

    def small() -> float:
        return min(sum(seconds_a_row(100)) for _ in range(1000))

    small()
    before = small()
    seconds_a_row(rows)
    figure("time of a row in small graphs after a large one", rows, small() / before, 1.5 if long else float("inf"))


def test_a_fan_of_a_million(long: bool, figure: Figure) -> None:
    uses = 1_000_000 if long else 100_000
    x = tg.tensor(0.5, requires_grad=True)
    pieces = [x * float(k) for k in range(uses)]
    total = pieces[0]
    for piece in pieces[1:]:
        total = total + piece
    total.backward()
    exact = uses * (uses - 1) / 2
    figure("uses of one leaf: relative error of the gradient", uses, abs(x.grad.item() - exact) / exact, 1e-15 * uses)


def test_two_to_the_sixtieth_paths_in_sixty_rows() -> None:
    x = tg.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(60):
        y = y + y
    y.backward()
    assert x.grad.item() == 2.0**60


@pytest.fixture
def few_rows() -> Iterator[int]:
    tape = tg.tape.default_tape()
    gc.collect()
    tape.collect()
    before, tape.row_limit = tape.row_limit, tape.rows + 5000
    tape.collect()
    yield tape.row_limit
    tape.row_limit = before


def test_the_end_of_the_numbers_leaves_the_graph_usable(few_rows: int) -> None:
    x = tg.tensor(1.0, requires_grad=True)
    chain = [x * 1.0]

    def lengthen() -> None:
        while len(chain) < few_rows + 1000:
            chain.append(chain[-1] * x)

    with pytest.raises(tg.TapeFullError, match="at most"):
        lengthen()
    made = len(chain)
    chain[-1].backward()
    assert x.grad.item() == made
    chain.clear()
    z = x * 3.0
    z.backward()
    assert x.grad.item() == made + 3.0
