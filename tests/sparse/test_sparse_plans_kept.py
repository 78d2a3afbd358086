"""One callable of `tg.sparse` where calls meet in threads, or end in exceptions: what counts as known is in the pattern."""

import threading
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.sparse.evaluation import Evaluation

POSITIVE, NEGATIVE = np.array([1.0, 2.0, 3.0]), np.array([-1.0, 2.0, 3.0])


def of_two_forms(x: Any) -> Any:
    return x * x if x[0] > 0.0 else x * x[::-1]


def test_threads_that_find_two_structures_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, compressed = tg.sparse.jacobian(of_two_forms), Evaluation._compressed
    is_inside, may_go_on = threading.Event(), threading.Event()

    def waiting(self: Any, *args: Any) -> Any:
        plan = compressed(self, *args)
        if threading.current_thread() is first:
            is_inside.set()
            may_go_on.wait(60.0)
        return plan

    first = threading.Thread(target=made, args=(POSITIVE,))
    monkeypatch.setattr(Evaluation, "_compressed", waiting)
    first.start()
    is_inside.wait(60.0)
    made(NEGATIVE)
    may_go_on.set()
    first.join()
    for x in (POSITIVE, NEGATIVE):
        np.testing.assert_array_equal(made(x).toarray(), tg.jacobian(of_two_forms)(x))


def test_an_exception_while_paths_of_a_program_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    program = tg.program(of_two_forms)
    tg.sparse.jacobian(program)(NEGATIVE)
    made = tg.sparse.jacobian(program, detect="global")
    with monkeypatch.context() as patch:
        patch.setattr(Evaluation, "_compressed", lambda *args: (_ for _ in ()).throw(MemoryError("no room")))
        with pytest.raises(MemoryError, match="no room"):
            made(NEGATIVE)
    for x in (POSITIVE, NEGATIVE):
        np.testing.assert_array_equal(made(x).toarray(), tg.jacobian(of_two_forms)(x))
