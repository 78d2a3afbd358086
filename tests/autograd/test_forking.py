"""Locks around a fork: an interrupt while a fork waits for them leaves none of them held."""

import threading
from typing import Any

import pytest

from tapegrad.autograd import forking


class Interrupted:
    """A lock at which the first wait is interrupted."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.waits = 0

    def acquire(self) -> bool:
        self.waits += 1
        if self.waits == 1:
            raise KeyboardInterrupt
        return self.lock.acquire()

    def release(self) -> None:
        self.lock.release()


def free_for_others(lock: Any) -> bool:
    answers: list[bool] = []

    def work() -> None:
        answers.append(lock.acquire(timeout=0.2))
        if answers[0]:
            lock.release()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return answers[0]


def test_interrupted_wait_goes_on_to_hold_every_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = threading.RLock(), Interrupted(), threading.RLock()
    monkeypatch.setattr(forking, "_LOCKS", (first, second, third))
    with pytest.raises(KeyboardInterrupt):
        forking._hold()
    assert [free_for_others(lock) for lock in (first, second.lock, third)] == [False] * 3
    forking._let_go()


def test_locks_are_free_after_an_interrupted_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = threading.RLock(), Interrupted(), threading.RLock()
    monkeypatch.setattr(forking, "_LOCKS", (first, second, third))
    with pytest.raises(KeyboardInterrupt):
        forking._hold()
    forking._let_go()
    assert [free_for_others(lock) for lock in (first, second.lock, third)] == [True] * 3
