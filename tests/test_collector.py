"""The collector stays off as long as somebody wants none, and is then as it was."""

import gc
import os
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from fresh_processes import environment, run

from tapegrad import collector
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


def test_two_that_end_at_once_do_not_keep_it_off_after_a_third_one(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, goes_on = threading.Event(), threading.Event()
    states, switches = [True], iter(["first", "second"])

    def is_on() -> bool:
        if threading.current_thread() is third:
            begun.set()
            goes_on.wait()
        return states[-1]

    def switch_on() -> None:
        states.append(True)
        if next(switches, "") == "first":  # another one begins and ends, and a third one begins, before this one looks again
            without_collections(int)
            third.start()
            begun.wait()

    switched = SimpleNamespace(isenabled=is_on, enable=switch_on, disable=lambda: states.append(False))
    monkeypatch.setattr(collector, "gc", switched)
    third = threading.Thread(target=without_collections, args=(int,))
    without_collections(int)
    goes_on.set()
    third.join()
    assert states[-1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_processes_do_not_wait_for_calls_of_threads_that_they_lack() -> None:
    program = """
import gc, os, threading
from tapegrad.collector import without_collections
begun, goes_on = threading.Event(), threading.Event()
thread = threading.Thread(target=without_collections, args=(lambda: (begun.set(), goes_on.wait()),))
thread.start()
begun.wait()
child = without_collections(os.fork)
if child == 0:
    os._exit(0 if gc.isenabled() else 3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), gc.isenabled())
goes_on.set()
thread.join()
print(gc.isenabled())
"""
    assert run(program, environment()).stdout.split() == ["0", "False", "True"]
