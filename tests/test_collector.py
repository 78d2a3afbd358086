"""The collector stays off as long as somebody wants none, and is then as it was."""

import gc
import threading
from collections.abc import Iterator

import pytest

from tapegrad.collector import without_collections


@pytest.fixture(params=[True, False], ids=["on", "off"])
def was_on(request: pytest.FixtureRequest) -> Iterator[bool]:
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield bool(request.param)
    (gc.enable if before else gc.disable)()


def test_it_is_off_in_calls_and_as_before_behind_them(was_on: bool) -> None:
    assert without_collections(lambda: (gc.isenabled(), without_collections(gc.isenabled), gc.isenabled())) == (False, False, False)
    assert gc.isenabled() == was_on


def test_exceptions_leave_it_as_it_was(was_on: bool) -> None:
    with pytest.raises(ZeroDivisionError):
        without_collections(lambda: 1 / 0)
    assert gc.isenabled() == was_on


def test_a_thread_that_is_done_does_not_switch_it_on_for_others(was_on: bool) -> None:
    begun, goes_on = threading.Event(), threading.Event()
    thread = threading.Thread(target=without_collections, args=(lambda: (begun.set(), goes_on.wait()),))
    thread.start()
    begun.wait()

    def end_the_other() -> bool:
        goes_on.set()
        thread.join()
        return gc.isenabled()

    assert not without_collections(end_the_other)
    assert gc.isenabled() == was_on
