"""What protects against interrupts: nothing is left half done, wherever one comes."""

import threading
from pathlib import Path

import numpy as np
import pytest
from interrupts import Stop, interrupt

import tapegrad.interrupts as protection
from tapegrad.interrupts import carried_through, undone, whole_file
from tapegrad.nopython.tape import column_memory
from tapegrad.nopython.tape.columns import LIMIT, PARTIAL_COLUMN, ROW_COLUMN

HERE = (__file__, protection.__file__)


def test_what_a_function_did_is_undone_wherever_an_interrupt_comes() -> None:
    done: list[int] = []

    def work() -> str:
        done.append(1)
        done.append(2)
        return "done"

    def run() -> None:
        results.append(undone(done.clear, work))

    results: list[str] = []
    k = 1
    while interrupt(run, k, __file__, but={"run"}):
        assert done == [] or results == ["done"]
        done.clear()
        results.clear()
        k += 1
    assert k > 2 and done == [1, 2]


def test_result_is_handed_on() -> None:
    assert undone(pytest.fail, divmod, 7, 2) == (3, 1)


def test_steps_are_carried_through_and_the_first_exception_is_raised_then() -> None:
    steps: list[int] = []

    def step() -> None:
        steps.append(len(steps))
        if len(steps) in (2, 3):
            raise Stop(len(steps))

    with pytest.raises(Stop, match="2"):
        carried_through(step, lambda: len(steps) == 5)
    assert steps == [0, 1, 2, 3, 4]


def test_thread_is_waited_for_in_spite_of_interrupts() -> None:
    goes_on = threading.Event()
    thread = threading.Thread(target=goes_on.wait)
    thread.start()

    def join() -> None:
        goes_on.set()
        if not raised:
            raised.append(Stop())
            raise raised[0]
        thread.join()

    raised: list[Stop] = []
    with pytest.raises(Stop):
        carried_through(join, lambda: not thread.is_alive())
    assert not thread.is_alive()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a file between `open` and `with`
def test_file_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def write() -> None:
        with whole_file(path, lasting=True) as target:
            target.write(b"n")
            target.write(b"ew")

    path.write_bytes(b"old")
    k = 1
    while interrupt(write, k, *HERE):
        assert path.read_bytes() in (b"old", b"new")
        path.write_bytes(b"old")
        k += 1
    assert path.read_bytes() == b"new" and k > 5


def test_file_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def write() -> None:
        with whole_file(tmp_path / "file") as target:
            target.write(b"part" * (1 // 0))

    with pytest.raises(ZeroDivisionError):
        write()
    assert list(tmp_path.iterdir()) == []


def test_columns_and_the_header_that_leads_to_them_grow_together() -> None:
    columns = column_memory.take()
    k, capacity = 0, 1000
    more = True
    while more:
        k, capacity = k + 1, capacity + 100
        more = interrupt(lambda capacity=capacity: columns.resize(capacity), k, column_memory.__file__, *HERE, but={"<lambda>"})
        header = columns.header[LIMIT : PARTIAL_COLUMN + 1].tolist()
        assert header[ROW_COLUMN - LIMIT] == columns.rows.ctypes.data
        assert header[PARTIAL_COLUMN - LIMIT] == columns.partials.ctypes.data
        assert header[0] <= min(columns.rows.size, columns.partials.size)
    assert k > 3 and columns.partials.dtype == np.float64
